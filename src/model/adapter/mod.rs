//! What differs between providers: how a request is written and how an answer is read.
//!
//! An adapter is two pure halves, what [`document`] puts together (request to JSON) and a reader (events or a whole JSON
//! document into an [`build::AnswerBuilder`]). Neither does IO; `http` moves the bytes.

pub(crate) mod anthropic;
pub(crate) mod build;
pub(crate) mod chat;
pub(crate) mod document;
pub(crate) mod responses;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

use crate::base::secret::Secret;
use crate::model::error::{ModelError, StatusError, StatusKind};
use crate::model::providers::{AdapterKind, Endpoint};
use crate::model::sse::SseEvent;
use build::AnswerBuilder;
use serde_json::Value;
use serde_json::value::RawValue;

/// Whether the stream goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to come.
    Open,
    /// The provider said that this was all.
    Done,
}

/// The path of the calls below the base URL.
pub(crate) const fn path(adapter: AdapterKind) -> &'static str {
    match adapter {
        AdapterKind::Chat => chat::PATH,
        AdapterKind::Anthropic => anthropic::PATH,
        AdapterKind::Responses => responses::PATH,
    }
}

/// The header that every request of an adapter carries.
pub(crate) const fn fixed_header(adapter: AdapterKind) -> Option<(&'static str, &'static str)> {
    match adapter {
        AdapterKind::Anthropic => Some(anthropic::VERSION),
        AdapterKind::Chat | AdapterKind::Responses => None,
    }
}

/// The header that carries the key.
pub(crate) fn key_header(adapter: AdapterKind, key: &Secret) -> (&'static str, String) {
    match adapter {
        AdapterKind::Chat | AdapterKind::Responses => {
            ("authorization", format!("Bearer {}", key.expose()))
        }
        AdapterKind::Anthropic => ("x-api-key", key.expose().to_owned()),
    }
}

/// Reads one provider's answers.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Chat Completions.
    Chat(chat::ChatReader),
    /// Messages.
    Anthropic(anthropic::AnthropicReader),
    /// Responses.
    Responses(responses::ResponsesReader),
}

impl Reader {
    /// A reader at the start of an answer.
    pub(crate) fn new(endpoint: &Endpoint) -> Self {
        match endpoint.adapter {
            AdapterKind::Chat => Self::Chat(chat::ChatReader::new(endpoint)),
            AdapterKind::Anthropic => Self::Anthropic(anthropic::AnthropicReader::new(endpoint)),
            AdapterKind::Responses => Self::Responses(responses::ResponsesReader::new(endpoint)),
        }
    }

    /// Takes one event of a stream.
    pub(crate) fn event(
        &mut self,
        event: &SseEvent,
        answer: &mut AnswerBuilder,
    ) -> Result<Progress, ModelError> {
        match self {
            Self::Chat(reader) => reader.event(event, answer),
            Self::Anthropic(reader) => reader.event(event, answer),
            Self::Responses(reader) => reader.event(event, answer),
        }
    }

    /// Ends the answer, whether or not the provider did.
    pub(crate) fn end(&mut self, answer: &mut AnswerBuilder) {
        match self {
            Self::Chat(reader) => reader.end(answer),
            Self::Anthropic(_) | Self::Responses(_) => {}
        }
    }

    /// Takes a whole answer.
    pub(crate) fn whole(
        &mut self,
        body: &[u8],
        answer: &mut AnswerBuilder,
    ) -> Result<(), ModelError> {
        match self {
            Self::Chat(reader) => reader.whole(body, answer),
            Self::Anthropic(reader) => reader.whole(body, answer),
            Self::Responses(reader) => reader.whole(body, answer),
        }
    }
}

/// The text of an error document in any of the forms that servers use, and its type or code.
pub(crate) fn error_words(document: &Value) -> (String, String) {
    let error = document.get("error").unwrap_or(document);
    if let Some(text) = error.as_str() {
        return (text.to_owned(), String::new());
    }
    let text_at = |key: &str| match error.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
            String::new()
        }
    };
    let mut message = text_at("message");
    if message.is_empty() {
        message = text_at("detail");
    }
    // OpenRouter wraps the words of the provider behind it.
    if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
        message = format!("{message} ({raw})");
    }
    (message, format!("{} {}", text_at("type"), text_at("code")))
}

/// An error that came as an event of a stream or in a document with status 200.
pub(crate) fn error_in_answer(endpoint_name: &ErrorContext, document: &Value) -> ModelError {
    let (message, class) = error_words(document);
    let status = class
        .split_whitespace()
        .find_map(|word| word.parse().ok().filter(|status| (400..600).contains(status)))
        .unwrap_or_else(|| status_of_class(&class));
    endpoint_name.status_error(status, &message, &class, None)
}

/// The status that an error type stands for when it comes without one.
fn status_of_class(class: &str) -> u16 {
    let says = |marker: &str| class.contains(marker);
    if says("overloaded") {
        529
    } else if says("rate_limit") {
        429
    } else if says("authentication") || says("invalid_api_key") {
        401
    } else if says("permission") {
        403
    } else if says("billing") || says("insufficient_quota") {
        402
    } else if says("not_found") {
        404
    } else if says("invalid_request") || says("context_length") || says("invalid_prompt") {
        400
    } else {
        500
    }
}

/// What an error text needs to know about the endpoint.
#[derive(Debug, Clone)]
pub(crate) struct ErrorContext {
    /// The provider's name.
    pub(crate) provider: String,
    /// The variable of its key.
    pub(crate) key_variable: Option<String>,
}

impl ErrorContext {
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        Self { provider: endpoint.provider.clone(), key_variable: endpoint.key_variable.clone() }
    }

    pub(crate) fn status_error(
        &self,
        status: u16,
        message: &str,
        class: &str,
        retry_after: Option<std::time::Duration>,
    ) -> ModelError {
        ModelError::Status(StatusError {
            status,
            kind: StatusKind::of(status, &format!("{message} {class}")),
            message: build::bounded(message.trim()),
            retry_after,
            provider: self.provider.clone(),
            key_variable: self.key_variable.clone(),
        })
    }
}

/// A document that is not of the protocol's form.
pub(crate) fn invalid(problem: impl std::fmt::Display) -> ModelError {
    ModelError::InvalidAnswer { problem: build::bounded(&problem.to_string()) }
}

/// Arguments are JSON in a string; some servers send the JSON itself, whose bytes are then kept.
pub(crate) fn argument_text(raw: &RawValue) -> Result<String, ModelError> {
    let text = raw.get();
    if text.starts_with('"') {
        return serde_json::from_str(text).map_err(invalid);
    }
    Ok(if text == "null" { String::new() } else { text.to_owned() })
}

/// Reads a field that no answer should fail for: what does not fit is as good as absent.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = <Value as serde::Deserialize>::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}
