//! Typed appends: one method for each moment of the loop, each one transaction.
//!
//! They choose identities, fill in what follows from the state, and keep the rules that a writer has
//! beyond the format: identifiers of calls are made unique, and a run never ends with open calls.

use super::{Draft, Journal, SessionError};
use crate::base::ids::Id;
use crate::session::facts::configuration::{
    ConfigurationSnapshot, CurrentConfiguration, CurrentTool, ToolContract,
};
use crate::session::facts::extension::{
    Denial, Extension, FinalStatistics, Injected, InjectionSource, Thinking,
};
use crate::session::facts::message::{
    AssistantMessage, StopReason, SyntheticReason, ToolCall, ToolMessage, UserMessage,
};
use crate::session::facts::{
    AbortPhase, AbortReason, AbortRequested, AssistantEntry, Body, Counters, Entry, FactError,
    OperationFinished, OperationKind, Outcome, Record, Replay, RunStarted, StartedResult,
    StepAttempt, StepFailed, StepKind, SyntheticEntry, ToolResultEntry, ToolStarted, Usage,
};
use crate::session::plan::{Plan, SyntheticResult, close_calls, plan, unstarted};
use crate::session::state::{
    CallProgress, Operation, SessionState, Step, StepStatus, ToolState, ToolStatus,
};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The identities of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPlan {
    /// The step.
    pub step_id: Id,
    /// The attempt.
    pub attempt_id: Id,
    /// 1, or 2 after a crash.
    pub attempt: u8,
}

/// An answer of the model, to be settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewAnswer {
    /// The text.
    pub content: Option<String>,
    /// The calls: identifier (may be empty or repeated), name, raw arguments.
    pub tool_calls: Vec<(String, String, String)>,
    /// Whether the token limit cut it.
    pub cut: bool,
    /// The reasoning before it: text and what the provider wants back with it.
    pub thinking: Vec<(String, Option<String>)>,
    /// What it used.
    pub usage: Counters,
}

/// A call of the latest answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPlace {
    /// The answer.
    pub assistant_entry_id: Id,
    /// The step that it settled.
    pub step_id: Id,
    /// Which of its calls.
    pub index: u64,
    /// The identifier, unique within the answer.
    pub call_id: String,
    /// The tool as the model named it.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
}

/// How a tool that had been started ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It did what it was asked.
    Success,
    /// It says no.
    Error,
}

impl Journal {
    /// Accepts a user message as work: the message and the start of the run, before anything else.
    /// `injected` tells that no person wrote it, and whose results it holds.
    ///
    /// # Errors
    /// As [`Journal::append`]; the session must be idle.
    pub fn begin_run(
        &mut self,
        text: &str,
        injected: Option<(InjectionSource, Vec<Id>)>,
    ) -> Result<Id, SessionError> {
        let mut drafts = user_message(text, injected);
        let operation_id = Id::new();
        let input_entry_id = drafts.first().map_or_else(Id::new, |draft| draft.id.clone());
        let started = Record::RunStarted(RunStarted {
            operation_id: operation_id.clone(),
            operation_kind: OperationKind::Run,
            input_entry_id,
        });
        drafts.insert(1.min(drafts.len()), Draft::new(Body::Record(started)));
        self.append(drafts)?;
        Ok(operation_id)
    }

