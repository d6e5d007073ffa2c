//! Entries: the facts that the model sees.

use super::message::{
    AssistantMessage, Message, StopReason, SyntheticReason, ToolMessage, UserMessage,
};
use super::read;
use crate::base::ids::Id;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A user message.
    User(UserMessage),
    /// A settled answer.
    Assistant(AssistantEntry),
    /// The result of a call that had been started.
    ToolResult(ToolResultEntry),
    /// The fixed result of a call that was not started.
    Synthetic(SyntheticEntry),
    /// A summary that takes the place of earlier messages.
    Compaction(CompactionEntry),
}

/// A settled answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssistantEntry {
    /// The step that it settles.
    pub step_id: Id,
    /// The attempt that gave it.
    pub attempt_id: Id,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// The answer.
    #[serde(with = "assistant_role")]
    pub message: AssistantMessage,
}

/// The result of a call that had been started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolResultEntry {
    /// The step of the assistant message.
    pub step_id: Id,
    /// The text for the model.
    #[serde(with = "tool_role")]
    pub message: ToolMessage,
    /// The tool.
    #[serde(deserialize_with = "read::non_empty")]
    pub tool_name: String,
    /// The `toolStarted` fact.
    pub tool_started_id: Id,
    /// What kind of result.
    #[serde(with = "started_result")]
    pub result: StartedResult,
}

/// What kind of result a started call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedResult {
    /// The tool did what it was asked.
    Success,
    /// The tool, or the policy before it, said no.
    Error,
    /// The outcome is unknown.
    Interrupted,
}

/// The fixed result of a call that was not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SyntheticEntry {
    /// The step of the assistant message.
    pub step_id: Id,
    /// The assistant message.
    pub assistant_entry_id: Id,
    /// Which of its calls.
    #[serde(deserialize_with = "read::safe_integer")]
    pub tool_index: u64,
    /// The fixed text.
    #[serde(with = "tool_role")]
    pub message: ToolMessage,
    /// The tool as the model named it.
    #[serde(deserialize_with = "read::non_empty")]
    pub tool_name: String,
    /// Why.
    #[serde(with = "unstarted_result")]
    pub result: SyntheticReason,
}

/// A summary that takes the place of earlier messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompactionEntry {
    /// The compaction.
    pub operation_id: Id,
    /// What the model is told of the messages before.
    pub summary: String,
    /// The last message that the summary covers.
    pub compacted_through_entry_id: Id,
    /// The messages after it, whole.
    pub retained_tail: Vec<RetainedMessage>,
}

/// A message kept whole by a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetainedMessage {
    /// The entry that it comes from.
    pub source_entry_id: Id,
    /// The message, equal to that entry's.
    pub message: Message,
}

impl Entry {
    /// The message, if the entry is one.
    #[must_use]
    pub fn message(&self) -> Option<Message> {
        match self {
            Self::User(message) => Some(Message::User(message.clone())),
            Self::Assistant(entry) => Some(Message::Assistant(entry.message.clone())),
            Self::ToolResult(entry) => Some(Message::Tool(entry.message.clone())),
            Self::Synthetic(entry) => Some(Message::Tool(entry.message.clone())),
            Self::Compaction(_) => None,
        }
    }

