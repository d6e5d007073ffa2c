//! Typed appends for calls: their start, their result, and the fixed results of those that never run.

use super::steps::{CallPlace, idle, unfit};
use super::{Draft, Journal, SessionError};
use crate::base::ids::Id;
use crate::session::facts::configuration::ToolContract;
use crate::session::facts::extension::{Denial, Extension};
use crate::session::facts::message::{SyntheticReason, ToolMessage};
use crate::session::facts::{
    Body, Counters, Entry, Record, StartedResult, SyntheticEntry, ToolResultEntry, ToolStarted,
    Usage,
};
use crate::session::plan::{SyntheticResult, unstarted};
use crate::session::state::{Operation, ToolState, ToolStatus};
use serde_json::{Map, Value};

/// How a tool that had been started ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It did what it was asked.
    Success,
    /// It says no.
    Error,
}

/// A call that is refused with words of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What the model is told.
    pub content: String,
    /// What refused it; none if its arguments were at fault.
    pub denial: Option<DenialReason>,
}

/// What refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialReason {
    /// The stage.
    pub stage: String,
    /// The stable reason code.
    pub code: String,
    /// The rule, if one decided.
    pub rule: Option<String>,
    /// The sequence number of the decision in the audit log.
    pub audit_sequence: Option<u64>,
}

impl Journal {
    /// Records that a tool is about to run. Only when this has returned may it.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn tool_started(
        &mut self,
        place: &CallPlace,
        arguments: Map<String, Value>,
        contract: &ToolContract,
    ) -> Result<Id, SessionError> {
        let started = Draft::new(self.start_of(place, arguments, contract)?);
        let id = started.id.clone();
        self.append(vec![started])?;
        Ok(id)
    }

    /// Records what a started tool gave.
    ///
    /// # Errors
    /// As [`Journal::append`]; the call must be open.
    pub fn tool_result(
        &mut self,
        started: &Id,
        outcome: ToolOutcome,
        content: String,
        usage: Counters,
    ) -> Result<(), SessionError> {
        let tool = self.pending(started)?.clone();
        let result = match outcome {
            ToolOutcome::Success => StartedResult::Success,
            ToolOutcome::Error => StartedResult::Error,
        };
        let operation_id = tool.operation_id.clone();
        let mut drafts = vec![result_of(tool, result, content)];
        if usage != Counters::default() {
            drafts.push(Draft::new(Body::Usage(Usage {
                operation_id,
                attempt_id: None,
                tool_started_id: Some(started.clone()),
                usage,
            })));
        }
        self.append(drafts).map(drop)
    }

    /// Records a call that was refused with words of our own, by policy or for its arguments: start
    /// and result in one transaction, since nothing runs. `refusal` holds the words and what refused it.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn tool_refused(
        &mut self,
        place: &CallPlace,
        arguments: Map<String, Value>,
        contract: &ToolContract,
        refusal: Refusal,
    ) -> Result<Id, SessionError> {
        let body = self.start_of(place, arguments, contract)?;
        let started = Draft::new(body);
        let Body::Record(Record::ToolStarted(record)) = &started.body else {
            return Err(unfit("refuse a call", "it has no start"));
        };
        let result = Draft {
            id: record.result_entry_id.clone(),
            body: Body::Entry(Entry::ToolResult(ToolResultEntry {
                step_id: record.step_id.clone(),
                message: ToolMessage {
                    content: refusal.content,
                    tool_call_id: record.tool_call_id.clone(),
                },
                tool_name: record.tool_name.clone(),
                tool_started_id: started.id.clone(),
                result: StartedResult::Error,
            })),
        };
        let id = started.id.clone();
        let denial = refusal.denial.map(|reason| {
            let DenialReason { stage, code, rule, audit_sequence } = reason;
            let tool_started_id = id.clone();
            let denial = Denial { tool_started_id, stage, code, rule, audit_sequence };
            Draft::new(Body::Extension(Extension::Denial(denial)))
        });
        self.append([Some(started), Some(result), denial].into_iter().flatten().collect())?;
        Ok(id)
    }

    /// Records the fixed results of calls that were not started, in one transaction.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn synthetic(
        &mut self,
        places: &[CallPlace],
        reason: SyntheticReason,
    ) -> Result<(), SessionError> {
        let results = {
            let Some((turn, placed)) = self.state().open_answer() else {
                return Err(unfit("answer calls", "there is no answer"));
            };
            let calls = placed.message.tool_calls();
            let result = |place: &CallPlace| {
                let index = usize::try_from(place.index).ok()?;
                Some(unstarted(turn, index, calls.get(index)?, reason))
            };
            places.iter().filter_map(result).collect::<Vec<_>>()
        };
        self.append_synthetic(&results)
    }

    pub(super) fn append_synthetic(
        &mut self,
        results: &[SyntheticResult],
    ) -> Result<(), SessionError> {
        let step_id = self.state().open_turn.as_ref().map(|turn| turn.step_id.clone());
        let step_id = step_id.ok_or_else(|| unfit("answer calls", "there is no answer"))?;
        let drafts = results
            .iter()
            .map(|result| match &result.tool_started_id {
                Some(started) => {
                    let tool = self.pending(started)?.clone();
                    let content = result.content.to_owned();
                    Ok(result_of(tool, StartedResult::Interrupted, content))
                }
                None => Ok(unstarted_result(result, step_id.clone())),
            })
            .collect::<Result<Vec<_>, SessionError>>()?;
        self.append(drafts).map(drop)
    }

    fn pending(&self, started: &Id) -> Result<&ToolState, SessionError> {
        let tools = match &self.state().operation {
            Operation::Run(run) => run.tool_calls.as_slice(),
            Operation::Idle | Operation::Compaction(_) => &[],
        };
        let tool = tools.iter().rev().find(|tool| tool.tool_started_id == *started);
        tool.filter(|tool| tool.status == ToolStatus::Pending)
            .ok_or_else(|| unfit("record a result", "no such call is open"))
    }

    fn start_of(
        &self,
        place: &CallPlace,
        arguments: Map<String, Value>,
        contract: &ToolContract,
    ) -> Result<Body, SessionError> {
        let state = self.state();
        Ok(Body::Record(Record::ToolStarted(ToolStarted {
            operation_id: state.operation.id().cloned().ok_or_else(|| idle("start a tool"))?,
            step_id: place.step_id.clone(),
            assistant_entry_id: place.assistant_entry_id.clone(),
            tool_index: place.index,
            tool_call_id: place.call_id.clone(),
            tool_name: place.name.clone(),
            arguments,
            replay: contract.replay,
            replay_key: contract.replay_key.clone(),
            environment_identity: state.header.environment_identity.clone(),
            result_entry_id: Id::new(),
        })))
    }
}

fn result_of(tool: ToolState, result: StartedResult, content: String) -> Draft {
    Draft {
        id: tool.result_entry_id,
        body: Body::Entry(Entry::ToolResult(ToolResultEntry {
            step_id: tool.step_id,
            message: ToolMessage { content, tool_call_id: tool.tool_call_id },
            tool_name: tool.tool_name,
            tool_started_id: tool.tool_started_id,
            result,
        })),
    }
}

fn unstarted_result(result: &SyntheticResult, step_id: Id) -> Draft {
    Draft::new(Body::Entry(Entry::Synthetic(SyntheticEntry {
        step_id,
        assistant_entry_id: result.assistant_entry_id.clone(),
        tool_index: result.tool_index,
        message: ToolMessage {
            content: result.content.to_owned(),
            tool_call_id: result.tool_call_id.clone(),
        },
        tool_name: result.tool_name.clone(),
        result: result.reason,
    })))
}
