//! The tools as the model meets them: what they promise, and that they hold no more than their call.

use super::rig::{Rig, answer, bash, call, calls, write};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// What the model is told of one call, and the call's status.
fn told(rig: &Rig, tool: &str, arguments: &Value) -> (String, String) {
    let done = rig.play(&[call(tool, arguments), answer("done")], &[]);
    (done.results().remove(0), done.statuses().remove(0))
}

#[test]
fn a14_read_gives_pages_of_whole_lines_and_names_the_next() {
    let rig = Rig::new();
    let lines: Vec<String> = (1..=5_000).map(|number| format!("line {number}")).collect();
    rig.file("long.txt", lines.join("\n"));
    let (page, _) = told(&rig, "read", &json!({"path": "long.txt"}));
    assert!(page.starts_with("line 1\n") && page.contains("line 2000\n"));
    assert!(!page.contains("line 2001\n") && page.contains("2001"), "the next offset is named");
    let (page, _) = told(&rig, "read", &json!({"path": "long.txt", "offset": 4_999, "limit": 5}));
    assert!(page.starts_with("line 4999\nline 5000"), "{page}");
    let (error, status) = told(&rig, "read", &json!({"path": "long.txt", "offset": 6_000}));
    assert!(status == "failed" && error.contains("5000"), "{error}");
    rig.file("wide.txt", "é".repeat(40_000));
    let (page, _) = told(&rig, "read", &json!({"path": "wide.txt"}));
    assert!(page.len() <= 51_200 + 1_000 && !page.contains('\u{fffd}'), "{}", page.len());
}

#[test]
fn an_endless_output_ends_its_call_and_not_the_run() {
    let rig = Rig::new();
    let flood = |command: &str| call("bash", &json!({"command": command}));
    let turns = [flood("yes"), flood("yes >&2"), flood("echo on"), answer("done")];
    let results = rig.play(&turns, &[]).exits(0).results();
    assert!(
        results[..2].iter().all(|text| text.contains("more output than it may")),
        "{results:?}"
    );
    assert!(results[2].starts_with("on\n"), "{results:?}");
    let kept = rig.state().join("sessions").join(rig.session());
    let kept = std::process::Command::new("du").arg("-sm").arg(kept).output().unwrap().stdout;
    let mebibytes = String::from_utf8(kept).unwrap();
    let mebibytes: u64 = mebibytes.split('\t').next().unwrap().parse().unwrap();
    assert!((1..=130).contains(&mebibytes), "two outputs of 64 MiB each are kept: {mebibytes}");
}

#[test]
fn a15_write_makes_parents_replaces_atomically_and_keeps_the_mode() {
    let rig = Rig::new();
    let (text, _) = told(&rig, "write", &json!({"path": "new/deep/a.txt", "content": "12345"}));
    assert!(text.contains("created") && text.contains("5 bytes"), "{text}");
    let file = rig.work().join("new/deep/a.txt");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o754)).unwrap();
    let (text, _) = told(&rig, "write", &json!({"path": "new/deep/a.txt", "content": "x"}));
    assert!(text.contains("replaced"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o754);
    assert_eq!(rig.text("new/deep/a.txt"), "x");
    assert_eq!(fs::read_dir(rig.work().join("new/deep")).unwrap().count(), 1, "nothing is left");
}

#[test]
fn a15_write_outside_the_workspace_needs_a_grant() {
    let rig = Rig::new();
    let outside = rig.root().join("outside");
    fs::create_dir(&outside).unwrap();
    let outside = outside.to_str().unwrap();
    let path = format!("{outside}/a.txt");
    let turns = [write(&path, "x"), answer("done")];
    // `workspace` grants `/var/tmp`, where the rig lies; these grant what they name.
    let policy = |more: &str| {
        let granted = format!("[\"{{workspace}}/**\"{more}]");
        let paths = format!("[path]\ndefault = \"deny\"\nread = {granted}\nwrite = {granted}\n");
        rig.beside("policy.toml", format!("version = 1\nextends = [\"base\"]\n{paths}"))
    };
    let done = rig.play(&turns, &["--policy", &policy("")]).exits(10);
    assert_eq!(done.statuses(), ["denied"]);
    assert!(!rig.root().join("outside/a.txt").exists());
    rig.play(&turns, &["--policy", &policy(&format!(", \"{outside}/**\""))]).exits(0);
    assert!(rig.root().join("outside/a.txt").exists());
}

