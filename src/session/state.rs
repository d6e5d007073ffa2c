//! What a session is after its facts: the value that recovery, view and display work on.
//!
//! Serialising [`SessionState`] gives the form that every reader of the format agrees on; what our own
//! extensions add is kept beside it in [`ExtensionState`] and is not part of that form.

use crate::base::digest::Digest;
use crate::base::dollars::Dollars;
use crate::base::ids::Id;
use crate::session::facts::configuration::ConfigurationSnapshot;
use crate::session::facts::extension::{
    Denial, FinalStatistics, Injected, IterationStatistics, JobEnded, JobStarted, RunContext,
    SubAgentFinished, SubAgentStarted, Thinking,
};
use crate::session::facts::message::{Message, StopReason};
use crate::session::facts::{Counters, FactError, Header, Replay, StepKind};
use serde::Serialize;
use serde::ser::{SerializeSeq as _, Serializer};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The state of a session.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// The first line.
    #[serde(serialize_with = "plain_header")]
    pub header: Header,
    /// Every message ever, in the order of the file.
    #[serde(serialize_with = "messages")]
    pub transcript: Vec<Placed>,
    /// The messages that the model is sent: after a compaction, its summary and what follows.
    #[serde(serialize_with = "messages")]
    pub active_context: Vec<Placed>,
    /// Tokens used by the whole session.
    pub usage: Counters,
    /// What is going on.
    pub operation: Operation,
    /// Bytes of the file that hold complete lines.
    pub repaired_length: u64,
    /// The last message that `active_context` takes account of.
    #[serde(skip)]
    pub context_through: Option<Id>,
    /// The calls of the latest answer of the current run.
    #[serde(skip)]
    pub open_turn: Option<OpenTurn>,
    /// The sequence number of the next fact.
    #[serde(skip)]
    pub next_seq: u64,
    /// What our own facts say.
    #[serde(skip)]
    pub extension: ExtensionState,
    /// What was spent since each user message, until the next one.
    #[serde(skip)]
    pub(crate) spent: Vec<(Id, Spent)>,
}

/// What was spent, as far as budgets bound it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Answers of the model.
    pub answers: u64,
    /// Tokens, input and output.
    pub tokens: u64,
    /// Money, where prices were known.
    pub cost: Dollars,
    /// Calls that were started.
    pub calls: u64,
    /// Wall time in milliseconds, of the turns that are over.
    pub duration_ms: u64,
}

/// A message and the entry that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The entry; a compaction's summary has that of the compaction.
    pub entry_id: Id,
    /// The message.
    pub message: Arc<Message>,
}

/// What is going on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Operation {
    /// Nothing: a user message may be added.
    Idle,
    /// Work on a user message.
    Run(RunOperation),
    /// A summary of earlier messages.
    Compaction(CompactionOperation),
}

/// Work on a user message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOperation {
    /// The run.
    pub operation_id: Id,
    /// The user message.
    pub input_entry_id: Id,
    /// Every call that the run has started.
    pub tool_calls: Vec<ToolState>,
    /// Whether it is to end.
    pub abort_requested: bool,
    /// The latest step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
}

/// A summary of earlier messages.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionOperation {
    /// The compaction.
    pub operation_id: Id,
    /// The last message that it takes account of.
    pub input_through_entry_id: Id,
    /// The identity of its entry.
    pub result_entry_id: Id,
    /// Whether it is to end.
    pub abort_requested: bool,
    /// The latest step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// The last message that the summary is to cover.
    #[serde(skip)]
    pub compacted_through_entry_id: Option<Id>,
    /// The run in whose midst it takes place, which goes on when it has ended.
    #[serde(skip)]
    pub suspended: Option<Box<RunOperation>>,
}

