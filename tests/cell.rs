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
    Launcher::with_executable(env!("CARGO_BIN_EXE_stoplog"))
}

fn stdout(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.stdout.head).into_owned()
}

fn shown(finished: &Finished) -> String {
    let stderr = String::from_utf8_lossy(&finished.stderr.head).into_owned();
    format!("{:?} out={:?} err={stderr:?}", finished.exit, stdout(finished))
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
