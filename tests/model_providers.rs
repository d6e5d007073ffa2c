//! The Anthropic and Responses adapters against a scripted server, and, where the shared rig is at
//! hand, all adapters against its independent server.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "support/scripted_http.rs"]
mod scripted_http;

use scripted_http::{Reply, Request, Server};
use serde_json::{Value, json};
use stoplog::base::secret::Secret;
use stoplog::model::{
    Abort, Answer, Finish, HttpOptions, Message, Model, ModelChoice, ModelConfig, ModelError,
    ModelRequest, ProviderTable, Shown, StatusKind, StreamEvent, ThinkingLevel, ToolDefinition,
};

const CLAUDE: &str = "anthropic/claude-sonnet-4-5";
const GPT: &str = "openai-responses/gpt-5.1";

fn connect(model: &str, base_url: &str, streaming: bool) -> Model {
    let table = ProviderTable::built_in().unwrap();
    let choice = ModelChoice::parse(model).unwrap();
    let mut endpoint = table.resolve(&choice, Some(base_url)).unwrap();
    endpoint.streaming = streaming;
    let (key, options) = (Some(Secret::new("sk-1")), HttpOptions::default());
    Model::connect(ModelConfig::Http { endpoint: Box::new(endpoint), key, options }).unwrap()
}

fn call(model: &Model, request: &ModelRequest) -> (Result<Answer, ModelError>, Vec<StreamEvent>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut events = Vec::new();
    let mut on_event = |event| {
        events.push(event);
        Shown::No
    };
    let answer = runtime.block_on(model.call(request, &mut on_event, &Abort::new()));
    (answer, events)
}

/// One call, and the request that it made.
fn ask(
    model: &str,
    streaming: bool,
    reply: Reply,
    request: &ModelRequest,
) -> (Result<Answer, ModelError>, Request) {
    let server = Server::start(vec![reply]);
    let answer = call(&connect(model, &server.base_url(), streaming), request).0;
    (answer, server.requests().remove(0))
}

fn request() -> ModelRequest {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: format!("does {name}"),
        parameters: json!({"type": "object"}),
    };
    ModelRequest {
        tools: vec![tool("read"), tool("write")],
        ..ModelRequest::new("be brief", vec![Message::user("hello")])
    }
}

fn with_history(answer: &Answer) -> ModelRequest {
    let mut request = request();
    let messages = std::sync::Arc::make_mut(&mut request.messages);
    messages.push(answer.to_message());
    for call in &answer.tool_calls {
        messages.push(Message::Tool {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: "result".into(),
            is_error: call.name == "write",
        });
    }
    request
}

fn events(list: &[Value]) -> Reply {
    let text: String = list
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event.get("type").and_then(Value::as_str).unwrap()
            )
        })
        .collect();
    Reply::stream(&[text.as_bytes()])
}

// ---- Anthropic ------------------------------------------------------------------------------

fn claude_stream() -> Vec<Value> {
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    vec![
        json!({"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 7, "output_tokens": 1,
            "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}}}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "wh"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "y"})),
        delta(0, json!({"type": "signature_delta", "signature": "SIG"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "HIDDEN"})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "let me "})),
        delta(2, json!({"type": "text_delta", "text": "see"})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "t1", "name": "read", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"path\":"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "\"a\"}"})),
        stop(3),
        start(4, json!({"type": "tool_use", "id": "t2", "name": "write", "input": {}})),
        stop(4),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}}),
        json!({"type": "message_stop"}),
    ]
}

fn claude_document() -> Reply {
    let document = json!({"type": "message", "model": "claude", "stop_reason": "tool_use", "content": [
        {"type": "thinking", "thinking": "why", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "HIDDEN"},
        {"type": "text", "text": "let me see"},
        {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
        {"type": "tool_use", "id": "t2", "name": "write", "input": {}},
    ], "usage": {"input_tokens": 7, "output_tokens": 30, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}});
    Reply::status(200, &[], &document)
}

#[test]
fn anthropic_answers_are_read_streamed_and_whole() {
    let streamed = ask(CLAUDE, true, events(&claude_stream()), &request()).0.unwrap();
    let whole = ask(CLAUDE, false, claude_document(), &request()).0.unwrap();
    assert_eq!(streamed, whole);
    assert_eq!(streamed.content, "let me see");
    assert_eq!(streamed.thinking_text(), "why");
    assert_eq!(streamed.finish, Finish::ToolUse);
    let calls: Vec<_> = streamed
        .tool_calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("read", "{\"path\":\"a\"}"), ("write", "{}")]);
    let usage = streamed.usage;
    assert_eq!(
        (usage.input, usage.output, usage.cache_read, usage.cache_write),
        (127, 30, 100, 20)
    );
}

