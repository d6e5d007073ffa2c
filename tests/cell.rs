//! The cell, driven through the library with the real binary as the child.
//!
//! Every act that must fail inside is first shown to succeed outside, on the same files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use stoplog::sandbox::{
    Cancel, Degraded, Exit, Finished, Grant, GrantAccess, Launcher, Mask, MaskKind, MaskPattern,
    Namespaces, Program, Running, SandboxSpec, SetupFailed, Stdin, Step,
};

/// Names a copy of the program that an ordinary user can execute.
const COPIED_BINARY: &str = "STOPLOG_TEST_CELL_BINARY";

/// A workspace, and cells that run shell scripts in it.
struct Rig {
    directory: tempfile::TempDir,
    spec: SandboxSpec,
}

fn script(text: &str) -> Program {
    let argv = ["sh", "-c", text].map(OsString::from).into();
    Program::Exec { argv, stdin: Stdin::Empty }
}

fn system_grants() -> Vec<Grant> {
    let execute = ["/usr", "/bin", "/lib", "/lib64", "/sbin"];
    let read = ["/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/alternatives"];
    execute
        .iter()
        .map(|path| Grant::optional(path, GrantAccess::ReadExecute))
        .chain(read.iter().map(|path| Grant::optional(path, GrantAccess::ReadOnly)))
        .collect()
}

impl Rig {
    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("cell").tempdir().unwrap();
        std::fs::create_dir(directory.path().join("w")).unwrap();
        std::fs::create_dir(directory.path().join("outside")).unwrap();
        std::fs::write(directory.path().join("outside/secret"), "secret\n").unwrap();
        let workspace = directory.path().join("w");
        let mut grants = system_grants();
        grants.push(Grant::new(&workspace, GrantAccess::ReadWriteExecute));
        let spec = SandboxSpec {
            cwd: workspace,
            environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
            grants,
            ..SandboxSpec::default()
        };
        Self { directory, spec }
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("w")
    }

    fn outside(&self) -> PathBuf {
        self.directory.path().join("outside")
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn mask(&mut self, name: &str, kind: MaskKind) -> &mut Self {
        let pattern = MaskPattern::Exact(self.workspace().join(name));
        self.spec.masks.push(Mask { pattern, kind, reason_id: "test-rule".into() });
        self
    }

    fn launch(&self, text: &str) -> Result<Running, SetupFailed> {
        launcher().launch(&SandboxSpec { program: script(text), ..self.spec.clone() })
    }

    fn run(&self, text: &str) -> Finished {
        self.launch(text).unwrap().wait(&Cancel::new())
    }

    /// What the same script does without any wall.
    fn control(&self, text: &str) -> String {
        let output = std::process::Command::new("sh")
            .args(["-c", text])
            .current_dir(self.workspace())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn launcher() -> Launcher {
    let copied = std::env::var_os(COPIED_BINARY).map(PathBuf::from);
    Launcher::with_executable(copied.unwrap_or_else(|| env!("CARGO_BIN_EXE_stoplog").into()))
}

fn stdout(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.stdout.head).into_owned()
}

fn shown(finished: &Finished) -> String {
    const SHOWN_MAX: usize = 600;
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_MAX)]).into_owned();
    let (stdout, stderr) = (text(&finished.stdout.head), text(&finished.stderr.head));
    format!("{:?} out={stdout:?} err={stderr:?}", finished.exit)
}

fn without_namespaces(rig: &mut Rig) {
    rig.spec.namespaces = Namespaces::Never;
}

#[test]
fn a_program_runs_and_its_output_and_code_come_back() {
    let finished = Rig::new().run("echo out; echo err >&2; exit 7");
    assert_eq!(finished.exit, Exit::Code(7), "{}", shown(&finished));
    assert_eq!(finished.stdout.head, b"out\n");
    assert_eq!(finished.stderr.head, b"err\n");
    assert!(finished.enforced.mount_view && finished.enforced.landlock_abi > 0);
}

