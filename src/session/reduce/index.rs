//! What the fold must remember beside the state: who used which identity, and for what.

use super::corruption::{CorruptionCode, Fault, require};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::session::facts::OperationKind;
use crate::session::facts::configuration::ConfigurationSnapshot;
use crate::session::facts::message::Message;
use crate::session::state::{Operation, SessionState, ToolState};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What an identity stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdUse {
    /// A fact that nothing refers to.
    Fact,
    /// A message entry: its position in the transcript.
    Message(usize),
    /// A compaction entry.
    CompactionEntry,
    /// The start of a tool in an operation.
    ToolStart(usize),
    /// An operation.
    Operation(usize),
    /// A step.
    Step,
    /// An attempt in an operation.
    Attempt(usize),
    /// A result entry to come.
    ReservedResult,
    /// A compaction entry to come.
    ReservedCompaction,
}

impl IdUse {
    /// Whether no fact has this identity yet.
    pub(super) const fn is_reserved(&self) -> bool {
        match self {
            Self::Operation(_)
            | Self::Step
            | Self::Attempt(_)
            | Self::ReservedResult
            | Self::ReservedCompaction => true,
            Self::Fact | Self::Message(_) | Self::CompactionEntry | Self::ToolStart(_) => false,
        }
    }
}

/// An operation of the file.
#[derive(Debug)]
pub(super) struct OperationInfo {
    pub(super) kind: OperationKind,
    pub(super) finished: bool,
}

/// What the fold must remember beside the state.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) ids: HashMap<Id, IdUse>,
    pub(super) operations: Vec<OperationInfo>,
    /// Calls of the transcript that have no result.
    pub(super) unanswered: HashSet<String>,
    /// The first message of the transaction that cannot stand where it does.
    pub(super) transcript_fault: Option<String>,
    /// Calls that a failed run left without a result.
    pub(super) abandoned: HashMap<Id, ToolState>,
    /// The latest snapshot with its digest, which most steps repeat.
    pub(super) snapshot: Option<(Arc<ConfigurationSnapshot>, Digest)>,
}

impl Index {
    pub(super) fn reserve(&mut self, id: &Id, what: IdUse) -> Result<(), Fault> {
        require(!self.ids.contains_key(id), || {
            Fault::new(CorruptionCode::DuplicateId, format!("`{id}` is used already"))
        })?;
        self.ids.insert(id.clone(), what);
        Ok(())
    }

    /// The number of a known, unfinished operation.
    pub(super) fn unfinished(&self, id: &Id) -> Result<(usize, OperationKind), Fault> {
        let (number, info) = self.operation(id)?;
        require(!info.finished, || Fault::transition(format!("operation `{id}` is finished")))?;
        Ok((number, info.kind))
    }

    /// A known operation.
    pub(super) fn operation(&self, id: &Id) -> Result<(usize, &OperationInfo), Fault> {
        match self.ids.get(id) {
            Some(IdUse::Operation(number)) => {
                self.operations.get(*number).map(|info| (*number, info))
            }
            _ => None,
        }
        .ok_or_else(|| Fault::reference(format!("`{id}` is not an operation")))
    }

    /// Keeps track of which calls have results as `message` joins the transcript.
    pub(super) fn follow(&mut self, message: &Message) {
        let fits = match message {
            Message::Tool(tool) => self.unanswered.remove(&tool.tool_call_id),
            Message::User(_) => self.unanswered.is_empty(),
            Message::Assistant(answer) => {
                let complete = self.unanswered.is_empty();
                self.unanswered.extend(answer.tool_calls.iter().map(|call| call.id.clone()));
                complete
            }
        };
        if !fits && self.transcript_fault.is_none() {
            self.transcript_fault = Some(match message {
                Message::Tool(_) => "a result without an open call".to_owned(),
                Message::User(_) | Message::Assistant(_) => "open calls have no result".to_owned(),
            });
        }
    }
}

/// Requires that `id` is the operation that is going on.
pub(super) fn require_current(state: &SessionState, id: &Id) -> Result<(), Fault> {
    require(state.operation.id() == Some(id), || {
        Fault::transition(format!("operation `{id}` is not the one that is going on"))
    })
}

/// The current run, if it is `id`.
pub(super) fn current_run<'state>(
    operation: &'state mut Operation,
    id: &Id,
) -> Option<&'state mut crate::session::state::RunOperation> {
    match operation {
        Operation::Run(run) if run.operation_id == *id => Some(run),
        Operation::Run(_) | Operation::Idle | Operation::Compaction(_) => None,
    }
}
