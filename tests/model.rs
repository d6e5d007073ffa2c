//! The model client against a scripted server on the loopback interface: every way in which public
//! agents have failed at this seam, and the right behaviour.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "support/scripted_http.rs"]
mod scripted_http;

use scripted_http::{Reply, Server, Turn};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stoplog::base::secret::Secret;
use stoplog::model::{
    Abort, Answer, Finish, HttpOptions, Listener, Message, Model, ModelChoice, ModelConfig,
    ModelError, ModelRequest, ProviderTable, RetryPolicy, Shown, StatusKind, StreamEvent,
    ThinkingLevel, Timer, ToolDefinition, call_with_retry, normalise,
};

const KEY: &str = "sk-very-secret-1";

/// A client of a scripted server, and what it told its listener.
struct Rig {
    server: Server,
    model: Model,
    delays: Arc<Mutex<Vec<Duration>>>,
    events: Vec<StreamEvent>,
    failures: Vec<String>,
    shown: Shown,
}

impl Rig {
    fn new(replies: Vec<Reply>) -> Self {
        Self::with("openai/scripted", true, replies)
    }

    fn with(model: &str, streaming: bool, replies: Vec<Reply>) -> Self {
        let server = Server::start(replies);
        let model = connect(model, &server.base_url(), streaming).unwrap();
        Self {
            server,
            model,
            delays: Arc::default(),
            events: Vec::new(),
            failures: Vec::new(),
            shown: Shown::No,
        }
    }

    fn policy(&self) -> RetryPolicy {
        RetryPolicy { timer: Timer::Noted(Arc::clone(&self.delays)), ..RetryPolicy::default() }
    }

    fn ask(&mut self, request: &ModelRequest) -> Result<Answer, ModelError> {
        let policy = self.policy();
        let (events, failures, shown) = (&mut self.events, &mut self.failures, self.shown);
        let listener = Listener {
            on_event: &mut |event| {
                events.push(event);
                shown
            },
            on_failure: &mut |failure| failures.push(failure.error.code().to_owned()),
        };
        let abort = Abort::new();
        block_on(call_with_retry(&self.model, request, &policy, listener, &abort))
    }

    fn hello(&mut self) -> Result<Answer, ModelError> {
        self.ask(&hello())
    }

    fn delays_ms(&self) -> Vec<u128> {
        self.delays.lock().unwrap().iter().map(Duration::as_millis).collect()
    }

    fn shown_text(&self) -> String {
        self.events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::TextDelta(text) => Some(text.as_str()),
                StreamEvent::ThinkingDelta(_) | StreamEvent::CallStarted(_) => None,
            })
            .collect()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(future);
    // A name look-up that hangs must not hang the test.
    runtime.shutdown_background();
    result
}

fn connect(model: &str, base_url: &str, streaming: bool) -> Result<Model, ModelError> {
    let table = ProviderTable::built_in()?;
    let mut endpoint = table.resolve(&ModelChoice::parse(model)?, Some(base_url))?;
    endpoint.streaming = streaming;
    let key = Some(Secret::new(KEY));
    let options = HttpOptions::default();
    Model::connect(ModelConfig::Http { endpoint: Box::new(endpoint), key, options })
}

fn hello() -> ModelRequest {
    ModelRequest::new("be brief", vec![Message::user("hello")])
}

fn with_tools() -> ModelRequest {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: format!("does {name}"),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    ModelRequest { tools: vec![tool("read"), tool("write")], ..hello() }
}

fn status(status: u16) -> Reply {
    Reply::status(status, &[], &json!({"error": {"message": "scripted", "type": "x"}}))
}

fn good() -> Reply {
    Reply::chat_stream(&Turn::text("hello"))
}

// ---- requests -------------------------------------------------------------------------------

#[test]
fn a_request_holds_what_was_asked_and_nothing_else() {
    for streaming in [true, false] {
        let reply = if streaming { good() } else { Reply::chat(&Turn::text("hello")) };
        let mut rig = Rig::with("openai/scripted", streaming, vec![reply]);
        rig.ask(&with_tools()).unwrap();
        let request = &rig.server.requests()[0];
        assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
        assert_eq!(request.header("authorization"), Some("Bearer sk-very-secret-1"));
        let body = &request.body;
        assert_eq!(body["model"], "scripted");
        assert_eq!(body["temperature"], 0.1);
        assert_eq!(body["max_tokens"], 8192);
        assert_eq!(body["stream"], streaming);
        assert_eq!(body["messages"][0], json!({"role": "system", "content": "be brief"}));
        assert_eq!(body["messages"][1], json!({"role": "user", "content": "hello"}));
        let names: Vec<_> = body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["function"]["name"])
            .collect();
        assert_eq!(names, ["read", "write"]);
        assert_eq!(body.get("stream_options").is_some(), streaming);
        for absent in ["reasoning_effort", "response_format", "tool_choice", "plugins"] {
            assert!(body.get(absent).is_none(), "{absent}");
        }
    }
}

