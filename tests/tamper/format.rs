//! The format page says what the code does, and the bytes of version 1 do not change unnoticed.

use crate::records::*;
use stoplog::audit::record::Record;
use stoplog::audit::verify::{GapKind, ProblemKind};

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/audit-format.md");
    std::fs::read_to_string(path).unwrap()
}

/// A `denied` decision as version 1 writes it. If this test fails, old logs cannot be read: add a
/// version instead of changing it.
#[test]
fn the_bytes_of_a_decision_are_those_of_version_1() {
    let line = r#"{"v":1,"seq":2,"time":"2024-03-09T16:00:00.002Z","prev":"sha256:0000000000000000000000000000000000000000000000000000000000000000","kind":"decision","call":"018f0000-0000-7000-8000-000000000001","provider_id":"call_1","origin":"main","role":"main","tool":"bash","arguments":{"command":"git push"},"arguments_hash":"sha256:0000000000000000000000000000000000000000000000000000000000000000","redacted":1,"resolved":{"programs":[{"program":"git","arguments":["push"],"known":true}]},"policy":"sha256:0000000000000000000000000000000000000000000000000000000000000000","ruling":"denied","stages":{"abort":{"verdict":"pass","duration_us":1},"role":{"verdict":"pass","duration_us":1},"hooks":{"verdict":"skipped","duration_us":0},"firewall":{"verdict":"deny","reasons":[{"code":"command-denied","rule":"no-push","file":"base.toml","line":12,"sentence":"pushing is for people"}],"duration_us":9},"guardian":{"verdict":"not-reached","duration_us":0},"permission":{"verdict":"not-reached","duration_us":0}}}"#;
    let record = Record::from_line(line.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(record.to_line().unwrap()).unwrap(), line);
    let more = line.replacen("\"origin\"", "\"new_key\":{\"a\":1},\"origin\"", 1);
    assert_eq!(Record::from_line(more.as_bytes()).unwrap(), record, "unknown keys are ignored");
    for (from, to) in
        [("\"v\":1", "\"v\":2"), ("\"decision\"", "\"decree\""), ("\"pass\"", "\"allow\"")]
    {
        Record::from_line(line.replacen(from, to, 1).as_bytes()).unwrap_err();
    }
}

#[test]
fn the_page_names_every_key_that_is_written() {
    let page = page();
    let place = Place::with_run();
    for line in split(&place.bytes()) {
        let record = value(&line);
        assert!(page.contains(&format!("`{}`", record["kind"].as_str().unwrap())));
        for key in record.as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{key}`")), "`{key}` of {}", record["kind"]);
        }
    }
}

#[test]
fn the_page_names_every_answer_of_verify() {
    let page = page();
    for kind in [
        ProblemKind::Edited,
        ProblemKind::Removed,
        ProblemKind::Reordered,
        ProblemKind::Duplicated,
        ProblemKind::Inserted,
        ProblemKind::Appended,
        ProblemKind::Rewritten,
        ProblemKind::Cut,
        ProblemKind::Missing,
        ProblemKind::Misplaced,
        ProblemKind::Unledgered,
        ProblemKind::LedgerDamaged,
    ] {
        assert!(page.contains(&format!("| `{}` |", kind.as_str())), "{kind:?}");
    }
    for kind in [
        GapKind::DecisionWithoutStart,
        GapKind::StartWithoutOutcome,
        GapKind::StartWithoutDecision,
        GapKind::StartAfterDenial,
        GapKind::OutcomeWithoutStart,
        GapKind::OutcomeWithoutDecision,
        GapKind::Repeated,
        GapKind::RulingContradictsStages,
    ] {
        let name = serde_json::to_value(kind).unwrap();
        assert!(page.contains(&format!("`{}`", name.as_str().unwrap())), "{kind:?}");
    }
}
