//! OpenAI-compatible Chat Completions: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and the many
//! servers that speak nearly the same. Reads leniently, writes the common subset.

use super::build::AnswerBuilder;
use super::{ErrorContext, Progress, argument_text, error_in_answer, invalid, lenient};
use crate::model::error::ModelError;
use crate::model::message::{
    Finish, Message, ModelRequest, ModelToolCall, Replay, Thinking, ThinkingLevel, Usage,
};
use crate::model::providers::{Endpoint, ThinkingStyle, TokenKey};
use crate::model::sse::SseEvent;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Path below the base URL.
pub(crate) const PATH: &str = "chat/completions";

/// A message as it is written.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Written<'r> {
    Words { role: &'static str, content: &'r str },
    Result { role: &'static str, tool_call_id: &'r str, content: &'r str },
    Assistant(Value),
}

/// Everything but the conversation.
pub(super) fn settings(endpoint: &Endpoint, request: &ModelRequest) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(endpoint.model_for(request.native_search)));
    body.insert("stream".to_owned(), json!(endpoint.streaming));
    if endpoint.streaming && endpoint.stream_usage {
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), tools(request));
    }
    if endpoint.sends_temperature() {
        body.insert("temperature".to_owned(), json!(request.temperature));
    }
    let token_key = match endpoint.token_key {
        TokenKey::MaxTokens => "max_tokens",
        TokenKey::MaxCompletionTokens => "max_completion_tokens",
    };
    body.insert(token_key.to_owned(), json!(request.max_tokens));
    if let Some(schema) = &request.response_schema {
        let form =
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
        body.insert("response_format".to_owned(), form);
    }
    if request.native_search && endpoint.provider == "openrouter" {
        body.insert("plugins".to_owned(), json!([{"id": "web"}]));
    }
    add_thinking(endpoint, request.thinking, &mut body);
    body
}

fn add_thinking(endpoint: &Endpoint, level: ThinkingLevel, body: &mut Map<String, Value>) {
    let asks = level != ThinkingLevel::None;
    match endpoint.thinking {
        ThinkingStyle::Effort => {
            if let Some(effort) = endpoint.effort(level) {
                body.insert("reasoning_effort".to_owned(), json!(effort));
            }
        }
        ThinkingStyle::Reasoning if asks => {
            body.insert("reasoning".to_owned(), json!({"effort": level.as_str()}));
        }
        ThinkingStyle::Template => {
            let switch = json!({"enable_thinking": asks});
            body.insert("chat_template_kwargs".to_owned(), switch);
            if asks {
                body.insert("reasoning_effort".to_owned(), json!(level.as_str()));
            }
        }
        ThinkingStyle::Reasoning
        | ThinkingStyle::Omit
        | ThinkingStyle::Budget
        | ThinkingStyle::Adaptive => {}
    }
}

fn tools(request: &ModelRequest) -> Value {
    let tool = |tool: &crate::model::message::ToolDefinition| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        }})
    };
    Value::Array(request.tools.iter().map(tool).collect())
}

/// The message that the system prompt is.
pub(super) const fn system(content: &str) -> Written<'_> {
    Written::Words { role: "system", content }
}

/// A message of the conversation.
pub(super) fn message<'r>(endpoint: &Endpoint, message: &'r Message) -> Written<'r> {
    match message {
        Message::User { content } => Written::Words { role: "user", content },
        Message::Assistant { content, thinking, tool_calls } => {
            Written::Assistant(assistant(endpoint, content.as_deref(), thinking, tool_calls))
        }
        Message::Tool { call_id, name: _, content, is_error: _ } => {
            Written::Result { role: "tool", tool_call_id: call_id, content }
        }
    }
}

