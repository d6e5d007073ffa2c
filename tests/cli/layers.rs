//! A machine that gives less than a policy wants: refused with 20, or, where a trusted policy accepts
//! it in so many words, said on the terminal and in every decision record. And hard links that were
//! there before the run.

use super::rig::{Done, Live, PROGRAM, Rig, answer, bash, write};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Runs the program where the kernel refuses namespaces: inside a user namespace their number can be
/// limited to none for everything below.
pub(crate) fn refused(rig: &Rig, arguments: &[&str]) -> Command {
    let limits = ["user", "mnt", "pid", "net", "ipc", "uts"]
        .map(|kind| format!("echo 0 >/proc/sys/user/max_{kind}_namespaces"));
    let script = format!("{} && exec \"$@\"", limits.join(" && "));
    let state = rig.state();
    let fixed = ["--user", "--map-root-user", "sh", "-c", &script, "sh", PROGRAM, "--state-dir"];
    let all = [&fixed[..], &[state.to_str().unwrap()], arguments].concat();
    rig.program("unshare", &all)
}

fn run_refused(rig: &Rig, arguments: &[&str]) -> Done {
    Live::start(refused(rig, arguments)).end()
}

pub(crate) fn play_refused(rig: &Rig, turns: &[Value], more: &[&str]) -> Done {
    let script = rig.script(turns);
    let arguments = rig.arguments(&script, more);
    run_refused(rig, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

pub(crate) const ACCEPTS: &str = "[sandbox]\ndegraded = \"allow\"\n";

#[test]
fn headless_without_namespaces_ends_with_20_unless_the_policy_accepts_the_loss() {
    let rig = Rig::new();
    let turns = [bash("touch ran"), answer("done")];
    let done = play_refused(&rig, &turns, &[]).exits(20);
    drop(done.says(&["masks need a mount view", "degraded = \"allow\""]));
    rig.assert_nothing_began();
    assert!(!rig.has("ran"));
    let policy = rig.policy(ACCEPTS);
    let done = play_refused(&rig, &turns, &["--policy", &policy]).exits(0);
    assert!(rig.has("ran"), "the control");
    for lost in ["G4-deny-inside-allow", "G10-protected-names", "L2-names-outside-visible"] {
        assert!(done.stderr.contains(lost), "{lost} in {}", done.stderr);
        let told = |record: &Value| {
            record["lost"].as_array().is_some_and(|names| names.iter().any(|name| name == lost))
        };
        assert!(rig.records_of("decision").iter().all(told), "{lost}");
        assert!(told(&rig.records_of("session")[0]["enforced"]), "{lost}");
        assert!(told(&rig.records_of("outcome")[0]["enforced"]), "{lost}");
    }
    let call = rig.records_of("decision")[0]["call"].as_str().unwrap().to_owned();
    let shown = rig.stoplog(&["audit", "show", &call]).exits(0).stdout;
    assert!(shown.contains("not given   ") && shown.contains("G4-deny-inside-allow"), "{shown}");
    rig.stoplog(&["audit", "verify"]).exits(0);
}

#[test]
fn what_is_lost_is_told_beside_the_one_object_of_json_output() {
    let rig = Rig::new();
    let policy = rig.policy(ACCEPTS);
    let script = rig.script(&[bash("touch ran"), answer("done")]);
    let work = rig.work();
    let run = ["run", "--headless", "--output", "json", "--policy", &policy, "--model", &script];
    let all = [&run[..], &["--workspace", work.to_str().unwrap(), "task"]].concat();
    let done = run_refused(&rig, &all).exits(0);
    assert_eq!(serde_json::from_str::<Value>(&done.stdout).unwrap()["status"], "done");
    assert!(done.stderr.contains("weaker here, not given: "), "{}", done.stderr);
}

#[test]
fn with_namespaces_nothing_is_lost_and_no_record_says_so() {
    let rig = Rig::new();
    let policy = rig.policy(ACCEPTS);
    let done = rig.play(&[bash("touch ran"), answer("done")], &["--policy", &policy]).exits(0);
    assert!(!done.stderr.contains("not given"), "{}", done.stderr);
    assert!(rig.records_of("decision").iter().all(|record| record.get("lost").is_none()));
}

#[test]
fn a_required_layer_ends_a_run_and_an_exec_with_20_whatever_the_policy_accepts() {
    let rig = Rig::new();
    let required = format!("{ACCEPTS}require = [\"mount-view\"]\n");
    let policy = rig.policy(&required);
    let turns = [write("ran", "x"), answer("done")];
    let done = play_refused(&rig, &turns, &["--policy", &policy]).exits(20);
    drop(done.says(&["`mount-view` is required", "stoplog doctor"]));
    rig.assert_nothing_began();
    let work = rig.work();
    let exec = ["exec", "--policy", &policy, "--workspace", work.to_str().unwrap(), "--"];
    let exec = [&exec[..], &["touch", "ran"]].concat();
    run_refused(&rig, &exec).exits(20).says(&["`mount-view` is required"]);
    assert!(!rig.has("ran"));
    // The control: where it is there, both go on.
    rig.play(&turns, &["--policy", &policy]).exits(0);
    rig.stoplog(&exec).exits(0);
    assert!(rig.has("ran"));
}

#[test]
fn exec_tells_what_its_cell_does_not_give() {
    let rig = Rig::new();
    let policy = rig.policy(ACCEPTS);
    let work = rig.work();
    let exec =
        ["exec", "--policy", &policy, "--workspace", work.to_str().unwrap(), "--", "echo", "on"];
    let done = run_refused(&rig, &exec).exits(0);
    assert_eq!(done.stdout, "on\n");
    assert!(
        done.stderr.contains("not given: ") && done.stderr.contains("G4-deny"),
        "{}",
        done.stderr
    );
    assert!(rig.records_of("decision")[0]["lost"].as_array().unwrap().len() >= 3);
    let done = rig.stoplog(&exec).exits(0);
    assert_eq!(done.stderr, "", "nothing is lost with namespaces");
}

#[test]
fn a_run_cannot_be_told_to_use_an_older_landlock() {
    let rig = Rig::new();
    let script = rig.script(&[bash("touch ran"), answer("done")]);
    rig.run(&script, &["--landlock-at-most", "1"]).exits(2);
    for key in ["landlock_at_most = 1", "landlock = 1", "namespaces = \"never\""] {
        let policy = rig.policy(&format!("[sandbox]\n{key}\n"));
        rig.run(&script, &["--policy", &policy]).exits(21);
    }
    assert!(!rig.has("ran"));
    let work = rig.work();
    let mut command = rig.command(&["exec", "--show-cell", "--workspace", work.to_str().unwrap()]);
    command.args(["--", "true"]).env("STOPLOG_LANDLOCK_AT_MOST", "1").env("LANDLOCK_ABI", "1");
    let done = Live::start(command).end().exits(0);
    assert!(!done.stderr.contains("capped"), "{}", done.stderr);
}

#[test]
fn a_hard_link_to_a_closed_file_is_closed_told_and_recorded() {
    let turns = [bash("cat notes/copy; echo read >> ran"), answer("done")];
    let rig = Rig::new();
    rig.file(".env", "KEY=value\n");
    fs::create_dir(rig.work().join("notes")).unwrap();
    fs::hard_link(rig.work().join(".env"), rig.work().join("notes/copy")).unwrap();
    let done = rig.play(&turns, &[]).exits(0);
    assert!(rig.has("ran") && !done.results()[0].contains("KEY"), "{:?}", done.results());
    assert!(done.stderr.contains("notes/copy` is a hard link to `"), "{}", done.stderr);
    let warnings = rig.records_of("session")[0]["warnings"].clone();
    assert!(warnings[0].as_str().unwrap().contains("it is closed, too"), "{warnings}");
    // A file tool finds it closed as well.
    let read = json!({"calls": [{"name": "read", "arguments": {"path": "notes/copy"}}]});
    let done = rig.play(&[read, answer("done")], &[]);
    assert!(!done.results()[0].contains("KEY"), "{:?}", done.results());
    // The control: a file of its own under that name is read.
    fs::remove_file(rig.work().join("notes/copy")).unwrap();
    rig.file("notes/copy", "KEY=other\n");
    let done = rig.play(&turns, &[]).exits(0);
    assert!(done.results()[0].contains("KEY=other"), "{:?}", done.results());
    assert!(rig.records_of("session")[0].get("warnings").is_none());
}

#[test]
fn a_hard_link_to_the_outside_is_told_by_run_and_exec() {
    let rig = Rig::new();
    let outside = rig.beside("outside", "secret\n");
    fs::hard_link(&outside, rig.work().join("link")).unwrap();
    let done = rig.play(&[bash("true"), answer("done")], &[]).exits(0);
    assert!(done.stderr.contains("limit L3") && done.stderr.contains("/link`"), "{}", done.stderr);
    let work = rig.work();
    let exec = ["exec", "--workspace", work.to_str().unwrap(), "--", "true"];
    let done = rig.stoplog(&exec).exits(0);
    assert!(done.stderr.contains("limit L3"), "{}", done.stderr);
    assert!(rig.records_of("session")[0]["warnings"][0].as_str().unwrap().contains("limit L3"));
    fs::remove_file(rig.work().join("link")).unwrap();
    assert_eq!(rig.stoplog(&exec).exits(0).stderr, "", "the control");
}

#[test]
fn a_look_for_hard_links_that_was_cut_is_recorded_and_told_to_who_asks() {
    let rig = Rig::new();
    let outside = rig.beside("outside", "secret\n");
    let work = rig.work();
    let exec = |more: &[&str]| {
        let words = [&["exec"], more, &["--workspace", work.to_str().unwrap(), "--", "true"]];
        rig.stoplog(&words.concat()).exits(0)
    };
    let warnings = || rig.records_of("session")[0]["warnings"].clone();
    assert_eq!(exec(&["--show-cell"]).stderr.lines().count(), 1, "the control: all was seen");
    assert!(warnings().is_null());
    for number in 0..20_050 {
        fs::File::create(work.join(format!("f{number}"))).unwrap();
    }
    assert_eq!(exec(&[]).stderr, "", "nobody is told of each command");
    assert!(warnings()[0].as_str().unwrap().contains("and not all"), "{}", warnings());
    let told = exec(&["--show-cell"]).stderr;
    assert!(told.contains("saw 20000 names and not all"), "{told}");
    // What was found before the look was cut is told all the same.
    fs::hard_link(work.join("f0"), rig.root().join("elsewhere")).unwrap();
    fs::hard_link(&outside, work.join("link")).unwrap();
    let script = rig.script(&[bash("true"), answer("done")]);
    let told = rig.run(&script, &[]).exits(0).stderr;
    assert!(told.contains("limit L3") && !told.contains("not all"), "a run sees more: {told}");
}
