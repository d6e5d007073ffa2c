//! Wrong input: a message that says what to do, the documented exit code, nothing lost, nothing run.

use super::rig::{Live, Rig, answer, bash, call, calls, is_root, write};
use super::scripted_http::{Reply, Server, Turn};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// What every refused start is compared with: the same start goes through when nothing is wrong.
fn assert_control(rig: &Rig, more: &[&str]) {
    rig.play(&[write("control", "x"), answer("done")], more).exits(0);
    assert!(rig.has("control"));
}

#[test]
fn wrong_command_lines_get_usage_and_begin_nothing() {
    let rig = Rig::new();
    let script = rig.script(&[write("ran", "x"), answer("done")]);
    let work = rig.work();
    let work = work.to_str().unwrap();
    let place = ["run", "--workspace", work, "--model", &script];
    for (arguments, told) in [
        ([&place[..], &["--bogus", "task"]].concat(), "unexpected argument '--bogus'"),
        (place.to_vec(), "<TASK>"),
        ([&place[..], &[""]].concat(), "the task is empty; say what to do"),
        ([&place[..], &[" \n"]].concat(), "the task is empty; say what to do"),
        (vec!["run", "--workspace", work, "task"], "give --model PROVIDER/NAME"),
        ([&place[..], &["--model", "nobody/x", "task"]].concat(), "cannot be used multiple times"),
        (vec!["run", "--workspace", work, "--model", "nobody/x", "task"], "nobody"),
        (vec!["run", "--workspace", work, "--model", "script/absent", "task"], "absent"),
        ([&place[..], &["--tools", "read,teleport", "task"]].concat(), "unknown tool `teleport`"),
        ([&place[..], &["--role", "king", "task"]].concat(), "role `king` is not in the policy"),
        ([&place[..], &["--max-iterations", "0", "task"]].concat(), "--max-iterations"),
        (vec!["exec", "--workspace", work, "--"], "COMMAND"),
        (vec!["resume", "--workspace", work, "nothing"], "no session is called `nothing`"),
        (vec!["policy", "show", "nothing"], "no built-in policy `nothing`"),
        (vec!["frobnicate"], "unrecognized subcommand 'frobnicate'"),
    ] {
        rig.stoplog(&arguments).exits(2).says(&[told]);
    }
    assert!(!rig.has("ran"));
    assert_eq!(rig.sessions().len(), 0, "a session was made");
    assert!(!rig.state().join("audit").exists(), "a log was made");
    rig.stoplog(&[&place[..], &["task"]].concat()).exits(0);
    assert!(rig.has("ran"));
}

#[test]
fn a_wrong_script_is_named_with_its_line_before_anything_begins() {
    let rig = Rig::new();
    let script = format!("script/{}", rig.beside("s.jsonl", "{\"text\":\"a\"}\n{\"txt\":\"b\"}\n"));
    rig.run(&script, &[]).exits(2).says(&["s.jsonl:2", "txt"]);
    rig.assert_nothing_began();
}

#[test]
fn workspaces_that_are_no_projects_are_refused() {
    let rig = Rig::new();
    let script = rig.script(&[answer("done")]);
    let file = rig.beside("file", "");
    let (root, home) = (rig.root().to_str().unwrap(), rig.home());
    for (workspace, told) in [
        ("/", "too wide"),
        ("/etc", "too wide"),
        (home.to_str().unwrap(), "too wide"),
        (root, "too wide"),
        (&format!("{root}/absent"), "does not exist; make it, or give another with --workspace"),
        (&file, "is not a directory"),
    ] {
        let arguments = ["run", "--model", &script, "--workspace", workspace, "task"];
        rig.stoplog(&arguments).exits(2).says(&[told, "--workspace"]);
        let exec = ["exec", "--workspace", workspace, "--", "true"];
        rig.stoplog(&exec).exits(2).says(&[told]);
    }
    rig.assert_nothing_began();
    assert_control(&rig, &[]);
}

