//! The cheap part of the proof, made at the start of every run: one cell exactly as the policy
//! describes it, in which the probe program tries one act for each layer.
//!
//! It costs one launch. `Enforced` says what the child reports; this says that the kernel agrees.

use super::acts::Act;
use super::bench::{Bench, CANARY, ProbeFault};
use crate::sandbox::{Enforced, SandboxSpec};
use std::fs;

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

impl Bench {
    /// Tries one act for each layer in the cell of `spec`, which must not grant the bench's places.
    ///
    /// # Errors
    /// When the cell does not start, or an act works that must not.
    pub fn prove(&self, spec: &SandboxSpec) -> Result<Enforced, Unproven> {
        let canary = self.canary();
        let cases = [
            ("reading a file outside", Act::ReadFile(canary.clone())),
            ("writing a file outside", Act::AppendFile(canary.clone())),
            ("making a user namespace", Act::MakeNamespaces(libc::CLONE_NEWUSER)),
            ("changing the execution domain", Act::Call("personality-no-randomisation".into())),
            ("typing into a terminal", Act::Call("terminal-input-high-bits".into())),
        ];
        let acts = cases.clone().map(|(_, act)| act);
        let spec = SandboxSpec { limits: self.spec().limits, ..self.with_probe(spec) };
        let (enforced, answers) = self.confined_in(spec, &acts)?;
        let open = cases.iter().zip(answers).find(|(_, answer)| answer.worked());
        if let Some(((act, _), _)) = open {
            return Err(Unproven::Open { act });
        }
        match fs::read_to_string(&canary).map_err(ProbeFault::Bench)?.as_str() {
            CANARY => Ok(enforced),
            _ => Err(Unproven::Open { act: "writing a file outside" }),
        }
    }
}
