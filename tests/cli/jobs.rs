//! Background jobs: decided and confined like every call, read and ended by the model, recorded, and gone
//! with the run whatever ends it.

use super::layers::{ACCEPTS, play_refused, refused};
use super::rig::{Done, Live, Rig, answer, bash, call, calls};
use super::sleeper::Sleeper;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Far longer than a job that does nothing takes to end and to be seen, on a busy machine too.
const ENDS_WITHIN_MS: u64 = 4_000;
/// A job that ends while the model writes its next answer: one that ends before is told with the request.
const ENDS_MEANWHILE: &str = "sleep 1.5";

/// A background command.
fn job(command: &str) -> Value {
    call("bash", &json!({"command": command, "background": true}))
}

fn output(more: &Value) -> Value {
    let mut arguments = json!({"job": "job-1"});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call("job_output", &arguments)
}

fn kill() -> Value {
    call("job_kill", &json!({"job": "job-1"}))
}

/// The facts of our own of one kind.
fn facts(rig: &Rig, kind: &str) -> Vec<Value> {
    let facts = rig.facts().into_iter().map(|fact| fact["extension"].clone());
    facts.filter(|fact| fact["type"] == kind).collect()
}

/// The outcome in the log of the call that began the first job.
fn outcome(rig: &Rig) -> Value {
    let decisions = rig.records_of("decision");
    let began =
        decisions.iter().find(|record| record["arguments"].to_string().contains("background"));
    let began = &began.unwrap()["call"];
    rig.records_of("outcome").into_iter().find(|record| record["call"] == *began).unwrap()
}

/// The one message that no person wrote.
fn injected(rig: &Rig) -> String {
    let injected = facts(rig, "injected");
    assert_eq!(injected.len(), 1, "{injected:?}");
    let facts = rig.facts();
    let message = facts.iter().find(|fact| fact["id"] == injected[0]["entryId"]).unwrap();
    message["entry"]["message"]["content"].as_str().unwrap().to_owned()
}

fn verifies(rig: &Rig) {
    rig.stoplog(&["audit", "verify"]).exits(0);
}

fn told(done: &Done, number: usize) -> String {
    done.results()[number].clone()
}

#[test]
fn a_job_runs_beside_the_calls_and_is_read_and_ended_by_the_model() {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let command = format!(
        "printf 'one\\n'; until [ -e go ]; do sleep 0.05; done; printf 'zwei ü\\n'; {}",
        sleeper.command()
    );
    let turns = [
        job(&command),
        output(&json!({"wait_ms": 60_000})),
        bash("touch go; echo meanwhile"),
        output(&json!({"wait_ms": 60_000})),
        output(&json!({"offset": 0})),
        output(&json!({})),
        kill(),
        output(&json!({})),
        kill(),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]).exits(0);
    assert!(!sleeper.lives());
    assert!(told(&done, 0).starts_with("background job `job-1` runs;"), "{}", told(&done, 0));
    assert!(told(&done, 1).starts_with("one\n[bytes 0 to 3 of 4 so far]\n[`job-1` has run for "));
    assert!(told(&done, 2).starts_with("meanwhile"), "the job held up no other call");
    assert!(
        told(&done, 3).starts_with("zwei ü\n[bytes 4 to 11 of 12 so far]"),
        "{}",
        told(&done, 3)
    );
    assert!(told(&done, 4).starts_with("one\nzwei ü\n[bytes 0 to 11 of 12"), "{}", told(&done, 4));
    assert!(told(&done, 5).starts_with("(no new output)\n[`job-1` has run for "));
    assert!(told(&done, 6).contains("ended by job_kill"), "{}", told(&done, 6));
    assert!(
        told(&done, 7).contains("(no more output)\n[`job-1` ended after"),
        "{}",
        told(&done, 7)
    );
    assert_eq!(done.statuses()[8], "failed");
    assert!(told(&done, 8).contains("ended already"), "{}", told(&done, 8));
    let ended = done.events_of("job_ended");
    assert_eq!((ended.len(), &ended[0]["output_bytes"]), (1, &json!(12)));
    assert_eq!(done.events_of("background").len(), 0, "what the model has seen is not told again");
    let outcome = outcome(&rig);
    assert_eq!((&outcome["exit"]["how"], &outcome["stdout_bytes"]), (&json!("killed"), &json!(12)));
    assert!(outcome["enforced"]["landlock_abi"].is_number(), "{outcome}");
    assert_eq!(facts(&rig, "jobStarted")[0]["job"], "job-1");
    assert_eq!(facts(&rig, "jobEnded")[0]["outcome"], "ended by job_kill");
    verifies(&rig);
}