fn assistant(
    endpoint: &Endpoint,
    content: Option<&str>,
    thinking: &[Thinking],
    calls: &[ModelToolCall],
) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), json!(content));
    if !calls.is_empty() {
        let call = |call: &ModelToolCall| {
            json!({"id": call.id, "type": "function",
                   "function": {"name": call.name, "arguments": call.arguments}})
        };
        message.insert("tool_calls".to_owned(), Value::Array(calls.iter().map(call).collect()));
    }
    let details: Vec<_> = endpoint.replays(thinking).flat_map(as_list).collect();
    if !details.is_empty() {
        message.insert("reasoning_details".to_owned(), Value::Array(details));
    }
    if let Some(field) = endpoint.reasoning_field.as_ref().filter(|_| !calls.is_empty()) {
        let text: String = thinking.iter().map(|piece| piece.text.as_str()).collect();
        if !text.is_empty() {
            message.insert(field.clone(), json!(text));
        }
    }
    Value::Object(message)
}

fn as_list(block: &Value) -> Vec<Value> {
    block.as_array().cloned().unwrap_or_default()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Chunk {
    error: Option<Value>,
    choices: Option<Vec<Choice>>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<ChatUsage>,
    model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    #[serde(deserialize_with = "lenient")]
    index: Option<u64>,
    delta: Option<Body>,
    message: Option<Body>,
    finish_reason: Option<String>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<Value>,
    reasoning: Option<Value>,
    reasoning_details: Option<Vec<Value>>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Call {
    #[serde(deserialize_with = "lenient")]
    index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ChatUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

/// Whether a body is a whole message, in which each call stands once, or a piece of one.
#[derive(Debug, Clone, Copy)]
enum Whole {
    Yes,
    No,
}

/// Reads Chat Completions answers.
#[derive(Debug)]
pub(crate) struct ChatReader {
    context: ErrorContext,
    origin: String,
    details: Vec<Value>,
    /// The `index` of each call in the stream, by place.
    indexes: Vec<Option<u64>>,
}

impl ChatReader {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        Self {
            context: ErrorContext::of(endpoint),
            origin: endpoint.origin(),
            details: Vec::new(),
            indexes: Vec::new(),
        }
    }

    pub(crate) fn event(
        &mut self,
        event: &SseEvent,
        answer: &mut AnswerBuilder,
    ) -> Result<Progress, ModelError> {
        if event.data.trim_ascii().is_empty() {
            return Ok(Progress::Open);
        }
        if event.data.trim_ascii() == b"[DONE]" {
            self.end(answer);
            return Ok(Progress::Done);
        }
        self.chunk(&event.data, answer)?;
        Ok(Progress::Open)
    }

    pub(crate) fn whole(
        &mut self,
        body: &[u8],
        answer: &mut AnswerBuilder,
    ) -> Result<(), ModelError> {
        self.chunk(body, answer)?;
        self.end(answer);
        Ok(())
    }

    /// Ends the reader: hands the collected reasoning details over.
    pub(crate) fn end(&mut self, answer: &mut AnswerBuilder) {
        let details = std::mem::take(&mut self.details);
        if !details.is_empty() {
            let block = Value::Array(details);
            answer.end_thinking(Some(Replay { origin: self.origin.clone(), block }));
        }
    }

    fn chunk(&mut self, bytes: &[u8], answer: &mut AnswerBuilder) -> Result<(), ModelError> {
        let chunk: Chunk = serde_json::from_slice(bytes).map_err(invalid)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(error_in_answer(&self.context, &error));
        }
        if let Some(model) = &chunk.model {
            answer.set_model(model);
        }
        if let Some(usage) = &chunk.usage {
            answer.set_usage(usage.to_usage());
        }
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) == 0 {
                self.choice(choice, answer)?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, answer: &mut AnswerBuilder) -> Result<(), ModelError> {
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(error_in_answer(&self.context, &error));
        }
        if let Some(delta) = choice.delta {
            self.body(delta, answer, Whole::No)?;
        } else if let Some(message) = choice.message {
            self.body(message, answer, Whole::Yes)?;
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            answer.set_finish(finish_of(&reason), &reason);
        }
        Ok(())
    }

    fn body(
        &mut self,
        body: Body,
        answer: &mut AnswerBuilder,
        whole: Whole,
    ) -> Result<(), ModelError> {
        let thinking = [body.reasoning_content, body.reasoning]
            .into_iter()
            .flatten()
            .map(|value| text_of(&value))
            .find(|text| !text.is_empty());
        if let Some(text) = thinking {
            answer.thinking(&text)?;
        }
        for detail in body.reasoning_details.unwrap_or_default() {
            merge_detail(&mut self.details, detail);
        }
        if let Some(content) = &body.content {
            answer.text(&text_of(content))?;
        }
        if let Some(refusal) = &body.refusal {
            answer.text(refusal)?;
        }
        for call in body.tool_calls.unwrap_or_default() {
            self.call(call, answer, whole)?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: Call,
        answer: &mut AnswerBuilder,
        whole: Whole,
    ) -> Result<(), ModelError> {
        let id = call.id.unwrap_or_default();
        let function = call.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let arguments =
            function.arguments.map_or_else(|| Ok(String::new()), |raw| argument_text(&raw));
        let known = match whole {
            Whole::Yes => None,
            Whole::No => self.place(call.index, &id, &name, answer),
        };
        let place = match known {
            Some(place) => place,
            None => {
                self.indexes.push(call.index);
                answer.begin_call(&id, &name)?
            }
        };
        answer.extend_call(place, &id, &name, &arguments?)
    }

    /// The call that a piece continues. The index decides; but some servers give every call of a
    /// batch the same index, or none, and then another identifier beside a name is another call.
    fn place(
        &self,
        index: Option<u64>,
        id: &str,
        name: &str,
        answer: &AnswerBuilder,
    ) -> Option<usize> {
        let place = match index {
            Some(_) => self.indexes.iter().rposition(|known| *known == index)?,
            None => answer.last_call()?,
        };
        let known = answer.call_id(place);
        let another = if index.is_some() {
            !id.is_empty() && !known.is_empty() && id != known && !name.is_empty()
        } else {
            !name.is_empty() && (id.is_empty() || id != known)
        };
        (!another).then_some(place)
    }
}

impl ChatUsage {
    fn to_usage(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref();
        Usage {
            input: self.prompt_tokens.unwrap_or(0),
            output: self.completion_tokens.unwrap_or(0),
            cache_read: details
                .and_then(|details| details.cached_tokens)
                .or(self.prompt_cache_hit_tokens)
                .unwrap_or(0),
            cache_write: details.and_then(|details| details.cache_write_tokens).unwrap_or(0),
            estimated: false,
        }
    }
}

fn finish_of(reason: &str) -> Finish {
    match reason {
        "tool_calls" | "function_call" | "tool_use" => Finish::ToolUse,
        "length" | "max_tokens" | "model_length" => Finish::Length,
        "error" | "content_filter" | "network_error" => Finish::Error,
        _ => Finish::Stop,
    }
}

/// Content is a string, or a list of parts of which only the text ones are answer text.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Streamed reasoning details come in pieces; the provider wants them back whole.
fn merge_detail(details: &mut Vec<Value>, detail: Value) {
    let same = |key: &str, last: &Value| last.get(key) == detail.get(key);
    let Some(Value::Object(last)) =
        details.last_mut().filter(|last| same("type", last) && same("index", last))
    else {
        details.push(detail);
        return;
    };
    let Value::Object(detail) = detail else { return };
    for (key, value) in detail {
        match (last.get_mut(&key), value) {
            (Some(Value::String(known)), Value::String(more))
                if matches!(key.as_str(), "text" | "summary" | "data") =>
            {
                known.push_str(&more);
            }
            (Some(Value::Null) | None, value) => {
                last.insert(key, value);
            }
            (Some(_), _) => {}
        }
    }
}