#[test]
fn what_is_not_granted_is_absent() {
    let rig = Rig::new();
    let secret = rig.outside().join("secret");
    let text = format!("cat {}", secret.display());
    assert_eq!(rig.control(&text), "secret\n");
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "");
    assert!(shown(&finished).contains("No such file"), "{}", shown(&finished));
}

#[test]
fn the_workspace_is_written_and_a_read_only_grant_is_not() {
    let mut rig = Rig::new();
    let read_only = rig.outside();
    rig.spec.grants.push(Grant::new(&read_only, GrantAccess::ReadOnly));
    let text = format!("echo x > made; echo y > {0}/made; cat {0}/secret", read_only.display());
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "secret\n", "{}", shown(&finished));
    assert!(rig.workspace().join("made").exists());
    assert!(!read_only.join("made").exists());
    rig.control(&text);
    assert!(read_only.join("made").exists(), "the control writes");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes on this machine whose command line holds `mark`.
fn processes_with(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}

// Masks ------------------------------------------------------------------------------------------

#[test]
fn a_hidden_file_looks_absent_and_keeps_its_content() {
    let mut rig = Rig::new();
    let path = rig.file(".env", "KEY=1\n");
    let text = "cat .env; test -e .env && echo there; echo x > .env; rm -f .env; mv .env a; echo";
    rig.mask(".env", MaskKind::Hide);
    let finished = rig.run(text);
    assert_eq!(stdout(&finished), "\n", "{}", shown(&finished));
    assert!(shown(&finished).contains("No such file"), "{}", shown(&finished));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "KEY=1\n");
    assert_eq!(rig.control("cat .env; test -e .env && echo there"), "KEY=1\nthere\n");
}

#[test]
fn a_hidden_directory_is_empty_and_cannot_be_filled() {
    let mut rig = Rig::new();
    rig.file("private/key", "secret");
    rig.mask("private", MaskKind::Hide);
    let finished = rig.run("ls -A private; cat private/key; echo x > private/new; rmdir private");
    assert_eq!(stdout(&finished), "", "{}", shown(&finished));
    assert!(!rig.workspace().join("private/new").exists());
    assert_eq!(rig.control("cat private/key"), "secret");
}

#[test]
fn a_read_only_name_is_read_and_cannot_be_changed_in_any_way() {
    let mut rig = Rig::new();
    rig.file(".git/config", "old\n");
    rig.file(".git/hooks/sample", "sample\n");
    rig.mask(".git/config", MaskKind::ReadOnly).mask(".git/hooks", MaskKind::ReadOnly);
    let text = "cat .git/config; echo new > .git/config; rm -rf .git/hooks; mv .git/config .git/c; \
        echo evil > .git/hooks/pre-commit; echo n > .git/n; mv -f .git/n .git/config; \
        chmod 0777 .git/config; ln .git/config linked && echo bad > linked";
    let finished = rig.run(text);
    assert_eq!(stdout(&finished), "old\n", "{}", shown(&finished));
    let hooks: Vec<_> = std::fs::read_dir(rig.workspace().join(".git/hooks")).unwrap().collect();
    assert_eq!(hooks.len(), 1);
    assert_eq!(std::fs::read_to_string(rig.workspace().join(".git/config")).unwrap(), "old\n");
    rig.control(text);
    assert!(
        rig.workspace().join(".git/hooks/pre-commit").exists()
            || !rig.workspace().join(".git/hooks").exists()
    );
}

#[test]
fn a_directory_above_a_masked_name_cannot_be_renamed_away() {
    let mut rig = Rig::new();
    rig.file("a/b/key", "secret");
    let text = "mv a/b a/c || mv a d || echo held";
    rig.mask("a/b/key", MaskKind::Hide);
    assert_eq!(stdout(&rig.run(text)), "held\n");
    assert!(rig.workspace().join("a/b/key").exists());
    rig.control(text);
    assert!(!rig.workspace().join("a/b/key").exists(), "the control renames");
}

