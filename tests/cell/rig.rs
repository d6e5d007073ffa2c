//! A workspace, cells in it, and what the same acts do without a cell.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use stoplog::sandbox::{
    Cancel, Finished, Grant, GrantAccess, Launcher, Mask, MaskKind, MaskPattern, Namespaces,
    Program, Running, SandboxSpec, SetupFailed, Stdin,
};

/// A workspace, and cells that run shell scripts in it.
pub(crate) struct Rig {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) spec: SandboxSpec,
}

pub(crate) fn script(text: &str) -> Program {
    let argv = ["sh", "-c", text].map(OsString::from).into();
    Program::Exec { argv, stdin: Stdin::Empty }
}

pub(crate) fn system_grants() -> Vec<Grant> {
    let execute = ["/usr", "/bin", "/lib", "/lib64", "/sbin"];
    let read = ["/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/alternatives"];
    execute
        .iter()
        .map(|path| Grant::optional(path, GrantAccess::ReadExecute))
        .chain(read.iter().map(|path| Grant::optional(path, GrantAccess::ReadOnly)))
        .collect()
}

impl Rig {
    pub(crate) fn new() -> Self {
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

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("w")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.directory.path().join("outside")
    }

    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn mask(&mut self, name: &str, kind: MaskKind) -> &mut Self {
        let pattern = MaskPattern::Exact(self.workspace().join(name));
        self.spec.masks.push(Mask { pattern, kind, reason_id: "test-rule".into() });
        self
    }

    pub(crate) fn launch(&self, text: &str) -> Result<Running, SetupFailed> {
        launcher().launch(&SandboxSpec { program: script(text), ..self.spec.clone() })
    }

    pub(crate) fn run(&self, text: &str) -> Finished {
        self.launch(text).unwrap().wait(&Cancel::new())
    }

    /// What the same script does without any wall.
    pub(crate) fn control(&self, text: &str) -> String {
        let output = std::process::Command::new("sh")
            .args(["-c", text])
            .current_dir(self.workspace())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

pub(crate) fn launcher() -> Launcher {
    Launcher::with_executable(env!("CARGO_BIN_EXE_stoplog"))
}

pub(crate) fn stdout(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.stdout.head).into_owned()
}

pub(crate) fn shown(finished: &Finished) -> String {
    const SHOWN_MAX: usize = 600;
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_MAX)]).into_owned();
    let (stdout, stderr) = (text(&finished.stdout.head), text(&finished.stderr.head));
    format!("{:?} out={stdout:?} err={stderr:?}", finished.exit)
}

pub(crate) fn without_namespaces(rig: &mut Rig) {
    rig.spec.namespaces = Namespaces::Never;
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes on this machine whose command line holds `mark`.
pub(crate) fn processes_with(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}
