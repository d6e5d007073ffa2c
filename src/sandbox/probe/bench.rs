//! Throw-away places and processes for probes: a granted directory, one outside, the probe program
//! inside a cell and outside of it.

use super::acts::{Act, Answer, PROBE_ARGUMENT};
use crate::sandbox::{
    Cancel, Enforced, Finished, Grant, GrantAccess, LandlockVersions, Launcher, Limits, Namespaces,
    Program, SandboxSpec, SetupFailed, Stdin,
};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Wall time of one probe: each takes milliseconds, and a loaded machine ten times that.
const PROBE_TIME_MAX: Duration = Duration::from_secs(20);
/// The content outside that must not be read or changed.
pub const CANARY: &str = "canary: not for the cell\n";
/// Directories of the system that programs need; those that a machine lacks are left out.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache"];

/// A probe could not be carried out; its guarantee counts as not held.
#[derive(Debug, thiserror::Error)]
pub enum ProbeFault {
    /// The cell did not start.
    #[error(transparent)]
    Setup(#[from] SetupFailed),
    /// Something of the bench itself failed.
    #[error("the bench failed: {0}")]
    Bench(#[from] io::Error),
    /// The probe program ended before it answered everything.
    #[error("the probe program answered {got} of {asked} acts and ended with {end}")]
    Silent {
        /// Acts asked for.
        asked: usize,
        /// Answers that came.
        got: usize,
        /// How it ended.
        end: String,
    },
}

/// Where probes work. Dropping it removes the places.
#[derive(Debug)]
pub struct Bench {
    executable: PathBuf,
    launcher: Launcher,
    namespaces: Namespaces,
    landlock: LandlockVersions,
    place: tempfile::TempDir,
}

impl Bench {
    /// A bench whose places lie in `base` and whose probe program is `executable`, this program.
    ///
    /// # Errors
    /// When the places cannot be made.
    pub fn new(base: &Path, executable: &Path) -> io::Result<Self> {
        let place = tempfile::Builder::new().prefix("stoplog-probe-").tempdir_in(base)?;
        let bench = Self {
            executable: executable.to_path_buf(),
            launcher: Launcher::with_executable(executable),
            namespaces: Namespaces::Auto,
            landlock: LandlockVersions::default(),
            place,
        };
        fs::create_dir(bench.workspace())?;
        fs::create_dir(bench.outside())?;
        put(&bench.canary(), CANARY)?;
        Ok(bench)
    }

    /// A bench for this program, in a directory for temporary files.
    ///
    /// # Errors
    /// When no such directory takes the places.
    pub fn of_this_program() -> io::Result<Self> {
        let executable = fs::read_link("/proc/self/exe")?;
        let first = Self::new(Path::new("/var/tmp"), &executable);
        first.or_else(|_missing| Self::new(Path::new("/tmp"), &executable))
    }

    /// The bench of a machine that refuses namespaces.
    #[must_use]
    pub fn without_namespaces(mut self) -> Self {
        self.namespaces = Namespaces::Never;
        self
    }

    /// The bench of a kernel whose Landlock has no newer interface than `version`.
    #[must_use]
    pub fn with_landlock_at_most(mut self, version: u32) -> Self {
        self.landlock.at_most = Some(version);
        self
    }

    /// Versions of Landlock's interface that its cells take.
    #[must_use]
    pub fn landlock(&self) -> LandlockVersions {
        self.landlock
    }

    /// What starts its cells.
    pub(super) fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// The path that all places lie in.
    #[must_use]
    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// The granted directory.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.place().join("workspace")
    }

    /// A directory that is not granted.
    #[must_use]
    pub fn outside(&self) -> PathBuf {
        self.place().join("outside")
    }

    /// A file outside with known content.
    #[must_use]
    pub fn canary(&self) -> PathBuf {
        self.outside().join("canary")
    }

    /// A cell with the workspace and the system's programs, and nothing to run yet.
    #[must_use]
    pub fn spec(&self) -> SandboxSpec {
        let system = SYSTEM.iter().map(|path| Grant::optional(*path, GrantAccess::ReadExecute));
        let own = [
            Grant::new(&self.executable, GrantAccess::ReadExecute),
            Grant::new(self.workspace(), GrantAccess::ReadWriteExecute),
        ];
        SandboxSpec {
            cwd: self.workspace(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            grants: system.chain(own).collect(),
            limits: Limits { wall: PROBE_TIME_MAX, ..Limits::default() },
            namespaces: self.namespaces,
            landlock: self.landlock,
            ..SandboxSpec::default()
        }
    }

    /// `spec` with a shell script to run.
    #[must_use]
    pub fn script(&self, script: &str) -> SandboxSpec {
        let argv = ["/bin/sh", "-c", script].map(Into::into).to_vec();
        SandboxSpec { program: Program::Exec { argv, stdin: Stdin::Empty }, ..self.spec() }
    }

    /// Runs a cell to its end.
    ///
    /// # Errors
    /// When it does not start.
    pub fn run(&self, spec: &SandboxSpec) -> Result<Finished, SetupFailed> {
        Ok(self.launcher.launch(spec)?.wait(&Cancel::new()))
    }

    /// Acts inside the cell of `spec`.
    ///
    /// # Errors
    /// When the cell does not start or an act is not answered.
    pub fn confined_in(
        &self,
        spec: SandboxSpec,
        acts: &[Act],
    ) -> Result<(Enforced, Vec<Answer>), ProbeFault> {
        let argv = vec![
            self.executable.clone().into_os_string(),
            PROBE_ARGUMENT.into(),
            encode(acts)?.into(),
        ];
        let spec = SandboxSpec { program: Program::Exec { argv, stdin: Stdin::Empty }, ..spec };
        let finished = self.run(&spec)?;
        let answers = decode(&finished.stdout.head);
        let end = format!("{:?}: {}", finished.exit, shown(&finished.stderr.head));
        Ok((finished.enforced, complete(answers, acts, end)?))
    }

    /// Acts inside the usual cell.
    ///
    /// # Errors
    /// As `confined_in`.
    pub fn confined(&self, acts: &[Act]) -> Result<(Enforced, Vec<Answer>), ProbeFault> {
        self.confined_in(self.spec(), acts)
    }

    /// The same acts outside any cell: the control.
    ///
    /// # Errors
    /// When the program does not start or an act is not answered.
    pub fn plain(&self, acts: &[Act]) -> Result<Vec<Answer>, ProbeFault> {
        let mut program = self.unconfined(&self.executable);
        let output = program.arg(PROBE_ARGUMENT).arg(encode(acts)?).output()?;
        complete(decode(&output.stdout), acts, output.status.to_string())
    }

    /// This program, outside any cell, for a proof that runs it as a user would.
    #[must_use]
    pub fn own_program(&self) -> Command {
        self.unconfined(&self.executable)
    }

    /// A word that nothing else on the machine has in its arguments.
    #[must_use]
    pub fn mark(&self, name: &str) -> String {
        let place = self.place().file_name().unwrap_or_default().to_string_lossy();
        format!("{place}-{name}")
    }

    /// A process to reach for. It ends with the returned value.
    ///
    /// # Errors
    /// When it does not start.
    pub fn victim(&self) -> io::Result<Victim> {
        let mut program = self.unconfined(Path::new("/bin/sleep"));
        Ok(Victim(program.arg("60").env("CANARY", CANARY).spawn()?))
    }

    /// A shell script outside any cell.
    ///
    /// # Errors
    /// When it does not start.
    pub fn plain_script(&self, script: &str) -> io::Result<std::process::Output> {
        self.unconfined(Path::new("/bin/sh")).args(["-c", script]).output()
    }

    #[expect(clippy::disallowed_methods, reason = "a control runs outside the cell on purpose")]
    fn unconfined(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.workspace()).env_clear().env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }
}

/// A process outside the cell.
#[derive(Debug)]
pub struct Victim(Child);

impl Victim {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap_or(i32::MAX)
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // An error means that it has ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Writes a file of the bench.
///
/// # Errors
/// When it cannot be written.
#[expect(clippy::disallowed_methods, reason = "places of the bench are not durable")]
pub fn put(path: &Path, content: &str) -> io::Result<()> {
    fs::write(path, content)
}

/// The first line of what a program said, for messages.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned()
}

pub(super) fn encode(acts: &[Act]) -> io::Result<String> {
    serde_json::to_string(acts).map_err(io::Error::other)
}

pub(super) fn decode(output: &[u8]) -> Vec<Answer> {
    let lines = output.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

pub(super) fn complete(
    answers: Vec<Answer>,
    acts: &[Act],
    end: String,
) -> Result<Vec<Answer>, ProbeFault> {
    if answers.len() == acts.len() {
        return Ok(answers);
    }
    Err(ProbeFault::Silent { asked: acts.len(), got: answers.len(), end })
}
