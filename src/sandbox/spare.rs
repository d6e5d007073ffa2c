//! Children that are started before it is known what they will be.
//!
//! A third of what a launch takes is the start of the own binary, which needs nothing from the spec.
//! A spare child does that part while the supervisor reads its policy or waits for its model: it has
//! shed its descriptors, is not dumpable, and waits. It gets the descriptors of one cell, becomes that
//! cell, and nothing else ever. It ends when its control socket does, so none outlives the supervisor.
//!
//! It is the own binary started again, or, for a command that starts one cell only, a copy of the
//! process in its first moments, which costs a fraction of that.

use super::enforced::{AtStep, SetupFailed, Step};
use super::launch::{self, CHILD_ARGUMENT};
use super::monitor::{self, Monitor};
use super::spec::Program;
use super::wire::{self, CELL_DESCRIPTORS, INHERITED_DESCRIPTORS, Start};
use super::{Serve, child, sys};
use nix::sched::{sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
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
    made: Made,
}

/// How a spare child came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// As the binary started again, in a memory of its own.
    Started,
    /// As a copy of this process, with its layout of memory.
    Copied,
}

impl Made {
    /// Whether it may be the cell of `program`: a copy only of one that brings a memory of its own.
    const fn may_become(self, program: &Program) -> bool {
        matches!(self, Self::Started) || matches!(program, Program::Exec { .. })
    }
}

impl Spare {
    /// Starts a child by `posix_spawn`, whose cost does not grow with the supervisor's memory and which
    /// runs none of our code between fork and exec.
    pub(super) fn start(executable: &Path) -> Result<Self, SetupFailed> {
        let Ends { control, lifeline, theirs } = ends()?;
        let monitor = Monitor::new(spawn(executable, &theirs)?, lifeline);
        Ok(Self { control, monitor, executable: executable.to_owned(), made: Made::Started })
    }

    /// Hands over the descriptors of a cell, in the order of [`wire::receive_descriptors`]. The socket
    /// that is returned is the one on which a held program is released; its end ends such a program.
    pub(super) fn become_cell(
        self,
        descriptors: &[OwnedFd; CELL_DESCRIPTORS],
        start: Start,
    ) -> Result<(Monitor, OwnedFd), SetupFailed> {
        wire::send_descriptors(&self.control, descriptors, start).at(Step::Wire)?;
        Ok((self.monitor, self.control))
    }
}

/// Both ends of what connects a waiting child with its supervisor.
struct Ends {
    control: OwnedFd,
    lifeline: OwnedFd,
    /// In the order of the numbers that `wire` names; what is not known yet is the null device.
    theirs: [OwnedFd; INHERITED_DESCRIPTORS],
}

/// All are above the numbers that the child's end up at.
fn ends() -> Result<Ends, SetupFailed> {
    let (control, control_theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .at(Step::Descriptors)?;
    let (lifeline_theirs, lifeline) = pipe_with(PipeFlags::CLOEXEC).at(Step::Descriptors)?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, Mode::empty()).at(Step::Descriptors)?;
    let raise = |descriptor: &OwnedFd| {
        fcntl_dupfd_cloexec(descriptor, DESCRIPTOR_FLOOR).at(Step::Descriptors)
    };
    Ok(Ends {
        control: raise(&control)?,
        lifeline: raise(&lifeline)?,
        theirs: [
            raise(&null)?,
            raise(&null)?,
            raise(&null)?,
            raise(&control_theirs)?,
            raise(&null)?,
            raise(&null)?,
            raise(&lifeline_theirs)?,
        ],
    })
}

fn spawn(executable: &Path, theirs: &[OwnedFd; INHERITED_DESCRIPTORS]) -> Result<Pid, SetupFailed> {
    let mut actions = PosixSpawnFileActions::init().map_err(io::Error::from).at(Step::Spawn)?;
    for (number, descriptor) in (0..).zip(theirs) {
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
    Pid::from_raw(pid.as_raw())
        .ok_or_else(|| SetupFailed::because(Step::Spawn, "the kernel gave no process id"))
}

/// Copies this process, which must have done nothing yet, into a spare child for the first launch of
/// this binary. In the copy it returns only when that child's life is over, with its exit code.
///
/// The copy has no exec that would give it a memory of its own, so it sheds what it shares instead:
/// its arguments and its environment are overwritten before anything else, every signal is as after an
/// exec, and its descriptors are those of any other spare child. The places of its memory are known
/// to whoever knows the supervisor's; so it is taken only for the launch of a program, which brings
/// its own by exec, and never for a file job, which reads hostile bytes.
#[must_use]
pub fn copy_at_start(serve: Serve) -> Option<ExitCode> {
    // A copy that cannot be made is no error: the launch then starts the binary again, or reports.
    // Set before, so that the copy is never within reach of others of the same user.
    launch::harden_supervisor().ok()?;
    let Ends { control, lifeline, theirs } = ends().ok()?;
    match sys::copy_process(0).ok()? {
        Some(pid) => {
            begin_elsewhere(nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get()));
            let monitor = Monitor::new(pid, lifeline);
            let executable = PathBuf::from(launch::OWN_EXECUTABLE);
            pool().spare = Some(Spare { control, monitor, executable, made: Made::Copied });
            None
        }
        None => {
            drop((control, lifeline));
            let placed = sys::place_descriptors(&theirs);
            drop(theirs);
            let shed = placed.and_then(|()| sys::forget_start()).and_then(|()| reset_signals());
            Some(if shed.is_ok() { child::wait_for_cell(serve) } else { ExitCode::FAILURE })
        }
    }
}

