//! Text from outside cannot make a record or a line on a terminal.

use crate::records::*;
use serde_json::json;
use std::io::BufReader;
use stoplog::audit::query::{Filter, Rows};
use stoplog::audit::read::Lines;
use stoplog::audit::record::{HostRecord, PathRecord, ProgramRecord, Resolved, UnresolvedRecord};
use stoplog::audit::show::{call_text, find_calls, log_line};
use stoplog::audit::{Body, Status, verify};
use stoplog::base::ids::Id;
use stoplog::base::text::is_hidden;

const HOSTILE: &str = "a\n{\"v\":1,\"seq\":3,\"kind\":\"end\"}\n\r\u{1b}[2K\u{1b}[1A\u{202e}evil\u{9b}31m\u{2028}\u{7f}\u{feff}\0";

/// A decision in which every text is hostile.
fn hostile(call: &Id) -> Body {
    let mut stages = denying();
    let reason = &mut stages.firewall.reasons[0];
    reason.code = text(HOSTILE);
    reason.rule = Some(text(HOSTILE));
    reason.file = Some(text(HOSTILE));
    reason.sentence = text(HOSTILE);
    reason.subject = Some(text(HOSTILE));
    reason.would_allow = Some(text(HOSTILE));
    let mut decision = decision_with(call, json!({"command": HOSTILE, HOSTILE: [HOSTILE]}), stages);
    decision.provider_id = text(HOSTILE);
    decision.origin = text(HOSTILE);
    decision.role = text(HOSTILE);
    decision.tool = text(HOSTILE);
    decision.resolved = Resolved {
        programs: vec![ProgramRecord {
            program: text(HOSTILE),
            arguments: vec![text(HOSTILE)],
            known: false,
            via: vec![text(HOSTILE)],
            inline_code: Some(text(HOSTILE)),
        }],
        paths: vec![PathRecord {
            path: text(HOSTILE),
            real: Some(text(HOSTILE)),
            access: "write".into(),
            is_pattern: true,
        }],
        hosts: vec![HostRecord { host: text(HOSTILE), port: Some(1) }],
        unresolved: vec![UnresolvedRecord { reason: text(HOSTILE), text: text(HOSTILE) }],
    };
    Body::Decision(Box::new(decision))
}

fn hostile_place() -> (Place, Id) {
    let place = Place::new();
    let call = Id::new();
    place.write(&[hostile(&call), end()]);
    (place, call)
}

#[test]
fn hostile_text_stays_inside_its_record() {
    let (place, _) = hostile_place();
    let lines = split(&place.bytes());
    assert_eq!(lines.len(), 3);
    assert_eq!(place.verify().status(), Status::Intact);
    let record = value(&lines[1]);
    assert_eq!(record["arguments"]["command"], HOSTILE, "stored as it was");
    let shown = String::from_utf8(lines.concat()).unwrap();
    let hidden: Vec<_> = shown.chars().filter(|c| *c != '\n' && is_hidden(*c)).collect();
    assert!(hidden.is_empty(), "the file itself can be shown: {hidden:?}");
}

#[test]
fn hostile_text_is_escaped_wherever_it_is_shown() {
    let (place, call) = hostile_place();
    let filter = Filter::default();
    for row in Rows::new(Lines::open(&place.log()).unwrap(), &filter) {
        let row = row.unwrap();
        for line in [log_line(&row), row.to_json_line().unwrap()] {
            assert!(!line.chars().any(is_hidden), "{line:?}");
        }
    }
    let found = find_calls(Lines::open(&place.log()).unwrap(), call.as_str()).unwrap();
    let shown = call_text(&found[0]);
    assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{shown:?}");
    assert!(shown.lines().all(|line| !line.starts_with('{')), "no line of its own: {shown}");
    assert_eq!(shown.lines().filter(|line| line.starts_with("decision ")).count(), 1);
}

#[test]
fn a_hostile_file_name_or_line_is_escaped_in_the_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x\u{1b}[2J\n.jsonl");
    overwrite(&path, "{\"v\":1,\"\u{1b}[2J\u{202e}\":1,\"\u{1b}[2J\u{202e}\":1}\n".as_bytes());
    let report = verify(&path, &stoplog::audit::Anchors::beside(&path).unwrap()).unwrap();
    assert_eq!(report.status(), Status::Damaged);
    let shown = report.to_string();
    assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{shown:?}");
}

#[test]
fn a_record_with_a_repeated_key_is_no_record() {
    let place = Place::with_run();
    let text = String::from_utf8(place.bytes()).unwrap();
    let forged = text.replacen("\"seq\":2,", "\"seq\":2,\"seq\":2,", 1);
    let report = verify_bytes(forged.as_bytes(), &place.anchors());
    assert_eq!(report.problems[0].sequence, Some(2), "{report}");
    let filter = Filter::default();
    let rows: Vec<_> = Rows::new(Lines::new(BufReader::new(forged.as_bytes())), &filter).collect();
    assert_eq!(rows.iter().filter(|row| row.is_err()).count(), 1);
    assert_eq!(rows.len(), 5, "the rest is still found");
}
