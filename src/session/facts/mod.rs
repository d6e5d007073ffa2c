//! Facts as the file holds them: header, entries, records, usage and our declared extensions.
//!
//! Reading is strict: an unknown key, a missing key, a wrong type or a number out of range is an
//! error, never a guess. What facts mean together is the business of `reduce`.

pub(crate) mod configuration;
mod entry;
pub(crate) mod extension;
mod header;
pub(crate) mod message;
mod read;
mod record;

pub use entry::{
    AssistantEntry, CompactionEntry, Entry, RetainedMessage, StartedResult, SyntheticEntry,
    ToolResultEntry,
};
pub use header::Header;
pub(crate) use read::{SAFE_INTEGER_MAX, whole_number};
pub use record::{
    AbortPhase, AbortReason, AbortRequested, CompactionStarted, Completion, FactError,
    OperationFinished, OperationKind, Outcome, Record, Replay, RunStarted, StepAttempt, StepFailed,
    StepKind, ToolStarted,
};

use crate::base::ids::Id;
use extension::Extension;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One fact: the envelope and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// One more than the fact before; the first is 1.
    pub seq: u64,
    /// Its identity; the identity of the message or tool start that it holds.
    pub id: Id,
    /// Milliseconds since the Unix epoch when it was written.
    pub timestamp: u64,
    /// What it says.
    pub body: Body,
}

/// What a fact says.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Something the model sees.
    Entry(Entry),
    /// Something about the execution, which the model never sees.
    Record(Record),
    /// Tokens used.
    Usage(Usage),
    /// One of our additions.
    Extension(Extension),
}

/// Tokens used by one attempt or one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// The operation of the attempt or tool.
    pub operation_id: Id,
    /// The attempt; absent if a tool used them.
    #[serde(default, deserialize_with = "read::present", skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<Id>,
    /// The start of the tool; absent if an attempt used them.
    #[serde(default, deserialize_with = "read::present", skip_serializing_if = "Option::is_none")]
    pub tool_started_id: Option<Id>,
    /// How many.
    pub usage: Counters,
}

/// Token counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Counters {
    /// Tokens sent.
    #[serde(deserialize_with = "read::safe_integer")]
    pub input: u64,
    /// Tokens received.
    #[serde(deserialize_with = "read::safe_integer")]
    pub output: u64,
    /// Tokens that the provider's cache gave.
    #[serde(deserialize_with = "read::safe_integer")]
    pub cache_read: u64,
    /// Tokens that went into the provider's cache.
    #[serde(deserialize_with = "read::safe_integer")]
    pub cache_write: u64,
}

impl Counters {
    /// The sums, or `None` where one would pass 2^53 - 1.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let add =
            |left: u64, right: u64| left.checked_add(right).filter(|sum| *sum <= SAFE_INTEGER_MAX);
        Some(Self {
            input: add(self.input, other.input)?,
            output: add(self.output, other.output)?,
            cache_read: add(self.cache_read, other.cache_read)?,
            cache_write: add(self.cache_write, other.cache_write)?,
        })
    }
}

impl Body {
    /// Reads what is left of a fact when its envelope has been taken out.
    pub(crate) fn from_rest(kind: &str, mut rest: Map<String, Value>) -> Result<Self, String> {
        let read = |error: serde_json::Error| error.to_string();
        let body = match kind {
            "entry" => Self::Entry(Entry::from_value(take(&mut rest, "entry")?).map_err(read)?),
            "record" => Self::Record(record::from_value(take(&mut rest, "record")?)?),
            "extension" => {
                let value = take(&mut rest, "extension")?;
                Self::Extension(serde_json::from_value(value).map_err(read)?)
            }
            "usage" => {
                let fields = std::mem::take(&mut rest);
                Self::Usage(serde_json::from_value(Value::Object(fields)).map_err(read)?)
            }
            other => return Err(format!("unknown kind `{}`", other.escape_debug())),
        };
        match rest.keys().next() {
            Some(key) => Err(format!("unknown field `{}`", key.escape_debug())),
            None => Ok(body),
        }
    }
}

fn take(rest: &mut Map<String, Value>, key: &str) -> Result<Value, String> {
    rest.remove(key).ok_or_else(|| format!("missing field `{key}`"))
}

impl Serialize for Fact {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'fact> {
            kind: &'static str,
            seq: u64,
            id: &'fact Id,
            timestamp: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            entry: Option<&'fact Entry>,
            #[serde(skip_serializing_if = "Option::is_none")]
            record: Option<&'fact Record>,
            #[serde(skip_serializing_if = "Option::is_none")]
            extension: Option<&'fact Extension>,
            #[serde(flatten)]
            usage: Option<&'fact Usage>,
        }
        let Self { seq, id, timestamp, body } = self;
        let (kind, entry, record, extension, usage) = match body {
            Body::Entry(entry) => ("entry", Some(entry), None, None, None),
            Body::Record(record) => ("record", None, Some(record), None, None),
            Body::Extension(extension) => ("extension", None, None, Some(extension), None),
            Body::Usage(usage) => ("usage", None, None, None, Some(usage)),
        };
        Line { kind, seq: *seq, id, timestamp: *timestamp, entry, record, extension, usage }
            .serialize(serializer)
    }
}