#[test]
fn tool_results_go_back_beside_their_calls() {
    let mut rig = Rig::new(vec![
        Reply::chat_stream(
            &Turn::default().call("", "read", "{\"path\": \"a").call("", "read", "{}"),
        ),
        good(),
    ]);
    let mut request = with_tools();
    let answer = rig.ask(&request).unwrap();
    assert_eq!(answer.finish, Finish::ToolUse);
    assert_eq!(answer.tool_calls[0].arguments, "{\"path\": \"a", "raw, as sent");
    let messages = std::sync::Arc::make_mut(&mut request.messages);
    messages.push(answer.to_message());
    for content in ["malformed", ""] {
        let (call_id, name) = (String::new(), "read".to_owned());
        messages.push(Message::Tool { call_id, name, content: content.into(), is_error: true });
    }
    let (messages, repairs) = normalise(&request.messages, 100);
    assert_eq!(
        repairs.len(),
        4,
        "two identifiers, one argument text, one empty result: {repairs:?}"
    );
    request.messages = messages.into();
    rig.ask(&request).unwrap();
    let sent = &rig.server.requests()[1].body["messages"];
    let calls = sent[2]["tool_calls"].as_array().unwrap();
    let first: Value =
        serde_json::from_str(calls[0]["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(first, json!({"malformed_arguments": "{\"path\": \"a"}));
    assert_eq!(sent[2]["content"], Value::Null);
    assert_eq!(sent[3]["tool_call_id"], calls[0]["id"]);
    assert_eq!(sent[4]["tool_call_id"], calls[1]["id"]);
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert_eq!(sent[4]["content"], "(no output)");
}

#[test]
fn each_call_to_this_machine_has_its_own_connection() {
    let mut rig = Rig::new(vec![good(), good(), good()]);
    let policy = rig.policy();
    block_on(async {
        for _ in 0..3 {
            let listener = Listener { on_event: &mut |_| Shown::No, on_failure: &mut |_| {} };
            call_with_retry(&rig.model, &hello(), &policy, listener, &Abort::new()).await.unwrap();
        }
    });
    rig.events.clear();
    let connections: Vec<_> =
        rig.server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1, 2]);
}

#[test]
fn thinking_levels_and_schemas_are_written_the_providers_way() {
    let schema = json!({"type": "object"});
    for (model, level, pointer, expected) in [
        ("openai/gpt-5.1", ThinkingLevel::High, "/reasoning_effort", json!("high")),
        ("openai/gpt-5.1", ThinkingLevel::None, "/reasoning_effort", Value::Null),
        ("openai/gpt-5", ThinkingLevel::None, "/reasoning_effort", json!("minimal")),
        ("openai/gpt-5", ThinkingLevel::None, "/temperature", Value::Null),
        ("openai/o3", ThinkingLevel::Low, "/reasoning_effort", json!("low")),
        ("openai/gpt-4.1", ThinkingLevel::Low, "/reasoning_effort", Value::Null),
        ("openrouter/a/b:free", ThinkingLevel::Low, "/reasoning/effort", json!("low")),
        ("openrouter/a/b:free", ThinkingLevel::Low, "/model", json!("a/b:free")),
        ("openrouter/a/b:online", ThinkingLevel::Low, "/model", json!("a/b")),
        ("openrouter/a/b", ThinkingLevel::None, "/reasoning", Value::Null),
        ("ollama/qwen3:8b", ThinkingLevel::Medium, "/reasoning_effort", json!("medium")),
        ("vllm/org/m", ThinkingLevel::None, "/chat_template_kwargs/enable_thinking", json!(false)),
        ("llama-cpp/m", ThinkingLevel::High, "/chat_template_kwargs/enable_thinking", json!(true)),
        ("vllm/m", ThinkingLevel::None, "/response_format/json_schema/schema", schema.clone()),
    ] {
        let mut rig = Rig::with(model, true, vec![good()]);
        let response_schema = Some(schema.clone());
        rig.ask(&ModelRequest { thinking: level, response_schema, ..hello() }).unwrap();
        let body = &rig.server.requests()[0].body;
        let value = body.pointer(pointer).cloned().unwrap_or(Value::Null);
        assert_eq!(value, expected, "{model} {level:?} {pointer}");
    }
}

