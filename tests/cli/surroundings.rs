//! What else is on the machine: a terminal, another session and another user at the same time, names
//! that are no text, a kernel that says yes and does nothing.

use super::layers::{ACCEPTS, refused};
use super::pty::Pty;
use super::rig::{Live, PROGRAM, Rig, answer, bash, call, is_root, write};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Command;

/// Whether the machine has Python, which alone makes these calls without a compiler.
#[expect(clippy::print_stderr, reason = "what did not run must be seen")]
pub(crate) fn has_python() -> bool {
    let found = Command::new("python3").arg("-c").arg("import ctypes").status();
    let has = found.is_ok_and(|status| status.success());
    if !has {
        eprintln!("NOT RUN: there is no python3");
    }
    has
}

/// Types a word into whatever terminal it holds or can open: by the plain number, by one whose upper
/// half the kernel ignores, and by the call that pastes on a console.
const TYPE: &str = "\
import ctypes, os
call = ctypes.CDLL(None, use_errno=True).ioctl
ends = [0, 1, 2]
try: ends.append(os.open('/dev/tty', os.O_RDWR))
except OSError: pass
for end in ends:
    for number in (0x5412, 0x100005412, 0x10000000000005412 & 0xffffffffffffffff):
        for letter in b'canary\\n':
            call(end, ctypes.c_ulong(number), ctypes.create_string_buffer(bytes([letter])))
    call(end, ctypes.c_ulong(0x541c), ctypes.create_string_buffer(b'\\x02'))
print('tried')
";

#[test]
fn nothing_is_typed_into_the_terminal_that_exec_was_started_at() {
    if !has_python() {
        return;
    }
    let rig = Rig::new();
    rig.file("type.py", TYPE);
    let (work, state) = (rig.work(), rig.state());
    let (work, state) = (work.display(), state.display());
    // Whoever reads next at the terminal gets what was typed.
    let then_read = "timeout --foreground 2 head -n 1 | sed 's/^/got: /'; echo end-of-test";
    let exec = format!(
        "{PROGRAM} --state-dir {state} exec --workspace {work} -- python3 type.py; {then_read}"
    );
    let mut inside = Pty::program(&rig, &["sh", "-c", &exec]);
    inside.sees("tried").sees("end-of-test");
    let shown = inside.ends().1;
    assert!(!shown.contains("canary"), "{shown:?}");
    let plain = format!("python3 {work}/type.py; {then_read}");
    let mut outside = Pty::program(&rig, &["sh", "-c", &plain]);
    outside.sees("tried").sees("end-of-test");
    let shown = outside.ends().1;
    // Newer kernels let nobody do this but the administrator, unless told otherwise; older ones anybody.
    let allowed = fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").unwrap_or("1".into());
    if allowed.trim() == "1" || is_root() {
        assert!(shown.contains("got: canary"), "the control: {shown:?}");
    } else {
        eprintln!("NO CONTROL: this kernel lets nobody type into a terminal");
    }
}

#[test]
fn two_sessions_at_once_and_another_user_see_nothing_of_each_other() {
    const OTHER: &str = "20001";
    let rig = Rig::new();
    let (policy, work) = (rig.policy(ACCEPTS), rig.work());
    let work = work.to_str().unwrap();
    let exec =
        |script| ["exec", "--policy", &policy, "--workspace", work, "--", "sh", "-c", script];
    let first = "echo leak > $TMPDIR/x; echo leak > /tmp/x; echo leak > /dev/shm/x; \
                 echo $TMPDIR > where; touch ready; while test -e ready; do sleep 0.02; done; cat $TMPDIR/x";
    let second = "cat $TMPDIR/x /tmp/x /dev/shm/x $(cat where)/x; ls /tmp /dev/shm; echo end";
    for has_view in [true, false] {
        let start = |script| match has_view {
            true => Live::start(rig.command(&exec(script))),
            false => Live::start(refused(&rig, &exec(script))),
        };
        let mut one = start(first);
        assert!(one.until(|| rig.has("ready")));
        let two = start(second).end().exits(0);
        assert!(two.stdout.ends_with("end\n") && !two.stdout.contains("leak"), "{}", two.stdout);
        let place = rig.text("where");
        let place = place.trim();
        if is_root() && !has_view {
            let read = ["--reuid", OTHER, "--regid", OTHER, "--clear-groups", "cat"];
            let file = format!("{place}/x");
            let theirs = Live::start(rig.program("setpriv", &[&read[..], &[&file]].concat())).end();
            assert_eq!(theirs.stdout, "", "another user reads it");
            assert_eq!(
                Live::start(rig.program("cat", &[&file])).end().stdout,
                "leak\n",
                "the control"
            );
        }
        fs::remove_file(rig.work().join("ready")).unwrap();
        assert_eq!(one.end().exits(0).stdout, "leak\n", "the control: its own is there");
    }
}

