//! Applies compactions: which messages a summary replaces, and that the rest is kept whole.

use super::Reducer;
use super::corruption::{Fault, require};
use super::entry::require_unique_calls;
use super::index::IdUse;
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::json::canonical;
use crate::session::facts::message::{Message, StopReason};
use crate::session::facts::{CompactionEntry, CompactionStarted, OperationKind, RetainedMessage};
use crate::session::state::{
    CompactionOperation, Operation, Placed, RunOperation, SessionState, StepStatus,
};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// Stands before a summary in the context.
const SUMMARY_HEADING: &str = "[Compacted history]\n";

impl Reducer {
    pub(super) fn start_compaction(&mut self, started: &CompactionStarted) -> Result<(), Fault> {
        require(may_compact(&self.state), || Fault::transition("another operation is going on"))?;
        self.begin(&started.operation_id, OperationKind::Compaction)?;
        self.index.reserve(&started.result_entry_id, IdUse::ReservedCompaction)?;
        let through = &started.input_through_entry_id;
        let end = self.position(through).ok_or_else(|| not_a_message(through))?;
        let source = self.state.transcript.get(..=end).unwrap_or_default();
        let partition = started.compacted_entry_ids.iter().chain(&started.retained_entry_ids);
        require(partition.eq(source.iter().map(|placed| &placed.entry_id)), || {
            Fault::reference("the lists are not all messages up to `inputThroughEntryId`")
        })?;
        require(digest_of(source) == started.source_digest, || {
            Fault::reference("`sourceDigest` is not the digest of the messages")
        })?;
        let suspended = match std::mem::replace(&mut self.state.operation, Operation::Idle) {
            Operation::Run(run) => Some(Box::new(run)),
            Operation::Idle | Operation::Compaction(_) => None,
        };
        self.state.operation = Operation::Compaction(CompactionOperation {
            operation_id: started.operation_id.clone(),
            input_through_entry_id: through.clone(),
            result_entry_id: started.result_entry_id.clone(),
            abort_requested: false,
            step: None,
            compacted_through_entry_id: started.compacted_entry_ids.last().cloned(),
            suspended,
        });
        Ok(())
    }

    pub(super) fn apply_compaction(
        &mut self,
        id: &Id,
        entry: &CompactionEntry,
    ) -> Result<IdUse, Fault> {
        let reserved = self.index.ids.get(id) == Some(&IdUse::ReservedCompaction);
        require(reserved, || Fault::reference("no compaction has provided for this entry"))?;
        self.index.unfinished(&entry.operation_id)?;
        let input = self.current_compaction(id, entry)?.clone();
        let retained = self.retained(entry, &input)?;
        let step = self.state.operation.step_mut().and_then(Option::as_mut);
        let step = step.filter(|step| step.status == StepStatus::Attempting);
        let step = step.ok_or_else(|| Fault::transition("no attempt is open"))?;
        step.status = StepStatus::Settled;
        step.settled_entry_id = Some(id.clone());
        let summary = Message::user(format!("{SUMMARY_HEADING}{}", entry.summary));
        let summary = Placed { entry_id: id.clone(), message: Arc::new(summary) };
        self.state.active_context = std::iter::once(summary).chain(retained).collect();
        self.state.context_through = Some(input);
        self.index.ids.remove(id);
        Ok(IdUse::CompactionEntry)
    }

    /// The input boundary of the compaction that is going on, if `entry` is its result.
    fn current_compaction(&self, id: &Id, entry: &CompactionEntry) -> Result<&Id, Fault> {
        let Operation::Compaction(compaction) = &self.state.operation else {
            return Err(Fault::transition("no compaction is going on"));
        };
        require(compaction.operation_id == entry.operation_id, || {
            Fault::transition("another compaction is going on")
        })?;
        require(compaction.result_entry_id == *id, || {
            Fault::reference("the compaction has provided for another entry")
        })?;
        Ok(&compaction.input_through_entry_id)
    }

    /// The messages between the two boundaries, if the entry holds exactly these.
    fn retained(&self, entry: &CompactionEntry, input: &Id) -> Result<Vec<Placed>, Fault> {
        let through = &entry.compacted_through_entry_id;
        let start = self.position(through).ok_or_else(|| not_a_message(through))?;
        let end = self.position(input).ok_or_else(|| not_a_message(input))?;
        let source = self.state.transcript.get(start + 1..=end);
        let source = source.ok_or_else(|| Fault::reference("the boundaries are in wrong order"))?;
        let same = |(kept, placed): (&RetainedMessage, &Placed)| {
            kept.source_entry_id == placed.entry_id && kept.message == *placed.message
        };
        let complete = entry.retained_tail.len() == source.len()
            && entry.retained_tail.iter().zip(source).all(same);
        require(complete, || {
            Fault::reference("`retainedTail` is not all messages between the boundaries")
        })?;
        require_legal(source)?;
        Ok(source.to_vec())
    }

    fn position(&self, id: &Id) -> Option<usize> {
        match self.index.ids.get(id) {
            Some(IdUse::Message(position)) => Some(*position),
            _ => None,
        }
    }
}

/// An idle session, or in a file of ours a run between two steps.
fn may_compact(state: &SessionState) -> bool {
    match &state.operation {
        Operation::Idle => true,
        Operation::Run(run) => state.header.is_extended() && between_steps(run, state),
        Operation::Compaction(_) => false,
    }
}

fn between_steps(run: &RunOperation, state: &SessionState) -> bool {
    let settled = run.step.as_ref().is_none_or(|step| {
        step.status == StepStatus::Settled && step.stop_reason == Some(StopReason::ToolUse)
    });
    let answered =
        state.open_turn.as_ref().is_none_or(crate::session::state::OpenTurn::is_answered);
    settled && answered && !run.abort_requested
}

/// The digest that a compaction of all messages up to `through` must carry.
pub(super) fn source_digest(transcript: &[Placed], through: &Id) -> Option<Digest> {
    let end = transcript.iter().rposition(|placed| placed.entry_id == *through)?;
    transcript.get(..=end).map(digest_of)
}

fn digest_of(source: &[Placed]) -> Digest {
    let list: Vec<Value> = source
        .iter()
        .map(|placed| json!({"sourceEntryId": placed.entry_id, "message": *placed.message}))
        .collect();
    Digest::of(canonical(&Value::Array(list)).as_bytes())
}

/// Whether a provider would accept the messages: every result has its call before it, every call its
/// result before the next message.
fn require_legal(messages: &[Placed]) -> Result<(), Fault> {
    let mut open = HashSet::new();
    for placed in messages {
        let fits = match &*placed.message {
            Message::Tool(tool) => open.remove(tool.tool_call_id.as_str()),
            Message::User(_) => open.is_empty(),
            Message::Assistant(answer) => {
                require_unique_calls(&answer.tool_calls)?;
                let complete = open.is_empty();
                open.extend(answer.tool_calls.iter().map(|call| call.id.as_str()));
                complete
            }
        };
        require(fits, || Fault::transcript("`retainedTail` cuts a call from its result"))?;
    }
    Ok(())
}

fn not_a_message(id: &Id) -> Fault {
    Fault::reference(format!("`{id}` is not a message"))
}