#[test]
fn the_chain_decides_on_a_background_command_as_on_any_other() {
    let rig = Rig::new();
    let policy = rig.policy(
        "[[command.rule]]\nid = \"no-touch\"\ndecision = \"deny\"\nreason = \"no\"\n\
         program = \"touch\"\n",
    );
    let both = |command: &str| {
        let turns = [bash(command), job(command), answer("done")];
        rig.play(&turns, &["--policy", &policy])
    };
    let done = both("env touch made").exits(10);
    let denials = done.result()["denials"].as_array().unwrap().clone();
    assert_eq!(denials.len(), 2, "{denials:?}");
    for key in ["stage", "code", "rule", "place", "reason"] {
        assert_eq!(denials[0][key], denials[1][key], "{key}");
    }
    assert_eq!(done.statuses(), ["denied", "denied"]);
    assert!(!rig.has("made") && facts(&rig, "jobStarted").is_empty());
    both("sleep 2").exits(0);
    assert_eq!(facts(&rig, "jobStarted").len(), 1, "control: another command becomes a job");
}

#[test]
fn a_job_is_confined_like_a_call() {
    let rig = Rig::new();
    let secret = rig.beside("secret", "hidden words\n");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "hidden words\n", "control: it can be read");
    let outside = rig.root().join("outside");
    let command =
        format!("cat {secret}; echo x > {}; echo inside > made; echo end", outside.display());
    let turns = [
        job(&command),
        output(&json!({"wait_ms": 60_000})),
        bash("sleep 0.2"),
        // Waits for nothing but the end.
        output(&json!({"offset": 1_000_000, "wait_ms": 60_000})),
        output(&json!({"offset": 0})),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]);
    let said = done.results().join("\n");
    assert!(said.contains("end\n") && !said.contains("hidden words"), "{said}\n{}", done.stderr);
    assert!(!outside.exists() && rig.text("made") == "inside\n");
    let foreground = |record: &&Value| record["arguments"].to_string().contains("sleep 0.2");
    let decisions = rig.records_of("decision");
    let foreground = &decisions.iter().find(foreground).unwrap()["call"];
    let outcomes = rig.records_of("outcome");
    let foreground = outcomes.iter().find(|record| record["call"] == *foreground).unwrap();
    assert_eq!(foreground["enforced"], outcome(&rig)["enforced"], "the same layers");
}

#[test]
fn an_end_that_the_model_has_not_seen_is_told_once() {
    let rig = Rig::new();
    let turns = [
        job("echo some; exit 3"),
        bash(&format!("sleep {}", ENDS_WITHIN_MS / 1_000)),
        json!({"text": "not yet", "delay_ms": 0}),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]).exits(0);
    let message = injected(&rig);
    assert!(
        message.contains("[Background job \"echo some; exit 3\" (job-1) exit code 3]"),
        "{message}"
    );
    assert!(message.contains("5 bytes of its output are unread"), "{message}");
    assert!(!message.contains("\nsome"), "what it printed is a tool's output: {message}");
    assert_eq!(done.events_of("background").len(), 1);
    assert_eq!(done.result()["answer"], "not yet");
}

