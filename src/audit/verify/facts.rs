//! What verification needs to know of each line, and no more: a long log must fit in memory.

use crate::audit::ledger::Head;
use crate::audit::read::{Lines, RawLine};
use crate::audit::record::{Body, Record, Ruling};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use std::io::BufRead;

/// One complete line.
#[derive(Debug)]
pub(super) struct Fact {
    /// Line number, from 1.
    pub(super) line: u64,
    /// Digest of its bytes.
    pub(super) link: Digest,
    /// What it claims, or why it cannot be read.
    pub(super) claim: Result<Claim, String>,
}

/// What a line says of itself.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) sequence: u64,
    pub(super) previous: Digest,
    pub(super) meaning: Meaning,
}

/// The part of a record that verification compares.
#[derive(Debug)]
pub(super) enum Meaning {
    Session(Id),
    Decision { call: Id, ruling: Ruling, is_consistent: bool },
    Started(Id),
    Outcome(Id),
    Checkpoint(Head),
    Recovered,
    End,
    Other,
}

/// A whole log.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) lines: Vec<Fact>,
    /// Bytes after the last line feed.
    pub(super) torn_bytes: u64,
}

impl Fact {
    pub(super) fn is_end(&self) -> bool {
        matches!(&self.claim, Ok(Claim { meaning: Meaning::End, .. }))
    }

    /// Whether a run may begin with this line.
    pub(super) fn begins_run(&self) -> bool {
        matches!(
            &self.claim,
            Ok(Claim { meaning: Meaning::Session(_) | Meaning::Recovered, .. }) | Err(_)
        )
    }

    pub(super) fn claimed_sequence(&self) -> Option<u64> {
        self.claim.as_ref().ok().map(|claim| claim.sequence)
    }

    pub(super) fn claimed_previous(&self) -> Option<Digest> {
        self.claim.as_ref().ok().map(|claim| claim.previous)
    }
}

impl Facts {
    /// The session that the log says it is of, with the line that says it.
    pub(super) fn session(&self) -> Option<(u64, &Id)> {
        self.lines.iter().find_map(|fact| match &fact.claim {
            Ok(Claim { meaning: Meaning::Session(session), .. }) => Some((fact.line, session)),
            Ok(_) | Err(_) => None,
        })
    }
}

/// Reads all lines.
pub(super) fn collect<R: BufRead>(lines: Lines<R>) -> std::io::Result<Facts> {
    let mut facts = Facts::default();
    for line in lines {
        let line = line?;
        if line.is_complete {
            facts.lines.push(fact_of(&line));
        } else {
            facts.torn_bytes = u64::try_from(line.bytes.len()).unwrap_or(u64::MAX);
        }
    }
    Ok(facts)
}

fn fact_of(line: &RawLine) -> Fact {
    let claim = if line.is_too_long {
        Err("longer than any record".to_owned())
    } else {
        Record::from_line(&line.bytes).map(claim_of)
    };
    Fact { line: line.number, link: line.link(), claim }
}

fn claim_of(record: Record) -> Claim {
    let meaning = match record.body {
        Body::Session(body) => Meaning::Session(body.session),
        Body::Decision(body) => Meaning::Decision {
            is_consistent: body.ruling == body.stages.ruling(),
            call: body.call,
            ruling: body.ruling,
        },
        Body::Started(body) => Meaning::Started(body.call),
        Body::Outcome(body) => Meaning::Outcome(body.call),
        Body::Checkpoint(body) => {
            Meaning::Checkpoint(Head { records: body.records, link: body.head })
        }
        Body::Recovered(_) => Meaning::Recovered,
        Body::End(_) => Meaning::End,
        Body::Rejected(_)
        | Body::Grant(_)
        | Body::Network(_)
        | Body::Hook(_)
        | Body::Guardian(_)
        | Body::Agent(_)
        | Body::Retry(_)
        | Body::Repair(_) => Meaning::Other,
    };
    Claim { sequence: record.seq, previous: record.prev, meaning }
}
