//! Applies records and usage.

use super::Reducer;
use super::corruption::{Fault, require};
use super::index::{IdUse, OperationInfo, current_run, require_current};
use crate::base::ids::Id;
use crate::session::facts::configuration::ConfigurationSnapshot;
use crate::session::facts::message::{Message, StopReason};
use crate::session::facts::{
    AbortRequested, Completion, OperationFinished, OperationKind, Outcome, Record, RunStarted,
    StepAttempt, StepFailed, StepKind, ToolStarted, Usage,
};
use crate::session::state::{
    CallProgress, Operation, RunOperation, Step, StepStatus, ToolState, ToolStatus,
};
use std::sync::Arc;

impl Reducer {
    pub(super) fn apply_record(&mut self, id: &Id, record: &Record) -> Result<IdUse, Fault> {
        match record {
            Record::RunStarted(started) => self.start_run(started)?,
            Record::CompactionStarted(started) => self.start_compaction(started)?,
            Record::StepAttempt(attempt) => self.attempt(attempt)?,
            Record::StepFailed(failed) => self.fail_step(failed)?,
            Record::ToolStarted(started) => return self.start_tool(id, started),
            Record::AbortRequested(abort) => self.request_abort(abort)?,
            Record::OperationFinished(finished) => self.finish(finished)?,
        }
        Ok(IdUse::Fact)
    }

    pub(super) fn begin(&mut self, id: &Id, kind: OperationKind) -> Result<(), Fault> {
        self.index.reserve(id, IdUse::Operation(self.index.operations.len()))?;
        self.index.operations.push(OperationInfo { kind, finished: false });
        Ok(())
    }

    fn start_run(&mut self, started: &RunStarted) -> Result<(), Fault> {
        require(self.state.is_idle(), || Fault::transition("another operation is going on"))?;
        self.begin(&started.operation_id, OperationKind::Run)?;
        let input = self.message(&started.input_entry_id);
        require(matches!(input, Some(Message::User(_))), || {
            Fault::reference("`inputEntryId` is not a user message")
        })?;
        self.state.operation = Operation::Run(RunOperation {
            operation_id: started.operation_id.clone(),
            input_entry_id: started.input_entry_id.clone(),
            tool_calls: Vec::new(),
            abort_requested: false,
            step: None,
        });
        Ok(())
    }

    fn attempt(&mut self, attempt: &StepAttempt) -> Result<(), Fault> {
        let (number, kind) = self.index.unfinished(&attempt.operation_id)?;
        if attempt.attempt == 1 {
            self.index.reserve(&attempt.step_id, IdUse::Step)?;
        }
        self.index.reserve(&attempt.attempt_id, IdUse::Attempt(number))?;
        require_current(&self.state, &attempt.operation_id)?;
        let expected = match kind {
            OperationKind::Run => StepKind::Assistant,
            OperationKind::Compaction => StepKind::Compaction,
        };
        require(attempt.step_kind == expected, || {
            Fault::transition("`stepKind` does not fit the operation")
        })?;
        self.require_context(attempt)?;
        let snapshot = self.checked_snapshot(attempt)?;
        self.require_turn(attempt)?;
        let step = Step {
            operation_id: attempt.operation_id.clone(),
            step_id: attempt.step_id.clone(),
            attempt_id: attempt.attempt_id.clone(),
            attempt: attempt.attempt,
            step_kind: attempt.step_kind,
            status: StepStatus::Attempting,
            context_through_entry_id: attempt.context_through_entry_id.clone(),
            configuration_snapshot: snapshot,
            configuration_digest: attempt.configuration_digest,
            settled_entry_id: None,
            stop_reason: None,
            failure: None,
        };
        if let Some(slot) = self.state.operation.step_mut() {
            *slot = Some(step);
        }
        Ok(())
    }

    fn require_context(&self, attempt: &StepAttempt) -> Result<(), Fault> {
        let context = &attempt.context_through_entry_id;
        let known = self.index.ids.get(context);
        let is_entry = matches!(known, Some(IdUse::Message(_) | IdUse::CompactionEntry));
        require(is_entry, || Fault::reference(format!("`{context}` is not an entry")))?;
        let is_boundary = self.state.context_through.as_ref() == Some(context);
        require(attempt.attempt != 1 || is_boundary, || {
            Fault::transition("`contextThroughEntryId` is not the end of the context")
        })
    }

