#!/usr/bin/env python3
"""Measures how sessions of many turns grow and resume: a loopback server plays the model.

    python3 benches/resume.py [PROGRAM [TURNS …]]     default: target/release/stoplog, 100 1000 10000

For each number of turns: a run of so many calls that print 100 bytes each is killed at its last
request, and the session is resumed without a further task, so that all of it is read, checked and
sent again. Prints the size of the journal and of the log, the median time that a turn added in the
first and in the last hundred turns, and the time from the start of `resume` to its first request (the
median of five; the fastest beside it). Ten thousand turns take some minutes to make.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import turns as rig

RESUMES = 5


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
    added = []
    model.request()
    for turn in range(count):
        answered = model.answer(rig.answer(turn, count + 1, "printf %100d 1"))
        added.append(model.request() - answered)
    end(process)
    model.hang_up()
    return added


def resume(program, root, model):
    """Resumes a copy of the session, so that the original stays as it is."""
    copy = os.path.join(root, "copy")
    os.mkdir(copy)
    for name in ("home", "state"):
        shutil.copytree(os.path.join(root, name), os.path.join(copy, name))
    session = os.listdir(os.path.join(copy, "state", "sessions"))[0]
    began = time.monotonic()
    process = start(program, copy, model, ["resume", session])
    took = model.request() - began
    end(process)
    model.hang_up()
    shutil.rmtree(copy)
    return took


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
            added = [1_000 * seconds for seconds in build(program, root, model, count)]
            times = [1_000 * resume(program, root, model) for _ in range(RESUMES)]
            print(
                f"{count} turns: journal {size(root, 'sessions'):.1f} MiB, log "
                f"{size(root, 'audit'):.1f} MiB; a turn added {statistics.median(added[:100]):.1f} ms "
                f"at the start, {statistics.median(added[-100:]):.1f} ms at the end; resumed in "
                f"{statistics.median(times):.0f} ms (fastest {min(times):.0f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
