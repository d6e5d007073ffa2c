//! What this kernel gives, and live proofs of the guarantees: `doctor` and `doctor --selftest`.
//!
//! A probe is a row of a plain table ([`Probe`]): a guarantee, what is tried, a function on a
//! [`Bench`]. Every probe has a control outside the cell, so that it cannot pass for the wrong
//! reason. The rows here prove what the cell alone gives; chain, audit and policy add theirs, and
//! [`Report::of`] carries out any list of them. What a shell cannot try is tried by the hidden probe
//! program of this binary ([`probe_entry`]).

mod acts;
mod bench;
mod calls;
mod facts;
mod guarantees;
mod report;
mod start;
mod terminal;

pub(in crate::sandbox) use acts::perform_all as perform;

pub use acts::{Act, Answer, PROBE_ARGUMENT, Reach};
pub use bench::{Bench, CANARY, ProbeFault, Victim, put};
pub use calls::{CALLS, CALLS_WITHOUT_NAMESPACES, Call, Stopped};
pub use facts::{ControlGroups, Facts, NamespaceFact};
pub use guarantees::{Contrast, PROBES, contrast, expected_errno};
pub use report::{Finding, GUARANTEES, Guarantee, Held, Probe, Proof, Report};
pub use start::{Unproven, prove};
pub use terminal::{Sitting, Typing};

use std::process::ExitCode;

/// Becomes one of the hidden programs of the probes if this process was started as one.
#[must_use]
pub fn probe_entry() -> Option<ExitCode> {
    acts::acts_entry().or_else(terminal::terminal_entry)
}
