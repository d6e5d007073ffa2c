//! Applies entries: user messages, answers and results.

use super::Reducer;
use super::corruption::{CorruptionCode, Fault, require};
use super::index::IdUse;
use crate::base::ids::Id;
use crate::session::facts::message::{Message, StopReason, SyntheticReason, ToolCall};
use crate::session::facts::{
    AssistantEntry, Entry, StartedResult, StepKind, SyntheticEntry, ToolResultEntry,
};
use crate::session::state::{
    CallProgress, OpenTurn, Operation, Placed, Spent, StepStatus, ToolState, ToolStatus,
};
use std::collections::HashSet;
use std::sync::Arc;

impl Reducer {
    pub(super) fn apply_entry(&mut self, id: &Id, entry: &Entry) -> Result<IdUse, Fault> {
        match entry {
            Entry::User(_) => {
                self.require_fresh(id)?;
                self.state.spent.push((id.clone(), Spent::default()));
            }
            Entry::Assistant(answer) => {
                self.require_fresh(id)?;
                self.settle(id, answer)?;
                self.state.spend(|spent| spent.answers += 1);
            }
            Entry::ToolResult(result) => self.complete(id, result)?,
            Entry::Synthetic(result) => self.answer_unstarted(result)?,
            Entry::Compaction(compaction) => return self.apply_compaction(id, compaction),
        }
        let message = entry.message().ok_or_else(|| Fault::fact("an entry without a message"))?;
        self.index.follow(&message);
        let placed = Placed { entry_id: id.clone(), message: Arc::new(message) };
        let position = self.state.transcript.len();
        self.state.active_context.push(placed.clone());
        self.state.transcript.push(placed);
        self.state.context_through = Some(id.clone());
        Ok(IdUse::Message(position))
    }

    fn require_fresh(&self, id: &Id) -> Result<(), Fault> {
        require(!self.index.ids.contains_key(id), || {
            Fault::new(CorruptionCode::DuplicateId, format!("`{id}` is used already"))
        })
    }

    fn settle(&mut self, id: &Id, answer: &AssistantEntry) -> Result<(), Fault> {
        require_unique_calls(&answer.message.tool_calls)?;
        let no_attempt = || Fault::reference("the answer settles no open attempt");
        let step = self.state.operation.step_mut().and_then(Option::as_mut);
        let step = step.ok_or_else(no_attempt)?;
        let open = step.attempt_id == answer.attempt_id
            && step.step_id == answer.step_id
            && step.status == StepStatus::Attempting
            && step.step_kind == StepKind::Assistant;
        require(open, no_attempt)?;
        let has_calls = !answer.message.tool_calls.is_empty();
        let fits = match answer.stop_reason {
            StopReason::Stop => !has_calls,
            StopReason::ToolUse => has_calls,
            StopReason::Length => true,
        };
        require(fits, || Fault::transcript("`stopReason` and `tool_calls` do not go together"))?;
        step.status = StepStatus::Settled;
        step.settled_entry_id = Some(id.clone());
        step.stop_reason = Some(answer.stop_reason);
        self.state.open_turn = Some(OpenTurn {
            assistant_entry_id: id.clone(),
            step_id: answer.step_id.clone(),
            calls: vec![CallProgress::Untouched; answer.message.tool_calls.len()],
        });
        Ok(())
    }

    fn complete(&mut self, id: &Id, result: &ToolResultEntry) -> Result<(), Fault> {
        let reserved = self.index.ids.get(id) == Some(&IdUse::ReservedResult);
        require(reserved, || Fault::reference("no tool start has provided for this result"))?;
        if result.result == StartedResult::Interrupted {
            require_fixed_text(SyntheticReason::Interrupted, &result.message.content)?;
        }
        let started = self.started_mut(&result.tool_started_id);
        let started = started.filter(|started| {
            started.step_id == result.step_id
                && started.result_entry_id == *id
                && started.tool_call_id == result.message.tool_call_id
                && started.tool_name == result.tool_name
                && started.status == ToolStatus::Pending
        });
        let started = started.ok_or_else(|| Fault::reference("the result answers no open call"))?;
        started.status = ToolStatus::Completed;
        let (assistant, index) = (started.assistant_entry_id.clone(), started.tool_index);
        self.progress(&assistant, index, CallProgress::Answered);
        self.index.ids.remove(id);
        Ok(())
    }

