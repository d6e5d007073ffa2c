//! Verification: is this log what was written? Answered from the bytes on disk and the heads that
//! others hold; the log's own word for anything is recomputed.
//!
//! `facts` takes the lines apart, `chain` compares links, `pairing` looks for calls with a missing
//! half, `report` says it.

mod chain;
mod facts;
mod pairing;
mod report;

pub use report::{Gap, GapKind, Problem, ProblemKind, Report, Status};

use crate::audit::ledger::{Head, HeadEvent, Ledger, LedgerEntry};
use crate::audit::read::Lines;
use crate::audit::{ledger_path, log_session};
use crate::base::ids::Id;
use crate::base::jsonl::JsonlError;
use facts::{Facts, collect};
use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;

/// What a log is held against.
#[derive(Debug, Clone, Default)]
pub struct Anchors {
    /// The session that the log must be of.
    pub session: Option<Id>,
    /// The ledger. `None`: there is none to compare with.
    pub ledger: Option<Ledger>,
    /// A head noted elsewhere.
    pub head: Option<Head>,
}

impl Anchors {
    /// The session in the log's file name, and the ledger in its directory.
    ///
    /// # Errors
    /// [`JsonlError`] if there is a ledger that cannot be read.
    pub fn beside(log: &Path) -> Result<Self, JsonlError> {
        let directory = log.parent().unwrap_or(Path::new("."));
        let ledger = Ledger::read(&ledger_path(directory))?;
        Ok(Self { session: log_session(log), ledger, head: None })
    }

    fn entries(&self) -> Vec<&LedgerEntry> {
        match (&self.ledger, &self.session) {
            (Some(ledger), Some(session)) => ledger.of(session).collect(),
            (Some(_) | None, _) => Vec::new(),
        }
    }

    /// All heads that are known, shortest log first.
    fn heads(&self) -> Vec<Head> {
        let mut heads: Vec<_> = self.entries().iter().map(|entry| entry.head).collect();
        heads.extend(self.head);
        heads.sort_by_key(|head| head.records);
        heads.dedup();
        heads
    }
}

/// Verifies the log at `path`.
///
/// # Errors
/// [`JsonlError`] if it cannot be read at all; a missing log is a report, not an error.
pub fn verify(path: &Path, anchors: &Anchors) -> Result<Report, JsonlError> {
    let facts = match Lines::open(path) {
        Ok(lines) => collect(lines),
        Err(JsonlError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(report_missing(path, anchors));
        }
        Err(error) => return Err(error),
    };
    let facts =
        facts.map_err(|source| JsonlError::Io { action: "read", path: path.to_owned(), source })?;
    Ok(examine(&path.to_string_lossy(), facts, anchors))
}

/// Verifies a log that is at hand as bytes.
///
/// # Errors
/// The reader's.
pub fn verify_reader(
    name: &str,
    reader: impl BufRead,
    anchors: &Anchors,
) -> std::io::Result<Report> {
    collect(Lines::new(reader)).map(|facts| examine(name, facts, anchors))
}

/// Verifies every log in `directory` and every log that its ledger knows, sorted by session.
///
/// # Errors
/// [`JsonlError`] if the directory, the ledger or a log cannot be read.
pub fn verify_all(directory: &Path) -> Result<Vec<Report>, JsonlError> {
    let ledger = Ledger::read(&ledger_path(directory))?;
    let mut sessions: BTreeSet<Id> = crate::audit::sessions(directory)?.into_iter().collect();
    if let Some(ledger) = &ledger {
        sessions.extend(ledger.entries.iter().map(|entry| entry.session.clone()));
    }
    let verify_one = |session: Id| {
        let path = crate::audit::log_path(directory, &session);
        let ledger = ledger.as_ref().map(|ledger| ledger.only(&session));
        verify(&path, &Anchors { session: Some(session), ledger, head: None })
    };
    sessions.into_iter().map(verify_one).collect()
}

fn examine(name: &str, facts: Facts, anchors: &Anchors) -> Report {
    let heads = anchors.heads();
    let mut chain = chain::check(&facts, &heads);
    chain::check_meaning(&facts, &mut chain);
    chain::check_heads(&heads, &mut chain);
    check_anchors(&facts, anchors, &mut chain);
    let gaps = pairing::gaps(&facts, &chain);
    let last = chain.last(&facts);
    Report {
        log: name.to_owned(),
        records: last.map_or(0, |(sequence, _)| sequence),
        head: last.map(|(_, fact)| fact.link),
        is_ended: last.is_some_and(|(_, fact)| fact.is_end()),
        torn_bytes: facts.torn_bytes,
        anchored_records: heads.last().map(|head| head.records),
        has_ledger: anchors.ledger.is_some(),
        problems: chain.into_problems(),
        gaps,
    }
}

/// What the ledger says about the log as a whole.
fn check_anchors(facts: &Facts, anchors: &Anchors, chain: &mut chain::Chain) {
    if let Some((line, problem)) = anchors.ledger.as_ref().and_then(|held| held.damage.as_ref()) {
        let sentence = format!("line {line} of the ledger: {problem}");
        chain.report(ProblemKind::LedgerDamaged, None, None, sentence);
    }
    if let (Some(wanted), Some((line, found))) = (&anchors.session, facts.session())
        && found != wanted
    {
        let sentence = format!("it is the log of session {found}, not of {wanted}");
        chain.report(ProblemKind::Misplaced, None, Some(line), sentence);
    }
    let entries = anchors.entries();
    let is_known = anchors.ledger.is_none() || anchors.session.is_none() || !entries.is_empty();
    if !is_known && !facts.lines.is_empty() {
        let sentence = "the ledger has no entry for this log".to_owned();
        chain.report(ProblemKind::Unledgered, None, None, sentence);
    }
    if let Some(entry) = entries.last().filter(|entry| entry.event == HeadEvent::Ended) {
        chain.check_nothing_follows(entry.head.records, facts);
    }
}

fn report_missing(path: &Path, anchors: &Anchors) -> Report {
    let heads = anchors.heads();
    let records = heads.last().map_or(0, |head| head.records);
    let sentence = if heads.is_empty() {
        "the log does not exist".to_owned()
    } else {
        format!("the log does not exist; it held {records} records")
    };
    let problem = Problem { kind: ProblemKind::Missing, sequence: None, line: None, sentence };
    Report {
        log: path.to_string_lossy().into_owned(),
        records: 0,
        head: None,
        is_ended: false,
        torn_bytes: 0,
        anchored_records: heads.last().map(|head| head.records),
        has_ledger: anchors.ledger.is_some(),
        problems: vec![problem],
        gaps: Vec::new(),
    }
}