/// A step: one model request, at most twice attempted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The operation.
    pub operation_id: Id,
    /// The step.
    pub step_id: Id,
    /// The latest attempt.
    pub attempt_id: Id,
    /// Its number.
    pub attempt: u8,
    /// What the model is to do.
    pub step_kind: StepKind,
    /// How far it is.
    pub status: StepStatus,
    /// The last message of the request.
    pub context_through_entry_id: Id,
    /// What the request depends on.
    #[serde(serialize_with = "shared")]
    pub configuration_snapshot: Arc<ConfigurationSnapshot>,
    /// The digest of the snapshot.
    pub configuration_digest: Digest,
    /// The entry that settled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_entry_id: Option<Id>,
    /// Why the answer ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Why it failed.
    #[serde(skip)]
    pub failure: Option<FactError>,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepStatus {
    /// The request may be on its way.
    Attempting,
    /// There is an answer.
    Settled,
    /// There is none.
    Failed,
}

/// A call that was started.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolState {
    /// The run.
    pub operation_id: Id,
    /// The `toolStarted` fact.
    pub tool_started_id: Id,
    /// The step of the assistant message.
    pub step_id: Id,
    /// The assistant message.
    pub assistant_entry_id: Id,
    /// Which of its calls.
    pub tool_index: u64,
    /// The call's identifier.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments that take effect.
    pub arguments: Map<String, Value>,
    /// Whether it may be repeated.
    pub replay: Replay,
    /// Which implementation it is.
    pub replay_key: String,
    /// Where it takes effect.
    pub environment_identity: String,
    /// The identity of the result entry.
    pub result_entry_id: Id,
    /// Whether there is a result.
    pub status: ToolStatus,
}

/// Whether a started call has a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolStatus {
    /// It may be running, or may have run.
    Pending,
    /// There is one.
    Completed,
}

/// The calls of the latest answer of the current run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTurn {
    /// The answer.
    pub assistant_entry_id: Id,
    /// The step that it settled.
    pub step_id: Id,
    /// How far each call is, in the order of the answer.
    pub calls: Vec<CallProgress>,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallProgress {
    /// Neither started nor answered.
    Untouched,
    /// Started; the position in [`RunOperation::tool_calls`].
    Started(usize),
    /// It has a result.
    Answered,
}

/// What our own facts say.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionState {
    /// What each run was allowed to do, the latest last.
    pub run_contexts: Vec<RunContext>,
    /// Reasoning, in the order of the answers.
    pub thinking: Vec<Thinking>,
    /// Refused calls.
    pub denials: Vec<Denial>,
    /// Turns.
    pub iterations: Vec<IterationStatistics>,
    /// User messages that no person wrote.
    pub injected: Vec<Injected>,
    /// Sub-agents.
    pub sub_agents: Vec<SubAgent>,
    /// Background jobs, in the order of their starts.
    pub jobs: Vec<Job>,
    /// Ends of operations.
    pub finals: Vec<FinalStatistics>,
}

/// What is known of a background job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its start.
    pub started: JobStarted,
    /// Its end.
    pub ended: Option<JobEnded>,
}

/// What is known of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubAgent {
    /// Its start.
    pub started: SubAgentStarted,
    /// Its end.
    pub finished: Option<SubAgentFinished>,
    /// Whether its result has been put before the model.
    pub delivered: bool,
}

impl SessionState {
    pub(crate) fn new(header: Header) -> Self {
        Self {
            header,
            transcript: Vec::new(),
            active_context: Vec::new(),
            usage: Counters::default(),
            operation: Operation::Idle,
            repaired_length: 0,
            context_through: None,
            open_turn: None,
            next_seq: 1,
            extension: ExtensionState::default(),
            spent: Vec::new(),
        }
    }

    /// Adds to what was spent since the last user message.
    pub(crate) fn spend(&mut self, add: impl FnOnce(&mut Spent)) {
        if let Some((_, spent)) = self.spent.last_mut() {
            add(spent);
        }
    }

