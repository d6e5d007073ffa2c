//! Background results, and how much history goes to the model.

use super::rig::{Rig, script_model};
use crate::agent::background::{BackgroundQueue, BackgroundResult, Producer};
use crate::agent::events::{Event, FinishReason};
use crate::base::ids::Id;
use crate::session::{Counters, Extension, SubAgentFinished, SubAgentStarted};

const REFUSED: &str = r#"{"calls":[{"name":"write","arguments":{"path":"a","content":"x"}}]}"#;

fn result(text: &str) -> BackgroundResult {
    BackgroundResult {
        producer: Producer::Agent { run: Id::new() },
        label: "scan".to_owned(),
        outcome: "completed".to_owned(),
        text: text.to_owned(),
    }
}

/// A producer that has a further result ready whenever the model has answered.
fn produce(queue: BackgroundQueue, mut left: u32) -> Box<dyn FnMut(&Event)> {
    Box::new(move |event| {
        if matches!(event, Event::AssistantMessage { .. }) && left > 0 {
            left -= 1;
            queue.push(result(&format!("result {left}")));
        }
    })
}

#[test]
fn results_are_put_in_once_and_a_text_answer_waits_for_them_without_cost() {
    // B20, B23, B24, B12
    let mut rig = Rig::new();
    let (queue, mut left) = (rig.background.clone(), vec!["two", "one"]);
    rig.watch = Some(Box::new(move |event| {
        if matches!(event, Event::AssistantMessage { .. }) {
            std::iter::from_fn(|| left.pop()).for_each(|text| queue.push(result(text)));
        }
    }));
    let ran =
        rig.run("go", "{\"text\":\"first\"}\n{\"expect\":[\"one\",\"two\"],\"text\":\"last\"}");
    assert_eq!(ran.result.answer, "last");
    assert_eq!(ran.result.turns, 1, "the round cost no iteration");
    let said = ran.said().join("\n");
    assert!(said.contains("[Background agent \"scan\" (") && said.contains(") completed]\none"));
    assert_eq!(ran.count(|event| matches!(event, Event::Background { results: 2 })), 1);
    assert_eq!(said.matches("one").count(), 1, "exactly once");
}

#[test]
fn results_that_wait_already_are_put_in_before_the_first_request() {
    // B20: so the ends of what an earlier process of the session had begun are told at once.
    let mut rig = Rig::new();
    rig.background.push(result("one"));
    let ran = rig.run("go", "{\"expect\":[\"one\"],\"text\":\"last\"}");
    assert_eq!((ran.result.answer.as_str(), ran.result.turns), ("last", 1));
}

#[test]
fn background_results_keep_a_run_going_for_three_rounds_in_a_row() {
    // B11, B22, B25
    let mut rig = Rig::new();
    rig.watch = Some(produce(rig.background.clone(), 9));
    let ran = rig.run("go", "{\"text\":\"again\",\"repeat\":9}");
    assert_eq!(ran.result.finish_reason, FinishReason::Stop);
    assert_eq!(ran.count(|event| matches!(event, Event::Background { .. })), 3);
    assert_eq!(ran.count(|event| matches!(event, Event::AssistantMessage { .. })), 4);
}

#[test]
fn a_real_call_begins_the_count_anew() {
    // G6: what keeps a run going without end costs iterations.
    // B25
    let mut rig = Rig::new();
    rig.watch = Some(produce(rig.background.clone(), 99));
    let script =
        format!("{{\"text\":\"a\",\"repeat\":3}}\n{REFUSED}\n{{\"text\":\"b\",\"repeat\":9}}");
    let ran = rig.run("go", &script);
    // Three rounds, the call (whose turn also takes a result), and three rounds again.
    assert_eq!(ran.count(|event| matches!(event, Event::Background { .. })), 7);
    assert_eq!(ran.result.answer, "b");
}

#[test]
fn history_is_cut_at_a_user_message_and_told() {
    // B22 DEFAULT_MAX_HISTORY, G8
    let mut rig = Rig::new();
    rig.budget.history = 3;
    for task in ["first words", "second words"] {
        rig.run(task, &format!("{REFUSED}\n{{\"text\":\"done\"}}"));
    }
    let ran = rig.run("third words", "{\"expect\":\"third\",\"text\":\"done\"}");
    assert_eq!(ran.result.finish_reason, FinishReason::Stop);
    let cut = ran.repairs("history");
    assert!(cut.iter().any(|sentence| sentence.contains("message")), "{cut:?}");
    assert!(ran.said().len() > 3, "the journal keeps everything");
}

#[test]
fn a_result_of_a_sub_agent_is_recorded_as_delivered() {
    // B23: the producer's start and end are in the journal, its result goes in once.
    let mut rig = Rig::new();
    let (mut agent, _events) = rig.agent(script_model("{\"text\":\"never asked\"}"));
    let run_id = Id::new();
    let producer = Producer::Agent { run: run_id.clone() };
    let delivered = BackgroundResult { producer, ..result("found it") };
    let journal = &mut agent.parts.journal;
    let operation_id = journal.begin_run("go", None).unwrap();
    let started = SubAgentStarted {
        operation_id,
        run_id: run_id.clone(),
        session_id: Id::new(),
        label: "scan".to_owned(),
        background: true,
    };
    let finished = SubAgentFinished {
        run_id,
        outcome: "completed".to_owned(),
        text: "found it".to_owned(),
        usage: Counters::default(),
    };
    journal.note(Extension::SubAgentStarted(started)).unwrap();
    journal.note(Extension::SubAgentFinished(finished)).unwrap();
    agent.parts.background.push(delivered);
    assert!(agent.inject_background().unwrap());
    assert!(!agent.inject_background().unwrap(), "once");
    assert!(agent.parts.journal.state().undelivered().is_empty());
}
