//! How a run ends: the exit codes of the documentation, the final object, the stream without content.

use super::rig::{Live, Rig, answer, bash, call, calls, write};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// The result of a run that must end so.
fn ends(rig: &Rig, turns: &[Value], more: &[&str], (code, reason): (i32, &str)) -> Value {
    let done = rig.play(turns, more).exits(code);
    let result = done.result();
    assert_eq!(result["finish_reason"], reason, "{result}");
    assert_eq!(result["exit_code"], code);
    let end = rig.records().pop().unwrap();
    assert_eq!((&end["kind"], &end["finish"]), (&json!("end"), &json!(reason)));
    assert_eq!(end["exit_code"], code, "the log says the same");
    result
}

#[test]
fn b21_text_alone_ends_the_run_with_0() {
    let rig = Rig::new();
    let result = ends(&rig, &[write("a", "x"), answer("done")], &[], (0, "stop"));
    assert_eq!((&result["status"], &result["answer"]), (&json!("done"), &json!("done")));
    assert_eq!((&result["turns"], &result["denials"]), (&json!(2), &json!([])));
}

#[test]
fn a_run_that_is_done_but_had_calls_denied_ends_with_10() {
    let rig = Rig::new();
    let turns = [call("read", &json!({"path": "/etc/shadow"})), answer("done")];
    let result = ends(&rig, &turns, &[], (10, "stop"));
    assert_eq!(result["status"], "denied");
    assert_eq!(result["denials"].as_array().unwrap().len(), 1);
}

#[test]
fn b05_b21_the_iteration_limit_ends_the_run_with_11() {
    let rig = Rig::new();
    let turns: Vec<Value> = (0..50).map(|number| bash(&format!("echo {number}"))).collect();
    let result = ends(&rig, &turns, &["--max-iterations", "2"], (11, "max_iterations"));
    assert_eq!(result["turns"], 2);
    assert_eq!(rig.records_of("started").len(), 2, "the calls of the last answer ran");
    let control = ends(&rig, &turns, &[], (11, "max_iterations"));
    assert_eq!(control["turns"], 40, "the limit of a run that gives none");
}

#[test]
fn a_policy_can_lower_the_iteration_limit_and_a_flag_cannot_raise_it() {
    let rig = Rig::new();
    let policy = rig.policy("[limits]\niterations = 2\n");
    let turns: Vec<Value> = (0..5).map(|number| bash(&format!("echo {number}"))).collect();
    let more = ["--policy", &policy, "--max-iterations", "5"];
    let result = ends(&rig, &turns, &more, (11, "max_iterations"));
    assert_eq!(result["turns"], 2);
}

#[test]
fn b21_g19_a_model_error_ends_the_run_with_12_and_is_no_answer() {
    let rig = Rig::new();
    let turns = [write("a", "x"), json!({"error": {"status": 401, "message": "bad key"}})];
    let result = ends(&rig, &turns, &[], (12, "error"));
    assert_eq!(result["answer"], "");
    assert!(result["error"].as_str().unwrap().contains("401"), "{result}");
    assert!(rig.has("a"), "what was done stays done");
}

#[test]
fn g03_a_cut_answer_ends_the_run_with_13_and_its_calls_never_run() {
    let rig = Rig::new();
    let cut = json!({"text": "I will write", "finish": "max_tokens",
        "calls": [{"name": "write", "arguments": {"path": "a", "content": "x"}}]});
    let result = ends(&rig, &[cut], &[], (13, "truncated"));
    assert_eq!(result["answer"], "I will write");
    assert!(result["error"].as_str().unwrap().contains("--max-tokens"));
    assert!(!rig.has("a"));
    assert_eq!(rig.records_of("rejected")[0]["because"], "truncated");
    let whole = json!({"text": "I will write",
        "calls": [{"name": "write", "arguments": {"path": "a", "content": "x"}}]});
    ends(&rig, &[whole, answer("done")], &[], (0, "stop"));
    assert!(rig.has("a"), "the control");
}

#[test]
fn a08_g04_an_empty_answer_is_no_end_but_a_failed_attempt() {
    let rig = Rig::new();
    let result = ends(&rig, &vec![json!({}); 3], &[], (13, "empty"));
    assert!(result["error"].as_str().unwrap().contains("empty answer"));
    assert_eq!(rig.records_of("retry").len(), 3);
    ends(&rig, &[json!({}), json!({"text": "<think>hm</think>"}), answer("x")], &[], (0, "stop"));
}