#[test]
fn anthropic_requests_are_marked_for_the_cache_and_carry_the_key_in_its_header() {
    let (_, sent) = ask(CLAUDE, true, events(&claude_stream()), &request());
    assert_eq!(sent.line, "POST /v1/messages HTTP/1.1");
    assert_eq!(sent.header("x-api-key"), Some("sk-1"));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("authorization"), None);
    let cached = json!({"type": "ephemeral"});
    for pointer in ["/system/0", "/tools/1", "/messages/0/content/0"] {
        assert_eq!(
            sent.body.pointer(&format!("{pointer}/cache_control")),
            Some(&cached),
            "{pointer}"
        );
    }
    assert_eq!(sent.body.pointer("/tools/0/cache_control"), None);
    assert_eq!(sent.body.pointer("/temperature"), Some(&json!(0.1)));
    assert_eq!(sent.body.pointer("/max_tokens"), Some(&json!(8192)));
    assert_eq!(sent.body.pointer("/thinking"), None);
}

#[test]
fn anthropic_thinking_goes_back_signed_and_in_one_user_message_with_all_results() {
    let answer = ask(CLAUDE, true, events(&claude_stream()), &request()).0.unwrap();
    let follow_up = ModelRequest { thinking: ThinkingLevel::Low, ..with_history(&answer) };
    let (_, sent) = ask(CLAUDE, true, events(&claude_stream()), &follow_up);
    let messages = sent.body.pointer("/messages").unwrap().as_array().unwrap();
    assert_eq!(messages.len(), 3);
    let kinds = |message: &Value| -> Vec<String> {
        let blocks = message.pointer("/content").unwrap().as_array().unwrap();
        blocks
            .iter()
            .map(|block| block.pointer("/type").unwrap().as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        kinds(&messages[1]),
        ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]
    );
    assert_eq!(
        messages[1].pointer("/content/0"),
        Some(&json!({"type": "thinking", "thinking": "why", "signature": "SIG"}))
    );
    assert_eq!(messages[1].pointer("/content/3/input"), Some(&json!({"path": "a"})));
    assert_eq!(kinds(&messages[2]), ["tool_result", "tool_result"]);
    assert_eq!(messages[2].pointer("/content/1/is_error"), Some(&json!(true)));
    assert_eq!(
        sent.body.pointer("/thinking"),
        Some(&json!({"type": "enabled", "budget_tokens": 2048}))
    );
    assert_eq!(sent.body.pointer("/max_tokens"), Some(&json!(8192 + 2048)));
    assert_eq!(sent.body.pointer("/temperature"), None, "a thinking model takes no other");
    // Another model made the last calls: its blocks stay here, and a budget would be refused.
    let (_, other) = ask("anthropic/claude-opus-4-1", true, events(&claude_stream()), &follow_up);
    assert_eq!(other.body.pointer("/messages/1/content/0/type"), Some(&json!("text")));
    assert_eq!(other.body.pointer("/thinking"), None);
    let (_, adaptive) =
        ask("anthropic/claude-opus-4-7", true, events(&claude_stream()), &follow_up);
    assert_eq!(adaptive.body.pointer("/thinking/type"), Some(&json!("adaptive")));
    assert_eq!(adaptive.body.pointer("/output_config/effort"), Some(&json!("low")));
}

#[test]
fn anthropic_errors_and_ends_are_mapped() {
    let error =
        |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "scripted"}});
    for (kind, status, expected) in [
        ("overloaded_error", 529, StatusKind::Server),
        ("rate_limit_error", 429, StatusKind::RateLimited),
        ("api_error", 500, StatusKind::Server),
        ("authentication_error", 401, StatusKind::Authentication),
        ("billing_error", 402, StatusKind::NoCredit),
        ("invalid_request_error", 400, StatusKind::Refused),
    ] {
        for (streaming, reply) in
            [(true, events(&[error(kind)])), (false, Reply::status(200, &[], &error(kind)))]
        {
            let result = ask(CLAUDE, streaming, reply, &request()).0;
            assert!(
                matches!(&result, Err(ModelError::Status(error)) if error.status == status && error.kind == expected),
                "{kind}: {result:?}"
            );
        }
    }
    for (reason, finish) in [
        ("end_turn", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("model_context_window_exceeded", Finish::Length),
        ("refusal", Finish::Error),
    ] {
        let document = json!({"content": [{"type": "text", "text": "a"}], "stop_reason": reason});
        let answer = ask(CLAUDE, false, Reply::status(200, &[], &document), &request()).0.unwrap();
        assert_eq!(answer.finish, finish, "{reason}");
    }
    let mut list = claude_stream();
    list.truncate(list.len() - 2);
    assert_eq!(ask(CLAUDE, true, events(&list), &request()).0, Err(ModelError::CutStream));
}