// ---- answers --------------------------------------------------------------------------------

#[test]
fn streamed_and_whole_answers_are_the_same() {
    let turn = Turn::text("grüße 漢字 🙂")
        .call("c1", "read", "{\"path\":\"a\"}")
        .call("c1", "write", "{}");
    let mut streamed = Rig::with("openai/scripted", true, vec![Reply::chat_stream(&turn)]);
    let mut whole = Rig::with("openai/scripted", false, vec![Reply::chat(&turn)]);
    let answer = streamed.hello().unwrap();
    assert_eq!(whole.hello().unwrap(), answer);
    assert_eq!(answer.content, "grüße 漢字 🙂");
    assert_eq!(streamed.shown_text(), answer.content);
    assert_eq!(answer.tool_calls.len(), 2, "the same identifier twice is two calls");
    assert_eq!((answer.usage.input, answer.usage.output, answer.usage.cache_read), (10, 5, 4));
    assert!(!answer.usage.estimated);
}

#[test]
fn the_other_form_than_the_one_asked_for_is_understood() {
    let turn = Turn::text("hello");
    let mut rig = Rig::with("openai/scripted", true, vec![Reply::chat(&turn)]);
    assert_eq!(rig.hello().unwrap().content, "hello");
    let mut rig = Rig::with("openai/scripted", false, vec![Reply::chat_stream(&turn)]);
    assert_eq!(rig.hello().unwrap().content, "hello");
}

#[test]
fn every_cut_of_a_recorded_stream_gives_the_same_answer() {
    let turn = Turn::text("<think>漢</think>é🙂").call("c1", "read", "{\"path\":\"ß\"}");
    let events = turn.chat_events();
    for line_end in ["\n", "\r\n", "\r"] {
        let bytes = events.replace('\n', line_end).into_bytes();
        // Every position over few connections: pieces of one byte, and all two-piece cuts near the
        // multi-byte characters; the decoder's own test covers all two-piece cuts.
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let mut replies = vec![Reply::stream(&single)];
        let positions: Vec<usize> = (0..bytes.len()).step_by(13).collect();
        replies.extend(positions.iter().map(|at| {
            let (head, tail) = bytes.split_at(*at);
            Reply::stream(&[head, tail])
        }));
        let mut rig = Rig::new(replies);
        for _ in 0..=positions.len() {
            let answer = rig.hello().unwrap();
            assert_eq!(answer.content, "é🙂");
            assert_eq!(answer.thinking_text(), "漢");
            assert_eq!(answer.tool_calls[0].arguments, "{\"path\":\"ß\"}");
        }
    }
}

#[test]
fn thinking_is_kept_apart_in_every_spelling() {
    let think_tags = Reply::chat_stream(&Turn::text("<think>why</think>\n\nhello"));
    let field = |name: &str| {
        let chunk = |delta: Value, finish: Value| {
            format!("data: {}\n\n", json!({"choices": [{"delta": delta, "finish_reason": finish}]}))
        };
        let text = chunk(json!({name: "wh"}), Value::Null)
            + &chunk(json!({name: "y", "content": ""}), Value::Null)
            + &chunk(json!({"content": "hello"}), json!("stop"));
        Reply::stream(&[text.as_bytes(), b"data: [DONE]\n\n"])
    };
    for reply in [think_tags, field("reasoning_content"), field("reasoning")] {
        let mut rig = Rig::new(vec![reply]);
        let answer = rig.hello().unwrap();
        assert_eq!((answer.content.as_str(), answer.thinking_text().as_str()), ("hello", "why"));
        assert_eq!(rig.shown_text(), "hello");
    }
}

