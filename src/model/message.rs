//! The one form in which a conversation, a request and an answer exist inside stoplog.
//!
//! Adapters translate it to and from what a provider speaks; nothing above `model` ever sees a
//! provider's own form. The types are plain data: no IO, no decisions.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One message of a conversation. Its text is shared: a conversation is taken into every request anew,
/// and is not copied for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// What a person, or the host in a person's place, said.
    User {
        /// The text.
        content: Arc<str>,
    },
    /// What the model said.
    Assistant {
        /// Answer text without think blocks; `None` if there was none.
        content: Option<Arc<str>>,
        /// What the model thought, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        thinking: Vec<Thinking>,
        /// The calls it asked for, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ModelToolCall>,
    },
    /// The result of one call.
    Tool {
        /// The call's identifier as the model gave it; not unique.
        call_id: String,
        /// The tool's name as the model gave it.
        name: String,
        /// The result text.
        content: Arc<str>,
        /// Whether the result is a refusal or a failure.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl Message {
    /// A user message.
    #[must_use]
    pub fn user(content: impl Into<Arc<str>>) -> Self {
        Self::User { content: content.into() }
    }

    /// Bytes of text that the model reads.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::User { content } | Self::Tool { content, .. } => content.len(),
            Self::Assistant { content, thinking: _, tool_calls } => {
                let calls = tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
                content.as_ref().map_or(0, |text| text.len()) + calls.sum::<usize>()
            }
        }
    }
}

/// A call as the model asked for it, not yet checked in any way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelToolCall {
    /// The provider's identifier; perhaps empty, perhaps used twice.
    pub id: String,
    /// The tool's name, as given.
    pub name: String,
    /// The argument text exactly as the model sent it: what is parsed, hashed and logged.
    pub arguments: String,
}

/// A piece of thinking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thinking {
    /// The text; empty if the provider hides it.
    pub text: String,
    /// The provider's own block, which some providers want back unchanged in the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
}

/// A provider's block that goes back to the same adapter and model only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// `ADAPTER:MODEL` that produced the block.
    pub origin: String,
    /// The block as it came.
    pub block: Value,
}

/// A tool as it is described to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

impl ToolDefinition {
    /// Bytes of text that the model reads.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.parameters.to_string().len()
    }
}

/// How much the model is asked to think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// Not at all, where the provider lets us say so.
    #[default]
    None,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl ThinkingLevel {
    /// The word that configuration files and most providers use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Reads the word that `as_str` writes.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::None, Self::Low, Self::Medium, Self::High]
            .into_iter()
            .find(|level| level.as_str() == word)
    }
}

/// How the model asks for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallStyle {
    /// In the provider's own form.
    #[default]
    Native,
    /// In one JSON document that is the whole answer, for models without a form of their own.
    Json,
}

/// Everything one model call depends on. The call keeps no memory of earlier ones.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// Who asks: `main`, the path of sub-agents, or `guardian`. Selects turns of a script.
    pub agent: String,
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation, normalised (see [`mod@crate::model::normalise`]). Shared with the history that
    /// it grows in.
    pub messages: Arc<Vec<Message>>,
    /// The tools the model may ask for, in the order in which they are sent.
    pub tools: Vec<ToolDefinition>,
    /// Sampling temperature; left out for models that refuse it.
    pub temperature: f64,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// How much to think.
    pub thinking: ThinkingLevel,
    /// How the model asks for calls.
    pub tool_calls: ToolCallStyle,
    /// If given, the answer must be one JSON value of this schema.
    pub response_schema: Option<Value>,
    /// Whether the provider may search the web by itself. Off strips such a search from the request.
    pub native_search: bool,
}

impl ModelRequest {
    /// A request with the default numbers of `base::limits`.
    #[must_use]
    pub fn new(system: impl Into<String>, messages: impl Into<Arc<Vec<Message>>>) -> Self {
        Self {
            agent: "main".to_owned(),
            system: system.into(),
            messages: messages.into(),
            tools: Vec::new(),
            temperature: crate::base::limits::TEMPERATURE,
            max_tokens: crate::base::limits::OUTPUT_TOKENS_MAX,
            thinking: ThinkingLevel::None,
            tool_calls: ToolCallStyle::Native,
            response_schema: None,
            native_search: false,
        }
    }

    /// Bytes of text that the model reads.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let messages = self.messages.iter().map(Message::bytes);
        let tools = self.tools.iter().map(ToolDefinition::bytes);
        self.system.len() + messages.sum::<usize>() + tools.sum::<usize>()
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model had said what it wanted to say.
    Stop,
    /// The model wants tool results.
    ToolUse,
    /// The token limit cut the answer; its calls must not run.
    #[serde(rename = "max_tokens")]
    Length,
    /// The provider broke off or refused, after some content.
    Error,
}

impl Finish {
    /// The word in records and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolUse => "tool_use",
            Self::Length => "max_tokens",
            Self::Error => "error",
        }
    }
}

/// Tokens of one or more answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// All input tokens, those read from or written to a cache included.
    pub input: u64,
    /// All output tokens, thinking included.
    pub output: u64,
    /// Input tokens that came from the provider's cache.
    pub cache_read: u64,
    /// Input tokens that were put into the provider's cache.
    pub cache_write: u64,
    /// Whether the provider reported nothing, so that the numbers are a quarter of the bytes.
    pub estimated: bool,
}

impl Usage {
    /// The sum of both, for totals.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            estimated: self.estimated || other.estimated,
        }
    }
}

/// A complete answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Text for the user, rid of think blocks.
    pub content: String,
    /// What the model thought.
    pub thinking: Vec<Thinking>,
    /// The calls it asks for, in order.
    pub tool_calls: Vec<ModelToolCall>,
    /// Why it ended.
    pub finish: Finish,
    /// The provider's own word for why it ended.
    pub finish_detail: String,
    /// What it cost.
    pub usage: Usage,
    /// The model that answered, as the provider names it; empty if it does not.
    pub model: String,
}

impl Answer {
    /// The thinking as one text.
    #[must_use]
    pub fn thinking_text(&self) -> String {
        let texts: Vec<_> = self.thinking.iter().map(|piece| piece.text.as_str()).collect();
        texts.join("")
    }

    /// Whether the calls may run: those of a cut or broken answer may lack what matters.
    #[must_use]
    pub fn may_run_calls(&self) -> bool {
        self.finish == Finish::ToolUse
    }

    /// The message that goes into the conversation.
    #[must_use]
    pub fn to_message(&self) -> Message {
        Message::Assistant {
            content: (!self.content.is_empty()).then(|| self.content.as_str().into()),
            thinking: self.thinking.clone(),
            tool_calls: self.tool_calls.clone(),
        }
    }
}

/// What is told while an answer arrives. The [`Answer`] is what counts; these are for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEvent {
    /// More answer text.
    TextDelta(String),
    /// More thinking.
    ThinkingDelta(String),
    /// The model has begun to ask for a call of this name; its arguments are still arriving.
    CallStarted(String),
}

/// What became of an event: a failed attempt may be repeated only while nothing has been shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// A person or another program has seen it.
    Yes,
    /// It was dropped or kept back.
    No,
}
