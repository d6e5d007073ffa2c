//! Records: the facts about the execution, which the model never sees.

use super::configuration::ConfigurationSnapshot;
use super::read;
use crate::base::digest::Digest;
use crate::base::ids::Id;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One fact about the execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Record {
    /// A user message was accepted as work.
    RunStarted(RunStarted),
    /// Earlier messages are to be summarised.
    CompactionStarted(CompactionStarted),
    /// A model request is about to be sent.
    StepAttempt(StepAttempt),
    /// A model request gave no answer.
    StepFailed(StepFailed),
    /// A tool is about to run.
    ToolStarted(ToolStarted),
    /// The operation is to end as soon as it can.
    AbortRequested(AbortRequested),
    /// The operation has ended.
    OperationFinished(OperationFinished),
}

/// The two kinds of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OperationKind {
    /// Work on a user message.
    Run,
    /// A summary of earlier messages.
    Compaction,
}

/// The two kinds of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepKind {
    /// The model is to answer.
    Assistant,
    /// The model is to summarise.
    Compaction,
}

/// Whether a call whose outcome is unknown may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Replay {
    /// Repeating it changes nothing.
    Safe,
    /// It may have had an effect.
    Never,
}

/// A user message was accepted as work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunStarted {
    /// The run.
    pub operation_id: Id,
    /// Always `run`.
    pub operation_kind: OperationKind,
    /// The user message.
    pub input_entry_id: Id,
}

/// Earlier messages are to be summarised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompactionStarted {
    /// The compaction.
    pub operation_id: Id,
    /// Always `compaction`.
    pub operation_kind: OperationKind,
    /// The last message that it takes account of.
    pub input_through_entry_id: Id,
    /// The identity of the compaction entry to come.
    pub result_entry_id: Id,
    /// The messages that the summary replaces: from the first of the session, in order.
    #[serde(deserialize_with = "read::non_empty_list")]
    pub compacted_entry_ids: Vec<Id>,
    /// The messages after them, up to `input_through_entry_id`.
    pub retained_entry_ids: Vec<Id>,
    /// SHA-256 of the canonical list of `{sourceEntryId, message}` of all of them.
    pub source_digest: Digest,
}

/// A model request is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepAttempt {
    /// The operation.
    pub operation_id: Id,
    /// The logical step.
    pub step_id: Id,
    /// This attempt at it.
    pub attempt_id: Id,
    /// What the model is to do.
    pub step_kind: StepKind,
    /// 1, or 2 after a crash.
    #[serde(deserialize_with = "read::attempt")]
    pub attempt: u8,
    /// The last message of the request.
    pub context_through_entry_id: Id,
    /// What the request depends on.
    pub configuration_snapshot: ConfigurationSnapshot,
    /// The digest of the snapshot.
    pub configuration_digest: Digest,
}

/// A model request gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepFailed {
    /// The operation.
    pub operation_id: Id,
    /// The step.
    pub step_id: Id,
    /// The attempt.
    pub attempt_id: Id,
    /// Why.
    pub error: FactError,
}

/// An error that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactError {
    /// A stable word.
    #[serde(deserialize_with = "read::non_empty")]
    pub code: String,
    /// A sentence.
    #[serde(deserialize_with = "read::non_empty")]
    pub message: String,
}

impl FactError {
    /// An error with a code and a sentence.
    #[must_use]
    pub fn new(code: &str, message: &str) -> Self {
        Self { code: code.to_owned(), message: message.to_owned() }
    }
}

/// A tool is about to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolStarted {
    /// The run.
    pub operation_id: Id,
    /// The step of the assistant message.
    pub step_id: Id,
    /// The assistant message.
    pub assistant_entry_id: Id,
    /// Which of its calls.
    #[serde(deserialize_with = "read::safe_integer")]
    pub tool_index: u64,
    /// The call's identifier.
    #[serde(deserialize_with = "read::non_empty")]
    pub tool_call_id: String,
    /// The tool.
    #[serde(deserialize_with = "read::non_empty")]
    pub tool_name: String,
    /// The arguments that take effect.
    pub arguments: Map<String, Value>,
    /// Whether it may be repeated if the outcome is unknown.
    pub replay: Replay,
    /// Which implementation it is.
    #[serde(deserialize_with = "read::non_empty")]
    pub replay_key: String,
    /// Where it takes effect.
    #[serde(deserialize_with = "read::non_empty")]
    pub environment_identity: String,
    /// The identity of the result entry to come.
    pub result_entry_id: Id,
}

/// The operation is to end as soon as it can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AbortRequested {
    /// The operation.
    pub operation_id: Id,
    /// Its kind.
    pub operation_kind: OperationKind,
    /// What was going on.
    pub phase: AbortPhase,
    /// The call that was running, in phase `tool` only.
    #[serde(
        default,
        deserialize_with = "read::present_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_call_id: Option<String>,
    /// Always `escape`.
    pub reason: AbortReason,
}

/// What was going on when an abort was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AbortPhase {
    /// The model was answering.
    Model,
    /// A tool was running.
    Tool,
    /// The model was summarising.
    Compact,
}

/// The only reason that the format knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AbortReason {
    /// Somebody asked for it.
    Escape,
}

/// The operation has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperationFinished {
    /// The operation.
    pub operation_id: Id,
    /// Its kind.
    pub operation_kind: OperationKind,
    /// How it ended.
    pub outcome: Outcome,
    /// For a completed run only.
    #[serde(default, deserialize_with = "read::present", skip_serializing_if = "Option::is_none")]
    pub completion: Option<Completion>,
    /// The answer or the compaction entry; for a completed operation only.
    #[serde(default, deserialize_with = "read::present", skip_serializing_if = "Option::is_none")]
    pub final_entry_id: Option<Id>,
    /// For a failed operation only.
    #[serde(default, deserialize_with = "read::present", skip_serializing_if = "Option::is_none")]
    pub error: Option<FactError>,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// With its result.
    Completed,
    /// On request.
    Aborted,
    /// With an error.
    Failed,
}

/// How a run completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Completion {
    /// The model was done.
    Normal,
    /// The token limit cut an answer that held calls.
    Truncated,
}

/// Reads a record and checks what its fields say together.
pub(super) fn from_value(value: Value) -> Result<Record, String> {
    let record: Record = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let consistent = match &record {
        Record::RunStarted(started) => started.operation_kind == OperationKind::Run,
        Record::CompactionStarted(started) => started.operation_kind == OperationKind::Compaction,
        Record::AbortRequested(abort) => {
            (abort.phase == AbortPhase::Tool) == abort.tool_call_id.is_some()
        }
        Record::OperationFinished(finished) => finished.is_consistent(),
        Record::StepAttempt(attempt) => attempt.configuration_snapshot.names_are_unique(),
        Record::StepFailed(_) | Record::ToolStarted(_) => true,
    };
    consistent.then_some(record).ok_or_else(|| "fields that do not go together".to_owned())
}

impl OperationFinished {
    const fn is_consistent(&self) -> bool {
        let is_run = matches!(self.operation_kind, OperationKind::Run);
        match self.outcome {
            Outcome::Completed => {
                self.completion.is_some() == is_run
                    && self.final_entry_id.is_some()
                    && self.error.is_none()
            }
            Outcome::Aborted => {
                self.completion.is_none() && self.final_entry_id.is_none() && self.error.is_none()
            }
            Outcome::Failed => {
                self.completion.is_none() && self.final_entry_id.is_none() && self.error.is_some()
            }
        }
    }
}
