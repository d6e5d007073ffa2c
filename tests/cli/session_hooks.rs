//! Hooks of a session: asked before the first request, told at the end. Row B30 of the founding documents.

use super::rig::{Live, Rig, answer, bash, write};
use rustix::process::Signal;
use serde_json::{Value, json};

fn hook(event: &str, script: &str, timeout_ms: u64) -> String {
    format!(
        "[[hooks.rule]]\nid = \"{event}-watch\"\nreason = \"looks at runs\"\nevent = \"{event}\"\n\
         argv = {}\ntimeout_ms = {timeout_ms}\n",
        json!(["/bin/sh", "-c", script])
    )
}

fn hooks_of(rig: &Rig, event: &str) -> Vec<Value> {
    rig.records_of("hook").into_iter().filter(|record| record["event"] == event).collect()
}

#[test]
fn b30_a_session_start_hook_that_is_not_clearly_content_ends_the_run_before_the_first_request() {
    let turns = [write("made", "x"), answer("done")];
    for (script, timeout_ms, code) in [
        ("echo not now >&2; exit 2", 30_000, "hook-denied"),
        ("echo '{\"decision\":\"deny\",\"reason\":\"no\"}'", 30_000, "hook-denied"),
        ("exit 1", 30_000, "hook-failed"),
        ("echo babble", 30_000, "hook-garbage"),
        ("sleep 60", 300, "hook-timeout"),
    ] {
        let rig = Rig::new();
        let policy = rig.policy(&hook("session-start", script, timeout_ms));
        let done = rig.play(&turns, &["--policy", &policy]).exits(10);
        let result = done.result();
        assert_eq!(
            (&result["finish_reason"], &result["turns"]),
            (&json!("hook_denied"), &json!(0))
        );
        assert_eq!(done.events_of("user_message").len(), 1, "the user's words are kept");
        let record = &hooks_of(&rig, "session-start")[0];
        assert_eq!((&record["code"], &record["call"]), (&json!(code), &json!(rig.session())));
        assert!(!rig.has("made"));
        assert!(rig.stoplog(&["session", "list"]).exits(0).stdout.contains("idle"));
        rig.stoplog(&["audit", "verify"]).exits(0);
    }
    let rig = Rig::new();
    let looks = "read told; case $told in *'\"event\":\"session-start\"'*) ;; *) exit 2;; esac";
    let policy = rig.policy(&hook("session-start", looks, 30_000));
    rig.play(&turns, &["--policy", &policy]).exits(0);
    assert!(rig.has("made"), "the control: a hook that is content");
}

#[test]
fn b30_a_session_end_hook_is_told_how_the_run_ended_and_changes_nothing() {
    let rig = Rig::new();
    let policy = rig.policy(&hook("session-end", "cat > told; exit 1", 30_000));
    let told = || serde_json::from_str::<Value>(&rig.text("told")).unwrap();
    rig.play(&[answer("done")], &["--policy", &policy]).exits(0);
    assert_eq!((&told()["event"], &told()["finish"]), (&json!("session-end"), &json!("stop")));
    assert_eq!(told()["session"], rig.session());
    assert_eq!(hooks_of(&rig, "session-end")[0]["code"], "hook-failed");
    let kinds: Vec<Value> = rig.records().iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds.last().unwrap(), "end");
    // Also when somebody stops the run.
    let model = rig.script(&[bash("touch begun; sleep 60"), answer("never")]);
    let mut live = Live::start(rig.run_command(&model, &["--policy", &policy]));
    assert!(live.until(|| rig.has("begun")));
    live.signal(Signal::INT);
    live.end().exits(130);
    assert_eq!(told()["finish"], "interrupted");
}

#[test]
fn a_hook_of_a_session_has_no_tools_and_one_of_a_call_has_some() {
    let rig = Rig::new();
    let wrong = hook("session-start", "true", 1_000) + "tools = \"*\"\n";
    let policy = rig.policy(&wrong);
    let done = rig.play(&[answer("x")], &["--policy", &policy]).exits(21);
    drop(done.says(&["a hook of `session-start` is for no tool"]));
    let policy = rig.policy(&hook("pre-tool", "true", 1_000));
    let done = rig.play(&[answer("x")], &["--policy", &policy]).exits(21);
    drop(done.says(&["does not say for which tools it is"]));
}
