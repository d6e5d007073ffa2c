//! Records about the life of one call beside its decision: `started`, `outcome`, `rejected`.

use crate::audit::redact::{Redact, Redaction};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An approved call is about to take effect. Written before the effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The call.
    pub call: Id,
    /// Digest of the cell in which it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Digest>,
}

/// What became of a started call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The call.
    pub call: Id,
    /// How it ended.
    pub exit: Exit,
    /// Bytes of standard output, all that the child wrote.
    pub stdout_bytes: u64,
    /// Bytes of standard error.
    pub stderr_bytes: u64,
    /// Whether the model was given less than all of it.
    pub truncated: bool,
    /// Digest of the text that the model was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Digest>,
    /// Files that the tool reports as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_written: Vec<Untrusted>,
    /// Limits that were hit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<Untrusted>,
    /// Layers that were really active, as the sandbox reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<Value>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum Exit {
    /// By itself, with this exit code.
    Code {
        /// The code; 0 is success.
        code: i32,
    },
    /// By a signal that was not ours.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// Its time was over.
    TimedOut,
    /// Its memory was used up.
    OutOfMemory,
    /// It wrote more than is read.
    OutputCapped,
    /// It filled the session's private temporary directory.
    DiskFull,
    /// The run was being stopped, or a background job ended with it.
    Cancelled,
    /// A background job that the model ended.
    Killed,
    /// The cell could not be made; nothing ran.
    SetupFailed {
        /// The step that failed and why.
        cause: Untrusted,
    },
    /// The tool gave an error as its answer.
    Failed {
        /// The error.
        cause: Untrusted,
    },
    /// The supervisor died while it ran: what it did is not known.
    Interrupted,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code { code } => write!(formatter, "exit code {code}"),
            Self::Signal { signal } => write!(formatter, "ended by signal {signal}"),
            Self::TimedOut => formatter.write_str("stopped: its time was over"),
            Self::OutOfMemory => formatter.write_str("stopped: out of memory"),
            Self::OutputCapped => formatter.write_str("stopped: too much output"),
            Self::DiskFull => formatter.write_str("stopped: its temporary directory was full"),
            Self::Cancelled => formatter.write_str("stopped with the run"),
            Self::Killed => formatter.write_str("ended by job_kill"),
            Self::SetupFailed { cause } => write!(formatter, "never ran: {cause}"),
            Self::Failed { cause } => write!(formatter, "failed: {cause}"),
            Self::Interrupted => formatter.write_str("interrupted: what it did is not known"),
        }
    }
}

/// A request of the model that never became a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rejected {
    /// Our identifier of the request.
    pub call: Id,
    /// The provider's identifier, as given.
    pub provider_id: Untrusted,
    /// `main`, or the path of sub-agents.
    pub origin: Untrusted,
    /// The tool as the model named it.
    pub tool: Untrusted,
    /// Why.
    pub because: RejectedBecause,
    /// What the model was told.
    pub told: Untrusted,
    /// The argument text as the model sent it, after redaction.
    pub arguments: Untrusted,
    /// Its digest before redaction.
    pub arguments_hash: Digest,
}

/// Why a request never became a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RejectedBecause {
    /// Not a tool of this run.
    UnknownTool,
    /// Arguments that are not of the tool's form.
    InvalidArguments,
    /// The answer was cut off, so the call may be incomplete.
    Truncated,
    /// The run was being stopped.
    Aborted,
}

impl RejectedBecause {
    /// The spelling in records and on the screen.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown-tool",
            Self::InvalidArguments => "invalid-arguments",
            Self::Truncated => "truncated",
            Self::Aborted => "aborted",
        }
    }
}

impl Redact for Outcome {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        match &mut self.exit {
            Exit::SetupFailed { cause } | Exit::Failed { cause } => cause.redact(redaction),
            Exit::Code { .. }
            | Exit::Signal { .. }
            | Exit::TimedOut
            | Exit::OutOfMemory
            | Exit::OutputCapped
            | Exit::DiskFull
            | Exit::Cancelled
            | Exit::Killed
            | Exit::Interrupted => {}
        }
        self.files_written.redact(redaction);
        self.limits_hit.redact(redaction);
    }
}

impl Redact for Rejected {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.provider_id.redact(redaction);
        self.origin.redact(redaction);
        self.tool.redact(redaction);
        self.told.redact(redaction);
        redaction.json_text(&mut self.arguments);
    }
}
