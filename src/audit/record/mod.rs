//! The records of the audit log, format version 1, as types.
//!
//! One line of the log is one [`Record`]. This file holds what all lines share and the closed list of
//! kinds; docs/audit-format.md describes the bytes. Text that came from outside is `Untrusted`, so
//! that it is redacted before it is written and escaped whenever it is shown. No file is touched here.

mod call;
mod decision;
mod event;
mod resolved;
mod session;

pub use call::{Exit, Outcome, Rejected, RejectedBecause, Started};
pub use decision::{Decision, Reason, Ruling, Stage, StageRecord, StageVerdict, Stages};
pub use event::{
    Agent, AgentEvent, Grant, GrantScope, Guardian, Hook, Network, NetworkVerdict, Repair, Retry,
};
pub use resolved::{HostRecord, PathRecord, ProgramRecord, Resolved, UnresolvedRecord};
pub use session::{
    Checkpoint, End, PolicyRecord, PolicySourceRecord, Recovered, Session, Signature,
};

use crate::audit::redact::{Redact, Redaction};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::json::{parse_strict, visible_line};
use serde::{Deserialize, Serialize};

/// Version of the format that this build writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// Bytes of one line. The arguments of a call are at most 8 MiB and long texts in them are cut; a
/// longer line is an error of the writer and damage to a reader, so that both hold bounded memory.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Format version.
    pub v: u32,
    /// Place in the log, counted from 1.
    pub seq: u64,
    /// When it was written, RFC 3339 in UTC with milliseconds.
    pub time: String,
    /// Link of the record before it; zero for the first.
    pub prev: Digest,
    /// What is recorded.
    #[serde(flatten)]
    pub body: Body,
}

/// What a record says, by kind. Large kinds are boxed, since logs hold many small ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Body {
    /// A run of a session begins.
    Session(Box<Session>),
    /// The chain decided a tool call.
    Decision(Box<Decision>),
    /// An approved call is about to take effect.
    Started(Started),
    /// What became of a started call.
    Outcome(Box<Outcome>),
    /// A request that never became a decision.
    Rejected(Box<Rejected>),
    /// What a person approved or refused.
    Grant(Box<Grant>),
    /// One network connection, let through or not.
    Network(Box<Network>),
    /// One hook ran.
    Hook(Box<Hook>),
    /// The guardian was asked.
    Guardian(Box<Guardian>),
    /// A sub-agent began or ended.
    Agent(Box<Agent>),
    /// A model call is tried again.
    Retry(Retry),
    /// The conversation sent to the model was mended.
    Repair(Repair),
    /// Count and link so far, for a signature or a second place.
    Checkpoint(Checkpoint),
    /// A torn line was found when the log was opened again.
    Recovered(Recovered),
    /// The run is over.
    End(Box<End>),
}

impl Body {
    /// The kind as it is written.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Session(_) => "session",
            Self::Decision(_) => "decision",
            Self::Started(_) => "started",
            Self::Outcome(_) => "outcome",
            Self::Rejected(_) => "rejected",
            Self::Grant(_) => "grant",
            Self::Network(_) => "network",
            Self::Hook(_) => "hook",
            Self::Guardian(_) => "guardian",
            Self::Agent(_) => "agent",
            Self::Retry(_) => "retry",
            Self::Repair(_) => "repair",
            Self::Checkpoint(_) => "checkpoint",
            Self::Recovered(_) => "recovered",
            Self::End(_) => "end",
        }
    }

    /// Every kind, as [`Self::kind`] spells it.
    pub const KINDS: [&str; 15] = [
        "session",
        "decision",
        "started",
        "outcome",
        "rejected",
        "grant",
        "network",
        "hook",
        "guardian",
        "agent",
        "retry",
        "repair",
        "checkpoint",
        "recovered",
        "end",
    ];

    /// The call it belongs to.
    #[must_use]
    pub const fn call(&self) -> Option<&Id> {
        match self {
            Self::Decision(body) => Some(&body.call),
            Self::Started(body) => Some(&body.call),
            Self::Outcome(body) => Some(&body.call),
            Self::Rejected(body) => Some(&body.call),
            Self::Hook(body) => Some(&body.call),
            Self::Guardian(body) => Some(&body.call),
            Self::Grant(body) => body.call.as_ref(),
            Self::Network(body) => body.call.as_ref(),
            Self::Agent(body) => body.call.as_ref(),
            Self::Session(_)
            | Self::Retry(_)
            | Self::Repair(_)
            | Self::Checkpoint(_)
            | Self::Recovered(_)
            | Self::End(_) => None,
        }
    }
}

impl Redact for Body {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        match self {
            Self::Session(body) => body.redact(redaction),
            Self::Decision(body) => body.redact(redaction),
            Self::Started(_) | Self::Checkpoint(_) => {}
            Self::Outcome(body) => body.redact(redaction),
            Self::Rejected(body) => body.redact(redaction),
            Self::Grant(body) => body.redact(redaction),
            Self::Network(body) => body.redact(redaction),
            Self::Hook(body) => body.redact(redaction),
            Self::Guardian(body) => body.redact(redaction),
            Self::Agent(body) => body.redact(redaction),
            Self::Retry(body) => body.redact(redaction),
            Self::Repair(body) => body.redact(redaction),
            Self::Recovered(body) => body.redact(redaction),
            Self::End(body) => body.redact(redaction),
        }
    }
}

impl Record {
    /// The bytes of the line, without the line feed. Every character that moves or hides text is
    /// escaped, so no text can end the line or change what a terminal shows of it.
    ///
    /// # Errors
    /// The serialiser's, which for these types means a defect.
    pub fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        visible_line(self).map(String::into_bytes)
    }

    /// Reads a line. Repeated keys, an unknown kind and another version are errors; unknown keys of a
    /// body are ignored, so that later releases may add some.
    ///
    /// # Errors
    /// One sentence: what is wrong with the line.
    pub fn from_line(line: &[u8]) -> Result<Self, String> {
        let value = parse_strict(line).map_err(|error| format!("not one JSON value: {error}"))?;
        match value.get("v").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(FORMAT_VERSION) => {}
            Some(version) => return Err(format!("format version {version} is not known")),
            None => return Err("no format version".to_owned()),
        }
        serde_json::from_value(value).map_err(|error| format!("not a record: {error}"))
    }
}
