//! Anthropic Messages. Thinking blocks that the provider signed go back to it unchanged; the prompt
//! is marked for its cache at the system prompt, the tools and the end of the conversation.

use super::build::AnswerBuilder;
use super::document::Part;
use super::{ErrorContext, Progress, argument_text, error_in_answer, invalid, lenient};
use crate::model::error::ModelError;
use crate::model::message::{
    Finish, Message, ModelRequest, ModelToolCall, Replay, Thinking, ThinkingLevel, Usage,
};
use crate::model::providers::{Endpoint, ThinkingStyle};
use crate::model::sse::SseEvent;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Path below the base URL.
pub(crate) const PATH: &str = "messages";
/// The protocol version that is spoken.
pub(crate) const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// Tokens that a thinking level may spend, beside those of the answer. 1,024 is the least that the
/// provider accepts.
const fn thinking_budget(level: ThinkingLevel) -> u32 {
    match level {
        ThinkingLevel::None => 0,
        ThinkingLevel::Low => 2_048,
        ThinkingLevel::Medium => 8_192,
        ThinkingLevel::High => 16_384,
    }
}

/// Everything but the conversation.
pub(super) fn settings(endpoint: &Endpoint, request: &ModelRequest) -> Map<String, Value> {
    let thinks = asks_to_think(endpoint, request);
    let mut body = Map::new();
    let mut max_tokens = request.max_tokens;
    let mut output = Map::new();
    if let Some(schema) = &request.response_schema {
        output.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    if thinks && endpoint.thinking == ThinkingStyle::Adaptive {
        body.insert("thinking".to_owned(), json!({"type": "adaptive", "display": "summarized"}));
        output.insert("effort".to_owned(), json!(request.thinking.as_str()));
    } else if thinks {
        let budget = thinking_budget(request.thinking);
        max_tokens = max_tokens.saturating_add(budget);
        body.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": budget}));
    } else if endpoint.sends_temperature() {
        // A model that thinks accepts no other temperature than its own.
        body.insert("temperature".to_owned(), json!(request.temperature));
    }
    if !output.is_empty() {
        body.insert("output_config".to_owned(), Value::Object(output));
    }
    body.insert("model".to_owned(), json!(endpoint.model));
    body.insert("max_tokens".to_owned(), json!(max_tokens));
    body.insert("stream".to_owned(), json!(endpoint.streaming));
    if !request.system.is_empty() {
        let system = json!([{"type": "text", "text": request.system, "cache_control": cached()}]);
        body.insert("system".to_owned(), system);
    }
    let tools = tools(request);
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    body
}

fn cached() -> Value {
    json!({"type": "ephemeral"})
}

/// Whether the request asks for thinking. With a budget, the provider refuses a request whose last
/// calls were made without thinking, as those of another model were.
fn asks_to_think(endpoint: &Endpoint, request: &ModelRequest) -> bool {
    if request.thinking == ThinkingLevel::None {
        return false;
    }
    match endpoint.thinking {
        ThinkingStyle::Adaptive => true,
        ThinkingStyle::Budget => {
            let last = request.messages.iter().rev().find_map(|message| match message {
                Message::Assistant { content: _, thinking, tool_calls } => {
                    Some((thinking, tool_calls))
                }
                Message::User { .. } | Message::Tool { .. } => None,
            });
            last.is_none_or(|(thinking, calls)| {
                calls.is_empty() || endpoint.replays(thinking).next().is_some()
            })
        }
        ThinkingStyle::Omit
        | ThinkingStyle::Effort
        | ThinkingStyle::Reasoning
        | ThinkingStyle::Template => false,
    }
}

fn tools(request: &ModelRequest) -> Vec<Value> {
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({"name": tool.name, "description": tool.description,
                   "input_schema": tool.parameters})
        })
        .collect();
    if request.native_search {
        tools.push(json!({"type": "web_search_20250305", "name": "web_search"}));
    }
    if let Some(Value::Object(last)) = tools.last_mut() {
        last.insert("cache_control".to_owned(), cached());
    }
    tools
}

/// How many messages from the first are followed by one of another role: neighbours of one role become
/// one message, and the last one is marked for the cache.
pub(super) fn settled(messages: &[Message]) -> usize {
    let is_assistant = |message: &Message| matches!(message, Message::Assistant { .. });
    let Some(last) = messages.last().map(is_assistant) else { return 0 };
    messages.iter().rposition(|message| is_assistant(message) != last).map_or(0, |place| place + 1)
}

