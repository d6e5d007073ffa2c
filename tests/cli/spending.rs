//! Money: what model calls cost by the provider table's prices, and a budget of it.

use super::rig::{Done, Live, Rig, answer};
use super::scripted_http::{Reply, Server, Turn};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// A place whose configuration knows a provider at `server`. A turn of it uses what
/// [`Turn::chat_events`] says.
fn priced(rig: &Rig, server: &Server, price: &str) {
    let place = rig.home().join(".config/stoplog");
    std::fs::create_dir_all(&place).unwrap();
    let text = format!(
        "[providers.team]\nadapter = \"chat\"\nbase_url = \"{}\"\n[providers.team.models.m]\n{price}\n",
        server.base_url()
    );
    std::fs::write(place.join("providers.toml"), text).unwrap();
}

/// One dollar for each token of input or output.
const DEAR: &str = "price = { input = 1000000.0, output = 1000000.0 }";

fn calls(count: usize) -> Vec<Reply> {
    let turn = |number: usize| {
        let command = format!("{{\"command\":\"echo {number}\"}}");
        Reply::chat_stream(&Turn::default().call(&format!("c{number}"), "bash", &command))
    };
    (0..count).map(turn).collect()
}

/// A run against a server that would go on for nine turns, and how many requests it got.
fn spend(rig: &Rig, price: &str, more: &[&str]) -> (Done, usize) {
    let server = Server::start(calls(9));
    priced(rig, &server, price);
    let done = rig.run("team/m", more);
    (done, server.requests().len())
}

/// What one turn costs with [`DEAR`], in dollars.
fn turn_cost(rig: &Rig) -> u64 {
    let (done, _) = spend(rig, DEAR, &["--max-iterations", "1"]);
    let result = done.exits(11).result();
    let (input, output) = (&result["usage"]["input"], &result["usage"]["output"]);
    let tokens = input.as_u64().unwrap() + output.as_u64().unwrap();
    assert!(tokens > 1, "{result}");
    assert_eq!(format!("{:.0}", result["cost_dollars"].as_f64().unwrap()), tokens.to_string());
    tokens
}

#[test]
fn a_cost_budget_ends_the_run_with_14_before_the_next_request() {
    let rig = Rig::new();
    let one = turn_cost(&rig);
    for (limit, requests) in [(1, 1), (one, 1), (one + 1, 2), (3 * one, 3)] {
        let policy = rig.policy(&format!("[limits]\ncost_dollars = {limit}\n"));
        let (by_policy, asked) = spend(&rig, DEAR, &["--policy", &policy]);
        assert_eq!(asked, requests, "limit {limit} of {one} a turn");
        let result = by_policy.exits(14).result();
        assert_eq!(result["finish_reason"], "budget");
        let error = result["error"].as_str().unwrap();
        assert!(error.contains(&format!("cost budget of ${limit}.00 is spent")), "{error}");
        let (by_flag, asked) = spend(&rig, DEAR, &["--max-cost", &limit.to_string()]);
        assert_eq!((by_flag.code(), asked), (Some(14), requests));
        // The narrower counts.
        let wide = (100 * one).to_string();
        let (both, asked) = spend(&rig, DEAR, &["--policy", &policy, "--max-cost", &wide]);
        assert_eq!((both.code(), asked), (Some(14), requests));
    }
    let end = rig.records_of("end").pop().unwrap();
    assert_eq!(end["cost_millionths"], json!(3 * one * 1_000_000));
    let finals: Vec<Value> = rig.facts().iter().map(|fact| fact["extension"].clone()).collect();
    let last = finals.iter().rfind(|fact| fact["type"] == "finalStatistics").unwrap();
    assert_eq!(last["costMillionths"], end["cost_millionths"]);
    let (control, asked) = spend(&rig, DEAR, &["--max-cost", &(100 * one).to_string()]);
    assert_eq!((control.code(), asked), (Some(12), 12), "nothing but the server stops it");
}