#[test]
fn a_state_directory_that_others_reach_is_refused() {
    let rig = Rig::new();
    let script = rig.script(&[answer("done")]);
    let open = rig.root().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
    let link = rig.root().join("link");
    let private = rig.root().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, Permissions::from_mode(0o700)).unwrap();
    symlink(&private, &link).unwrap();
    let run = |state: &str| {
        let place = ["--workspace", rig.work().to_str().unwrap(), "--model", &script, "task"]
            .map(str::to_owned);
        let mut command = rig.program(super::rig::PROGRAM, &["--state-dir", state, "run"]);
        command.args(place);
        Live::start(command).end()
    };
    let inside = rig.work().join("state");
    for (state, told) in [
        (inside.to_str().unwrap(), "choose another with --state-dir"),
        (rig.root().to_str().unwrap(), "choose another with --state-dir"),
        (open.to_str().unwrap(), "chmod 700"),
        (link.to_str().unwrap(), "is a symbolic link"),
    ] {
        run(state).exits(2).says(&[told]);
    }
    assert!(!inside.exists() && fs::read_dir(&open).unwrap().count() == 0, "nothing was made");
    run(private.to_str().unwrap()).exits(0);
}

#[test]
fn every_error_of_a_policy_is_told_at_once_with_file_line_and_caret() {
    let rig = Rig::new();
    let policy = rig.policy(
        r#"colour = "red"
[path]
read = ["{workspace}/[a"]
[[path.rule]]
id = "wrong-example"
decision = "deny"
reason = "r"
paths = ["{workspace}/x/**"]
match = ["{workspace}/y"]
"#,
    );
    for arguments in [
        rig.arguments(&rig.script(&[answer("done")]), &["--policy", &policy]),
        ["policy", "check", &policy].map(str::to_owned).to_vec(),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        rig.stoplog(&arguments).exits(21).says(&[
            "unknown key `colour`",
            "policy.toml:3:1",
            "^^^^^^",
            "not a usable pattern",
            "policy.toml:5:9",
            "the rule does not match this, and should",
            "policy.toml:11:10",
            "3 errors; no policy was loaded",
        ]);
    }
    rig.assert_nothing_began();
    let good = rig.policy("");
    assert_control(&rig, &["--policy", &good]);
}

#[test]
fn policies_that_cannot_be_read_or_trusted_stop_the_run() {
    let rig = Rig::new();
    rig.file(".stoplog/policy.toml", "version = 1\n[path]\ndefault = \"allow\"\n");
    let script = rig.script(&[answer("done")]);
    let widening = rig.run(&script, &[]).exits(21);
    assert!(widening.stderr.contains("policy.toml"), "{}", widening.stderr);
    fs::remove_dir_all(rig.work().join(".stoplog")).unwrap();
    for (name, told) in [
        ("absent.toml", "give a file, or one of the built-in policies base"),
        ("/dev/zero", "not a regular file"),
        (rig.work().to_str().unwrap(), "not a regular file"),
    ] {
        rig.run(&script, &["--policy", name]).exits(21).says(&[told]);
    }
    rig.assert_nothing_began();
    assert_control(&rig, &[]);
}

#[test]
fn a27_the_key_comes_from_the_environment_and_a_missing_one_is_named() {
    let rig = Rig::new();
    let server = Server::start(vec![Reply::chat_stream(&Turn::text("hello"))]);
    let url = server.base_url();
    let more = ["--base-url", url.as_str()];
    rig.run("openrouter/some/model", &[]).exits(2).says(&["OPENROUTER_API_KEY"]);
    rig.assert_nothing_began();
    assert!(server.requests().is_empty());
    let mut command = rig.run_command("openrouter/some/model", &more);
    let done = Live::start({
        command.env("OPENROUTER_API_KEY", "sk-or-1-secret-of-the-test");
        command
    })
    .end()
    .exits(0);
    let request = server.requests().remove(0);
    assert_eq!(request.header("authorization"), Some("Bearer sk-or-1-secret-of-the-test"));
    let everything = format!(
        "{}{}{}{}",
        done.stdout,
        done.stderr,
        fs::read_to_string(rig.journal()).unwrap(),
        fs::read_to_string(rig.log()).unwrap()
    );
    assert!(!everything.contains("secret-of-the-test"), "the key is written down");
}