#[test]
fn reasoning_details_go_back_to_the_model_they_came_from() {
    let chunk = |delta: Value, finish: Value| {
        format!("data: {}\n\n", json!({"choices": [{"delta": delta, "finish_reason": finish}]}))
    };
    let detail = |text: &str| json!([{"type": "reasoning.text", "index": 0, "text": text}]);
    let stream = chunk(json!({"reasoning": "wh", "reasoning_details": detail("wh")}), Value::Null)
        + &chunk(json!({"reasoning": "y", "reasoning_details": detail("y")}), Value::Null)
        + &chunk(json!({"content": "hello"}), json!("stop"));
    let mut rig =
        Rig::with("openrouter/a/b", true, vec![Reply::stream(&[stream.as_bytes()]), good()]);
    let answer = rig.hello().unwrap();
    let mut request = hello();
    std::sync::Arc::make_mut(&mut request.messages)
        .extend([answer.to_message(), Message::user("more")]);
    rig.ask(&request).unwrap();
    let sent = &rig.server.requests()[1].body["messages"][2];
    assert_eq!(sent["reasoning_details"], detail("why"));
    let mut other = Rig::with("openrouter/c/d", true, vec![good()]);
    other.ask(&request).unwrap();
    assert!(other.server.requests()[0].body["messages"][2].get("reasoning_details").is_none());
}

#[test]
fn finish_reasons_are_mapped() {
    for (turn, finish) in [
        (Turn::text("a").finish("stop"), Finish::Stop),
        (Turn::text("a").finish("eos"), Finish::Stop),
        (Turn::text("a").finish("tool_calls"), Finish::Stop),
        (Turn::text("a").finish("length"), Finish::Length),
        (Turn::text("").finish("length"), Finish::Length),
        (Turn::text("a").finish("content_filter"), Finish::Error),
        (Turn::default().call("c", "read", "{}").finish("stop"), Finish::ToolUse),
        (Turn::default().call("c", "write", "{\"path\":").finish("length"), Finish::Length),
    ] {
        let answer = Rig::new(vec![Reply::chat_stream(&turn)]).hello().unwrap();
        assert_eq!(answer.finish, finish, "{turn:?}");
    }
}

#[test]
fn calls_come_together_from_odd_pieces() {
    let stream = |deltas: &[Value]| {
        let mut text: String = deltas
            .iter()
            .map(|calls| {
                let choice = json!({"delta": {"tool_calls": calls}, "finish_reason": null});
                format!("data: {}\n\n", json!({"choices": [choice]}))
            })
            .collect();
        text += "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n";
        Reply::stream(&[text.as_bytes()])
    };
    let pieces = [
        // In order of the standard, interleaved.
        stream(&[
            json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}]),
            json!([{"index": 1, "id": "b", "function": {"name": "write", "arguments": "{\"x\""}}]),
            json!([{"index": 0, "function": {"arguments": "{\"path\":1}"}}, {"index": 1, "function": {"arguments": ":2}"}}]),
        ]),
        // Every call has index 0.
        stream(&[
            json!([{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"path\":1}"}}]),
            json!([{"index": 0, "id": "b", "function": {"name": "write", "arguments": "{\"x\":2}"}}]),
        ]),
        // No index; arguments are JSON, not text; name repeated.
        stream(&[
            json!([{"id": "a", "function": {"name": "read"}}]),
            json!([{"id": "a", "function": {"name": "read", "arguments": {"path": 1}}}]),
            json!([{"id": "b", "function": {"name": "write", "arguments": {"x": 2}}}]),
        ]),
    ];
    for reply in pieces {
        let answer = Rig::new(vec![reply]).hello().unwrap();
        let calls: Vec<_> = answer
            .tool_calls
            .iter()
            .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(calls, [("a", "read", "{\"path\":1}"), ("b", "write", "{\"x\":2}")]);
    }
}

#[test]
fn a_server_without_token_counts_does_not_void_the_budget() {
    let stream =
        "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n";
    let answer = Rig::new(vec![Reply::stream(&[stream.as_bytes()])]).hello().unwrap();
    assert!(answer.usage.estimated && answer.usage.input > 0 && answer.usage.output > 0);
}

// ---- failures -------------------------------------------------------------------------------

#[test]
fn a_stream_without_finish_reason_is_a_failed_attempt() {
    let events = Turn::text("half a text").call("c", "write", "{\"path\":\"a\"}").chat_events();
    let before_finish = events.find("\"finish_reason\":\"tool_calls\"").unwrap();
    let cut = |at: usize| Reply::open_stream().then_chunk(&events.as_bytes()[..at]).then_cut();
    let ended = |at: usize| Reply::stream(&[&events.as_bytes()[..at]]);
    for reply in [cut(40), cut(before_finish), ended(40), ended(before_finish), ended(0)] {
        let mut rig = Rig::new(vec![reply, good()]);
        assert_eq!(rig.hello().unwrap().content, "hello");
        assert_eq!(rig.failures, ["model-cut-stream"]);
    }
    let mut rig = Rig::new(vec![ended(0), cut(40), cut(before_finish)]);
    let error = rig.hello().unwrap_err();
    assert!(matches!(error, ModelError::GaveUp { attempts: 3, .. }), "{error}");
    assert_eq!(error.code(), "model-cut-stream");
}

