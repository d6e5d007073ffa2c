//! What the probes found, for people and for machines.

use super::bench::{Bench, ProbeFault};
use super::facts::Facts;
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

/// Facts of the machine and proofs of the guarantees.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What the machine gives.
    pub facts: Facts,
    /// What was proved.
    pub proofs: Vec<Proof>,
}

impl Report {
    /// Carries out `probes` on `bench`.
    #[must_use]
    pub fn of(bench: &Bench, probes: &[Probe]) -> Self {
        let prove = |probe: &Probe| Proof {
            guarantee: probe.guarantee,
            probe: probe.name,
            finding: (probe.run)(bench).unwrap_or_else(|fault| Finding::fail(fault.to_string())),
        };
        Self { facts: Facts::of(bench), proofs: probes.iter().map(prove).collect() }
    }

    /// Whether a guarantee holds: as its worst probe says; without a probe it is not shown.
    #[must_use]
    pub fn held(&self, guarantee: u8) -> Held {
        let proofs = self.proofs.iter().filter(|proof| proof.guarantee == guarantee);
        proofs.map(|proof| proof.finding.held).max().unwrap_or(Held::NotSupported)
    }

    /// Whether any probe failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.proofs.iter().any(|proof| proof.finding.held == Held::Fail)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}\n\nguarantees", self.facts)?;
        for (number, sentence) in GUARANTEES {
            let id = format!("G{number}");
            writeln!(formatter, "  {id:<3} {:<13} {sentence}", self.held(number))?;
            for proof in self.proofs.iter().filter(|proof| proof.guarantee == number) {
                let Finding { held, detail } = &proof.finding;
                writeln!(formatter, "        {held:<13} {}: {detail}", proof.probe)?;
            }
        }
        Ok(())
    }
}
