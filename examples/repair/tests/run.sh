#!/usr/bin/env bash
# Builds the program in a temporary directory and runs the cases.
set -u
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cc -Wall -Wextra -o "$build/ledger" src/main.c src/ledger.c || exit 1
failed=0
check() { # input, expected total
  actual=$(printf '%b' "$1" | "$build/ledger")
  if [ "$actual" = "$2" ]; then
    echo "ok   $2"
  else
    echo "FAIL expected $2, got $actual"
    failed=1
  fi
}
check '' 0
check '12.50\n' 1250
check '12.50\n-2.25\n' 1025
check '1\n2\n3\n' 600
exit "$failed"