#[test]
fn a16_edit_replaces_exact_text_once_and_takes_it_literally() {
    let rig = Rig::new();
    rig.file("a.txt", "one\r\ntwo\r\nthree two\r\n");
    let (text, status) = told(&rig, "edit", &json!({"path": "a.txt", "old": "two", "new": "x"}));
    assert!(status == "failed" && text.contains("occurs 2 times"), "{text}");
    let edits = json!({"path": "a.txt", "edits": [
        {"old": "one", "new": "$& $$100 ${1} \\1"}, {"old": "three two", "new": "four"}]});
    let (_, status) = told(&rig, "edit", &edits);
    assert_eq!(status, "ok");
    assert_eq!(rig.text("a.txt"), "$& $$100 ${1} \\1\r\ntwo\r\nfour\r\n");
    let overlap = json!({"path": "a.txt", "edits": [
        {"old": "two\r\nfour", "new": "x"}, {"old": "four", "new": "y"}]});
    let (_, status) = told(&rig, "edit", &overlap);
    assert_eq!(status, "failed");
    assert_eq!(rig.text("a.txt"), "$& $$100 ${1} \\1\r\ntwo\r\nfour\r\n", "all or nothing");
}

#[test]
fn a17_a23_bash_runs_in_a_cell_that_the_kernel_holds() {
    let rig = Rig::new();
    fs::write(rig.home().join("private"), "PRIVATE").unwrap();
    let home = rig.home();
    // Words that only the running shell knows: the rules cannot tell, the cell holds.
    let command = format!(
        "d=$(printf '%s' {}); cat \"$d/private\" 2>&1; echo x > \"$d/made\"; ls -A ~; echo end",
        home.display()
    );
    let (text, _) = told(&rig, "bash", &json!({"command": command}));
    assert!(!text.contains("PRIVATE") && !home.join("made").exists(), "{text}");
    assert!(text.contains("end"), "{text}");
    let outcome = rig.records_of("outcome").remove(0);
    assert_eq!(outcome["enforced"]["seccomp"], true);
    assert!(outcome["enforced"]["landlock_abi"].as_u64().unwrap() > 0);
}

#[test]
fn a17_exit_status_signal_and_time_limit_are_told_apart() {
    let rig = Rig::new();
    let turns = [
        bash("true"),
        bash("exit 3"),
        bash("ulimit -t 1; while :; do :; done"),
        call("bash", &json!({"command": "sleep 60", "timeout_ms": 300})),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]).exits(0);
    assert_eq!(done.statuses(), ["ok", "failed", "failed", "failed"]);
    let exits: Vec<Value> =
        rig.records_of("outcome").iter().map(|record| record["exit"].clone()).collect();
    assert_eq!(exits[1], json!({"how": "code", "code": 3}));
    assert_eq!(exits[2]["how"], "signal");
    assert_eq!(exits[3]["how"], "timed-out");
    let results = done.results();
    assert!(results[0].contains("(no output)") && results[1].contains("[exit status 3]"));
}

#[test]
fn b14_the_policys_time_limit_is_the_most_that_a_call_can_ask_for() {
    let rig = Rig::new();
    let policy = rig.policy("[limits]\nwall_ms = 700\nkill_grace_ms = 100\n");
    let turn = call("bash", &json!({"command": "sleep 60", "timeout_ms": 50_000}));
    rig.play(&[turn, answer("done")], &["--policy", &policy]).exits(0);
    assert_eq!(rig.records_of("outcome")[0]["exit"]["how"], "timed-out");
}

#[test]
fn b16_a_result_has_at_most_50_000_bytes_and_the_rest_can_be_read() {
    // G2
    let rig = Rig::new();
    let turns = [bash("seq 1 100000"), bash("seq 1 1000"), answer("done")];
    let done = rig.play(&turns, &[]).exits(0);
    let kept = rig.sessions().pop().unwrap().join("tmp/stoplog-output");
    assert_eq!(fs::read_dir(kept).unwrap().count(), 1, "what was shown whole is not kept");
    let text = done.results().remove(0);
    assert!(text.len() <= 50_000, "{}", text.len());
    assert!(text.starts_with("1\n2\n") && text.contains("100000"), "head and tail");
    let (_, rest) = text.split_once("/tmp/stoplog-output/").unwrap();
    let (name, _) = rest.split_once(".txt").unwrap();
    let path = format!("/tmp/stoplog-output/{name}.txt");
    let id = rig.session();
    rig.script(&[
        call("read", &json!({"path": path, "offset": 50_000, "limit": 1})),
        answer("done"),
    ]);
    let done =
        rig.stoplog(&["resume", &id, "--headless", "--output", "stream-json", "look"]).exits(0);
    assert!(done.results()[0].starts_with("50000\n"), "{}", done.results()[0]);
}

