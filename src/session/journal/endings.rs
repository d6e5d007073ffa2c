//! Typed appends that end an operation: as its answer says, on request, or with an error.
//!
//! Whatever is open is closed first, so that the session can always be gone on with.

use super::steps::{failed_step, idle, unfit};
use super::{Draft, Journal, SessionError};
use crate::session::facts::configuration::{CurrentConfiguration, CurrentTool};
use crate::session::facts::extension::{Extension, FinalStatistics};
use crate::session::facts::{
    AbortPhase, AbortReason, AbortRequested, Body, FactError, OperationFinished, OperationKind,
    Outcome, Record, Replay,
};
use crate::session::plan::{Plan, close_calls, plan};
use crate::session::state::{CallProgress, Operation, SessionState, ToolState};

impl Journal {
    /// Records that the operation is to end. Does nothing if that is recorded already.
    ///
    /// # Errors
    /// As [`Journal::append`]; an operation must be going on.
    pub fn abort_requested(&mut self) -> Result<(), SessionError> {
        let Some(operation_id) = self.state().operation.id().cloned() else {
            return Err(idle("abort"));
        };
        if self.state().operation.abort_requested() {
            return Ok(());
        }
        let tool = self.first_pending().map(|tool| tool.tool_call_id.clone());
        let (operation_kind, phase) = match (&self.state().operation, &tool) {
            (Operation::Compaction(_), _) => (OperationKind::Compaction, AbortPhase::Compact),
            (Operation::Idle | Operation::Run(_), Some(_)) => {
                (OperationKind::Run, AbortPhase::Tool)
            }
            (Operation::Idle | Operation::Run(_), None) => (OperationKind::Run, AbortPhase::Model),
        };
        let record = Record::AbortRequested(AbortRequested {
            operation_id,
            operation_kind,
            phase,
            tool_call_id: tool.filter(|_| phase == AbortPhase::Tool),
            reason: AbortReason::Escape,
        });
        self.append(vec![Draft::new(Body::Record(record))]).map(drop)
    }

    /// Ends the operation as its last answer says: completed, cut, or failed. The statistics go into
    /// the same transaction.
    ///
    /// # Errors
    /// [`SessionError::Unfit`] if something is still open, and as [`Journal::append`].
    pub fn operation_finished(
        &mut self,
        statistics: Option<FinalStatistics>,
    ) -> Result<Outcome, SessionError> {
        let next = plan(self.state(), &own_configuration(self.state()));
        match next {
            Plan::Finish { .. } if !self.state().is_idle() => self.finish(next, statistics),
            Plan::Finish { .. }
            | Plan::StartStep { .. }
            | Plan::StartTool { .. }
            | Plan::AppendSynthetic { .. }
            | Plan::CloseAttempt { .. }
            | Plan::Blocked { .. } => Err(unfit("end the operation", "it is not at its end")),
        }
    }

    /// Ends whatever is going on as aborted: the open attempt failed, started calls "interrupted",
    /// the others "aborted". A run in whose midst a compaction takes place ends too.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn abort_operation(
        &mut self,
        statistics: Option<FinalStatistics>,
    ) -> Result<(), SessionError> {
        let error = FactError::new("aborted", "Operation aborted");
        while !self.state().is_idle() {
            self.abort_requested()?;
            self.close_open(&error)?;
            let of_this = self.statistics_of_current(statistics.as_ref());
            self.finish(finish_plan(Outcome::Aborted, None), of_this)?;
        }
        Ok(())
    }

    /// Ends the operation as failed, with everything open closed as an abort does. A run in whose
    /// midst a compaction failed goes on.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn fail_operation(
        &mut self,
        error: &FactError,
        statistics: Option<FinalStatistics>,
    ) -> Result<(), SessionError> {
        self.close_open(error)?;
        let of_this = self.statistics_of_current(statistics.as_ref());
        self.finish(finish_plan(Outcome::Failed, Some(error.clone())), of_this).map(drop)
    }

    /// Ends whatever is going on as failed, a run around a compaction too.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn fail_all(
        &mut self,
        error: &FactError,
        statistics: Option<FinalStatistics>,
    ) -> Result<(), SessionError> {
        while !self.state().is_idle() {
            self.fail_operation(error, statistics.clone())?;
        }
        Ok(())
    }

    fn close_open(&mut self, error: &FactError) -> Result<(), SessionError> {
        if let Ok(step) = self.open_step("close a model request") {
            self.append(vec![failed_step(&step, error.clone())])?;
        }
        let results = close_calls(self.state());
        if results.is_empty() { Ok(()) } else { self.append_synthetic(&results) }
    }

    fn statistics_of_current(&self, given: Option<&FinalStatistics>) -> Option<FinalStatistics> {
        given.filter(|given| self.state().operation.id() == Some(&given.operation_id)).cloned()
    }

    pub(super) fn finish(
        &mut self,
        next: Plan,
        statistics: Option<FinalStatistics>,
    ) -> Result<Outcome, SessionError> {
        let record = finished(&self.state().operation, next);
        let record = record.ok_or_else(|| unfit("end the operation", "it is not at its end"))?;
        let outcome = record.outcome;
        let statistics = statistics.map(Extension::FinalStatistics).map(Body::Extension);
        let record = Body::Record(Record::OperationFinished(record));
        self.append(std::iter::once(record).chain(statistics).map(Draft::new).collect())?;
        Ok(outcome)
    }

    /// The record that ends the run as its last answer says, if there is nothing else to do in it.
    pub(super) fn end_of_run(&self) -> Option<Record> {
        let state = self.state();
        let Operation::Run(_) = state.operation else { return None };
        let next = plan(state, &own_configuration(state));
        finished(&state.operation, next).map(Record::OperationFinished)
    }

    /// The earliest call of the latest answer that has started and has no result.
    fn first_pending(&self) -> Option<&ToolState> {
        let Operation::Run(run) = &self.state().operation else { return None };
        let turn = self.state().open_turn.as_ref()?;
        turn.calls.iter().find_map(|call| match call {
            CallProgress::Started(position) => run.tool_calls.get(*position),
            CallProgress::Untouched | CallProgress::Answered => None,
        })
    }
}

/// The record that a plan to finish asks for.
fn finished(operation: &Operation, next: Plan) -> Option<OperationFinished> {
    let Plan::Finish { outcome, completion, final_entry_id, error } = next else { return None };
    let operation_kind = match operation {
        Operation::Idle => return None,
        Operation::Run(_) => OperationKind::Run,
        Operation::Compaction(_) => OperationKind::Compaction,
    };
    let operation_id = operation.id().cloned()?;
    Some(OperationFinished {
        operation_id,
        operation_kind,
        outcome,
        completion,
        final_entry_id,
        error,
    })
}

const fn finish_plan(outcome: Outcome, error: Option<FactError>) -> Plan {
    Plan::Finish { outcome, completion: None, final_entry_id: None, error }
}

/// The configuration that the open step was made with, so that the live loop can ask the planner.
fn own_configuration(state: &SessionState) -> CurrentConfiguration {
    let step = state.operation.step();
    let tools = step.map_or(&[][..], |step| step.configuration_snapshot.tools.as_slice());
    CurrentConfiguration {
        configuration_digest: step
            .map_or_else(crate::base::digest::Digest::zero, |step| step.configuration_digest),
        environment_identity: state.header.environment_identity.clone(),
        tools: tools
            .iter()
            .map(|tool| CurrentTool {
                name: tool.name.clone(),
                definition_digest: tool.definition_digest,
                replay: Replay::Never,
                replay_key: String::new(),
            })
            .collect(),
    }
}
