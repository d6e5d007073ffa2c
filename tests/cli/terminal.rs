//! A person at a terminal: the run is given a pseudo-terminal of its own, and the test answers.

use super::pty::{Pty, Streams};
use super::rig::{Done, Rig, answer, bash};
use serde_json::Value;
use std::time::Duration;

const ASKS: &str = "[[command.rule]]\nid = \"ask-touch\"\ndecision = \"ask\"\n\
    reason = \"ask first\"\nprogram = \"touch\"\n";

fn start(rig: &Rig, turns: &[Value], policies: &[&str]) -> Pty {
    let script = rig.script(turns);
    let mut arguments = vec!["run", "--output", "stream-json", "--model", &script, "task"];
    arguments.extend(policies.iter().flat_map(|policy| ["--policy", policy]));
    Pty::start(rig, &arguments, &[], Streams::InputOnly)
}

/// Runs a script at a terminal and types one of `keys` as soon as a question stands there. Gives what
/// was on the terminal, too.
fn at_terminal(rig: &Rig, turns: &[Value], keys: &[&str]) -> (Done, String) {
    let mut person = start(rig, turns, &[&rig.policy(ASKS)]);
    for keys in keys {
        person.sees("Allow?").types(keys);
    }
    person.ends()
}

#[test]
fn stage_6_a_person_who_says_yes_lets_the_call_through() {
    let rig = Rig::new();
    let (done, shown) = at_terminal(&rig, &[bash("touch made"), answer("done")], &["y\n"]);
    drop(done.exits(0));
    assert!(rig.has("made"));
    assert!(shown.contains("touch made") && shown.contains("ask-touch"), "{shown}");
    let grants = rig.records_of("grant");
    assert_eq!(grants.len(), 1);
    assert_eq!(grants[0]["approved"], true);
    let stages = rig.records_of("decision")[0]["stages"].clone();
    assert_eq!(stages["permission"]["verdict"], "pass");
    assert_eq!(stages["permission"]["reasons"][0]["code"], "user-approved");
}

#[test]
fn stage_6_a_person_who_says_no_or_anything_else_refuses_the_call() {
    for keys in ["n\n", "\n", "yess\n", "\u{4}"] {
        let rig = Rig::new();
        let (done, _) = at_terminal(&rig, &[bash("touch made"), answer("done")], &[keys]);
        let done = done.exits(10);
        assert!(!rig.has("made"), "{keys:?}");
        let denial = done.result()["denials"][0].clone();
        assert_eq!(
            (&denial["stage"], &denial["code"]),
            (&"permission".into(), &"user-denied".into())
        );
        assert_eq!(rig.records_of("grant")[0]["approved"], false);
    }
}

#[test]
fn g07_the_tools_clock_does_not_run_while_a_person_thinks() {
    let rig = Rig::new();
    let limit = rig.beside("limit.toml", "version = 1\n[limits]\nwall_ms = 4000\n");
    let turns = [bash("touch made"), answer("done")];
    let asks = rig.policy(ASKS);
    let mut person = start(&rig, &turns, &[&asks, &limit]);
    person.sees("Allow?");
    std::thread::sleep(Duration::from_millis(4_500));
    person.types("y\n");
    drop(person.ends().0.exits(0));
    assert!(rig.has("made"));
}

#[test]
fn a_remembered_yes_covers_exactly_the_call_that_was_shown() {
    let rig = Rig::new();
    let turns =
        [bash("touch one"), bash("rm one"), bash("touch one"), bash("touch two"), answer("x")];
    let (done, shown) = at_terminal(&rig, &turns, &["a\n", "a\n"]);
    drop(done.exits(0));
    assert_eq!(shown.matches("Allow?").count(), 2, "{shown}");
    assert!(rig.has("one") && rig.has("two"));
}

#[test]
fn the_question_shows_control_characters_as_words() {
    let rig = Rig::new();
    let hidden = "touch made # \u{1b}[2K\u{1b}[1A\u{202e}";
    let (done, shown) = at_terminal(&rig, &[bash(hidden), answer("done")], &["n\n"]);
    drop(done.exits(10));
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    assert!(shown.contains(r"\u001b[2K") || shown.contains(r"\u{1b}[2K"), "{shown:?}");
}

#[test]
fn b15_a_question_that_nobody_answers_is_a_no_when_the_time_is_up() {
    let rig = Rig::new();
    let policy = rig.beside("short.toml", "version = 1\n[permission]\ntimeout_ms = 500\n");
    let turns = [bash("touch made"), answer("done")];
    let done = start(&rig, &turns, &[&rig.policy(ASKS), &policy]).ends().0.exits(10);
    assert_eq!(done.result()["denials"][0]["code"], "permission-timeout");
    assert!(!rig.has("made"));
}
