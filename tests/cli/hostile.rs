//! A model server that means harm, or is broken in ways that look like it: what it sends is a failed
//! attempt or a call that never runs, and the run goes on.

use super::rig::{Done, Rig};
use super::scripted_http::{Reply, Request, Server, Turn};
use serde_json::{Value, json};
use std::time::Duration;

/// A run against a server that answers `bad` first, and what the server was asked.
fn ask(bad: Reply) -> (Rig, Done, Vec<Request>) {
    let rig = Rig::new();
    let server = Server::start(vec![bad, Reply::chat_stream(&Turn::text("hello"))]);
    let url = server.base_url();
    let done = rig.run("openai/scripted", &["--base-url", &url]);
    (rig, done, server.requests())
}

fn event(delta: &Value) -> Vec<u8> {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]})).into_bytes()
}

#[test]
fn answers_that_are_no_answers_are_asked_for_again() {
    let raw = |bytes: &[u8]| Reply::default().then_bytes(bytes).then_cut();
    let deep = format!("data: {{\"choices\":{}\n\n", "[".repeat(100_000));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let zipped = [
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 20\r\n\r\n"
            .as_slice(),
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\x04\x00\x00\x00\x00\x00\x00\x00",
    ]
    .concat();
    let hostile = [
        ("nested without end", Reply::stream(&[deep.as_bytes()])),
        (
            "half a surrogate pair",
            Reply::stream(&[
                br#"data: {"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}"#.as_slice(),
                b"\n\n",
            ]),
        ),
        ("a compressed body that nobody asked for", raw(&zipped)),
        ("less than was promised", raw(format!("{head}content-length: 900\r\n\r\n{{").as_bytes())),
        ("chunks of no length", Reply::open_stream().then_bytes(b"zz\r\nhello\r\n").then_cut()),
        ("no HTTP", raw(b"SSH-2.0-OpenSSH_9.6\r\n")),
        ("nothing", Reply::default().then_cut()),
        ("an empty stream", Reply::stream(&[b": ping\n\n"])),
        ("a page", Reply::bytes("text/html", b"<html>log in</html>")),
    ];
    for (what, reply) in hostile {
        let (rig, done, requests) = ask(reply);
        let done = done.exits(0);
        assert_eq!(done.result()["answer"], "hello", "{what}");
        assert_eq!((requests.len(), done.events_of("retry").len()), (2, 1), "{what}");
        assert!(done.took < Duration::from_secs(30), "{what}: {:?}", done.took);
        rig.stoplog(&["audit", "verify"]).exits(0);
    }
}

#[test]
fn what_comes_after_the_end_of_an_answer_is_no_part_of_it() {
    let call = json!({"tool_calls": [{"index": 0, "id": "late", "function":
        {"name": "bash", "arguments": "{\"command\":\"touch made\"}"}}]});
    let turn = Turn::text("hello").chat_events();
    let late = Reply::stream(&[turn.as_bytes(), &event(&call)]);
    let (rig, done, _) = ask(late);
    assert_eq!(done.exits(0).result()["answer"], "hello");
    assert!(!rig.has("made") && rig.records_of("decision").is_empty());
    // The control: the same call in its place.
    let turn = Turn::default().call("early", "bash", "{\"command\":\"touch made\"}");
    let (rig, done, _) = ask(Reply::chat_stream(&turn));
    drop(done.exits(0));
    assert!(rig.has("made"));
}

#[test]
fn calls_of_every_bad_form_are_told_apart_and_leave_a_history_that_providers_take() {
    let deep = format!("{{\"command\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let long = format!("{{\"path\":\"{}\"}}", "x".repeat(3 << 20));
    let turn = Turn::default()
        .call("same", "bash", "{\"command\":\"touch one\"}")
        .call("same", "bash", "{\"command\":\"touch two\"}")
        .call("", "bash", "{\"command\":\"touch a\\u0000b\"}")
        .call("d", "bash", &deep)
        .call("e", "read", &long)
        .call("f", "read", "{\"path\":\"\\ud800\"}")
        .call("\u{1b}[2J", "\u{1b}]0;owned\u{7}", "{}")
        .call("h", &"n".repeat(1 << 20), "{}");
    let (rig, done, requests) = ask(Reply::chat_stream(&turn));
    let done = done.exits(0);
    assert_eq!(done.statuses()[..2], ["ok", "ok"]);
    assert_eq!(done.statuses().iter().filter(|status| *status == "ok").count(), 2);
    assert!(rig.has("one") && rig.has("two"), "the same identifier twice is two calls");
    let messages = requests[1].body["messages"].as_array().unwrap();
    let sent = messages.iter().find(|message| message["role"] == "assistant").unwrap();
    let calls = sent["tool_calls"].as_array().unwrap();
    let answered: Vec<&Value> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| &message["tool_call_id"])
        .collect();
    assert_eq!(calls.iter().map(|call| &call["id"]).collect::<Vec<_>>(), answered, "in order");
    let mut ids: Vec<&str> = answered.iter().map(|id| id.as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), calls.len(), "each has its own");
    for call in calls {
        let name = call["function"]["name"].as_str().unwrap();
        assert!(name.len() <= 64 && name.is_ascii() && !name.contains('\u{1b}'), "{name}");
        let arguments: Value =
            serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments.is_object());
    }
    rig.stoplog(&["audit", "verify"]).exits(0);
    let shown = rig.stoplog(&["session", "show"]).exits(0).stdout;
    assert!(!shown.contains('\u{1b}'));
}
