//! A person at a terminal: the run is given a pseudo-terminal of its own, and the test answers.

use super::rig::{Done, Live, PROGRAM, Rig, answer, bash};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ASKS: &str = "[[command.rule]]\nid = \"ask-touch\"\ndecision = \"ask\"\n\
    reason = \"ask first\"\nprogram = \"touch\"\n";

/// Runs a script at a terminal and types `keys` as soon as a question stands there. Gives what was on
/// the terminal, too.
fn at_terminal(rig: &Rig, turns: &[Value], keys: &str) -> (Done, String) {
    let policy = rig.policy(ASKS);
    let script = rig.script(turns);
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = rig.program("setsid", &["--ctty", "--wait", PROGRAM, "--state-dir"]);
    let work = rig.work();
    command.arg(rig.state()).args(["run", "--output", "stream-json", "--policy", &policy]);
    command.args(["--model", &script, "--workspace"]).arg(&work).arg("task");
    command.stdin(Stdio::from(terminal));
    let mut live = Live::start(command);
    let shown = Arc::new(Mutex::new(String::new()));
    let (mut reader, text) = (File::from(master.try_clone().unwrap()), Arc::clone(&shown));
    std::thread::spawn(move || {
        let mut buffer = [0_u8; 4096];
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            text.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    });
    let mut writer = File::from(master);
    let mut asked = 0;
    live.until(|| {
        let questions = shown.lock().unwrap().matches("Allow?").count();
        if questions > asked {
            asked = questions;
            // The question is written before it is waited for.
            std::thread::sleep(Duration::from_millis(50));
            writer.write_all(keys.as_bytes()).unwrap();
        }
        false
    });
    let done = live.end();
    let shown = shown.lock().unwrap().clone();
    (done, shown)
}

#[test]
fn stage_6_a_person_who_says_yes_lets_the_call_through() {
    let rig = Rig::new();
    let (done, shown) = at_terminal(&rig, &[bash("touch made"), answer("done")], "y\n");
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
        let (done, _) = at_terminal(&rig, &[bash("touch made"), answer("done")], keys);
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
fn a_remembered_yes_covers_exactly_the_call_that_was_shown() {
    let rig = Rig::new();
    let turns =
        [bash("touch one"), bash("rm one"), bash("touch one"), bash("touch two"), answer("x")];
    let (done, shown) = at_terminal(&rig, &turns, "a\n");
    drop(done.exits(0));
    assert_eq!(shown.matches("Allow?").count(), 2, "{shown}");
    assert!(rig.has("one") && rig.has("two"));
}

#[test]
fn the_question_shows_control_characters_as_words() {
    let rig = Rig::new();
    let hidden = "touch made # \u{1b}[2K\u{1b}[1A\u{202e}";
    let (done, shown) = at_terminal(&rig, &[bash(hidden), answer("done")], "n\n");
    drop(done.exits(10));
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    assert!(shown.contains(r"\u001b[2K") || shown.contains(r"\u{1b}[2K"), "{shown:?}");
}

#[test]
fn b15_a_question_that_nobody_answers_is_a_no_when_the_time_is_up() {
    let rig = Rig::new();
    let policy = rig.beside("short.toml", "version = 1\n[permission]\ntimeout_ms = 500\n");
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let asks = rig.policy(ASKS);
    let script = rig.script(&[bash("touch made"), answer("done")]);
    let mut command = rig.program("setsid", &["--ctty", "--wait", PROGRAM, "--state-dir"]);
    command.arg(rig.state()).args(["run", "--output", "stream-json", "--policy", &asks]);
    command.args(["--policy", &policy, "--model", &script, "--workspace"]);
    command.arg(rig.work()).arg("task").stdin(Stdio::from(terminal));
    let done = Live::start(command).end().exits(10);
    assert_eq!(done.result()["denials"][0]["code"], "permission-timeout");
    assert!(!rig.has("made"));
    drop(master);
}
