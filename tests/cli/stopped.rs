//! Stopping a run while a call is under way: that it is being aborted is on the disk before the call is
//! ended, and nothing that the disk does keeps the call alive.

use super::killed::results_of;
use super::rig::{Done, Live, PROGRAM, Rig, answer, bash};
use super::sleeper::Sleeper;
use super::traced::{Dies, Held, Moment, hold_at, lines};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// A command that leaves a mark, says so, and sleeps; and a call that waits behind it.
fn turns(sleeper: &Sleeper) -> Vec<Value> {
    let command = format!("echo mark >> marks; echo said; {}", sleeper.command());
    vec![
        json!({"calls": [
            {"id": "first", "name": "bash", "arguments": {"command": command}},
            {"id": "second", "name": "write", "arguments": {"path": "second", "content": "x"}}]}),
        answer("never"),
    ]
}

/// Stops the process as soon as its command sleeps.
fn when_begun(sleeper: &Sleeper, id: Pid) {
    let start = Instant::now();
    while !sleeper.lives() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(id, Signal::SIGINT).unwrap();
}

/// The run that is stopped, held at `moment`.
fn held<'r>(rig: &'r Rig, sleeper: &Sleeper, moment: Moment) -> Held<'r> {
    let script = rig.script(&turns(sleeper));
    let held = hold_at(rig, &rig.arguments(&script, &[]), moment, |id| when_begun(sleeper, id));
    held.unwrap_or_else(|| panic!("the run ended before {moment:?}"))
}

fn records(rig: &Rig) -> Vec<Value> {
    rig.facts().into_iter().map(|fact| fact["record"]["type"].clone()).collect()
}

/// The line of the journal that says that the run is being aborted, and how many lines there are in all.
fn lines_of_a_stopped_run() -> (usize, usize) {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let mut live = Live::start(rig.run_command(&rig.script(&turns(&sleeper)), &[]));
    assert!(live.until(|| sleeper.lives()));
    live.signal(rustix::process::Signal::INT);
    let done = live.end().exits(130);
    assert_eq!(done.statuses(), ["interrupted", "aborted"]);
    let journal = fs::read_to_string(rig.journal()).unwrap();
    let abort = journal.lines().position(|line| line.contains("\"abortRequested\""));
    let result = journal.lines().position(|line| line.contains("said\\n"));
    assert!(abort < result, "what the call had said by then is kept, behind the record");
    (abort.unwrap() + 1, lines(&rig))
}

fn resume(rig: &Rig, more: &[&str]) -> Done {
    let id = rig.session();
    let fixed = ["resume", &id, "--headless", "--output", "stream-json"];
    rig.stoplog(&[&fixed[..], more].concat())
}

#[test]
fn a_stop_is_on_the_disk_before_the_call_is_ended() {
    let (abort, _) = lines_of_a_stopped_run();
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let held = held(&rig, &sleeper, Moment::After(abort));
    assert!(sleeper.lives(), "the record is flushed and the call has not been ended");
    held.kill();
    assert!(sleeper.is_gone_soon());
    let last = rig.facts().pop().unwrap()["record"].clone();
    assert_eq!((&last["type"], &last["phase"]), (&json!("abortRequested"), &json!("tool")));
    assert_eq!(last["reason"], "escape");
    // Whoever goes on is told, and the model is told that nobody knows.
    let asked = resume(&rig, &[]).exits(2);
    let told = asked.events_of("resumed")[0]["in_flight"].clone();
    let told: Vec<&str> =
        told.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(told[0].contains("whether it took effect is unknown"), "{told:?}");
    assert_eq!(
        told[1..],
        ["Call 2 of 2, `write`, had not started.", "The operation was being aborted."]
    );
    assert_eq!(records(&rig).last().unwrap(), "operationFinished");
    rig.script(&[json!({"expect": ["interrupted", "unknown"], "text": "I will look"})]);
    assert_eq!(resume(&rig, &["go on"]).exits(0).result()["answer"], "I will look");
}

#[test]
fn a_call_has_ended_when_its_result_is_written() {
    // The control of the order: one line of the journal later the call is gone.
    let (abort, _) = lines_of_a_stopped_run();
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let held = held(&rig, &sleeper, Moment::Before(abort + 1));
    assert!(!sleeper.lives());
    // And the record is not only in the file: it had been flushed.
    held.fail_power();
    assert_eq!(records(&rig).last().unwrap(), "abortRequested");
}

