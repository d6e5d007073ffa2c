//! A person at a terminal: the run is given a pseudo-terminal of its own, and the test answers and
//! looks at what stands there.

use super::pty::{Pty, Streams};
use super::rig::{Done, Rig, answer, bash, call};
use super::scripted_http::{Reply, Server};
use serde_json::{Value, json};
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

/// A file, a slow call, an edit of the file, and an answer in two paragraphs.
fn working(rig: &Rig) -> String {
    rig.file("a.txt", "one\ntwo\n");
    let edit = call("edit", &json!({"path": "a.txt", "old": "two\n", "new": "2\u{1b}[2J\n"}));
    let first = json!({"text": "I look first.", "calls": [{"name": "bash", "arguments":
        {"command": "touch begun; until test -e go; do sleep 0.05; done"}}]});
    let last = json!({"text": "It is done.\n\nReally.", "chunk": 4});
    rig.script(&[first, edit, last])
}

#[test]
fn a_run_shows_the_call_while_it_runs_the_diff_of_an_edit_and_the_answer_once() {
    let rig = Rig::new();
    let script = working(&rig);
    let mut person = Pty::start(&rig, &["run", "--model", &script, "task"], &[], Streams::All);
    person.sees("session ").sees("I look first.").sees("… bash touch begun");
    person.until(|| rig.has("begun"));
    rig.file("go", "");
    // The line gives way to what became of the call.
    person.sees("\u{1b}[K").sees("bash touch begun").sees(" ms").sees("edit a.txt");
    person.sees("-two").sees("+2\\u{1b}[2J").sees("It is done.\r\n\r\nReally.\r\n");
    person.sees("stop after 3 turns");
    let (done, shown) = person.ends();
    drop(done.exits(0));
    for once in ["It is done.", "I look first."] {
        assert_eq!(shown.matches(once).count(), 1, "{once}: {shown}");
    }
    assert!(shown.contains("\u{1b}[3"), "the control: without NO_COLOR there is colour");
    assert!(!shown.contains("\u{1b}[2J"), "nothing of a model reaches the terminal as it is");
}

#[test]
fn a_run_honours_no_color() {
    let rig = Rig::new();
    let script = working(&rig);
    rig.file("go", "");
    let arguments = ["run", "--model", &script, "task"];
    let mut person = Pty::start(&rig, &arguments, &[("NO_COLOR", "1")], Streams::All);
    person.sees("-two").sees("Really.");
    let (done, shown) = person.ends();
    drop(done.exits(0));
    for rendition in ["\u{1b}[3", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[0m"] {
        assert!(!shown.contains(rendition), "{rendition:?} in {shown:?}");
    }
}

#[test]
fn a_run_shows_an_answer_as_it_arrives() {
    let rig = Rig::new();
    let delta = json!({"choices": [{"index": 0, "delta": {"content": "first words"}}]});
    let piece = format!("data: {delta}\n\n").into_bytes();
    // Its end never comes.
    let begun = Reply::open_stream().then_chunk(&piece).then_pause(Duration::from_secs(3_600));
    let server = Server::start(vec![begun]);
    let url = server.base_url();
    let arguments = ["run", "--model", "openai/x", "--base-url", &url, "task"];
    let mut person = Pty::start(&rig, &arguments, &[("OPENAI_API_KEY", "k")], Streams::All);
    person.sees("first words").types("\u{3}").sees("interrupted");
    drop(person.ends().0.exits(130));
}

#[test]
fn a_kept_answer_is_whole_and_holds_nothing_else() {
    let rig = Rig::new();
    let script = working(&rig);
    rig.file("go", "");
    // Standard output is kept, standard error is no terminal: no diff, nothing that gives way.
    let arguments = ["run", "--model", &script, "task"];
    let kept = Pty::start(&rig, &arguments, &[], Streams::InputOnly).ends().0.exits(0);
    assert_eq!(kept.stdout, "It is done.\n\nReally.\n");
    assert!(kept.stderr.contains("edit a.txt") && !kept.stderr.contains("-two"), "{}", kept.stderr);
}