#[test]
fn a_stream_cut_after_the_finish_reason_is_complete() {
    // A7: one call ends where the provider says why, not where the connection ends.
    let events = Turn::text("whole").chat_events();
    let finish = events.find("\"finish_reason\":\"stop\"").unwrap();
    let event_end = events.match_indices("\n\n").map(|(at, _)| at).find(|at| *at > finish).unwrap();
    for end in [event_end, event_end + 1, event_end + 2, event_end + 10] {
        for reply in [
            Reply::open_stream().then_chunk(&events.as_bytes()[..end]).then_cut(),
            Reply::stream(&[&events.as_bytes()[..end]]),
        ] {
            let mut rig = Rig::new(vec![reply]);
            assert_eq!(rig.hello().unwrap().content, "whole", "cut {} after", end - event_end);
        }
    }
}

#[test]
fn nothing_is_repeated_once_a_piece_was_shown() {
    let half = || {
        Reply::open_stream()
            .then_chunk(&Turn::text("half").chat_events().as_bytes()[..150])
            .then_cut()
    };
    let mut rig = Rig::new(vec![half(), good()]);
    rig.shown = Shown::Yes;
    assert_eq!(rig.hello().unwrap_err(), ModelError::CutStream);
    assert_eq!(rig.server.requests().len(), 1);
    let mut rig = Rig::new(vec![half(), good()]);
    assert_eq!(rig.hello().unwrap().content, "hello", "control: unshown, it is repeated");
}

#[test]
fn three_attempts_one_second_and_two_seconds_apart() {
    let mut rig = Rig::new(vec![status(500), status(503), status(529), good()]);
    let error = rig.hello().unwrap_err();
    assert!(matches!(&error, ModelError::GaveUp { attempts: 3, .. }), "{error}");
    assert_eq!(rig.delays_ms(), [1_000, 2_000]);
    assert_eq!(rig.server.requests().len(), 3);
    assert!(error.to_string().contains("gave up after 3 attempts"), "{error}");
    let mut rig = Rig::new(vec![status(500), status(408), good()]);
    assert_eq!(rig.hello().unwrap().content, "hello");
}

#[test]
fn every_transient_status_is_repeated_and_no_other() {
    for code in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
        let mut rig = Rig::new(vec![status(code), good()]);
        assert_eq!(rig.hello().unwrap().content, "hello", "{code}");
    }
    for code in [301, 307, 400, 401, 402, 403, 404, 405, 413, 422] {
        let mut rig = Rig::new(vec![status(code), good()]);
        let error = rig.hello().unwrap_err();
        assert!(matches!(&error, ModelError::Status(error) if error.status == code), "{error}");
        assert_eq!(rig.server.requests().len(), 1, "{code} is final");
    }
}

#[test]
fn no_credit_and_too_long_a_context_are_final_whatever_their_status() {
    for (code, class, kind) in [
        (429, "insufficient_quota", StatusKind::NoCredit),
        (402, "x", StatusKind::NoCredit),
        (400, "context_length_exceeded", StatusKind::ContextOverflow),
    ] {
        let document = json!({"error": {"message": "scripted", "type": class, "code": class}});
        let mut rig =
            Rig::new(vec![Reply::status(code, &[("retry-after", "1")], &document), good()]);
        let error = rig.hello().unwrap_err();
        assert!(matches!(&error, ModelError::Status(error) if error.kind == kind), "{error}");
        assert_eq!(error.is_context_overflow(), kind == StatusKind::ContextOverflow);
        assert_eq!(rig.server.requests().len(), 1);
    }
}