    /// The snapshot, shared with the step before if it is the same.
    fn checked_snapshot(
        &mut self,
        attempt: &StepAttempt,
    ) -> Result<Arc<ConfigurationSnapshot>, Fault> {
        let known = self.index.snapshot.as_ref();
        let known = known.filter(|known| *known.0 == attempt.configuration_snapshot).cloned();
        let (shared, digest) = known.unwrap_or_else(|| {
            let snapshot = &attempt.configuration_snapshot;
            (Arc::new(snapshot.clone()), snapshot.digest())
        });
        require(digest == attempt.configuration_digest, || {
            Fault::fact("`configurationDigest` is not the digest of the snapshot")
        })?;
        self.index.snapshot = Some((Arc::clone(&shared), digest));
        Ok(shared)
    }

    /// A first attempt needs the step before settled and all its calls answered; a second needs the
    /// first open and equal.
    fn require_turn(&self, attempt: &StepAttempt) -> Result<(), Fault> {
        let step = self.state.operation.step();
        let fits = match (attempt.attempt, step) {
            (1, None) => true,
            (1, Some(step)) => {
                step.status == StepStatus::Settled
                    && step.step_kind == StepKind::Assistant
                    && step.stop_reason == Some(StopReason::ToolUse)
                    && !self.has_pending_tool()
            }
            (_, None) => false,
            (_, Some(step)) => {
                step.attempt == 1
                    && step.step_id == attempt.step_id
                    && step.status == StepStatus::Attempting
                    && step.context_through_entry_id == attempt.context_through_entry_id
                    && step.configuration_digest == attempt.configuration_digest
            }
        };
        require(fits, || Fault::transition("no attempt can be made at this point"))
    }

    /// Only calls of the latest answer can be pending.
    pub(super) fn has_pending_tool(&self) -> bool {
        let turn = self.state.open_turn.as_ref();
        turn.is_some_and(|turn| {
            turn.calls.iter().any(|call| matches!(call, CallProgress::Started(_)))
        })
    }

    fn fail_step(&mut self, failed: &StepFailed) -> Result<(), Fault> {
        self.index.unfinished(&failed.operation_id)?;
        let step = self.state.operation.step_mut().and_then(Option::as_mut);
        let step = step.filter(|step| {
            step.operation_id == failed.operation_id
                && step.attempt_id == failed.attempt_id
                && step.step_id == failed.step_id
                && step.status == StepStatus::Attempting
        });
        let step = step.ok_or_else(|| Fault::reference("no such attempt is open"))?;
        step.status = StepStatus::Failed;
        step.failure = Some(failed.error.clone());
        Ok(())
    }

    fn start_tool(&mut self, id: &Id, started: &ToolStarted) -> Result<IdUse, Fault> {
        let (number, _) = self.index.unfinished(&started.operation_id)?;
        require_current(&self.state, &started.operation_id)?;
        let assistant = &started.assistant_entry_id;
        let call = self.call(assistant, &started.step_id, started.tool_index)?;
        let same = call.id == started.tool_call_id && call.function.name == started.tool_name;
        require(same, || Fault::reference("the start names another call"))?;
        let step = self.state.operation.step();
        let executable = step.is_some_and(|step| step.stop_reason == Some(StopReason::ToolUse));
        require(executable, || Fault::reference("the calls of a cut answer never start"))?;
        self.require_untouched(assistant, started.tool_index)?;
        let declared = step.is_some_and(|step| {
            step.configuration_snapshot.tools.iter().any(|tool| tool.name == started.tool_name)
        });
        require(declared, || Fault::transition("the tool was not in the request"))?;
        self.index.reserve(&started.result_entry_id, IdUse::ReservedResult)?;
        let run = current_run(&mut self.state.operation, &started.operation_id);
        let run = run.ok_or_else(|| Fault::transition("no run is going on"))?;
        let position = run.tool_calls.len();
        run.tool_calls.push(tool_state(id, started));
        self.progress(assistant, started.tool_index, CallProgress::Started(position));
        self.state.spend(|spent| spent.calls += 1);
        Ok(IdUse::ToolStart(number))
    }

    fn request_abort(&mut self, abort: &AbortRequested) -> Result<(), Fault> {
        let (_, kind) = self.index.unfinished(&abort.operation_id)?;
        require_current(&self.state, &abort.operation_id)?;
        let first = abort.operation_kind == kind && !self.state.operation.abort_requested();
        require(first, || Fault::transition("no abort can be asked for at this point"))?;
        match &mut self.state.operation {
            Operation::Idle => {}
            Operation::Run(run) => run.abort_requested = true,
            Operation::Compaction(compaction) => compaction.abort_requested = true,
        }
        Ok(())
    }

