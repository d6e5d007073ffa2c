//! The six stages, each with a call that it alone stops and the control in which the same call goes
//! through.

use super::rig::{Done, Live, Rig, answer, bash, call, calls, write};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const STAGES: [&str; 6] = ["abort", "role", "hooks", "firewall", "guardian", "permission"];

/// The decision that a stage made alone: those before it had nothing against the call, those behind it
/// were not reached, and the call never started.
fn assert_stopped_by(rig: &Rig, stage: &str, code: &str) -> Value {
    let denied: Vec<Value> = rig
        .records_of("decision")
        .into_iter()
        .filter(|record| record["ruling"] == "denied")
        .collect();
    let stopped = denied.iter().find(|record| record["stages"][stage]["verdict"] == "deny");
    let record = stopped.unwrap_or_else(|| panic!("`{stage}` denied nothing: {denied:#?}")).clone();
    let place = STAGES.iter().position(|name| *name == stage).unwrap();
    for (index, name) in STAGES.iter().enumerate() {
        let verdict = record["stages"][name]["verdict"].as_str().unwrap();
        match index.cmp(&place) {
            std::cmp::Ordering::Less => {
                assert!(["pass", "skipped", "require"].contains(&verdict), "{name}: {verdict}");
            }
            std::cmp::Ordering::Equal => assert_eq!(verdict, "deny"),
            std::cmp::Ordering::Greater => assert_eq!(verdict, "not-reached", "{name}"),
        }
    }
    assert_eq!(record["stages"][stage]["reasons"][0]["code"], code, "{record:#}");
    let started = rig.records_of("started");
    assert!(started.iter().all(|start| start["call"] != record["call"]), "it started");
    record
}

/// The control: nothing was denied and the effect is there.
fn assert_went_through(rig: &Rig, done: Done, file: &str) {
    drop(done.exits(0));
    assert!(rig.has(file), "the control has no effect");
    let decisions = rig.records_of("decision");
    assert!(decisions.iter().all(|record| record["ruling"] == "approved"), "{decisions:#?}");
    for record in decisions {
        for stage in STAGES {
            let verdict = record["stages"][stage]["verdict"].as_str().unwrap();
            assert!(["pass", "skipped", "require"].contains(&verdict), "{stage}: {verdict}");
        }
    }
}

/// The denial as the run's result lists it.
fn assert_listed(done: &Done, stage: &str, code: &str) {
    let denials = done.result()["denials"].clone();
    let listed = denials.as_array().unwrap().iter();
    let listed = listed.filter(|denial| denial["stage"] == stage && denial["code"] == code);
    assert_eq!(listed.count(), 1, "{denials:#}");
}

#[test]
fn stage_1_a_call_that_waits_while_the_run_is_stopped_is_refused_by_the_abort_check() {
    // B14 (1), B15
    let turns = |first: &str| {
        [
            calls(&[
                ("bash", json!({"command": first})),
                ("write", json!({"path": "second", "content": "x"})),
            ]),
            answer("done"),
        ]
    };
    let rig = Rig::new();
    let script = rig.script(&turns("touch begun; sleep 60"));
    let mut live = Live::start(rig.run_command(&script, &[]));
    assert!(live.until(|| rig.has("begun")));
    live.signal(rustix::process::Signal::INT);
    let done = live.end().exits(130);
    assert_stopped_by(&rig, "abort", "aborted");
    assert_listed(&done, "abort", "aborted");
    assert!(!rig.has("second"));
    assert_eq!(done.statuses(), ["interrupted", "aborted"]);
    let control = Rig::new();
    let done = control.play(&turns("touch begun"), &[]);
    assert_went_through(&control, done, "second");
}

const ROLES: &str = "[roles]\ndefault = \"reader\"\n[roles.reader]\ntools = [\"read\"]\n\
    reason = \"readers change nothing\"\n[roles.writer]\ntools = [\"read\", \"write\"]\n";

