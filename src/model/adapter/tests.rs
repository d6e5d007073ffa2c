//! Recorded streams of every adapter, cut and ended at every byte.

use super::stream::StreamReader;
use crate::model::ModelError;
use crate::model::message::{Answer, Finish, Message, ModelRequest};
use crate::model::providers::{Endpoint, ModelChoice, ProviderTable};
use proptest::prelude::*;

const CHAT: &str = concat!(
    ": OPENROUTER PROCESSING\n\n",
    r#"data: {"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"<think>w漢y</think>"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"content":"é🙂"},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"p\":"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}"#,
    "\n\ndata: [DONE]\n\n",
);

const ANTHROPIC: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}"#,
    "\n\nevent: content_block_start\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"w漢y"}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":0}"#,
    "\n\nevent: content_block_start\n",
    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    "\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"é🙂"}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":1}"#,
    "\n\nevent: content_block_start\n",
    r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"read","input":{}}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"p\":1}"}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":2}"#,
    "\n\nevent: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}}"#,
    "\n\nevent: message_stop\n",
    r#"data: {"type":"message_stop"}"#,
    "\n\n",
);

const RESPONSES: &str = concat!(
    r#"data: {"type":"response.created","response":{"model":"m","status":"in_progress"}}"#,
    "\n\n",
    r#"data: {"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"w漢y"}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"text":"w漢y"}]}}"#,
    "\n\n",
    r#"data: {"type":"response.output_text.delta","output_index":1,"delta":"é🙂"}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"text":"é🙂"}]}}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","call_id":"a","name":"read","arguments":""}}"#,
    "\n\n",
    r#"data: {"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"p\":"}"#,
    "\n\n",
    r#"data: {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"a","name":"read","arguments":"{\"p\":1}"}}"#,
    "\n\n",
    r#"data: {"type":"response.completed","response":{"model":"m","status":"completed","usage":{"input_tokens":9,"output_tokens":4}}}"#,
    "\n\n",
);

const STREAMS: [(&str, &str); 3] = [
    ("openai/m", CHAT),
    ("anthropic/claude-sonnet-4-5", ANTHROPIC),
    ("openai-responses/gpt-5.1", RESPONSES),
];

fn endpoint(model: &str) -> Endpoint {
    let choice = ModelChoice::parse(model).unwrap();
    ProviderTable::built_in().unwrap().resolve(&choice, None).unwrap()
}

fn read(endpoint: &Endpoint, pieces: &[&[u8]]) -> Result<Answer, ModelError> {
    let request = ModelRequest::new("", vec![Message::user("hello")]);
    let mut stream = StreamReader::new(endpoint, 100_000);
    for piece in pieces {
        stream.push(piece)?;
    }
    stream.finish(&request, None).map(|(answer, _)| answer)
}

fn assert_whole(answer: &Answer, context: &str) {
    assert_eq!(answer.content, "é🙂", "{context}");
    assert_eq!(answer.thinking_text(), "w漢y", "{context}");
    assert_eq!(answer.finish, Finish::ToolUse, "{context}");
    let calls: Vec<_> =
        answer.tool_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("a", "{\"p\":1}")], "{context}");
}

#[test]
fn every_cut_gives_the_same_answer() {
    for (model, stream) in STREAMS {
        let endpoint = endpoint(model);
        for line_end in ["\n", "\r\n", "\r"] {
            let bytes = stream.replace('\n', line_end).into_bytes();
            let whole = read(&endpoint, &[&bytes]).unwrap();
            assert_whole(&whole, model);
            assert_eq!((whole.usage.input, whole.usage.output), (9, 4));
            for at in 0..bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(read(&endpoint, &[head, tail]).unwrap(), whole, "{model} cut at {at}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&endpoint, &single).unwrap(), whole, "{model} byte by byte");
        }
    }
}

#[test]
fn every_early_end_is_a_failure_or_the_whole_answer() {
    for (model, stream) in STREAMS {
        let endpoint = endpoint(model);
        for line_end in ["\n", "\r\n", "\r"] {
            let bytes = stream.replace('\n', line_end).into_bytes();
            let mut settled = 0;
            for end in 0..bytes.len() {
                match read(&endpoint, &[bytes.split_at(end).0]) {
                    Ok(answer) => {
                        assert_whole(&answer, &format!("{model} ended at {end}"));
                        settled += 1;
                    }
                    Err(error) => {
                        assert_eq!(error, ModelError::CutStream, "{model} ended at {end}");
                        assert_eq!(settled, 0, "once whole, it stays whole");
                    }
                }
            }
            assert!(settled > 0, "an end after the finish reason is no failure");
        }
    }
}

#[test]
fn odd_side_fields_do_not_spoil_an_answer() {
    let stream = concat!(
        r#"data: {"choices":[{"index":"0","delta":{"tool_calls":[{"index":-1,"id":7,"function":{"name":"read","arguments":"{}"}}]}}],"usage":"none"}"#,
        "\n\n",
        r#"data: {"choices":[{"index":null,"delta":{"content":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1.5}}"#,
        "\n\n",
    );
    let answer = read(&endpoint("openai/m"), &[stream.as_bytes()]).unwrap();
    assert_eq!((answer.tool_calls.len(), answer.finish), (1, Finish::ToolUse));
    assert!(answer.usage.estimated);
}

proptest! {
    #[test]
    fn damaged_streams_are_read_or_refused(
        which in 0_usize..3, at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
    ) {
        let (model, stream) = STREAMS[which];
        let mut bytes = stream.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let (head, tail) = bytes.split_at(cut.index(bytes.len()));
        let endpoint = endpoint(model);
        prop_assert_eq!(read(&endpoint, &[head, tail]), read(&endpoint, &[&bytes]));
    }
}
