//! One attempt to build a cell: the descriptors that connect it with the supervisor, the child that
//! takes them, the word to start, the first report.

use super::enforced::{AtStep, Enforced, SetupFailed, Step};
use super::monitor::Monitor;
use super::running::{Pipes, Running};
use super::spare::{self, Refill, Spare};
use super::spec::{Program, SandboxSpec, Stdin};
use super::wire::{self, CELL_DESCRIPTORS, ReportReader, SetupReport, Start};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time in which a child must report: a grant on a dead network file system must not hang a run.
const SETUP_TIME_MAX: Duration = Duration::from_secs(30);

/// A cell that is being built.
#[derive(Debug)]
pub(super) struct Attempt {
    // Dropped first: a held program that is not released ends with it.
    control: OwnedFd,
    monitor: Monitor,
    ours: Ours,
    refill: Refill,
}

impl Attempt {
    /// Hands the descriptors of a cell to a child of `executable`.
    pub(super) fn begin(
        executable: &Path,
        spec: &SandboxSpec,
        start: Start,
    ) -> Result<Self, SetupFailed> {
        let (ours, theirs) = descriptors(spec)?;
        let child = spare::take(executable, &spec.program)?;
        let (monitor, control) = match child.become_cell(&theirs, start) {
            Ok(started) => started,
            // A spare child may have been killed while it waited; a new one has not.
            Err(_) => Spare::start(executable)?.become_cell(&theirs, start)?,
        };
        drop(theirs);
        Ok(Self { monitor, control, ours, refill: Refill::new(executable) })
    }

    /// Lets a held program start. A cell that could not be built is not there to hear it; its report
    /// says why.
    pub(super) fn release(&self) {
        wire::send_release(&self.control).ok();
    }

    /// Waits until the program runs or a step failed.
    pub(super) fn finish(self, spec: &SandboxSpec) -> Result<Running, SetupFailed> {
        let enforced = first_report(&self.ours.setup)?;
        Running::new((self.monitor, self.refill), self.ours.pipes, enforced, spec)
    }
}

/// The supervisor's ends.
#[derive(Debug)]
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
