//! Facts that stoplog adds to version 2 of the format.
//!
//! They may stand only in a file whose header declares [`EXTENSION`], and none changes the state that
//! a version 2 reader would compute from the other facts.

use super::Counters;
use super::read;
use crate::base::digest::Digest;
use crate::base::ids::Id;
use serde::{Deserialize, Serialize};

/// The name in the header's `extensions`; the number grows when a fact's shape changes.
pub const EXTENSION: &str = "stoplog/1";

/// One added fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Extension {
    /// What a run was allowed to do.
    RunContext(RunContext),
    /// The model's reasoning before an answer.
    Thinking(Thinking),
    /// A call that policy refused.
    Denial(Denial),
    /// What one turn of the loop cost.
    Iteration(IterationStatistics),
    /// A user message that no person wrote.
    Injected(Injected),
    /// A sub-agent began.
    SubAgentStarted(SubAgentStarted),
    /// A sub-agent ended.
    SubAgentFinished(SubAgentFinished),
    /// What a model call cost.
    Cost(Cost),
    /// A command began to run in the background.
    JobStarted(JobStarted),
    /// A background job ended.
    JobEnded(JobEnded),
    /// What a whole run cost and how it ended.
    FinalStatistics(FinalStatistics),
}

/// What a run was allowed to do, recorded when it starts and again when it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunContext {
    /// The run.
    pub operation_id: Id,
    /// The policy in force.
    pub policy: PolicyPin,
    /// The role that the run plays.
    #[serde(deserialize_with = "read::non_empty")]
    pub role: String,
    /// Names of the tools that can be dispatched, in request order.
    pub tools: Vec<String>,
    /// What the kernel enforces, in the words of `doctor`.
    #[serde(deserialize_with = "read::non_empty")]
    pub sandbox: String,
    /// The session and run that spawned this one.
    #[serde(default, deserialize_with = "read::present", skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// Which policy, and where its full text is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyPin {
    /// The digest of the whole policy set.
    pub digest: Digest,
    /// The sequence number of the record in the session's audit log that holds the text.
    #[serde(
        default,
        deserialize_with = "read::present_integer",
        skip_serializing_if = "Option::is_none"
    )]
    pub audit_sequence: Option<u64>,
}

/// The session and run that spawned a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parent {
    /// The parent's session.
    pub session_id: Id,
    /// The run id under which the parent knows this session.
    pub run_id: Id,
}

/// The model's reasoning before an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Thinking {
    /// The settled answer that it led to.
    pub assistant_entry_id: Id,
    /// The text.
    #[serde(deserialize_with = "read::non_empty")]
    pub text: String,
    /// What a provider wants back with the text.
    #[serde(
        default,
        deserialize_with = "read::present_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub signature: Option<String>,
}

/// A call that policy refused: nothing ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Denial {
    /// The `toolStarted` fact of the same transaction.
    pub tool_started_id: Id,
    /// The stage that refused.
    #[serde(deserialize_with = "read::non_empty")]
    pub stage: String,
    /// The stable reason code.
    #[serde(deserialize_with = "read::non_empty")]
    pub code: String,
    /// The rule, if one decided.
    #[serde(
        default,
        deserialize_with = "read::present_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub rule: Option<String>,
    /// The sequence number of the decision in the audit log.
    #[serde(
        default,
        deserialize_with = "read::present_integer",
        skip_serializing_if = "Option::is_none"
    )]
    pub audit_sequence: Option<u64>,
}

/// What one turn of the loop cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IterationStatistics {
    /// The run.
    pub operation_id: Id,
    /// The step that the turn answered.
    pub step_id: Id,
    /// Which turn of the run, from 1.
    #[serde(deserialize_with = "read::safe_integer")]
    pub iteration: u64,
    /// Calls that ran.
    #[serde(deserialize_with = "read::safe_integer")]
    pub executed: u64,
    /// Calls that were refused.
    #[serde(deserialize_with = "read::safe_integer")]
    pub denied: u64,
    /// Wall time in milliseconds.
    #[serde(deserialize_with = "read::safe_integer")]
    pub duration_ms: u64,
}

/// A user message that no person wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Injected {
    /// The user entry.
    pub entry_id: Id,
    /// Who wrote it.
    pub source: InjectionSource,
    /// The sub-agent runs whose results it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_ids: Vec<Id>,
}

/// Who wrote an injected message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InjectionSource {
    /// Results of background sub-agents, and ends of background jobs.
    Background,
    /// The loop, to break a repetition.
    Nudge,
    /// Another session.
    Session,
    /// A file of the workspace.
    Workspace,
}

/// A sub-agent began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubAgentStarted {
    /// The run of this session that spawned it.
    pub operation_id: Id,
    /// Its run id.
    pub run_id: Id,
    /// Its own session.
    pub session_id: Id,
    /// The label shown to the model.
    #[serde(deserialize_with = "read::non_empty")]
    pub label: String,
    /// Whether the loop goes on meanwhile.
    pub background: bool,
}

/// A sub-agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubAgentFinished {
    /// Its run id.
    pub run_id: Id,
    /// One word: `completed`, `failed`, `aborted`, ….
    #[serde(deserialize_with = "read::non_empty")]
    pub outcome: String,
    /// Its final message, bounded.
    pub text: String,
    /// What it used.
    pub usage: Counters,
}

/// What a model call of a run cost, the reviewing model's too: by the price that was known when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cost {
    /// The operation in which it was made.
    pub operation_id: Id,
    /// Millionths of a dollar.
    #[serde(deserialize_with = "read::safe_integer")]
    pub millionths: u64,
}

/// A command began to run in the background. Its call has its result at once; what the job does ends with
/// [`JobEnded`], or with the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobStarted {
    /// The `toolStarted` fact of the call.
    pub tool_started_id: Id,
    /// Its name, unique in the session.
    #[serde(deserialize_with = "read::non_empty")]
    pub job: String,
    /// The beginning of its command.
    pub label: String,
}

/// A background job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobEnded {
    /// Its name.
    #[serde(deserialize_with = "read::non_empty")]
    pub job: String,
    /// How, in words; what it did is not known if the process ended before the job.
    #[serde(deserialize_with = "read::non_empty")]
    pub outcome: String,
    /// Bytes of its output.
    #[serde(deserialize_with = "read::safe_integer")]
    pub output_bytes: u64,
    /// Wall time in milliseconds.
    #[serde(deserialize_with = "read::safe_integer")]
    pub duration_ms: u64,
}

/// What a whole run cost and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinalStatistics {
    /// The operation, which is finished.
    pub operation_id: Id,
    /// How it ended: `stop`, `max_iterations`, `interrupted`, `error`, `truncated`, `budget`, `loop`.
    #[serde(deserialize_with = "read::non_empty")]
    pub finish_reason: String,
    /// Turns taken.
    #[serde(deserialize_with = "read::safe_integer")]
    pub iterations: u64,
    /// Calls that ran.
    #[serde(deserialize_with = "read::safe_integer")]
    pub executed: u64,
    /// Calls that were refused.
    #[serde(deserialize_with = "read::safe_integer")]
    pub denied: u64,
    /// Tokens of all its attempts.
    pub usage: Counters,
    /// What they cost in millionths of a dollar, if the price is known.
    #[serde(
        default,
        deserialize_with = "read::present_integer",
        skip_serializing_if = "Option::is_none"
    )]
    pub cost_millionths: Option<u64>,
    /// Wall time in milliseconds.
    #[serde(deserialize_with = "read::safe_integer")]
    pub duration_ms: u64,
}
