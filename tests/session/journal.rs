//! What a session is while it is written, and that the file says the same.

use crate::rig::{arguments, calls, contract, form, header, rig, snapshot, text, used, write};
use serde_json::{Value, json};
use stoplog::base::clock::Clock;
use stoplog::base::ids::Id;
use stoplog::session::{
    Body, Counters, DenialReason, Draft, Entry, Extension, FactError, FinalStatistics,
    InjectionSource, Journal, Message, Operation, Outcome, PolicyPin, Refusal, RunContext,
    SessionError, SubAgentFinished, SubAgentStarted, SyntheticReason, ToolOutcome, UserMessage,
    compaction_boundaries, markdown, reduce, show_json, view,
};

fn statistics(run: &Id) -> FinalStatistics {
    FinalStatistics {
        operation_id: run.clone(),
        finish_reason: "stop".to_owned(),
        iterations: 2,
        executed: 2,
        denied: 0,
        usage: used(12, 5),
        cost_millionths: Some(7),
        duration_ms: 10,
    }
}

#[test]
fn what_is_written_reads_back_as_the_live_state() {
    let mut rig = rig();
    rig.whole_run("Look at the notes.");
    let run = rig.journal.begin_run("Again, with thought.", None).unwrap();
    rig.journal
        .note(Extension::RunContext(RunContext {
            operation_id: run.clone(),
            policy: PolicyPin {
                digest: stoplog::base::digest::Digest::of(b"policy"),
                audit_sequence: Some(1),
            },
            role: "developer".to_owned(),
            tools: vec!["read".to_owned()],
            sandbox: "full".to_owned(),
            parent: None,
        }))
        .unwrap();
    let mut answer = text("Thought about it.");
    answer.thinking = vec![("first this".to_owned(), Some("sig".to_owned()))];
    rig.turn(answer);
    rig.journal.operation_finished(Some(statistics(&run))).unwrap();
    let read = reduce(&rig.bytes()).unwrap();
    assert_eq!(form(&read), form(rig.state()));
    assert_eq!(read.usage, used(5 + 7 + 7, 2 + 3 + 3));
    assert_eq!(read.repaired_length, u64::try_from(rig.bytes().len()).unwrap());
    assert!(read.is_idle());
    let shown = view(&read);
    assert_eq!(shown.last().unwrap().thinking[0].text, "first this");
    assert_eq!(read.extension.finals[0].finish_reason, "stop");
    assert_eq!(read.extension.run_contexts[0].role, "developer");
}

#[test]
fn the_user_message_and_the_start_of_its_run_are_one_line() {
    let mut rig = rig();
    rig.journal.begin_run("One line.", None).unwrap();
    let bytes = rig.bytes();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 2);
    let facts: Value = serde_json::from_slice(lines[1]).unwrap();
    assert_eq!(facts[0]["entry"]["message"], json!({"role": "user", "content": "One line."}));
    assert_eq!(facts[1]["record"]["type"], "runStarted");
    assert_eq!((&facts[0]["seq"], &facts[1]["seq"]), (&json!(1), &json!(2)));
}

