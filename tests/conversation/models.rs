//! A provider of one's own, and what of the flags reaches its server.

use super::Rig;
use super::scripted_http::{Reply, Server, Turn};

fn provider(rig: &Rig, base_url: &str, more: &str) {
    let text = format!(
        "[providers.team]\nadapter = \"chat\"\nbase_url = \"{base_url}\"\nkey_variable = \"TEAM_KEY\"\n\
         key_required = true\nthinking = \"effort\"\n{more}"
    );
    rig.write("config/stoplog/providers.toml", &text);
}

#[test]
fn the_providers_file_is_listed_checked_and_read_strictly() {
    let rig = Rig::new();
    let server = Server::start(vec![Reply::chat_stream(&Turn::text("x").finish("length"))]);
    provider(&rig, &server.base_url(), "headers = { \"x-team\" = \"a\" }\n");
    let (out, ..) = rig.run(&["models"]);
    assert!(out.lines().any(|line| line.starts_with("team") && line.contains("TEAM_KEY is set")));
    let (out, err, code) = rig.run(&["models", "team/small"]);
    assert!(code == 0 && out.contains("answers"), "{err}");
    assert_eq!(server.requests()[0].body["max_tokens"], 1);
    rig.write("config/stoplog/providers.toml", "[providers.team]\nadaptor = \"chat\"\n");
    let (_, err, code) = rig.run(&["models"]);
    assert!(code == 2 && err.contains("providers.toml") && err.contains("adaptor"), "{err}");
}

#[test]
fn temperature_tokens_and_thinking_reach_the_server() {
    let rig = Rig::new();
    let server = Server::start(vec![Reply::chat_stream(&Turn::text("done"))]);
    provider(&rig, &server.base_url(), "");
    let flags = ["--temperature", "0.5", "--max-tokens", "77", "--thinking", "high"];
    let arguments = [&["run", "--model", "team/small", "--headless"], &flags[..], &["go"]].concat();
    let (out, err, code) = rig.run(&arguments);
    assert_eq!((out.as_str(), code), ("done\n", 0), "{err}");
    let body = &server.requests()[0].body;
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&0.5.into(), &77.into()));
    assert_eq!(body["reasoning_effort"], "high");
}

#[test]
fn calls_as_json_are_a_schema_and_no_tools() {
    let rig = Rig::new();
    rig.write("w/notes.txt", "the code is 7423\n");
    let call = r#"{"text":"","calls":[{"name":"read","arguments":{"path":"notes.txt"}}]}"#;
    let server = Server::start(vec![
        Reply::chat_stream(&Turn::text(call)),
        Reply::chat_stream(&Turn::text("{\"text\":\"7423\",\"calls\":[]}")),
    ]);
    provider(&rig, &server.base_url(), "");
    let arguments =
        ["run", "--model", "team/small", "--headless", "--tool-calls", "json", "what is the code?"];
    let (out, err, code) = rig.run(&arguments);
    assert_eq!((out.as_str(), code), ("7423\n", 0), "{err}");
    let requests = server.requests();
    let first = &requests[0].body;
    assert!(first.get("tools").is_none() && first["response_format"]["type"] == "json_schema");
    assert!(requests[1].body.to_string().contains("the code is 7423"));
}

#[test]
fn a_window_that_is_nearly_full_leads_to_a_summary() {
    let rig = Rig::new();
    rig.write("w/long.txt", &"many words on a line\n".repeat(700));
    let read = Turn::default().call("c", "read", r#"{"path":"long.txt"}"#).finish("tool_calls");
    let mut replies: Vec<Reply> = (0..3).map(|_| Reply::chat_stream(&read)).collect();
    replies.push(Reply::chat_stream(&Turn::text("## Task: read\n## Done: read it")));
    replies.push(Reply::chat_stream(&Turn::text("done")));
    let server = Server::start(replies);
    provider(&rig, &server.base_url(), "[providers.team.models.small]\ncontext_window = 12000\n");
    let arguments = ["run", "--model", "team/small", "--headless", "--output", "stream-json", "go"];
    let (out, err, code) = rig.run(&arguments);
    assert_eq!(code, 0, "{err}\n{out}");
    assert!(out.contains("\"type\":\"compaction\""), "{out}");
    let requests = server.requests();
    assert!(requests.last().unwrap().body.to_string().contains("[Compacted history]"));
}