#[test]
fn work_beside_a_masked_name_goes_on() {
    let mut rig = Rig::new();
    rig.file("a/b/key", "secret");
    rig.mask("a/b/key", MaskKind::Hide);
    let finished =
        rig.run("echo 1 > a/b/x; mv a/b/x a/b/y; mkdir a/b/d; mv a/b/y a/b/d/; cat a/b/d/y");
    assert_eq!(stdout(&finished), "1\n", "{}", shown(&finished));
}

#[test]
fn a_masked_link_hides_what_it_means_and_stays_in_place() {
    let mut rig = Rig::new();
    rig.file("real/key", "secret");
    std::os::unix::fs::symlink("real/key", rig.workspace().join("key")).unwrap();
    rig.mask("key", MaskKind::Hide);
    assert_eq!(
        stdout(&rig.run("cat key real/key; mv real r2; cat r2/key; rm -f key; ls")),
        "key\nreal\n"
    );
    assert_eq!(rig.control("cat key real/key"), "secretsecret");
}

#[test]
fn a_masked_name_behind_a_link_is_covered_where_it_really_is() {
    let mut rig = Rig::new();
    rig.file("real/hooks/old", "x");
    std::os::unix::fs::symlink("real", rig.workspace().join("link")).unwrap();
    rig.mask("link/hooks", MaskKind::ReadOnly);
    let text = "echo x > real/hooks/new; echo x > link/hooks/new; rm link; mkdir -p link/hooks";
    let finished = rig.run(text);
    assert!(!rig.workspace().join("real/hooks/new").exists(), "{}", shown(&finished));
    assert!(std::fs::symlink_metadata(rig.workspace().join("link")).unwrap().is_symlink());
    rig.control(text);
    assert!(rig.workspace().join("real/hooks/new").exists(), "the control writes");
}

#[test]
fn odd_masked_names_do_not_stop_a_launch() {
    use std::os::unix::ffi::OsStringExt;
    let mut rig = Rig::new();
    let workspace = rig.workspace();
    let odd = OsString::from_vec(b"not-\xff-text".to_vec());
    std::fs::write(workspace.join(&odd), "secret").unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.join("dangling")).unwrap();
    std::os::unix::fs::symlink("loop", workspace.join("loop")).unwrap();
    std::os::unix::fs::symlink("/etc/shadow", workspace.join("out")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        workspace.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(workspace.join("socket")).unwrap();
    rig.file("plain", "x");
    for name in ["dangling", "loop", "out", "fifo", "socket", "plain/below", "missing/below"] {
        rig.mask(name, MaskKind::Hide).mask(name, MaskKind::ReadOnly);
    }
    let pattern = MaskPattern::Exact(workspace.join(&odd));
    rig.spec.masks.push(Mask { pattern, kind: MaskKind::Hide, reason_id: "odd".into() });
    let finished =
        rig.run("cat not-*; echo on; rm -f dangling loop out; ls -l dangling loop out | wc -l");
    assert_eq!(stdout(&finished), "on\n3\n", "{}", shown(&finished));
}

#[test]
fn ten_thousand_matches_of_one_pattern_are_all_hidden() {
    let mut rig = Rig::new();
    for number in 0..10_000 {
        rig.file(&format!("d{}/s{number}/.env", number % 10), "secret");
    }
    let pattern =
        MaskPattern::Glob { root: rig.workspace(), pattern: "**/.env".into(), except: Vec::new() };
    rig.spec.masks.push(Mask { pattern, kind: MaskKind::Hide, reason_id: "glob".into() });
    let start = Instant::now();
    let finished = rig.run("cat d*/s*/.env 2>/dev/null | wc -c; mv d1 e1; cat e1/*/.env | wc -c");
    assert_eq!(stdout(&finished), "0\n0\n", "{}", shown(&finished));
    assert_eq!(finished.enforced.masked, 10_000);
    println!("10,000 masks: {:?}", start.elapsed());
    assert_eq!(rig.control("cat d*/*/.env e1/*/.env | wc -c"), "60000\n");
}

