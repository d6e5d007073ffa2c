//! What scripts can do, and what is said of those that are wrong.

use super::record::script_line;
use crate::model::{
    Abort, Answer, Finish, Listener, Message, Model, ModelConfig, ModelError, ModelRequest,
    RetryPolicy, Shown, StreamEvent, Timer, ToolDefinition, call_with_retry,
};
use std::time::Duration;

fn model(text: &str) -> Model {
    let (name, text) = ("run.jsonl".to_owned(), text.to_owned());
    Model::connect(ModelConfig::Script { name, text }).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn ask(model: &Model, request: &ModelRequest) -> Result<Answer, ModelError> {
    block_on(model.call(request, &mut |_| Shown::No, &Abort::new()))
}

fn hello() -> ModelRequest {
    ModelRequest::new("", vec![Message::user("hello")])
}

fn by(agent: &str) -> ModelRequest {
    ModelRequest { agent: agent.to_owned(), ..hello() }
}

#[test]
fn turns_are_played_in_order_until_none_is_left() {
    let model = model("# comment\n\n{\"text\":\"one\"}\n{\"text\":\"two\",\"repeat\":2}\n");
    for text in ["one", "two", "two"] {
        assert_eq!(ask(&model, &hello()).unwrap().content, text);
    }
    let error = ask(&model, &hello()).unwrap_err();
    assert!(matches!(error, ModelError::ScriptExhausted { used: 3, .. }));
    assert!(!error.is_retryable() && error.to_string().contains("run.jsonl"), "{error}");
}

#[test]
fn a_turn_holds_text_thinking_and_calls_with_their_own_bytes() {
    let model = model(concat!(
        r#"{"thinking":"hm","text":"<think>so</think>let me see","calls":["#,
        r#"{"name":"read","arguments":{"path": "a",  "path":"b"}},"#,
        r#"{"id":"","name":"no such","arguments":"{\"path\": \"a"}],"usage":{"input":7,"output":3}}"#
    ));
    let answer = ask(&model, &hello()).unwrap();
    assert_eq!((answer.content.as_str(), answer.thinking_text().as_str()), ("let me see", "hmso"));
    assert_eq!(answer.finish, Finish::ToolUse);
    assert_eq!(answer.tool_calls[0].arguments, r#"{"path": "a",  "path":"b"}"#);
    assert_eq!(answer.tool_calls[0].id, "call_1_1");
    assert_eq!(answer.tool_calls[1].arguments, "{\"path\": \"a");
    assert_eq!(answer.tool_calls[1].id, "");
    assert_eq!((answer.usage.input, answer.usage.output, answer.usage.estimated), (7, 3, false));
}

#[test]
fn text_comes_in_pieces_cut_between_characters() {
    let model = model("{\"text\":\"a漢🙂b\",\"chunk\":2}");
    let mut pieces = Vec::new();
    let mut on_event = |event| {
        if let StreamEvent::TextDelta(text) = event {
            pieces.push(text);
        }
        Shown::No
    };
    block_on(model.call(&hello(), &mut on_event, &Abort::new())).unwrap();
    assert_eq!(pieces, ["a漢", "🙂", "b"]);
}

#[test]
fn failures_are_those_of_a_live_server() {
    for (line, code) in [
        (r#"{"error":{"status":401}}"#, "model-authentication"),
        (r#"{"error":{"status":429,"retry_after":"2"}}"#, "model-rate-limited"),
        (r#"{"error":{"status":429,"message":"insufficient_quota"}}"#, "model-no-credit"),
        (
            r#"{"error":{"status":400,"message":"context_length_exceeded"}}"#,
            "model-context-overflow",
        ),
        (r#"{"error":{"status":529}}"#, "model-server"),
        (r#"{"error":{"kind":"connect","message":"refused"}}"#, "model-connect"),
        (r#"{"error":{"kind":"transport"}}"#, "model-transport"),
        (r#"{"error":{"kind":"invalid_answer"}}"#, "model-invalid-answer"),
        (r#"{"error":{"kind":"idle"}}"#, "model-idle"),
        (r#"{"text":"half","cut":true}"#, "model-cut-stream"),
        ("{}", "model-empty"),
        (r#"{"finish":"error"}"#, "model-finished-with-error"),
    ] {
        let result = ask(&model(line), &hello());
        assert_eq!(result.as_ref().unwrap_err().code(), code, "{line}");
        let again = script_line("main", &result).unwrap();
        assert_eq!(ask(&model(&again), &hello()).unwrap_err().code(), code, "{again}");
    }
}

#[test]
fn failed_attempts_are_repeated_with_the_next_turns() {
    let model = model(
        "{\"error\":{\"status\":500}}\n{\"text\":\"half\",\"cut\":true}\n{\"text\":\"done\"}",
    );
    let timer = Timer::Noted(std::sync::Arc::default());
    let policy = RetryPolicy { timer: timer.clone(), ..RetryPolicy::default() };
    let mut failures = Vec::new();
    let listener = Listener {
        on_event: &mut |_| Shown::No,
        on_failure: &mut |failure| {
            failures.push((failure.attempt, failure.error.code(), failure.retry_in));
        },
    };
    let answer =
        block_on(call_with_retry(&model, &hello(), &policy, listener, &Abort::new())).unwrap();
    assert_eq!(answer.content, "done");
    let seconds = |number| Some(Duration::from_secs(number));
    assert_eq!(failures, [(1, "model-server", seconds(1)), (2, "model-cut-stream", seconds(2))]);
}

#[test]
fn expectations_make_a_script_a_test() {
    let result = |content: &str| Message::Tool {
        call_id: "c".to_owned(),
        name: "read".to_owned(),
        content: content.into(),
        is_error: false,
    };
    let assistant =
        Message::Assistant { content: None, thinking: Vec::new(), tool_calls: Vec::new() };
    let mut request = hello();
    std::sync::Arc::make_mut(&mut request.messages).extend([
        assistant,
        result("alpha"),
        result("beta \u{1b}[2J"),
    ]);
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        parameters: serde_json::json!({}),
    };
    request.tools = vec![tool("read"), tool("write")];
    for line in [
        r#"{"text":"ok","expect":"alpha"}"#,
        r#"{"text":"ok","expect":["alpha","beta"],"expect_not":"gamma"}"#,
        r#"{"text":"ok","expect_tools":["read","write"]}"#,
    ] {
        assert_eq!(ask(&model(line), &request).unwrap().content, "ok", "{line}");
    }
    for (line, told) in [
        (r#"{"text":"ok","expect":["alpha","gamma"]}"#, "expected `gamma`"),
        (r#"{"text":"ok","expect":"hello"}"#, "expected `hello`"),
        (r#"{"text":"ok","expect_not":"beta"}"#, "did not expect `beta`"),
        (r#"{"text":"ok","expect_tools":["write"]}"#, "expected the tools"),
    ] {
        let error = ask(&model(line), &request).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("run.jsonl:1: ") && text.contains(told), "{text}");
        assert!(!text.contains('\u{1b}') && !error.is_retryable());
    }
    assert!(ask(&model(r#"{"text":"ok","expect":"hello"}"#), &hello()).is_ok(), "the user's words");
}

#[test]
fn turns_can_be_kept_for_one_agent() {
    let model = model(concat!(
        "{\"text\":\"m1\"}\n{\"agent\":\"main/a\",\"text\":\"a1\"}\n",
        "{\"agent\":\"guardian\",\"text\":\"g1\"}\n{\"text\":\"m2\"}"
    ));
    for (agent, text) in [("main", "m1"), ("guardian", "g1"), ("main", "m2"), ("main/a", "a1")] {
        assert_eq!(ask(&model, &by(agent)).unwrap().content, text);
    }
    assert!(ask(&model, &by("main/a")).unwrap_err().to_string().contains("main/a"));
}

#[test]
fn wrong_scripts_are_refused_with_file_and_line() {
    for (text, told) in [
        ("", "run.jsonl: the script holds no turn"),
        ("{\"text\":\"a\"}\n{\"txt\":\"b\"}", "run.jsonl:2: column 6: unknown field `txt`"),
        ("\n\n{\"text\":", "run.jsonl:3:"),
        ("{\"text\":\"a\",\"text\":\"b\"}", "duplicate field `text`"),
        ("{\"text\":1}", "invalid type"),
        ("{\"finish\":\"end\"}", "unknown variant `end`"),
        ("{\"calls\":[{\"name\":\"x\"}]}", "missing field `arguments`"),
        ("{\"calls\":[{\"name\":\"x\",\"arguments\":{},\"input\":1}]}", "unknown field `input`"),
        ("{\"error\":{}}", "either `status` or `kind`"),
        ("{\"error\":{\"status\":200}}", "between 300 and 599"),
        ("{\"error\":{\"kind\":\"x\"}}", "unknown variant `x`"),
        ("{\"cut\":true,\"finish\":\"stop\"}", "`cut` ends the stream"),
        ("{\"repeat\":0}", "between 1 and 10000"),
        ("{\"chunk\":0}", "at least 1"),
        ("[]", "a turn is one JSON object"),
    ] {
        let config = ModelConfig::Script { name: "run.jsonl".to_owned(), text: text.to_owned() };
        let error = Model::connect(config).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn a_recorded_answer_plays_again_as_it_was() {
    let lines = [
        r#"{"thinking":"hm","text":"漢\n`<think>`","calls":[{"name":"read","arguments":{"path": "a"}}],"usage":{"input":7,"output":3,"cache_read":1,"cache_write":2}}"#,
        r#"{"calls":[{"id":"x","name":"read","arguments":"{\"a\":\n"},{"id":"x","name":"read","arguments":"{\"a\":1,\"a\":2}"}],"finish":"max_tokens"}"#,
        r#"{"text":"partial","finish":"error"}"#,
    ];
    for line in lines {
        let first = ask(&model(line), &hello()).unwrap();
        let again = script_line("main", &Ok(first.clone())).unwrap();
        assert!(!again.contains('\n'));
        assert_eq!(ask(&model(&again), &hello()).unwrap(), first, "{again}");
    }
    let answer = ask(&model(lines[2]), &hello());
    assert!(script_line("guardian", &answer).unwrap().contains(r#""agent":"guardian""#));
    assert_eq!(script_line("main", &Err(ModelError::Aborted)), None);
}

#[test]
fn a_delay_can_be_interrupted() {
    let model = model("{\"text\":\"late\",\"delay_ms\":20000}");
    let abort = Abort::new();
    abort.abort();
    let result = block_on(model.call(&hello(), &mut |_| Shown::No, &abort));
    assert_eq!(result, Err(ModelError::Aborted));
}