// ---- Responses ------------------------------------------------------------------------------

fn gpt_items() -> Vec<Value> {
    vec![
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "why"}], "encrypted_content": "ENC"}),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "let me see"}]}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a\"}"}),
        json!({"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "write", "arguments": "{}"}),
    ]
}

fn gpt_response(status: &str, reason: Value) -> Value {
    json!({"model": "gpt", "status": status, "output": gpt_items(), "error": null,
        "incomplete_details": reason, "usage": {"input_tokens": 127, "output_tokens": 30, "input_tokens_details": {"cached_tokens": 100}}})
}

fn gpt_stream() -> Vec<Value> {
    let items = gpt_items();
    let added = |index: usize, item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    let done = |index: usize| json!({"type": "response.output_item.done", "output_index": index, "item": items.get(index)});
    let delta = |kind: &str, index: usize, delta: &str| json!({"type": format!("response.{kind}.delta"), "output_index": index, "item_id": "x", "delta": delta});
    let fc = |id: &str, call: &str, name: &str| json!({"type": "function_call", "id": id, "call_id": call, "name": name, "arguments": ""});
    vec![
        json!({"type": "response.created", "response": {"model": "gpt", "status": "in_progress"}}),
        added(0, json!({"type": "reasoning", "id": "rs_1"})),
        delta("reasoning_summary_text", 0, "wh"),
        delta("reasoning_summary_text", 0, "y"),
        done(0),
        added(1, json!({"type": "message", "id": "msg_1"})),
        delta("output_text", 1, "let me "),
        delta("output_text", 1, "see"),
        done(1),
        added(2, fc("fc_1", "c1", "read")),
        delta("function_call_arguments", 2, "{\"path\":"),
        delta("function_call_arguments", 2, "\"a\"}"),
        done(2),
        added(3, fc("fc_2", "c2", "write")),
        done(3),
        json!({"type": "response.completed", "response": gpt_response("completed", Value::Null)}),
    ]
}

#[test]
fn responses_answers_are_read_streamed_and_whole() {
    let streamed = ask(GPT, true, events(&gpt_stream()), &request()).0.unwrap();
    let document = gpt_response("completed", Value::Null);
    let whole = ask(GPT, false, Reply::status(200, &[], &document), &request()).0.unwrap();
    let last = gpt_stream().pop().unwrap();
    let sparse = ask(GPT, true, events(&[last]), &request()).0.unwrap();
    assert_eq!(streamed, whole);
    assert_eq!(streamed, sparse, "a server that sends the end alone");
    assert_eq!(
        (streamed.content.as_str(), streamed.thinking_text().as_str()),
        ("let me see", "why")
    );
    let calls: Vec<_> = streamed
        .tool_calls
        .iter()
        .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("c1", "read", "{\"path\":\"a\"}"), ("c2", "write", "{}")]);
    assert_eq!(
        (streamed.usage.input, streamed.usage.output, streamed.usage.cache_read),
        (127, 30, 100)
    );
    assert_eq!(streamed.finish, Finish::ToolUse);
}

#[test]
fn responses_requests_keep_nothing_on_the_server_and_carry_reasoning_back() {
    // A4, A5: what the host sends is all that a model knows, also where a server would keep more.
    let answer = ask(GPT, true, events(&gpt_stream()), &request()).0.unwrap();
    let follow_up = ModelRequest { thinking: ThinkingLevel::High, ..with_history(&answer) };
    let (_, sent) = ask(GPT, true, events(&gpt_stream()), &follow_up);
    assert_eq!(sent.line, "POST /v1/responses HTTP/1.1");
    assert_eq!(sent.body.pointer("/store"), Some(&json!(false)));
    assert_eq!(sent.body.pointer("/instructions"), Some(&json!("be brief")));
    assert_eq!(sent.body.pointer("/reasoning/effort"), Some(&json!("high")));
    assert_eq!(sent.body.pointer("/include/0"), Some(&json!("reasoning.encrypted_content")));
    assert_eq!(sent.body.pointer("/temperature"), None);
    assert_eq!(sent.body.pointer("/tools/0/name"), Some(&json!("read")));
    let input = sent.body.pointer("/input").unwrap().as_array().unwrap();
    let kinds: Vec<_> = input
        .iter()
        .map(|item| item.get("type").or(item.get("role")).unwrap().as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "user",
            "reasoning",
            "assistant",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output"
        ]
    );
    assert_eq!(input.get(1).and_then(|item| item.get("encrypted_content")), Some(&json!("ENC")));
}