#[test]
fn names_that_are_no_text_or_look_like_others_leave_log_and_journal_whole() {
    let rig = Rig::new();
    let odd = std::ffi::OsString::from_vec(b"odd\xff".to_vec());
    fs::write(rig.work().join(odd), "x").unwrap();
    fs::create_dir_all(rig.work().join(".git/hooks")).unwrap();
    let read = |path: &str| call("read", &json!({"path": path}));
    let glob = call("glob", &json!({"pattern": "*"}));
    let turns = [
        write("a\n{\"decision\":\"allow\"}", "x"),
        write(".g\u{200b}it/hooks/pre-commit", "x"),
        read("odd\u{0}/../../outside"),
        glob,
        bash("ls; printf 'b\\377d\\n'"),
        answer("done"),
    ];
    rig.beside("outside", "secret\n");
    let done = rig.play(&turns, &[]);
    let results = done.results();
    assert_eq!(results.len(), 5, "{results:?}");
    assert!(!rig.has(".git/hooks/pre-commit"), "an invisible character makes another name");
    assert!(!results[2].contains("secret") && done.statuses()[2] != "ok", "{}", results[2]);
    assert!(results[3].contains("odd") && results[4].contains("odd"), "{results:?}");
    for file in [rig.log(), rig.journal()] {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let parsed: Result<Value, _> = serde_json::from_str(line);
            assert!(parsed.is_ok(), "{}: {line}", file.display());
        }
    }
    rig.stoplog(&["audit", "verify"]).exits(0);
}

/// Reads a file from a second thread, and tells what holds each thread of the process.
const THREADS: &str = "\
import glob, sys, threading
def look():
    try: print(open(sys.argv[1]).read().strip())
    except OSError: print('closed')
    for status in sorted(glob.glob('/proc/self/task/*/status')):
        held = dict(line.split(':\\t', 1) for line in open(status))
        print(held['NoNewPrivs'].strip(), held['Seccomp'].strip())
second = threading.Thread(target=look)
second.start(); second.join()
";

#[test]
fn every_thread_of_a_tool_is_held() {
    if !has_python() {
        return;
    }
    let rig = Rig::new();
    let secret = rig.beside("outside", "secret\n");
    let script = rig.file("threads.py", THREADS);
    let (policy, work) = (rig.policy(ACCEPTS), rig.work());
    let exec = ["exec", "--policy", &policy, "--workspace", work.to_str().unwrap(), "--"];
    let exec = [&exec[..], &["python3", "threads.py", &secret]].concat();
    for done in [rig.stoplog(&exec), Live::start(refused(&rig, &exec)).end()] {
        assert_eq!(done.stdout, "closed\n1 2\n1 2\n", "{}", done.stderr);
    }
    let plain = rig.program("python3", &[script.to_str().unwrap(), &secret]);
    assert!(Live::start(plain).end().stdout.starts_with("secret\n0 "), "the control");
}

/// Becomes a program for which the kernel answers `landlock_restrict_self` with success and does
/// nothing, as an outer filter or a broken kernel may.
const PRETENDS: &str = "\
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
load, is_it, yes, allow = (0x20, 0, 0, 0), (0x15, 0, 1, 446), (6, 0, 0, 0x50000), (6, 0, 0, 0x7fff0000)
code = b''.join(struct.pack('HBBI', *step) for step in (load, is_it, yes, allow))
room = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxP', 4, ctypes.addressof(room))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
";

