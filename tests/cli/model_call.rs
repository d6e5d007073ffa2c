//! The model call: what is in a request, what is retried, what counts as an answer. The requests are
//! read on a scripted server.

use super::rig::{Done, Live, Rig, answer, bash, call};
use super::scripted_http::{Reply, Request, Server, Turn};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// A run against a server, and what the server was asked.
fn ask(rig: &Rig, replies: Vec<Reply>, more: &[&str]) -> (Done, Vec<Request>) {
    let server = Server::start(replies);
    let url = server.base_url();
    let done = rig.run("openai/scripted", &[&["--base-url", url.as_str()], more].concat());
    (done, server.requests())
}

fn stream(turn: Turn) -> Reply {
    Reply::chat_stream(&turn)
}

fn tool_names(request: &Request) -> Vec<&str> {
    let tools = request.body["tools"].as_array();
    tools.into_iter().flatten().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

fn roles(request: &Request) -> Vec<&str> {
    let messages = request.body["messages"].as_array().unwrap();
    messages.iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[test]
fn a01_a02_a09_a10_every_request_carries_the_whole_conversation_grown_by_the_last_turn() {
    let rig = Rig::new();
    rig.file("a.txt", "alpha");
    let replies = vec![
        stream(Turn::text("I look.").call("c1", "read", r#"{"path":"a.txt"}"#)),
        stream(Turn::text("done")),
    ];
    let (done, requests) = ask(&rig, replies, &[]);
    assert_eq!(done.exits(0).result()["answer"], "done");
    assert_eq!(roles(&requests[0]), ["system", "user"]);
    // B19
    assert_eq!(roles(&requests[1]), ["system", "user", "assistant", "tool"]);
    let (first, second) = (&requests[0].body["messages"], &requests[1].body["messages"]);
    assert_eq!(first[0], second[0], "the system prompt does not change");
    assert_eq!(first[1], second[1]);
    assert_eq!(second[2]["tool_calls"][0]["id"], "c1");
    assert_eq!(second[2]["content"], "I look.");
    assert_eq!(
        (&second[3]["tool_call_id"], &second[3]["content"]),
        (&json!("c1"), &json!("alpha"))
    );
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"], "nor do the tools");
}

#[test]
fn a24_a25_only_enabled_tools_are_in_the_request_and_no_other_is_dispatched() {
    // A26: what is tested is the dispatcher, whatever the model asks for.
    let rig = Rig::new();
    let turns = |rig: &Rig, more: &[&str]| {
        let replies = vec![
            stream(Turn::default().call("c1", "write", r#"{"path":"made","content":"x"}"#)),
            stream(Turn::text("done")),
        ];
        ask(rig, replies, more)
    };
    let (done, requests) = turns(&rig, &["--tools", "read"]);
    assert_eq!(done.exits(0).statuses(), ["rejected"]);
    assert_eq!(tool_names(&requests[0]), ["read"]);
    let told = requests[1].body["messages"][3]["content"].as_str().unwrap();
    assert!(told.contains("not executed") || told.contains("not available"), "{told}");
    assert!(!rig.has("made"));
    assert!(rig.records_of("decision").is_empty());
    let (done, requests) = turns(&rig, &["--tools", "write"]);
    assert_eq!(done.exits(0).statuses(), ["ok"]);
    assert_eq!(tool_names(&requests[0]), ["write"], "the request carries no read schema");
    assert!(rig.has("made"));
    let (_, requests) = turns(&rig, &[]);
    let all = ["bash", "edit", "glob", "grep", "job_kill", "job_output", "list", "read", "write"];
    assert_eq!(tool_names(&requests[0]), all, "sorted");
}

#[test]
fn b14_tools_that_the_role_lacks_are_not_offered_and_a_role_without_tools_has_none() {
    let rig = Rig::new();
    let policy = rig.policy(
        "[roles]\ndefault = \"guest\"\n[roles.guest]\ntools = []\n[roles.reader]\n\
         tools = [\"read\", \"list\"]\n",
    );
    let turns = vec![stream(Turn::text("hello"))];
    let (done, requests) = ask(&rig, turns.clone(), &["--policy", &policy]);
    assert!(done.exits(0).events_of("init")[0]["tools"].as_array().unwrap().is_empty());
    assert!(requests[0].body["tools"].as_array().is_none_or(Vec::is_empty));
    let (_, requests) = ask(&rig, turns, &["--policy", &policy, "--role", "reader"]);
    assert_eq!(tool_names(&requests[0]), ["list", "read"]);
}

#[test]
fn b22_the_request_carries_the_documented_constants_unless_told_otherwise() {
    let rig = Rig::new();
    let (_, requests) = ask(&rig, vec![stream(Turn::text("x"))], &[]);
    let body = &requests[0].body;
    assert_eq!(body["temperature"], 0.1);
    let tokens = |body: &Value| {
        body["max_tokens"].as_u64().or_else(|| body["max_completion_tokens"].as_u64())
    };
    assert_eq!(tokens(body), Some(8_192));
    assert_eq!((&body["stream"], &body["model"]), (&json!(true), &json!("scripted")));
    let more = ["--temperature", "0.7", "--max-tokens", "99", "--no-stream"];
    let (done, requests) = ask(&rig, vec![Reply::chat(&Turn::text("x"))], &more);
    assert_eq!(done.exits(0).result()["answer"], "x");
    let body = &requests[0].body;
    assert_eq!((&body["temperature"], tokens(body)), (&json!(0.7), Some(99)));
    assert_ne!(body["stream"], true);
}

#[test]
fn b30_the_thinking_level_goes_into_the_request() {
    let rig = Rig::new();
    let body = |level: &str| {
        let server = Server::start(vec![stream(Turn::text("x"))]);
        let url = server.base_url();
        let more = ["--base-url", &url, "--thinking", level];
        drop(rig.run("openai/o3-mini", &more).exits(0));
        server.requests()[0].body.to_string()
    };
    assert!(body("high").contains("high") && !body("none").contains("effort"));
}

#[test]
fn b06_two_retries_after_one_and_two_seconds() {
    let rig = Rig::new();
    let error = Reply::status(503, &[], &json!({"error": {"message": "busy"}}));
    let (done, requests) =
        ask(&rig, vec![error.clone(), error.clone(), stream(Turn::text("at last"))], &[]);
    let done = done.exits(0);
    assert_eq!((requests.len(), done.result()["answer"].as_str()), (3, Some("at last")));
    let delays: Vec<u64> =
        done.events_of("retry").iter().map(|retry| retry["delay_ms"].as_u64().unwrap()).collect();
    assert!((1_000..=1_100).contains(&delays[0]) && (2_000..=2_200).contains(&delays[1]));
    assert!(done.took >= Duration::from_secs(3));
    assert_eq!(requests[0].body, requests[2].body, "the same request");
    let (done, requests) = ask(&rig, vec![error.clone(); 4], &[]);
    drop(done.exits(12));
    assert_eq!(requests.len(), 3, "three attempts in all");
    for (more, attempts) in [("0", 1), ("1", 2)] {
        let (done, requests) = ask(&rig, vec![error.clone(); 4], &["--max-retries", more]);
        assert_eq!((done.code(), requests.len()), (Some(12), attempts), "{more}");
    }
}

#[test]
fn b22_how_much_history_a_request_holds_can_be_told() {
    let rig = Rig::new();
    let turn = |word: &str| vec![stream(Turn::text(word))];
    let (done, _) = ask(&rig, turn("first"), &[]);
    drop(done.exits(0));
    for word in ["second", "third"] {
        let server = Server::start(turn(word));
        let (id, url) = (rig.session(), server.base_url());
        let fixed = ["resume", &id, "--headless", "--base-url", &url, word, "--max-history", "3"];
        drop(rig.stoplog(&fixed).exits(0));
        // A user message and its answer are not parted: of five messages three are the last ones.
        let expected: &[&str] = &["system", "user", "assistant", "user"];
        assert_eq!(roles(&server.requests()[0]), expected, "{word}");
    }
}

#[test]
fn b07_an_error_with_content_is_kept_and_not_retried() {
    let rig = Rig::new();
    let half = Reply::stream(&[
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half an answer\"}}]}\n\n",
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
        b"data: [DONE]\n\n",
    ]);
    let (done, requests) = ask(&rig, vec![half, stream(Turn::text("second"))], &[]);
    let result = done.exits(12).result();
    assert_eq!(requests.len(), 1);
    assert_eq!(result["answer"], "half an answer");
    assert_eq!(result["finish_reason"], "error");
}

#[test]
fn b07_what_was_shown_is_not_asked_for_again() {
    let cut = || {
        Reply::open_stream()
            .then_chunk(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n")
            .then_cut()
    };
    let replies = || vec![cut(), stream(Turn::text("second"))];
    let rig = Rig::new();
    let (done, requests) = ask(&rig, replies(), &[]);
    drop(done.exits(12));
    assert_eq!(requests.len(), 1, "a piece of it was on the screen");
    let server = Server::start(replies());
    let (url, work) = (server.base_url(), rig.work());
    let place = ["--workspace", work.to_str().unwrap(), "--base-url", &url, "task"];
    let unshown = ["run", "--headless", "--output", "json", "--model", "openai/x"];
    let done = rig.stoplog(&[&unshown[..], &place[..]].concat()).exits(0);
    assert_eq!(done.json()["answer"], "second");
    assert_eq!(server.requests().len(), 2, "nothing of the first was shown");
}

#[test]
fn b09_a_stop_during_the_wait_sends_no_further_request() {
    let rig = Rig::new();
    let error = Reply::status(503, &[("retry-after", "30")], &json!({}));
    let server = Server::start(vec![error; 3]);
    let url = server.base_url();
    let mut live = Live::start(rig.run_command("openai/x", &["--base-url", &url]));
    assert!(live.until(|| server.requests().len() == 1 && !rig.records_of("retry").is_empty()));
    live.signal(Signal::INT);
    let done = live.end().exits(130);
    assert!(done.took < Duration::from_secs(25), "it waited");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_stop_while_the_model_speaks_ends_the_run_at_once() {
    let rig = Rig::new();
    let slow = Reply::open_stream()
        .then_chunk(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n")
        .then_pause(Duration::from_secs(60));
    let server = Server::start(vec![slow]);
    let url = server.base_url();
    let mut live = Live::start(rig.run_command("openai/x", &["--base-url", &url]));
    assert!(live.until(|| server.requests().len() == 1));
    live.signal(Signal::TERM);
    let done = live.end().exits(143);
    assert!(done.took < Duration::from_secs(30));
    assert_eq!(done.result()["finish_reason"], "interrupted");
}

#[test]
fn b10_b11_g18_think_blocks_are_kept_and_never_shown_as_answer() {
    let rig = Rig::new();
    let replies = vec![
        stream(Turn::text("<think>a plan</think>Looking.").call(
            "c",
            "bash",
            r#"{"command":"true"}"#,
        )),
        stream(Turn::text("<think>nearly</think>The `<think>` tag is text.")),
    ];
    let (done, requests) = ask(&rig, replies, &[]);
    let done = done.exits(0);
    assert_eq!(done.result()["answer"], "The `<think>` tag is text.");
    let shown = done.events_of("text_delta");
    let shown: String = shown.iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(shown, "Looking.The `<think>` tag is text.");
    assert_eq!(done.events_of("assistant_message")[0]["content"], "Looking.");
    let sent = requests[1].body["messages"][2]["content"].as_str().unwrap();
    assert!(!sent.contains("a plan"), "{sent}");
    let journal = std::fs::read_to_string(rig.journal()).unwrap();
    assert!(journal.contains("a plan") && journal.contains("nearly"), "the journal keeps them");
}

#[test]
fn a05_b12_the_same_loop_speaks_other_protocols() {
    let rig = Rig::new();
    let server = Server::start(vec![Reply::status(
        200,
        &[],
        &json!({"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "hello"}],
            "usage": {"input_tokens": 3, "output_tokens": 2}}),
    )]);
    let url = server.base_url();
    let mut command = rig.run_command("anthropic/claude-x", &["--base-url", &url, "--no-stream"]);
    let done = Live::start({
        command.env("ANTHROPIC_API_KEY", "sk-ant-1");
        command
    })
    .end()
    .exits(0);
    assert_eq!(done.result()["answer"], "hello");
    let request = server.requests().remove(0);
    assert!(request.line.contains("/messages"), "{}", request.line);
    assert_eq!(request.header("x-api-key"), Some("sk-ant-1"));
    assert!(request.body["system"].is_string() || request.body["system"].is_array());
}

#[test]
fn usage_is_summed_over_the_turns_with_what_the_cache_gave() {
    let rig = Rig::new();
    let replies = vec![
        stream(Turn::default().call("c", "bash", r#"{"command":"true"}"#)),
        stream(Turn::text("done")),
    ];
    let (done, _) = ask(&rig, replies, &[]);
    let usage = done.exits(0).result()["usage"].clone();
    assert_eq!((&usage["input"], &usage["output"]), (&json!(20), &json!(10)));
    assert_eq!(usage["cache_read"], 8);
}

#[test]
fn a_script_takes_the_place_of_a_model_in_every_respect() {
    let rig = Rig::new();
    rig.file("a.txt", "alpha");
    let first = json!({"expect_tools": ["read"], "thinking": "hm", "text": "look", "chunk": 2,
        "calls": [{"name": "read", "arguments": {"path": "a.txt"}}]});
    let second = json!({"expect": "alpha", "expect_not": "beta", "text": "done"});
    let done = rig.play(&[first, second], &["--tools", "read"]).exits(0);
    assert_eq!(done.events_of("thinking")[0]["content"], "hm");
    assert_eq!(done.events_of("text_delta").len(), 3);
    let wrong = json!({"expect": "gamma", "text": "done"});
    let turns = [call("read", &json!({"path": "a.txt"})), wrong];
    let result = rig.play(&turns, &[]).exits(12).result();
    assert!(result["error"].as_str().unwrap().contains("turns.jsonl:2"), "{result}");
    let result = rig.play(&[bash("true")], &[]).exits(12).result();
    assert!(result["error"].as_str().unwrap().contains("no turn left"), "{result}");
    rig.play(&[answer("x")], &[]).exits(0);
}

#[test]
fn a_stream_that_is_kept_alive_for_ever_ends_with_the_runs_time() {
    let rig = Rig::new();
    let ping =
        |reply: Reply, _| reply.then_chunk(b": ping\n\n").then_pause(Duration::from_millis(50));
    let policy = |seconds| rig.policy(&format!("[limits]\nrun_seconds = {seconds}\n"));
    let (endless, more) = ((0..1_000).fold(Reply::open_stream(), ping), policy(1));
    let (done, _) = ask(&rig, vec![endless], &["--policy", &more]);
    let done = done.exits(14);
    assert_eq!(done.result()["finish_reason"], "budget");
    assert!(done.result()["error"].as_str().unwrap().contains("limits.run_seconds"));
    assert!(done.took < Duration::from_secs(20), "{:?}", done.took);
    // The attempt is closed: the session can go on.
    assert!(rig.stoplog(&["session", "list"]).exits(0).stdout.contains("idle"));
    rig.stoplog(&["audit", "verify"]).exits(0);
    let short = (0..30).fold(Reply::open_stream(), ping);
    let short = short.then_chunk(Turn::text("hello").chat_events().as_bytes());
    let (done, _) = ask(&rig, vec![short.then_bytes(b"0\r\n\r\n")], &["--policy", &policy(60)]);
    assert_eq!(done.exits(0).result()["answer"], "hello", "the control");
}
