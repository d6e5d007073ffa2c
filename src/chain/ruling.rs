//! What comes out of the chain: a judged call, and, once that is on the disk, a denial or the one
//! permission to run it. It decides nothing and starts nothing.
//!
//! INVARIANT: an [`Approved`] is made only against the receipt of its decision.

use super::Chain;
use super::subject::Subject;
use super::verdict::{Denied, reason};
use crate::audit::record::{Body, Stage, Stages, Started};
use crate::audit::{AuditError, AuditWriter, Receipt};
use crate::base::digest::Digest;
use crate::sandbox::SandboxSpec;
use std::sync::Arc;

/// A call that has passed the stages, about which nothing is written down yet.
#[derive(Debug)]
pub struct Judged {
    pub(super) subject: Subject,
    pub(super) stages: Stages,
    /// What else the stages want recorded, before the decision.
    pub(super) notes: Vec<Body>,
    pub(super) denied: bool,
    /// The cell; none for a call that is denied or starts nothing.
    pub(super) spec: Option<Arc<SandboxSpec>>,
}

impl Judged {
    /// The cell of a call that no stage denied, if it needs one. It may be built meanwhile; its program may not start
    /// before there is an [`Approved`].
    #[must_use]
    pub const fn spec(&self) -> Option<&Arc<SandboxSpec>> {
        self.spec.as_ref()
    }

    /// Writes the decision down.
    ///
    /// # Errors
    /// The record could not be made durable; the call may not run.
    pub fn record(self, chain: &Chain, log: &mut AuditWriter) -> Result<Ruling, AuditError> {
        let digest = self.note(log)?;
        let decision = self.decision(chain, digest);
        let receipt = log.append(&decision)?;
        Ok(self.ruling(digest, receipt))
    }

    /// Writes the decision down and, where it allows the call, its start, with one flush: for a call
    /// that starts at once.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn record_start(self, chain: &Chain, log: &mut AuditWriter) -> Result<Ruling, AuditError> {
        if self.denied {
            return self.record(chain, log);
        }
        let digest = self.note(log)?;
        let decision = self.decision(chain, digest);
        let started = Started { call: self.subject.call.id.clone(), sandbox: digest };
        let (receipt, _) = log.append_both(&decision, &Body::Started(started))?;
        Ok(self.ruling(digest, receipt))
    }

    fn note(&self, log: &mut AuditWriter) -> Result<Option<Digest>, AuditError> {
        for note in &self.notes {
            log.append(note).map(drop)?;
        }
        Ok(self.spec.as_deref().map(digest_of))
    }

    fn decision(&self, chain: &Chain, digest: Option<Digest>) -> Body {
        Body::Decision(Box::new(chain.decision_record(&self.subject, &self.stages, digest)))
    }

    fn ruling(self, digest: Option<Digest>, receipt: Receipt) -> Ruling {
        let Self { subject, stages, denied, spec, .. } = self;
        if denied {
            return Ruling::Denied(Box::new(denied_value(&subject, stages, receipt.sequence())));
        }
        let cell = spec.zip(digest).map(|(spec, digest)| PlannedCell { spec, digest });
        Ruling::Approved(Box::new(Approved { subject, cell, receipt, stages }))
    }
}

/// What became of a call.
#[derive(Debug)]
pub enum Ruling {
    /// It may run, once.
    Approved(Box<Approved>),
    /// It may not.
    Denied(Box<Denied>),
}

/// A call whose decision is durable. Only the chain makes one; it is neither copied nor made up, and
/// `tools::execute` takes it by value, so that it is spent once.
#[derive(Debug)]
pub struct Approved {
    subject: Subject,
    cell: Option<PlannedCell>,
    receipt: Receipt,
    stages: Stages,
}

/// A cell that was decided on, and the digest under which it stands in the records.
#[derive(Debug)]
struct PlannedCell {
    spec: Arc<SandboxSpec>,
    digest: Digest,
}

impl Approved {
    /// The call and what is known about it.
    #[must_use]
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The digest under which the cell that was decided on stands in the records; none for a call that
    /// starts nothing.
    #[must_use]
    pub fn spec_digest(&self) -> Option<Digest> {
        self.cell.as_ref().map(|cell| cell.digest)
    }

    /// The proof of the decision.
    #[must_use]
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// What each stage said.
    #[must_use]
    pub const fn stages(&self) -> &Stages {
        &self.stages
    }

    /// The parts, for the one execution.
    #[must_use]
    pub fn into_parts(self) -> (Subject, Option<Arc<SandboxSpec>>, Receipt) {
        (self.subject, self.cell.map(|cell| cell.spec), self.receipt)
    }
}

/// The digest under which a cell's specification stands in the records.
fn digest_of(spec: &SandboxSpec) -> Digest {
    // The types hold nothing that JSON cannot; an empty text would still be a digest that no
    // specification has.
    Digest::of(&serde_json::to_vec(spec).unwrap_or_default())
}

fn denied_value(subject: &Subject, stages: Stages, sequence: u64) -> Denied {
    let decisive = stages.denial().map(|(stage, record)| (stage, record.reasons.first().cloned()));
    let (stage, first) = decisive.unwrap_or((Stage::Abort, None));
    Denied {
        call: subject.call.id.clone(),
        tool: subject.tool().to_owned(),
        stage,
        reason: first.unwrap_or_else(|| reason("denied", "a stage denied without a reason")),
        stages,
        sequence,
    }
}
