//! A session whose process ended at any point can be gone on with, and nothing is repeated blindly.

use crate::rig::{Rig, calls, contracts, current, form, rig, snapshot, text, used};
use stoplog::base::digest::Digest;
use stoplog::base::ids::Id;
use stoplog::session::{
    BlockReason, Counters, CurrentConfiguration, Extension, JobEnded, JobStarted, NextAction, Plan,
    RecoverMode, Replay, SubAgentStarted, SyntheticReason, ToolMode, ToolOutcome, plan, reduce,
    what_was_in_flight,
};

/// A session that has been through everything.
fn eventful() -> Rig {
    let mut rig = rig();
    rig.whole_run("First.");
    let through = rig.state().transcript[3].entry_id.clone();
    rig.journal.begin_compaction(&through).unwrap();
    rig.journal.step_attempt(&snapshot()).unwrap();
    rig.journal.compaction_settled("They looked.".to_owned(), used(1, 1), None).unwrap();
    rig.journal.begin_run("Second.", None).unwrap();
    let places = rig.turn(calls(&[
        ("a", "read", r#"{"path":"x"}"#),
        ("b", "bash", r#"{"command":"make"}"#),
        ("c", "write", r#"{"path":"y"}"#),
        ("d", "deploy", "{}"),
        ("e", "read", "not json"),
    ]));
    for place in &places[..3] {
        let started = rig.start(place);
        let usage = used(1, 0);
        let content = "fine".to_owned();
        rig.journal.tool_result(&started, ToolOutcome::Success, content, usage).unwrap();
    }
    rig.journal.synthetic(&places[3..4], SyntheticReason::UnknownTool).unwrap();
    rig.journal.synthetic(&places[4..], SyntheticReason::InvalidArguments).unwrap();
    let through = rig.state().transcript[4].entry_id.clone();
    rig.journal.begin_compaction(&through).unwrap();
    rig.journal.step_attempt(&snapshot()).unwrap();
    rig.journal.compaction_settled("They looked again.".to_owned(), used(1, 1), None).unwrap();
    rig.turn(text("Done."));
    rig.journal.operation_finished(None).unwrap();
    rig.journal.begin_run("Third.", None).unwrap();
    let mut cut = calls(&[("a", "write", r#"{"path":"#)]);
    cut.cut = true;
    let places = rig.turn(cut);
    rig.journal.synthetic(&places, SyntheticReason::Truncated).unwrap();
    rig.journal.operation_finished(None).unwrap();
    rig.journal.begin_run("Fourth.", None).unwrap();
    rig.journal.step_attempt(&snapshot()).unwrap();
    rig.journal.abort_operation(None).unwrap();
    rig
}

fn line_ends(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(index, _)| index + 1).collect()
}

#[test]
fn every_whole_prefix_reduces_and_can_be_gone_on_with() {
    let bytes = eventful().bytes();
    for end in line_ends(&bytes) {
        let prefix = &bytes[..end];
        let state = reduce(prefix).unwrap();
        assert_eq!(plan(&state, &current()), plan(&state, &current()));
        let (mut closed, _) = Rig::copy(prefix).unwrap();
        let recovery = closed.journal.recover(&current(), RecoverMode::Close).unwrap();
        assert_eq!(recovery.next, NextAction::UserMessage, "closed at byte {end}");
        closed.whole_run("A new message after the crash.");
        let (mut gone_on, _) = Rig::copy(prefix).unwrap();
        go_on(&mut gone_on);
        gone_on.whole_run("And one more.");
        assert_eq!(form(&reduce(&gone_on.bytes()).unwrap()), form(gone_on.state()));
    }
}

/// What the loop does after a crash, with tools that succeed and a model that is done.
fn go_on(rig: &mut Rig) {
    loop {
        let first = rig.journal.recover(&current(), RecoverMode::Continue).unwrap();
        let length = rig.bytes().len();
        let again = rig.journal.recover(&current(), RecoverMode::Continue).unwrap();
        assert_eq!(first.next, again.next, "recovery is idempotent");
        assert_eq!(rig.bytes().len(), length, "the second time appends nothing");
        match first.next.clone() {
            NextAction::UserMessage => return,
            NextAction::Step(_) => {
                rig.journal.step_attempt(&snapshot()).unwrap();
                let compacting =
                    matches!(rig.state().operation, stoplog::session::Operation::Compaction(_));
                if compacting {
                    rig.journal.compaction_settled("S.".to_owned(), used(1, 1), None).unwrap();
                } else {
                    rig.journal.assistant_settled(text("Done.")).unwrap();
                }
            }
            NextAction::Tool(Plan::StartTool { mode, tool_index, tool_started_id, .. }) => {
                let started = match mode {
                    ToolMode::Replay => tool_started_id.unwrap(),
                    ToolMode::Start => {
                        let open = rig.journal.open_calls();
                        let place = open.iter().find(|place| place.index == tool_index).unwrap();
                        rig.start(place)
                    }
                };
                rig.succeed(&started, "fine");
            }
            NextAction::Tool(_) | NextAction::Blocked(_) => {
                assert_eq!(first.next, NextAction::UserMessage)
            }
        }
    }
}

#[test]
fn a_cut_at_every_byte_of_the_last_three_records_loses_only_what_was_torn() {
    let mut rig = rig();
    rig.whole_run("First.");
    let bytes = rig.bytes();
    let ends = line_ends(&bytes);
    let from = ends[ends.len() - 4];
    for end in from..=bytes.len() {
        let kept = *ends.iter().rfind(|line_end| **line_end <= end).unwrap();
        let (mut copy, torn) = Rig::copy(&bytes[..end]).unwrap();
        assert_eq!(torn, &bytes[kept..end], "cut at byte {end}");
        assert_eq!(copy.bytes(), &bytes[..kept]);
        assert_eq!(form(copy.state()), form(&reduce(&bytes[..kept]).unwrap()));
        copy.journal.recover(&current(), RecoverMode::Close).unwrap();
        copy.whole_run("After the cut.");
        reduce(&copy.bytes()).unwrap();
    }
}

#[test]
fn calls_without_results_get_them_once_in_call_order_and_a_finished_result_stays() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places = rig.turn(calls(&[("a", "bash", "{}"), ("b", "bash", "{}"), ("c", "bash", "{}")]));
    let started = rig.start(&places[0]);
    rig.succeed(&started, "kept");
    rig.start(&places[1]);
    let mut rig = rig.reopened();
    let said = what_was_in_flight(rig.state());
    assert_eq!(
        said,
        [
            "Call 2 of 3, `bash`, had started; whether it took effect is unknown, and it is not \
             repeated.",
            "Call 3 of 3, `bash`, had not started.",
        ]
    );
    rig.journal.recover(&current(), RecoverMode::Close).unwrap();
    let results: Vec<_> =
        rig.state().transcript[2..].iter().map(|placed| placed.message.content()).collect();
    let (interrupted, aborted) = (SyntheticReason::Interrupted, SyntheticReason::Aborted);
    assert_eq!(results, [Some("kept"), Some(interrupted.content()), Some(aborted.content())]);
    let length = rig.bytes().len();
    let mut rig = rig.reopened();
    rig.journal.recover(&current(), RecoverMode::Close).unwrap();
    assert_eq!(rig.bytes().len(), length);
}

#[test]
fn a_background_job_begins_and_ends_once_and_is_told_as_lost_until_then() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places = rig.turn(calls(&[("a", "bash", "{}")]));
    let started = rig.start(&places[0]);
    let begun = |tool_started_id: &Id| {
        let (job, label) = ("job-1".to_owned(), "make".to_owned());
        Extension::JobStarted(JobStarted { tool_started_id: tool_started_id.clone(), job, label })
    };
    let ended = |job: &str| {
        let (job, outcome) = (job.to_owned(), "exit code 0".to_owned());
        Extension::JobEnded(JobEnded { job, outcome, output_bytes: 1, duration_ms: 2 })
    };
    for wrong in [begun(&Id::new()), ended("job-1")] {
        assert!(rig.journal.note(wrong).is_err());
    }
    rig.journal.note_with_next(begun(&started));
    rig.succeed(&started, "job-1 runs");
    for wrong in [begun(&started), ended("job-2")] {
        assert!(rig.journal.note(wrong).is_err());
    }
    let mut rig = rig.reopened();
    let lost = "Background job `job-1` (`make`) was running; it is gone.";
    assert_eq!(what_was_in_flight(rig.state()).last().unwrap(), lost);
    rig.journal.note(ended("job-1")).unwrap();
    assert!(rig.journal.note(ended("job-1")).is_err());
    assert!(!what_was_in_flight(rig.state()).iter().any(|sentence| sentence == lost));
    assert_eq!(form(rig.state())[1]["jobs"][0]["ended"]["outputBytes"], 1);
}

#[test]
fn only_the_call_that_changes_nothing_is_repeated() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places =
        rig.turn(calls(&[("a", "read", r#"{"path":"x"}"#), ("b", "bash", r#"{"command":"m"}"#)]));
    let read = rig.start(&places[0]);
    rig.start(&places[1]);
    let mut rig = rig.reopened();
    let recovery = rig.journal.recover(&current(), RecoverMode::Continue).unwrap();
    let NextAction::Tool(Plan::StartTool { mode, tool_started_id, arguments, .. }) = recovery.next
    else {
        panic!("{:?}", recovery.next);
    };
    assert_eq!((mode, tool_started_id), (ToolMode::Replay, Some(read.clone())));
    assert_eq!(arguments["path"], "x");
    let bash = rig.state().transcript.last().unwrap();
    assert_eq!(bash.message.content(), Some(SyntheticReason::Interrupted.content()));
    rig.succeed(&read, "fine");
    rig.turn(text("Done."));
    rig.journal.operation_finished(None).unwrap();
}

#[test]
fn what_has_changed_since_blocks_and_appends_nothing() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places = rig.turn(calls(&[("a", "read", "{}")]));
    rig.start(&places[0]);
    let mut rig = rig.reopened();
    let bytes = rig.bytes();
    let mut not_safe = current();
    not_safe.tools[0].replay = Replay::Never;
    let mut elsewhere = current();
    elsewhere.environment_identity = "/elsewhere".to_owned();
    let mut other_prompt = snapshot();
    other_prompt.system_prompt_digest = Digest::of(b"You are careless.");
    let other_prompt =
        CurrentConfiguration::new(&other_prompt, crate::rig::WORKSPACE.to_owned(), &contracts());
    let cases = [
        (not_safe, BlockReason::ReplayDeclarationChanged),
        (elsewhere, BlockReason::EnvironmentChanged),
        (other_prompt, BlockReason::ConfigurationChanged),
    ];
    for (configuration, reason) in cases {
        let recovery = rig.journal.recover(&configuration, RecoverMode::Continue).unwrap();
        assert_eq!(recovery.next, NextAction::Blocked(reason));
        assert_eq!(rig.bytes(), bytes);
    }
    let recovery = rig.journal.recover(&current(), RecoverMode::Close).unwrap();
    assert_eq!(recovery.next, NextAction::UserMessage);
}

#[test]
fn a_request_is_attempted_twice_and_no_more() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    assert_eq!(rig.journal.step_attempt(&snapshot()).unwrap().attempt, 1);
    let mut rig = rig.reopened();
    let recovery = rig.journal.recover(&current(), RecoverMode::Continue).unwrap();
    assert_eq!(recovery.in_flight, ["A model request (attempt 1 of 2) had no answer yet."]);
    let NextAction::Step(Plan::StartStep { attempt: 2, .. }) = recovery.next else {
        panic!("{:?}", recovery.next);
    };
    assert_eq!(rig.journal.step_attempt(&snapshot()).unwrap().attempt, 2);
    let mut rig = rig.reopened();
    let recovery = rig.journal.recover(&current(), RecoverMode::Continue).unwrap();
    assert_eq!(recovery.next, NextAction::Blocked(BlockReason::AttemptsExhausted));
    rig.journal.recover(&current(), RecoverMode::Close).unwrap();
    rig.whole_run("Again.");
}

#[test]
fn a_sub_agent_that_died_with_its_process_is_reported_once() {
    let mut rig = rig();
    let run = rig.journal.begin_run("Look.", None).unwrap();
    let started = SubAgentStarted {
        operation_id: run,
        run_id: Id::new(),
        session_id: Id::new(),
        label: "scout".to_owned(),
        background: true,
    };
    rig.journal.note(Extension::SubAgentStarted(started)).unwrap();
    let mut rig = rig.reopened();
    let recovery = rig.journal.recover(&current(), RecoverMode::Continue).unwrap();
    assert!(recovery.in_flight[1].starts_with("Sub-agent `scout` was running"), "{recovery:?}");
    let lost = rig.state().undelivered();
    assert_eq!(lost[0].finished.as_ref().unwrap().outcome, "interrupted");
    assert_eq!(lost[0].finished.as_ref().unwrap().usage, Counters::default());
    let length = rig.bytes().len();
    rig.journal.recover(&current(), RecoverMode::Continue).unwrap();
    assert_eq!(rig.bytes().len(), length);
}

#[test]
fn a_message_given_in_the_midst_of_a_run_is_part_of_the_next_request() {
    let mut rig = rig();
    rig.journal.begin_run("Look.", None).unwrap();
    let places = rig.turn(calls(&[("a", "read", "{}")]));
    let started = rig.start(&places[0]);
    let early = rig.journal.inject("now", stoplog::session::InjectionSource::Nudge, Vec::new());
    assert!(early.is_err(), "a call is open");
    rig.succeed(&started, "fine");
    rig.journal
        .inject("Try another way.", stoplog::session::InjectionSource::Nudge, Vec::new())
        .unwrap();
    let mut rig = rig.reopened();
    let recovery = rig.journal.recover(&current(), RecoverMode::Continue).unwrap();
    let NextAction::Step(Plan::StartStep { context_through_entry_id, .. }) = recovery.next else {
        panic!("{:?}", recovery.next);
    };
    assert_eq!(Some(&context_through_entry_id), rig.state().context_through.as_ref());
    rig.turn(text("Done."));
    rig.journal.operation_finished(None).unwrap();
}
