//! The past under other rules: `policy replay` decides what a log holds again, from the log alone.

use super::rig::{Done, Rig, answer, bash, call};
use serde_json::{Value, json};
use std::fs;

/// A rule about a program.
fn rule(id: &str, decision: &str, program: &str) -> String {
    format!(
        "[[command.rule]]\nid = \"{id}\"\ndecision = \"{decision}\"\nreason = \"about {program}\"\n\
         program = \"{program}\"\nmatch = [\"{program} x\"]\nnot_match = [\"true\"]\n"
    )
}

/// A policy beside the one of the run.
fn other(rig: &Rig, text: &str) -> String {
    rig.beside("new.toml", format!("version = 1\nextends = [\"workspace\"]\n{text}"))
}

fn replay(rig: &Rig, against: &str, more: &[&str]) -> Done {
    rig.stoplog(&[&["policy", "replay", "--against", against], more].concat())
}

impl Done {
    fn shows(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "`{text}` is not in: {}", self.stdout);
        self
    }
}

/// What changes, by the text of the command.
fn changes(rig: &Rig, against: &str) -> Vec<(String, String)> {
    let text = replay(rig, against, &["--json"]).stdout;
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines
        .filter(|line| line.get("change").is_some())
        .map(|line| (word(&line["arguments"]["command"]), word(&line["change"])))
        .collect()
}

/// A run of commands, one of which its policy denies.
fn run(rig: &Rig, commands: &[&str], policy: &str) {
    let mut turns: Vec<Value> = commands.iter().map(|command| bash(command)).collect();
    turns.push(answer("done"));
    rig.play(&turns, &["--policy", policy]);
    assert_eq!(rig.records_of("decision").len(), commands.len());
}

#[test]
fn each_call_is_decided_again_and_what_changes_is_named_with_its_rule() {
    let rig = Rig::new();
    let policy = rig.policy(&rule("no-rev", "deny", "rev"));
    run(&rig, &["touch made", "rev made", "echo x"], &policy);
    replay(&rig, &policy, &[]).exits(0).shows("3 calls: 3 unchanged");

    let stricter =
        other(&rig, &(rule("no-rev", "deny", "rev") + &rule("no-touch", "deny", "touch")));
    let said = replay(&rig, &stricter, &[]).exits(1);
    let line = said.stdout.lines().find(|line| line.contains("would")).unwrap().to_owned();
    assert!(line.contains("deny by rule no-touch") && line.contains("new.toml:"), "{line}");
    assert!(said.stdout.contains("newly-denied by no-touch"), "{}", said.stdout);
    assert!(said.stdout.ends_with(
        "3 calls: 2 unchanged, 0 newly-allowed, 0 newly-asked, 1 newly-denied, 0 untold\n"
    ));
    replay(&rig, &stricter, &["--fail-on", "looser"]).exits(0);
    replay(&rig, &stricter, &["--fail-on", "stricter"]).exits(1);

    let looser = other(&rig, "");
    let found = changes(&rig, &looser);
    let expected =
        [("touch made", "unchanged"), ("rev made", "newly-allowed"), ("echo x", "unchanged")];
    assert_eq!(found, expected.map(|(what, change)| (what.to_owned(), change.to_owned())));
    replay(&rig, &looser, &["--fail-on", "stricter"]).exits(0);
    replay(&rig, &looser, &["--all", "--fail-on", "looser"]).exits(1);
    let log = rig.log();
    replay(&rig, &looser, &[log.to_str().unwrap()]).exits(1);
}

#[test]
fn every_rule_is_listed_with_the_calls_that_met_it() {
    let rig = Rig::new();
    let policy = rig.policy("");
    run(&rig, &["touch made", "touch again", "echo x"], &policy);
    let rules = rule("about-touch", "ask", "touch") + &rule("about-rev", "deny", "rev");
    let tried = other(&rig, &rules);
    let text = replay(&rig, &tried, &["--coverage"]).exits(1).stdout;
    assert!(
        text.contains("     2  calls met about-touch (")
            && text.contains("     0  calls met about-rev (")
    );
    assert!(
        text.contains("calls met home-credentials (policies/base.toml:"),
        "extended rules too: {text}"
    );
    let text = replay(&rig, &tried, &["--coverage", "--json"]).stdout;
    let totals: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let calls = |id: &str| {
        let mut rules = totals["rules"].as_array().unwrap().iter();
        rules.find(|rule| rule["rule"] == id).unwrap()["calls"].as_u64().unwrap()
    };
    assert_eq!((calls("about-touch"), calls("about-rev")), (2, 0));
}

#[test]
fn a_question_that_nobody_could_answer_counts_as_a_denial() {
    let rig = Rig::new();
    let policy = rig.policy(&rule("ask-rev", "ask", "rev"));
    run(&rig, &["rev made"], &policy);
    let denies = other(&rig, &rule("no-rev", "deny", "rev"));
    replay(&rig, &denies, &[]).exits(0).shows("1 calls: 1 unchanged");
    // With somebody at the terminal it is another answer.
    let asked = changes(&rig, &other(&rig, &rule("ask-rev", "ask", "rev")));
    assert_eq!(asked[0].1, "unchanged");
}

