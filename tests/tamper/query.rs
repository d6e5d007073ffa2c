//! Questions: filters, one call in words, the table.

use crate::records::*;
use serde_json::json;
use stoplog::audit::query::{Filter, Rows, parse_time};
use stoplog::audit::read::Lines;
use stoplog::audit::record::*;
use stoplog::audit::show::{LOG_HEADER, call_text, find_calls, log_line};
use stoplog::audit::{Body, Status};
use stoplog::base::digest::Digest;
use stoplog::base::ids::Id;
use stoplog::call::effects::{
    Access, CommandUse, Effects, HostUse, PathOrigin, PathUse, Span, Unresolved, UnresolvedReason,
    Word,
};

fn effects() -> Effects {
    Effects {
        commands: vec![CommandUse {
            program: Word::Known("/usr/bin/git".into()),
            arguments: vec![Word::Known("push".into()), Word::Known("a b".into())],
            assignments: Vec::new(),
            via: vec!["timeout".into()],
            stays_here: false,
            inline_code: None,
            span: Span::default(),
        }],
        function_calls: Vec::new(),
        assignments: Vec::new(),
        paths: vec![PathUse {
            path: "/w/src/a.rs".into(),
            access: Access::Write,
            origin: PathOrigin::ToolArgument,
            is_pattern: false,
            span: Span::default(),
        }],
        hosts: vec![HostUse {
            host: "api.example.org".into(),
            port: Some(443),
            span: Span::default(),
        }],
        unresolved: vec![Unresolved {
            reason: UnresolvedReason::ProgramWord,
            text: "$x".into(),
            span: Span::default(),
        }],
    }
}

/// One approved call, one denied one with effects, one rejected request, one connection.
fn place() -> (Place, Id, Id) {
    let place = Place::new();
    let (approved, denied) = (Id::new(), Id::new());
    let mut push = decision_with(&denied, json!({"command": "timeout 5 git push"}), denying());
    push.resolved = Resolved::from(&effects());
    push.role = text("reviewer");
    let rejected = Rejected {
        call: Id::new(),
        provider_id: text(""),
        origin: text("main"),
        tool: text("nope"),
        because: RejectedBecause::UnknownTool,
        told: text("tool `nope` is not available"),
        arguments: text("{}"),
        arguments_hash: Digest::of(b"{}"),
    };
    let network = Network {
        call: Some(approved.clone()),
        host: text("db.example.org"),
        port: 443,
        address: None,
        verdict: NetworkVerdict::Denied,
        code: text("host-denied"),
        rule: Some(text("no-net")),
        bytes_sent: 0,
        bytes_received: 0,
    };
    place.write(&[
        decision(&approved),
        started(&approved),
        Body::Network(Box::new(network)),
        outcome(&approved),
        Body::Decision(Box::new(push)),
        Body::Rejected(Box::new(rejected)),
        end(),
    ]);
    assert_eq!(place.verify().status(), Status::Intact);
    (place, approved, denied)
}

fn found(place: &Place, filter: &Filter) -> Vec<u64> {
    let rows = Rows::new(Lines::open(&place.log()).unwrap(), filter);
    rows.map(|row| row.unwrap().record.seq).collect()
}

#[test]
fn each_condition_finds_its_records() {
    let (place, approved, _) = place();
    let none = Filter::default;
    let some = |word: &str| Some(word.to_owned());
    let glob = |pattern: &str| Some(globset::Glob::new(pattern).unwrap().compile_matcher());
    let table = [
        (none(), vec![1, 2, 3, 4, 5, 6, 7, 8]),
        (Filter { kinds: vec!["outcome".into(), "end".into()], ..none() }, vec![5, 8]),
        (Filter { ruling: Some(Ruling::Denied), ..none() }, vec![4, 6, 7]),
        (Filter { ruling: Some(Ruling::Approved), ..none() }, vec![2]),
        (Filter { stage: Some(Stage::Firewall), ..none() }, vec![6]),
        (Filter { stage: Some(Stage::Role), ..none() }, vec![]),
        (Filter { code: some("command-denied"), ..none() }, vec![6]),
        (Filter { code: some("host-denied"), ..none() }, vec![4]),
        (Filter { code: some("unknown-tool"), ..none() }, vec![7]),
        (Filter { rule: some("no-push"), ..none() }, vec![6]),
        (Filter { tool: some("bash"), ..none() }, vec![2, 6]),
        (Filter { tool: some("nope"), ..none() }, vec![7]),
        (Filter { program: some("git"), ..none() }, vec![6]),
        (Filter { program: some("timeout"), ..none() }, vec![6]),
        (Filter { program: some("gi"), ..none() }, vec![]),
        (Filter { path: glob("/w/**/*.rs"), ..none() }, vec![6]),
        (Filter { path: glob("/x/**"), ..none() }, vec![]),
        (Filter { host: some("*.example.org"), ..none() }, vec![4, 6]),
        (Filter { host: some("example.org"), ..none() }, vec![]),
        (Filter { role: some("reviewer"), ..none() }, vec![6]),
        (Filter { user: some("ada"), kinds: vec!["end".into()], ..none() }, vec![8]),
        (Filter { user: some("1000"), kinds: vec!["end".into()], ..none() }, vec![8]),
        (Filter { user: some("eve"), ..none() }, vec![]),
        (Filter { call: Some(approved), ..none() }, vec![2, 3, 4, 5]),
        (Filter { session: Some(Id::new()), ..none() }, vec![]),
        (Filter { session: Some(place.session.clone()), ..none() }, vec![1, 2, 3, 4, 5, 6, 7, 8]),
    ];
    for (filter, expected) in table {
        assert_eq!(found(&place, &filter), expected, "{filter:?}");
    }
}