/// The messages of a part of the conversation that begins where the role changes; neighbours of one
/// role become one message, which the protocol wants for results.
pub(super) fn messages(
    endpoint: &Endpoint,
    request: &ModelRequest,
    part: &[Message],
    place: Part,
) -> Vec<Value> {
    let thinks = asks_to_think(endpoint, request);
    let mut list: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in part {
        let (role, blocks) = match message {
            Message::User { content } => ("user", vec![json!({"type": "text", "text": content})]),
            Message::Tool { call_id, name: _, content, is_error } => {
                let mut block =
                    json!({"type": "tool_result", "tool_use_id": call_id, "content": content});
                if let Some(block) = block.as_object_mut().filter(|_| *is_error) {
                    block.insert("is_error".to_owned(), json!(true));
                }
                ("user", vec![block])
            }
            Message::Assistant { content, thinking, tool_calls } => {
                let thinking = if thinks { thinking.as_slice() } else { &[] };
                ("assistant", assistant(endpoint, content.as_deref(), thinking, tool_calls))
            }
        };
        match list.last_mut().filter(|(last, _)| *last == role) {
            Some((_, known)) => known.extend(blocks),
            None => list.push((role, blocks)),
        }
    }
    let last_block = list.last_mut().and_then(|(_, blocks)| blocks.last_mut());
    if let Some(Value::Object(block)) = last_block.filter(|_| place == Part::End) {
        block.insert("cache_control".to_owned(), cached());
    }
    list.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn assistant(
    endpoint: &Endpoint,
    content: Option<&str>,
    thinking: &[Thinking],
    calls: &[ModelToolCall],
) -> Vec<Value> {
    let mut blocks: Vec<Value> = endpoint.replays(thinking).cloned().collect();
    blocks.extend(content.map(|text| json!({"type": "text", "text": text})));
    blocks.extend(calls.iter().map(|call| {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    }));
    blocks
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    message: Option<Document>,
    index: u64,
    content_block: Option<Block>,
    delta: Option<Delta>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    model: Option<String>,
    content: Vec<Block>,
    stop_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

/// A content block that has begun.
#[derive(Debug)]
enum Open {
    Text,
    Thinking {
        text: String,
        signature: String,
    },
    /// The input that came with the beginning stands unless pieces follow.
    Call {
        place: usize,
        input: String,
        pieces: bool,
    },
    /// Of a kind that is nobody's business here, such as a search result.
    Other,
}

/// Reads Messages answers.
#[derive(Debug)]
pub(crate) struct AnthropicReader {
    context: ErrorContext,
    origin: String,
    open: BTreeMap<u64, Open>,
    counts: Counts,
}

impl AnthropicReader {
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        Self {
            context: ErrorContext::of(endpoint),
            origin: endpoint.origin(),
            open: BTreeMap::new(),
            counts: Counts::default(),
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
        let event: Event = serde_json::from_slice(&event.data).map_err(invalid)?;
        match event.kind.as_str() {
            "message_start" => {
                let message = event.message.unwrap_or_default();
                answer.set_model(message.model.as_deref().unwrap_or(""));
                self.count(message.usage, answer);
            }
            "content_block_start" => {
                self.start(event.index, event.content_block.unwrap_or_default(), answer)?;
            }
            "content_block_delta" => {
                self.delta(event.index, event.delta.unwrap_or_default(), answer)?;
            }
            "content_block_stop" => self.stop(event.index, answer)?,
            "message_delta" => {
                self.count(event.usage, answer);
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                finish(reason.as_deref(), answer);
            }
            "message_stop" => return Ok(Progress::Done),
            "error" => {
                let error = event.error.unwrap_or(Value::Null);
                return Err(error_in_answer(&self.context, &error));
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
        let document: Document = serde_json::from_slice(body).map_err(invalid)?;
        if let Some(error) = document.error.filter(|_| document.kind == "error") {
            return Err(error_in_answer(&self.context, &error));
        }
        answer.set_model(document.model.as_deref().unwrap_or(""));
        for (index, block) in (0..).zip(document.content) {
            self.start(index, block, answer)?;
            self.stop(index, answer)?;
        }
        self.count(document.usage, answer);
        finish(document.stop_reason.as_deref(), answer);
        Ok(())
    }

    fn start(
        &mut self,
        index: u64,
        block: Block,
        answer: &mut AnswerBuilder,
    ) -> Result<(), ModelError> {
        let open = match block.kind.as_str() {
            "text" => {
                answer.text(block.text.as_deref().unwrap_or(""))?;
                Open::Text
            }
            "thinking" => {
                let text = block.thinking.unwrap_or_default();
                answer.thinking(&text)?;
                Open::Thinking { text, signature: block.signature.unwrap_or_default() }
            }
            "redacted_thinking" => {
                let data = block.data.unwrap_or_default();
                let block = json!({"type": "redacted_thinking", "data": data});
                answer.end_thinking(None);
                answer.end_thinking(Some(Replay { origin: self.origin.clone(), block }));
                Open::Other
            }
            "tool_use" => {
                let id = block.id.unwrap_or_default();
                let place = answer.begin_call(&id, &block.name.unwrap_or_default())?;
                let input =
                    block.input.map_or_else(|| Ok(String::new()), |raw| argument_text(&raw))?;
                Open::Call { place, input, pieces: false }
            }
            _ => Open::Other,
        };
        self.open.insert(index, open);
        Ok(())
    }

    fn delta(
        &mut self,
        index: u64,
        delta: Delta,
        answer: &mut AnswerBuilder,
    ) -> Result<(), ModelError> {
        match self.open.get_mut(&index) {
            Some(Open::Text) => answer.text(delta.text.as_deref().unwrap_or("")),
            Some(Open::Thinking { text, signature }) => {
                let piece = delta.thinking.unwrap_or_default();
                text.push_str(&piece);
                signature.push_str(delta.signature.as_deref().unwrap_or(""));
                answer.thinking(&piece)
            }
            Some(Open::Call { place, input: _, pieces }) => {
                let piece = delta.partial_json.unwrap_or_default();
                *pieces |= !piece.is_empty();
                answer.extend_call(*place, "", "", &piece)
            }
            Some(Open::Other) | None => Ok(()),
        }
    }

    fn stop(&mut self, index: u64, answer: &mut AnswerBuilder) -> Result<(), ModelError> {
        match self.open.remove(&index) {
            Some(Open::Thinking { text, signature }) => {
                let block = json!({"type": "thinking", "thinking": text, "signature": signature});
                let replay = Replay { origin: self.origin.clone(), block };
                answer.end_thinking(Some(replay).filter(|_| !signature.is_empty()));
                Ok(())
            }
            Some(Open::Call { place, input, pieces: false }) => answer.set_arguments(place, &input),
            Some(Open::Text | Open::Call { .. } | Open::Other) | None => Ok(()),
        }
    }

    /// Later numbers are running totals; a gateway may send zeros first and the truth last.
    fn count(&mut self, counts: Option<Counts>, answer: &mut AnswerBuilder) {
        let Some(counts) = counts else { return };
        let later = |new: Option<u64>, known: Option<u64>| new.filter(|new| *new > 0).or(known);
        self.counts = Counts {
            input_tokens: later(counts.input_tokens, self.counts.input_tokens),
            output_tokens: later(counts.output_tokens, self.counts.output_tokens),
            cache_read_input_tokens: later(
                counts.cache_read_input_tokens,
                self.counts.cache_read_input_tokens,
            ),
            cache_creation_input_tokens: later(
                counts.cache_creation_input_tokens,
                self.counts.cache_creation_input_tokens,
            ),
        };
        let cache_read = self.counts.cache_read_input_tokens.unwrap_or(0);
        let cache_write = self.counts.cache_creation_input_tokens.unwrap_or(0);
        let fresh = self.counts.input_tokens.unwrap_or(0);
        answer.set_usage(Usage {
            // This provider counts the three apart; ours is their sum.
            input: fresh.saturating_add(cache_read).saturating_add(cache_write),
            output: self.counts.output_tokens.unwrap_or(0),
            cache_read,
            cache_write,
            estimated: false,
        });
    }
}

fn finish(reason: Option<&str>, answer: &mut AnswerBuilder) {
    let Some(reason) = reason else { return };
    let finish = match reason {
        "tool_use" => Finish::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Error,
        _ => Finish::Stop,
    };
    answer.set_finish(finish, reason);
}