#[test]
fn links_lead_where_they_led_then() {
    let rig = Rig::new();
    let text = "[[path.rule]]\nid = \"closed\"\ndecision = \"deny\"\nreason = \"closed\"\n\
                paths = [\"{workspace}/closed/**\"]\nmatch = [\"{workspace}/closed/a\"]\n\
                not_match = [\"{workspace}/open/a\"]\n";
    let policy = rig.policy(text);
    rig.file("closed/a", "secret");
    std::os::unix::fs::symlink("closed", rig.work().join("open")).unwrap();
    let turns = [call("read", &json!({"path": "open/a"})), answer("done")];
    rig.play(&turns, &["--policy", &policy]).exits(10);
    // Today the name leads nowhere; a policy that closes the place would still have refused.
    fs::remove_file(rig.work().join("open")).unwrap();
    fs::remove_dir_all(rig.work().join("closed")).unwrap();
    replay(&rig, &policy, &[]).exits(0).shows("1 calls: 1 unchanged");
    replay(&rig, &other(&rig, ""), &[]).exits(1).shows("newly-allowed");
}

#[test]
fn layers_that_stood_around_the_policy_stay_as_they_were() {
    let rig = Rig::new();
    let layer = format!("version = 1\n{}", rule("not-here", "deny", "rev"));
    rig.file(".stoplog/policy.toml", layer);
    let policy = rig.policy("");
    run(&rig, &["rev made", "touch made"], &policy);
    fs::remove_dir_all(rig.work().join(".stoplog")).unwrap();
    replay(&rig, &other(&rig, ""), &[]).exits(0).shows("2 calls: 2 unchanged");
    let denies = changes(&rig, &other(&rig, &rule("no-touch", "deny", "touch")));
    assert_eq!(denies.iter().filter(|(_, change)| change == "newly-denied").count(), 1);
}

#[test]
fn where_the_log_does_not_hold_enough_nothing_is_said() {
    let rig = Rig::new();
    // What the rule looks at is what redaction takes away.
    let text = "[[path.rule]]\nid = \"closed\"\ndecision = \"deny\"\nreason = \"closed\"\n\
                paths = [\"{workspace}/verysecret\"]\nmatch = [\"{workspace}/verysecret\"]\n\
                not_match = [\"{workspace}/other\"]\n[audit]\nredact = [\"verysecret\"]\n";
    rig.file("other", "text");
    let read = |path: &str| call("read", &json!({"path": path}));
    let turns = [read("verysecret"), read("other"), answer("done")];
    rig.play(&turns, &["--policy", &rig.policy(text)]).exits(10);
    let said = replay(&rig, &other(&rig, ""), &[]).exits(1);
    said.shows("a part of the call was redacted").shows("1 unchanged").shows("1 untold");
    for fail_on in ["looser", "stricter"] {
        replay(&rig, &other(&rig, ""), &["--fail-on", fail_on]).exits(1);
    }
}

#[test]
fn a_log_that_was_changed_a_bad_policy_and_an_empty_place_are_told_apart() {
    let rig = Rig::new();
    replay(&rig, "workspace", &[]).exits(2).says(&["no log"]);
    replay(&rig, "no-such-policy", &[]).exits(21).says(&["built-in policies"]);
    let wrong = other(&rig, "colour = \"red\"\n");
    replay(&rig, &wrong, &[]).exits(21).says(&["colour", "new.toml"]);
    rig.stoplog(&["policy", "replay"]).exits(2);
    run(&rig, &["touch made"], &rig.policy(""));
    replay(&rig, "workspace", &[]).exits(0);
    let log = rig.log();
    let changed = fs::read_to_string(&log).unwrap().replace("touch made", "touch mode");
    fs::write(&log, changed).unwrap();
    let said = replay(&rig, "workspace", &[]).exits(22);
    assert!(said.stdout.is_empty() && said.stderr.contains("nothing is decided again"));
}

#[test]
fn a_policy_is_learned_from_what_was_approved_and_nothing_else() {
    let rig = Rig::new();
    let policy = rig.policy(&rule("no-rev", "deny", "rev"));
    run(&rig, &["touch made", "rev made", "cat made | head -3", "echo 'a b' > sub.txt"], &policy);
    let learned = rig.stoplog(&["policy", "learn"]).exits(0);
    assert!(learned.stderr.contains("learned from 3 approved calls"), "{}", learned.stderr);
    let text = learned.stdout;
    assert!(!text.contains("rev"), "what was denied teaches nothing: {text}");
    let file = rig.beside("learned.toml", text.clone());
    rig.stoplog(&["policy", "check", &file]).exits(0);
    let answers =
        |command: &str| rig.stoplog(&["policy", "explain", "--policy", &file, command]).code();
    for command in ["touch made", "cat made | head -3", "echo 'a b' > sub.txt"] {
        assert_eq!(answers(command), Some(0), "{command}: {text}");
    }
    for command in ["touch other", "cat sub.txt", "echo c > sub.txt", "rev made", "cat made > x"] {
        assert_ne!(answers(command), Some(0), "{command}: {text}");
    }
    let session = &rig.records_of("session")[0];
    let id: String = session["session"].as_str().unwrap().chars().take(8).collect();
    assert!(text.contains(&format!("approved in {id}:")), "{text}");
    // A part that nobody can tell is named, and not allowed.
    run_more(&rig, &["echo b > \"$(cat made)y\""], &policy);
    let partly = rig.stoplog(&["policy", "learn", "--all"]).exits(1);
    assert!(partly.stderr.contains("redirection-target: "), "{}", partly.stderr);
    assert!(partly.stdout.contains("touch") && partly.stdout.contains("cat"), "{}", partly.stdout);
}

/// A further run of the same rig.
fn run_more(rig: &Rig, commands: &[&str], policy: &str) {
    let mut turns: Vec<Value> = commands.iter().map(|command| bash(command)).collect();
    turns.push(answer("done"));
    rig.play(&turns, &["--policy", policy]);
}
