//! Messages as the model sees them, in the shape the file holds.

use super::read;
use serde::{Deserialize, Serialize};

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// What a person, or the host in a person's place, said.
    User(UserMessage),
    /// What the model answered.
    Assistant(AssistantMessage),
    /// What a tool call gave.
    Tool(ToolMessage),
}

impl Message {
    /// A user message.
    #[must_use]
    pub const fn user(content: String) -> Self {
        Self::User(UserMessage { content })
    }

    /// The text, if there is any.
    #[must_use]
    pub fn content(&self) -> Option<&str> {
        match self {
            Self::User(user) => Some(&user.content),
            Self::Assistant(assistant) => assistant.content.as_deref(),
            Self::Tool(tool) => Some(&tool.content),
        }
    }

    /// The tool calls of an assistant message; none for the others.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant(assistant) => &assistant.tool_calls,
            Self::User(_) | Self::Tool(_) => &[],
        }
    }
}

/// A user message; its text is not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserMessage {
    /// The text.
    #[serde(deserialize_with = "read::non_empty")]
    pub content: String,
}

/// An assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssistantMessage {
    /// The text; `null` in the file when there is none.
    #[serde(deserialize_with = "read::nullable")]
    pub content: Option<String>,
    /// The calls, in the model's order; the key is absent when there are none.
    #[serde(
        default,
        deserialize_with = "read::non_empty_list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tool_calls: Vec<ToolCall>,
}

/// The result of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolMessage {
    /// The text for the model.
    pub content: String,
    /// The identifier of the call within its assistant message.
    #[serde(deserialize_with = "read::non_empty")]
    pub tool_call_id: String,
}

/// One proposed call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Unique within its message, not beyond.
    #[serde(deserialize_with = "read::non_empty")]
    pub id: String,
    #[serde(rename = "type")]
    kind: FunctionTag,
    /// What is called.
    pub function: FunctionCall,
}

impl ToolCall {
    /// A call of `name` with the arguments as the model wrote them.
    #[must_use]
    pub const fn new(id: String, name: String, arguments: String) -> Self {
        Self { id, kind: FunctionTag::Function, function: FunctionCall { name, arguments } }
    }
}

/// Name and raw arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionCall {
    /// The tool's name as the model wrote it.
    #[serde(deserialize_with = "read::non_empty")]
    pub name: String,
    /// The arguments as the model wrote them: perhaps not JSON.
    pub arguments: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum FunctionTag {
    #[serde(rename = "function")]
    Function,
}

/// Why a settled answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model was done.
    Stop,
    /// The model wants its calls answered.
    ToolUse,
    /// The token limit cut the answer; its calls never run.
    Length,
}

/// Why a call has a fixed text instead of a tool's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SyntheticReason {
    /// The arguments are not a JSON object.
    InvalidArguments,
    /// No such tool in this request.
    UnknownTool,
    /// The token limit cut the answer that held the call.
    Truncated,
    /// The operation was aborted before the call started.
    Aborted,
    /// The call had started; whether it took effect is unknown.
    Interrupted,
}

impl SyntheticReason {
    /// The text that the model is given; part of the format, so never reworded.
    #[must_use]
    pub const fn content(self) -> &'static str {
        match self {
            Self::InvalidArguments => {
                "Error: Tool arguments were invalid; the tool was not executed."
            }
            Self::UnknownTool => "Error: Unknown tool; the tool was not executed.",
            Self::Truncated => {
                "Error: Tool call arguments were truncated by the model token limit; the tool was \
                 not executed."
            }
            Self::Aborted => "Operation aborted before execution.",
            Self::Interrupted => {
                "Operation interrupted after execution status became unknown; the tool was not \
                 replayed."
            }
        }
    }
}
