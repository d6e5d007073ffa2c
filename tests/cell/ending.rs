//! Output, time and the end of a call.

use crate::rig::{
    Rig, launcher, processes_with, script, shown, stdout, wait_until, without_namespaces,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stoplog::sandbox::{
    Cancel, Exit, Grant, GrantAccess, Mask, MaskKind, MaskPattern, Program, SandboxSpec, Stdin,
    Step,
};

#[test]
fn time_is_up_for_the_whole_tree() {
    const LATER: Duration = Duration::from_secs(4);
    let start = Instant::now();
    let mut rigs = Vec::new();
    for (never, mark) in [(false, "61.0319"), (true, "61.0320")] {
        let mut rig = Rig::new();
        rig.spec.limits.wall = Duration::from_millis(300);
        rig.spec.limits.kill_grace = Duration::from_millis(200);
        if never {
            without_namespaces(&mut rig);
        }
        let text = format!("echo part; trap '' TERM; (sleep 3; touch canary) & sleep {mark}");
        let finished = rig.run(&text);
        assert_eq!(finished.exit, Exit::TimedOut, "{}", shown(&finished));
        assert_eq!(stdout(&finished), "part\n");
        assert_eq!(processes_with(mark), 0);
        rigs.push(rig);
    }
    std::thread::sleep((LATER + LATER).saturating_sub(start.elapsed()));
    assert!(rigs.iter().all(|rig| !rig.workspace().join("canary").exists()));
}

#[test]
fn a_program_that_heeds_the_signal_ends_within_the_grace() {
    let mut rig = Rig::new();
    rig.spec.limits.wall = Duration::from_millis(200);
    rig.spec.limits.kill_grace = Duration::from_secs(20);
    let start = Instant::now();
    let finished = rig.run("trap 'echo bye; exit 3' TERM; sleep 30 & wait");
    assert_eq!((finished.exit, stdout(&finished).as_str()), (Exit::TimedOut, "bye\n"));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn cancelling_wakes_a_wait_at_once() {
    let rig = Rig::new();
    let running = rig.launch("exec sleep 61.0321").unwrap();
    let cancel = Cancel::new();
    let other = cancel.clone();
    let start = Instant::now();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        other.cancel();
    });
    let finished = running.wait(&cancel);
    thread.join().unwrap();
    assert_eq!(finished.exit, Exit::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(processes_with("61.0321"), 0);
}

#[test]
fn dropping_a_running_cell_kills_it() {
    let rig = Rig::new();
    let running = rig.launch("sleep 61.0322 & exec sleep 61.0322").unwrap();
    wait_until("the start", || processes_with("61.0322") >= 2);
    drop(running);
    assert_eq!(processes_with("61.0322"), 0);
}

#[test]
fn output_is_bounded_and_counted() {
    let mut rig = Rig::new();
    rig.spec.limits.output_head_bytes = 10;
    rig.spec.limits.output_tail_bytes = 10;
    rig.spec.limits.spill = Some(rig.directory.path().join("spill"));
    rig.spec.limits.spill_bytes = 1_000;
    let finished = rig.run("yes 0123456789 | head -c 30000000; printf end");
    assert_eq!(finished.stdout.total_bytes, 30_000_003, "{}", shown(&finished));
    assert_eq!(finished.stdout.head, b"0123456789");
    assert_eq!(&finished.stdout.tail[7..], b"end");
    assert!(finished.stdout.spill_cut);
    assert_eq!(std::fs::metadata(rig.directory.path().join("spill")).unwrap().len(), 1_000);
}

#[test]
fn endless_output_ends_the_call() {
    let mut rig = Rig::new();
    rig.spec.limits.output_total_bytes = Some(1_000_000);
    rig.spec.limits.kill_grace = Duration::from_millis(100);
    assert_eq!(rig.run("trap '' TERM PIPE; yes").exit, Exit::OutputCapped);
}

#[test]
fn merged_output_keeps_its_order() {
    let mut rig = Rig::new();
    rig.spec.limits.merge_output = true;
    assert_eq!(stdout(&rig.run("echo 1; echo 2 >&2; echo 3")), "1\n2\n3\n");
}

#[test]
fn standard_input_is_fed_or_empty_and_there_is_no_terminal() {
    let rig = Rig::new();
    let finished = rig.run("cat; cat /dev/tty; tty");
    assert_eq!(stdout(&finished), "not a tty\n", "{}", shown(&finished));
    let argv = ["cat"].map(OsString::from).to_vec();
    let stdin = Stdin::Bytes(vec![b'x'; 300_000]);
    let spec = SandboxSpec { program: Program::Exec { argv, stdin }, ..rig.spec.clone() };
    let finished = launcher().launch(&spec).unwrap().wait(&Cancel::new());
    assert_eq!(finished.stdout.total_bytes, 300_000, "{}", shown(&finished));
}

#[test]
fn a_caller_can_talk_with_a_program() {
    use std::io::{BufRead, Write};
    let rig = Rig::new();
    let argv = ["cat"].map(OsString::from).to_vec();
    let program = Program::Exec { argv, stdin: Stdin::Pipe };
    let mut running = launcher().launch(&SandboxSpec { program, ..rig.spec.clone() }).unwrap();
    let (stdin, stdout) = running.take_pipes();
    let mut stdin = std::fs::File::from(stdin.unwrap());
    let stdout = stdout.unwrap();
    rustix::fs::fcntl_setfl(&stdout, rustix::fs::OFlags::empty()).unwrap();
    let mut lines = std::io::BufReader::new(std::fs::File::from(stdout)).lines();
    for word in ["one", "two"] {
        writeln!(stdin, "{word}").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), word);
    }
    drop(stdin);
    assert_eq!(running.wait(&Cancel::new()).exit, Exit::Code(0));
}

