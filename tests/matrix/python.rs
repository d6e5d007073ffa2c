//! Python: environments, wheels, processes, threads, tests.

use crate::rig::{Place, Row};

/// A directory of wheels with pytest and what it needs, for the row that installs it.
const WHEELS: &str = "STOPLOG_MATRIX_WHEELS";

rows! {
    python_virtual_environment_and_local_wheel ["python3", "python3:venv", "python3:ensurepip"] r##"
        set -e
        cat > wheel.py <<'EOF'
import zipfile
with zipfile.ZipFile("demo-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("demo.py", "def twice(x):\n    return 2 * x\n")
    wheel.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    wheel.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n")
EOF
        python3 wheel.py; python3 -m venv env
        env/bin/pip install --quiet --no-index --disable-pip-version-check ./demo-1.0-py3-none-any.whl
        env/bin/python -c 'import demo; print(demo.twice(21))'; . env/bin/activate; pip list --format freeze --disable-pip-version-check | grep demo
    "## => "42\ndemo==1.0\n";

    python_processes_and_threads ["python3"] r##"
        cat > m.py <<'EOF'
import multiprocessing, threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory

def square(x):
    return x * x

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, sum(pool.map(square, range(10))))
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        shared["a"] = 1
        print(dict(shared))
    block = shared_memory.SharedMemory(create=True, size=16)
    block.buf[0] = 7
    again = shared_memory.SharedMemory(block.name)
    print(again.buf[0])
    again.close(); block.close(); block.unlink()
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, [3])))
    threads = [threading.Thread(target=square, args=(i,)) for i in range(100)]
    [t.start() for t in threads]; [t.join() for t in threads]
    queue = multiprocessing.Queue(); queue.put(5); print(queue.get())
EOF
        python3 m.py 2> errors || cat errors
    "## => "fork 285\nspawn 285\nforkserver 285\n{'a': 1}\n7\n[9]\n5\n";

    python_subprocesses_files_and_events ["python3"] r##"
        cat > m.py <<'EOF'
import asyncio, mmap, os, pathlib, select, signal, sqlite3, subprocess, tempfile, zoneinfo, datetime, fcntl
print(subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout.strip())
print(subprocess.check_output("echo $((1+1))", shell=True, text=True).strip())
async def main():
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    out, _ = await process.communicate(b"piped")
    print(out.decode())
    server = await asyncio.start_server(lambda r, w: (w.write(b"tcp"), w.close()), "127.0.0.1", 0)
    reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
    print((await reader.read()).decode())
asyncio.run(main())
with tempfile.NamedTemporaryFile() as f:
    f.write(b"x" * 4096); f.flush()
    print(len(mmap.mmap(f.fileno(), 0)), oct(os.stat(f.name).st_mode & 0o777))
    fcntl.flock(f, fcntl.LOCK_EX)
db = sqlite3.connect("d.db"); db.execute("create table t(x)"); print(db.execute("select count(*) from t").fetchone()[0])
print(datetime.datetime.fromtimestamp(0, zoneinfo.ZoneInfo("Asia/Tokyo")).hour)
epoll = select.epoll(); r, w = os.pipe(); epoll.register(r, select.EPOLLIN); os.write(w, b"x"); print(len(epoll.poll(1)))
signal.signal(signal.SIGALRM, lambda *_: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
pathlib.Path("a/b").mkdir(parents=True); os.rename("a/b", "c"); os.replace("d.db", "c/d.db"); print(sorted(os.listdir("c")))
os.utime("c/d.db", (1, 2)); print(int(os.stat("c/d.db").st_mtime)); os.chmod("c", 0o750); print(len(os.sched_getaffinity(0)) > 0)
EOF
        python3 m.py 2> errors || cat errors
    "## => "hi\n2\npiped\ntcp\n4096 0o600\n0\n9\n1\nalarm\n['d.db']\n2\nTrue\n";

    python_unit_tests ["python3"] r##"
        printf 'import unittest\nclass T(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(1 + 1, 2)\n' > test_x.py
        python3 -m unittest 2>&1 | tail -1; python3 -m compileall -q . && ls __pycache__ | wc -l; python3 - <<< 'print("stdin")'
    "## => "OK\n1\nstdin\n";
}

#[test]
fn pytest_from_wheels() {
    let Some(wheels) = std::env::var_os(WHEELS) else {
        println!("pytest_from_wheels did not run: {WHEELS} names no directory of wheels");
        return;
    };
    let row = Row {
        name: "pytest_from_wheels",
        needs: &["python3", "python3:venv", "python3:ensurepip"],
        script: r#"
            set -e
            python3 -m venv env; env/bin/pip install --quiet --no-index --disable-pip-version-check --find-links wheels pytest
            printf 'def test_a(tmp_path):\n    (tmp_path / "f").write_text("x")\n    assert 1 + 1 == 2\n' > test_a.py
            printf 'def test_b(capfd, monkeypatch):\n    monkeypatch.setenv("A", "b")\n    print("x")\n    assert capfd.readouterr().out == "x\\n"\n' > test_b.py
            env/bin/pytest -q | tail -1 | cut -d' ' -f1,2
        "#,
        prints: "2 passed\n",
    };
    row.holds_in(|place: &Place| place.copy(wheels.as_ref(), "wheels"));
}
