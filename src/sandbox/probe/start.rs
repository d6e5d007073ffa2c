//! The cheap part of the proof, made at the start of every run: one cell exactly as the policy
//! describes it, in which the probe program tries one act for each layer.
//!
//! It costs one launch, and nothing has to be granted for it: the child performs the acts itself. `Enforced` says what the child reports; this says that the kernel agrees.

use super::acts::Act;
use super::bench::{Bench, CANARY, ProbeFault, complete, decode, encode};
use crate::sandbox::{Cancel, Enforced, Launcher, Program, SandboxSpec};
use std::fs;
use std::path::Path;

/// A run must not start: a layer that the child reports does not hold.
#[derive(Debug, thiserror::Error)]
pub enum Unproven {
    /// The cell did not start, or did not answer.
    #[error(transparent)]
    Fault(#[from] ProbeFault),
    /// An act that must fail worked.
    #[error("the cell does not hold: {act} worked inside it")]
    Open {
        /// What was tried.
        act: &'static str,
    },
}

/// Tries one act for each layer in the cell of `spec`, started by `launcher`. `canary` is a file with the
/// content [`CANARY`] that the spec does not grant.
///
/// # Errors
/// When the cell does not start, or an act works that must not.
pub fn prove(launcher: &Launcher, spec: &SandboxSpec, canary: &Path) -> Result<Enforced, Unproven> {
    let cases = [
        ("reading a file outside", Act::ReadFile(canary.to_owned())),
        ("writing a file outside", Act::AppendFile(canary.to_owned())),
        ("making a user namespace", Act::MakeNamespaces(libc::CLONE_NEWUSER)),
        ("changing the execution domain", Act::Call("personality-no-randomisation".into())),
        ("typing into a terminal", Act::Call("terminal-input-high-bits".into())),
    ];
    let acts = cases.clone().map(|(_, act)| act);
    let program = Program::Acts { acts: encode(&acts).map_err(ProbeFault::Bench)? };
    let spec = SandboxSpec { program, ..spec.clone() };
    let running = launcher.launch(&spec).map_err(ProbeFault::Setup)?;
    let finished = running.wait(&Cancel::new());
    let end = format!("{:?}", finished.exit);
    let answers = complete(decode(&finished.stdout.head), &acts, end)?;
    let open = cases.iter().zip(answers).find(|(_, answer)| answer.worked());
    if let Some(((act, _), _)) = open {
        return Err(Unproven::Open { act });
    }
    match fs::read_to_string(canary).map_err(ProbeFault::Bench)?.as_str() {
        CANARY => Ok(finished.enforced),
        _ => Err(Unproven::Open { act: "writing a file outside" }),
    }
}

impl Bench {
    /// The same with the bench's own canary, which `spec` must not grant.
    ///
    /// # Errors
    /// As [`prove`].
    pub fn prove(&self, spec: &SandboxSpec) -> Result<Enforced, Unproven> {
        prove(self.launcher(), spec, &self.canary())
    }
}
