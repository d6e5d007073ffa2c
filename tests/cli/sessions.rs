//! Sessions: going on with an idle and with an interrupted one, the death of the live process at every
//! boundary, what may not get wider, and the tools to look at sessions.

use super::rig::{Done, Live, Rig, answer, bash, calls, write};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

fn resume(rig: &Rig, more: &[&str]) -> Done {
    let id = rig.session();
    let fixed = ["resume", &id, "--headless", "--output", "stream-json"];
    rig.stoplog(&[&fixed[..], more].concat())
}

#[test]
fn an_idle_session_goes_on_with_a_further_task_and_remembers_the_first() {
    let rig = Rig::new();
    rig.play(&[write("a", "x"), answer("first done")], &[]).exits(0);
    rig.script(&[
        json!({"expect": "now b", "calls": [{"name": "write", "arguments": {"path": "b", "content": "y"}}]}),
        answer("second done"),
    ]);
    let done = resume(&rig, &["now b"]).exits(0);
    assert_eq!(done.result()["answer"], "second done");
    assert!(rig.has("b"));
    assert_eq!(rig.sessions().len(), 1, "the same session");
    let shown = rig.stoplog(&["session", "show"]).exits(0).stdout;
    for words in ["do the task", "first done", "now b", "second done"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    resume(&rig, &[]).exits(2).says(&["give a further task"]);
    rig.stoplog(&["audit", "verify"]).exits(0);
}

#[test]
fn run_with_resume_is_the_same_as_resume_with_a_task() {
    let rig = Rig::new();
    rig.play(&[answer("first")], &[]).exits(0);
    let id = rig.session();
    let script = rig.script(&[answer("second")]);
    let done = rig.run(&script, &["--resume", &id]).exits(0);
    assert_eq!(done.result()["answer"], "second");
    assert_eq!(rig.sessions().len(), 1);
}

/// The turns of the run that is killed: two commands that leave a mark each time they run, and a file.
fn turns() -> Vec<Value> {
    vec![
        json!({"calls": [{"id": "first", "name": "bash",
            "arguments": {"command": "echo one >> marks; sleep 0.05"}}]}),
        json!({"calls": [
            {"id": "second", "name": "write", "arguments": {"path": "made", "content": "x"}},
            {"id": "third", "name": "bash",
                "arguments": {"command": "echo two >> marks; sleep 0.05"}}]}),
        answer("all done"),
    ]
}

fn lines(rig: &Rig) -> usize {
    let Some(session) = rig.sessions().pop() else { return 0 };
    let bytes = fs::read(session.join("journal.jsonl")).unwrap_or_default();
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The results in the journal, by the call that they answer.
fn tool_results(rig: &Rig) -> Vec<Value> {
    let facts = rig.facts().into_iter();
    facts
        .filter(|fact| fact["entry"]["message"]["role"] == "tool")
        .map(|fact| fact["entry"].clone())
        .collect()
}

fn answers(rig: &Rig) -> usize {
    let facts = rig.facts().into_iter();
    facts.filter(|fact| fact["entry"]["message"]["role"] == "assistant").count()
}

/// Kills a run when its journal has `boundary` lines; `false` if it had ended before.
fn kill_at(rig: &Rig, boundary: usize) -> bool {
    let script = rig.script(&turns());
    let mut live = Live::start(rig.run_command(&script, &[]));
    while live.runs() {
        if lines(rig) >= boundary {
            live.signal(rustix::process::Signal::KILL);
            let done = live.end();
            return done.signal() == Some(9);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    drop(live.end().exits(0));
    false
}

/// Goes on after a kill and checks that nothing was repeated and nothing lost without a record.
fn assert_recovers(rig: &Rig, boundary: usize) {
    let told: Vec<Value> = turns().split_off(answers(rig));
    let at_end = told.is_empty();
    if !at_end {
        rig.script(&told);
    }
    let begun = rig.facts().len() > 1;
    let more: &[&str] = if at_end || !begun { &["a further task"] } else { &[] };
    if at_end {
        rig.script(&[answer("all done")]);
    }
    let done = resume(rig, more).exits(0);
    assert_eq!(done.result()["answer"], "all done", "at line {boundary}");
    let marks = rig.text("marks");
    let results = tool_results(rig);
    let result_of = |id: &str| {
        let fits = |entry: &&Value| entry["message"]["tool_call_id"] == id;
        results.iter().filter(fits).collect::<Vec<_>>()
    };
    let mut interrupted = 0;
    for entry in &results {
        let id = entry["message"]["tool_call_id"].as_str().unwrap();
        assert_eq!(result_of(id).len(), 1, "one result for each call, at line {boundary}");
        if entry["result"]["reason"] == "interrupted" {
            interrupted += 1;
            let content = entry["message"]["content"].as_str().unwrap();
            assert!(content.contains("interrupted"), "the model is told: {content}");
        }
    }
    for mark in ["one", "two"] {
        let count = marks.lines().filter(|line| *line == mark).count();
        assert!(count <= 1, "`{mark}` was repeated at line {boundary}: {marks}");
        assert!(count == 1 || interrupted > 0, "`{mark}` is lost at line {boundary}");
    }
    assert!(interrupted <= 1, "{results:#?}");
    rig.stoplog(&["audit", "verify"]).exits(0);
    let reduced =
        ["session", "reduce", rig.journal().to_str().unwrap(), "--json"].map(str::to_owned);
    let reduced: Vec<&str> = reduced.iter().map(String::as_str).collect();
    rig.stoplog(&reduced).exits(0);
}

#[test]
fn a18_a22_a_kill_at_every_boundary_of_the_journal_repeats_and_loses_nothing() {
    let mut killed = 0;
    let mut interrupted = 0;
    // The first line is the header: a session without a word of the user is not resumed but begun.
    for boundary in 2..40 {
        let rig = Rig::new();
        if !kill_at(&rig, boundary) {
            break;
        }
        killed += 1;
        assert_recovers(&rig, boundary);
        let reasons = tool_results(&rig);
        interrupted +=
            reasons.iter().filter(|entry| entry["result"]["reason"] == "interrupted").count();
    }
    assert!(killed >= 10, "only {killed} boundaries were met");
    assert!(interrupted >= 1, "no call was in flight at any kill");
}

#[test]
fn a22_the_model_is_told_that_the_call_in_flight_was_interrupted() {
    let rig = Rig::new();
    let script = rig.script(&[
        calls(&[
            ("bash", json!({"command": "echo x >> marks; touch begun; sleep 60"})),
            ("write", json!({"path": "second", "content": "x"})),
        ]),
        answer("done"),
    ]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    assert!(live.until(|| rig.has("begun")));
    live.signal(rustix::process::Signal::KILL);
    drop(live.end());
    let list = rig.stoplog(&["session", "list"]).exits(0).stdout;
    assert!(list.contains("interrupted"), "{list}");
    rig.script(&[json!({"expect": ["interrupted", "unknown"], "text": "I will look first."})]);
    let done = resume(&rig, &[]).exits(0);
    assert_eq!(done.result()["answer"], "I will look first.");
    assert_eq!(rig.text("marks"), "x\n", "it was not repeated");
    assert!(rig.has("second"), "the call that had not started goes on");
}

#[test]
fn an_interrupted_session_can_be_closed_by_a_further_task() {
    let rig = Rig::new();
    let script = rig.script(&[bash("touch begun; sleep 60"), answer("x")]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    assert!(live.until(|| rig.has("begun")));
    live.signal(rustix::process::Signal::KILL);
    drop(live.end());
    rig.script(&[answer("something else")]);
    let done = resume(&rig, &["do something else"]).exits(0);
    assert_eq!(done.result()["answer"], "something else");
}

#[test]
fn g14_a_resumed_session_gets_what_it_had_or_less() {
    let rig = Rig::new();
    let script = rig.script(&[answer("first")]);
    rig.run(&script, &["--policy", "readonly", "--tools", "read,list"]).exits(0);
    let write_turn = || rig.script(&[write("made", "x"), answer("done")]);
    write_turn();
    let other = rig.root().join("other");
    fs::create_dir(&other).unwrap();
    let before = fs::read(rig.journal()).unwrap();
    for (more, told) in [
        (["--policy", "workspace"], "may only be narrowed"),
        (["--tools", "read,write"], "never had the tool `write`"),
        (["--workspace", other.to_str().unwrap()], "not in another workspace"),
        (["--role", "admin"], "role"),
    ] {
        resume(&rig, &[&more[..], &["more"]].concat()).exits(23).says(&[told]);
    }
    assert_eq!(fs::read(rig.journal()).unwrap(), before, "a refusal leaves no trace");
    // What is not said is as it was.
    let done = resume(&rig, &["more"]).exits(0);
    assert_eq!(done.statuses(), ["rejected"], "write is still unknown");
    assert!(!rig.has("made"));
    // Less is accepted.
    let narrower = rig.beside(
        "less.toml",
        "version = 1\n[[tool.rule]]\nid = \"no-list\"\ndecision = \"deny\"\nreason = \"less\"\n\
         tool = \"list\"\n",
    );
    rig.script(&[calls(&[("list", json!({}))]), answer("done")]);
    let less = ["--policy", "readonly", "--policy", &narrower, "--tools", "list", "even more"];
    let done = resume(&rig, &less).exits(10);
    assert_eq!(done.result()["denials"][0]["rule"], "no-list");
    // And stays: whoever takes the further policy away again is refused, with what would come back.
    let differs = ["`no-list`", "less.toml:3", "says deny and is missing"];
    resume(&rig, &["--policy", "readonly", "wider again"]).exits(23).says(&differs);
    rig.script(&[calls(&[("list", json!({}))]), answer("done")]);
    let done = resume(&rig, &["as it was"]).exits(10);
    assert_eq!(done.result()["denials"][0]["rule"], "no-list");
    resume(&rig, &["--tools", "read", "wider again"]).exits(23).says(&["never had the tool"]);
    rig.stoplog(&["audit", "verify"]).exits(0);
}

#[test]
fn a_changed_policy_must_be_narrower_or_the_difference_is_shown() {
    let rig = Rig::new();
    let rule = |decision: &str, program: &str| {
        format!(
            "[[command.rule]]\nid = \"{decision}-{program}\"\ndecision = \"{decision}\"\n\
             reason = \"r\"\nprogram = \"{program}\"\n"
        )
    };
    let policy = rig.policy(&(rule("deny", "touch") + &rule("ask", "rm")));
    rig.play(&[answer("first")], &["--policy", &policy]).exits(0);
    let write = |text: &str| {
        rig.policy(text);
    };
    let go_on = || resume(&rig, &["--policy", &policy, "more"]);
    for (text, differs) in [
        (rule("deny", "touch"), "`ask-rm`"),
        (rule("ask", "touch") + &rule("ask", "rm"), "`deny-touch`"),
        (String::new(), "and is missing"),
        (
            rule("deny", "touch") + &rule("ask", "rm") + "[network]\nmode = \"host\"\n",
            "network.mode",
        ),
    ] {
        write(&text);
        go_on().exits(23).says(&["may only be narrowed", differs]);
    }
    // The same, more refusals, and another policy that refuses more.
    for text in ["", &rule("deny", "curl")] {
        write(&(rule("deny", "touch") + &rule("deny", "rm") + text));
        rig.script(&[bash("touch made"), answer("done")]);
        let done = go_on().exits(10);
        assert_eq!(done.result()["denials"][0]["rule"], "deny-touch");
    }
    assert!(!rig.has("made"));
    // Of the built-in ones, too: looking only is less than working.
    let rig = Rig::new();
    rig.play(&[answer("first")], &["--policy", "workspace"]).exits(0);
    rig.script(&[self::write("made", "x"), answer("done")]);
    let done = resume(&rig, &["--policy", "readonly", "only look now"]).exits(10);
    assert_eq!(done.result()["denials"][0]["rule"], "no-changes");
    resume(&rig, &["--policy", "ci", "wider"]).exits(23).says(&["may only be narrowed"]);
}

#[test]
fn a_changed_model_blocks_an_interrupted_session_and_says_what_to_do() {
    let rig = Rig::new();
    let script = rig.script(&[bash("touch begun; sleep 60"), answer("x")]);
    let mut live = Live::start(rig.run_command(&script, &[]));
    assert!(live.until(|| rig.has("begun")));
    live.signal(rustix::process::Signal::KILL);
    drop(live.end());
    let other = format!("script/{}", rig.beside("other.jsonl", answer("other").to_string()));
    resume(&rig, &["--model", &other]).exits(23).says(&["blocked", "further task"]);
    rig.script(&[answer("same")]);
    resume(&rig, &[]).exits(0);
}

#[test]
fn a_damaged_journal_is_loud_corruption_and_stays_as_it_is() {
    let rig = Rig::new();
    rig.play(&[write("a", "x"), answer("done")], &[]).exits(0);
    let id = rig.session();
    let good = fs::read(rig.journal()).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle..middle + 20].fill(0);
    fs::write(rig.journal(), &bad).unwrap();
    rig.stoplog(&["resume", &id, "more"]).exits(23).says(&["line"]);
    assert_eq!(fs::read(rig.journal()).unwrap(), bad, "not changed");
    assert!(rig.stoplog(&["session", "list"]).exits(0).stdout.contains("corrupt"));
    rig.stoplog(&["session", "show", &id]).exits(23).says(&["line"]);
    fs::write(rig.journal(), &good).unwrap();
    rig.script(&[answer("more")]);
    rig.stoplog(&["resume", &id, "--headless", "more"]).exits(0);
}

#[test]
fn a_torn_last_line_is_cut_and_the_session_goes_on() {
    let rig = Rig::new();
    rig.play(&[answer("done")], &[]).exits(0);
    let mut bytes = fs::read(rig.journal()).unwrap();
    bytes.extend_from_slice(b"{\"kind\":\"entry\",\"seq\":");
    fs::write(rig.journal(), &bytes).unwrap();
    rig.script(&[answer("more")]);
    resume(&rig, &["go on"]).exits(0);
    rig.stoplog(&["session", "show"]).exits(0);
}

#[test]
fn sessions_can_be_listed_shown_exported_and_reduced() {
    let rig = Rig::new();
    rig.play(&[bash("echo \u{1b}[31mred"), answer("first answer")], &[]).exits(0);
    rig.play(&[answer("second answer")], &[]).exits(0);
    let list = rig.stoplog(&["session", "list", "--json"]).exits(0).stdout;
    let list: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(list.len(), 2);
    assert_eq!(list[0]["session"], rig.session(), "the newest first");
    assert_eq!(
        (&list[0]["status"], &list[0]["first_message"]),
        (&json!("idle"), &json!("do the task"))
    );
    assert!(rig.stoplog(&["session", "show"]).exits(0).stdout.contains("second answer"));
    let oldest = list[1]["session"].as_str().unwrap();
    let shown = rig.stoplog(&["session", "show", oldest]).exits(0).stdout;
    assert!(shown.contains("first answer") && !shown.contains('\u{1b}'), "{shown}");
    let exported = rig.stoplog(&["session", "export", oldest]).exits(0).stdout;
    assert!(exported.starts_with('#') && exported.contains("first answer"));
    let object = rig.stoplog(&["session", "show", oldest, "--json"]).exits(0).json();
    assert!(object.to_string().contains("first answer"));
    let journal = rig.journal();
    let reduced = rig.stoplog(&["session", "reduce", journal.to_str().unwrap(), "--json"]).exits(0);
    assert!(reduced.json().is_object());
    rig.stoplog(&["session", "show", "nothing"]).exits(23).says(&["session list"]);
}

#[test]
fn what_was_taken_back_since_is_taken_from_a_resumed_session_too() {
    let rig = Rig::new();
    rig.play(&[bash("touch one"), answer("done")], &[]).exits(0);
    let configuration = rig.home().join(".config/stoplog");
    fs::create_dir_all(&configuration).unwrap();
    let policy = configuration.join("policy.toml");
    fs::write(
        &policy,
        "version = 1\n[[command.rule]]\nid = \"no-touch\"\ndecision = \"deny\"\n\
         reason = \"taken back\"\nprogram = \"touch\"\n",
    )
    .unwrap();
    rig.script(&[bash("touch two"), answer("done")]);
    let done = resume(&rig, &["again"]).exits(10);
    assert_eq!(done.result()["denials"][0]["rule"], "no-touch");
    // What is allowed again since stays as it was for the session.
    fs::remove_file(&policy).unwrap();
    rig.script(&[bash("touch three"), answer("done")]);
    let done = resume(&rig, &["again"]).exits(10);
    assert_eq!(done.result()["denials"][0]["rule"], "no-touch");
    assert!(rig.has("one") && !rig.has("two") && !rig.has("three"));
}