#[test]
fn a_text_answer_goes_on_when_a_job_has_ended_meanwhile() {
    let rig = Rig::new();
    let turns = [
        job(ENDS_MEANWHILE),
        json!({"text": "early", "delay_ms": ENDS_WITHIN_MS}),
        json!({"text": "last", "expect": [format!("[Background job \"{ENDS_MEANWHILE}\" (job-1) exit code 0]")]}),
    ];
    let done = rig.play(&turns, &[]).exits(0);
    assert_eq!(done.result()["answer"], "last");
}

#[test]
fn how_often_ends_of_jobs_keep_a_run_going_can_be_told() {
    let rig = Rig::new();
    let turns =
        [job(ENDS_MEANWHILE), json!({"text": "early", "delay_ms": ENDS_WITHIN_MS}), answer("last")];
    for (rounds, said) in [("0", "early"), ("1", "last")] {
        let done = rig.play(&turns, &["--max-background-rounds", rounds]).exits(0);
        assert_eq!(done.result()["answer"], said, "{rounds}");
        assert_eq!(facts(&rig, "jobEnded").len(), 1, "the end is recorded in any case");
    }
}

#[test]
fn jobs_end_with_the_run() {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    // It also tries to outlive its shell.
    let command =
        format!("(trap '' TERM HUP; setsid {}) & {}", sleeper.command(), sleeper.command());
    let done = rig.play(&[job(&command), answer("done")], &[]).exits(0);
    assert!(!sleeper.lives());
    assert_eq!(done.result()["answer"], "done", "a job that runs holds no answer up");
    assert_eq!(outcome(&rig)["exit"]["how"], "cancelled");
    let kinds: Vec<_> = rig.records().iter().map(|record| record["kind"].clone()).collect();
    assert_eq!(kinds.last().unwrap(), "end", "the outcome stands before the end: {kinds:?}");
    assert_eq!(facts(&rig, "jobEnded").len(), 1);
    verifies(&rig);
}

#[test]
fn a_stopped_run_waits_for_no_look_and_ends_its_jobs() {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let turns = [job(&sleeper.command()), output(&json!({"wait_ms": 60_000})), answer("never")];
    let mut live = Live::start(rig.run_command(&rig.script(&turns), &[]));
    assert!(live.until(|| sleeper.lives()));
    std::thread::sleep(Duration::from_millis(300));
    live.signal(Signal::INT);
    let stopped = Instant::now();
    live.end().exits(130);
    assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}", stopped.elapsed());
    assert!(!sleeper.lives());
    verifies(&rig);
}

#[test]
fn a_killed_process_leaves_no_job_and_the_model_is_told() {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let turns = [
        job(&format!("echo begun >> marks; {}", sleeper.command())),
        json!({"text": "never", "delay_ms": 100_000}),
    ];
    let mut live = Live::start(rig.run_command(&rig.script(&turns), &[]));
    let begun = || rig.text("marks") == "begun\n" && !facts(&rig, "jobStarted").is_empty();
    assert!(live.until(|| sleeper.lives() && !rig.sessions().is_empty() && begun()));
    live.signal(Signal::KILL);
    assert_eq!(live.end().signal(), Some(9));
    assert!(sleeper.is_gone_soon(), "the job outlives the supervisor");
    let turns = [
        calls(&[("job_output", json!({"job": "job-1"})), ("job_kill", json!({"job": "job-1"}))]),
        job("sleep 60"),
        answer("done"),
    ];
    rig.script(&turns);
    let id = rig.session();
    let done = rig.stoplog(&["resume", &id, "--headless", "--output", "stream-json"]).exits(0);
    let message = injected(&rig);
    assert!(message.contains("[Background job \"echo begun >> marks; sleep"), "{message}");
    assert!(message.contains("(job-1) is gone]\nIt ended with the process"), "{message}");
    for result in &done.results()[..2] {
        assert!(result.contains("`job-1` is gone"), "{result}");
    }
    assert!(told(&done, 2).contains("`job-2`"), "a name is never used twice");
    assert_eq!(rig.text("marks"), "begun\n", "nothing is begun anew by itself");
    let ends = facts(&rig, "jobEnded");
    assert_eq!((ends.len(), &ends[0]["outcome"]), (2, &json!("is gone")));
    assert_eq!(outcome(&rig)["exit"]["how"], "interrupted");
    verifies(&rig);
}

