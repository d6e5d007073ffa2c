//! How runs end: answers, budgets, circles, failures.

use super::rig::{Rig, block_on, network_model, script_model};
use crate::agent::Start;
use crate::agent::events::{Event, FinishReason};
use crate::agent::executor::Executor;
use crate::audit::record::{Body, Exit as RecordedExit};
use crate::base::dollars::Dollars;
use crate::chain::abort::StopCause;
use crate::model::{Price, Recording};
use crate::tools::execute::Outcome;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A call that the policy refuses, so that nothing runs.
const REFUSED: &str = r#"{"calls":[{"name":"write","arguments":{"path":"a","content":"x"}}]}"#;

fn refused(path: usize) -> String {
    REFUSED.replace("\"a\"", &format!("\"f{path}\""))
}

#[test]
fn an_answer_in_text_ends_the_run_and_think_blocks_are_no_part_of_it() {
    // A8, B11, G18
    let text = "<think>hm</think>Use `<think>` like this.";
    let ran = Rig::new().run("go", &format!("{{\"text\":\"{text}\"}}"));
    assert_eq!(ran.result.finish_reason, FinishReason::Stop);
    assert_eq!(ran.result.answer, "Use `<think>` like this.");
    assert_eq!(ran.state.extension.thinking[0].text, "hm");
    assert!(matches!(ran.events.last(), Some(Event::Result(_))));
    assert_eq!(ran.count(|event| matches!(event, Event::Result(_))), 1);
}

#[test]
fn an_empty_answer_is_tried_three_times_and_is_no_end() {
    // A8, B6, G1, G4
    let mut rig = Rig::new();
    let ran = rig.run("go", "{\"repeat\":3}\n{\"text\":\"never reached\"}");
    assert_eq!((ran.result.finish_reason, ran.result.exit_code), (FinishReason::Empty, 13));
    assert_eq!(*rig.delays.lock().unwrap(), [Duration::from_secs(1), Duration::from_secs(2)]);
    let retries = ran.records.iter().filter(|body| matches!(body, Body::Retry(_))).count();
    assert_eq!(retries, 3, "each failed attempt is recorded");
    let told = ran.events.iter().filter_map(|event| {
        if let Event::Retry { attempt, delay_ms, .. } = event {
            Some((*attempt, *delay_ms))
        } else {
            None
        }
    });
    assert_eq!(told.collect::<Vec<_>>(), [(1, 1_000), (2, 2_000)]);
}

#[test]
fn a_server_error_with_nothing_shown_is_tried_again_and_then_is_no_answer() {
    // B7, B8, G19
    let twice = "{\"error\":{\"status\":500},\"repeat\":2}\n{\"text\":\"third\"}";
    assert_eq!(Rig::new().run("go", twice).result.answer, "third");
    let ran = Rig::new().run("go", "{\"error\":{\"status\":500},\"repeat\":3}");
    assert_eq!((ran.result.finish_reason, ran.result.exit_code), (FinishReason::Error, 12));
    assert!(ran.result.answer.is_empty() && ran.result.error.is_some());
    let mut rig = Rig::new();
    rig.shows_pieces = true;
    let shown = rig.run("go", "{\"text\":\"half\",\"cut\":true}\n{\"text\":\"whole\"}");
    assert_eq!(shown.result.finish_reason, FinishReason::Error, "what was shown is not repeated");
}

#[test]
fn an_error_with_content_is_kept_and_not_repeated() {
    // B7
    let ran = Rig::new().run("go", "{\"text\":\"part\",\"finish\":\"error\"}\n{\"text\":\"no\"}");
    assert_eq!(ran.result.finish_reason, FinishReason::Error);
    assert_eq!((ran.result.answer.as_str(), ran.result.turns), ("part", 1));
}

#[test]
fn calls_of_a_cut_answer_never_run() {
    // G3
    let cut = REFUSED.replace("{\"calls\"", "{\"finish\":\"max_tokens\",\"calls\"");
    let ran = Rig::new().run("go", &cut);
    assert_eq!((ran.result.finish_reason, ran.result.exit_code), (FinishReason::Truncated, 13));
    assert!(ran.said().last().unwrap().contains("truncated by the model token limit"));
    assert!(ran.records.iter().all(|body| !matches!(body, Body::Decision(_) | Body::Started(_))));
    assert!(ran.state.is_idle());
}

#[test]
fn every_model_call_counts_against_the_iteration_limit() {
    // B5
    let mut rig = Rig::new();
    rig.budget.iterations = 4;
    let script: Vec<String> = (0..9).map(refused).collect();
    let ran = rig.run("go", &script.join("\n"));
    assert_eq!((ran.result.turns, ran.result.exit_code), (4, 11));
    assert_eq!(ran.result.denials.len(), 4);
}