#[test]
fn the_servers_delay_is_kept_up_to_a_minute() {
    for (name, value, delay) in [
        ("retry-after", "5", 5_000),
        ("retry-after", "60", 60_000),
        ("retry-after", "0", 1_000),
        ("retry-after", "abc", 1_000),
        ("retry-after", "2abc", 1_000),
        ("retry-after", "-3", 1_000),
        ("retry-after", "Mon, 30 Nov 2015 18:00:30 GMT", 1_000),
        ("retry-after-ms", "1500", 1_500),
        ("retry-after-ms", "300", 1_000),
    ] {
        let document = json!({"error": "slow down"});
        let mut rig = Rig::new(vec![Reply::status(429, &[(name, value)], &document), good()]);
        assert_eq!(rig.hello().unwrap().content, "hello");
        assert_eq!(rig.delays_ms(), [delay], "{name}: {value}");
    }
    for value in ["61", "3600", "999999", "99999999999999999999", "Fri, 30 Nov 2096 18:00:30 GMT"] {
        let document = json!({"error": "slow down"});
        let mut rig =
            Rig::new(vec![Reply::status(429, &[("retry-after", value)], &document), good()]);
        let error = rig.hello().unwrap_err();
        assert!(matches!(error, ModelError::DelayTooLong { .. }), "{value}: {error}");
        assert!(error.to_string().contains("more than the limit of 60 s"), "{error}");
        assert_eq!(rig.server.requests().len(), 1);
    }
}

#[test]
fn real_delays_are_waited_and_can_be_interrupted() {
    let policy = RetryPolicy { delay: Duration::from_millis(60), ..RetryPolicy::default() };
    let rig = Rig::new(vec![status(500), good(), status(500), good()]);
    let start = Instant::now();
    let call = |abort: Abort| {
        let (policy, model) = (policy.clone(), &rig.model);
        async move {
            let listener = Listener { on_event: &mut |_| Shown::No, on_failure: &mut |_| {} };
            call_with_retry(model, &hello(), &policy, listener, &abort).await
        }
    };
    block_on(call(Abort::new())).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(60));
    let abort = Abort::new();
    let later = abort.clone();
    let result = block_on(async {
        tokio::join!(call(abort), async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            later.abort();
        })
        .0
    });
    assert_eq!(result, Err(ModelError::Aborted));
    assert_eq!(rig.server.requests().len(), 3, "no attempt after the interruption");
}

#[test]
fn an_interruption_ends_a_silent_call_at_once() {
    let rig = Rig::new(vec![good().after(Duration::from_secs(20))]);
    let abort = Abort::new();
    let later = abort.clone();
    let start = Instant::now();
    let result = block_on(async {
        let request = hello();
        let mut on_event = |_| Shown::No;
        let call = rig.model.call(&request, &mut on_event, &abort);
        tokio::join!(call, async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            later.abort();
        })
        .0
    });
    assert_eq!(result, Err(ModelError::Aborted));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn pings_are_life_and_silence_is_not() {
    let server = Server::start(vec![
        (0..8)
            .fold(Reply::open_stream(), |reply, _| {
                reply.then_chunk(b": ping\n\n").then_pause(Duration::from_millis(60))
            })
            .then_chunk(Turn::text("hello").chat_events().as_bytes())
            .then_bytes(b"0\r\n\r\n"),
        Reply::open_stream().then_chunk(b": ping\n\n").then_pause(Duration::from_secs(5)),
        good().after(Duration::from_secs(5)),
    ]);
    let table = ProviderTable::built_in().unwrap();
    let choice = ModelChoice::parse("openai/scripted").unwrap();
    let mut endpoint = table.resolve(&choice, Some(&server.base_url())).unwrap();
    endpoint.idle = Duration::from_millis(250);
    let config = ModelConfig::Http {
        endpoint: Box::new(endpoint),
        key: None,
        options: HttpOptions::default(),
    };
    let model = Model::connect(config).unwrap();
    let call = || block_on(async { model.call(&hello(), &mut |_| Shown::No, &Abort::new()).await });
    assert_eq!(call().unwrap().content, "hello");
    assert_eq!(call(), Err(ModelError::Idle(Duration::from_millis(250))));
    assert_eq!(call(), Err(ModelError::Idle(Duration::from_millis(250))), "before the headers");
}

