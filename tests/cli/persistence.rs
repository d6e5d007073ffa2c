//! What is on the disk, and when: the order of events, facts and records.

use super::rig::{Live, Rig, answer, bash, call, calls, write};
use super::scripted_http::{Reply, Server, Turn};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// What a journal's fact is about.
fn word(fact: &Value) -> String {
    let part = |key: &str| fact[key]["type"].as_str().map(str::to_owned);
    let message = fact["entry"]["message"]["role"].as_str().map(str::to_owned);
    let kind = fact["kind"].as_str().unwrap().to_owned();
    message.or_else(|| part("record")).or_else(|| part("extension")).unwrap_or(kind)
}

#[test]
fn b03_b04_events_come_in_the_documented_order_and_the_result_is_last() {
    let rig = Rig::new();
    let turns = [
        json!({"text": "look", "calls": [
            {"name": "bash", "arguments": {"command": "true"}},
            {"name": "bash", "arguments": {"command": "false"}}]}),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]).exits(0);
    let events = done.events();
    let mut one_call = vec!["tool_call"];
    one_call.extend(["decision"; 6]);
    one_call.push("tool_result");
    let mut expected = vec!["init", "user_message", "text_delta", "assistant_message", "usage"];
    expected.extend(&one_call);
    expected.extend(&one_call);
    expected.extend(["text_delta", "assistant_message", "usage", "result"]);
    assert_eq!(kinds(&events), expected);
    let stages: Vec<&str> = done
        .events_of("decision")
        .iter()
        .take(6)
        .map(|event| event["stage"].clone())
        .collect::<Vec<_>>()
        .iter()
        .map(|stage| {
            ["abort", "role", "hooks", "firewall", "guardian", "permission"]
                .into_iter()
                .find(|name| stage == name)
                .unwrap()
        })
        .collect();
    assert_eq!(stages, ["abort", "role", "hooks", "firewall", "guardian", "permission"]);
    assert_eq!(done.statuses(), ["ok", "failed"]);
}

#[test]
fn a28_b18_b26_every_boundary_is_a_fact_and_intent_comes_before_the_effect() {
    let rig = Rig::new();
    rig.play(&[write("a", "x"), answer("done")], &[]).exits(0);
    let words: Vec<String> = rig.facts().iter().map(word).collect();
    assert_eq!(
        words,
        [
            "header",
            "user",
            "runStarted",
            "runContext",
            "stepAttempt",
            "assistant",
            "usage",
            "toolStarted",
            "tool",
            "iteration",
            "stepAttempt",
            "assistant",
            "usage",
            "iteration",
            "operationFinished",
            "finalStatistics",
        ]
    );
    let records = rig.records();
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session", "decision", "started", "outcome", "end"]);
    assert_eq!(records[3]["files_written"][0], rig.work().join("a").to_str().unwrap());
}

#[test]
fn b03_the_users_words_are_durable_before_the_model_is_asked() {
    let rig = Rig::new();
    let slow = Reply::chat_stream(&Turn::text("x")).after(Duration::from_secs(20));
    let server = Server::start(vec![slow]);
    let url = server.base_url();
    let mut live = Live::start(rig.run_command("openai/x", &["--base-url", &url]));
    assert!(live.until(|| !server.requests().is_empty()));
    live.signal(rustix::process::Signal::KILL);
    drop(live.end());
    let words: Vec<String> = rig.facts().iter().map(word).collect();
    assert_eq!(words[..2], ["header", "user"]);
    assert_eq!(words.last().unwrap(), "stepAttempt", "and the attempt as well");
}

