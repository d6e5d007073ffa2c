//! Sessions: going on with an idle and with an interrupted one, what may not get wider, and the tools
//! to look at sessions. The death of the live process at every boundary is in `killed`.

use super::rig::{Done, Live, Rig, answer, bash, calls, write};
use serde_json::{Value, json};
use std::fs;

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
    let taken_back = "version = 1\n[[command.rule]]\nid = \"no-touch\"\ndecision = \"deny\"\n\
        reason = \"taken back\"\nprogram = \"touch\"\n";
    fs::write(&policy, taken_back).unwrap();
    rig.script(&[bash("touch two"), answer("done")]);
    let done = resume(&rig, &["again"]).exits(10);
    assert_eq!(done.result()["denials"][0]["rule"], "no-touch");
    // What is allowed again since is shown, and stays as it was for the session.
    let before = fs::read(rig.journal()).unwrap();
    let place = format!("{}:3", policy.display());
    let asks_less = taken_back.replace("deny", "ask");
    for now in [asks_less.as_str(), "version = 1\n", ""] {
        fs::write(&policy, now).unwrap();
        if now.is_empty() {
            fs::remove_file(&policy).unwrap();
        }
        let told = ["has changed since", "`no-touch`", &place, "says deny", "--keep-policy"];
        resume(&rig, &["again"]).exits(23).says(&told);
    }
    assert_eq!(fs::read(rig.journal()).unwrap(), before, "a refusal leaves no trace");
    rig.script(&[bash("touch three"), answer("done")]);
    let done = resume(&rig, &["--keep-policy", "again"]).exits(10);
    assert_eq!(done.result()["denials"][0]["rule"], "no-touch");
    assert!(rig.has("one") && !rig.has("two") && !rig.has("three"));
    // As long as what stands there is wider, it has to be said. What was put back needs no word.
    resume(&rig, &["again"]).exits(23).says(&["`no-touch`"]);
    fs::write(&policy, taken_back).unwrap();
    rig.script(&[answer("done")]);
    resume(&rig, &["again"]).exits(0);
    // The workspace's own file is a layer as well.
    let own = rig.file(
        ".stoplog/policy.toml",
        "version = 1\n[[path.rule]]\nid = \"sealed\"\ndecision = \"deny\"\nreason = \"r\"\n\
         access = [\"read\"]\npaths = [\"{workspace}/sealed/**\"]\n",
    );
    rig.script(&[answer("done")]);
    resume(&rig, &["again"]).exits(0);
    fs::write(own, "version = 1\n").unwrap();
    resume(&rig, &["again"]).exits(23).says(&["`sealed`", ".stoplog/policy.toml:3"]);
    let words = ["--keep-policy", "--policy", "workspace", "again"];
    rig.script(&[answer("done")]);
    resume(&rig, &words).exits(0);
}
