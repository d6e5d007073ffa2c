//! Start of a cell, seen from the supervisor: descriptors, a child that takes them, the first report.
//! Callable from any thread.

use super::enforced::{AtStep, Enforced, SetupFailed, Step};
use super::running::{Pipes, Running};
use super::spare::{self, Ready, Spare};
use super::spec::{Degraded, Identity, Layer, Namespaces, Program, SandboxSpec, Stdin};
use super::wire::{self, CELL_DESCRIPTORS, ReportReader, SetupReport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Hidden first argument that makes this binary a child.
pub(super) const CHILD_ARGUMENT: &CStr = c"--stoplog-cell-child";
/// Time in which a child must report: a grant on a dead network file system must not hang a run.
const SETUP_TIME_MAX: Duration = Duration::from_secs(30);

/// Whether this machine is known to refuse namespaces, so that later launches do not try again.
static NAMESPACES_REFUSED: AtomicBool = AtomicBool::new(false);

/// Starts cells from a given executable.
#[derive(Debug, Clone)]
pub struct Launcher {
    executable: PathBuf,
}

impl Default for Launcher {
    fn default() -> Self {
        Self { executable: PathBuf::from("/proc/self/exe") }
    }
}

impl Launcher {
    /// A launcher for a test binary, whose own executable is not this program. No policy, flag or
    /// environment reaches it.
    #[must_use]
    pub fn with_executable(executable: impl Into<PathBuf>) -> Self {
        Self { executable: executable.into() }
    }

    /// Starts a child that the next launch takes, so that it is spared the wait for it.
    pub fn ready_once(&self) -> Ready {
        Ready::once(&self.executable)
    }

    /// The same for the next launch and for each one after it.
    pub fn ready_always(&self) -> Ready {
        Ready::always(&self.executable)
    }

    /// Starts a cell and waits until its program runs or a step failed.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub fn launch(&self, spec: &SandboxSpec) -> Result<Running, SetupFailed> {
        check(spec)?;
        if spec.namespaces == Namespaces::Never || NAMESPACES_REFUSED.load(Ordering::Relaxed) {
            return self.launch_without_namespaces(spec);
        }
        let failed = match self.attempt(spec) {
            Err(failed) if refuses_namespaces(&failed) => failed,
            other => return other,
        };
        match needs_namespaces(spec) {
            None => {
                NAMESPACES_REFUSED.store(failed.step == Step::Namespaces, Ordering::Relaxed);
                self.launch_without_namespaces(spec)
            }
            Some(reason) if failed.subject.is_empty() => {
                Err(SetupFailed { subject: reason, ..failed })
            }
            Some(_) => Err(failed),
        }
    }

    fn launch_without_namespaces(&self, spec: &SandboxSpec) -> Result<Running, SetupFailed> {
        if let Some(reason) = needs_namespaces(spec) {
            return Err(SetupFailed::because(Step::Namespaces, reason));
        }
        self.attempt(&SandboxSpec { namespaces: Namespaces::Never, ..spec.clone() })
    }

    fn attempt(&self, spec: &SandboxSpec) -> Result<Running, SetupFailed> {
        let (ours, theirs) = descriptors(spec)?;
        let child = spare::take(&self.executable)?;
        let monitor = match child.become_cell(&theirs) {
            Ok(monitor) => monitor,
            // A spare child may have been killed while it waited; a new one has not.
            Err(_) => Spare::start(&self.executable)?.become_cell(&theirs)?,
        };
        drop(theirs);
        // While the child builds its cell there is nothing else to do here.
        spare::refill(&self.executable);
        let enforced = first_report(&ours.setup)?;
        Running::new(monitor, ours.pipes, enforced, spec)
    }
}

/// What can be said about a spec without asking the kernel.
fn check(spec: &SandboxSpec) -> Result<(), SetupFailed> {
    let bad = |reason: &str| Err(SetupFailed::because(Step::Spec, reason));
    if let Program::Exec { argv, .. } = &spec.program {
        if argv.first().is_none_or(|name| name.is_empty()) {
            return bad("there is no program to run");
        }
        if argv.iter().any(|argument| argument.as_bytes().contains(&0)) {
            return bad("an argument holds a NUL byte");
        }
    }
    if spec.environment.iter().any(|(name, value)| {
        let name = name.as_bytes();
        name.is_empty()
            || name.contains(&0)
            || name.contains(&b'=')
            || value.as_bytes().contains(&0)
    }) {
        return bad("an environment variable has an impossible name or value");
    }
    let root = rustix::process::geteuid().is_root();
    if matches!(spec.identity, Identity::User { .. }) && !root {
        return Err(SetupFailed::because(Step::Identity, "the caller is not root"));
    }
    let absolute = |path: &Path| path.is_absolute() && !path.as_os_str().as_bytes().contains(&0);
    let named = spec.grants.iter().map(|grant| grant.path.as_path()).chain([spec.cwd.as_path()]);
    let named =
        named.chain(spec.private_tmp.as_deref()).chain(spec.scratch.iter().map(PathBuf::as_path));
    match named.into_iter().find(|path| !absolute(path)) {
        Some(path) => bad(&format!("{} is not an absolute path", path.display())),
        None => Ok(()),
    }
}

