//! Calls of which a part is missing.

use crate::records::*;
use serde_json::json;
use stoplog::audit::record::{Rejected, RejectedBecause, Ruling};
use stoplog::audit::verify::GapKind;
use stoplog::audit::{Body, Status};
use stoplog::base::digest::Digest;
use stoplog::base::ids::Id;

/// A gap and the record that shows it.
type Expected = (GapKind, u64);

fn denied(call: &Id) -> Body {
    Body::Decision(Box::new(decision_with(call, json!({"command": "git push"}), denying())))
}

fn rejected(call: &Id) -> Body {
    Body::Rejected(Box::new(Rejected {
        call: call.clone(),
        provider_id: text(""),
        origin: text("main"),
        tool: text("nope"),
        because: RejectedBecause::UnknownTool,
        told: text("tool `nope` is not available"),
        arguments: text("{}"),
        arguments_hash: Digest::of(b"{}"),
    }))
}

#[test]
fn every_missing_half_is_listed_with_its_record() {
    let call = Id::new();
    let mut lying = decision_with(&call, json!({}), denying());
    lying.ruling = Ruling::Approved;
    let lying = Body::Decision(Box::new(lying));
    let table: [(Vec<Body>, Vec<Expected>); 12] = [
        (vec![decision(&call), started(&call), outcome(&call)], vec![]),
        (vec![denied(&call)], vec![]),
        (vec![rejected(&call)], vec![]),
        (vec![decision(&call)], vec![(GapKind::DecisionWithoutStart, 2)]),
        (vec![decision(&call), started(&call)], vec![(GapKind::StartWithoutOutcome, 3)]),
        (
            vec![started(&call), outcome(&call)],
            vec![(GapKind::StartWithoutDecision, 2), (GapKind::OutcomeWithoutDecision, 3)],
        ),
        (vec![decision(&call), outcome(&call)], vec![(GapKind::OutcomeWithoutStart, 3)]),
        (
            vec![outcome(&call)],
            vec![(GapKind::OutcomeWithoutDecision, 2), (GapKind::OutcomeWithoutStart, 2)],
        ),
        (vec![denied(&call), started(&call), outcome(&call)], vec![(GapKind::StartAfterDenial, 3)]),
        (
            vec![decision(&call), started(&call), started(&call), outcome(&call)],
            vec![(GapKind::Repeated, 4)],
        ),
        (
            vec![started(&call), decision(&call), outcome(&call)],
            vec![(GapKind::StartWithoutDecision, 2)],
        ),
        (
            vec![lying.clone(), started(&call), outcome(&call)],
            vec![(GapKind::RulingContradictsStages, 2)],
        ),
    ];
    for (mut bodies, expected) in table {
        let place = Place::new();
        bodies.push(end());
        place.write(&bodies);
        let report = place.verify();
        let found: Vec<_> = report.gaps.iter().map(|gap| (gap.kind, gap.sequence)).collect();
        assert_eq!(found, expected, "{report}");
        let status = if expected.is_empty() { Status::Intact } else { Status::Gaps };
        assert_eq!(report.status(), status, "{report}");
        assert!(report.gaps.iter().all(|gap| gap.line == gap.sequence && gap.call == call));
    }
}

#[test]
fn a_report_is_the_same_for_people_and_for_scripts() {
    let place = Place::new();
    let call = Id::new();
    place.write(&[decision(&call), end()]);
    let report = place.verify();
    let json = report.to_json();
    assert_eq!(json["status"], "gaps");
    assert_eq!(json["gaps"][0]["kind"], "decision-without-start");
    assert_eq!(json["gaps"][0]["sequence"], 2);
    assert_eq!(json["records"], 3);
    let shown = report.to_string();
    assert!(shown.contains(&format!("call {call}: approved, but never started (record 2")));
}
