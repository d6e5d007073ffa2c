#!/usr/bin/env python3
"""Measures how sessions of many turns grow and resume: a loopback server plays the model.

    python3 benches/resume.py [PROGRAM [TURNS …]]     default: target/release/stoplog, 100 1000 10000

For each number of turns: a run of so many calls that print 100 bytes each is killed at its last
request, and the session is resumed without a further task, so that all of it is read, checked and
sent again; then it goes on for fifty turns. Prints the size of the journal and of the log, the time
from the start of `resume` to its first request (the median of five; the fastest beside it), the
median time that a turn adds behind so many others, and the most memory that the supervisor had. Ten thousand turns take some minutes to make.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import turns as rig  # noqa: E402 - nothing is left beside the scripts

RESUMES = 5
FURTHER_TURNS = 50


class Model:
    """The model's side of a connection; requests are taken one after the other."""

    def __init__(self):
        self.listener = rig.socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connection = self.stream = None

    def request(self):
        """Waits for a whole request and tells when it was there."""
        while True:
            if self.stream is not None and rig.read_request(self.stream) is not None:
                return time.monotonic()
            self.connection, _ = self.listener.accept()
            self.connection.setsockopt(rig.socket.IPPROTO_TCP, rig.socket.TCP_NODELAY, 1)
            self.stream = self.connection.makefile("rb")

    def answer(self, body):
        self.connection.sendall(body)
        return time.monotonic()

    def hang_up(self):
        self.connection = self.stream = None


def start(program, root, model, command):
    arguments = [
        program, "--state-dir", os.path.join(root, "state"), *command, "--headless",
        "--output", "json", "--model", "openai/measured", "--max-iterations", "1000000",
        "--max-repeats", "0", "--base-url", f"http://127.0.0.1:{model.port}/v1",
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": os.path.join(root, "home")}
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL)


def end(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def build(program, root, model, count):
    """Runs `count` turns and kills the run while its next request waits."""
    task = ["run", "--workspace", os.path.join(root, "work"), "measure"]
    process = start(program, root, model, task)
    model.request()
    play(model, range(count))
    end(process)
    model.hang_up()


def play(model, numbers):
    """Plays the turns and gives what each added."""
    added = []
    for turn in numbers:
        answered = model.answer(rig.answer(turn, turn + 1, "printf %100d 1"))
        added.append(model.request() - answered)
    return added


def resume(program, root, model, further):
    """Resumes a copy of the session, so that the original stays as it is, and plays further turns."""
    copy = os.path.join(root, "copy")
    os.mkdir(copy)
    for name in ("home", "state"):
        shutil.copytree(os.path.join(root, name), os.path.join(copy, name))
    session = os.listdir(os.path.join(copy, "state", "sessions"))[0]
    began = time.monotonic()
    process = start(program, copy, model, ["resume", session])
    took = model.request() - began
    added = play(model, further)
    peak = rig.peak_kib(process.pid)
    end(process)
    model.hang_up()
    shutil.rmtree(copy)
    return took, added, peak


def size(root, kind):
    """Mebibytes of the largest file of a kind."""
    found = [
        os.path.getsize(os.path.join(directory, name))
        for directory, _, names in os.walk(os.path.join(root, "state", kind))
        for name in names
    ]
    return max(found) / 2**20


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/stoplog"
    counts = [int(word) for word in sys.argv[2:]] or [100, 1_000, 10_000]
    for count in counts:
        with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
            for name in ("home", "work"):
                os.mkdir(os.path.join(root, name))
            model = Model()
            build(program, root, model, count)
            times = [resume(program, root, model, [])[0] for _ in range(RESUMES)]
            further = range(count, count + FURTHER_TURNS)
            _, added, peak = resume(program, root, model, further)
            print(
                f"{count} turns: journal {size(root, 'sessions'):.1f} MiB, log "
                f"{size(root, 'audit'):.1f} MiB; resumed in {1_000 * statistics.median(times):.0f} ms "
                f"(fastest {1_000 * min(times):.0f}); a further turn adds "
                f"{1_000 * statistics.median(added):.1f} ms, peak {peak / 1_024:.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