#[test]
fn the_fortieth_model_call_is_the_last() {
    // B5, B22
    let script: Vec<String> = (0..50).map(refused).collect();
    let ran = Rig::new().run("go", &script.join("\n"));
    assert_eq!((ran.result.turns, ran.result.exit_code), (40, 11));
}

#[test]
fn each_budget_ends_the_run_and_is_named() {
    type Change = fn(&mut Rig);
    let changes: [(Change, &str); 3] = [
        (
            |rig| {
                rig.price =
                    Some(Price { input: 1e6, output: 1e6, cache_read: None, cache_write: None });
                rig.budget.cost = Some(Dollars::from_millionths(100_000_000));
            },
            "the cost budget of $100.00 is spent ($100.00)",
        ),
        (|rig| rig.budget.tokens = Some(100), "limits.tokens"),
        (|rig| rig.budget.time = Some(Duration::ZERO), "limits.run_seconds"),
    ];
    for (change, named) in changes {
        let mut rig = Rig::new();
        change(&mut rig);
        let used =
            refused(1).replace("{\"calls\"", "{\"usage\":{\"input\":90,\"output\":10},\"calls\"");
        let ran = rig.run("go", &format!("{used}\n{{\"text\":\"more\"}}"));
        assert_eq!((ran.result.finish_reason, ran.result.exit_code), (FinishReason::Budget, 14));
        assert!(ran.result.error.unwrap().contains(named), "{named}");
    }
    let mut rig = Rig::new();
    rig.budget.tool_calls = Some(2);
    let (mut agent, events) = rig.agent(script_model("{\"text\":\"more\"}"));
    agent.tally.executed = 2;
    let result = block_on(agent.run(Start::Task("go".into())));
    assert!(rig.ran(result, events).result.error.unwrap().contains("limits.tool_calls"));
}

#[test]
fn a_circle_is_told_once_and_then_ends_the_run() {
    let script = format!("{REFUSED}\n").repeat(3) + "{\"text\":\"I see\"}";
    let ran = Rig::new().run("go", &script);
    assert_eq!(ran.result.finish_reason, FinishReason::Stop, "the word is enough");
    assert_eq!(ran.state.extension.injected.len(), 1);
    let ran = Rig::new().run("go", &format!("{REFUSED}\n").repeat(9));
    assert_eq!((ran.result.finish_reason, ran.result.exit_code), (FinishReason::Loop, 15));
    assert_eq!((ran.result.turns, ran.state.extension.injected.len()), (6, 1));
}

#[test]
fn what_is_no_tool_is_rejected_and_every_call_has_a_result() {
    // A25
    let calls = r#"{"calls":[{"name":"rm","arguments":{}},{"name":"read","arguments":"{\"path\":"},
        {"name":"write","arguments":{"path":"a","content":"x"}}]}"#
        .replace('\n', "");
    let ran = Rig::new().run("go", &format!("{calls}\n{{\"text\":\"done\"}}"));
    assert_eq!((ran.result.status, ran.result.exit_code), ("denied", 10));
    let results = ran.events.iter().filter_map(|event| {
        if let Event::ToolResult { status, .. } = event { Some(*status) } else { None }
    });
    assert_eq!(results.collect::<Vec<_>>(), ["rejected", "rejected", "denied"]);
}

/// What a call that runs in no cell gives.
fn outcome(text: &str, yields: bool) -> Outcome {
    let exit = RecordedExit::Code { code: 0 };
    Outcome { text: text.to_owned(), success: true, yields, ..Outcome::failed(exit) }
}

