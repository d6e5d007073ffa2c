//! Children that are started before it is known what they will be.
//!
//! A third of what a launch takes is the start of the own binary, which needs nothing from the spec.
//! A spare child does that part while the supervisor reads its policy or waits for its model: it has
//! shed its descriptors, is not dumpable, and waits. It gets the descriptors of one cell, becomes that
//! cell, and nothing else ever. It ends when its control socket does, so none outlives the supervisor.

use super::enforced::{AtStep, SetupFailed, Step};
use super::launch::CHILD_ARGUMENT;
use super::running::Monitor;
use super::wire::{self, CELL_DESCRIPTORS};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Descriptors for the child are moved above the numbers that they end up at.
const DESCRIPTOR_FLOOR: i32 = 16;

/// A child that waits for what it is to become. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Spare {
    // Dropped first: its end is what tells the child to go.
    control: OwnedFd,
    monitor: Monitor,
    executable: PathBuf,
}

impl Spare {
    /// Starts a child by `posix_spawn`, whose cost does not grow with the supervisor's memory and which
    /// runs none of our code between fork and exec.
    pub(super) fn start(executable: &Path) -> Result<Self, SetupFailed> {
        let (control, control_theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .at(Step::Descriptors)?;
        let (lifeline_theirs, lifeline) = pipe_with(PipeFlags::CLOEXEC).at(Step::Descriptors)?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let null = rustix::fs::open("/dev/null", flags, Mode::empty()).at(Step::Descriptors)?;
        // The order is the numbering that `wire` names; what is not known yet is the null device.
        let theirs = [&null, &null, &null, &control_theirs, &null, &null, &lifeline_theirs];
        let pid = spawn(executable, &theirs)?;
        let monitor = Monitor::new(pid, lifeline);
        Ok(Self { control, monitor, executable: executable.to_owned() })
    }

    /// Hands over the descriptors of a cell, in the order of [`wire::receive_descriptors`].
    pub(super) fn become_cell(
        self,
        descriptors: &[OwnedFd; CELL_DESCRIPTORS],
    ) -> Result<Monitor, SetupFailed> {
        wire::send_descriptors(&self.control, descriptors).at(Step::Wire)?;
        Ok(self.monitor)
    }
}

fn spawn(executable: &Path, theirs: &[&OwnedFd]) -> Result<rustix::process::Pid, SetupFailed> {
    let mut actions = PosixSpawnFileActions::init().map_err(io::Error::from).at(Step::Spawn)?;
    let raised = theirs
        .iter()
        .map(|descriptor| fcntl_dupfd_cloexec(descriptor, DESCRIPTOR_FLOOR))
        .collect::<Result<Vec<_>, _>>()
        .at(Step::Descriptors)?;
    for (number, descriptor) in (0..).zip(&raised) {
        actions
            .add_dup2(descriptor.as_raw_fd(), number)
            .map_err(io::Error::from)
            .at(Step::Spawn)?;
    }
    let attributes = spawn_attributes().map_err(io::Error::from).at(Step::Spawn)?;
    let arguments = [c"stoplog", CHILD_ARGUMENT];
    let pid = posix_spawn::<_, &CStr, &CStr>(executable, &actions, &attributes, &arguments, &[])
        .map_err(io::Error::from)
        .at(Step::Spawn)?;
    rustix::process::Pid::from_raw(pid.as_raw())
        .ok_or_else(|| SetupFailed::because(Step::Spawn, "the kernel gave no process id"))
}

/// Every signal at its default and none blocked, whatever the supervisor has done to its own.
fn spawn_attributes() -> nix::Result<PosixSpawnAttr> {
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
    )?;
    attributes.set_sigdefault(&SigSet::all())?;
    attributes.set_sigmask(&SigSet::empty())?;
    Ok(attributes)
}

/// The one spare child of this process.
#[derive(Debug)]
struct Pool {
    spare: Option<Spare>,
    /// Guards that ask for a new one whenever it is used.
    keepers: usize,
    /// Guards of either kind.
    guards: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { spare: None, keepers: 0, guards: 0 });

fn pool() -> MutexGuard<'static, Pool> {
    // What a panicking holder left is a spare child or none; both are fine.
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this lives a child may be waiting; with the last of them it ends.
#[derive(Debug)]
#[must_use = "the child ends with this"]
pub struct Ready {
    keeps: bool,
}

impl Ready {
    /// Starts a child for the next launch of this binary.
    pub fn once(executable: &Path) -> Self {
        Self::new(executable, false)
    }

    /// Starts a child for the next launch, and one more at each launch.
    pub fn always(executable: &Path) -> Self {
        Self::new(executable, true)
    }

    fn new(executable: &Path, keeps: bool) -> Self {
        let mut pool = pool();
        pool.guards += 1;
        pool.keepers += usize::from(keeps);
        if pool.spare.is_none() {
            // A child that cannot be started now is started, or reported, by the launch.
            pool.spare = Spare::start(executable).ok();
        }
        Self { keeps }
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let mut pool = pool();
        pool.guards = pool.guards.saturating_sub(1);
        pool.keepers = pool.keepers.saturating_sub(usize::from(self.keeps));
        let unwanted = if pool.guards == 0 { pool.spare.take() } else { None };
        drop(pool);
        // Waits for its end, which must not hold up another launch.
        drop(unwanted);
    }
}

/// A child for a cell of `executable`: the spare one, or a new one.
pub(super) fn take(executable: &Path) -> Result<Spare, SetupFailed> {
    let mut pool = pool();
    match pool.spare.take() {
        Some(spare) if spare.executable == executable => Ok(spare),
        other => {
            pool.spare = other;
            drop(pool);
            Spare::start(executable)
        }
    }
}

/// Starts the next spare child, if somebody keeps one.
pub(super) fn refill(executable: &Path) {
    let mut pool = pool();
    if pool.keepers > 0 && pool.spare.is_none() {
        pool.spare = Spare::start(executable).ok();
    }
}