#[test]
fn a_time_range_includes_its_beginning_and_not_its_end() {
    let (place, ..) = place();
    // The ledger takes the first reading of the clock, the records the following ones.
    let at = |offset: u64| Some(1_710_000_000_000 + offset);
    let filter = Filter { since_ms: at(2), until_ms: at(4), ..Filter::default() };
    assert_eq!(found(&place, &filter), [2, 3]);
    assert_eq!(parse_time("2024-03-09T16:00:00Z"), at(0));
    assert_eq!(parse_time("2024-03-09"), at(0).map(|ms| ms - 16 * 3_600_000));
    assert_eq!(parse_time("yesterday"), None);
}

#[test]
fn a_denied_call_is_told_with_all_six_stages() {
    let (place, _, denied) = place();
    let found = find_calls(Lines::open(&place.log()).unwrap(), denied.short()).unwrap();
    let expected = format!(
        "call {denied}  (record 6, 2024-03-09T16:00:00.006Z)
tool        bash, asked for by main as reviewer
  command = \"timeout 5 git push\"
  runs      /usr/bin/git push \"a b\"   (through timeout)
  write     /w/src/a.rs
  reaches   api.example.org:443
  unknown   $x (program-word)
decision    denied by firewall
  1 abort      pass  (1.234 ms)
  2 role       pass  (1.234 ms)
  3 hooks      skipped
  4 firewall   deny  (1.234 ms)
               command-denied: pushing is for people
               rule no-push, base.toml:12
               about git push
               allowed instead: git commit
  5 guardian   not-reached
  6 permission not-reached
"
    );
    assert_eq!(call_text(&found[0]), expected);
}

#[test]
fn an_approved_call_is_told_with_its_outcome() {
    let (place, approved, _) = place();
    let found = find_calls(Lines::open(&place.log()).unwrap(), approved.as_str()).unwrap();
    assert_eq!(found.len(), 1);
    let shown = call_text(&found[0]);
    for line in [
        "decision    approved",
        "started     started  (record 3, 2024-03-09T16:00:00.003Z)",
        "network     db.example.org:443 denied: host-denied  (record 4, 2024-03-09T16:00:00.004Z)",
        "outcome     exit code 0  (record 5, 2024-03-09T16:00:00.005Z)",
        "  output    1 + 0 bytes, after 1 ms",
    ] {
        assert!(shown.lines().any(|found| found == line), "{line}\nin\n{shown}");
    }
    let none = find_calls(Lines::open(&place.log()).unwrap(), "abc").unwrap();
    assert!(none.is_empty(), "fewer than four digits find nothing");
}

#[test]
fn the_table_has_one_line_a_record() {
    let (place, _, denied) = place();
    let filter = Filter { tool: Some("bash".into()), ..Filter::default() };
    let rows = Rows::new(Lines::open(&place.log()).unwrap(), &filter);
    let lines: Vec<_> = rows.map(|row| log_line(&row.unwrap())).collect();
    let expected = format!(
        "     6  2024-03-09T16:00:00.006Z  decision    {}  denied by firewall command-denied (no-push)  bash timeout 5 git push",
        denied.short()
    );
    assert_eq!(lines[1], expected);
    assert_eq!(LOG_HEADER.find("KIND"), expected.find("decision"));
    assert_eq!(LOG_HEADER.find("WHAT"), expected.find("denied"));
}

#[test]
fn a_row_as_json_is_its_record_and_session() {
    let (place, ..) = place();
    let filter = Filter { kinds: vec!["end".into()], ..Filter::default() };
    let row = Rows::new(Lines::open(&place.log()).unwrap(), &filter).next().unwrap().unwrap();
    let line = value(row.to_json_line().unwrap().as_bytes());
    assert_eq!(line["session"], place.session.as_str());
    assert_eq!(line["kind"], "end");
}