#[test]
fn stage_2_a_tool_that_the_role_lacks_is_refused_by_the_role_gate() {
    // B14 (3), B15, B32
    let rig = Rig::new();
    let policy = rig.policy(ROLES);
    let turns = [write("made", "x"), answer("done")];
    let done = rig.play(&turns, &["--policy", &policy]).exits(10);
    let record = assert_stopped_by(&rig, "role", "role-denied");
    assert_listed(&done, "role", "role-denied");
    assert_eq!(record["role"], "reader");
    assert!(!rig.has("made"));
    let done = rig.play(&turns, &["--policy", &policy, "--role", "writer"]);
    assert_went_through(&rig, done, "made");
}

fn hook(argv: &[&str], timeout_ms: u64) -> String {
    format!(
        "[[hooks.rule]]\nid = \"watch\"\nreason = \"looks at writes\"\nevent = \"pre-tool\"\n\
         tools = \"write\"\nargv = {}\ntimeout_ms = {timeout_ms}\n",
        json!(argv)
    )
}

#[test]
fn stage_3_a_hook_that_blocks_crashes_hangs_or_babbles_refuses_the_call() {
    // B14 (4), B15, B31, G9
    let turns = [write("made", "x"), answer("done")];
    let script = |text: &str| hook(&["/bin/sh", "-c", text], 30_000);
    for (policy, code) in [
        (script("echo not today >&2; exit 2"), "hook-denied"),
        (script("echo '{\"decision\":\"deny\",\"reason\":\"no\"}'"), "hook-denied"),
        (script("echo '{\"decision\":'; exit 2"), "hook-denied"),
        (script("echo '{\"decision\":\"pass\"}'; exit 2"), "hook-denied"),
        (script("exit 1"), "hook-failed"),
        (script("kill -9 $$"), "hook-failed"),
        (script("echo '{\"permissionDecision\":'"), "hook-garbage"),
        (script("echo '{\"decision\":\"allow\"}'"), "hook-garbage"),
        (hook(&["/bin/sh", "-c", "sleep 60"], 300), "hook-timeout"),
        (hook(&["/no/such/interpreter"], 30_000), "hook-failed"),
    ] {
        let rig = Rig::new();
        let policy = rig.policy(&policy);
        let done = rig.play(&turns, &["--policy", &policy]).exits(10);
        let record = assert_stopped_by(&rig, "hooks", code);
        assert_listed(&done, "hooks", code);
        assert_eq!(record["stages"]["hooks"]["reasons"][0]["rule"], "watch");
        assert_eq!(rig.records_of("hook")[0]["code"], code);
        assert!(!rig.has("made"));
    }
    // The hook reads the call as JSON and passes what it knows.
    let rig = Rig::new();
    let looks = script("read call; case $call in *'\"path\":\"made\"'*) ;; *) exit 2;; esac");
    let policy = rig.policy(&looks);
    let done = rig.play(&turns, &["--policy", &policy]);
    assert_went_through(&rig, done, "made");
    assert_eq!(rig.records_of("hook").len(), 1);
    rig.play(&[write("other", "x"), answer("done")], &["--policy", &policy]).exits(10);
    assert!(!rig.has("other"));
}