/// The superset rule: without our facts, and numbered anew, the file is plain version 2 and gives
/// the same state.
#[test]
fn our_facts_change_nothing_that_a_plain_reader_computes() {
    let mut rig = rig();
    let run = rig.journal.begin_run("Look.", None).unwrap();
    let mut answer = calls(&[("a", "bash", r#"{"command":"make"}"#)]);
    answer.thinking = vec![("hm".to_owned(), None)];
    let places = rig.turn(answer);
    let denial = DenialReason {
        stage: "firewall".to_owned(),
        code: "command-denied".to_owned(),
        rule: Some("no-make".to_owned()),
        audit_sequence: Some(4),
    };
    let refusal = Refusal { content: "Denied: no-make.".to_owned(), denial: Some(denial) };
    let place = &places[0];
    rig.journal.tool_refused(place, arguments(place), &contract("bash"), refusal).unwrap();
    rig.turn(text("I may not."));
    rig.journal.operation_finished(Some(statistics(&run))).unwrap();
    let plain = plain(&rig.bytes());
    let (with, without) = (reduce(&rig.bytes()).unwrap(), reduce(&plain).unwrap());
    let (mut with, mut without) = (form(&with), form(&without));
    with[0]["repairedLength"] = json!(0);
    without[0]["repairedLength"] = json!(0);
    assert_eq!(with[0], without[0]);
    assert_eq!(with[1]["denials"][0]["code"], "command-denied");
}

fn plain(bytes: &[u8]) -> Vec<u8> {
    let mut seq = 0;
    let mut out = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut value: Value = serde_json::from_slice(line).unwrap();
        if value["kind"] == "header" {
            value.as_object_mut().unwrap().remove("extensions");
        } else {
            let facts = if value.is_array() { value } else { json!([value]) };
            let mut facts = facts.as_array().unwrap().clone();
            facts.retain(|fact| fact["kind"] != "extension");
            for fact in &mut facts {
                seq += 1;
                fact["seq"] = json!(seq);
            }
            if facts.is_empty() {
                continue;
            }
            value = Value::Array(facts);
        }
        out.extend(value.to_string().into_bytes());
        out.push(b'\n');
    }
    out
}

#[test]
fn a_refused_transaction_changes_neither_file_nor_state() {
    let mut rig = rig();
    rig.whole_run("Look.");
    let (bytes, before) = (rig.bytes(), form(rig.state()));
    let answer_to_nothing = rig.journal.assistant_settled(text("?"));
    assert!(matches!(answer_to_nothing, Err(SessionError::Unfit { .. })));
    let empty = UserMessage { content: String::new() };
    let empty = Draft::new(Body::Entry(Entry::User(empty)));
    let fine = UserMessage { content: "fine".to_owned() };
    let fine = Draft::new(Body::Entry(Entry::User(fine)));
    let error = rig.journal.append(vec![fine, empty]).unwrap_err();
    assert!(matches!(error, SessionError::Rejected(_)), "{error}");
    assert_eq!(rig.bytes(), bytes);
    assert_eq!(form(rig.state()), before);
    rig.whole_run("And it goes on.");
    assert_eq!(form(&reduce(&rig.bytes()).unwrap()), form(rig.state()));
}

#[test]
fn an_empty_answer_is_not_settled() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    rig.journal.step_attempt(&snapshot()).unwrap();
    for content in [None, Some(String::new()), Some(" \n".to_owned())] {
        let mut answer = text("");
        answer.content = content;
        let error = rig.journal.assistant_settled(answer).unwrap_err();
        assert!(error.to_string().contains("it is empty"), "{error}");
    }
    rig.journal.step_failed(&FactError::new("empty_answer", "nothing"), used(3, 0)).unwrap();
    assert_eq!(rig.journal.operation_finished(None).unwrap(), Outcome::Failed);
    assert_eq!(rig.state().usage, used(3, 0));
    assert!(rig.state().is_idle());
}

#[test]
fn missing_and_repeated_call_identifiers_are_made_unique() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places = rig.turn(calls(&[
        ("", "read", "{}"),
        ("x", "read", "{}"),
        ("x", "read", "{}"),
        ("call_0_0", "read", "{}"),
        ("y", "", "{}"),
    ]));
    let ids: Vec<&str> = places.iter().map(|place| place.call_id.as_str()).collect();
    assert_eq!(ids, ["call_0_1", "x", "call_2_0", "call_0_0", "y"]);
    assert_eq!(places[4].name, "(unnamed)");
}

#[test]
fn a_run_does_not_end_while_a_call_has_no_result() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    rig.turn(calls(&[("a", "read", "{}")]));
    let error = rig.journal.operation_finished(None).unwrap_err();
    assert!(error.to_string().contains("not at its end"), "{error}");
    rig.journal.fail_operation(&FactError::new("max_iterations", "40 turns"), None).unwrap();
    let last = rig.state().transcript.last().unwrap();
    assert_eq!(last.message.content(), Some(SyntheticReason::Aborted.content()));
    rig.whole_run("The session can be gone on with.");
}