#[test]
fn a_run_does_not_start_where_the_second_layer_is_alone_and_does_nothing() {
    if !has_python() {
        return;
    }
    let rig = Rig::new();
    let policy = rig.policy(ACCEPTS);
    let script = rig.script(&[bash("touch ran"), answer("done")]);
    let run = rig.arguments(&script, &["--policy", &policy]);
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    let plain = refused(&rig, &run);
    let mut words: Vec<String> = vec!["-c".into(), PRETENDS.into()];
    words.push(plain.get_program().to_str().unwrap().into());
    words.extend(plain.get_args().map(|word| word.to_str().unwrap().to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = Live::start(rig.program("python3", &words)).end().exits(20);
    drop(done.says(&["the cell does not hold", "reading a file outside"]));
    assert!(!rig.has("ran"));
    rig.assert_nothing_began();
    Live::start(plain).end().exits(0);
    assert!(rig.has("ran"), "the control");
}

#[test]
fn a_directory_of_the_host_is_not_mounted_into_the_workspace() {
    let rig = Rig::new();
    let outside = rig.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret\n").unwrap();
    let mount = format!(
        "cd {}; mkdir -p m; unshare -Urm sh -c 'mount --bind {} m && cat m/secret'; echo end",
        rig.work().display(),
        outside.display()
    );
    rig.file("mount.sh", &mount);
    let (policy, work) = (rig.policy(ACCEPTS), rig.work());
    let exec = ["exec", "--policy", &policy, "--workspace", work.to_str().unwrap(), "--"];
    let exec = [&exec[..], &["sh", "mount.sh"]].concat();
    for done in [rig.stoplog(&exec), Live::start(refused(&rig, &exec)).end()] {
        assert_eq!(done.stdout, "end\n", "{}", done.stderr);
    }
    let plain = Live::start(rig.program("sh", &["-c", &mount])).end();
    assert_eq!(plain.stdout, "secret\nend\n", "the control: {}", plain.stderr);
}

#[test]
fn start_files_of_the_user_and_programs_of_the_workspace_are_nobodys_helper() {
    let rig = Rig::new();
    let planted = "#!/bin/sh\ntouch \"$MARK\"\n";
    for name in ["stoplog", "sandbox-helper", "sh", "true", "env", "mount", "git"] {
        let path = rig.file(
            &format!("bin/{name}"),
            planted.replace("$MARK", rig.beside("mark", "").as_str()),
        );
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    fs::remove_file(rig.root().join("mark")).unwrap();
    let start = rig.home().join(".bashrc");
    let start = start.to_str().unwrap();
    let turns = [
        write(start, "touch $PWD/started\n"),
        bash("printf 'touch started\\n' > ~/.bashrc; bash -ic true; test -e started && echo own"),
        bash("bash -ic true; rm -f started; bash -lic true; ls started"),
        answer("done"),
    ];
    let model = rig.script(&turns);
    let mut command = rig.run_command(&model, &[]);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", rig.work().join("bin").display());
    command.env("PATH", &path).current_dir(rig.work().join("bin"));
    let done = Live::start(command).end();
    let (results, statuses) = (done.results(), done.statuses());
    assert_eq!(statuses[0], "denied", "{results:?}");
    assert!(!rig.home().join(".bashrc").exists(), "nothing came to the user's own");
    assert!(!results[2].contains("\nstarted"), "the next call starts anew: {}", results[2]);
    // Whatever of the workspace ran, ran in a cell: from there no mark beside the workspace is made.
    assert!(!rig.root().join("mark").exists());
    let plain = Live::start(rig.program(rig.work().join("bin/true").to_str().unwrap(), &[])).end();
    assert!(plain.code() == Some(0) && rig.root().join("mark").exists(), "the control");
}

#[test]
fn protection_follows_a_link_to_where_it_leads() {
    let rig = Rig::new();
    fs::create_dir(rig.work().join("real")).unwrap();
    std::os::unix::fs::symlink("real", rig.work().join(".stoplog")).unwrap();
    rig.file("evil.sh", "echo x > real/policy.toml; echo y > .stoplog/policy.toml; echo tried");
    let turns = [bash("sh evil.sh"), write("real/policy.toml", "x"), answer("done")];
    let done = rig.play(&turns, &[]);
    if done.code() == Some(21) {
        // A start that refuses the link is as good.
        return;
    }
    assert!(done.results()[0].contains("tried"), "{:?}", done.results());
    assert!(!rig.has("real/policy.toml"), "{:?}", done.results());
    // The control: without the link it is a name like any other.
    fs::remove_file(rig.work().join(".stoplog")).unwrap();
    fs::create_dir_all(rig.work().join("real")).unwrap();
    rig.play(&[bash("echo x > real/policy.toml"), answer("done")], &[]).exits(0);
    assert!(rig.has("real/policy.toml"));
}

#[test]
fn nothing_that_decides_the_next_call_can_be_written_or_locked() {
    let rig = Rig::new();
    let state = rig.state();
    let look = format!(
        "find / -xdev -writable \\( -name '*seccomp*' -o -name '*landlock*' -o -name '*sandbox*' \
         -o -name '*stoplog*' \\) -not -path '{}/*' -not -path '/proc/*' -not -path '/tmp/*' \
         2>/dev/null; for f in $(find {state} -type f 2>/dev/null); do flock -n $f echo locked $f; done; \
         : >> /proc/$PPID/exe && echo opened; grep -c . /proc/self/status",
        rig.work().display(),
        state = state.display()
    );
    rig.file("look.sh", look);
    let policy = rig.policy(ACCEPTS);
    let turns = [bash("sh look.sh 2>/dev/null"), bash("sh look.sh 2>/dev/null"), answer("done")];
    let model = rig.script(&turns);
    let run = rig.arguments(&model, &["--policy", &policy]);
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    for done in [rig.stoplog(&run), Live::start(refused(&rig, &run)).end()] {
        for result in done.exits(0).results() {
            assert!(!result.contains('/') && !result.contains("opened"), "{result}");
        }
    }
    let locks = format!(
        "for f in $(find {} -type f); do flock -n $f echo locked $f; done",
        state.display()
    );
    let plain = Live::start(rig.program("sh", &["-c", &locks])).end().stdout;
    assert!(plain.contains("locked"), "the control: {plain}");
}