    fn finish(&mut self, finished: &OperationFinished) -> Result<(), Fault> {
        let (number, kind) = self.index.unfinished(&finished.operation_id)?;
        require_current(&self.state, &finished.operation_id)?;
        require(finished.operation_kind == kind, || {
            Fault::transition("`operationKind` does not fit the operation")
        })?;
        match finished.outcome {
            Outcome::Completed => self.require_completed(finished)?,
            Outcome::Aborted => self.require_aborted()?,
            Outcome::Failed => {}
        }
        if let Some(info) = self.index.operations.get_mut(number) {
            info.finished = true;
        }
        self.leave_operation();
        Ok(())
    }

    /// Goes back to the run in whose midst a compaction took place, or to idle.
    fn leave_operation(&mut self) {
        let operation = std::mem::replace(&mut self.state.operation, Operation::Idle);
        match operation {
            Operation::Idle => {}
            Operation::Run(run) => {
                let pending = run.tool_calls.into_iter();
                let pending = pending.filter(|tool| tool.status == ToolStatus::Pending);
                let pending = pending.map(|tool| (tool.tool_started_id.clone(), tool));
                self.index.abandoned.extend(pending);
                self.state.open_turn = None;
            }
            Operation::Compaction(compaction) => {
                if let Some(run) = compaction.suspended {
                    self.state.operation = Operation::Run(*run);
                }
            }
        }
    }

    fn require_completed(&self, finished: &OperationFinished) -> Result<(), Fault> {
        let step = self.state.operation.step();
        let step = step.filter(|step| {
            step.status == StepStatus::Settled && step.settled_entry_id == finished.final_entry_id
        });
        let not_final = || Fault::reference("`finalEntryId` is not what the last step gave");
        let step = step.ok_or_else(not_final)?;
        let Some(completion) = finished.completion else { return Ok(()) };
        let expected = match completion {
            Completion::Normal => StopReason::Stop,
            Completion::Truncated => StopReason::Length,
        };
        require(step.stop_reason == Some(expected), not_final)?;
        let message = finished.final_entry_id.as_ref().and_then(|id| self.message(id));
        let message = message.ok_or_else(not_final)?;
        let sound = match completion {
            Completion::Normal => message.content().is_some_and(|text| !text.trim().is_empty()),
            Completion::Truncated => !message.tool_calls().is_empty(),
        };
        require(sound, || Fault::transcript("the final answer is empty, or has no cut calls"))?;
        require(!self.has_pending_tool(), || Fault::transcript("a call has no result"))
    }

    fn require_aborted(&self) -> Result<(), Fault> {
        let operation = &self.state.operation;
        let attempting = operation.step().is_some_and(|step| step.status == StepStatus::Attempting);
        let pending = matches!(operation, Operation::Run(_)) && self.has_pending_tool();
        require(operation.abort_requested() && !attempting && !pending, || {
            Fault::transition("an abort was not asked for, or something is still open")
        })
    }

    pub(super) fn apply_usage(&mut self, usage: &Usage) -> Result<IdUse, Fault> {
        let (number, _) = self.index.operation(&usage.operation_id)?;
        let (owner, expected) = match (&usage.attempt_id, &usage.tool_started_id) {
            (Some(attempt), None) => (attempt, IdUse::Attempt(number)),
            (None, Some(tool)) => (tool, IdUse::ToolStart(number)),
            (None, None) | (Some(_), Some(_)) => {
                return Err(Fault::fact("either `attemptId` or `toolStartedId` must be given"));
            }
        };
        require(self.index.ids.get(owner) == Some(&expected), || {
            Fault::reference(format!("`{owner}` does not belong to the operation"))
        })?;
        let sum = self.state.usage.checked_add(usage.usage);
        self.state.usage = sum.ok_or_else(|| Fault::fact("a token sum passes 2^53-1"))?;
        let tokens = usage.usage.input.saturating_add(usage.usage.output);
        self.state.spend(|spent| spent.tokens = spent.tokens.saturating_add(tokens));
        Ok(IdUse::Fact)
    }
}

fn tool_state(id: &Id, started: &ToolStarted) -> ToolState {
    ToolState {
        operation_id: started.operation_id.clone(),
        tool_started_id: id.clone(),
        step_id: started.step_id.clone(),
        assistant_entry_id: started.assistant_entry_id.clone(),
        tool_index: started.tool_index,
        tool_call_id: started.tool_call_id.clone(),
        tool_name: started.tool_name.clone(),
        arguments: started.arguments.clone(),
        replay: started.replay,
        replay_key: started.replay_key.clone(),
        environment_identity: started.environment_identity.clone(),
        result_entry_id: started.result_entry_id.clone(),
        status: ToolStatus::Pending,
    }
}