#[test]
fn a22_the_start_of_a_call_is_durable_in_both_files_before_the_call_runs() {
    // G13, G17
    let rig = Rig::new();
    let script = rig.script(&[bash("touch begun; sleep 60"), answer("done")]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    assert!(live.until(|| rig.has("begun")));
    live.signal(rustix::process::Signal::KILL);
    drop(live.end());
    assert_eq!(word(rig.facts().last().unwrap()), "toolStarted");
    let records = rig.records();
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session", "decision", "started"]);
}

#[test]
fn b27_the_final_answer_is_stored_with_its_statistics() {
    let rig = Rig::new();
    let turns = [
        json!({"calls": [{"name": "bash", "arguments": {"command": "true"}},
            {"name": "read", "arguments": {"path": "/etc/shadow"}}],
            "usage": {"input": 100, "output": 7}}),
        json!({"text": "done", "usage": {"input": 200, "output": 3, "cache_read": 50}}),
    ];
    let done = rig.play(&turns, &[]).exits(10);
    let statistics = rig.facts().pop().unwrap()["extension"].clone();
    assert_eq!(statistics["type"], "finalStatistics");
    assert_eq!((&statistics["iterations"], &statistics["executed"]), (&json!(2), &json!(1)));
    assert_eq!(statistics["denied"], 1);
    assert_eq!(
        (&statistics["usage"]["input"], &statistics["usage"]["output"]),
        (&json!(300), &json!(10))
    );
    assert_eq!(done.result()["usage"]["input"], 300);
    let finished = rig.facts().into_iter().find(|fact| word(fact) == "operationFinished").unwrap();
    let answer = rig.facts().into_iter().rfind(|fact| word(fact) == "assistant").unwrap();
    assert_eq!(finished["record"]["finalEntryId"], answer["id"]);
}

#[test]
fn b28_one_store_holds_the_conversation_and_both_files_are_joined_by_ids() {
    let rig = Rig::new();
    rig.play(&[write("a", "x"), answer("done")], &[]).exits(0);
    let records = rig.records();
    assert_eq!(records[0]["session"], rig.session());
    let started = rig.facts().into_iter().find(|fact| word(fact) == "toolStarted").unwrap();
    assert_eq!(started["record"]["toolCallId"], records[1]["provider_id"]);
    let context = rig.facts().into_iter().find(|fact| word(fact) == "runContext").unwrap();
    assert_eq!(context["extension"]["policy"]["digest"], records[0]["policy"]["digest"]);
    let session = rig.sessions().pop().unwrap();
    let mut names: Vec<String> = fs::read_dir(session)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["journal.jsonl", "journal.lock", "quarantine", "tmp"]);
}

#[test]
fn g10_state_is_readable_by_its_owner_alone() {
    let rig = Rig::new();
    rig.play(&[answer("done")], &[]).exits(0);
    let mut pending = vec![rig.state()];
    let mut files = 0;
    while let Some(path) = pending.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        // What the tools see as their temporary directory may hold files of any mode; nobody else
        // gets so far.
        if path.file_name().unwrap() == "tmp" {
            continue;
        }
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{}", path.display());
        files += 1;
        if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(files > 5);
}

#[test]
fn b13_calls_that_change_nothing_run_together_and_results_keep_the_models_order() {
    // A12, G5
    let rig = Rig::new();
    for name in ["a", "b", "c"] {
        rig.file(name, name);
    }
    let read = |name: &str| ("read", json!({"path": name}));
    let done = rig
        .play(&[calls(&[read("a"), read("b"), read("absent"), read("c")]), answer("done")], &[])
        .exits(0);
    // All are decided before the first result: they are under way together.
    let events = done.events();
    let events = kinds(&events);
    let first_result = events.iter().position(|kind| *kind == "tool_result").unwrap();
    let decided = events.iter().take(first_result).filter(|kind| **kind == "tool_call").count();
    assert_eq!(decided, 4);
    let results: Vec<Value> = rig.facts().into_iter().filter(|fact| word(fact) == "tool").collect();
    assert_eq!(results.len(), 4, "one failing call orphans no sibling");
    let control =
        rig.play(&[calls(&[("bash", json!({"command": "true"})), read("a")]), answer("x")], &[]);
    let events = control.exits(0).events();
    let events = kinds(&events);
    let first_result = events.iter().position(|kind| *kind == "tool_result").unwrap();
    let decided = events.iter().take(first_result).filter(|kind| **kind == "tool_call").count();
    assert_eq!(decided, 1, "a command runs alone");
}

#[test]
fn b14_post_tool_hooks_are_told_and_change_nothing() {
    let rig = Rig::new();
    let policy = rig.policy(
        "[[hooks.rule]]\nid = \"told\"\nreason = \"looks afterwards\"\nevent = \"post-tool\"\n\
         tools = \"*\"\nargv = [\"/bin/sh\", \"-c\", \"cat > told.json; exit 2\"]\n",
    );
    let turns = [call("write", &json!({"path": "a", "content": "x"})), answer("done")];
    rig.play(&turns, &["--policy", &policy]).exits(0);
    assert!(rig.has("a"));
    let told: Value = serde_json::from_str(&rig.text("told.json")).unwrap();
    assert_eq!((&told["event"], &told["status"]), (&json!("post-tool"), &json!("ok")));
    assert_eq!(told["arguments"]["path"], "a");
    assert_eq!(rig.records_of("hook")[0]["event"], "post-tool");
    rig.stoplog(&["audit", "verify"]).exits(0);
}
