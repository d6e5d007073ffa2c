//! The child's side of a launch, from the first line of `main` to the program.
//!
//! `monitor` stays outside and outlives the cell; `init` builds it from inside and ends it; `confine`
//! is the flat list that every program passes last. All run before any thread or runtime exists.

mod attendant;
mod confine;
mod grants;
mod groups;
mod init;
mod landlock;
mod masks;
mod metadata;
mod monitor;
mod privileges;
mod search;
mod sentinel;
mod sweep;
mod view;

use super::enforced::{AtStep, SetupFailed, Step};
use super::spec::SandboxSpec;
use super::{launch, sys, wire};
use rustix::fd::OwnedFd;
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

/// What the launcher placed at fixed numbers.
struct Inherited {
    setup: OwnedFd,
    outcome: OwnedFd,
    lifeline: OwnedFd,
}

impl Inherited {
    /// Takes the descriptors and the spec, and closes everything else.
    fn take() -> Result<(Self, SandboxSpec), SetupFailed> {
        sys::close_from(wire::FIRST_FREE_DESCRIPTOR).at(Step::CloseDescriptors)?;
        let first = u32::try_from(wire::SPEC_DESCRIPTOR).map_err(std::io::Error::other);
        sys::close_from_at_exec(first.at(Step::Wire)?).at(Step::CloseDescriptors)?;
        let spec = sys::take_inherited(wire::SPEC_DESCRIPTOR).at(Step::Wire)?;
        let inherited = Self {
            setup: sys::take_inherited(wire::SETUP_DESCRIPTOR).at(Step::Wire)?,
            outcome: sys::take_inherited(wire::OUTCOME_DESCRIPTOR).at(Step::Wire)?,
            lifeline: sys::take_inherited(wire::LIFELINE_DESCRIPTOR).at(Step::Wire)?,
        };
        let spec = wire::decode_spec(spec).at(Step::Wire)?;
        Ok((inherited, spec))
    }
}

/// Lets go of the program's standard streams in a process that only watches, so that their ends are
/// seen when the program's own copies close.
fn release_standard_streams() {
    for number in 0..3 {
        sys::close_number(number);
    }
}