#[test]
fn pings_without_an_answer_are_life_only_for_so_long() {
    let ping =
        |reply: Reply, _| reply.then_chunk(b": ping\n\n").then_pause(Duration::from_millis(20));
    let piece = |text: &str| {
        let piece = serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {piece}\n\n").into_bytes()
    };
    let slow = (0..12)
        .fold(Reply::open_stream(), |reply, _| (0..5).fold(reply.then_chunk(&piece("x")), ping));
    let slow = slow.then_chunk(Turn::text("end").chat_events().as_bytes());
    let flood = (0..100)
        .fold(Reply::open_stream(), |reply, _| reply.then_chunk(&b": ping\n\n".repeat(100)));
    // Without the token counts and the end that come behind the finish reason.
    let finished = Turn::text("whole").chat_events();
    let finished = finished.split("data: {\"choices\":[],").next().unwrap();
    let server = Server::start(vec![
        (0..500).fold(Reply::open_stream(), ping),
        flood.then_pause(Duration::from_secs(5)),
        slow.then_bytes(b"0\r\n\r\n"),
        (0..500).fold(Reply::open_stream().then_chunk(finished.as_bytes()), ping),
    ]);
    let table = ProviderTable::built_in().unwrap();
    let choice = ModelChoice::parse("openai/scripted").unwrap();
    let mut endpoint = table.resolve(&choice, Some(&server.base_url())).unwrap();
    endpoint.stalled = Duration::from_millis(600);
    let (key, options) = (None, HttpOptions::default());
    let config = ModelConfig::Http { endpoint: Box::new(endpoint), key, options };
    let model = Model::connect(config).unwrap();
    let call = || block_on(async { model.call(&hello(), &mut |_| Shown::No, &Abort::new()).await });
    let stalled = Err(ModelError::Stalled(Duration::from_millis(600)));
    assert_eq!(call(), stalled);
    assert_eq!(call(), stalled, "silence behind pings, too");
    assert_eq!(call().unwrap().content, format!("{}end", "x".repeat(12)), "words are progress");
    assert_eq!(call().unwrap().content, "whole", "pings behind the finish reason hold nothing up");
}

#[test]
fn empty_and_invalid_answers_are_failed_attempts() {
    let error_event = b"data: {\"error\":{\"code\":502,\"message\":\"upstream\"},\"choices\":[{\"finish_reason\":\"error\"}]}\n\n";
    for (reply, code) in [
        (Reply::chat_stream(&Turn::text("")), "model-empty"),
        (Reply::chat_stream(&Turn::text(" \n")), "model-empty"),
        (Reply::chat_stream(&Turn::text("<think>only this</think>")), "model-empty"),
        (Reply::chat_stream(&Turn::default().finish("error")), "model-finished-with-error"),
        (Reply::bytes("application/json", b"{\"choices\":[{\"mess"), "model-invalid-answer"),
        (Reply::bytes("application/json", b"{}"), "model-invalid-answer"),
        (Reply::bytes("text/html", b"<html>proxy login</html>"), "model-invalid-answer"),
        (Reply::bytes("application/json", b""), "model-invalid-answer"),
        (Reply::stream(&[b"data: {\"choices\": \xff}\n\n"]), "model-invalid-answer"),
        (Reply::stream(&[b"data: not json\n\n"]), "model-invalid-answer"),
        (Reply::stream(&[error_event]), "model-server"),
    ] {
        let mut rig = Rig::new(vec![reply, good()]);
        assert_eq!(rig.hello().unwrap().content, "hello", "{code}");
        assert_eq!(rig.failures, [code]);
    }
}

#[test]
fn an_error_with_content_is_an_answer_that_says_so() {
    let turn = Turn::text("partial").finish("error");
    let answer = Rig::new(vec![Reply::chat_stream(&turn)]).hello().unwrap();
    assert_eq!((answer.finish, answer.content.as_str()), (Finish::Error, "partial"));
    let turn = turn.call("c", "write", "{}");
    let answer = Rig::new(vec![Reply::chat_stream(&turn)]).hello().unwrap();
    assert!(!answer.may_run_calls());
    let calls_alone = Turn::default().call("c", "write", "{}").finish("error");
    let mut rig = Rig::new(vec![Reply::chat_stream(&calls_alone), good()]);
    assert_eq!(rig.hello().unwrap().content, "hello");
    assert_eq!(rig.failures, ["model-finished-with-error"]);
}

