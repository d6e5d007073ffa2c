//! Start of a cell, seen from the supervisor: what is refused before the kernel is asked, and what is
//! tried again where a machine refuses namespaces. Callable from any thread.

use super::attempt::Attempt;
use super::enforced::{SetupFailed, Step};
use super::running::Running;
use super::spare::Ready;
use super::spec::{Degraded, Identity, Layer, Namespaces, Program, SandboxSpec};
use super::wire::Start;
use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Hidden first argument that makes this binary a child.
pub(super) const CHILD_ARGUMENT: &CStr = c"--stoplog-cell-child";
/// This program's file, also after it was replaced.
pub(super) const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// Whether this machine is known to refuse namespaces, so that later launches do not try again.
static NAMESPACES_REFUSED: AtomicBool = AtomicBool::new(false);

/// Starts cells from a given executable.
#[derive(Debug, Clone)]
pub struct Launcher {
    executable: PathBuf,
}

impl Default for Launcher {
    fn default() -> Self {
        Self { executable: PathBuf::from(OWN_EXECUTABLE) }
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
        self.go_on(spec, self.first_attempt(spec, Start::AtOnce))
    }

    /// Starts to build a cell whose program waits, confined, until it is released. What goes wrong
    /// before is told then.
    pub fn hold(&self, spec: Arc<SandboxSpec>) -> Held {
        let attempt = check(&spec).and_then(|()| self.first_attempt(&spec, Start::AtRelease));
        Held { launcher: self.clone(), spec, attempt }
    }

    fn first_attempt(&self, spec: &SandboxSpec, start: Start) -> Result<Attempt, SetupFailed> {
        if spec.namespaces == Namespaces::Never || NAMESPACES_REFUSED.load(Ordering::Relaxed) {
            return self.attempt_without_namespaces(spec, start);
        }
        self.attempt(spec, start)
    }

    /// Waits for the end of an attempt, and makes one more where the machine refuses namespaces and
    /// the spec can do without.
    fn go_on(
        &self,
        spec: &SandboxSpec,
        attempt: Result<Attempt, SetupFailed>,
    ) -> Result<Running, SetupFailed> {
        let failed = match attempt.and_then(|attempt| attempt.finish(spec)) {
            Err(failed) if refuses_namespaces(&failed) => failed,
            other => return other,
        };
        match needs_namespaces(spec) {
            None => {
                NAMESPACES_REFUSED.store(failed.step == Step::Namespaces, Ordering::Relaxed);
                let attempt = self.attempt_without_namespaces(spec, Start::AtOnce)?;
                attempt.finish(spec)
            }
            Some(reason) if failed.subject.is_empty() => {
                Err(SetupFailed { subject: reason, ..failed })
            }
            Some(_) => Err(failed),
        }
    }

    fn attempt_without_namespaces(
        &self,
        spec: &SandboxSpec,
        start: Start,
    ) -> Result<Attempt, SetupFailed> {
        if let Some(reason) = needs_namespaces(spec) {
            return Err(SetupFailed::because(Step::Namespaces, reason));
        }
        self.attempt(&SandboxSpec { namespaces: Namespaces::Never, ..spec.clone() }, start)
    }

    fn attempt(&self, spec: &SandboxSpec, start: Start) -> Result<Attempt, SetupFailed> {
        Attempt::begin(&self.executable, spec, start)
    }
}

/// A cell that is being built, or stands, and whose program waits. Dropping it ends it.
#[derive(Debug)]
#[must_use = "its program ends with it, without having run"]
pub struct Held {
    launcher: Launcher,
    spec: Arc<SandboxSpec>,
    attempt: Result<Attempt, SetupFailed>,
}

impl Held {
    /// What the cell is built from.
    #[must_use]
    pub const fn spec(&self) -> &Arc<SandboxSpec> {
        &self.spec
    }

    /// Lets the program start and waits until it runs or a step failed.
    ///
    /// # Errors
    /// The step that failed; nothing runs then.
    pub fn release(self) -> Result<Running, SetupFailed> {
        if let Ok(attempt) = &self.attempt {
            attempt.release();
        }
        self.launcher.go_on(&self.spec, self.attempt)
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
    let narrowed = || {
        spec.grants.iter().any(|inner| {
            spec.grants.iter().any(|outer| {
                inner.path != outer.path
                    && inner.path.starts_with(&outer.path)
                    && !outer.access.is_within(inner.access)
            })
        })
    };
    let held_by_view = !spec.masks.is_empty() || narrowed();
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

/// Shuts other processes of the same user out of this one's memory, descriptors and environment.
///
/// # Errors
/// When the kernel refuses, which it has no reason to.
pub fn harden_supervisor() -> io::Result<()> {
    nix::sys::prctl::set_dumpable(false).map_err(io::Error::from)
}