#[test]
fn a_tool_that_yields_ends_the_run_when_its_siblings_have_results() {
    // B17, B21, G15: the double stands for a tool such as `sessions_yield`.
    let mut rig = Rig::new();
    let outcomes = [outcome("first", false), outcome("yielded", true), outcome("third", false)];
    rig.executor = Executor::Scripted(Arc::new(Mutex::new(outcomes.into())));
    let list = |path: &str| format!(r#"{{"name":"list","arguments":{{"path":"{path}"}}}}"#);
    let bash = r#"{"name":"bash","arguments":{"command":"ls"}}"#;
    let calls = format!("{{\"calls\":[{},{bash},{}]}}", list("."), list("."));
    let ran = rig.run("go", &format!("{calls}\n{{\"text\":\"never asked\"}}"));
    assert_eq!((ran.result.finish_reason, ran.result.exit_code), (FinishReason::Stop, 0));
    assert_eq!((ran.result.turns, ran.result.answer.as_str()), (1, ""));
    assert_eq!(ran.said().split_off(1), ["first", "yielded", "third"], "in three waves");
    assert!(ran.state.is_idle());
    // The control: without the wish the run goes on.
    let mut rig = Rig::new();
    let outcomes = [outcome("first", false), outcome("second", false), outcome("third", false)];
    rig.executor = Executor::Scripted(Arc::new(Mutex::new(outcomes.into())));
    let ran = rig.run("go", &format!("{calls}\n{{\"text\":\"asked again\"}}"));
    assert_eq!(ran.result.answer, "asked again");
}

#[test]
fn each_turn_leaves_its_statistics_in_the_journal() {
    let mut rig = Rig::new();
    let outcomes = [outcome("one", false), outcome("two", false)];
    rig.executor = Executor::Scripted(Arc::new(Mutex::new(outcomes.into())));
    let list = r#"{"name":"list","arguments":{}}"#;
    let write = r#"{"name":"write","arguments":{"path":"a","content":"x"}}"#;
    let script =
        format!("{{\"calls\":[{list},{write}]}}\n{{\"calls\":[{list}]}}\n{{\"text\":\"done\"}}");
    let ran = rig.run("go", &script);
    let counted = ran.state.extension.iterations.iter();
    let counted: Vec<_> =
        counted.map(|turn| (turn.iteration, turn.executed, turn.denied)).collect();
    assert_eq!(counted, [(1, 1, 1), (2, 1, 0), (3, 0, 0)]);
    // They are written along with what comes next and cost no line of their own.
    let journal = std::fs::read_to_string(rig.journal()).unwrap();
    let lines: Vec<&str> =
        journal.lines().filter(|line| line.contains("\"type\":\"iteration\"")).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[..2].iter().all(|line| line.contains("stepAttempt")), "{lines:?}");
    assert!(lines[2].contains("operationFinished"), "{lines:?}");
    // A further run of the session counts anew; one that is stopped counts what it did.
    rig.executor = Executor::Scripted(Arc::new(Mutex::new([outcome("x", false)].into())));
    let abort = rig.abort.clone();
    rig.watch = Some(Box::new(move |event| {
        if matches!(event, Event::ToolResult { .. }) {
            abort.abort(StopCause::Interrupt);
        }
    }));
    let ran = rig.run("more", &format!("{{\"calls\":[{list}]}}"));
    let last = ran.state.extension.iterations.last().unwrap();
    assert_eq!((last.iteration, last.executed), (1, 1));
    assert_eq!(ran.state.extension.iterations.len(), 4);
}

#[test]
fn an_abort_between_turns_gives_the_calls_results_and_ends_as_interrupted() {
    // B9, G16
    let mut rig = Rig::new();
    let abort = rig.abort.clone();
    rig.watch = Some(Box::new(move |event| {
        if matches!(event, Event::AssistantMessage { .. }) {
            abort.abort(StopCause::Interrupt);
        }
    }));
    let ran = rig.run("go", REFUSED);
    assert_eq!((ran.result.finish_reason, ran.result.exit_code), (FinishReason::Interrupted, 130));
    assert_eq!(ran.said().last().unwrap(), "Operation aborted before execution.");
    assert!(ran.state.is_idle());
}

#[test]
fn a_recording_plays_the_run_again_failed_attempts_included() {
    let mut rig = Rig::new();
    let file = rig.place.path().join("recorded.jsonl");
    rig.recording = Some(Arc::new(Recording::create(&file).unwrap()));
    let script = format!("{{\"error\":{{\"status\":500}}}}\n{REFUSED}\n{{\"text\":\"done\"}}");
    let first = rig.run("go", &script);
    let recorded = std::fs::read_to_string(&file).unwrap();
    assert_eq!(recorded.lines().count(), 3, "{recorded}");
    let again = Rig::new().run("go", &recorded);
    assert_eq!(first.result.answer, again.result.answer);
    assert_eq!(first.result.usage.output, again.result.usage.output);
    assert_eq!(first.said(), again.said());
}

#[test]
fn a_search_by_the_provider_is_left_out_and_that_is_recorded_once() {
    // B14 (2), G12
    let mut rig = Rig::new();
    let model = network_model("openrouter/z-ai/glm-4.6:online");
    let ran = rig.run_with(model, Start::Task("go".into()));
    assert_eq!(ran.repairs("native-search-off").len(), 1);
    let ran =
        Rig::new().run_with(network_model("openrouter/z-ai/glm-4.6"), Start::Task("go".into()));
    assert!(ran.repairs("native-search-off").is_empty());
}
