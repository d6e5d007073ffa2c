//! Tool calls for models and servers that have none of their own: the model answers with one JSON
//! document that names its calls, and a schema holds it to that form.
//!
//! Two pure halves: `encode` turns a request with tools into one without, `decode` turns the document
//! back into text and calls. Argument bytes are kept as the model wrote them.

use crate::model::adapter::invalid;
use crate::model::error::ModelError;
use crate::model::message::{
    Answer, Finish, Message, ModelRequest, ModelToolCall, ToolCallStyle, ToolDefinition,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// `request` for a model without tool calls of its own.
pub(crate) fn encode(request: &ModelRequest) -> ModelRequest {
    let mut encoded = request.clone();
    encoded.tool_calls = ToolCallStyle::Native;
    encoded.response_schema = Some(schema(&request.tools));
    encoded.system = format!("{}\n\n{}", request.system, instructions(&request.tools));
    encoded.tools = Vec::new();
    encoded.messages = Arc::new(request.messages.iter().map(plain).collect());
    encoded
}

/// Calls of one answer: a small model that has begun to repeat a call would otherwise do so to the token
/// limit, where all of them are lost.
const CALLS_MAX: usize = 4;

fn instructions(tools: &[ToolDefinition]) -> String {
    let mut text = String::from(
        "Answer with exactly one JSON object of the form \
         {\"text\": \"…\", \"calls\": [{\"name\": \"…\", \"arguments\": {…}}]} and nothing else. \
         `text` is for the user. `calls` lists the tools to run, in order; it is empty when the work \
         is done. Tools:",
    );
    for tool in tools {
        let line = json!({"name": tool.name, "description": tool.description,
                          "arguments": tool.parameters});
        text.push('\n');
        text.push_str(&line.to_string());
    }
    text
}

/// The schema of an answer: text, and calls of which each has the arguments of its own tool.
fn schema(tools: &[ToolDefinition]) -> Value {
    let mut definitions = Map::new();
    let calls: Vec<Value> = tools.iter().map(|tool| call_schema(tool, &mut definitions)).collect();
    let items = if calls.is_empty() { json!(false) } else { json!({ "anyOf": calls }) };
    let calls = json!({"type": "array", "items": items, "maxItems": CALLS_MAX});
    let mut schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "calls": calls},
        "required": ["text", "calls"],
        "additionalProperties": false,
    });
    if let Some(root) = schema.as_object_mut().filter(|_| !definitions.is_empty()) {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

fn call_schema(tool: &ToolDefinition, definitions: &mut Map<String, Value>) -> Value {
    let mut arguments = tool.parameters.clone();
    rename_references(&mut arguments, &tool.name);
    if let Some(object) = arguments.as_object_mut() {
        object.remove("$schema");
        if let Some(Value::Object(own)) = object.remove("$defs") {
            definitions.extend(
                own.into_iter().map(|(name, value)| (format!("{}_{name}", tool.name), value)),
            );
        }
    }
    json!({
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": false,
    })
}

/// References of a tool's schema point to its own root; in the answer's schema the definitions of
/// all tools stand side by side.
fn rename_references(schema: &mut Value, tool: &str) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                let definition = value
                    .as_str()
                    .filter(|_| key == "$ref")
                    .and_then(|to| to.strip_prefix("#/$defs/"));
                if let Some(name) = definition {
                    *value = json!(format!("#/$defs/{tool}_{name}"));
                } else {
                    rename_references(value, tool);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_references(item, tool)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A message without calls and results: calls are the document that the model had written, results
/// are told by the user.
fn plain(message: &Message) -> Message {
    match message {
        Message::User { content } => Message::user(content.clone()),
        Message::Assistant { content, thinking, tool_calls } => {
            let calls: Vec<Value> = tool_calls
                .iter()
                .map(|call| {
                    let arguments: Value =
                        serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
                    json!({"name": call.name, "arguments": arguments})
                })
                .collect();
            let document = json!({"text": content.as_deref().unwrap_or(""), "calls": calls});
            Message::Assistant {
                content: Some(document.to_string().into()),
                thinking: thinking.clone(),
                tool_calls: Vec::new(),
            }
        }
        Message::Tool { call_id: _, name, content, is_error } => {
            let outcome = if *is_error { "error of" } else { "result of" };
            Message::user(format!("[{outcome} {name}]\n{content}"))
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<Call>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    arguments: Box<RawValue>,
}

/// The answer that a document stands for.
///
/// # Errors
/// [`ModelError::InvalidAnswer`] if it is none, [`ModelError::Empty`] if it says nothing. A document
/// that the token limit cut stays text without calls.
pub(crate) fn decode(mut answer: Answer) -> Result<Answer, ModelError> {
    let document: Document = match serde_json::from_str(without_fence(&answer.content)) {
        Ok(document) => document,
        Err(_) if matches!(answer.finish, Finish::Length | Finish::Error) => return Ok(answer),
        Err(error) => return Err(invalid(format!("no document of text and calls: {error}"))),
    };
    answer.content = document.text;
    answer.tool_calls = (1..)
        .zip(document.calls)
        .map(|(number, call)| ModelToolCall {
            id: format!("json_{number}"),
            name: call.name,
            arguments: call.arguments.get().to_owned(),
        })
        .collect();
    match (answer.finish, answer.tool_calls.is_empty()) {
        (Finish::Stop, false) => answer.finish = Finish::ToolUse,
        (Finish::Stop | Finish::ToolUse, true) if answer.content.trim().is_empty() => {
            return Err(ModelError::Empty);
        }
        (Finish::Stop | Finish::ToolUse | Finish::Length | Finish::Error, _) => {}
    }
    Ok(answer)
}

/// Servers that do not enforce the schema let models wrap the document in a Markdown fence.
fn without_fence(content: &str) -> &str {
    let content = content.trim();
    let inner = content.strip_prefix("```json").or_else(|| content.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).unwrap_or(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::Usage;

    fn answer(content: &str, finish: Finish) -> Answer {
        Answer {
            content: content.to_owned(),
            thinking: Vec::new(),
            tool_calls: Vec::new(),
            finish,
            finish_detail: String::new(),
            usage: Usage::default(),
            model: String::new(),
        }
    }

    fn tool(name: &str, parameters: Value) -> ToolDefinition {
        ToolDefinition { name: name.to_owned(), description: "d".to_owned(), parameters }
    }

    #[test]
    fn a_document_becomes_text_and_calls_with_their_own_bytes() {
        let content =
            r#"{"text":"so","calls":[{"name":"read","arguments":{"path": "a",  "path":"b"}}]}"#;
        for content in [content.to_owned(), format!("```json\n{content}\n```")] {
            let answer = decode(answer(&content, Finish::Stop)).unwrap();
            assert_eq!((answer.content.as_str(), answer.finish), ("so", Finish::ToolUse));
            assert_eq!(answer.tool_calls[0].arguments, r#"{"path": "a",  "path":"b"}"#);
        }
        let done = decode(answer(r#"{"text":"done","calls":[]}"#, Finish::Stop)).unwrap();
        assert_eq!((done.content.as_str(), done.finish), ("done", Finish::Stop));
    }

    #[test]
    fn what_is_no_document_is_a_failed_attempt_unless_it_was_cut() {
        for content in
            ["plain words", "{\"text\":1}", "{\"calls\":[{\"name\":\"x\"}]}", "{\"txt\":\"\"}"]
        {
            let error = decode(answer(content, Finish::Stop)).unwrap_err();
            assert!(matches!(error, ModelError::InvalidAnswer { .. }) && error.is_retryable());
        }
        assert_eq!(
            decode(answer(r#"{"text":" ","calls":[]}"#, Finish::Stop)),
            Err(ModelError::Empty)
        );
        let cut = decode(answer(r#"{"text":"a","calls":[{"na"#, Finish::Length)).unwrap();
        assert!(cut.tool_calls.is_empty() && cut.finish == Finish::Length);
        let whole = r#"{"text":"a","calls":[{"name":"read","arguments":{}}]}"#;
        let cut = decode(answer(whole, Finish::Length)).unwrap();
        assert_eq!(cut.finish, Finish::Length, "calls of a cut answer stay marked as cut");
    }

    #[test]
    fn definitions_of_all_tools_stand_side_by_side() {
        let parameters = json!({"$schema": "x", "type": "object", "$defs": {"A": {"type": "string"}},
            "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"anyOf": [{"$ref": "#/$defs/A"}]}}});
        let schema = schema(&[tool("read", parameters.clone()), tool("edit", parameters)]);
        let text = schema.to_string();
        assert!(!text.contains("$schema") && !text.contains("#/$defs/A"), "{text}");
        for pointer in ["/$defs/read_A", "/$defs/edit_A"] {
            assert_eq!(schema.pointer(pointer), Some(&json!({"type": "string"})));
        }
        let reference = "/properties/calls/items/anyOf/1/properties/arguments/properties/a/$ref";
        assert_eq!(schema.pointer(reference), Some(&json!("#/$defs/edit_A")));
    }

    #[test]
    fn a_request_loses_its_tools_but_not_what_was_said() {
        let mut request = ModelRequest::new("be brief", vec![Message::user("go")]);
        request.tools = vec![tool("read", json!({"type": "object"}))];
        Arc::make_mut(&mut request.messages).push(Message::Assistant {
            content: None,
            thinking: Vec::new(),
            tool_calls: vec![ModelToolCall {
                id: "c".into(),
                name: "read".into(),
                arguments: "{\"path\":\"a\"}".into(),
            }],
        });
        Arc::make_mut(&mut request.messages).push(Message::Tool {
            call_id: "c".into(),
            name: "read".into(),
            content: "text of a".into(),
            is_error: false,
        });
        let encoded = encode(&request);
        assert!(encoded.tools.is_empty() && encoded.response_schema.is_some());
        assert!(encoded.system.starts_with("be brief") && encoded.system.contains("\"read\""));
        let said = format!("{:?}", encoded.messages);
        assert!(said.contains("text of a") && said.contains("[result of read]"), "{said}");
        assert!(encoded.messages.iter().all(|message| !matches!(message, Message::Tool { .. })));
    }
}
