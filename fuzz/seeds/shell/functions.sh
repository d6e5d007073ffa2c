f() { local v=$1; "$@"; }; function g { f "$v"; }
f touch x; g; unset -f f; trap 'rm -f "$t"' EXIT
