#!/usr/bin/env python3
"""Measures what a run costs beside the model: a loopback server plays the model, so that the time
between its answer and the next request is all ours.

    python3 benches/turns.py [PROGRAM]          default: target/release/stoplog

Two runs: 30 turns of a command that does nothing, and 150 turns that print 10 KB each. The same
command again and again is meant here, so that the watch over repetitions is off.
Prints for each: the median time that a turn adds, in all and in the first and the last 30 turns, the
time from the start of the process to its first request, and the most memory that the supervisor had (VmHWM; its cells are not counted).
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def peak_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


def read_request(stream):
    """One request; None at the end of the connection."""
    length = 0
    line = stream.readline()
    if not line:
        return None
    while line not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
        line = stream.readline()
    return stream.read(length)


def event(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def answer(turn, turns, command):
    """The bytes of one streamed answer."""
    if turn < turns:
        call = {
            "index": 0,
            "id": f"call_{turn}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": command})},
        }
        body = event({"tool_calls": [call]}) + event({}, "tool_calls")
    else:
        body = event({"content": "done"}) + event({}, "stop")
    body += b"data: [DONE]\n\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def measure(program, turns, command):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        for name in ("home", "work"):
            os.mkdir(os.path.join(root, name))
        arguments = [
            program, "--state-dir", os.path.join(root, "state"), "run", "--headless",
            "--output", "json", "--model", "openai/measured", "--max-iterations", str(turns + 10),
            "--max-repeats", "0",
            "--base-url", f"http://127.0.0.1:{port}/v1",
            "--workspace", os.path.join(root, "work"), "measure",
        ]
        environment = {"PATH": os.environ["PATH"], "HOME": os.path.join(root, "home")}
        began = time.monotonic()
        process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE)
        added, first, peak, answered, turn = [], None, 0, None, 0
        while turn <= turns:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = connection.makefile("rb")
            while turn <= turns and read_request(stream) is not None:
                now = time.monotonic()
                if answered is None:
                    first = now - began
                else:
                    added.append(now - answered)
                peak = max(peak, peak_kib(process.pid))
                connection.sendall(answer(turn, turns, command))
                answered = time.monotonic()
                turn += 1
        output, _ = process.communicate(timeout=60)
        result = json.loads(output)
        if process.returncode != 0 or result["turns"] != turns + 1:
            sys.exit(f"the run ended with {process.returncode}: {output.decode()}")
    return added, first, peak


def ends(added):
    """How a turn's time grows with the turns before it."""
    first, last = (1_000 * statistics.median(part) for part in (added[:30], added[-30:]))
    return f"first 30 {first:.1f} ms, last 30 {last:.1f} ms"


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/stoplog"
    for name, turns, command in (
        ("30 turns of true", 30, "true"),
        ("150 turns of 10 KB", 150, "printf %10240d 1"),
    ):
        added, first, peak = measure(program, turns, command)
        milliseconds = sorted(1_000 * seconds for seconds in added)
        tenth = milliseconds[len(milliseconds) * 9 // 10]
        print(
            f"{name}: median {statistics.median(milliseconds):.1f} ms a turn "
            f"(90 % below {tenth:.1f} ms; {ends(added)}), first request after {1_000 * first:.0f} ms, "
            f"peak {peak / 1_024:.1f} MiB"
        )


if __name__ == "__main__":
    main()