#[test]
fn stage_3_a_hooks_program_may_lie_where_no_tool_sees_it() {
    let rig = Rig::new();
    let program = rig.home().join("watch.sh");
    fs::write(&program, "#!/bin/sh\necho closed >&2\nexit 2\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let policy = rig.policy(&hook(&[program.to_str().unwrap()], 30_000));
    let turns = [write("made", "x"), bash("cat ~/watch.sh"), answer("done")];
    let done = rig.play(&turns, &["--policy", &policy]).exits(10);
    let record = assert_stopped_by(&rig, "hooks", "hook-denied");
    let sentence = record["stages"]["hooks"]["reasons"][0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("closed"), "{sentence}");
    assert!(!done.results()[1].contains("closed"), "a tool sees the hook");
}

#[test]
fn stage_4_a_path_and_a_command_that_a_rule_denies_are_refused_by_the_firewall() {
    // B14 (5), B15, B31
    let rule = "[[command.rule]]\nid = \"no-touch\"\ndecision = \"deny\"\nreason = \"not here\"\n\
        program = \"touch\"\n[[path.rule]]\nid = \"no-made\"\ndecision = \"deny\"\n\
        reason = \"not there\"\naccess = [\"write\"]\npaths = [\"{workspace}/made\"]\n";
    for (turn, id) in [(bash("touch other"), "no-touch"), (write("made", "x"), "no-made")] {
        let rig = Rig::new();
        let policy = rig.policy(rule);
        let done = rig.play(&[turn.clone(), answer("done")], &["--policy", &policy]).exits(10);
        let record = assert_stopped_by(&rig, "firewall", "rule-matched");
        let reason = record["stages"]["firewall"]["reasons"][0].clone();
        assert_eq!(reason["rule"], id);
        assert!(reason["line"].as_u64().unwrap() > 2 && reason["file"].is_string(), "{reason}");
        assert!(!rig.has("made") && !rig.has("other"));
        let denial = done.result()["denials"][0].clone();
        assert!(denial["place"].as_str().unwrap().contains("policy.toml:"), "{denial}");
        let control = Rig::new();
        let done = control.play(&[turn, answer("done")], &[]);
        let file = if id == "no-touch" { "other" } else { "made" };
        assert_went_through(&control, done, file);
    }
}

#[test]
fn stage_5_a_call_that_the_guardian_refuses_or_fails_to_review_is_refused() {
    // B14 (6), B15, B31, G10
    let turns = [write("made", "x"), answer("done")];
    let says = |text: &str| json!({"text": text});
    let pass = says(r#"{"risk":"low","verdict":"pass","reason":"a new file"}"#);
    for (turn, code) in [
        (says(r#"{"risk":"high","verdict":"deny","reason":"bad"}"#), "guardian-denied"),
        (says("looks fine to me"), "guardian-malformed"),
        (
            says(r#"{"risk":"low","verdict":"deny","verdict":"pass","reason":"twice"}"#),
            "guardian-malformed",
        ),
        (json!({"error": {"status": 500}}), "guardian-error"),
        (json!({"delay_ms": 60_000, "text": "late"}), "guardian-timeout"),
        (pass, ""),
    ] {
        let rig = Rig::new();
        let reviewer = rig.beside("reviewer.jsonl", turn.to_string());
        let policy = rig.policy(&format!(
            "[guardian]\nenabled = true\nmodel = \"script/{reviewer}\"\ntimeout_ms = 1000\n"
        ));
        let done = rig.play(&turns, &["--policy", &policy]);
        assert_eq!(rig.records_of("guardian").len(), 1);
        if code.is_empty() {
            assert_went_through(&rig, done, "made");
            continue;
        }
        let done = done.exits(10);
        assert_stopped_by(&rig, "guardian", code);
        assert_listed(&done, "guardian", code);
        assert!(!rig.has("made"));
    }
}

#[test]
fn stage_6_what_needs_a_person_is_refused_where_nobody_can_be_asked() {
    // B14 (7), B15, B31, G11
    let turns = [bash("touch made"), answer("done")];
    let rig = Rig::new();
    let policy = rig.policy(
        "[[command.rule]]\nid = \"ask-touch\"\ndecision = \"ask\"\nreason = \"ask first\"\n\
         program = \"touch\"\n",
    );
    let done = rig.play(&turns, &["--policy", &policy]).exits(10);
    let record = assert_stopped_by(&rig, "permission", "ask-headless");
    assert_listed(&done, "permission", "ask-headless");
    assert_eq!(record["stages"]["firewall"]["verdict"], "require");
    assert_eq!(record["stages"]["permission"]["reasons"][0]["rule"], "ask-touch");
    assert!(!rig.has("made"));
    assert!(done.took.as_secs() < 60, "it waited for somebody");
    let control = Rig::new();
    let done = control.play(&turns, &[]);
    assert_went_through(&control, done, "made");
}

#[test]
fn a_denial_is_final_in_the_conversation_and_the_model_is_told_why() {
    let rig = Rig::new();
    let turns = [
        call("read", &json!({"path": "/etc/shadow"})),
        json!({"expect": ["denied by policy (firewall", "This is final"], "text": "I cannot."}),
    ];
    let done = rig.play(&turns, &[]).exits(10);
    assert_eq!(done.result()["status"], "denied");
    assert_eq!(done.result()["answer"], "I cannot.");
}