#[test]
fn responses_errors_and_ends_are_mapped() {
    let cut = json!({"type": "response.incomplete", "response": gpt_response("incomplete", json!({"reason": "max_output_tokens"}))});
    assert_eq!(ask(GPT, true, events(&[cut]), &request()).0.unwrap().finish, Finish::Length);
    let mut failed = gpt_response("failed", Value::Null);
    *failed.get_mut("error").unwrap() = json!({"code": "rate_limit_exceeded", "message": "slow"});
    let failed = json!({"type": "response.failed", "response": failed});
    let error = ask(GPT, true, events(&[failed]), &request()).0.unwrap_err();
    assert!(
        matches!(&error, ModelError::Status(error) if error.kind == StatusKind::RateLimited),
        "{error}"
    );
    let flat = json!({"type": "error", "code": "server_error", "message": "broke"});
    let error = ask(GPT, true, events(&[flat]), &request()).0.unwrap_err();
    assert!(matches!(&error, ModelError::Status(error) if error.status == 500), "{error}");
    let mut list = gpt_stream();
    list.pop();
    assert_eq!(ask(GPT, true, events(&list), &request()).0, Err(ModelError::CutStream));
}

// ---- search by the provider -----------------------------------------------------------------

#[test]
fn a_search_by_the_provider_is_in_the_request_only_if_it_is_allowed() {
    for (model, pointer) in
        [(CLAUDE, "/tools/2/type"), (GPT, "/tools/2/type"), ("openrouter/a/b", "/plugins/0/id")]
    {
        for native_search in [true, false] {
            let request = ModelRequest { native_search, ..request() };
            let (_, sent) = ask(model, true, events(&[]), &request);
            assert_eq!(sent.body.pointer(pointer).is_some(), native_search, "{model}");
            assert_eq!(
                sent.body.to_string().contains("web_search"),
                native_search && model != "openrouter/a/b"
            );
        }
    }
}

// ---- an independent server ------------------------------------------------------------------

#[test]
fn the_shared_rigs_server_is_understood() {
    let shared = std::option_env!("STOPLOG_SHARED").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        std::path::PathBuf::from,
    );
    let program = shared.join("rig/mock_llm.py");
    if !program.exists() {
        println!("not run: no rig at {}", program.display());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let turn = json!({"text": "漢字 here", "calls": [{"name": "read", "args": "{\"path\": \"a", "id": "c1"},
        {"name": "write", "args": {"path": "b"}, "id": "c1"}], "chunk": 3});
    let turns: Vec<_> = std::iter::repeat_n(turn, 6).collect();
    std::fs::File::create(&script)
        .and_then(|file| Ok(serde_json::to_writer(file, &turns)?))
        .unwrap();
    let mut server = python(&program, &script, &directory.path().join("log"));
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(server.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let base_url = format!("http://127.0.0.1:{}/v1", line.trim().strip_prefix("PORT ").unwrap());
    for model in ["openai/scripted", "anthropic/scripted", "openai-responses/scripted"] {
        for streaming in [true, false] {
            let answer = call(&connect(model, &base_url, streaming), &request()).0.unwrap();
            assert_eq!(answer.content, "漢字 here", "{model}");
            let arguments: Vec<_> =
                answer.tool_calls.iter().map(|call| call.arguments.replace(' ', "")).collect();
            assert_eq!(arguments, ["{\"path\":\"a", "{\"path\":\"b\"}"], "{model} {streaming}");
            assert_eq!((answer.usage.input, answer.usage.output), (10, 5));
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the server is a helper of this test")]
fn python(
    program: &std::path::Path,
    script: &std::path::Path,
    log: &std::path::Path,
) -> std::process::Child {
    std::process::Command::new("python3")
        .args([program, script, log])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}
