//! What a run tells while it goes on, as data. How it is shown is the business of `cli`.
//!
//! The order is a contract: `init` first, every message of a turn before its calls, a call's decision
//! before its result, and exactly one `result`, last.

use crate::audit::record::{Reason, StageVerdict};
use crate::base::exit::Exit;
use crate::base::ids::Id;
use crate::model::message::Usage;
use serde::Serialize;
use serde_json::Value;

/// One event; with `--output stream-json` one line.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run begins.
    Init {
        /// The session.
        session: Id,
        /// Provider and model.
        model: String,
        /// Digest of the policy.
        policy: String,
        /// Tools whose definitions go to the model.
        tools: Vec<String>,
        /// Where the agent works.
        workspace: String,
        /// Its role.
        role: String,
        /// What the kernel enforces for each call.
        cell: Value,
        /// What has to be known of the workspace: hard links that go past the policy.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
        /// Settings of the policy that do nothing in this release.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
    },
    /// An earlier process of the session was cut off.
    Resumed {
        /// What was in flight then and has become of it, one sentence each; empty if nothing was.
        in_flight: Vec<String>,
    },
    /// The user's words are durable.
    UserMessage {
        /// The words.
        content: String,
    },
    /// The workspace's AGENTS.md was put into the conversation as data, or could not be.
    AgentsFile {
        /// Its size in bytes, as far as it was read.
        bytes: usize,
        /// `ok`, `failed` or `denied`.
        status: &'static str,
    },
    /// A piece of the answer.
    TextDelta {
        /// The piece.
        content: String,
    },
    /// A piece of thinking.
    Thinking {
        /// The piece.
        content: String,
    },
    /// The model's answer of this turn is durable.
    AssistantMessage {
        /// Its text, rid of think blocks.
        content: String,
        /// How many calls it asks for.
        calls: usize,
    },
    /// The model asks for a call.
    ToolCall {
        /// Our identifier of the call.
        call: Id,
        /// The tool.
        tool: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
    /// One stage said something about a call.
    Decision {
        /// The call.
        call: Id,
        /// The stage.
        stage: &'static str,
        /// Its verdict.
        verdict: StageVerdict,
        /// Why.
        reasons: Vec<Reason>,
    },
    /// A call has a result.
    ToolResult {
        /// The call.
        call: Id,
        /// The tool.
        tool: String,
        /// `ok`, `failed`, `denied`, `rejected`, `interrupted` or `aborted`.
        status: &'static str,
        /// What the model is told.
        content: String,
        /// Milliseconds from the decision to the end.
        duration_ms: u64,
    },
    /// A model call failed and is tried again.
    Retry {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// The stable code of the failure.
        code: &'static str,
        /// Why it failed.
        cause: String,
        /// Wait before the next one, in milliseconds.
        delay_ms: u64,
    },
    /// The conversation had to be mended before it was sent.
    Repair {
        /// Which kind of repair, by its stable code.
        code: &'static str,
        /// What was done.
        detail: String,
    },
    /// A background job ended.
    JobEnded {
        /// The call that began it.
        call: Id,
        /// Its name.
        job: String,
        /// How, in words.
        outcome: String,
        /// Bytes of its output.
        output_bytes: u64,
        /// Milliseconds that it ran.
        duration_ms: u64,
    },
    /// Results of background work were put into the conversation.
    Background {
        /// How many.
        results: usize,
    },
    /// Tokens so far.
    Usage {
        /// The sum over all turns.
        usage: Usage,
        /// The turn that just ended, from 1.
        turn: u32,
        /// What they cost, if the price is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_dollars: Option<f64>,
    },
    /// Older messages were replaced by a summary.
    Compaction {
        /// Messages replaced.
        replaced: usize,
    },
    /// The run is over. Exactly one, the last.
    Result(Box<RunResult>),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model answered in text, or a tool asked to stop.
    Stop,
    /// The iteration limit was reached.
    MaxIterations,
    /// Somebody asked to stop.
    Interrupted,
    /// The model could not be reached or gave nothing usable.
    Error,
    /// The last answer was cut off.
    Truncated,
    /// The answer was empty after every attempt.
    Empty,
    /// A budget is spent.
    Budget,
    /// The agent went in circles.
    Loop,
    /// The journal or the audit log could not be written.
    RecordFailure,
    /// A guarantee of the cell was not met.
    SandboxFailure,
    /// A hook of the session's start refused it.
    HookDenied,
}

impl FinishReason {
    /// The word in records and results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::MaxIterations => "max_iterations",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
            Self::Truncated => "truncated",
            Self::Empty => "empty",
            Self::Budget => "budget",
            Self::Loop => "loop",
            Self::RecordFailure => "record_failure",
            Self::SandboxFailure => "sandbox_failure",
            Self::HookDenied => "hook_denied",
        }
    }

    /// How the process ends. A run that is done but had calls refused says so.
    #[must_use]
    pub const fn exit(self, any_denied: bool) -> Exit {
        match self {
            Self::Stop if any_denied => Exit::Denied,
            Self::HookDenied => Exit::Denied,
            Self::Stop => Exit::Done,
            Self::MaxIterations => Exit::IterationLimit,
            Self::Interrupted => Exit::Interrupted,
            Self::Error => Exit::Model,
            Self::Truncated | Self::Empty => Exit::TruncatedOrEmpty,
            Self::Budget => Exit::Budget,
            Self::Loop => Exit::Loop,
            Self::RecordFailure => Exit::Record,
            Self::SandboxFailure => Exit::Sandbox,
        }
    }
}

/// A refused call, as it is listed at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Denial {
    /// The call.
    pub call: Id,
    /// The tool.
    pub tool: String,
    /// The stage that said no.
    pub stage: String,
    /// The reason code.
    pub code: String,
    /// The rule.
    pub rule: Option<String>,
    /// Where the rule stands: `file:line`.
    pub place: Option<String>,
    /// Why, in words.
    pub reason: String,
}

/// The final object: all that a script needs to know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// `done`, `denied` (done, but some calls were), or `failed`.
    pub status: &'static str,
    /// Why the run ended.
    pub finish_reason: FinishReason,
    /// The answer; empty if there is none.
    pub answer: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// Tokens.
    pub usage: Usage,
    /// What they cost in dollars, reviews included, if the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_dollars: Option<f64>,
    /// Model calls that counted.
    pub turns: u32,
    /// The session.
    pub session: Id,
    /// Every refused call.
    pub denials: Vec<Denial>,
    /// The exit code that goes with it.
    pub exit_code: u8,
}

/// Who is told. Called on the loop's own thread, in order.
pub type Listener = Box<dyn FnMut(&Event)>;