/// Why the spec cannot do without namespaces, if it cannot.
pub(super) fn needs_namespaces(spec: &SandboxSpec) -> Option<String> {
    let namespaces = [Layer::MountView, Layer::NetworkNamespace, Layer::PidNamespace];
    if let Some(layer) = spec.require.iter().find(|layer| namespaces.contains(layer)) {
        return Some(format!("`{}` is required, and needs namespaces", layer.name()));
    }
    let narrowed = spec.grants.iter().any(|inner| {
        spec.grants.iter().any(|outer| {
            inner.path != outer.path
                && inner.path.starts_with(&outer.path)
                && !outer.access.is_within(inner.access)
        })
    });
    let held_by_view = !spec.masks.is_empty() || narrowed;
    match spec.degraded {
        Degraded::Allow => None,
        Degraded::Refuse | Degraded::RefuseAny if held_by_view => {
            Some("masks need a mount view, which needs namespaces".to_owned())
        }
        Degraded::Refuse => None,
        Degraded::RefuseAny => Some(
            "without namespaces a cell loses guarantees, and nobody is there to be told".into(),
        ),
    }
}

/// Whether a failure is a machine's refusal of namespaces and not a mistake of the spec.
fn refuses_namespaces(failed: &SetupFailed) -> bool {
    let refusals =
        [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::ENOSPC, libc::EINVAL, libc::EUSERS];
    failed.step.needs_namespaces() && refusals.contains(&failed.errno)
}

/// The supervisor's ends.
struct Ours {
    setup: OwnedFd,
    pipes: Pipes,
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SetupFailed> {
    pipe_with(PipeFlags::CLOEXEC).at(Step::Descriptors)
}

/// Both ends of everything that connects a cell with its supervisor; the child's in the order that
/// `wire` names.
fn descriptors(spec: &SandboxSpec) -> Result<(Ours, [OwnedFd; CELL_DESCRIPTORS]), SetupFailed> {
    let (stdin_ours, stdin) = standard_input(&spec.program)?;
    let (stdout_ours, stdout) = pipe()?;
    let (stderr_ours, stderr) = if spec.limits.merge_output {
        (None, stdout.try_clone().at(Step::Descriptors)?)
    } else {
        let (ours, theirs) = pipe()?;
        (Some(ours), theirs)
    };
    let (setup, setup_theirs) = pipe()?;
    let (outcome, outcome_theirs) = pipe()?;
    let spec = wire::encode_spec(spec).at(Step::Wire)?;
    let theirs = [stdin, stdout, stderr, spec, setup_theirs, outcome_theirs];
    let pipes =
        Pipes { stdin: stdin_ours, stdout: Some(stdout_ours), stderr: stderr_ours, outcome };
    Ok((Ours { setup, pipes }, theirs))
}

/// The program's standard input, and our end when it is a pipe.
fn standard_input(program: &Program) -> Result<(Option<OwnedFd>, OwnedFd), SetupFailed> {
    match program {
        Program::Exec { stdin: Stdin::Bytes(bytes), .. } => {
            Ok((None, wire::sealed_file("stdin", bytes).at(Step::Descriptors)?))
        }
        Program::Exec { stdin: Stdin::Pipe, .. } => {
            let (theirs, ours) = pipe()?;
            Ok((Some(ours), theirs))
        }
        Program::Exec { stdin: Stdin::Empty, .. }
        | Program::FileJob { .. }
        | Program::Acts { .. } => {
            let null =
                rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
            Ok((None, null.at(Step::Descriptors)?))
        }
    }
}

/// Reads the set-up pipe to its end, which is when the program starts.
fn first_report(setup: &OwnedFd) -> Result<Enforced, SetupFailed> {
    let deadline = Instant::now() + SETUP_TIME_MAX;
    let mut reports = ReportReader::default();
    let mut enforced = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other).at(Step::Silent)?;
        let mut ready = [PollFd::new(setup, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) => return Err(SetupFailed::because(Step::Silent, "no report in time")),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).at(Step::Silent),
        }
        let open = reports.read(setup).at(Step::Wire)?;
        while let Some(report) = reports.next().at(Step::Wire)? {
            match report {
                SetupReport::Enforced(report) => enforced = Some(*report),
                SetupReport::Failed(failed) => return Err(failed),
            }
        }
        if !open {
            let silent = || SetupFailed::because(Step::Silent, "the child ended without a report");
            return enforced.ok_or_else(silent);
        }
    }
}

/// Shuts other processes of the same user out of this one's memory, descriptors and environment.
///
/// # Errors
/// When the kernel refuses, which it has no reason to.
pub fn harden_supervisor() -> io::Result<()> {
    nix::sys::prctl::set_dumpable(false).map_err(io::Error::from)
}