#[test]
fn a_protected_name_that_the_call_creates_is_moved_aside_and_reported() {
    let mut rig = Rig::new();
    rig.file(".git/HEAD", "x");
    rig.mask(".git/hooks/pre-commit", MaskKind::ReadOnly).mask("policy.toml", MaskKind::ReadOnly);
    let finished =
        rig.run("mkdir .git/hooks; echo evil > .git/hooks/pre-commit; mv .git g2; echo ok");
    assert_eq!(stdout(&finished), "ok\n", "{}", shown(&finished));
    assert!(!rig.workspace().join(".git/hooks/pre-commit").exists());
    assert!(rig.workspace().join(".git/HEAD").exists(), "the directory above stays where it is");
    let [created] = finished.protected_created.as_slice() else {
        panic!("{:?}", finished.protected_created)
    };
    assert_eq!(created.path, rig.workspace().join(".git/hooks/pre-commit"));
    assert_eq!(created.reason_id, "test-rule");
    assert_eq!(std::fs::read_to_string(created.moved_to.as_ref().unwrap()).unwrap(), "evil\n");
    assert_eq!(finished.enforced.watched, 2);
}

#[test]
fn a_link_in_place_of_a_protected_directory_is_moved_and_its_target_is_not_touched() {
    let mut rig = Rig::new();
    rig.file("decoy/policy.toml", "decoy");
    rig.mask("conf/policy.toml", MaskKind::ReadOnly);
    let finished = rig.run("ln -s decoy conf");
    assert!(!rig.workspace().join("conf").exists(), "{}", shown(&finished));
    assert!(rig.workspace().join("decoy/policy.toml").exists());
    assert_eq!(finished.protected_created.len(), 1);
}

#[test]
fn a_linked_worktree_keeps_its_git_file() {
    let mut rig = Rig::new();
    rig.file(".git", "gitdir: /somewhere/else\n");
    rig.mask(".git/hooks", MaskKind::ReadOnly).mask(".git/config", MaskKind::ReadOnly);
    let finished = rig.run("rm -f .git; echo gitdir: evil > .git; mkdir -p .git/hooks; cat .git");
    assert_eq!(stdout(&finished), "gitdir: /somewhere/else\n", "{}", shown(&finished));
}

#[test]
fn nothing_is_left_on_the_host_by_masks() {
    let mut rig = Rig::new();
    rig.file("a/.env", "x");
    rig.mask("a/.env", MaskKind::Hide).mask(".env", MaskKind::Hide).mask("b/c", MaskKind::ReadOnly);
    let before = rig.control("find . | sort");
    rig.run("true");
    assert_eq!(rig.control("find . | sort"), before);
}

#[test]
fn a_grant_that_a_call_turned_into_a_link_is_refused() {
    let mut rig = Rig::new();
    let outside = rig.outside();
    std::os::unix::fs::symlink(&outside, rig.workspace().join("vendor")).unwrap();
    rig.spec.grants.push(Grant::new(rig.workspace().join("vendor"), GrantAccess::ReadOnly));
    let failed = rig.launch("cat vendor/secret").unwrap_err();
    assert_eq!((failed.step, failed.errno), (Step::Grant, libc::EXDEV), "{failed}");
}

// Without namespaces -----------------------------------------------------------------------------

#[test]
fn without_namespaces_masks_are_refused_unless_the_loss_is_accepted() {
    let mut rig = Rig::new();
    rig.file(".env", "KEY\n");
    rig.mask(".env", MaskKind::Hide);
    without_namespaces(&mut rig);
    let failed = rig.launch("true").unwrap_err();
    assert_eq!(failed.step, Step::Namespaces, "{failed}");
    rig.spec.degraded = Degraded::Allow;
    let finished = rig.run("cat .env");
    assert_eq!(stdout(&finished), "KEY\n", "{}", shown(&finished));
    assert!(finished.enforced.lost.iter().any(|lost| lost == "G4-deny-inside-allow"));
}

