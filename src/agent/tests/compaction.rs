//! Compaction: near the window, past it, refused summaries, and a crash in its midst.

use super::rig::{Ran, Rig, script_model};
use crate::agent::Start;
use crate::agent::events::{Event, FinishReason};
use crate::session::{Message, Operation};

/// A turn that leaves some thousand bytes in the history.
fn long_turn(number: usize) -> String {
    let content = "x".repeat(3_000);
    format!(
        r#"{{"calls":[{{"name":"write","arguments":{{"path":"f{number}","content":"{content}"}}}}]}}"#
    )
}

fn script(turns: usize, end: &str) -> String {
    let turns: Vec<String> = (0..turns).map(long_turn).collect();
    format!("{}\n{end}\n", turns.join("\n"))
}

const SUMMARY: &str =
    r###"{"agent":"compaction","text":"## Task: go\n## Done: tried to write","repeat":3}"###;
const OVERFLOW: &str =
    r#"{"error":{"status":400,"message":"context_length_exceeded: prompt is too long"}}"#;

fn compactions(ran: &Ran) -> usize {
    ran.count(|event| matches!(event, Event::Compaction { .. }))
}

#[test]
fn near_the_window_older_messages_become_a_summary_within_the_run() {
    let mut rig = Rig::new();
    rig.context_window = Some(12_000);
    let ran = rig.run("go", &format!("{}{SUMMARY}\n", script(12, "{\"text\":\"done\"}")));
    assert_eq!(ran.result.finish_reason, FinishReason::Stop, "{:?}", ran.result.error);
    assert!((1..=2).contains(&compactions(&ran)), "{:?}", ran.result);
    let said = ran.said();
    assert!(said[0].starts_with("[Compacted history]\n## Task"), "{}", said[0]);
    assert!(said.len() < 20, "the tail alone is whole");
    assert_eq!(ran.repairs("compaction").len(), compactions(&ran), "it is in the log");
    assert_eq!(ran.result.turns, 13, "a summary is no iteration");
}

#[test]
fn a_conversation_that_the_model_refuses_is_summarised_and_gone_on_with() {
    let mut rig = Rig::new();
    let end = format!("{OVERFLOW}\n{{\"text\":\"done\"}}");
    let ran = rig.run("go", &format!("{}{SUMMARY}\n", script(4, &end)));
    assert_eq!((ran.result.answer.as_str(), compactions(&ran)), ("done", 1), "{:?}", ran.result);
    assert!(ran.said().iter().any(|said| said.contains("Go on with the task")));
    assert!(ran.state.is_idle());
    let contexts = &ran.state.extension.run_contexts;
    assert_eq!(contexts.len(), 2, "the further run is bound to the same rules");
}

#[test]
fn a_conversation_without_an_older_part_is_an_error_of_the_model() {
    let ran = Rig::new().run("go", OVERFLOW);
    assert_eq!((ran.result.finish_reason, ran.result.exit_code), (FinishReason::Error, 12));
    assert_eq!(compactions(&ran), 0);
}

#[test]
fn a_summary_larger_than_what_it_replaces_is_refused_and_three_tries_are_all() {
    let mut rig = Rig::new();
    let large = format!(r#"{{"agent":"compaction","text":"{}","repeat":9}}"#, "y".repeat(60_000));
    let ran = rig.run("go", &format!("{}{large}\n", script(4, OVERFLOW)));
    assert_eq!(ran.result.exit_code, 12);
    let why = ran.result.error.clone().unwrap();
    assert!(why.contains("3 tries") && why.contains("start a new session"), "{why}");
    assert_eq!(compactions(&ran), 0);
    assert!(!ran.said()[0].contains("[Compacted"), "the messages stay");
    assert!(ran.state.is_idle());
}

#[test]
fn a_tail_that_is_larger_than_the_window_ends_the_run_and_keeps_its_pairs() {
    // The model refuses every request from the fifth on, however often the rest is summarised.
    let mut rig = Rig::new();
    rig.context_window = Some(2_000);
    let overflow = OVERFLOW.replacen('{', "{\"repeat\":50,", 1);
    let summary = SUMMARY.replace("\"repeat\":3", "\"repeat\":50");
    let ran = rig.run("go", &format!("{}{summary}\n", script(4, &overflow)));
    assert_eq!((ran.result.exit_code, ran.result.turns), (12, 4));
    let after = ran.events.iter().rev();
    let after = after.take_while(|event| !matches!(event, Event::AssistantMessage { .. }));
    let tries = after.filter(|event| matches!(event, Event::Compaction { .. })).count();
    assert!((1..=3).contains(&tries), "{tries} tries after the last answer");
    let why = ran.result.error.clone().unwrap();
    assert!(why.contains("the conversation is too long for this model"), "{why}");
    let context = &ran.state.active_context;
    let calls: Vec<_> = context.iter().flat_map(|placed| placed.message.tool_calls()).collect();
    let results: Vec<_> = context
        .iter()
        .filter_map(|placed| match &*placed.message {
            Message::Tool(result) => Some(&result.tool_call_id),
            Message::User(_) | Message::Assistant(_) => None,
        })
        .collect();
    assert_eq!(calls.iter().map(|call| &call.id).collect::<Vec<_>>(), results, "pairs stay whole");
    assert!(ran.state.is_idle());
}

#[test]
fn a_refused_summary_is_followed_by_a_better_one() {
    let mut rig = Rig::new();
    let cut = r#"{"agent":"compaction","text":"half","finish":"max_tokens"}"#;
    let end = format!("{OVERFLOW}\n{{\"text\":\"done\"}}");
    let ran = rig.run("go", &format!("{}{cut}\n{SUMMARY}\n", script(4, &end)));
    assert_eq!((ran.result.answer.as_str(), compactions(&ran)), ("done", 1));
    assert_eq!(ran.repairs("summary-cut").len(), 1);
}

#[test]
fn a_session_that_stopped_in_a_compaction_goes_on_with_it() {
    for (window, turns) in [(Some(12_000), 12), (None, 4)] {
        let mut rig = Rig::new();
        rig.context_window = window;
        let end = if window.is_some() { "{\"text\":\"done\"}" } else { OVERFLOW };
        // The journal is copied when the summary has been asked for: that is what a crash leaves.
        let journal = rig.journal();
        let copy = rig.place.path().join("copy");
        let slow = r#"{"agent":"compaction","delay_ms":1500,"text":"late"}"#;
        let (model, kept) = (script_model(&format!("{}{slow}", script(turns, end))), copy.clone());
        let watcher = std::thread::spawn(move || {
            for _ in 0..400 {
                std::thread::sleep(std::time::Duration::from_millis(10));
                let text = std::fs::read_to_string(&journal).unwrap_or_default();
                if text.contains("\"stepKind\":\"compaction\"") && text.ends_with('\n') {
                    std::fs::copy(&journal, &kept).unwrap();
                    return;
                }
            }
        });
        drop(rig.run_with(model, Start::Task("go".into())));
        watcher.join().unwrap();
        std::fs::copy(&copy, rig.journal()).unwrap();
        let state = crate::session::reduce(&std::fs::read(rig.journal()).unwrap()).unwrap();
        assert!(matches!(state.operation, Operation::Compaction(_)));
        let ran = rig.resume(&format!("{SUMMARY}\n{{\"text\":\"resumed\"}}"));
        assert_eq!((ran.result.answer.as_str(), compactions(&ran)), ("resumed", 1));
        assert!(ran.state.is_idle());
    }
}
