//! What was changed in a history before it was sent, and the words for it.

#[cfg(doc)]
use super::MISSING_RESULT;
use serde::Serialize;
use std::fmt;

/// One change that was made to what is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "repair", rename_all = "snake_case")]
pub enum Repair {
    /// A call had no result and got [`MISSING_RESULT`].
    MissingResult {
        /// Place of the assistant message in the history.
        message: usize,
        /// Index of the call in it.
        call: usize,
    },
    /// A result belonged to no call and was left out.
    OrphanResult {
        /// Place of the result.
        message: usize,
    },
    /// A result stood apart from its call and was moved behind it.
    MovedResult {
        /// Place of the result.
        message: usize,
    },
    /// An assistant message without text and calls was left out.
    EmptyAssistant {
        /// Its place.
        message: usize,
    },
    /// A result or user message without text got a fixed one.
    EmptyText {
        /// Its place.
        message: usize,
    },
    /// An identifier was absent, used before or not acceptable, and was replaced.
    RenamedCall {
        /// Place of the assistant message.
        message: usize,
        /// Index of the call in it.
        call: usize,
    },
    /// Arguments were not one JSON object and were replaced by one that shows them.
    MalformedArguments {
        /// Place of the assistant message.
        message: usize,
        /// Index of the call in it.
        call: usize,
    },
    /// A tool name was not acceptable and was replaced.
    InvalidName {
        /// Place of the assistant message.
        message: usize,
        /// Index of the call in it.
        call: usize,
    },
    /// The oldest messages were left out.
    HistoryCut {
        /// How many.
        messages: usize,
    },
    /// A user message was put in front, since none stood there.
    StartAdded,
}

impl fmt::Display for Repair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingResult { message, call } => {
                write!(formatter, "call {call} of message {message} had no result")
            }
            Self::OrphanResult { message } => {
                write!(formatter, "the result in message {message} belongs to no call")
            }
            Self::MovedResult { message } => {
                write!(formatter, "the result in message {message} stood apart from its call")
            }
            Self::EmptyAssistant { message } => write!(formatter, "message {message} was empty"),
            Self::EmptyText { message } => write!(formatter, "message {message} had no text"),
            Self::RenamedCall { message, call } => {
                write!(formatter, "call {call} of message {message} got another identifier")
            }
            Self::MalformedArguments { message, call } => {
                write!(formatter, "call {call} of message {message} had malformed arguments")
            }
            Self::InvalidName { message, call } => {
                write!(formatter, "call {call} of message {message} had an invalid tool name")
            }
            Self::HistoryCut { messages } => {
                write!(formatter, "the oldest {messages} messages were left out")
            }
            Self::StartAdded => formatter.write_str("a first user message was added"),
        }
    }
}
