//! OpenAI Responses, used without memory on the server's side: each request carries the whole
//! conversation, reasoning items included in their encrypted form.

use super::build::AnswerBuilder;
use super::{ErrorContext, Progress, argument_text, error_in_answer, invalid, lenient};
use crate::model::error::ModelError;
use crate::model::message::{Finish, Message, ModelRequest, Replay, Usage};
use crate::model::providers::{Endpoint, ThinkingStyle};
use crate::model::sse::SseEvent;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Path below the base URL.
pub(crate) const PATH: &str = "responses";

/// Everything but the conversation.
pub(super) fn settings(endpoint: &Endpoint, request: &ModelRequest) -> Map<String, Value> {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
    set("model", json!(endpoint.model));
    set("store", json!(false));
    set("stream", json!(endpoint.streaming));
    set("max_output_tokens", json!(request.max_tokens));
    if !request.system.is_empty() {
        set("instructions", json!(request.system));
    }
    let tools = tools(request);
    if !tools.is_empty() {
        set("tools", Value::Array(tools));
    }
    if endpoint.sends_temperature() {
        set("temperature", json!(request.temperature));
    }
    if endpoint.thinking == ThinkingStyle::Effort {
        set("include", json!(["reasoning.encrypted_content"]));
        if let Some(effort) = endpoint.effort(request.thinking) {
            set("reasoning", json!({"effort": effort}));
        }
    }
    if let Some(schema) = &request.response_schema {
        let format =
            json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": false});
        set("text", json!({"format": format}));
    }
    body
}

fn tools(request: &ModelRequest) -> Vec<Value> {
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({"type": "function", "name": tool.name, "description": tool.description,
                   "parameters": tool.parameters, "strict": false})
        })
        .collect();
    if request.native_search {
        tools.push(json!({"type": "web_search"}));
    }
    tools
}