#[test]
fn a_cost_that_cannot_be_counted_is_refused_before_anything_begins() {
    let rig = Rig::new();
    let policy = rig.policy("[limits]\ncost_dollars = 0.5\n");
    for more in [["--policy", policy.as_str()], ["--max-cost", "0.5"]] {
        let (done, asked) = spend(&rig, "context_window = 1000", &more);
        assert_eq!(asked, 0);
        drop(done.exits(2).says(&["no price is known for", "providers.toml"]));
    }
    rig.assert_nothing_began();
    // A script costs nothing.
    rig.play(&[answer("done")], &["--max-cost", "0.5"]).exits(0);
}

#[test]
fn a_reviewing_models_cost_counts_and_it_must_have_a_price() {
    let rig = Rig::new();
    let one = turn_cost(&rig);
    let policy = rig.policy("[guardian]\nenabled = true\nmodel = \"team/reviewer\"\n");
    let price = format!("{DEAR}\n[providers.team.models.reviewer]\n{DEAR}");
    let review = r#"{"risk":"low","verdict":"pass","reason":"harmless"}"#;
    let review = || Reply::chat_stream(&Turn::text(review));
    let run = |price: &str| {
        let replies = calls(2).into_iter().flat_map(|turn| [turn, review()]).collect();
        let server = Server::start(replies);
        priced(&rig, &server, price);
        let limit = (2 * one).to_string();
        let done = rig.run("team/m", &["--policy", &policy, "--max-cost", &limit]);
        (done, server.requests().len())
    };
    let (done, asked) = run(&price);
    assert_eq!((done.code(), asked), (Some(14), 2), "{}", done.stdout);
    let result = done.result();
    let input = result["usage"]["input"].as_f64().unwrap();
    assert!(result["cost_dollars"].as_f64().unwrap() > input, "more than the agent's own tokens");
    let (done, asked) = run(DEAR);
    assert_eq!((done.code(), asked), (Some(2), 0), "{}", done.stdout);
}

#[test]
fn a_run_that_goes_on_after_a_crash_counts_what_it_had_spent() {
    let rig = Rig::new();
    let one = turn_cost(&rig);
    let limit = (2 * one).to_string();
    let mut replies = calls(1);
    replies.push(Reply::open_stream().then_pause(Duration::from_secs(60)));
    let server = Server::start(replies);
    priced(&rig, &server, DEAR);
    let mut live = Live::start(rig.run_command("team/m", &["--max-cost", &limit]));
    assert!(live.until(|| server.requests().len() == 2));
    live.signal(Signal::KILL);
    drop(live.end());
    let id = rig.session();
    let resume = |more: &[&str]| {
        let server = Server::start(calls(9));
        priced(&rig, &server, DEAR);
        let fixed = ["resume", &id, "--headless", "--output", "stream-json", "--max-cost", &limit];
        let done = rig.stoplog(&[&fixed[..], more].concat());
        (done, server.requests().len())
    };
    let (done, asked) = resume(&[]);
    assert_eq!((done.code(), asked), (Some(14), 1), "one of two turns was spent before");
    let (done, asked) = resume(&["a further task"]);
    assert_eq!((done.code(), asked), (Some(14), 2), "a further task is a further run");
}

#[test]
fn wrong_amounts_are_told() {
    let rig = Rig::new();
    for amount in ["-1", "free", "nan", "inf", "1e12", ""] {
        let flag = format!("--max-cost={amount}");
        drop(rig.play(&[answer("x")], &[&flag]).exits(2).says(&["amount of dollars"]));
    }
    for amount in ["-1", "\"2\"", "nan", "1e12"] {
        let policy = rig.policy(&format!("[limits]\ncost_dollars = {amount}\n"));
        let done = rig.play(&[answer("x")], &["--policy", &policy]).exits(21);
        assert!(done.stderr.contains("policy.toml:4:16"), "{}", done.stderr);
    }
}