    /// What was spent on the words that a person said last.
    #[must_use]
    pub fn spent_since_person(&self) -> Spent {
        let mut sum = Spent::default();
        for (entry, spent) in self.spent.iter().rev() {
            sum.answers += spent.answers;
            sum.tokens = sum.tokens.saturating_add(spent.tokens);
            sum.cost = sum.cost.plus(spent.cost);
            sum.calls += spent.calls;
            sum.duration_ms = sum.duration_ms.saturating_add(spent.duration_ms);
            if !self.extension.injected.iter().any(|injected| injected.entry_id == *entry) {
                break;
            }
        }
        sum
    }

    /// Whether nothing is going on, so that a user message may be added.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.operation, Operation::Idle)
    }

    /// The current run, also while a compaction in its midst is going on.
    #[must_use]
    pub fn run(&self) -> Option<&RunOperation> {
        match &self.operation {
            Operation::Idle => None,
            Operation::Run(run) => Some(run),
            Operation::Compaction(compaction) => compaction.suspended.as_deref(),
        }
    }

    /// The latest answer of the current run, with its calls.
    #[must_use]
    pub fn open_answer(&self) -> Option<(&OpenTurn, &Placed)> {
        let turn = self.open_turn.as_ref()?;
        let placed = self.transcript.iter().rev();
        let placed = placed.take_while(|placed| {
            placed.entry_id == turn.assistant_entry_id
                || !matches!(*placed.message, Message::Assistant(_))
        });
        placed
            .filter(|placed| placed.entry_id == turn.assistant_entry_id)
            .last()
            .map(|placed| (turn, placed))
    }

    /// Background results that have not been put before the model.
    #[must_use]
    pub fn undelivered(&self) -> Vec<&SubAgent> {
        self.extension
            .sub_agents
            .iter()
            .filter(|agent| {
                agent.started.background && agent.finished.is_some() && !agent.delivered
            })
            .collect()
    }

    /// Background jobs without an end. A job lives in the process that started it: in a session that was
    /// just opened these are gone.
    pub fn lost_jobs(&self) -> impl Iterator<Item = &Job> {
        self.extension.jobs.iter().filter(|job| job.ended.is_none())
    }
}

impl Operation {
    /// Its identity; none when idle.
    #[must_use]
    pub const fn id(&self) -> Option<&Id> {
        match self {
            Self::Idle => None,
            Self::Run(run) => Some(&run.operation_id),
            Self::Compaction(compaction) => Some(&compaction.operation_id),
        }
    }

    /// The latest step.
    #[must_use]
    pub const fn step(&self) -> Option<&Step> {
        match self {
            Self::Idle => None,
            Self::Run(run) => run.step.as_ref(),
            Self::Compaction(compaction) => compaction.step.as_ref(),
        }
    }

    pub(crate) const fn step_mut(&mut self) -> Option<&mut Option<Step>> {
        match self {
            Self::Idle => None,
            Self::Run(run) => Some(&mut run.step),
            Self::Compaction(compaction) => Some(&mut compaction.step),
        }
    }

    /// Whether it is to end.
    #[must_use]
    pub const fn abort_requested(&self) -> bool {
        match self {
            Self::Idle => false,
            Self::Run(run) => run.abort_requested,
            Self::Compaction(compaction) => compaction.abort_requested,
        }
    }
}

impl OpenTurn {
    /// Whether every call has a result.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.calls.iter().all(|call| *call == CallProgress::Answered)
    }
}

fn messages<S: Serializer>(placed: &[Placed], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(placed.len()))?;
    for item in placed {
        list.serialize_element(&*item.message)?;
    }
    list.end()
}

fn shared<S: Serializer>(
    snapshot: &Arc<ConfigurationSnapshot>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    snapshot.as_ref().serialize(serializer)
}

/// The header without the declaration of extensions, which is ours alone.
fn plain_header<S: Serializer>(header: &Header, serializer: S) -> Result<S::Ok, S::Error> {
    Header { extensions: Vec::new(), ..header.clone() }.serialize(serializer)
}
