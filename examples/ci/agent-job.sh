#!/usr/bin/env bash
# Lets an agent work on a checkout with nobody watching, and turns the result into a job's outcome.
#
#   examples/ci/agent-job.sh WORKSPACE 'TASK'
#
# The model comes from STOPLOG_MODEL and its provider's key variable. STOPLOG is the binary (default:
# the one on PATH). State, with the audit log, goes to STOPLOG_STATE (default: a new directory), to be
# kept as an artifact of the job.
set -euo pipefail

workspace=$1
task=$2
stoplog=${STOPLOG:-stoplog}
state=${STOPLOG_STATE:-$(mktemp -d)}
policy=$(dirname "$0")/policy.toml

code=0
"$stoplog" --state-dir "$state" run --headless --policy "$policy" --workspace "$workspace" \
  --output json "$task" || code=$?

# Whatever the agent did: the log must be as it was written.
if [ -d "$state/audit" ]; then
  "$stoplog" --state-dir "$state" audit verify --all >&2 || exit $?
fi

case $code in
  0) echo 'agent: done' >&2 ;;
  10) echo 'agent: done, some calls were denied; look at the log before you merge' >&2 ;;
  *) echo "agent: did not finish (exit code $code)" >&2 ;;
esac
exit "$code"