/// Has a copy of this process begin at once, on a processor that this process is not on. Left alone it
/// may wait on this one until this process sleeps or its slice is over (seen: 0.5 to 3 ms), while the
/// other processors idle. It may use the same processors as before. No more than a hint: where it
/// fails, the copy begins later.
fn begin_elsewhere(copy: nix::unistd::Pid) {
    let Ok(allowed) = sched_getaffinity(copy) else { return };
    let mut others = allowed;
    // The kernel refuses an empty set.
    let moved = sched_getcpu()
        .and_then(|here| others.unset(here))
        .and_then(|()| sched_setaffinity(copy, &others));
    if moved.is_ok() {
        sched_setaffinity(copy, &allowed).ok();
    }
}

/// What an exec does with handlers, and what `spawn_attributes` asks for.
fn reset_signals() -> io::Result<()> {
    sys::default_signals();
    SigSet::empty().thread_set_mask().map_err(io::Error::from)
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
    /// Executables of which a new one is wanted whenever it is used, one for each guard that asks for it.
    kept: Vec<PathBuf>,
    /// Guards of either kind.
    guards: usize,
}

impl Pool {
    /// Whether a new child of `executable` is wanted.
    fn wants(&self, executable: &Path) -> bool {
        self.spare.is_none() && self.kept.iter().any(|kept| kept == executable)
    }
}

static POOL: Mutex<Pool> = Mutex::new(Pool { spare: None, kept: Vec::new(), guards: 0 });

fn pool() -> MutexGuard<'static, Pool> {
    // What a panicking holder left is a spare child or none; both are fine.
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While this lives a child may be waiting, and one that has done its work may be about to exit; with
/// the last of them nothing of either is left.
#[derive(Debug)]
#[must_use = "the child ends with this"]
pub struct Ready {
    /// The executable of which it keeps a child at hand, if it does.
    keeps: Option<PathBuf>,
}

impl Ready {
    /// Starts a child for the next launch of this binary.
    pub fn once(executable: &Path) -> Self {
        Self::new(executable, None)
    }

    /// Starts a child for the next launch, and one more behind each launch.
    pub fn always(executable: &Path) -> Self {
        Self::new(executable, Some(executable.to_owned()))
    }

    fn new(executable: &Path, keeps: Option<PathBuf>) -> Self {
        let mut pool = pool();
        pool.guards += 1;
        pool.kept.extend(keeps.clone());
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
        let kept = pool.kept.iter().position(|kept| Some(kept) == self.keeps.as_ref());
        kept.map(|place| pool.kept.swap_remove(place));
        let last = pool.guards == 0;
        let unwanted = if last { pool.spare.take() } else { None };
        drop(pool);
        // Waits for its end, which must not hold up another launch.
        drop(unwanted);
        if last {
            monitor::wait_for_parted();
        }
    }
}

/// A child for a cell of `executable` that is to run `program`: the spare one, or a new one.
pub(super) fn take(executable: &Path, program: &Program) -> Result<Spare, SetupFailed> {
    let fits = |spare: &Spare| spare.executable == executable && spare.made.may_become(program);
    let mut pool = pool();
    let spare = pool.spare.take_if(|spare| fits(spare));
    drop(pool);
    // One that was killed while it waited is none. Its init, which dies with it, could still be handed the
    // cell.
    let alive = spare.and_then(|mut spare| (!spare.monitor.has_ended()).then_some(spare));
    alive.map_or_else(|| Spare::start(executable), Ok)
}

/// Starts the next spare child when it is dropped, if somebody keeps one: behind a call, where its start
/// takes the processors from nobody, and without holding up whoever waited for the call.
#[derive(Debug)]
pub(super) struct Refill(PathBuf);

impl Refill {
    pub(super) fn new(executable: &Path) -> Self {
        Self(executable.to_owned())
    }
}

impl Drop for Refill {
    fn drop(&mut self) {
        if !pool().wants(&self.0) {
            return;
        }
        let executable = std::mem::take(&mut self.0);
        let start = move || {
            let mut pool = pool();
            if pool.wants(&executable) {
                pool.spare = Spare::start(&executable).ok();
            }
        };
        // Without a thread the next call starts a child itself.
        drop(std::thread::Builder::new().name("refill".to_owned()).spawn(start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Stdin;

    #[test]
    fn a_copy_becomes_a_program_and_never_a_file_job() {
        let job = Program::FileJob { job: Vec::new() };
        let acts = Program::Acts { acts: String::new() };
        let program = Program::Exec { argv: vec!["true".into()], stdin: Stdin::Empty };
        assert!(Made::Copied.may_become(&program));
        assert!(!Made::Copied.may_become(&job) && !Made::Copied.may_become(&acts));
        assert!([program, job, acts].iter().all(|any| Made::Started.may_become(any)));
    }
}