#[test]
fn calls_of_a_cut_answer_never_start() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let mut answer = calls(&[("a", "write", r#"{"path":"x","content":"half"}"#)]);
    answer.cut = true;
    let places = rig.turn(answer);
    let started = rig.journal.tool_started(&places[0], arguments(&places[0]), &contract("write"));
    assert!(matches!(started, Err(SessionError::Rejected(_))));
    rig.journal.synthetic(&places, SyntheticReason::Truncated).unwrap();
    assert_eq!(rig.journal.operation_finished(None).unwrap(), Outcome::Completed);
}

#[test]
fn a_cut_text_ends_the_run_as_failed() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let mut answer = text("It is");
    answer.cut = true;
    rig.turn(answer);
    assert_eq!(rig.journal.operation_finished(None).unwrap(), Outcome::Failed);
}

/// A model can spend all its tokens on thought.
#[test]
fn an_answer_cut_before_its_first_word_ends_the_run_as_failed() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let mut answer = text("");
    answer.cut = true;
    answer.thinking = vec![("and then again".to_owned(), None)];
    assert!(rig.turn(answer).is_empty());
    assert_eq!(rig.journal.operation_finished(None).unwrap(), Outcome::Failed);
    assert_eq!(rig.state().extension.thinking.len(), 1);
    rig.whole_run("The session can be gone on with.");
}

#[test]
fn results_are_shown_in_the_order_of_their_calls() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places = rig.turn(calls(&[("a", "read", "{}"), ("b", "bash", "{}"), ("c", "read", "{}")]));
    let started: Vec<Id> = places.iter().map(|place| rig.start(place)).collect();
    for index in [2, 0, 1] {
        rig.succeed(&started[index], &places[index].call_id);
    }
    let shown = view(rig.state());
    let results: Vec<_> = shown[2..].iter().map(|item| item.message.content().unwrap()).collect();
    assert_eq!(results, ["a", "b", "c"]);
}

#[test]
fn a_tool_that_was_not_in_the_request_cannot_start() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places = rig.turn(calls(&[("a", "deploy", "{}")]));
    let started = rig.journal.tool_started(&places[0], arguments(&places[0]), &contract("deploy"));
    assert!(matches!(started, Err(SessionError::Rejected(_))));
    rig.journal.synthetic(&places, SyntheticReason::UnknownTool).unwrap();
    rig.turn(text("There is no such tool."));
    rig.journal.operation_finished(None).unwrap();
}