/// The same on a machine that refuses namespaces: no process of a job is hidden from its own, so that
/// each has to be found and ended.
#[test]
fn without_namespaces_a_job_is_read_and_no_process_of_it_outlives_the_run() {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let policy = rig.policy(ACCEPTS);
    let command = format!(
        "echo begun; (trap '' TERM HUP; setsid {}) & {}",
        sleeper.command(),
        sleeper.command()
    );
    let kept = [job(&command), output(&json!({"wait_ms": 60_000})), answer("done")];
    let ended = [job(&command), output(&json!({"wait_ms": 60_000})), kill(), answer("done")];
    for (turns, how) in [(&kept[..], "cancelled"), (&ended[..], "killed")] {
        let done = play_refused(&rig, turns, &["--policy", &policy]).exits(0);
        assert!(
            told(&done, 1).starts_with("begun\n[bytes 0 to 5 of 6 so far]"),
            "{}",
            told(&done, 1)
        );
        assert!(!sleeper.lives(), "{how}");
        let outcome = outcome(&rig);
        assert_eq!(outcome["exit"]["how"], how, "{outcome}");
        assert_eq!(outcome["enforced"]["namespaces"], json!([]), "the situation: {outcome}");
        verifies(&rig);
    }
}

#[test]
fn without_namespaces_a_killed_process_leaves_no_job() {
    let rig = Rig::new();
    let sleeper = Sleeper::new(&rig);
    let policy = rig.policy(ACCEPTS);
    let command = format!("(setsid {}) & {}", sleeper.command(), sleeper.command());
    let script = rig.script(&[job(&command), json!({"text": "never", "delay_ms": 100_000})]);
    let arguments = rig.arguments(&script, &["--policy", &policy]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut live = Live::start(refused(&rig, &arguments));
    assert!(live.until(|| sleeper.lives() && !facts(&rig, "jobStarted").is_empty()));
    live.signal(Signal::KILL);
    assert_eq!(live.end().signal(), Some(9));
    assert!(sleeper.is_gone_soon(), "the job outlives the supervisor");
}

#[test]
fn jobs_are_limited_in_number_and_time() {
    let rig = Rig::new();
    let run = |limits: &str, turns: &[Value]| {
        let policy = rig.policy(&format!("[limits]\n{limits}\n"));
        rig.play(turns, &["--policy", &policy])
    };
    let done =
        run("jobs = 1", &[job("sleep 60"), job("true"), kill(), job("sleep 60"), answer("done")]);
    assert_eq!(done.statuses(), ["ok", "failed", "ok", "ok"]);
    assert!(told(&done, 1).contains("no more may; end one with job_kill"), "{}", told(&done, 1));
    let done = run("jobs = 0", &[job("touch made"), answer("done")]);
    assert!(told(&done, 0).contains("`limits.jobs`") && !rig.has("made"));
    // Without a word of the policy: eight.
    let nine: Vec<_> =
        (0..9).map(|_| ("bash", json!({"command": "sleep 60", "background": true}))).collect();
    let done = rig.play(&[calls(&nine), answer("done")], &[]).exits(0);
    assert_eq!(done.statuses()[7..], ["ok", "failed"]);
    // The time of a call holds for a job; what the model asks for does, too.
    for (limits, asked) in [("wall_ms = 400", json!({})), ("jobs = 1", json!({"timeout_ms": 400}))]
    {
        let mut arguments = json!({"command": "echo begun; sleep 60", "background": true});
        arguments.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
        let look = output(&json!({"offset": 6, "wait_ms": 60_000}));
        let done = run(limits, &[call("bash", &arguments), look, answer("done")]).exits(0);
        assert!(told(&done, 1).contains("its time was over"), "{}", told(&done, 1));
        assert!(done.took < Duration::from_secs(20));
        assert_eq!(outcome(&rig)["limits_hit"], json!(["wall"]));
    }
}

#[test]
fn a_jobs_output_is_bounded_and_what_is_missing_is_named() {
    let rig = Rig::new();
    let turns = [
        job("seq 1 100000; echo last"),
        output(&json!({"offset": 600_000, "wait_ms": 60_000})),
        output(&json!({"offset": 100_000})),
        output(&json!({"offset": 0})),
        output(&json!({})),
        bash("cd /tmp/stoplog-output; first=$(ls | head -n 1); tail -n 1 $first; wc -c < $first"),
        answer("done"),
    ];
    let done = rig.play(&turns, &[]).exits(0);
    // 588,895 bytes of numbers and five more.
    let gap = told(&done, 2);
    assert!(gap.contains("[bytes 100000 to 563899 were not kept; `/tmp/stoplog-output/"), "{gap}");
    assert!(gap.contains("\n100000\nlast\n[") && gap.contains("of 588900 so far]"), "{gap}");
    assert!(gap.len() < 50_000);
    let head = told(&done, 3);
    assert!(
        head.starts_with("1\n2\n3\n") && head.contains("[bytes 0 to 24999 of 588900"),
        "{head}"
    );
    let next = told(&done, 4);
    assert!(next.contains("[bytes 25000 to 563899 were not kept"), "{next}");
    assert!(told(&done, 5).starts_with("last\n588900\n"), "{}", told(&done, 5));
}

#[test]
fn an_endless_output_ends_the_job() {
    let rig = Rig::new();
    let look = output(&json!({"offset": 9_000_000_000_000_000_u64, "wait_ms": 60_000}));
    let done = rig.play(&[job("yes"), look, answer("done")], &[]).exits(0);
    assert!(told(&done, 1).contains("too much output"), "{}", told(&done, 1));
    assert_eq!(outcome(&rig)["limits_hit"], json!(["output"]));
}

#[test]
fn only_jobs_of_the_session_can_be_named_and_only_offered_tools_name_them() {
    let rig = Rig::new();
    let other =
        calls(&[("job_output", json!({"job": "1"})), ("job_kill", json!({"job": "job-2"}))]);
    let done = rig.play(&[job("sleep 60"), other, answer("done")], &[]).exits(0);
    for result in &done.results()[1..] {
        assert!(result.contains("those of this session: job-1 (running)"), "{result}");
    }
    let turns = [job("sleep 60"), kill(), json!({"text": "done", "expect_tools": ["bash"]})];
    let done = rig.play(&turns, &["--tools", "bash"]);
    assert!(told(&done, 1).contains("`job_kill` is not available"), "{}", told(&done, 1));
    let role = rig.policy("[roles.looker]\ntools = [\"bash\", \"job_output\"]\n");
    let done = rig
        .play(&[job("sleep 60"), kill(), answer("done")], &["--policy", &role, "--role", "looker"]);
    assert_eq!(done.statuses(), ["ok", "denied"]);
    assert_eq!(done.result()["denials"][0]["stage"], "role");
}

#[test]
fn the_kept_output_of_a_short_job_leaves_no_file() {
    let rig = Rig::new();
    // Behind the output only the end is left to wait for.
    let end = output(&json!({"offset": 6, "wait_ms": 60_000}));
    let turns = [job("echo short"), end, answer("done")];
    rig.play(&turns, &[]).exits(0);
    let place = rig.sessions().pop().unwrap().join("tmp/stoplog-output");
    let left = |place: &Path| fs::read_dir(place).map_or(0, Iterator::count);
    assert_eq!(left(&place), 0);
}
