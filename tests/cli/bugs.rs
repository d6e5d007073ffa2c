//! Ways in which public agents have failed in their loops, tools and sessions, end to end. The number
//! is that of the list of public bugs. The others stand with what they are about: edits (7-10) in
//! `file_tools::edit` and `tools::worker::edit`, streams and answers (15-17) in `model`, `model::adapter`
//! and `model::sse`, journals (18, 19, 21) in `base::jsonl`, `session::damage` and `session::journal`,
//! compaction (22) in `agent::tests`, hooks and rules (23, 24) in `cli::stages` and `shell`, background
//! results (27) in `agent::tests`. There are no sub-agents yet, so that 26 is held for resumed
//! sessions alone (`cli::sessions`).

use super::rig::{Live, Rig, answer, bash, call, calls, is_root, write};
use super::scripted_http::{Reply, Server, Turn};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// A run of one command; what the model was told, and how long the call took.
fn one(rig: &Rig, arguments: &Value) -> (String, Duration) {
    let done = rig.play(&[call("bash", arguments), answer("done")], &[]).exits(0);
    let event = done.events_of("tool_result").remove(0);
    let took = Duration::from_millis(event["duration_ms"].as_u64().unwrap());
    (event["content"].as_str().unwrap().to_owned(), took)
}

#[test]
fn bug_01_a_background_child_that_holds_the_output_does_not_hold_the_call() {
    let rig = Rig::new();
    let (told, took) = one(&rig, &json!({"command": "(sleep 60; touch canary) & echo done"}));
    assert!(told.contains("done"), "{told}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let (told, took) =
        one(&rig, &json!({"command": "nohup sleep 60 > log 2>&1 & sleep 0.2; echo up; cat log"}));
    assert!(told.contains("up") && took < Duration::from_secs(10), "{told} {took:?}");
    assert!(!rig.has("canary"));
}

#[test]
fn bug_02_a_time_out_ends_the_whole_tree_and_keeps_the_output_so_far() {
    let rig = Rig::new();
    for command in [
        "echo early; (sleep 3; touch canary) & sleep 600",
        "echo early; trap '' TERM; (trap '' TERM; sleep 3; touch canary) & sleep 600; sleep 600",
        "echo early; setsid sh -c 'sleep 3; touch canary' & sleep 600",
    ] {
        let (told, took) = one(&rig, &json!({"command": command, "timeout_ms": 500}));
        assert!(told.contains("early"), "{told}");
        assert!(told.contains("time"), "the model is told that the time was up: {told}");
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
    let outcome = rig.records_of("outcome").remove(0);
    assert_eq!(
        (&outcome["exit"]["how"], &outcome["limits_hit"]),
        (&json!("timed-out"), &json!(["wall"]))
    );
    std::thread::sleep(Duration::from_secs(4));
    assert!(!rig.has("canary"), "a child outlived its call");
    one(&rig, &json!({"command": "(sleep 0.1; touch canary) & wait"}));
    assert!(rig.has("canary"), "the control");
}

#[test]
fn bug_03_nothing_waits_for_input_or_finds_a_terminal() {
    let rig = Rig::new();
    let (told, took) = one(&rig, &json!({"command": "cat; read x; echo \"end $?\""}));
    assert!(told.contains("end 1") && took < Duration::from_secs(10), "{told}");
    let (told, _) =
        one(&rig, &json!({"command": "(read x < /dev/tty) 2>&1; tty; [ -t 0 ] || echo none"}));
    assert!(told.contains("none") && told.contains("not a tty"), "{told}");
}

#[test]
fn bug_04_output_that_is_no_text_does_not_end_the_loop() {
    let rig = Rig::new();
    let (told, _) = one(&rig, &json!({"command": r"printf 'a\xf0b\xffc\000d'; exit 5"}));
    assert!(told.contains("a\u{fffd}b\u{fffd}c"), "{told:?}");
    assert!(told.contains("[exit status 5]"), "{told}");
    rig.stoplog(&["audit", "verify"]).exits(0);
    rig.stoplog(&["session", "show"]).exits(0);
}

#[test]
fn bug_05_a_result_is_cut_between_characters_and_says_so() {
    let rig = Rig::new();
    let (told, _) = one(&rig, &json!({"command": "yes 中中中中中中中中中中 | head -n 4000"}));
    assert!(told.len() <= 50_000 + 1_000, "{}", told.len());
    assert!(!told.contains('\u{fffd}'), "a character was cut");
    assert!(told.contains("omitted") || told.contains("left out"), "{told}");
    let outcome = rig.records_of("outcome").remove(0);
    assert_eq!(outcome["stdout_bytes"], 4_000 * 31);
    assert_eq!(outcome["truncated"], true);
}

#[test]
fn bug_06_endless_output_costs_bounded_memory_and_the_time_limit_still_holds() {
    // A11: bounds; persistence, errors and cancellation have tests of their own.
    let rig = Rig::new();
    let endless = json!({"command": "yes", "timeout_ms": 1_500});
    let no_newline = json!({"command": "tr '\\0' a < /dev/zero", "timeout_ms": 1_500});
    let script = rig.script(&[call("bash", &endless), call("bash", &no_newline), answer("done")]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    let (id, mut peak) = (live.id(), 0);
    live.until(|| {
        peak = peak.max(peak_memory(id));
        false
    });
    let done = live.end().exits(0);
    assert_eq!(done.statuses(), ["failed", "failed"]);
    assert!(done.took < Duration::from_secs(60));
    assert!(peak > 0 && peak < 120_000, "{peak} KiB");
    for event in done.events_of("tool_result") {
        assert!(event["content"].as_str().unwrap().len() < 52_000);
    }
}

/// The most memory that a process had, in KiB.
fn peak_memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn bug_11_two_edits_of_one_file_in_one_answer_both_hold() {
    let rig = Rig::new();
    let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    rig.file("n.txt", numbers.join("\n"));
    let edit = |old: &str, new: &str| {
        ("edit", json!({"path": "n.txt", "old": format!("\n{old}\n"), "new": format!("\n{new}\n")}))
    };
    let turn = calls(&[edit("50", "FIFTY"), edit("75", "SEVENTY-FIVE"), edit("absent", "x")]);
    let done = rig.play(&[turn, answer("done")], &[]).exits(0);
    assert_eq!(done.statuses(), ["ok", "ok", "failed"]);
    let text = rig.text("n.txt");
    assert!(text.contains("\nFIFTY\n") && text.contains("\nSEVENTY-FIVE\n"));
    assert_eq!(text.lines().count(), 100);
}

#[test]
fn bug_12_malformed_arguments_do_not_poison_what_is_sent_later() {
    let rig = Rig::new();
    let mut turn = Turn::default();
    for (number, text) in
        [r#"{"path": "a"#, "", "[]", "null", r#"{"a":1}{"b":2}"#].iter().enumerate()
    {
        turn = turn.call(&format!("c{number}"), "read", text);
    }
    let server = Server::start(vec![
        Reply::chat_stream(&turn),
        Reply::chat_stream(&Turn::default().call("d", "bash", r#"{"command":"true"}"#)),
        Reply::chat_stream(&Turn::text("done")),
    ]);
    let url = server.base_url();
    let done = rig.run("openai/x", &["--base-url", &url]).exits(0);
    assert_eq!(done.statuses()[..5], ["rejected"; 5]);
    for request in &server.requests()[1..] {
        for message in request.body["messages"].as_array().unwrap() {
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let text = call["function"]["arguments"].as_str().unwrap();
                let value: Value = serde_json::from_str(text).unwrap();
                assert!(value.is_object(), "{text}");
            }
        }
    }
    let raw: Vec<Value> =
        rig.records_of("rejected").iter().map(|record| record["arguments"].clone()).collect();
    assert_eq!(raw[0], r#"{"path": "a"#, "the log keeps what was sent");
    assert_eq!(raw[4], r#"{"a":1}{"b":2}"#);
}

#[test]
fn bug_13_an_empty_result_becomes_a_fixed_text_and_an_empty_answer_is_none() {
    let rig = Rig::new();
    let server = Server::start(vec![
        Reply::chat_stream(&Turn::default().call("c", "bash", r#"{"command":"mkdir x"}"#)),
        Reply::chat_stream(&Turn::default()),
        Reply::chat_stream(&Turn::text("done")),
    ]);
    let url = server.base_url();
    let done = rig.run("openai/x", &["--base-url", &url]).exits(0);
    assert_eq!(done.result()["answer"], "done");
    assert!(done.results()[0].contains("(no output)"), "{}", done.results()[0]);
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "the empty answer was asked for again");
    for message in requests[2].body["messages"].as_array().unwrap() {
        let has_calls = message["tool_calls"].is_array();
        assert!(has_calls || !message["content"].as_str().unwrap_or_default().is_empty());
    }
}

#[test]
fn bug_14_calls_of_a_cut_answer_never_run_even_if_they_can_be_read() {
    let rig = Rig::new();
    rig.file("a.txt", "whole");
    let write = |content: &str| format!(r#"{{"path":"a.txt","content":"{content}"#);
    let cut = Turn::default()
        .call("a", "write", &format!("{}\"}}", write("complete")))
        .call("b", "write", &write("incompl"))
        .finish("length");
    let server = Server::start(vec![Reply::chat_stream(&cut)]);
    let url = server.base_url();
    let done = rig.run("openai/x", &["--base-url", &url]).exits(13);
    assert_eq!(rig.text("a.txt"), "whole");
    assert_eq!(done.statuses(), ["rejected", "rejected"]);
    let results: Vec<Value> =
        rig.facts().into_iter().filter(|fact| fact["entry"]["message"]["role"] == "tool").collect();
    assert_eq!(results.len(), 2, "each has a result");
    assert!(results.iter().all(|fact| fact["entry"]["result"]["reason"] == "truncated"));
}

#[test]
fn bug_20_a_session_with_open_calls_gets_each_missing_result_once() {
    let rig = Rig::new();
    let script = rig.script(&[
        json!({"calls": [
            {"id": "a", "name": "bash", "arguments": {"command": "echo first"}},
            {"id": "b", "name": "bash", "arguments": {"command": "touch begun; sleep 60"}},
            {"id": "c", "name": "bash", "arguments": {"command": "echo third"}}]}),
        answer("done"),
    ]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    assert!(live.until(|| rig.has("begun")));
    live.signal(rustix::process::Signal::KILL);
    drop(live.end());
    for round in ["more", "and more"] {
        rig.script(&[answer("done")]);
        let id = rig.session();
        rig.stoplog(&["resume", &id, "--headless", round]).exits(0);
        let results: Vec<Value> = rig
            .facts()
            .into_iter()
            .filter(|fact| fact["entry"]["message"]["role"] == "tool")
            .map(|fact| fact["entry"]["message"]["tool_call_id"].clone())
            .collect();
        assert_eq!(results, ["a", "b", "c"], "in call order, each once");
    }
    let journal = fs::read_to_string(rig.journal()).unwrap();
    assert!(journal.contains("first"), "the finished result is kept");
}

#[test]
fn bug_25_an_ask_in_a_headless_run_is_a_denial_at_once_with_a_code_that_is_not_0() {
    let rig = Rig::new();
    // Neither a terminal nor an answer on standard input.
    let script = rig.script(&[bash("git push origin main"), answer("done")]);
    let done = rig.run(&script, &["--policy", "untrusted"]).exits(10);
    assert_eq!(done.result()["denials"][0]["stage"], "permission");
    assert!(done.took < Duration::from_secs(30));
    let arguments = ["run", "--output", "stream-json", "--policy", "untrusted", "--model", &script];
    let work = rig.work();
    let place = ["--workspace", work.to_str().unwrap(), "task"];
    let mut command = rig.program("setsid", &["--wait", super::rig::PROGRAM, "--state-dir"]);
    command.arg(rig.state()).args(arguments).args(place);
    let done = Live::start(command).end().exits(10);
    assert_eq!(done.result()["denials"][0]["code"], "ask-headless", "without the flag as well");
}

#[test]
fn bug_28_special_and_huge_files_neither_hang_nor_fill_the_memory() {
    let rig = Rig::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        rig.work().join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    rig.file("empty.txt", "");
    rig.file("needle.txt", "needle\n");
    let sparse = fs::File::create(rig.work().join("sparse")).unwrap();
    sparse.set_len(5 * 1024 * 1024 * 1024).unwrap();
    let read = |path: &str| ("read", json!({"path": path}));
    let turn = calls(&[
        read("fifo"),
        read("/dev/zero"),
        read("empty.txt"),
        read("sparse"),
        ("grep", json!({"pattern": "needle"})),
    ]);
    let script = rig.script(&[turn, answer("done")]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    let (id, mut peak) = (live.id(), 0);
    live.until(|| {
        peak = peak.max(peak_memory(id));
        false
    });
    let done = live.end();
    let told = done.results();
    assert!(told[0].contains("regular file"), "{}", told[0]);
    assert_ne!(done.statuses()[1], "ok", "{}", told[1]);
    assert!(told[2].contains("empty"), "{}", told[2]);
    assert_ne!(done.statuses()[3], "ok", "zero bytes are no text: {}", told[3]);
    assert!(told[4].contains("needle.txt"), "{}", told[4]);
    assert!(done.took < Duration::from_secs(60) && peak < 120_000, "{:?} {peak}", done.took);
}

#[test]
fn bug_29_a_file_counts_as_changed_by_its_content_and_not_by_its_time() {
    let edit = call("edit", &json!({"path": "a.txt", "old": "two", "new": "zwei"}));
    let rig = Rig::new();
    rig.file("a.txt", "one two three");
    let turns = [
        call("read", &json!({"path": "a.txt"})),
        bash("touch a.txt"),
        edit.clone(),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]).exits(0);
    assert_eq!(done.statuses(), ["ok", "ok", "ok"], "{:?}", done.results());
    assert_eq!(rig.text("a.txt"), "one zwei three");
    let rig = Rig::new();
    let file = rig.file("a.txt", "one two three");
    let before = fs::metadata(&file).unwrap().mtime();
    let change = format!("printf 'ONE two three' > a.txt; touch -d @{before} a.txt");
    let turns = [call("read", &json!({"path": "a.txt"})), bash(&change), edit, answer("done")];
    let done = rig.play(&turns, &[]).exits(0);
    assert_eq!(done.statuses(), ["ok", "ok", "failed"]);
    assert!(done.results()[2].contains("changed"), "{}", done.results()[2]);
    assert_eq!(rig.text("a.txt"), "ONE two three");
}

#[test]
fn bug_30_a_request_that_cannot_succeed_is_sent_once() {
    for (status, message) in
        [(400, "maximum context length is 8192 tokens"), (402, "insufficient credits"), (403, "no")]
    {
        let rig = Rig::new();
        let error = Reply::status(status, &[], &json!({"error": {"message": message}}));
        let server = Server::start(vec![error; 3]);
        let url = server.base_url();
        rig.run("openai/x", &["--base-url", &url]).exits(12);
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

#[test]
fn small_ones_a_command_cannot_end_its_supervisor_by_name_and_a_slow_reader_gets_the_whole_object()
{
    let rig = Rig::new();
    let done = rig.play(
        &[bash("pkill -9 -f stoplog; kill -9 $PPID; killall stoplog; true"), answer("done")],
        &[],
    );
    assert_ne!(done.signal(), Some(9), "the supervisor was killed");
    assert_eq!(done.result()["answer"], "done");
    let long = "long answer ".repeat(40_000);
    let script = rig.script(&[answer(&long)]);
    let work = rig.work();
    let slow = "\"$@\" | { sleep 1; cat; }";
    let mut command =
        rig.program("/bin/sh", &["-c", slow, "sh", super::rig::PROGRAM, "--state-dir"]);
    command.arg(rig.state()).args(["run", "--headless", "--output", "json", "--model", &script]);
    command.arg("--workspace").arg(&work).arg("task");
    let done = Live::start(command).end().exits(0);
    assert_eq!(done.json()["answer"].as_str().unwrap(), long);
}

#[test]
fn small_ones_a_closed_reader_ends_the_run_without_a_crash() {
    let rig = Rig::new();
    let script = rig.script(&[write("made", "x"), answer("done")]);
    let arguments = rig.arguments(&script, &[]);
    let mut command = rig.program(
        "/bin/sh",
        &["-c", "\"$@\" | head -n 1", "sh", super::rig::PROGRAM, "--state-dir"],
    );
    command.arg(rig.state()).args(&arguments);
    let done = Live::start(command).end();
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    rig.stoplog(&["audit", "verify"]).exits(0);
    if is_root() {
        // Root's files are not more readable for that.
        assert_eq!(fs::metadata(rig.state()).unwrap().mode() & 0o077, 0);
    }
}
