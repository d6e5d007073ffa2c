//! What one call needs to know of its model and provider: plain data, found by the provider table and
//! read by the adapters.

use super::names::bare_name;
use crate::base::dollars::Dollars;
use crate::model::message::{Thinking, ThinkingLevel, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdapterKind {
    /// OpenAI-compatible Chat Completions.
    Chat,
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    Responses,
}

impl AdapterKind {
    /// The word in configuration files and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
        }
    }
}

/// How a thinking level is written into a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingStyle {
    /// Not at all.
    Omit,
    /// `reasoning_effort` (Chat Completions) or `reasoning.effort` (Responses).
    Effort,
    /// OpenRouter's `reasoning` object.
    Reasoning,
    /// `chat_template_kwargs.enable_thinking`, for servers that render a chat template.
    Template,
    /// Anthropic: `thinking` with a token budget.
    Budget,
    /// Anthropic: `thinking` of type `adaptive` with an effort.
    Adaptive,
}

/// The name of the key that bounds the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKey {
    /// The older name, which most servers know.
    MaxTokens,
    /// `OpenAI`'s newer name, the only one that its reasoning models accept.
    MaxCompletionTokens,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that came from no cache.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the cache; default as `input`.
    pub cache_read: Option<f64>,
    /// Input written to the cache; default as `input`.
    pub cache_write: Option<f64>,
}

impl Price {
    /// What `usage` costs.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    pub fn cost(&self, usage: &Usage) -> Dollars {
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        let parts = [
            (usage.input.saturating_sub(cached), self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write, self.cache_write.unwrap_or(self.input)),
        ];
        Dollars::at_least(
            parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum::<f64>() / 1e6,
        )
    }
}

/// A model of a provider, with everything that a call needs but the key.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// The provider's name.
    pub provider: String,
    /// The model's name, as the provider knows it.
    pub model: String,
    /// How it is spoken to.
    pub adapter: AdapterKind,
    /// Address below which the adapter's path lies.
    pub base_url: String,
    /// Environment variable of the key, for messages.
    pub key_variable: Option<String>,
    /// Whether a call without a key is refused.
    pub key_required: bool,
    /// Further request headers.
    pub headers: BTreeMap<String, String>,
    /// Whether answers are streamed.
    pub streaming: bool,
    /// Whether a streamed request asks for token counts.
    pub stream_usage: bool,
    /// How the answer's length is bounded.
    pub token_key: TokenKey,
    /// How a thinking level is written.
    pub thinking: ThinkingStyle,
    /// Whether the model accepts a temperature.
    pub temperature: Temperature,
    /// Message field in which thinking goes back.
    pub reasoning_field: Option<String>,
    /// Silence after which an attempt fails.
    pub idle: Duration,
    /// Time with signs of life and nothing of an answer after which an attempt fails; at least `idle`.
    pub stalled: Duration,
    /// Tokens of the model's window, if known.
    pub context_window: Option<u64>,
    /// The model's price, if known.
    pub price: Option<Price>,
}

/// Whether a model accepts a temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temperature {
    /// It does.
    Send,
    /// It refuses one.
    Omit,
}

impl Endpoint {
    /// `ADAPTER:PROVIDER/MODEL`: what produced a block of thinking, and what may get it back.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}:{}/{}", self.adapter.as_str(), self.provider, self.model)
    }

    /// The blocks of `thinking` that came from here and go back unchanged.
    pub(crate) fn replays<'a>(&self, thinking: &'a [Thinking]) -> impl Iterator<Item = &'a Value> {
        let origin = self.origin();
        thinking
            .iter()
            .filter_map(|piece| piece.replay.as_ref())
            .filter(move |replay| replay.origin == origin)
            .map(|replay| &replay.block)
    }

    /// Whether a temperature goes into requests.
    pub(crate) fn sends_temperature(&self) -> bool {
        self.temperature == Temperature::Send
    }

    /// The model's name in a request. OpenRouter's `:online` suffix makes the provider search the
    /// web by itself; it goes unless that is allowed.
    pub(crate) fn model_for(&self, native_search: bool) -> &str {
        if native_search { &self.model } else { self.without_search().unwrap_or(&self.model) }
    }

    /// Whether the model's name asks for a search by the provider, which a request without
    /// `native_search` takes away. The caller records that.
    #[must_use]
    pub fn names_native_search(&self) -> bool {
        self.without_search().is_some()
    }

    fn without_search(&self) -> Option<&str> {
        if self.provider == "openrouter" { self.model.strip_suffix(":online") } else { None }
    }

    /// The effort word for `level`; `None` leaves the model its default.
    pub(crate) fn effort(&self, level: ThinkingLevel) -> Option<&'static str> {
        if level != ThinkingLevel::None {
            return Some(level.as_str());
        }
        // Without a word these think at medium effort; `minimal` is the least they accept.
        let name = bare_name(&self.model);
        let minimal =
            name == "gpt-5" || name.starts_with("gpt-5-mini") || name.starts_with("gpt-5-nano");
        minimal.then_some("minimal")
    }
}