#[test]
fn without_namespaces_landlock_alone_holds_content() {
    let mut rig = Rig::new();
    without_namespaces(&mut rig);
    let secret = rig.outside().join("secret");
    let text = format!("cat {0}; echo x > {0}; echo in > made; cat made", secret.display());
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "in\n", "{}", shown(&finished));
    assert!(!finished.enforced.mount_view && finished.enforced.landlock_abi > 0);
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret\n");
    assert_eq!(rig.control(&text), "secret\nin\n");
}

#[test]
fn without_namespaces_no_descendant_survives() {
    let mut rig = Rig::new();
    without_namespaces(&mut rig);
    daemons_die(&rig, "61.0317");
}

#[test]
fn no_descendant_survives() {
    daemons_die(&Rig::new(), "61.0318");
}

fn daemons_die(rig: &Rig, mark: &str) {
    let text = format!(
        "(setsid sleep {mark} &) ; setsid sh -c 'trap \"\" TERM HUP; sleep {mark}' & sleep 0.2; echo done"
    );
    let start = Instant::now();
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "done\n", "{}", shown(&finished));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert!(finished.survivors_killed >= 2, "{}", finished.survivors_killed);
    assert_eq!(processes_with(mark), 0);
}

// Running and ending -----------------------------------------------------------------------------

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

#[test]
fn a_killed_supervisor_leaves_no_process_and_no_file() {
    const MARK: &str = "61.0323";
    if let Some(directory) = std::env::var_os("STOPLOG_TEST_SUPERVISOR") {
        let mut rig = Rig::new();
        rig.spec.cwd = directory.clone().into();
        rig.spec.grants.push(Grant::new(PathBuf::from(&directory), GrantAccess::ReadWrite));
        let pattern = MaskPattern::Exact(Path::new(&directory).join("policy.toml"));
        rig.spec.masks.push(Mask { pattern, kind: MaskKind::ReadOnly, reason_id: "r".into() });
        rig.spec.limits.memory_bytes = Some(1 << 30);
        if std::env::var_os("STOPLOG_TEST_NEVER").is_some() {
            without_namespaces(&mut rig);
            rig.spec.masks.clear();
        }
        let text = format!("echo evil > policy.toml; setsid sleep {MARK} & sleep {MARK}");
        let finished = rig.run(&text);
        panic!("not killed: {}", shown(&finished));
    }
    for never in [false, true] {
        let rig = Rig::new();
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_killed_supervisor_leaves_no_process_and_no_file"]);
        command.env("STOPLOG_TEST_SUPERVISOR", rig.workspace());
        if never {
            command.env("STOPLOG_TEST_NEVER", "1");
        }
        let mut supervisor = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        wait_until("the start", || processes_with(MARK) >= 3);
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        wait_until("the end of all processes", || processes_with(MARK) == 0);
        let policy = rig.workspace().join("policy.toml");
        if !never {
            wait_until("the end of the protected name", || !policy.exists());
        }
    }
}

// Privileges, environment, limits ------------------------------------------------------------------