#[test]
fn a_refused_connection_is_tried_three_times_and_leaves_the_users_words() {
    let rig = Rig::new();
    // A port that was free a moment ago; nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let done = rig.run("openai/x", &["--base-url", &url]).exits(12);
    let result = done.result();
    assert_eq!(result["finish_reason"], "error");
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("cannot connect") && error.contains("check that the server runs"));
    assert_eq!(done.events_of("retry").len(), 2);
    assert_eq!(rig.records_of("retry").len(), 3, "every attempt is on record");
    assert!(fs::read_to_string(rig.journal()).unwrap().contains("do the task"));
    rig.stoplog(&["audit", "verify"]).exits(0);
}

#[test]
fn answers_that_are_errors_are_told_with_what_to_do() {
    let error = json!({"error": {"message": "no such thing"}});
    let status = |status| Reply::status(status, &[], &error);
    let garbage = Reply::bytes("text/event-stream", b"data: {\"choices\": [\n\n");
    let cut = Reply::open_stream()
        .then_chunk(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n")
        .then_cut();
    let cases = [
        (status(401), 1, "check OPENAI_API_KEY"),
        (status(404), 1, "check the model's name"),
        (status(429), 3, "wait, or use another model"),
        (status(500), 3, "run again later"),
        (garbage, 3, "invalid answer"),
        (cut, 3, "broke off before its end"),
    ];
    std::thread::scope(|scope| {
        for (reply, requests, told) in cases {
            scope.spawn(move || {
                let rig = Rig::new();
                let server = Server::start(vec![reply; requests]);
                let url = server.base_url();
                let work = rig.work();
                let place = ["--workspace", work.to_str().unwrap(), "--base-url", &url];
                let run = ["run", "--headless", "--output", "json", "--model", "openai/x", "task"];
                let done = rig.stoplog(&[&run[..], &place[..]].concat()).exits(12);
                let object = done.json();
                assert_eq!(object["finish_reason"], "error");
                assert_eq!(object["answer"], "", "an error is never an answer");
                assert!(object["error"].as_str().unwrap().contains(told), "{object}");
                assert_eq!(server.requests().len(), requests, "{told}");
                assert_eq!(rig.records_of("decision").len(), 0);
                rig.stoplog(&["audit", "verify"]).exits(0);
            });
        }
    });
}

#[test]
fn calls_that_are_no_calls_are_told_to_the_model_and_never_run() {
    let rig = Rig::new();
    let raw = |tool: &str, text: &str| (tool.to_owned(), json!(text));
    let cases = [
        ("teleport".to_owned(), json!({"to": "moon"})),
        ("Bash".to_owned(), json!({"command": "touch ran"})),
        raw("bash", r#"{"command": "touch ran"#),
        raw("bash", r#"{"command":"true","command":"touch ran"}"#),
        raw("bash", r#"{"command":"touch ran","shell":"zsh"}"#),
        raw("bash", r#"{"command":["touch","ran"]}"#),
        raw("bash", ""),
        raw("bash", "null"),
        raw("bash", "[]"),
        raw("bash", r#"{"command":"touch ran"}{"command":"touch ran"}"#),
    ];
    let all: Vec<(&str, serde_json::Value)> =
        cases.iter().map(|(tool, arguments)| (tool.as_str(), arguments.clone())).collect();
    let done = rig.play(&[calls(&all), answer("done")], &[]).exits(0);
    assert_eq!(done.statuses(), vec!["rejected"; cases.len()]);
    assert!(!rig.has("ran"));
    let rejected = rig.records_of("rejected");
    assert_eq!(rejected.len(), cases.len());
    assert_eq!(rejected[0]["because"], "unknown-tool");
    assert_eq!(rejected[3]["because"], "invalid-arguments");
    assert_eq!(rejected[3]["arguments"], r#"{"command":"true","command":"touch ran"}"#, "as sent");
    assert!(rig.records_of("decision").is_empty() && rig.records_of("started").is_empty());
    rig.play(&[bash("touch ran"), answer("done")], &[]).exits(0);
    assert!(rig.has("ran"), "the control");
}

/// The run until the disk is full: many writes whose content is also in the journal.
fn greedy() -> Vec<serde_json::Value> {
    let mut turns: Vec<serde_json::Value> =
        (0..30).map(|number| write(&format!("f{number}"), &"x".repeat(20_000))).collect();
    turns.push(answer("done"));
    turns
}

/// What must hold after a run whose disk was full, when there is space again: every effect has its
/// decision on record, and the log is whole.
fn assert_nothing_lost(rig: &Rig) {
    let written = (0..30).filter(|number| rig.has(&format!("f{number}"))).count();
    assert!(written < 30, "the disk was not full");
    let started = rig.records_of("started").len();
    assert!(written <= started, "{written} files, {started} starts on record");
    assert!(rig.records_of("decision").len() >= started);
    let id = rig.session();
    // A call whose start found no place is named; nothing else may be missing.
    let done = rig.stoplog(&["audit", "verify"]);
    assert!(done.stdout.contains(": intact"), "{}", done.stdout);
    assert!(done.stdout.matches("\n  call ").count() <= 1, "{}", done.stdout);
    assert!(done.code() == Some(0) || done.stdout.contains("never started"), "{}", done.stdout);
    rig.stoplog(&["session", "show", &id]).exits(0);
}

#[test]
fn a_full_disk_stops_the_run_before_the_effect() {
    let rig = Rig::new();
    let script = rig.script(&greedy());
    let arguments = rig.arguments(&script, &[]);
    // A file that may not grow any more answers as a full disk does; the signal of the limit is
    // ignored, so that the program sees the error.
    let limited = "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\"";
    let mut command = rig.program("/bin/sh", &["-c", limited, super::rig::PROGRAM, "--state-dir"]);
    command.arg(rig.state()).args(&arguments);
    let done = Live::start(command).end().exits(22);
    assert_eq!(done.result()["finish_reason"], "record_failure");
    assert_nothing_lost(&rig);
    rig.play(&greedy(), &[]).exits(0);
}

#[test]
fn a_full_file_system_stops_the_run_before_the_effect() {
    if !is_root() {
        println!("not shown: only root can mount a small file system");
        return;
    }
    let rig = Rig::new();
    let arguments = rig.arguments(&rig.script(&greedy()), &[]);
    let script = "state=$1; kept=$2; program=$3; shift 3; mkdir -m 700 \"$state\" \
        && mount -t tmpfs -o size=900k,mode=700 none \"$state\" || exit 99; \
        \"$program\" --state-dir \"$state\" \"$@\"; code=$?; cp -a \"$state\" \"$kept\"; exit $code";
    let kept = rig.root().join("kept");
    let mut command = rig.program("unshare", &["--mount", "/bin/sh", "-c", script, "sh"]);
    command.arg(rig.state()).arg(&kept).arg(super::rig::PROGRAM).args(&arguments);
    let done = Live::start(command).end();
    if done.code() == Some(99) {
        println!("not shown: this machine refuses mounts");
        return;
    }
    let done = done.exits(22);
    assert!(done.result()["error"].as_str().unwrap().contains("space"), "{}", done.stdout);
    fs::remove_dir(rig.state()).unwrap();
    fs::rename(&kept, rig.state()).unwrap();
    assert_nothing_lost(&rig);
}

#[test]
fn a_second_process_on_a_session_is_refused_with_the_holders_pid() {
    let rig = Rig::new();
    let script = rig.script(&[bash("touch begun; sleep 30"), answer("done")]);
    let mut first = Live::start(rig.run_command(&script, &[]));
    assert!(first.until(|| rig.has("begun")));
    let id = rig.session();
    let holder = first.id().to_string();
    let before = fs::read(rig.journal()).unwrap();
    rig.stoplog(&["resume", &id, "more"]).exits(23).says(&[&holder]);
    assert_eq!(fs::read(rig.journal()).unwrap(), before, "nothing was written");
    first.signal(rustix::process::Signal::KILL);
    drop(first.end());
    rig.script(&[answer("done")]);
    rig.stoplog(&["resume", &id, "--headless"]).exits(0);
}

#[test]
fn a_tool_that_cannot_be_carried_out_is_the_models_problem_and_not_a_fault() {
    // A21
    let rig = Rig::new();
    let turns = [
        call("bash", &json!({"command": "true", "cwd": "no/such/directory"})),
        call("read", &json!({"path": "absent.txt"})),
        bash("exit 7"),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]).exits(0);
    assert_eq!(done.statuses(), ["failed", "failed", "failed"]);
    let told = done.results();
    assert!(told[0].contains("no/such/directory"), "{}", told[0]);
    assert!(told[1].contains("absent.txt"), "{}", told[1]);
    assert!(told[2].contains("[exit status 7]"), "{}", told[2]);
}
