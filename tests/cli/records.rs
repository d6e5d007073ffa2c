//! The audit log from the outside: `verify`, `log`, `show`, and what they say after the log was changed.

use super::rig::{Rig, answer, bash, call, calls, is_root, write};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::CommandExt as _;

#[test]
fn verify_says_intact_after_the_demonstration_and_names_the_record_that_was_changed() {
    let rig = Rig::new();
    let done = rig.stoplog(&["demo", "--keep"]).exits(0);
    let text = format!("{}{}", done.stdout, done.stderr);
    assert!(text.contains("intact"), "{text}");
    assert_each_planted_act_was_refused(&rig);
    let verify = |more: &[&str]| rig.stoplog(&[&["audit", "verify"], more].concat());
    verify(&[]).exits(0);
    let log = rig.log();
    let good = fs::read(&log).unwrap();
    let starts: Vec<usize> = std::iter::once(0)
        .chain(good.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1))
        .collect();
    // One byte of the text in the fourth record.
    let at = starts[3] + (starts[4] - starts[3]) / 2;
    let mut bad = good.clone();
    bad[at] ^= 1;
    fs::write(&log, &bad).unwrap();
    let said = verify(&[]).exits(22).stdout;
    assert!(said.contains("(line 4): ") && !said.contains(": intact"), "{said}");
    assert_eq!(said.matches("(line ").count(), 1, "only the changed record is named: {said}");
    let report = verify(&["--json"]).exits(22).json();
    assert_eq!(report["problems"][0]["line"], 4, "{report}");
    // A record is taken out, and the tail is cut off.
    let without = [&good[..starts[3]], &good[starts[4]..]].concat();
    fs::write(&log, without).unwrap();
    verify(&[]).exits(22);
    fs::write(&log, &good[..starts[starts.len() - 2]]).unwrap();
    verify(&[]).exits(22);
    fs::write(&log, &good).unwrap();
    verify(&[]).exits(0);
}

/// Every act that the planted instruction asks for has a denial by the stage and rule that should give
/// it.
fn assert_each_planted_act_was_refused(rig: &Rig) {
    let denied: Vec<Value> = rig
        .records_of("decision")
        .into_iter()
        .filter(|record| record["ruling"] == "denied")
        .map(|record| {
            let mut stages = record["stages"].as_object().unwrap().iter();
            let (name, stage) = stages.find(|(_, stage)| stage["verdict"] == "deny").unwrap();
            json!([record["tool"], name, stage["reasons"][0]["rule"]])
        })
        .collect();
    for (tool, stage, rule) in [
        ("read", "firewall", "home-credentials"),
        ("bash", "firewall", "login-and-start-files"),
        ("write", "firewall", "git-hooks-and-config"),
        ("bash", "firewall", "upload"),
        ("bash", "permission", "kill-others"),
        ("write", "firewall", "own-state"),
        ("bash", "permission", "command.unresolved"),
    ] {
        assert!(denied.contains(&json!([tool, stage, rule])), "{tool} {rule}: {denied:?}");
    }
}

#[test]
fn the_demonstration_shows_refusals_by_rule_and_works_for_an_ordinary_user() {
    let rig = Rig::new();
    let mut command = rig.command(&["demo"]);
    if is_root() {
        rig.give_to(65_534);
        command.uid(65_534).gid(65_534);
    }
    let done = super::rig::Live::start(command).end().exits(0);
    let text = format!("{}{}", done.stdout, done.stderr);
    for words in ["denied by firewall", "rule", "intact", "stoplog"] {
        assert!(text.contains(words), "`{words}`: {text}");
    }
}

#[test]
fn the_demonstration_says_what_is_weaker_where_namespaces_are_refused() {
    let rig = Rig::new();
    let said = |more: &[&str]| {
        let done = rig.stoplog(&[&["demo"], more].concat()).exits(0);
        format!("{}{}", done.stdout, done.stderr)
    };
    let (weaker, whole) = (said(&["--no-namespaces"]), said(&[]));
    for words in ["weaker without namespaces: ", "G10-protected-names", "not held here"] {
        assert!(weaker.contains(words) && !whole.contains(words), "`{words}`: {weaker}");
    }
    assert!(weaker.contains("denied by firewall") && weaker.contains("intact"), "{weaker}");
}

/// A run with one call of each fate.
fn varied(rig: &Rig) {
    let turns = [
        calls(&[
            ("write", json!({"path": "a", "content": "x"})),
            ("read", json!({"path": "/etc/shadow"})),
            ("teleport", json!({})),
        ]),
        bash("exit 3"),
        answer("done"),
    ];
    rig.play(&turns, &[]).exits(10);
}