#[test]
fn a_kill_at_every_line_of_a_stop_repeats_and_loses_nothing() {
    let (abort, all) = lines_of_a_stopped_run();
    let moments = (abort..=all).flat_map(|line| [Moment::Before(line), Moment::After(line)]);
    let deaths = [Dies::Process, Dies::Machine];
    for (moment, dies) in moments.flat_map(|moment| deaths.map(|dies| (moment, dies))) {
        let rig = Rig::new();
        let sleeper = Sleeper::new(&rig);
        held(&rig, &sleeper, moment).ends_by(dies);
        assert!(sleeper.is_gone_soon(), "{moment:?}");
        rig.script(&[answer("done")]);
        let done = resume(&rig, &["a further task"]).exits(0);
        assert_eq!(done.result()["answer"], "done", "{moment:?}");
        assert_eq!(
            (rig.text("marks").as_str(), rig.has("second")),
            ("mark\n", false),
            "{moment:?}"
        );
        for call in ["first", "second"] {
            assert_eq!(results_of(&rig, call).len(), 1, "{call}: {moment:?}");
        }
        let aborts = records(&rig).into_iter().filter(|kind| kind == "abortRequested").count();
        assert_eq!(aborts, 1, "{moment:?}");
        rig.stoplog(&["audit", "verify"]).exits(0);
    }
}

#[test]
fn a_disk_that_hangs_keeps_no_call_alive() {
    let (abort, _) = lines_of_a_stopped_run();
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    // The record is never written.
    let held = held(&rig, &sleeper, Moment::Before(abort));
    assert!(sleeper.is_gone_soon());
    assert!(!records(&rig).contains(&json!("abortRequested")));
    held.kill();
}

#[test]
fn a_second_signal_ends_the_process_whatever_the_disk_does() {
    let (abort, _) = lines_of_a_stopped_run();
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let held = held(&rig, &sleeper, Moment::Before(abort));
    let second = Instant::now();
    held.signal(Signal::SIGINT);
    assert_eq!(held.ends(), 130);
    assert!(second.elapsed() < Duration::from_secs(2), "{:?}", second.elapsed());
    assert!(sleeper.is_gone_soon());
}

#[test]
fn a_journal_that_cannot_be_written_keeps_no_call_alive() {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let arguments = rig.arguments(&rig.script(&turns(&sleeper)), &[]);
    let ignores = "trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut command = rig.program("/bin/sh", &["-c", ignores, PROGRAM, "--state-dir"]);
    command.arg(rig.state()).args(&arguments);
    let mut live = Live::start(command);
    assert!(live.until(|| sleeper.lives()));
    let before = lines(&rig);
    // No file may grow any more: for the process the disk is full.
    let limit = rustix::process::Rlimit { current: Some(1), maximum: Some(1) };
    let id = rustix::process::Pid::from_raw(i32::try_from(live.id()).unwrap()).unwrap();
    rustix::process::prlimit(Some(id), rustix::process::Resource::Fsize, limit).unwrap();
    live.signal(rustix::process::Signal::INT);
    let stopped = Instant::now();
    let done = live.end().exits(22);
    assert!(stopped.elapsed() < Duration::from_secs(20), "{:?}", stopped.elapsed());
    assert!(!sleeper.lives());
    assert_eq!(done.result()["finish_reason"], "record_failure");
    assert_eq!(lines(&rig), before, "nothing could be written");
    rig.script(&[answer("done")]);
    resume(&rig, &["a further task"]).exits(0);
}

#[test]
fn the_runs_time_ends_a_call_that_outlives_it() {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let policy = |seconds| rig.policy(&format!("[limits]\nrun_seconds = {seconds}\n"));
    let done = rig.play(&turns(&sleeper), &["--policy", &policy(2)]).exits(14);
    assert!(done.took < Duration::from_secs(30), "{:?}", done.took);
    assert!(!sleeper.lives() && !rig.has("second"));
    assert_eq!(done.statuses(), ["interrupted", "aborted"]);
    assert!(done.result()["error"].as_str().unwrap().contains("limits.run_seconds"));
    let records = records(&rig);
    assert!(records.contains(&json!("abortRequested")), "{records:?}");
    rig.stoplog(&["audit", "verify"]).exits(0);
    let control = [bash("sleep 0.1; touch made"), answer("done")];
    rig.play(&control, &["--policy", &policy(60)]).exits(0);
    assert!(rig.has("made"));
}
