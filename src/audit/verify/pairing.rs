//! Calls of which a part is missing: every effect must have a decision before it and an outcome
//! after it.

use super::chain::Chain;
use super::facts::{Facts, Meaning};
use super::report::{Gap, GapKind};
use crate::audit::record::Ruling;
use crate::base::ids::Id;
use std::collections::BTreeMap;

/// Sequence and line of a record.
type Place = (u64, u64);

#[derive(Debug, Default)]
struct Call {
    decision: Option<(Place, Ruling)>,
    started: Option<Place>,
    outcome: Option<Place>,
}

impl Call {
    /// Approved, and nothing came of it yet.
    fn is_pending(&self) -> bool {
        let is_approved = self.decision.is_some_and(|(_, ruling)| ruling == Ruling::Approved);
        is_approved && self.started.is_none() && self.outcome.is_none()
    }
}

/// The gaps, in the order of the records that show them.
pub(super) fn gaps(facts: &Facts, chain: &Chain) -> Vec<Gap> {
    let mut calls: BTreeMap<&Id, Call> = BTreeMap::new();
    let mut gaps = Vec::new();
    for (sequence, fact) in chain.records(facts) {
        let Ok(claim) = &fact.claim else { continue };
        let place = (sequence, fact.line);
        match &claim.meaning {
            Meaning::Decision { call, ruling, is_consistent } => {
                let known = calls.entry(call).or_default();
                let seen = known.decision.replace((place, *ruling)).is_some();
                note(&mut gaps, seen, GapKind::Repeated, call, place);
                note(&mut gaps, !is_consistent, GapKind::RulingContradictsStages, call, place);
            }
            Meaning::Started(call) => {
                let known = calls.entry(call).or_default();
                let seen = known.started.replace(place).is_some();
                note(&mut gaps, seen, GapKind::Repeated, call, place);
                let ruling = known.decision.map(|(_, ruling)| ruling);
                note(&mut gaps, ruling.is_none(), GapKind::StartWithoutDecision, call, place);
                let denied = ruling == Some(Ruling::Denied);
                note(&mut gaps, denied, GapKind::StartAfterDenial, call, place);
            }
            Meaning::Outcome(call) => {
                let known = calls.entry(call).or_default();
                let seen = known.outcome.replace(place).is_some();
                note(&mut gaps, seen, GapKind::Repeated, call, place);
                let undecided = known.decision.is_none();
                note(&mut gaps, undecided, GapKind::OutcomeWithoutDecision, call, place);
                let unstarted = known.started.is_none();
                note(&mut gaps, unstarted, GapKind::OutcomeWithoutStart, call, place);
            }
            // What was approved and had not started when a process died is decided anew.
            Meaning::Session(_) => calls.retain(|_, known| !known.is_pending()),
            Meaning::Checkpoint(_) | Meaning::Recovered | Meaning::End | Meaning::Other => {}
        }
    }
    for (call, known) in calls {
        note_missing_half(&mut gaps, call, &known);
    }
    gaps.sort_by_key(|gap| gap.sequence);
    gaps
}

fn note_missing_half(gaps: &mut Vec<Gap>, call: &Id, known: &Call) {
    if let Some((place, _)) = known.decision.filter(|_| known.is_pending()) {
        note(gaps, true, GapKind::DecisionWithoutStart, call, place);
    }
    if let (Some(place), None) = (known.started, known.outcome) {
        note(gaps, true, GapKind::StartWithoutOutcome, call, place);
    }
}

fn note(gaps: &mut Vec<Gap>, holds: bool, kind: GapKind, call: &Id, place: Place) {
    if holds {
        let (sequence, line) = place;
        gaps.push(Gap { kind, call: call.clone(), sequence, line });
    }
}