/// The items that a message of the conversation is.
pub(super) fn items(endpoint: &Endpoint, message: &Message) -> Vec<Value> {
    match message {
        Message::User { content } => vec![json!({"role": "user", "content": content})],
        Message::Tool { call_id, name: _, content, is_error: _ } => {
            vec![json!({"type": "function_call_output", "call_id": call_id, "output": content})]
        }
        Message::Assistant { content, thinking, tool_calls } => {
            let mut items: Vec<Value> = endpoint.replays(thinking).cloned().collect();
            items.extend(content.iter().map(|text| json!({"role": "assistant", "content": text})));
            items.extend(tool_calls.iter().map(|call| {
                json!({"type": "function_call", "call_id": call.id, "name": call.name,
                       "arguments": call.arguments})
            }));
            items
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    response: Option<Document>,
    item: Option<Box<RawValue>>,
    item_id: Option<String>,
    output_index: Option<u64>,
    delta: Option<String>,
    error: Option<Value>,
    message: Option<String>,
    code: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    model: Option<String>,
    status: Option<String>,
    output: Vec<Box<RawValue>>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<Counts>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
    content: Option<Vec<Part>>,
    summary: Option<Vec<Part>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    text: Option<String>,
    refusal: Option<String>,
}

/// Reads Responses answers.
#[derive(Debug)]
pub(crate) struct ResponsesReader {
    context: ErrorContext,
    origin: String,
    /// The place of each call that has begun, by item.
    calls: BTreeMap<String, usize>,
    /// Items of which text or thinking has come in pieces.
    told: BTreeSet<String>,
    items_done: usize,
}

impl ResponsesReader {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        Self {
            context: ErrorContext::of(endpoint),
            origin: endpoint.origin(),
            calls: BTreeMap::new(),
            told: BTreeSet::new(),
            items_done: 0,
        }
    }

    pub(crate) fn event(
        &mut self,
        event: &SseEvent,
        answer: &mut AnswerBuilder,
    ) -> Result<Progress, ModelError> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(Progress::Open);
        }
        let event: Event = serde_json::from_slice(data).map_err(invalid)?;
        let key = key_of(event.output_index, event.item_id.as_deref());
        match event.kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.told.insert(key);
                answer.text(event.delta.as_deref().unwrap_or(""))?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.told.insert(key);
                answer.thinking(event.delta.as_deref().unwrap_or(""))?;
            }
            "response.function_call_arguments.delta" => {
                if let Some(place) = self.calls.get(&key) {
                    answer.extend_call(*place, "", "", event.delta.as_deref().unwrap_or(""))?;
                }
            }
            "response.output_item.added" => self.added(event.output_index, event.item, answer)?,
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.item(event.output_index, &item, answer)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.document(event.response.unwrap_or_default(), answer)?;
                return Ok(Progress::Done);
            }
            "error" => {
                let flat = json!({"message": event.message, "code": event.code});
                return Err(error_in_answer(&self.context, &event.error.unwrap_or(flat)));
            }
            _ => {}
        }
        Ok(Progress::Open)
    }

    pub(crate) fn whole(
        &mut self,
        body: &[u8],
        answer: &mut AnswerBuilder,
    ) -> Result<(), ModelError> {
        let document = serde_json::from_slice(body).map_err(invalid)?;
        self.document(document, answer)
    }

    fn document(
        &mut self,
        document: Document,
        answer: &mut AnswerBuilder,
    ) -> Result<(), ModelError> {
        if let Some(error) = document.error.filter(|error| !error.is_null()) {
            return Err(error_in_answer(&self.context, &error));
        }
        answer.set_model(document.model.as_deref().unwrap_or(""));
        // A stream has given the items already.
        if self.items_done == 0 {
            for (index, item) in (0..).zip(&document.output) {
                self.item(Some(index), item, answer)?;
            }
        }
        if let Some(counts) = document.usage {
            answer.set_usage(Usage {
                input: counts.input_tokens.unwrap_or(0),
                output: counts.output_tokens.unwrap_or(0),
                cache_read: counts
                    .input_tokens_details
                    .and_then(|details| details.cached_tokens)
                    .unwrap_or(0),
                cache_write: 0,
                estimated: false,
            });
        }
        let reason = document.incomplete_details.and_then(|details| details.reason);
        match (document.status.as_deref(), reason.as_deref()) {
            (Some("completed"), _) => answer.set_finish(Finish::Stop, "completed"),
            (Some("incomplete"), Some("max_output_tokens")) => {
                answer.set_finish(Finish::Length, "max_output_tokens");
            }
            (Some(status), reason) => answer.set_finish(Finish::Error, reason.unwrap_or(status)),
            (None, _) => {}
        }
        Ok(())
    }

    fn added(
        &mut self,
        index: Option<u64>,
        item: Option<Box<RawValue>>,
        answer: &mut AnswerBuilder,
    ) -> Result<(), ModelError> {
        let Some(item) = item else { return Ok(()) };
        let item: Item = serde_json::from_str(item.get()).map_err(invalid)?;
        if item.kind == "function_call" {
            let key = key_of(index, item.id.as_deref());
            let place = begin(&item, answer)?;
            self.calls.insert(key, place);
        }
        Ok(())
    }

    /// Takes a whole item. What has come in pieces is not told again.
    fn item(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        answer: &mut AnswerBuilder,
    ) -> Result<(), ModelError> {
        self.items_done += 1;
        let item: Item = serde_json::from_str(raw.get()).map_err(invalid)?;
        let key = key_of(index, item.id.as_deref());
        match item.kind.as_str() {
            "message" if !self.told.contains(&key) => answer.text(&texts(item.content.as_deref())),
            "function_call" => {
                let arguments =
                    item.arguments.as_deref().map_or_else(|| Ok(String::new()), argument_text)?;
                let place = match self.calls.get(&key) {
                    Some(place) => *place,
                    None => begin(&item, answer)?,
                };
                answer.set_arguments(place, &arguments)
            }
            "reasoning" => {
                if !self.told.contains(&key) {
                    answer.thinking(&texts(item.summary.as_deref()))?;
                }
                let block: Value = serde_json::from_str(raw.get()).map_err(invalid)?;
                // Without its encrypted form the item means nothing to a server that stores nothing.
                let whole = block.get("encrypted_content").is_some_and(Value::is_string);
                let replay = Replay { origin: self.origin.clone(), block };
                answer.end_thinking(Some(replay).filter(|_| whole));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn begin(item: &Item, answer: &mut AnswerBuilder) -> Result<usize, ModelError> {
    let id = item.call_id.as_deref().or(item.id.as_deref()).unwrap_or("");
    answer.begin_call(id, item.name.as_deref().unwrap_or(""))
}

/// What tells the items of one answer apart; some servers leave the index out.
fn key_of(index: Option<u64>, id: Option<&str>) -> String {
    index.map_or_else(|| id.unwrap_or("").to_owned(), |index| format!("#{index}"))
}

fn texts(parts: Option<&[Part]>) -> String {
    let parts = parts.unwrap_or_default().iter();
    parts.filter_map(|part| part.text.as_deref().or(part.refusal.as_deref())).collect()
}