#[test]
fn the_log_lists_decisions_and_filters_them() {
    let rig = Rig::new();
    varied(&rig);
    let log = |more: &[&str]| {
        let done = rig.stoplog(&[&["audit", "log", "--json"], more].concat()).exits(0);
        let rows: Vec<Value> =
            done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        rows
    };
    let all = log(&[]);
    let kinds: Vec<&str> = all.iter().filter_map(|row| row["kind"].as_str()).collect();
    // The two calls of a wave are decided before either ends.
    let expected =
        "session decision started decision outcome rejected decision started outcome end";
    assert_eq!(kinds.join(" "), expected);
    assert_eq!(log(&["--decision", "deny"]).len(), 1);
    assert_eq!(log(&["--decision", "pass"]).len(), 2);
    assert_eq!(log(&["--tool", "bash"]).len(), 1);
    assert_eq!(log(&["--rule", "system-secrets"]).len(), 1);
    assert_eq!(log(&["--rule", "nothing"]).len(), 0);
    let text = rig.stoplog(&["audit", "log", &rig.session()]).exits(0).stdout;
    for words in ["system-secrets", "write", "teleport", "exit code 10"] {
        assert!(text.contains(words), "`{words}`: {text}");
    }
    rig.stoplog(&["audit", "log", "--decision", "perhaps"]).exits(2).says(&["`pass` or `deny`"]);
    rig.stoplog(&["audit", "log", "nothing"]).exits(2).says(&["session list"]);
}

#[test]
fn show_explains_one_call_by_every_stage() {
    let rig = Rig::new();
    varied(&rig);
    let denied =
        rig.records_of("decision").into_iter().find(|row| row["ruling"] == "denied").unwrap();
    let call = denied["call"].as_str().unwrap();
    let number = denied["seq"].to_string();
    for wanted in [call, call.rsplit('-').next().unwrap(), &number] {
        let text = rig.stoplog(&["audit", "show", wanted]).exits(0).stdout;
        let words = [
            "abort",
            "role",
            "hooks",
            "firewall",
            "guardian",
            "permission",
            "system-secrets",
            "denied",
        ];
        for word in words {
            assert!(text.contains(word), "`{word}` of {wanted}: {text}");
        }
    }
    rig.stoplog(&["audit", "show", "1"]).exits(2).says(&["of no call"]);
    rig.stoplog(&["audit", "show", "99"]).exits(2).says(&["no record 99"]);
    rig.stoplog(&["audit", "show", "ffffffff"]).exits(2).says(&["audit log"]);
}

#[test]
fn exec_is_decided_by_the_same_chain_and_leaves_a_log_of_its_own() {
    let rig = Rig::new();
    rig.file("a.txt", "alpha\n");
    let work = rig.work();
    let exec = |command: &[&str]| {
        let fixed = ["exec", "--workspace", work.to_str().unwrap(), "--"];
        rig.stoplog(&[&fixed[..], command].concat())
    };
    let done = exec(&["cat", "a.txt"]).exits(0);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("alpha\n", ""));
    let records = rig.records();
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session", "decision", "started", "outcome", "end"]);
    assert_eq!(exec(&["sh", "-c", "echo out; echo err >&2; exit 7"]).exits(7).stderr, "err\n");
    exec(&["sh", "-c", "ulimit -S -t 1; while :; do :; done"]).exits(128 + 24);
    let denied = exec(&["cat", "/etc/shadow"]).exits(10);
    assert!(denied.stderr.contains("system-secrets") && denied.stdout.is_empty());
    assert_eq!(rig.records_of("decision")[0]["ruling"], "denied");
    exec(&["no-such-program"]).exits(127).says(&["cannot run `no-such-program`"]);
    rig.file("plain", "no program");
    exec(&["./plain"]).exits(126).says(&["cannot run `./plain`"]);
    rig.stoplog(&["audit", "verify", "--all"]).exits(0);
    // The words of a command reach it as they were typed.
    let odd = exec(&["printf", "%s|", "a b", "", "it's", "$HOME", "*"]).exits(0);
    assert_eq!(odd.stdout, "a b||it's|$HOME|*|");
}

#[test]
fn a_script_from_the_input_of_exec_is_not_told_and_so_not_run() {
    let rig = Rig::new();
    let work = rig.work();
    let place = ["exec", "--workspace", work.to_str().unwrap(), "--"];
    let script = rig.beside("input", "touch made\n");
    let piped = |words: &[&str]| {
        let mut command = rig.command(&[&place[..], words].concat());
        command.stdin(fs::File::open(&script).unwrap());
        super::rig::Live::start(command).end()
    };
    for command in [&["sh"][..], &["bash", "-s"], &["sh", "-c", "cat | sh"], &["env", "sh"]] {
        piped(command).exits(10).says(&["foreign-code"]);
    }
    assert!(!rig.has("made"));
    assert_eq!(piped(&["cat"]).exits(0).stdout, "touch made\n", "control: text is text");
    assert_eq!(piped(&["sh", "-c", "cat"]).exits(0).stdout, "touch made\n");
}