#[test]
fn a12_searching_tools_respect_ignores_and_bounds() {
    let rig = Rig::new();
    rig.file(".gitignore", "target/\n");
    rig.file("src/a.rs", "fn needle() {}\n");
    rig.file("target/b.rs", "fn needle() {}\n");
    let turn = calls(&[
        ("list", json!({})),
        ("glob", json!({"pattern": "**/*.rs"})),
        ("grep", json!({"pattern": "needle"})),
        ("list", json!({"all": true})),
    ]);
    let done = rig.play(&[turn, answer("done")], &[]).exits(0);
    let results = done.results();
    for text in &results[..3] {
        assert!(text.contains("src") && !text.contains("target"), "{text}");
    }
    assert!(results[3].contains("target"), "{}", results[3]);
}

#[test]
fn g06_tools_get_the_environment_of_the_policy_and_no_other() {
    let rig = Rig::new();
    let script = rig.script(&[bash("env | sort"), answer("done")]);
    let run = |more: &[&str]| {
        let mut command = rig.run_command(&script, more);
        command.env("OPENAI_API_KEY", "sk-1").env("MY_SETTING", "on").env("LD_PRELOAD", "");
        super::rig::Live::start(command).end().exits(0).results().remove(0)
    };
    let text = run(&[]);
    assert!(!text.contains("sk-1") && !text.contains("MY_SETTING"), "{text}");
    assert!(text.contains("PATH=") && text.contains("HOME="), "{text}");
    let policy = rig.policy("[env]\npass = [\"MY_SETTING\"]\n");
    assert!(run(&["--policy", &policy]).contains("MY_SETTING=on"));
}

#[test]
fn g10_no_tool_changes_the_policy_the_state_or_a_git_hook() {
    let rig = Rig::new();
    let policy = rig.policy("");
    fs::create_dir_all(rig.work().join(".git/hooks")).unwrap();
    let state = rig.state();
    let turns = [
        calls(&[
            ("write", json!({"path": ".git/hooks/pre-commit", "content": "x"})),
            ("write", json!({"path": ".stoplog/policy.toml", "content": "x"})),
            ("write", json!({"path": policy, "content": "x"})),
            ("write", json!({"path": state.join("x"), "content": "x"})),
            (
                "bash",
                json!({"command": "d=.git/hooks; echo x > $d/pre-commit; mkdir -p .stoplog; \
                f=policy.toml; echo x > .stoplog/$f; true"}),
            ),
        ]),
        answer("done"),
    ];
    let before = fs::read_to_string(&policy).unwrap();
    let done = rig.play(&turns, &["--policy", &policy]).exits(10);
    assert_eq!(done.statuses()[..4], ["denied"; 4]);
    assert!(!rig.has(".git/hooks/pre-commit"));
    assert!(!rig.has(".stoplog/policy.toml"));
    assert!(!state.join("x").exists());
    assert_eq!(fs::read_to_string(&policy).unwrap(), before);
}

#[test]
fn a_repository_of_an_earlier_call_stays_unless_it_lies_in_the_temporary_directory() {
    let rig = Rig::new();
    let make = "git init -q \"$1\" && cp -r \"$1\" \"$1-copy\" && rm -rf \"$1-copy\" && echo made";
    let make = |place: &str| bash(&format!("set -- {place}; {make}"));
    let away = |place: &str| {
        bash(&format!(
            "mv {place} {place}-moved && rm -rf {place}-moved && echo gone; \
             test -e {place}/.git/config && echo kept"
        ))
    };
    let turns = [
        make("sub"),
        away("sub"),
        bash("rm -rf sub; test -e sub/.git/config && echo kept"),
        make("$TMPDIR/sub"),
        away("$TMPDIR/sub"),
        answer("done"),
    ];
    let results = rig.play(&turns, &[]).results();
    assert!(results[0].contains("made\n"), "one call may do as it likes: {}", results[0]);
    // Whoever made it, a person's git will act on its hooks and configuration.
    for kept in &results[1..3] {
        assert!(kept.contains("kept\n") && !kept.contains("gone"), "{kept}");
        assert!(kept.contains("Device or resource busy"), "{kept}");
    }
    assert!(results[3].contains("made\n") && results[4].starts_with("gone\n"), "{results:?}");
}

#[test]
fn a_file_that_changed_after_it_was_read_is_never_clobbered_in_silence() {
    let rig = Rig::new();
    rig.file("f", "old\nkept\n");
    let turns = [
        call("read", &json!({"path": "f"})),
        bash("printf 'other\\nkept\\ntheirs\\n' > f"),
        call("edit", &json!({"path": "f", "old": "old", "new": "new"})),
        call("edit", &json!({"path": "f", "old": "kept", "new": "changed"})),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]);
    let (results, statuses) = (done.results(), done.statuses());
    assert_eq!(statuses[2], "failed", "what the model saw is no longer there: {}", results[2]);
    // The fourth call is refused, or made on what is there now: nothing of it is lost.
    let text = rig.text("f");
    assert!(text.starts_with("other\n") && text.ends_with("\ntheirs\n"), "{text:?} {results:?}");
}
