//! What verification found, for people and for scripts.

use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::text::escape;
use serde::Serialize;
use std::fmt;

/// The answer in one word; the worst that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every record is as it was written and the last run has ended.
    Intact,
    /// So far as written; the run has not ended, or was killed.
    Open,
    /// As written, but a call has a part missing.
    Gaps,
    /// Not as written.
    Damaged,
}

/// How the log differs from what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// The bytes of a record changed.
    Edited,
    /// Records in the middle are gone.
    Removed,
    /// A record stands at another place.
    Reordered,
    /// A record stands there twice.
    Duplicated,
    /// A line that was never written.
    Inserted,
    /// Records follow where none may.
    Appended,
    /// A record differs from a head noted elsewhere, with all links made to fit.
    Rewritten,
    /// Records at the end are gone.
    Cut,
    /// The whole log is gone.
    Missing,
    /// The log of another session under this name.
    Misplaced,
    /// There is a ledger, and it does not know the log.
    Unledgered,
    /// The ledger itself is not as it was written.
    LedgerDamaged,
}

impl ProblemKind {
    /// The spelling in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Removed => "removed",
            Self::Reordered => "reordered",
            Self::Duplicated => "duplicated",
            Self::Inserted => "inserted",
            Self::Appended => "appended",
            Self::Rewritten => "rewritten",
            Self::Cut => "cut",
            Self::Missing => "missing",
            Self::Misplaced => "misplaced",
            Self::Unledgered => "unledgered",
            Self::LedgerDamaged => "ledger-damaged",
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What kind.
    pub kind: ProblemKind,
    /// The record that is meant; the first, if several are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The line on which it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The difference in words.
    pub sentence: String,
}

/// What is missing of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapKind {
    /// Approved, never started.
    DecisionWithoutStart,
    /// Started, and nothing is known of how it ended.
    StartWithoutOutcome,
    /// Started without a decision before it.
    StartWithoutDecision,
    /// Started although it was denied.
    StartAfterDenial,
    /// Ended without having started.
    OutcomeWithoutStart,
    /// Ended without a decision.
    OutcomeWithoutDecision,
    /// A second record of a kind that a call has once.
    Repeated,
    /// The ruling is not the sum of the stages.
    RulingContradictsStages,
}

impl GapKind {
    /// Whether a call that is under way looks like this, so that it says nothing in a log without an
    /// end.
    const fn may_be_under_way(self) -> bool {
        match self {
            Self::DecisionWithoutStart | Self::StartWithoutOutcome => true,
            Self::StartWithoutDecision
            | Self::StartAfterDenial
            | Self::OutcomeWithoutStart
            | Self::OutcomeWithoutDecision
            | Self::Repeated
            | Self::RulingContradictsStages => false,
        }
    }

    /// The gap in words.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::DecisionWithoutStart => "approved, but never started",
            Self::StartWithoutOutcome => "started, but no outcome",
            Self::StartWithoutDecision => "started without a decision",
            Self::StartAfterDenial => "started although it was denied",
            Self::OutcomeWithoutStart => "an outcome without a start",
            Self::OutcomeWithoutDecision => "an outcome without a decision",
            Self::Repeated => "a second record of its kind",
            Self::RulingContradictsStages => "the ruling is not what the stages say",
        }
    }
}

/// A call of which a part is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// What is missing.
    pub kind: GapKind,
    /// The call.
    pub call: Id,
    /// The record that shows it.
    pub sequence: u64,
    /// Its line.
    pub line: u64,
}

/// What verification found about one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The log, as it was named.
    pub log: String,
    /// Sequence number of its last record.
    pub records: u64,
    /// Link of its last record.
    pub head: Option<Digest>,
    /// Whether its last record ends a run.
    pub is_ended: bool,
    /// Bytes after the last line feed: a record whose write did not finish.
    pub torn_bytes: u64,
    /// Length up to which a head noted elsewhere covers it; what follows could be cut unseen.
    pub anchored_records: Option<u64>,
    /// Whether there was a ledger to compare with.
    pub has_ledger: bool,
    /// How it differs from what was written.
    pub problems: Vec<Problem>,
    /// Calls of which a part is missing.
    pub gaps: Vec<Gap>,
}

impl Report {
    /// The answer in one word.
    #[must_use]
    pub fn status(&self) -> Status {
        if !self.problems.is_empty() {
            Status::Damaged
        } else if self.gaps.iter().any(|gap| self.is_ended || !gap.kind.may_be_under_way()) {
            Status::Gaps
        } else if self.is_ended && self.torn_bytes == 0 {
            Status::Intact
        } else {
            Status::Open
        }
    }

    /// The report as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "log": self.log,
            "status": self.status(),
            "records": self.records,
            "head": self.head,
            "ended": self.is_ended,
            "torn_bytes": self.torn_bytes,
            "anchored_records": self.anchored_records,
            "ledger": self.has_ledger,
            "problems": self.problems,
            "gaps": self.gaps,
        })
    }

    fn summary(&self) -> &'static str {
        match self.status() {
            Status::Intact => "intact",
            Status::Open => "intact so far; no end record: the session is still open or was killed",
            Status::Gaps => "intact, but calls have a part missing",
            Status::Damaged => "NOT as it was written",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}: {}", escape(&self.log), self.summary())?;
        let head = self.head.map_or_else(|| "none".to_owned(), |head| head.to_string());
        writeln!(formatter, "  {} records, head {head}", self.records)?;
        for problem in &self.problems {
            write!(formatter, "  {}", problem.kind.as_str())?;
            if let Some(line) = problem.line {
                write!(formatter, " (line {line})")?;
            }
            writeln!(formatter, ": {}", escape(&problem.sentence))?;
        }
        for gap in &self.gaps {
            let Gap { kind, call, sequence, line } = gap;
            writeln!(
                formatter,
                "  call {call}: {} (record {sequence}, line {line})",
                kind.sentence()
            )?;
        }
        if self.torn_bytes > 0 {
            writeln!(formatter, "  {} bytes of an unfinished record at the end", self.torn_bytes)?;
        }
        match self.anchored_records {
            Some(records) if records < self.records => writeln!(
                formatter,
                "  the ledger covers {records} records; if later ones were cut, nothing would show it"
            ),
            Some(_) => Ok(()),
            None => {
                writeln!(
                    formatter,
                    "  no ledger: if records were cut at the end, nothing would show it"
                )
            }
        }
    }
}
