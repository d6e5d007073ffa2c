//! The death of the live process: it is killed before and after every line of its journal, and the
//! session that goes on repeats no effect and loses none without a record.

use super::rig::{Done, Live, Rig, answer, calls};
use super::sleeper::Sleeper;
use super::traced::{Dies, Moment, hold_at, kill_at, lines};
use serde_json::{Value, json};

/// The turns of the run that is killed: a background job that lives until the run's end, a look at it,
/// two commands that leave a mark each time they run, and a file. The first command gives the job the
/// time to leave its mark, if there is a job.
fn turns(sleeper: &Sleeper) -> Vec<Value> {
    let job = format!("echo job >> begun; {}", sleeper.command());
    let first = "n=0; until [ -e begun ] || [ $n = 40 ]; do sleep 0.05; n=$((n + 1)); done; \
                 echo first >> marks";
    vec![
        json!({"calls": [{"id": "job", "name": "bash",
            "arguments": {"command": job, "background": true}}]}),
        json!({"calls": [{"id": "first", "name": "bash", "arguments": {"command": first}}]}),
        json!({"calls": [{"id": "look", "name": "job_output", "arguments": {"job": "job-1"}}]}),
        json!({"calls": [
            {"id": "second", "name": "write", "arguments": {"path": "made", "content": "x"}},
            {"id": "third", "name": "bash", "arguments": {"command": "echo third >> marks"}}]}),
        answer("all done"),
    ]
}

fn arguments(rig: &Rig) -> Vec<String> {
    rig.arguments(&rig.script(&turns(&Sleeper::new(rig))), &[])
}

/// Lines that the journal of an undisturbed run has.
fn lines_of_a_whole_run() -> usize {
    let rig = Rig::new();
    rig.play(&turns(&Sleeper::new(&rig)), &[]).exits(0);
    lines(&rig)
}

fn resume(rig: &Rig, more: &[&str]) -> Done {
    let id = rig.session();
    let fixed = ["resume", &id, "--headless", "--output", "stream-json"];
    rig.stoplog(&[&fixed[..], more].concat())
}

/// The results in the journal that answer `call`.
pub(crate) fn results_of(rig: &Rig, call: &str) -> Vec<Value> {
    let entries = rig.facts().into_iter().map(|fact| fact["entry"].clone());
    entries
        .filter(|entry| entry["message"]["role"] == "tool")
        .filter(|entry| entry["message"]["tool_call_id"] == call)
        .collect()
}

fn started(rig: &Rig, call: &str) -> bool {
    let facts = rig.facts();
    let mut records = facts.iter().map(|fact| &fact["record"]);
    records.any(|record| record["type"] == "toolStarted" && record["toolCallId"] == call)
}

fn answers(rig: &Rig) -> usize {
    let facts = rig.facts().into_iter();
    facts.filter(|fact| fact["entry"]["message"]["role"] == "assistant").count()
}

/// How often the effect of `call` has happened; none if it leaves nothing to see.
fn effects(rig: &Rig, call: &str) -> Option<usize> {
    match call {
        // It takes effect some time after its call has ended.
        "job" | "look" => None,
        "second" => Some(usize::from(rig.has("made"))),
        _ => Some(rig.text("marks").lines().filter(|line| *line == call).count()),
    }
}

/// How many background jobs the journal knows to have begun, and to have ended.
fn jobs(rig: &Rig) -> (usize, usize) {
    let count = |kind: &str| {
        let facts = rig.facts().into_iter();
        facts.filter(|fact| fact["extension"]["type"] == kind).count()
    };
    (count("jobStarted"), count("jobEnded"))
}

fn leaves_something(call: &str) -> bool {
    !["job", "look"].contains(&call)
}

