#!/usr/bin/env python3
"""Measures what a cell costs to start and what it costs inside, beside its peers in the same run.

    python3 benches/launch.py [PROGRAM] [ROUNDS]      default: target/release/stoplog, 100

Three tables, each from turns that are taken in rotation, so that a machine whose speed drifts is the
same for all:

1. `true` as a whole process: bare, under bubblewrap with every namespace (where it is installed), and
   as `stoplog exec -- true`, which also decides, and flushes its records to the disk. Wall time, and
   the processor time of the whole process tree, which other work on the machine changes least.
2. The same, eight at once: calls a second.
3. Work inside: a search of 20,000 files, 300 programs one after the other, a compilation. The work
   times itself, so that the start is set apart.

A launch from inside a run, without any process of our own around it, is `cargo bench --bench cell`.
"""

import concurrent.futures
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

AT_ONCE = 8
CALLS_AT_ONCE = 200
FILES = 20_000
WORK_ROUNDS = 7

SEARCH = "find . -type f -size +1k"
PROGRAMS = "for i in $(seq 300); do /bin/true; done"
COMPILATION = "gcc -O1 -c -o /tmp/unit.o unit.c"


def bubblewrap(work):
    """The view that bubblewrap's own manual builds, with every namespace."""
    view = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    for name in ("bin", "lib", "lib64", "sbin"):
        if os.path.islink(f"/{name}"):
            view += ["--symlink", f"usr/{name}", f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            view += ["--ro-bind", f"/{name}", f"/{name}"]
    view += ["--ro-bind", "/etc", "/etc", "--bind", work, work, "--chdir", work]
    return ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", *view, "--"]


def cells(program, root):
    """Name and front of each command line."""
    work, state = os.path.join(root, "work"), os.path.join(root, "state")
    own = [program, "--state-dir", state, "exec", "--workspace", work, "--"]
    fronts = {"bare": []}
    if shutil.which("bwrap"):
        fronts["bubblewrap"] = bubblewrap(work)
    fronts["stoplog exec"] = own
    return fronts


class Runner:
    """Starts programs at little cost of its own."""

    def __init__(self, root):
        self.null = os.open(os.devnull, os.O_RDWR)
        self.environment = {"PATH": os.environ["PATH"], "HOME": os.path.join(root, "home")}

    def run(self, arguments):
        """Wall and processor seconds of one call."""
        actions = [(os.POSIX_SPAWN_DUP2, self.null, number) for number in (0, 1)]
        began = time.perf_counter()
        pid = os.posix_spawnp(arguments[0], arguments, self.environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter() - began
        if status != 0:
            sys.exit(f"{' '.join(arguments)} ended with status {status}")
        return wall, usage.ru_utime + usage.ru_stime

    def output(self, arguments):
        done = subprocess.run(
            arguments, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(arguments)} failed: {done.stderr.decode()}")
        return done.stdout.decode()


def whole_process(fronts, runner, rounds):
    figures = {name: [] for name in fronts}
    # The kernel takes namespaces apart for some milliseconds after a cell has ended, so each follows
    # each of the others equally often.
    orders = itertools.cycle(itertools.permutations(fronts))
    for turn, order in zip(range(rounds + 3), orders):
        for name in order:
            figure = runner.run([*fronts[name], "/usr/bin/true"])
            if turn >= 3:
                figures[name].append(figure)
    print(f"`true` as a whole process, {rounds} in rotation")
    base = statistics.median(wall for wall, _ in figures.get("bubblewrap", figures["bare"]))
    for name, of_name in figures.items():
        walls = sorted(1_000 * wall for wall, _ in of_name)
        work = statistics.median(1_000 * processor for _, processor in of_name)
        median = statistics.median(walls)
        print(
            f"  {name:13} median {median:6.2f} ms (10 % below {walls[len(walls) // 10]:.2f}), "
            f"processor {work:5.2f} ms, {median / (1_000 * base):.2f} x"
        )


def at_once(fronts, runner):
    print(f"{CALLS_AT_ONCE} calls, {AT_ONCE} at once, median of three")
    rates = {name: [] for name in fronts}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(3):
            for name, front in fronts.items():
                calls = [[*front, "/usr/bin/true"]] * CALLS_AT_ONCE
                began = time.perf_counter()
                for _figure in pool.map(runner.run, calls):
                    pass
                rates[name].append(CALLS_AT_ONCE / (time.perf_counter() - began))
    for name, of_name in rates.items():
        print(f"  {name:13} {statistics.median(of_name):6.0f} a second")


def make_work(work):
    for number in range(FILES):
        directory = os.path.join(work, f"d{number // 200}", f"e{number // 20 % 10}")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, f"f{number}.txt"), "w", encoding="ascii"):
            pass
    functions = (f"int f{n}(int a) {{ return a * {n} + f{n - 1}(a); }}\n" for n in range(1, 3_000))
    with open(os.path.join(work, "unit.c"), "w", encoding="ascii") as unit:
        unit.write("int f0(int a) { return a; }\n" + "".join(functions))


def inside(fronts, runner, root):
    make_work(os.path.join(root, "work"))
    os.chdir(os.path.join(root, "work"))
    works = {"search": SEARCH, "programs": PROGRAMS}
    if shutil.which("gcc"):
        works["compilation"] = COMPILATION
    print(f"work inside, start set apart, {WORK_ROUNDS} in rotation")
    for work, script in works.items():
        script = f"began=$EPOCHREALTIME; {script} >/dev/null; echo $began $EPOCHREALTIME"
        took = {name: [] for name in fronts}
        for turn in range(WORK_ROUNDS + 1):
            for name, front in fronts.items():
                began, ended = runner.output([*front, "/bin/bash", "-c", script]).split()
                if turn >= 1:
                    took[name].append(1_000 * (float(ended) - float(began)))
        bare = statistics.median(took["bare"])
        for name, of_name in took.items():
            median = statistics.median(of_name)
            print(f"  {work:11} {name:13} {median:7.1f} ms, {100 * (median / bare - 1):+5.1f} %")


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/stoplog")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        for name in ("home", "work"):
            os.mkdir(os.path.join(root, name))
        os.mkdir(os.path.join(root, "state"), 0o700)
        os.chdir(os.path.join(root, "work"))
        fronts, runner = cells(program, root), Runner(root)
        whole_process(fronts, runner, rounds)
        at_once(fronts, runner)
        inside(fronts, runner, root)
        os.chdir("/")


if __name__ == "__main__":
    main()