    /// Adds a user message in the midst of a run, when all calls have results.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn inject(
        &mut self,
        text: &str,
        source: InjectionSource,
        run_ids: Vec<Id>,
    ) -> Result<(), SessionError> {
        self.append(user_message(text, Some((source, run_ids)))).map(drop)
    }

    /// Adds one of our own facts.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn note(&mut self, extension: Extension) -> Result<(), SessionError> {
        self.append(vec![Draft::new(Body::Extension(extension))]).map(drop)
    }

    /// Records that a model request is about to be sent: the second attempt at a step whose first
    /// was cut off by a crash, the first attempt at a new step otherwise.
    ///
    /// # Errors
    /// As [`Journal::append`]; an operation must be going on.
    pub fn step_attempt(
        &mut self,
        snapshot: &ConfigurationSnapshot,
    ) -> Result<StepPlan, SessionError> {
        const WANTED: &str = "begin a model request";
        let state = self.state();
        let operation_id = state.operation.id().cloned().ok_or_else(|| idle(WANTED))?;
        let open = state.operation.step().filter(|step| step.status == StepStatus::Attempting);
        let (step_id, attempt) = match open {
            Some(step) => (step.step_id.clone(), step.attempt.saturating_add(1)),
            None => (Id::new(), 1),
        };
        let boundary = open.map(|step| step.context_through_entry_id.clone());
        let boundary = boundary.or_else(|| state.context_through.clone());
        let attempt_id = Id::new();
        let record = Record::StepAttempt(StepAttempt {
            operation_id,
            step_id: step_id.clone(),
            attempt_id: attempt_id.clone(),
            step_kind: match state.operation {
                Operation::Compaction(_) => StepKind::Compaction,
                Operation::Idle | Operation::Run(_) => StepKind::Assistant,
            },
            attempt,
            context_through_entry_id: boundary.ok_or_else(|| idle(WANTED))?,
            configuration_digest: snapshot.digest(),
            configuration_snapshot: snapshot.clone(),
        });
        self.append(vec![Draft::new(Body::Record(record))])?;
        Ok(StepPlan { step_id, attempt_id, attempt })
    }

    /// Settles the open attempt with an answer, its usage and its reasoning, and tells its calls.
    ///
    /// # Errors
    /// As [`Journal::append`]; an attempt must be open.
    pub fn assistant_settled(&mut self, answer: NewAnswer) -> Result<Vec<CallPlace>, SessionError> {
        let step = self.open_step("settle an answer")?;
        let tool_calls = unique_calls(answer.tool_calls);
        let stop_reason = match (answer.cut, tool_calls.is_empty()) {
            (true, _) => StopReason::Length,
            (false, true) => StopReason::Stop,
            (false, false) => StopReason::ToolUse,
        };
        let entry = Draft::new(Body::Entry(Entry::Assistant(AssistantEntry {
            step_id: step.step_id.clone(),
            attempt_id: step.attempt_id.clone(),
            stop_reason,
            message: AssistantMessage { content: answer.content, tool_calls },
        })));
        let assistant_entry_id = entry.id.clone();
        let mut drafts = vec![entry, attempt_usage(&step, answer.usage)];
        let reasoning = answer.thinking.into_iter().filter(|(text, _)| !text.is_empty());
        drafts.extend(reasoning.map(|(text, signature)| {
            let assistant_entry_id = assistant_entry_id.clone();
            let signature = signature.filter(|text| !text.is_empty());
            let thinking = Thinking { assistant_entry_id, text, signature };
            Draft::new(Body::Extension(Extension::Thinking(thinking)))
        }));
        self.append(drafts)?;
        Ok(self.open_calls())
    }

    /// The calls of the latest answer that have neither been started nor answered.
    #[must_use]
    pub fn open_calls(&self) -> Vec<CallPlace> {
        let Some((turn, placed)) = self.state().open_answer() else { return Vec::new() };
        let calls = (0_u64..).zip(placed.message.tool_calls()).zip(&turn.calls);
        calls
            .filter(|(_, progress)| **progress == CallProgress::Untouched)
            .map(|((index, call), _)| CallPlace {
                assistant_entry_id: turn.assistant_entry_id.clone(),
                step_id: turn.step_id.clone(),
                index,
                call_id: call.id.clone(),
                name: call.function.name.clone(),
                arguments: call.function.arguments.clone(),
            })
            .collect()
    }

    /// Records that the open attempt gave no answer, with what it used.
    ///
    /// # Errors
    /// As [`Journal::append`]; an attempt must be open.
    pub fn step_failed(&mut self, error: &FactError, usage: Counters) -> Result<(), SessionError> {
        let step = self.open_step("fail a model request")?;
        let mut drafts = vec![failed_step(&step, error.clone())];
        if usage != Counters::default() {
            drafts.push(attempt_usage(&step, usage));
        }
        self.append(drafts).map(drop)
    }

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
    /// and result in one transaction, since nothing runs. `denial` fills in what refused it.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn tool_refused(
        &mut self,
        place: &CallPlace,
        arguments: Map<String, Value>,
        contract: &ToolContract,
        (content, denial): (String, Option<Denial>),
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
                message: ToolMessage { content, tool_call_id: record.tool_call_id.clone() },
                tool_name: record.tool_name.clone(),
                tool_started_id: started.id.clone(),
                result: StartedResult::Error,
            })),
        };
        let id = started.id.clone();
        let denial = denial.map(|denial| {
            let denial = Denial { tool_started_id: id.clone(), ..denial };
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

    /// Ends whatever is going on as failed, with everything open closed as an abort does.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn fail_operation(
        &mut self,
        error: &FactError,
        statistics: Option<FinalStatistics>,
    ) -> Result<(), SessionError> {
        while !self.state().is_idle() {
            self.close_open(error)?;
            let of_this = self.statistics_of_current(statistics.as_ref());
            self.finish(finish_plan(Outcome::Failed, Some(error.clone())), of_this)?;
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
        let Plan::Finish { outcome, completion, final_entry_id, error } = next else {
            return Err(unfit("end the operation", "it is not at its end"));
        };
        let operation = &self.state().operation;
        let operation_kind = match operation {
            Operation::Compaction(_) => OperationKind::Compaction,
            Operation::Idle | Operation::Run(_) => OperationKind::Run,
        };
        let record = Record::OperationFinished(OperationFinished {
            operation_id: operation.id().cloned().ok_or_else(|| idle("end the operation"))?,
            operation_kind,
            outcome,
            completion,
            final_entry_id,
            error,
        });
        let statistics = statistics.map(Extension::FinalStatistics).map(Body::Extension);
        let bodies = std::iter::once(Body::Record(record)).chain(statistics);
        self.append(bodies.map(Draft::new).collect())?;
        Ok(outcome)
    }

    pub(super) fn open_step(&self, wanted: &'static str) -> Result<Step, SessionError> {
        let step = self.state().operation.step();
        let step = step.filter(|step| step.status == StepStatus::Attempting).cloned();
        step.ok_or_else(|| unfit(wanted, "none is open"))
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

fn user_message(text: &str, injected: Option<(InjectionSource, Vec<Id>)>) -> Vec<Draft> {
    let message = UserMessage { content: text.to_owned() };
    let entry = Draft::new(Body::Entry(Entry::User(message)));
    let injected = injected.map(|(source, run_ids)| {
        let injected = Injected { entry_id: entry.id.clone(), source, run_ids };
        Draft::new(Body::Extension(Extension::Injected(injected)))
    });
    std::iter::once(entry).chain(injected).collect()
}

/// Providers may leave identifiers and names empty, or repeat identifiers; the format may not.
fn unique_calls(calls: Vec<(String, String, String)>) -> Vec<ToolCall> {
    let given: HashSet<String> = calls.iter().map(|call| call.0.clone()).collect();
    let mut seen = HashSet::new();
    let unique = |(index, (id, name, arguments)): (usize, (String, String, String))| {
        let mut chosen = id;
        if chosen.is_empty() || seen.contains(&chosen) {
            chosen = (0_u32..)
                .map(|round| format!("call_{index}_{round}"))
                .find(|candidate| !given.contains(candidate) && !seen.contains(candidate))
                .unwrap_or_default();
        }
        seen.insert(chosen.clone());
        let name = if name.is_empty() { "(unnamed)".to_owned() } else { name };
        ToolCall::new(chosen, name, arguments)
    };
    calls.into_iter().enumerate().map(unique).collect()
}

pub(super) fn attempt_usage(step: &Step, usage: Counters) -> Draft {
    Draft::new(Body::Usage(Usage {
        operation_id: step.operation_id.clone(),
        attempt_id: Some(step.attempt_id.clone()),
        tool_started_id: None,
        usage,
    }))
}

fn failed_step(step: &Step, error: FactError) -> Draft {
    Draft::new(Body::Record(Record::StepFailed(StepFailed {
        operation_id: step.operation_id.clone(),
        step_id: step.step_id.clone(),
        attempt_id: step.attempt_id.clone(),
        error,
    })))
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

pub(super) fn idle(wanted: &'static str) -> SessionError {
    unfit(wanted, "nothing is going on")
}

pub(super) fn unfit(wanted: &'static str, why: &str) -> SessionError {
    SessionError::Unfit { wanted, why: why.to_owned() }
}