#[test]
fn a_spent_budget_ends_the_run_with_14() {
    let turns: Vec<Value> = (0..9).map(|number| bash(&format!("echo {number}"))).collect();
    for limit in ["tool_calls = 3", "tokens = 100", "run_seconds = 1"] {
        let rig = Rig::new();
        let policy = rig.policy(&format!("[limits]\n{limit}\n"));
        let mut turns = turns.clone();
        turns[1]["delay_ms"] = json!(1_100);
        let result = ends(&rig, &turns, &["--policy", &policy], (14, "budget"));
        let name = limit.split(' ').next().unwrap();
        assert!(result["error"].as_str().unwrap().contains(name), "{result}");
    }
}

#[test]
fn an_agent_in_circles_is_told_once_and_then_ends_with_15() {
    let rig = Rig::new();
    let result = ends(&rig, &vec![bash("echo same"); 20], &[], (15, "loop"));
    assert_eq!(result["turns"], 6);
    let journal = fs::read_to_string(rig.journal()).unwrap();
    assert_eq!(journal.matches("try something else").count(), 1, "one nudge");
    let patient = [vec![bash("echo same"); 12], vec![answer("done")]].concat();
    ends(&rig, &patient, &["--max-repeats", "0"], (0, "stop"));
    let polling: Vec<Value> = vec![bash("date +%N"); 12];
    let turns = [polling, vec![answer("done")]].concat();
    ends(&rig, &turns, &[], (0, "stop"));
}

#[test]
fn a_layer_that_the_policy_requires_and_the_machine_lacks_ends_with_20() {
    let rig = Rig::new();
    let policy = rig.policy("[sandbox]\nrequire = [\"cgroup\"]\n");
    let turns = [write("ran", "x"), answer("done")];
    let done = rig.play(&turns, &["--policy", &policy]);
    let has_cgroup = done.code() == Some(0);
    if has_cgroup {
        println!("not shown: this machine lacks no layer");
        return;
    }
    drop(done.exits(20).says(&["`cgroup` is required", "stoplog doctor"]));
    assert!(!rig.has("ran"));
    let control = rig.policy("[sandbox]\nrequire = [\"landlock\", \"seccomp\"]\n");
    rig.play(&turns, &["--policy", &control]).exits(0);
    assert!(rig.has("ran"));
}