    /// The variant is told by `type`, the message's role and the keys of a tool result.
    pub(super) fn from_value(value: Value) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct UserEntry {
            #[serde(with = "user_role")]
            message: UserMessage,
        }
        let Value::Object(mut map) = value else {
            return Err(serde_json::Error::custom("an entry is an object"));
        };
        let kind = map.remove("type");
        let role = map.get("message").and_then(|message| message.get("role"));
        let role = role.and_then(Value::as_str).unwrap_or_default().to_owned();
        let unstarted = map.contains_key("assistantEntryId") || map.contains_key("toolIndex");
        let value = Value::Object(map);
        match (kind.as_ref().and_then(Value::as_str), role.as_str()) {
            (Some("compaction"), _) => serde_json::from_value(value).map(Self::Compaction),
            (Some("message"), "user") => {
                serde_json::from_value(value).map(|UserEntry { message }| Self::User(message))
            }
            (Some("message"), "assistant") => serde_json::from_value(value).map(Self::Assistant),
            (Some("message"), "tool") if unstarted => {
                serde_json::from_value(value).map(Self::Synthetic)
            }
            (Some("message"), "tool") => serde_json::from_value(value).map(Self::ToolResult),
            _ => Err(serde_json::Error::custom("neither a message nor a compaction")),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tagged<T> {
            #[serde(rename = "type")]
            kind: &'static str,
            #[serde(flatten)]
            body: T,
        }
        #[derive(Serialize)]
        struct User<'entry> {
            #[serde(with = "user_role")]
            message: &'entry UserMessage,
        }
        match self {
            Self::User(message) => {
                Tagged { kind: "message", body: User { message } }.serialize(serializer)
            }
            Self::Assistant(body) => Tagged { kind: "message", body }.serialize(serializer),
            Self::ToolResult(body) => Tagged { kind: "message", body }.serialize(serializer),
            Self::Synthetic(body) => Tagged { kind: "message", body }.serialize(serializer),
            Self::Compaction(body) => Tagged { kind: "compaction", body }.serialize(serializer),
        }
    }
}

/// A message of one known role, which the file still names.
macro_rules! role {
    ($module:ident, $variant:ident, $message:ident, $other:ident, $another:ident) => {
        mod $module {
            use super::{Message, $message};
            use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
            use std::borrow::Borrow;

            pub(super) fn serialize<S: Serializer, M: Borrow<$message>>(
                message: &M,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                Message::$variant(message.borrow().clone()).serialize(serializer)
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$message, D::Error> {
                match Message::deserialize(deserializer)? {
                    Message::$variant(message) => Ok(message),
                    Message::$other(_) | Message::$another(_) => {
                        Err(D::Error::custom("a message of another role"))
                    }
                }
            }
        }
    };
}

role!(user_role, User, UserMessage, Assistant, Tool);
role!(assistant_role, Assistant, AssistantMessage, User, Tool);
role!(tool_role, Tool, ToolMessage, User, Assistant);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ResultTag {
    Success,
    Error,
    Synthetic,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultForm {
    #[serde(rename = "type")]
    kind: ResultTag,
    #[serde(default, deserialize_with = "read::present", skip_serializing_if = "Option::is_none")]
    reason: Option<SyntheticReason>,
}

mod started_result {
    use super::{ResultForm, ResultTag, StartedResult, SyntheticReason};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(
        result: &StartedResult,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let form = match result {
            StartedResult::Success => ResultForm { kind: ResultTag::Success, reason: None },
            StartedResult::Error => ResultForm { kind: ResultTag::Error, reason: None },
            StartedResult::Interrupted => ResultForm {
                kind: ResultTag::Synthetic,
                reason: Some(SyntheticReason::Interrupted),
            },
        };
        form.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<StartedResult, D::Error> {
        let form = ResultForm::deserialize(deserializer)?;
        match (form.kind, form.reason) {
            (ResultTag::Success, None) => Ok(StartedResult::Success),
            (ResultTag::Error, None) => Ok(StartedResult::Error),
            (ResultTag::Synthetic, Some(SyntheticReason::Interrupted)) => {
                Ok(StartedResult::Interrupted)
            }
            (ResultTag::Success | ResultTag::Error | ResultTag::Synthetic, _) => {
                Err(D::Error::custom("not a result of a started call"))
            }
        }
    }
}

mod unstarted_result {
    use super::{ResultForm, ResultTag, SyntheticReason};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(
        reason: &SyntheticReason,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        ResultForm { kind: ResultTag::Synthetic, reason: Some(*reason) }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<SyntheticReason, D::Error> {
        let form = ResultForm::deserialize(deserializer)?;
        match (form.kind, form.reason) {
            (ResultTag::Synthetic, Some(reason)) if reason != SyntheticReason::Interrupted => {
                Ok(reason)
            }
            (ResultTag::Success | ResultTag::Error | ResultTag::Synthetic, _) => {
                Err(D::Error::custom("not a result of a call that was not started"))
            }
        }
    }
}