#[test]
fn exec_passes_its_input_on_and_stops_at_the_time_limit() {
    let rig = Rig::new();
    let policy = rig.policy("[limits]\nwall_ms = 500\nkill_grace_ms = 200\n");
    let work = rig.work();
    let place = ["exec", "--workspace", work.to_str().unwrap(), "--policy", &policy, "--"];
    rig.stoplog(&[&place[..], &["sleep", "60"]].concat()).exits(124);
    let input = rig.beside("input", "through\n");
    let mut command = rig.command(&[&place[..], &["cat"]].concat());
    command.stdin(fs::File::open(input).unwrap());
    assert_eq!(super::rig::Live::start(command).end().exits(0).stdout, "through\n");
}

#[test]
fn explain_says_before_a_run_what_the_run_then_does() {
    let rig = Rig::new();
    let work = rig.work();
    let explain = |call: &str| {
        let fixed = ["policy", "explain", "--headless", "--json", "--workspace"];
        rig.stoplog(&[&fixed[..], &[work.to_str().unwrap(), call]].concat())
    };
    for (command, code) in [
        ("touch made", 0),
        ("cat /etc/shadow", 10),
        ("git status && rm -rf /", 10),
        ("bash -c \"$(cat script)\"", 10),
        ("echo x > .git/hooks/pre-commit", 10),
    ] {
        let done = explain(command);
        assert_eq!(done.code(), Some(code), "{command}: {}{}", done.stdout, done.stderr);
        let decided = rig.play(&[bash(command), answer("done")], &[]);
        assert_eq!(decided.code(), Some(code), "{command}: {}", decided.stdout);
        let rule = &decided.events_of("decision")[3]["reasons"][0]["rule"];
        let rule = rule.as_str().unwrap_or_default();
        assert!(done.stdout.contains(rule), "`{rule}` in {}", done.stdout);
    }
    assert!(rig.has("made"));
}

#[test]
fn secrets_in_arguments_are_left_out_of_the_log_and_the_decision_still_stands() {
    let rig = Rig::new();
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    rig.play(&[write("token", secret), answer("done")], &[]).exits(0);
    assert_eq!(rig.text("token"), secret, "the file has it");
    let log = fs::read_to_string(rig.log()).unwrap();
    assert!(!log.contains(secret), "the log has not");
    assert_eq!(rig.records_of("decision")[0]["redacted"], 1);
    rig.stoplog(&["audit", "verify"]).exits(0);
    rig.play(&[call("read", &json!({"path": "token"})), answer("done")], &[]).exits(0);
}

#[test]
fn a_query_finds_records_of_all_sessions_by_what_they_say() {
    let rig = Rig::new();
    let query = |more: &[&str]| rig.stoplog(&[&["audit", "query"], more].concat());
    assert_eq!(query(&[]).exits(0).stdout, "", "nothing was logged yet");
    rig.file("a", "text");
    rig.play(&[bash("sort a > sorted"), bash("curl http://example.org/x"), answer("done")], &[]);
    rig.play(&[call("read", &json!({"path": "/etc/shadow"})), answer("done")], &[]);
    let found = |more: &[&str]| -> Vec<String> {
        let text = query(&[&["--json"], more].concat()).exits(0).stdout;
        let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records
            .map(|record| {
                assert!(record["session"].is_string(), "{record}");
                let arguments = &record["arguments"];
                let what = arguments["command"].as_str().or(arguments["path"].as_str());
                what.unwrap_or_else(|| record["kind"].as_str().unwrap()).to_owned()
            })
            .collect()
    };
    let (sort, curl, shadow) = ("sort a > sorted", "curl http://example.org/x", "/etc/shadow");
    assert_eq!(found(&["--kind", "session"]).len(), 2);
    assert_eq!(found(&["--decision", "deny"]), [shadow]);
    assert_eq!(found(&["--decision", "pass"]), [sort, curl]);
    assert_eq!(found(&["--program", "sort"]), [sort]);
    assert_eq!(found(&["--host", "*.org"]), [curl]);
    assert_eq!(found(&["--kind", "decision", "--path", "/etc/*"]), [shadow]);
    assert_eq!(found(&["--kind", "decision", "--tool", "read"]), [shadow]);
    assert!(found(&["--since", "2100-01-01"]).is_empty());
    assert_eq!(found(&["--until", "2100-01-01", "--kind", "decision"]).len(), 3);
    let rule = &rig.records_of("decision")[0]["stages"]["firewall"]["reasons"][0]["rule"];
    assert_eq!(found(&["--rule", rule.as_str().unwrap()]), [shadow]);
    let text = query(&["--kind", "decision"]).exits(0).stdout;
    assert_eq!(text.matches("session ").count(), 2, "a heading each: {text}");
    assert!(text.contains("denied by firewall") && text.contains("approved  bash sort"), "{text}");
    for (wrong, said) in [
        (["--since", "noon"], "is no time"),
        (["--path", "[a"], "--path"),
        (["--kind", "x"], "decision"),
    ] {
        query(&wrong).exits(2).says(&[said]);
    }
}
