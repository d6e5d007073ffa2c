//! What the probes found, for people and for machines.

use super::bench::{Bench, ProbeFault};
use super::facts::Facts;
use crate::sandbox::Enforced;
use serde::Serialize;
use std::fmt;

/// The guarantees, by number, in the words of SECURITY.md.
pub const GUARANTEES: [(u8, &str); 16] = [
    (1, "no effect without a decision record written and flushed first"),
    (2, "a deny is final"),
    (3, "headless never waits: ask means deny"),
    (4, "no file content read or written, and no metadata changed, outside the grants"),
    (5, "no network path but the granted one"),
    (6, "allow-listed environment, descriptors 0 to 2, no terminal"),
    (7, "no reach to the supervisor or another session"),
    (8, "when a call ends, no process of it lives"),
    (9, "the supervisor's memory, time, output and disk per call are bounded"),
    (10, "policy, approvals, log and session files are not writable by any tool"),
    (11, "workspace files narrow policy, never widen it"),
    (12, "what was shown is what runs, with control characters escaped"),
    (13, "a remembered approval covers no more than was shown"),
    (14, "a sub-agent's rights are at most its parent's"),
    (15, "any edit, removal, reordering or cut tail of the log is reported"),
    (16, "a layer that cannot be set up or errs fails the call"),
];

/// Whether a guarantee holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// Shown by a live probe, whose control worked.
    Pass,
    /// This machine cannot give it, or nothing here can show it.
    NotSupported,
    /// It does not hold, or its probe could not be carried out.
    Fail,
}

impl fmt::Display for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Pass => "pass",
            Self::NotSupported => "not supported",
            Self::Fail => "FAIL",
        })
    }
}

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether the guarantee holds, as far as this probe sees.
    pub held: Held,
    /// One sentence: what was tried, and what happened.
    pub detail: String,
}

impl Finding {
    /// It holds.
    #[must_use]
    pub fn pass(detail: impl Into<String>) -> Self {
        Self { held: Held::Pass, detail: detail.into() }
    }

    /// It does not hold.
    #[must_use]
    pub fn fail(detail: impl Into<String>) -> Self {
        Self { held: Held::Fail, detail: detail.into() }
    }

    /// Nothing here can give or show it.
    #[must_use]
    pub fn not_supported(detail: impl Into<String>) -> Self {
        Self { held: Held::NotSupported, detail: detail.into() }
    }
}

/// One live proof. A plain table of these, so that every layer can add its own.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// Number of the guarantee.
    pub guarantee: u8,
    /// What is tried.
    pub name: &'static str,
    /// Tries it.
    pub run: fn(&Bench) -> Result<Finding, ProbeFault>,
}

/// A probe and what it found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Number of the guarantee.
    pub guarantee: u8,
    /// What was tried.
    pub probe: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
}

/// What became of one guarantee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guarantee {
    /// Its number.
    pub guarantee: u8,
    /// What it says.
    pub sentence: &'static str,
    /// As its worst probe says; `None` when none was carried out.
    pub held: Option<Held>,
}

/// Facts of the machine and proofs of the guarantees.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What the machine gives.
    pub facts: Facts,
    /// What the usual cell has here; `None` when none can be made.
    pub cell: Option<Enforced>,
    /// Why no cell can be made.
    pub no_cell: Option<String>,
    /// The guarantees, and what was proved of them.
    pub guarantees: Vec<Guarantee>,
    /// What was proved.
    pub proofs: Vec<Proof>,
}

/// Bytes that no machine has.
const MEMORY_NEVER_REACHED: u64 = 1 << 46;
/// More processes than run on any machine, and fewer than the kernel's own bound.
const PROCESSES_NEVER_REACHED: u64 = 1 << 20;

impl Report {
    /// Looks at the machine, makes a cell, and carries out `probes`.
    #[must_use]
    pub fn of(bench: &Bench, probes: &[Probe]) -> Self {
        let prove = |probe: &Probe| Proof {
            guarantee: probe.guarantee,
            probe: probe.name,
            finding: (probe.run)(bench).unwrap_or_else(|fault| Finding::fail(fault.to_string())),
        };
        // Limits that nothing reaches: what is told of the cell is what would hold them.
        let mut spec = bench.script(":");
        spec.limits.memory_bytes = Some(MEMORY_NEVER_REACHED);
        spec.limits.processes = Some(PROCESSES_NEVER_REACHED);
        let (cell, no_cell) = match bench.run(&spec) {
            Ok(finished) => (Some(finished.enforced), None),
            Err(failed) => (None, Some(failed.to_string())),
        };
        let proofs: Vec<Proof> = probes.iter().map(prove).collect();
        let worst = |number: u8| {
            let proofs = proofs.iter().filter(|proof| proof.guarantee == number);
            proofs.map(|proof| proof.finding.held).max()
        };
        let guarantees = GUARANTEES
            .into_iter()
            .map(|(guarantee, sentence)| Guarantee { guarantee, sentence, held: worst(guarantee) })
            .collect();
        Self { facts: Facts::of(bench), cell, no_cell, guarantees, proofs }
    }

    /// Whether a guarantee holds, as its worst probe says; `None` when none was carried out.
    #[must_use]
    pub fn held(&self, number: u8) -> Option<Held> {
        self.guarantees.iter().find(|row| row.guarantee == number).and_then(|row| row.held)
    }

    /// Whether no cell can be made, or any probe failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.cell.is_none() || self.proofs.iter().any(|proof| proof.finding.held == Held::Fail)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.facts)?;
        match (&self.cell, &self.no_cell) {
            (Some(enforced), _) => write!(formatter, "\ncell            {enforced}")?,
            (None, why) => {
                write!(
                    formatter,
                    "\ncell            none: {}",
                    why.as_deref().unwrap_or_default()
                )?;
            }
        }
        write!(formatter, "\n\nguarantees")?;
        for Guarantee { guarantee, sentence, held } in &self.guarantees {
            let id = format!("G{guarantee}");
            let held = held.map_or_else(String::new, |held| held.to_string());
            write!(formatter, "\n  {id:<3} {held:<13} {sentence}")?;
            for proof in self.proofs.iter().filter(|proof| proof.guarantee == *guarantee) {
                let Finding { held, detail } = &proof.finding;
                write!(formatter, "\n        {held:<13} {}: {detail}", proof.probe)?;
            }
        }
        Ok(())
    }
}