    /// A started call of the current run, or one that a failed run left open.
    fn started_mut(&mut self, id: &Id) -> Option<&mut ToolState> {
        let found = match &mut self.state.operation {
            Operation::Run(run) => {
                run.tool_calls.iter_mut().rev().find(|tool| tool.tool_started_id == *id)
            }
            Operation::Idle | Operation::Compaction(_) => None,
        };
        found.or_else(|| self.index.abandoned.get_mut(id))
    }

    pub(super) fn progress(&mut self, assistant: &Id, index: u64, to: CallProgress) {
        let turn = self.state.open_turn.as_mut();
        let turn = turn.filter(|turn| turn.assistant_entry_id == *assistant);
        let position = usize::try_from(index).ok();
        let call = turn.zip(position).and_then(|(turn, position)| turn.calls.get_mut(position));
        if let Some(call) = call {
            *call = to;
        }
    }

    fn answer_unstarted(&mut self, result: &SyntheticEntry) -> Result<(), Fault> {
        let assistant = &result.assistant_entry_id;
        let call = self.call(assistant, &result.step_id, result.tool_index)?;
        let same = call.id == result.message.tool_call_id && call.function.name == result.tool_name;
        require(same, || Fault::reference("the result names another call"))?;
        self.require_untouched(assistant, result.tool_index)?;
        require_fixed_text(result.result, &result.message.content)?;
        self.progress(assistant, result.tool_index, CallProgress::Answered);
        Ok(())
    }

    /// The call at `index` of an answer of the current run. Only the latest answer can have open
    /// calls, since the next is refused until all have results.
    pub(super) fn call(&self, assistant: &Id, step: &Id, index: u64) -> Result<&ToolCall, Fault> {
        let is_run = matches!(self.state.operation, Operation::Run(_));
        let turn = self.state.open_turn.as_ref().filter(|turn| {
            is_run && turn.assistant_entry_id == *assistant && turn.step_id == *step
        });
        let message = turn.and_then(|_| self.message(assistant));
        let position = usize::try_from(index).ok();
        message
            .zip(position)
            .and_then(|(message, position)| message.tool_calls().get(position))
            .ok_or_else(|| Fault::reference(format!("`{assistant}` has no open call {index}")))
    }

    pub(super) fn require_untouched(&self, assistant: &Id, index: u64) -> Result<(), Fault> {
        let turn = self.state.open_turn.as_ref();
        let turn = turn.filter(|turn| turn.assistant_entry_id == *assistant);
        let position = usize::try_from(index).ok();
        let call = turn.zip(position).and_then(|(turn, position)| turn.calls.get(position));
        require(call == Some(&CallProgress::Untouched), || {
            Fault::transition(format!("call {index} is started or answered already"))
        })
    }

    /// The message of an entry.
    pub(super) fn message(&self, id: &Id) -> Option<&Message> {
        match self.index.ids.get(id)? {
            IdUse::Message(position) => {
                self.state.transcript.get(*position).map(|placed| &*placed.message)
            }
            IdUse::Fact
            | IdUse::CompactionEntry
            | IdUse::ToolStart(_)
            | IdUse::Operation(_)
            | IdUse::Step
            | IdUse::Attempt(_)
            | IdUse::ReservedResult
            | IdUse::ReservedCompaction => None,
        }
    }
}

pub(super) fn require_unique_calls(calls: &[ToolCall]) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    require(calls.iter().all(|call| seen.insert(&call.id)), || {
        Fault::transcript("two calls of one message have the same identifier")
    })
}

fn require_fixed_text(reason: SyntheticReason, content: &str) -> Result<(), Fault> {
    require(content == reason.content(), || {
        Fault::transcript("the text of a synthetic result is not the fixed one")
    })
}
