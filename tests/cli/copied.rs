//! The child of `exec` is a copy of the process, made before that did anything. What a copy would
//! bring along it must not have: arguments, environment, descriptors, signals.

use super::rig::{Live, PROGRAM, Rig};
use std::fs;
use std::os::unix::fs::FileExt as _;

/// In the environment, where a key would be.
const CANARY: &str = "canary-key-5512";
/// In the arguments, which everybody may read of the supervisor.
const ARGUMENT: &str = "canary-argument-8806";

/// The processes below one, by their ids, the nearest first.
fn descendants(of: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    let below: Vec<u32> = children.iter().copied().flat_map(descendants).collect();
    children.into_iter().chain(below).collect()
}

/// Whether any writable memory of a process holds the canary; `None` if it may not be read.
fn memory_holds_canary(process: u32) -> Option<bool> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let memory = fs::File::open(format!("/proc/{process}/mem")).ok()?;
    let ranges = maps.lines().filter(|line| line.split(' ').nth(1).unwrap().starts_with("rw"));
    Some(ranges.into_iter().any(|line| {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let from = u64::from_str_radix(from, 16).unwrap();
        let mut bytes =
            vec![0; usize::try_from(u64::from_str_radix(to, 16).unwrap() - from).unwrap()];
        let length = memory.read_at(&mut bytes, from).unwrap_or(0);
        let canary = CANARY.as_bytes();
        bytes[..length].windows(canary.len()).any(|window| window == canary)
    }))
}

#[test]
fn the_processes_around_a_command_know_nothing_of_the_supervisors_start() {
    let rig = Rig::new();
    let state = format!("{}/{ARGUMENT}", rig.root().display());
    let work = rig.work();
    let arguments =
        ["--state-dir", &state, "exec", "--workspace", work.to_str().unwrap(), "--", "sleep", "60"];
    let mut command = rig.program(PROGRAM, &arguments);
    command.env("OPENAI_API_KEY", CANARY).env(CANARY, "x");
    let mut live = Live::start(command);
    let supervisor = live.id();
    let program = |id: &u32| {
        fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name == "sleep\n")
    };
    assert!(live.until(|| descendants(supervisor).iter().any(program)));
    let around: Vec<u32> = descendants(supervisor).into_iter().filter(|id| !program(id)).collect();
    assert_eq!(around.len(), if namespaces() { 2 } else { 1 }, "the monitor and the init");
    let is_root = rustix::process::geteuid().is_root();
    for process in around {
        let arguments = fs::read(format!("/proc/{process}/cmdline")).unwrap();
        let shown = String::from_utf8_lossy(&arguments).into_owned();
        assert!(!shown.contains(ARGUMENT) && !shown.contains("exec"), "{process}: {shown}");
        let environment = fs::read(format!("/proc/{process}/environ"));
        if is_root {
            assert!(environment.unwrap().iter().all(|byte| *byte == 0), "{process}");
            assert_eq!(memory_holds_canary(process), Some(false), "{process}");
        } else {
            // Others of the same user may not even look.
            assert_eq!(environment.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
            assert_eq!(memory_holds_canary(process), None);
        }
    }
    // The same look finds it in a process that does not protect itself.
    let mut plain =
        std::process::Command::new("sleep").arg("60").env(CANARY, CANARY).spawn().unwrap();
    // The kernel lets a parent go on before it says where the environment of the new program lies.
    let environment = || fs::read(format!("/proc/{}/environ", plain.id())).unwrap();
    let shown = || String::from_utf8_lossy(&environment()).contains(CANARY);
    assert!(live.until(shown), "the control");
    assert_eq!(memory_holds_canary(plain.id()), Some(true), "the control");
    plain.kill().unwrap();
    plain.wait().unwrap();
    // And in the supervisor, where it may look there at all.
    let arguments = fs::read(format!("/proc/{supervisor}/cmdline")).unwrap();
    assert!(String::from_utf8_lossy(&arguments).contains(ARGUMENT));
    if is_root {
        assert_eq!(memory_holds_canary(supervisor), Some(true));
    }
    live.signal(rustix::process::Signal::TERM);
    assert_eq!(live.end().code(), Some(143));
}