/// What stood at the moment of the death.
struct Death {
    /// The call that had started and had no result, and whether it had taken effect.
    in_flight: Option<(&'static str, Option<usize>)>,
    begun: bool,
    /// Whether a job was running, as far as the journal knows.
    job: bool,
    answered: usize,
}

const CALLS: [&str; 5] = ["job", "first", "look", "second", "third"];

fn look_at(rig: &Rig) -> Death {
    let open = |call: &&str| started(rig, call) && results_of(rig, call).is_empty();
    let open: Vec<_> = CALLS.into_iter().filter(open).collect();
    assert!(open.len() <= 1, "no two of these run at once");
    let in_flight = open.first().map(|call| (*call, effects(rig, call)));
    for call in CALLS {
        let done = usize::from(!results_of(rig, call).is_empty());
        let may = in_flight.is_some_and(|(open, _)| open == call);
        let seen = effects(rig, call);
        assert!(may || seen.is_none_or(|seen| seen == done), "{call}: effect without intent");
    }
    let (began, ended) = jobs(rig);
    assert_eq!(began, results_of(rig, "job").len(), "a job's start stands with its call's result");
    assert!(started(rig, "job") || !rig.has("begun"), "a job without intent");
    let job = began > ended;
    Death { in_flight, begun: rig.facts().len() > 1, job, answered: answers(rig) }
}

/// Goes on after a death: each call ends with one result and one effect, but for the one in flight,
/// which is not repeated and of which the model is told that nobody knows.
fn assert_recovers(rig: &Rig, death: &Death, moment: Moment) {
    let sleeper = Sleeper::new(rig);
    assert!(sleeper.is_gone_soon(), "the job outlives the process: {moment:?}");
    let mut left = turns(&sleeper).split_off(death.answered);
    let is_at_end = left.is_empty();
    if is_at_end {
        left.push(answer("all done"));
    }
    if death.in_flight.is_some() {
        left[0]["expect"] = json!(["interrupted", "unknown"]);
    }
    rig.script(&left);
    let more: &[&str] = if is_at_end || !death.begun { &["a further task"] } else { &[] };
    let done = resume(rig, more).exits(0);
    assert_eq!(done.result()["answer"], "all done", "{moment:?}");
    let (began, ended) = jobs(rig);
    assert_eq!(began, ended, "each job has one end: {moment:?}");
    let facts = rig.facts().into_iter();
    let told = facts.filter(|fact| fact.to_string().contains("(job-1) is gone]")).count();
    assert_eq!(told, usize::from(death.job), "the model is told once: {moment:?}");
    assert!(rig.text("begun").lines().count() <= 1, "a job was begun again: {moment:?}");
    for call in CALLS {
        let results = results_of(rig, call);
        assert_eq!(results.len(), 1, "{call} has one result: {moment:?}");
        let reason = &results[0]["result"]["reason"];
        match death.in_flight.filter(|(open, _)| *open == call) {
            Some((_, effect)) => {
                assert_eq!(reason, "interrupted", "{call}: {moment:?}");
                assert_eq!(effects(rig, call), effect, "{call}: {moment:?}");
            }
            None => {
                assert_eq!(reason, &Value::Null, "{call}: {moment:?}");
                assert!(effects(rig, call).is_none_or(|seen| seen == 1), "{call}: {moment:?}");
            }
        }
    }
    rig.stoplog(&["audit", "verify"]).exits(0);
    let journal = rig.journal();
    rig.stoplog(&["session", "reduce", journal.to_str().unwrap(), "--json"]).exits(0);
}

/// Kills a run at each of `moments`, in a place of its own, and gives what was in flight.
fn kill_at_each(
    dies: Dies,
    moments: impl Iterator<Item = Moment>,
) -> Vec<(&'static str, Option<usize>)> {
    let (mut in_flight, mut with_job) = (Vec::new(), 0);
    for moment in moments {
        let rig = Rig::new();
        let held = hold_at(&rig, &arguments(&rig), moment, |_| ());
        let held = held.unwrap_or_else(|| panic!("the run ended before {moment:?}"));
        let whole = match moment {
            Moment::After(line) => line,
            Moment::Before(line) => line - 1,
        };
        held.ends_by(dies);
        assert!(lines(&rig) == whole || dies == Dies::Machine && lines(&rig) < whole, "{moment:?}");
        let death = look_at(&rig);
        in_flight.extend(death.in_flight);
        with_job += usize::from(death.job);
        assert_recovers(&rig, &death, moment);
    }
    assert!(with_job > 3, "a job was running at many of them");
    in_flight
}

#[test]
fn a18_a22_a_kill_after_every_line_of_the_journal_repeats_and_loses_nothing() {
    let in_flight = kill_at_each(Dies::Process, (2..=lines_of_a_whole_run()).map(Moment::After));
    // The intent is on the disk and the effect has not begun.
    assert_eq!(in_flight, CALLS.map(|call| (call, leaves_something(call).then_some(0))));
}

#[test]
fn a18_a_session_that_died_before_the_users_words_says_that_nothing_is_lost() {
    let rig = Rig::new();
    assert!(kill_at(&rig, &arguments(&rig), Moment::After(1)));
    assert_eq!((lines(&rig), rig.has("marks")), (1, false));
    resume(&rig, &["a task"]).exits(23).says(&["before anything was asked", "new session"]);
    rig.stoplog(&["session", "list"]).exits(0);
    rig.play(&turns(&Sleeper::new(&rig)), &[]).exits(0);
}

#[test]
fn a18_a22_a_kill_before_every_line_of_the_journal_repeats_and_loses_nothing() {
    let in_flight = kill_at_each(Dies::Process, (2..=lines_of_a_whole_run()).map(Moment::Before));
    // The effect has happened and its result is on no disk.
    assert_eq!(in_flight, CALLS.map(|call| (call, leaves_something(call).then_some(1))));
}

#[test]
fn a18_a22_a_power_failure_at_every_line_of_the_journal_repeats_and_loses_nothing() {
    // Not every line has a flush of its own. What one that is lost leaves is no other than a death a little
    // earlier: nothing had acted on it.
    let lines = 3..=lines_of_a_whole_run();
    let moments = lines.flat_map(|line| [Moment::Before(line), Moment::After(line)]);
    let in_flight = kill_at_each(Dies::Machine, moments);
    for call in CALLS.into_iter().filter(|call| leaves_something(call)) {
        assert!(in_flight.contains(&(call, Some(1))), "{call}: {in_flight:?}");
    }
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
    let told = "Call 1 of 2, `bash`, had started; whether it took effect is unknown, and it is not \
                repeated.";
    let resumed = done.events_of("resumed");
    assert_eq!(resumed[0]["in_flight"], json!([told, "Call 2 of 2, `write`, had not started."]));
    assert_eq!(done.result()["answer"], "I will look first.");
    assert_eq!(rig.text("marks"), "x\n", "it was not repeated");
    assert!(rig.has("second"), "the call that had not started goes on");
}