#[test]
fn an_abort_closes_the_attempt_and_ends_the_run() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    rig.journal.step_attempt(&snapshot()).unwrap();
    rig.journal.abort_operation(None).unwrap();
    let text = String::from_utf8(rig.bytes()).unwrap();
    let at = |needle: &str| text.find(needle).unwrap();
    assert!(at("abortRequested") < at("stepFailed") && at("stepFailed") < at("operationFinished"));
    assert!(text.contains(r#""phase":"model""#) && rig.state().is_idle());
}

#[test]
fn a_compaction_replaces_old_messages_for_the_model_alone() {
    let mut rig = rig();
    rig.whole_run("First.");
    rig.whole_run("Second.");
    let boundaries = compaction_boundaries(rig.state());
    let through = rig.state().transcript[4].entry_id.clone();
    assert_eq!(rig.state().transcript[4].message.content(), Some("It is done."));
    assert!(boundaries.contains(&through));
    rig.journal.begin_compaction(&through).unwrap();
    rig.journal.step_attempt(&snapshot()).unwrap();
    rig.journal.compaction_settled("They looked.".to_owned(), used(9, 1), None).unwrap();
    assert_eq!(rig.state().transcript.len(), 10);
    let context = view(rig.state());
    assert_eq!(context.len(), 6);
    assert_eq!(context[0].message.content(), Some("[Compacted history]\nThey looked."));
    assert_eq!(context[1].message.content(), Some("Second."));
    let mut rig = rig.reopened();
    rig.whole_run("Third, after the summary.");
    assert_eq!(view(rig.state()).len(), 11);
}

#[test]
fn a_compaction_in_the_midst_of_a_run_gives_the_run_back() {
    let mut rig = rig();
    rig.whole_run("First.");
    let run = rig.journal.begin_run("Second.", None).unwrap();
    let places = rig.turn(calls(&[("a", "read", "{}")]));
    let through = rig.state().transcript[4].entry_id.clone();
    assert!(rig.journal.begin_compaction(&through).is_err(), "a call is open");
    let started = rig.start(&places[0]);
    rig.succeed(&started, "fine");
    rig.journal.begin_compaction(&through).unwrap();
    assert!(matches!(rig.state().operation, Operation::Compaction(_)));
    let mut rig = rig.reopened();
    rig.journal.step_attempt(&snapshot()).unwrap();
    rig.journal.compaction_settled("Short.".to_owned(), used(1, 1), None).unwrap();
    assert_eq!(rig.state().operation.id(), Some(&run));
    assert_eq!(view(rig.state()).len(), 4);
    rig.turn(text("Done."));
    assert_eq!(rig.journal.operation_finished(None).unwrap(), Outcome::Completed);
}

#[test]
fn a_failed_compaction_gives_the_run_back() {
    let mut rig = rig();
    rig.whole_run("First.");
    let run = rig.journal.begin_run("Second.", None).unwrap();
    let through = rig.state().transcript[4].entry_id.clone();
    rig.journal.begin_compaction(&through).unwrap();
    rig.journal.step_attempt(&snapshot()).unwrap();
    rig.journal.fail_operation(&FactError::new("summary_too_large", "larger"), None).unwrap();
    assert_eq!(rig.state().operation.id(), Some(&run));
    assert_eq!(view(rig.state()).len(), 6);
    rig.turn(text("Done without."));
    rig.journal.operation_finished(None).unwrap();
}

#[test]
fn a_compaction_never_cuts_a_call_from_its_result() {
    let mut rig = rig();
    rig.whole_run("First.");
    let answer = rig.state().transcript[1].entry_id.clone();
    assert!(!compaction_boundaries(rig.state()).contains(&answer));
    rig.journal.begin_compaction(&answer).unwrap();
    rig.journal.step_attempt(&snapshot()).unwrap();
    let settled = rig.journal.compaction_settled("Short.".to_owned(), used(1, 1), None);
    assert!(matches!(settled, Err(SessionError::Rejected(_))));
    rig.journal.fail_operation(&FactError::new("compaction", "illegal cut"), None).unwrap();
    rig.whole_run("The session can be gone on with.");
}

#[test]
fn a_background_result_is_delivered_exactly_once() {
    let mut rig = rig();
    let run = rig.journal.begin_run("Look.", None).unwrap();
    let run_id = Id::new();
    let started = SubAgentStarted {
        operation_id: run,
        run_id: run_id.clone(),
        session_id: Id::new(),
        label: "scout".to_owned(),
        background: true,
    };
    rig.journal.note(Extension::SubAgentStarted(started)).unwrap();
    let early = rig.journal.inject("too early", InjectionSource::Background, vec![run_id.clone()]);
    assert!(matches!(early, Err(SessionError::Rejected(_))));
    let finished = SubAgentFinished {
        run_id: run_id.clone(),
        outcome: "completed".to_owned(),
        text: "found".to_owned(),
        usage: Counters::default(),
    };
    rig.journal.note(Extension::SubAgentFinished(finished)).unwrap();
    let mut rig = rig.reopened();
    assert_eq!(rig.state().undelivered().len(), 1);
    let words = format!("[Background agent \"scout\" ({run_id}) completed]");
    rig.journal.inject(&words, InjectionSource::Background, vec![run_id.clone()]).unwrap();
    assert!(rig.state().undelivered().is_empty());
    let twice = rig.journal.inject(&words, InjectionSource::Background, vec![run_id]);
    assert!(matches!(twice, Err(SessionError::Rejected(_))));
    rig.turn(text("Thanks."));
    rig.journal.operation_finished(None).unwrap();
}

/// An answer without calls ends a run, so what comes after it is a further run; a crash finds either
/// both or none of the two.
#[test]
fn a_result_that_comes_after_the_answer_begins_a_further_run_in_one_line() {
    let mut rig = rig();
    let first = rig.journal.begin_run("Look.", None).unwrap();
    let context = RunContext {
        operation_id: first.clone(),
        policy: PolicyPin {
            digest: stoplog::base::digest::Digest::of(b"policy"),
            audit_sequence: None,
        },
        role: "developer".to_owned(),
        tools: Vec::new(),
        sandbox: "full".to_owned(),
        parent: None,
    };
    rig.journal.note(Extension::RunContext(context)).unwrap();
    rig.turn(text("It may be so."));
    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let before = lines(&rig.bytes());
    rig.journal.inject("[Background …]", InjectionSource::Background, Vec::new()).unwrap();
    assert_eq!(lines(&rig.bytes()), before + 1);
    let second = rig.state().operation.id().unwrap().clone();
    assert_ne!(second, first);
    let contexts = &rig.state().extension.run_contexts;
    assert_eq!((contexts[1].role.as_str(), &contexts[1].operation_id), ("developer", &second));
    rig.turn(text("Now it is certain."));
    rig.journal.operation_finished(None).unwrap();
    rig.journal.inject("From another session.", InjectionSource::Session, Vec::new()).unwrap();
    assert!(rig.state().run().is_some());
    let texts: Vec<_> =
        view(rig.state()).iter().map(|item| item.message.content().unwrap().to_owned()).collect();
    assert_eq!(texts.len(), 5);
}

#[test]
fn a_second_writer_is_refused_with_the_process_id_of_the_first() {
    let rig = rig();
    let error = Journal::open(&rig.path, Clock::default()).unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    let mut rig = rig.reopened();
    rig.whole_run("The first was let go.");
}

/// A lock file may name a process that is long gone, or one that was started since and has nothing
/// to do with the session; only the kernel's lock counts.
#[test]
fn the_process_id_in_a_lock_file_alone_locks_nothing() {
    let rig = rig();
    let (path, lock) = (rig.path.clone(), rig.path.with_extension("lock"));
    drop(rig.journal);
    for pid in [1, std::process::id()] {
        write(&lock, format!("{pid}\n").as_bytes());
        Journal::open(&path, Clock::default()).unwrap();
    }
}

#[test]
fn a_session_is_not_begun_over_another() {
    let mut rig = rig();
    rig.whole_run("Keep me.");
    let bytes = rig.bytes();
    drop(rig.journal);
    let begun = Journal::create(&rig.path, &header(&[]), Clock::default());
    assert!(matches!(begun, Err(SessionError::Exists { .. })));
    assert_eq!(std::fs::read(&rig.path).unwrap(), bytes);
    let missing = Journal::open(&rig.path.with_file_name("none.jsonl"), Clock::default());
    assert!(matches!(missing, Err(SessionError::Missing { .. })));
}

#[test]
fn the_transcript_passes_through_the_redaction_and_cannot_pose_as_markdown() {
    let mut rig = rig();
    rig.journal.begin_run("My key is hunter2.", None).unwrap();
    let places = rig.turn(calls(&[("a", "bash", r#"{"command":"echo hunter2"}"#)]));
    let started = rig.start(&places[0]);
    rig.succeed(&started, "hunter2\n```\n# Not a heading\u{1b}[2J");
    let redact = |text: &str| text.replace("hunter2", "[secret]");
    let shown = markdown(rig.state(), &redact);
    assert!(!shown.contains("hunter2") && shown.contains("My key is [secret]."), "{shown}");
    assert!(shown.contains("````text\n[secret]\n```\n# Not a heading\\u{1b}[2J\n````"), "{shown}");
    let shown = show_json(rig.state(), &redact).unwrap();
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_result_is_recorded_once() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places = rig.turn(calls(&[("a", "bash", "{}")]));
    let started = rig.start(&places[0]);
    rig.succeed(&started, "fine");
    let again =
        rig.journal.tool_result(&started, ToolOutcome::Error, String::new(), Counters::default());
    assert!(matches!(again, Err(SessionError::Unfit { .. })));
    let again = rig.journal.tool_started(&places[0], arguments(&places[0]), &contract("bash"));
    assert!(matches!(again, Err(SessionError::Rejected(_))));
}

#[test]
fn messages_keep_their_order_and_roles() {
    let mut rig = rig();
    rig.whole_run("Look.");
    let roles: Vec<&str> = view(rig.state())
        .iter()
        .map(|item| match &*item.message {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::Tool(_) => "tool",
        })
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant"]);
}