#[test]
fn signals_and_missing_programs_are_told_apart() {
    let rig = Rig::new();
    assert_eq!(rig.run("kill -9 $$").exit, Exit::Signal(9));
    let argv = ["no-such-program"].map(OsString::from).to_vec();
    let program = Program::Exec { argv, stdin: Stdin::Empty };
    let failed = launcher().launch(&SandboxSpec { program, ..rig.spec.clone() }).unwrap_err();
    assert_eq!((failed.step, failed.errno), (Step::Exec, libc::ENOENT), "{failed}");
    let gone = SandboxSpec { cwd: "/gone".into(), program: script("true"), ..rig.spec.clone() };
    assert_eq!(launcher().launch(&gone).unwrap_err().step, Step::WorkingDirectory);
}

/// What a supervisor that is about to be killed runs, in the directory that it is told.
const DOOMED: &str = "STOPLOG_TEST_SUPERVISOR";
/// The mark of its processes.
const DOOMED_MARK: &str = "STOPLOG_TEST_MARK";

/// Starts this test again as a supervisor for `workspace`, without namespaces if `never`.
fn doomed_supervisor(rig: &Rig, test: &str, mark: &str, never: bool) -> std::process::Child {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(DOOMED, rig.workspace()).env(DOOMED_MARK, mark);
    // It cannot clean up after itself.
    command.env("TMPDIR", rig.directory.path());
    if never {
        command.env("STOPLOG_TEST_NEVER", "1");
    }
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command.spawn().unwrap()
}

/// Becomes that supervisor, if this process was started as one: one cell after the other, each of
/// which makes a protected name and leaves processes with the mark that it is told.
fn be_doomed() {
    let Some(directory) = std::env::var_os(DOOMED) else { return };
    let mark = std::env::var(DOOMED_MARK).unwrap();
    let mut rig = Rig::new();
    rig.spec.cwd = directory.clone().into();
    rig.spec.grants.push(Grant::new(PathBuf::from(&directory), GrantAccess::ReadWrite));
    let pattern = MaskPattern::Exact(Path::new(&directory).join("policy.toml"));
    rig.spec.masks.push(Mask { pattern, kind: MaskKind::ReadOnly, reason_id: "r".into() });
    rig.spec.quarantine = Some(rig.outside());
    rig.spec.limits.memory_bytes = Some(1 << 30);
    if std::env::var_os("STOPLOG_TEST_NEVER").is_some() {
        without_namespaces(&mut rig);
        rig.spec.masks.clear();
    }
    let text = format!("echo evil > policy.toml; setsid sleep {mark} & sleep {mark}");
    let finished = rig.run(&text);
    panic!("not killed: {}", shown(&finished));
}

#[test]
fn a_killed_supervisor_leaves_no_process_and_no_file() {
    be_doomed();
    let mark = format!("62.{:07}", std::process::id());
    for never in [false, true] {
        let rig = Rig::new();
        let test = "ending::a_killed_supervisor_leaves_no_process_and_no_file";
        let mut supervisor = doomed_supervisor(&rig, test, &mark, never);
        wait_until("the start", || processes_with(&mark) >= 3);
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        wait_until("the end of all processes", || processes_with(&mark) == 0);
        let policy = rig.workspace().join("policy.toml");
        if !never {
            wait_until("the end of the protected name", || !policy.exists());
        }
    }
}

#[test]
fn a_supervisor_killed_at_any_moment_leaves_nothing() {
    const MOMENTS: u64 = 30;
    be_doomed();
    // The whole suite may run again at the same time, as another user.
    let mark = format!("63.{:07}", std::process::id());
    let mut caught_running = 0;
    for moment in 0..MOMENTS {
        let rig = Rig::new();
        rig.file("kept", "kept\n");
        let test = "ending::a_supervisor_killed_at_any_moment_leaves_nothing";
        let mut supervisor = doomed_supervisor(&rig, test, &mark, false);
        // From before the first launch to well after the program's start.
        std::thread::sleep(Duration::from_millis(moment * 5));
        caught_running += usize::from(processes_with(&mark) > 0);
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        let names = || rig.control("ls -A");
        wait_until("the end of all processes", || processes_with(&mark) == 0);
        wait_until("the end of the protected name", || names() == "kept\n");
        // What was about to start does not start later.
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!((processes_with(&mark), names().as_str()), (0, "kept\n"), "moment {moment}");
    }
    assert!(caught_running > 0, "some moments met the running program");
}