#[test]
fn a_refused_connection_says_what_to_do() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://127.0.0.1:{}/v1", listener.local_addr().unwrap().port());
    drop(listener);
    let model = connect("openai/scripted", &base_url, true).unwrap();
    let result = block_on(async { model.call(&hello(), &mut |_| Shown::No, &Abort::new()).await });
    let error = result.unwrap_err();
    assert!(matches!(error, ModelError::Connect { .. }) && error.is_retryable(), "{error}");
    assert!(error.to_string().contains("check that the server runs"), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[test]
fn error_texts_say_what_to_do_and_never_show_the_key() {
    for (code, told) in
        [(401, "OPENAI_API_KEY"), (404, "model's name"), (402, "add credit"), (302, "redirect")]
    {
        let words = format!("no: {KEY} \u{1b}[2J {}", "x".repeat(10_000));
        let reply = Reply::status(
            code,
            &[("location", "http://127.0.0.1:1/")],
            &json!({"error": {"message": words}}),
        );
        let error = Rig::new(vec![reply]).hello().unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains(told), "{text}");
        assert!(!text.contains(KEY) && text.contains("[key]"), "{text}");
        assert!(!text.contains('\u{1b}') && text.len() < 3_000, "escaped and cut: {text}");
    }
    let error = Rig::new(vec![Reply::stream(&[format!(
        "data: {}\n\n",
        json!({"error": {"message": KEY, "code": 401}})
    )
    .as_bytes()])])
    .hello()
    .unwrap_err();
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    assert!(
        !format!("{:?}", connect("openai/x", "http://127.0.0.1:1", true).unwrap()).contains(KEY)
    );
}

#[test]
fn too_much_is_refused() {
    let piece = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(1 << 20)
    );
    let pieces: Vec<&[u8]> = (0..40).map(|_| piece.as_bytes()).collect();
    let mut rig = Rig::new(vec![Reply::stream(&pieces)]);
    assert!(matches!(rig.hello(), Err(ModelError::TooLarge { what: "answer", .. })));
    let long = vec![b'x'; 1 << 20];
    let mut line = vec![b"data: ".as_slice()];
    line.extend((0..40).map(|_| long.as_slice()));
    let mut rig = Rig::new(vec![Reply::stream(&line)]);
    assert!(matches!(rig.hello(), Err(ModelError::TooLarge { what: "event", .. })));
}

#[test]
fn a_model_that_refuses_a_temperature_is_asked_without() {
    let words =
        json!({"error": {"message": "Unsupported value: 'temperature' does not support 0.1"}});
    let refusal = || Reply::status(400, &[], &words);
    let mut rig = Rig::new(vec![refusal(), good(), good(), refusal(), good()]);
    assert_eq!(rig.hello().unwrap().content, "hello");
    assert!(rig.failures.is_empty(), "it is no failed attempt");
    rig.hello().unwrap();
    assert!(rig.hello().is_err(), "once learnt, the same words are an error");
    let sent = |request: &scripted_http::Request| request.body.get("temperature").is_some();
    let sent: Vec<_> = rig.server.requests().iter().map(sent).collect();
    assert_eq!(sent, [true, false, false, false]);
}

// ---- configuration --------------------------------------------------------------------------

#[test]
fn addresses_that_would_show_the_key_are_refused() {
    for (base_url, told) in [
        ("http://example.com/v1", "plain http"),
        ("http://10.0.0.1/v1", "plain http"),
        ("http://localhost.example.com/v1", "plain http"),
        ("http://127.0.0.1.example.com/v1", "plain http"),
        ("ftp://127.0.0.1/v1", "https://"),
        ("file:///etc/passwd", "https://"),
        ("api.openai.com/v1", "is no URL"),
        ("https://user:pw@example.com/v1", "user name or password"),
        ("", "is no URL"),
    ] {
        let error = connect("openai/x", base_url, true).unwrap_err();
        assert!(error.to_string().contains(told), "{base_url}: {error}");
    }
    for base_url in
        ["http://127.0.0.1:1", "http://[::1]:1/v1/", "http://localhost:1", "https://example.com/v1"]
    {
        assert!(connect("openai/x", base_url, true).is_ok(), "{base_url}");
    }
}

#[test]
fn a_missing_key_is_told_before_anything_is_sent() {
    let table = ProviderTable::built_in().unwrap();
    let config = |choice: &str| {
        let endpoint = table.resolve(&ModelChoice::parse(choice).unwrap(), None).unwrap();
        ModelConfig::Http {
            endpoint: Box::new(endpoint),
            key: None,
            options: HttpOptions::default(),
        }
    };
    let error = Model::connect(config("openrouter/a/b")).unwrap_err();
    assert!(
        matches!(&error, ModelError::NoKey { variable, .. } if variable == "OPENROUTER_API_KEY")
    );
    assert!(error.to_string().contains("OPENROUTER_API_KEY"), "{error}");
    assert!(Model::connect(config("ollama/qwen3")).is_ok());
}