/// Whether this user may have the namespaces of a cell.
fn namespaces() -> bool {
    let done = std::process::Command::new("unshare").args(["-Urm", "true"]).output().unwrap();
    done.status.success() || rustix::process::geteuid().is_root()
}

/// A set of signals that `/proc` shows, without the two that the C library keeps for itself (32 and 33)
/// and ignores in whatever it starts.
fn signals(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(":\t"));
    u64::from_str_radix(line.unwrap(), 16).unwrap() & !(0b11 << 31)
}

#[test]
fn a_command_has_the_signals_and_descriptors_of_a_fresh_start() {
    let rig = Rig::new();
    let work = rig.work();
    let look = "grep -E 'Sig(Ign|Blk|Cgt)' /proc/self/status; ls /proc/self/fd";
    let exec = format!(
        "{PROGRAM} --state-dir {} exec --workspace {} -- sh -c \"{look}\"",
        rig.state().display(),
        work.display()
    );
    // The caller ignores signals, and leaves descriptors open.
    let script = format!("trap '' HUP INT QUIT USR1; exec 5</etc/passwd 9</etc/group; {exec}");
    let done = Live::start(rig.program("bash", &["-c", &script])).end().exits(0);
    assert_eq!(signals(&done.stdout, "SigBlk"), 0, "{}", done.stdout);
    assert_eq!(signals(&done.stdout, "SigIgn"), 0, "{}", done.stdout);
    let open: Vec<&str> = done.stdout.lines().filter(|line| !line.contains(':')).collect();
    assert_eq!(open, ["0", "1", "2", "3"], "the last is the directory that `ls` reads");
    // Without stoplog the command inherits all of it.
    let script =
        format!("trap '' HUP INT QUIT USR1; exec 5</etc/passwd 9</etc/group; sh -c \"{look}\"");
    let control = Live::start(rig.program("bash", &["-c", &script])).end().exits(0);
    assert_ne!(signals(&control.stdout, "SigIgn"), 0, "{}", control.stdout);
    assert!(control.stdout.lines().any(|line| line == "9"), "{}", control.stdout);
}

#[test]
fn nothing_stays_behind_where_the_word_exec_meant_something_else() {
    let rig = Rig::new();
    for arguments in
        [&["exec"][..], &["exec", "--help"], &["policy", "list", "exec"], &["exec", "--", ""]]
    {
        let started = std::time::Instant::now();
        let done = rig.stoplog(arguments);
        assert!(done.code().is_some(), "{arguments:?}");
        assert!(started.elapsed() < std::time::Duration::from_secs(10));
    }
    let marked = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let directory = rig.root().as_os_str().as_encoded_bytes().to_vec();
        let read = |name: &str| fs::read(path.join(name)).unwrap_or_default();
        [read("cmdline"), read("environ")]
            .iter()
            .any(|text| text.windows(directory.len()).any(|window| window == directory))
    };
    let mut left = true;
    for _ in 0..200 {
        left = fs::read_dir("/proc").unwrap().any(marked);
        if !left {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(!left, "a process of this place still lives");
}

#[test]
fn a_command_whose_decision_cannot_be_recorded_does_not_run() {
    let rig = Rig::new();
    let work = rig.work();
    let touch = ["exec", "--workspace", work.to_str().unwrap(), "--", "touch", "ran"];
    // The cell is begun before the log is.
    rig.stoplog(&["exec", "--workspace", work.to_str().unwrap(), "--", "true"]).exits(0);
    let ledger = rig.state().join("audit/ledger.jsonl");
    let kept = fs::read(&ledger).unwrap();
    fs::remove_file(&ledger).unwrap();
    fs::create_dir(&ledger).unwrap();
    let done = rig.stoplog(&touch);
    assert_ne!(done.code(), Some(0), "{}", done.stderr);
    assert!(!rig.has("ran"), "{}", done.stderr);
    fs::remove_dir(&ledger).unwrap();
    fs::write(&ledger, kept).unwrap();
    rig.stoplog(&touch).exits(0);
    assert!(rig.has("ran"), "the control");
}
