//! The child's side of a launch, from the first line of `main` to the program.
//!
//! `monitor` stays outside and outlives the cell; `init` builds it from inside and ends it, and is made
//! `early` where it can be; `confine` is the flat list that every program passes last. All run before
//! any thread or runtime exists.

mod attendant;
mod claim;
mod confine;
mod delegation;
mod early;
mod grants;
mod ground;
mod groups;
mod init;
mod landlock;
mod masks;
mod metadata;
mod monitor;
mod numbers;
mod privileges;
mod search;
mod sentinel;
mod sweep;
mod tree;
mod view;

use super::enforced::{AtStep, SetupFailed, Step};
use super::wire::{self, Start};
use super::{launch, sys};
use rustix::fd::OwnedFd;
use rustix::io::{DupFlags, dup3};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::io::Write;
use std::process::ExitCode;

/// Serves one file job: its bytes in, its answer on the writer, its exit code back.
pub type Serve = fn(job: &[u8], output: &mut dyn Write) -> i32;

/// Becomes a cell when this process was started as one; the first thing in `main`. `None` for every
/// other process. `serve` runs file jobs, after confinement.
#[must_use]
pub fn child_entry(serve: Serve) -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    (first.as_encoded_bytes() == launch::CHILD_ARGUMENT.to_bytes()).then(|| monitor::run(serve))
}

/// Waits for a cell to become, in a process that has the descriptors of such a child already.
pub(super) fn wait_for_cell(serve: Serve) -> ExitCode {
    monitor::run(serve)
}

/// The ends of the pipes to the supervisor, at their fixed numbers.
struct Inherited {
    setup: OwnedFd,
    outcome: OwnedFd,
    lifeline: OwnedFd,
}

impl Inherited {
    /// Takes what this process was started with, and the socket that brings a cell.
    fn take() -> Result<(OwnedFd, Self), SetupFailed> {
        let control = sys::take_inherited(wire::CONTROL_DESCRIPTOR).at(Step::Wire)?;
        let inherited = Self {
            setup: sys::take_inherited(wire::SETUP_DESCRIPTOR).at(Step::Wire)?,
            outcome: sys::take_inherited(wire::OUTCOME_DESCRIPTOR).at(Step::Wire)?,
            lifeline: sys::take_inherited(wire::LIFELINE_DESCRIPTOR).at(Step::Wire)?,
        };
        Ok((control, inherited))
    }

    /// Puts the descriptors of a cell where they belong; gives back the spec.
    fn place(
        &mut self,
        received: [OwnedFd; wire::CELL_DESCRIPTORS],
    ) -> Result<OwnedFd, SetupFailed> {
        let [stdin, stdout, stderr, spec, setup, outcome] = received;
        // First of all the way to tell what fails.
        dup3(&setup, &mut self.setup, DupFlags::CLOEXEC).at(Step::Descriptors)?;
        dup3(&outcome, &mut self.outcome, DupFlags::CLOEXEC).at(Step::Descriptors)?;
        dup2_stdin(&stdin).at(Step::Descriptors)?;
        dup2_stdout(&stdout).at(Step::Descriptors)?;
        dup2_stderr(&stderr).at(Step::Descriptors)?;
        Ok(spec)
    }
}

/// Where the program waits, confined already, for the word to start.
struct Gate(Option<OwnedFd>);

impl Gate {
    fn new(control: OwnedFd, start: Start) -> Self {
        Self((start == Start::AtRelease).then_some(control))
    }

    /// Returns when the program may start.
    fn pass(&self) -> Result<(), SetupFailed> {
        self.0.as_ref().map_or(Ok(()), |control| wire::await_release(control).at(Step::Wire))
    }
}

/// Lets go of the program's standard streams in a process that only watches, so that their ends are
/// seen when the program's own copies close.
fn release_standard_streams() {
    for number in 0..3 {
        sys::close_number(number);
    }
}