#[test]
fn no_process_of_a_cell_shows_the_callers_environment() {
    let rig = Rig::new();
    assert!(std::env::var_os("PATH").is_some(), "the control: the caller has an environment");
    let finished = rig.run("cat /proc/1/environ | wc -c; tr '\\0' '\\n' < /proc/self/environ");
    let text = stdout(&finished);
    assert!(text.starts_with("0\nPATH=/usr/local/bin:/usr/bin:/bin\n"), "{}", shown(&finished));
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn no_capability_and_no_new_privileges_reach_a_program() {
    for never in [false, true] {
        let mut rig = Rig::new();
        if never {
            without_namespaces(&mut rig);
        }
        let finished = rig.run("grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status");
        let text = stdout(&finished);
        let zero = text.lines().filter(|line| line.ends_with("\t0000000000000000")).count();
        let sets = if is_root() || !never { 5 } else { 4 };
        assert!(zero >= sets, "{}", shown(&finished));
        assert!(text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"), "{text}");
    }
}

#[test]
fn only_three_descriptors_are_inherited() {
    let file = std::fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    for never in [false, true] {
        let mut rig = Rig::new();
        if never {
            without_namespaces(&mut rig);
        }
        let finished = rig.run("ls -l /proc/self/fd | grep -c -- '->'");
        // 0, 1, 2 and the one that `ls` itself has open.
        assert_eq!(stdout(&finished), "4\n", "{}", shown(&finished));
    }
}

#[test]
fn an_ordinary_user_stays_who_he_is_and_root_can_become_another() {
    let mut rig = Rig::new();
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(stdout(&rig.run("id -u")), format!("{own}\n"));
    rig.spec.identity = stoplog::sandbox::Identity::User { uid: 20_001, gid: 20_002 };
    if is_root() {
        rig.spec.cwd = "/tmp".into();
        let finished = rig.run("id -u; id -g; id -G; touch /tmp/x && echo wrote; cat /etc/shadow");
        assert_eq!(stdout(&finished), "20001\n20002\n20002\nwrote\n", "{}", shown(&finished));
    } else {
        assert_eq!(rig.launch("id -u").unwrap_err().step, Step::Identity);
    }
}

#[test]
fn limits_hold() {
    let mut rig = Rig::new();
    rig.spec.limits.file_size_bytes = Some(1_000);
    rig.spec.limits.open_files = Some(20);
    let finished =
        rig.run("head -c 2000 /dev/zero > big; stat -c %s big; ulimit -n; ulimit -Hn; ulimit -c");
    assert_eq!(stdout(&finished), "1000\n20\n20\n0\n", "{}", shown(&finished));
    rig.control("head -c 2000 /dev/zero > big");
    assert_eq!(std::fs::metadata(rig.workspace().join("big")).unwrap().len(), 2_000);
}

#[test]
fn processor_time_is_limited() {
    let mut rig = Rig::new();
    rig.spec.limits.cpu_seconds = Some(1);
    let finished = rig.run("exec sh -c 'while :; do :; done'");
    assert_eq!(finished.exit, Exit::Signal(libc::SIGXCPU), "{}", shown(&finished));
}

#[test]
fn processes_of_the_tree_are_limited() {
    let mut rig = Rig::new();
    rig.spec.limits.processes = Some(20);
    let finished = rig.run("i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; echo all");
    assert!(!stdout(&finished).contains("all"), "{} {}", finished.enforced, shown(&finished));
    rig.spec.limits.processes = None;
    let finished = rig.run("i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; echo all");
    assert_eq!(stdout(&finished), "all\n");
}

#[test]
fn memory_is_limited() {
    let mut rig = Rig::new();
    rig.spec.limits.memory_bytes = Some(64 << 20);
    let text = "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c";
    let finished = rig.run(text);
    assert!(
        !stdout(&finished).starts_with("200000000"),
        "{} {}",
        finished.enforced,
        shown(&finished)
    );
    rig.spec.limits.memory_bytes = None;
    assert_eq!(stdout(&rig.run(text)), "200000000\n");
}

#[test]
fn a_control_group_tells_when_memory_ran_out_and_is_removed() {
    let mut rig = Rig::new();
    rig.spec.limits.memory_bytes = Some(64 << 20);
    let finished = rig.run("head -c 200000000 /dev/zero | tail -c 200000000 > /dev/null");
    if finished.enforced.limits == stoplog::sandbox::LimitsHeld::Rlimit {
        println!("no control group can be made here; the rest of this test did not run");
        return;
    }
    assert_eq!(finished.exit, Exit::OutOfMemory, "{}", shown(&finished));
    assert!(finished.resources.tree_memory_bytes.is_some());
}

#[test]
fn the_whole_suite_holds_for_an_ordinary_user() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let suite = directory.path().join("suite");
    let program = directory.path().join("stoplog");
    std::fs::copy(std::env::current_exe().unwrap(), &suite).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_stoplog"), &program).unwrap();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid=20000", "--regid=20000", "--clear-groups"])
        .arg(&suite)
        .env(COPIED_BINARY, &program)
        .current_dir("/")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}