#[test]
fn g16_a_cell_that_can_no_longer_be_made_ends_the_run_with_20() {
    let rig = Rig::new();
    let second = json!({"delay_ms": 3_000,
        "calls": [{"name": "bash", "arguments": {"command": "touch second"}}]});
    let script = rig.script(&[bash("touch first"), second, answer("done")]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    assert!(live.until(|| rig.has("first") && rig.records_of("outcome").len() == 1));
    let away = rig.root().join("away");
    fs::rename(rig.work(), &away).unwrap();
    let done = live.end().exits(20);
    assert_eq!(done.result()["finish_reason"], "sandbox_failure");
    assert!(!away.join("second").exists());
    let outcome = rig.records_of("outcome").pop().unwrap();
    assert_eq!(outcome["exit"]["how"], "setup-failed", "{outcome}");
    rig.stoplog(&["audit", "verify"]).exits(0);
}

/// A run that a signal stops while a call is under way.
fn stopped_by(signals: &[Signal]) -> (Rig, super::rig::Done) {
    let rig = Rig::new();
    let script = rig.script(&[bash("trap '' TERM; echo x > begun; sleep 60 & wait"), answer("x")]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    assert!(live.until(|| rig.has("begun")));
    for signal in signals {
        live.signal(*signal);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let done = live.end();
    (rig, done)
}

#[test]
fn b21_an_interrupted_run_ends_with_130_and_a_terminated_one_with_143() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (rig, done) = stopped_by(&[signal]);
        let done = done.exits(code);
        assert_eq!(done.result()["finish_reason"], "interrupted");
        assert_eq!(done.result()["exit_code"], code);
        rig.stoplog(&["audit", "verify"]).exits(0);
        let kinds: Vec<Value> =
            rig.facts().into_iter().map(|fact| fact["record"]["type"].clone()).collect();
        assert!(kinds.contains(&json!("abortRequested")), "a durable abort: {kinds:?}");
        let list = rig.stoplog(&["session", "list"]).exits(0).stdout;
        assert!(list.contains("idle"), "it can go on: {list}");
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once_and_no_child_outlives_it() {
    let (rig, done) = stopped_by(&[Signal::INT, Signal::INT]);
    assert_eq!(done.code(), Some(130), "{}", done.stderr);
    assert!(done.took.as_secs() < 30);
    let marker = rig.root().to_str().unwrap().to_owned();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(processes_below(&marker), Vec::<String>::new());
}

/// Waits until the process has taken every signal that it was sent.
fn until_taken(id: u32) {
    let pending = || {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let mut masks = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:"));
        masks.any(|mask| mask.trim().bytes().any(|digit| digit != b'0'))
    };
    while pending() {
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
}

#[test]
fn two_signals_in_a_row_end_even_a_process_that_waits_for_its_reader() {
    let rig = Rig::new();
    let script = rig.script(&[answer(&"many words ".repeat(100_000))]);
    for (second, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        // The reader of the events has stopped reading, and the pipe is full.
        let mut child = rig.run_command(&script, &[]).spawn().unwrap();
        let reader = child.stdout.take().unwrap();
        // Its last pages may be filled in part.
        let full = || rustix::io::ioctl_fionread(&reader).unwrap() >= 32_768;
        let start = std::time::Instant::now();
        while !full() {
            assert!(start.elapsed().as_secs() < 60, "the pipe does not fill");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, Signal::INT).unwrap();
        until_taken(child.id());
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(child.try_wait().unwrap().is_none(), "the control: one is not enough here");
        rustix::process::kill_process(id, second).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

/// Processes whose working directory lies below `directory`.
fn processes_below(directory: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let below = |path: &std::path::Path| {
        fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    };
    entries
        .map(|entry| entry.path())
        .filter(|path| below(path))
        .map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default())
        .collect()
}

#[test]
fn output_json_is_one_object_with_every_denial() {
    let rig = Rig::new();
    let policy = rig.policy(
        "[[path.rule]]\nid = \"sealed\"\ndecision = \"deny\"\nreason = \"closed\"\n\
         paths = [\"{workspace}/sealed/**\"]\n",
    );
    let script = rig.script(&[
        calls(&[
            ("read", json!({"path": "sealed/a"})),
            ("write", json!({"path": "sealed/b", "content": ""})),
            ("bash", json!({"command": "cat sealed/c"})),
        ]),
        answer("done"),
    ]);
    let work = rig.work();
    let arguments = ["run", "--headless", "--output", "json", "--policy", &policy, "--model"];
    let place = [script.as_str(), "--workspace", work.to_str().unwrap(), "task"];
    let done = rig.stoplog(&[&arguments[..], &place[..]].concat()).exits(10);
    let object = done.json();
    let denials = object["denials"].as_array().unwrap();
    assert_eq!(
        denials.iter().map(|denial| denial["tool"].clone()).collect::<Vec<_>>(),
        ["read", "write", "bash"]
    );
    for denial in denials {
        assert_eq!((&denial["stage"], &denial["rule"]), (&json!("firewall"), &json!("sealed")));
        assert_eq!(denial["code"], "rule-matched");
        assert!(denial["place"].as_str().unwrap().ends_with("policy.toml:4"), "{denial}");
        assert_eq!(denial["reason"], "closed");
    }
    for key in ["status", "finish_reason", "answer", "usage", "turns", "session", "exit_code"] {
        assert!(!object[key].is_null(), "{key}");
    }
}

#[test]
fn output_json_is_an_object_even_if_nothing_could_start() {
    let rig = Rig::new();
    let done = rig.stoplog(&["run", "--output", "json", "--workspace", "/", "task"]).exits(2);
    let object = done.json();
    assert_eq!((&object["status"], &object["exit_code"]), (&json!("failed"), &json!(2)));
    assert!(object["error"].as_str().unwrap().contains("too wide"));
}

#[test]
fn output_text_prints_the_answer_alone_on_standard_output() {
    let rig = Rig::new();
    let script = rig.script(&[bash("echo noise"), answer("the \u{1b}[31manswer\u{202e}")]);
    let work = rig.work();
    let place = ["--workspace", work.to_str().unwrap(), "--model", &script, "task"];
    let done = rig.stoplog(&[&["run", "--headless"][..], &place[..]].concat()).exits(0);
    assert_eq!(done.stdout, "the \\u{1b}[31manswer\\u{202e}\n");
    assert!(done.stderr.contains("echo noise"), "{}", done.stderr);
}

#[test]
fn no_content_leaves_decisions_and_takes_every_word_of_the_data() {
    let rig = Rig::new();
    rig.file("in.txt", "PRIVATE-FILE");
    let turns = [
        json!({"thinking": "PRIVATE-THOUGHT", "text": "PRIVATE-WORDS", "calls": [
            {"name": "read", "arguments": {"path": "in.txt"}},
            {"name": "bash", "arguments": {"command": "echo PRIVATE-ARGUMENT"}},
            {"name": "PRIVATE-TOOL", "arguments": {}},
            {"name": "bash", "arguments": {"command": "cat PRIVATE-NAME", "cwd": "PRIVATE-PLACE"}},
            {"name": "bash", "arguments": {"command": "cat /etc/shadow PRIVATE-REFUSED"}}]}),
        json!({"error": {"status": 503, "message": "PRIVATE-SERVER"}}),
        answer("PRIVATE-ANSWER"),
    ];
    let open = rig.play(&turns, &[]).exits(10);
    let words = [
        "FILE", "THOUGHT", "WORDS", "ARGUMENT", "TOOL", "NAME", "PLACE", "REFUSED", "SERVER",
        "ANSWER",
    ];
    for word in words {
        assert!(open.stdout.contains(&format!("PRIVATE-{word}")), "the control: {word}");
    }
    let closed = rig.play(&turns, &["--no-content"]).exits(10);
    for text in [&closed.stdout, &closed.stderr] {
        assert!(!text.contains("PRIVATE") && !text.contains("do the task"), "{text}");
    }
    let decisions = |done: &super::rig::Done| done.events_of("decision").len();
    assert_eq!(decisions(&closed), decisions(&open));
    assert_eq!(closed.events().len(), open.events().len());
    assert_eq!(closed.result()["denials"][0]["rule"], "system-secrets");
    // Sizes are the same, and digests are those of the records.
    let log = rig.records_of("decision");
    let told = closed.events_of("tool_call");
    let read = told.iter().find(|call| call["tool"] == "read").unwrap();
    assert_eq!(read["arguments_digest"], log[0]["arguments_hash"]);
    assert_eq!((&read["call"], &read["arguments_bytes"]), (&log[0]["call"], &json!(17)));
    let outcomes = rig.records_of("outcome");
    let result = closed.events_of("tool_result").into_iter().find(|event| event["tool"] == "read");
    let result = result.unwrap();
    assert_eq!(result["content_digest"], outcomes[0]["result"]);
    assert_eq!((&result["content_bytes"], &result["status"]), (&json!(12), &json!("ok")));
    assert_eq!(closed.result()["answer_bytes"], 14);
    assert_eq!(closed.events_of("retry")[0]["code"], open.events_of("retry")[0]["code"]);
}

#[test]
fn no_content_holds_for_the_one_object_and_for_errors_and_refuses_text() {
    let rig = Rig::new();
    let turns = [bash("echo PRIVATE"), json!({"expect": "other", "text": "never"})];
    let run = |output: &str, more: &[&str]| {
        let script = rig.script(&turns);
        let work = rig.work();
        let fixed = ["run", "--headless", "--output", output, "--model", &script];
        let place = ["--workspace", work.to_str().unwrap(), "do the task"];
        rig.stoplog(&[&fixed[..], more, &place].concat())
    };
    for output in ["json", "stream-json"] {
        let open = run(output, &[]).exits(12);
        assert!(open.stdout.contains("PRIVATE"), "the control: an error may show what was there");
        let closed = run(output, &["--no-content"]).exits(12);
        assert!(!closed.stdout.contains("PRIVATE"), "{}", closed.stdout);
        let last: Value = serde_json::from_str(closed.stdout.lines().last().unwrap()).unwrap();
        assert_eq!((&last["finish_reason"], &last["exit_code"]), (&json!("error"), &json!(12)));
        assert!(last["error_bytes"].as_u64().unwrap() > 10 && last.get("error").is_none());
    }
    drop(run("text", &["--no-content"]).exits(2).says(&["--no-content needs"]));
}
