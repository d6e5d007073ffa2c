//! The writer: one at a time, in order, continued across runs.

use crate::records::*;
use serde_json::json;
use stoplog::audit::record::Retry;
use stoplog::audit::writer::CHECKPOINT_RECORDS;
use stoplog::audit::{AuditError, Body, Redactor, Status};
use stoplog::base::ids::Id;
use stoplog::base::jsonl::JsonlError;

#[test]
fn a_receipt_names_the_record_and_its_link() {
    let place = Place::new();
    let mut writer = place.open().unwrap();
    let first = writer.append(&session(&place.session)).unwrap();
    let second = writer.append(&decision(&Id::new())).unwrap();
    assert_eq!((first.sequence(), second.sequence()), (1, 2));
    assert_eq!(second.link(), writer.head().link);
    let lines = split(&place.bytes());
    assert_eq!(value(&lines[1])["prev"], json!(first.link()));
}

#[test]
fn a_run_begins_with_its_session_and_ends_with_its_end() {
    let place = Place::new();
    let mut writer = place.open().unwrap();
    let out_of_place = |result: Result<_, AuditError>| {
        assert!(matches!(result, Err(AuditError::OutOfPlace { .. })), "{result:?}");
    };
    out_of_place(writer.append(&end()));
    writer.append(&session(&place.session)).unwrap();
    out_of_place(writer.append(&session(&place.session)));
    writer.append(&end()).unwrap();
    out_of_place(writer.append(&decision(&Id::new())));
    drop(writer);
    assert_eq!(place.verify().status(), Status::Intact);
}

#[test]
fn a_second_writer_of_the_log_is_refused() {
    let place = Place::new();
    let _first = place.open().unwrap();
    let error = place.open().unwrap_err();
    assert!(matches!(error, AuditError::File(JsonlError::Locked { .. })), "{error}");
}

#[test]
fn a_damaged_or_cut_log_is_left_alone_and_not_continued() {
    let place = Place::with_run();
    let text = String::from_utf8(place.bytes()).unwrap();
    for damaged in [String::new(), text.replacen("ada", "bob", 1)] {
        overwrite(&place.log(), damaged.as_bytes());
        let error = place.open().unwrap_err();
        assert!(matches!(error, AuditError::Damaged(_)), "{error}");
        assert_eq!(place.bytes(), damaged.as_bytes(), "left alone");
    }
    overwrite(&place.log(), text.as_bytes());
    place.run();
    assert_eq!(place.verify().status(), Status::Intact, "control: as it was, it goes on");
}

#[test]
fn a_log_is_not_continued_when_the_ledger_is_gone() {
    let place = Place::with_run();
    std::fs::remove_file(place.ledger()).unwrap();
    let report = place.verify();
    assert!(!report.has_ledger && report.to_string().contains("no ledger"), "{report}");
    let error = place.open().unwrap_err();
    assert!(matches!(error, AuditError::Damaged(_)), "{error}");
}

#[test]
fn the_policy_says_how_often_a_checkpoint_comes() {
    let place = Place::new();
    let mut writer = place.open().unwrap().with_checkpoint_every(3);
    writer.append(&session(&place.session)).unwrap();
    for _ in 0..4 {
        writer.append(&decision(&Id::new())).unwrap();
    }
    drop(writer);
    let kinds: Vec<_> =
        split(&place.bytes()).iter().map(|line| value(line)["kind"].clone()).collect();
    let expected = ["session", "decision", "decision", "checkpoint", "decision", "decision"];
    assert_eq!(kinds, expected);
}

#[test]
fn checkpoints_note_the_head_in_the_ledger() {
    let place = Place::new();
    let calls: Vec<_> = (0..CHECKPOINT_RECORDS).map(|_| decision(&Id::new())).collect();
    place.write(&calls);
    let report = place.verify();
    assert_eq!(report.anchored_records, Some(CHECKPOINT_RECORDS + 1), "{report}");
    assert_eq!(report.records, CHECKPOINT_RECORDS + 2);
    assert!(report.problems.is_empty(), "{report}");
}

#[test]
fn a_record_that_no_reader_would_accept_stops_the_log_before_it_is_written() {
    let place = Place::new();
    let mut writer = place.open().unwrap();
    writer.append(&session(&place.session)).unwrap();
    let many = vec!["x".repeat(60_000); 300];
    let huge = decision_with(&Id::new(), json!({ "many": many }), approving());
    let error = writer.append(&Body::Decision(Box::new(huge))).unwrap_err();
    assert!(matches!(error, AuditError::TooLarge { .. }), "{error}");
    let next = writer.append(&decision(&Id::new())).unwrap_err();
    assert!(matches!(next, AuditError::Stopped), "{next}");
    writer.append(&end()).unwrap();
    assert_eq!(place.verify().status(), Status::Intact);
}

#[test]
fn several_sessions_share_one_ledger() {
    let place = Place::new();
    let directory = place.directory.path();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let id = Id::new();
                for _ in 0..5 {
                    let mut writer = open_in(directory, &id).unwrap();
                    writer.append(&session(&id)).unwrap();
                    writer.append(&end()).unwrap();
                }
            });
        }
    });
    let reports = stoplog::audit::verify_all(directory).unwrap();
    assert_eq!(reports.len(), 4);
    for report in reports {
        assert_eq!((report.status(), report.records), (Status::Intact, 10), "{report}");
    }
}

#[test]
fn secrets_are_redacted_before_anything_is_written_and_the_hash_is_of_the_original() {
    let place = Place::new();
    let key = format!("AKIA{}", "IOSFODNN7EXAMPLE");
    let arguments = json!({"command": format!("AWS_KEY={key} run"), "password": "hunter2"});
    let decided = decision_with(&Id::new(), arguments, approving());
    let hash = decided.arguments_hash;
    let retry = Retry {
        model: text("m"),
        attempt: 1,
        cause: text("401 for https://me:hunter2@host/v1, ACME-77"),
        delay_ms: 1,
    };
    let more = [regex::Regex::new("ACME-[0-9]+").unwrap()];
    let mut writer = stoplog::audit::AuditWriter::open(
        place.directory.path(),
        &place.session,
        Redactor::new(&more),
        stoplog::base::clock::Clock::fixed(1),
    )
    .unwrap();
    writer.append(&session(&place.session)).unwrap();
    writer.append(&Body::Decision(Box::new(decided))).unwrap();
    writer.append(&Body::Retry(retry)).unwrap();
    let written = String::from_utf8(place.bytes()).unwrap();
    for secret in [key.as_str(), "hunter2", "ACME-77"] {
        assert!(!written.contains(secret), "{secret} in {written}");
    }
    let record = value(&split(&place.bytes())[1]);
    assert_eq!(record["arguments_hash"], json!(hash));
    assert_eq!(record["redacted"], json!(2));
    assert!(place.verify().problems.is_empty());
}
