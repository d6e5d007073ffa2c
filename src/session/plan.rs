//! What must happen next, from the state and the current configuration alone.
//!
//! Pure: it allocates no identity and does nothing. Doing what it says and asking again always makes
//! progress, and asking twice gives the same answer. Recovery and the live loop follow the same plan.

use crate::base::ids::Id;
use crate::base::json::parse_strict;
use crate::session::facts::configuration::CurrentConfiguration;
use crate::session::facts::message::{Message, StopReason, SyntheticReason, ToolCall};
use crate::session::facts::{Completion, FactError, Outcome, Replay, StepKind};
use crate::session::state::{
    CallProgress, OpenTurn, Operation, RunOperation, SessionState, Step, StepStatus, ToolState,
};
use serde::Serialize;
use serde_json::{Map, Value};

/// What must happen next.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Plan {
    /// Record the end of the operation; when idle, there is nothing to do.
    Finish {
        /// How it ends.
        outcome: Outcome,
        /// For a completed run.
        #[serde(skip_serializing_if = "Option::is_none")]
        completion: Option<Completion>,
        /// For a completed operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        final_entry_id: Option<Id>,
        /// For a failed operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<FactError>,
    },
    /// Record an attempt and send a model request.
    StartStep {
        /// What the model is to do.
        step_kind: StepKind,
        /// 1, or 2 after a crash.
        attempt: u8,
        /// The step, for a second attempt.
        #[serde(skip_serializing_if = "Option::is_none")]
        step_id: Option<Id>,
        /// The last message of the request.
        context_through_entry_id: Id,
    },
    /// Record the start of a call and run it.
    StartTool {
        /// Whether it has been started before.
        mode: ToolMode,
        /// The answer.
        assistant_entry_id: Id,
        /// Which of its calls.
        tool_index: u64,
        /// The start that is repeated.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_started_id: Option<Id>,
        /// The tool.
        tool_name: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// Record fixed results.
    AppendSynthetic {
        /// The results, in the order of the calls.
        results: Vec<SyntheticResult>,
    },
    /// Record that the open attempt failed.
    CloseAttempt {
        /// Why.
        error: FactError,
    },
    /// Nothing may be done before somebody has looked.
    Blocked {
        /// Why.
        reason: BlockReason,
    },
}

impl Plan {
    /// What must happen next, for a person.
    #[must_use]
    pub fn explain(&self) -> String {
        let name = |name: &str| crate::base::text::escape(name);
        match self {
            Self::Finish { outcome, completion, error, final_entry_id: _ } => {
                match (outcome, completion, error) {
                    (Outcome::Completed, Some(Completion::Truncated), _) => {
                        "the operation ends: its last answer was cut".to_owned()
                    }
                    (Outcome::Completed, _, _) => "nothing is left to do".to_owned(),
                    (Outcome::Aborted, _, _) => "the operation ends as aborted".to_owned(),
                    (Outcome::Failed, _, error) => {
                        let why = error.as_ref().map_or("an error", |error| &error.message);
                        format!("the operation ends as failed: {}", name(why))
                    }
                }
            }
            Self::StartStep { step_kind, attempt, .. } => {
                let wanted = match step_kind {
                    StepKind::Assistant => "an answer",
                    StepKind::Compaction => "a summary of the older messages",
                };
                format!("the model is asked for {wanted} (attempt {attempt} of 2)")
            }
            Self::StartTool { mode: ToolMode::Start, tool_name, tool_index, .. } => {
                format!("call {} of the last answer, `{}`, runs", tool_index + 1, name(tool_name))
            }
            Self::StartTool { mode: ToolMode::Replay, tool_name, tool_index, .. } => format!(
                "call {} of the last answer, `{}`, runs again: it changes nothing",
                tool_index + 1,
                name(tool_name)
            ),
            Self::AppendSynthetic { results } => {
                let results = results.iter().map(|result| {
                    let (tool, told) = (name(&result.tool_name), result.content);
                    format!(
                        "call {} of the last answer, `{tool}`, gets the result \"{told}\"",
                        result.tool_index + 1
                    )
                });
                results.collect::<Vec<_>>().join("\n")
            }
            Self::CloseAttempt { error } => {
                format!("the open model request is closed as failed: {}", name(&error.message))
            }
            Self::Blocked { reason } => format!("nothing may be done: {}", reason.explain()),
        }
    }
}

/// Whether a call has been started before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolMode {
    /// No.
    Start,
    /// Yes, and repeating it is harmless.
    Replay,
}

/// Why nothing may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockReason {
    /// Model, prompt, tools or options are not those of the open step.
    ConfigurationChanged,
    /// The workspace is not the one of the session.
    EnvironmentChanged,
    /// A call that was harmless to repeat is not declared so any more.
    ReplayDeclarationChanged,
    /// Two attempts at a step were cut off.
    AttemptsExhausted,
}

impl BlockReason {
    /// The name in the format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigurationChanged => "configuration_changed",
            Self::EnvironmentChanged => "environment_changed",
            Self::ReplayDeclarationChanged => "replay_declaration_changed",
            Self::AttemptsExhausted => "attempts_exhausted",
        }
    }

    /// What it means, for a person.
    #[must_use]
    pub const fn explain(self) -> &'static str {
        match self {
            Self::ConfigurationChanged => {
                "the model, the system prompt, the tools or the output options are not those the \
                 interrupted step was made with"
            }
            Self::EnvironmentChanged => "the workspace is not the one the session belongs to",
            Self::ReplayDeclarationChanged => {
                "an interrupted call that was harmless to repeat is not declared so any more"
            }
            Self::AttemptsExhausted => "two attempts at the same model request were cut off",
        }
    }
}

/// A fixed result to record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyntheticResult {
    /// The answer.
    pub assistant_entry_id: Id,
    /// Which of its calls.
    pub tool_index: u64,
    /// The call's identifier.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The start, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_started_id: Option<Id>,
    /// The identity that the start has provided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_entry_id: Option<Id>,
    /// Why.
    pub reason: SyntheticReason,
    /// The fixed text.
    pub content: &'static str,
}

/// Says what must happen next.
#[must_use]
pub fn plan(state: &SessionState, current: &CurrentConfiguration) -> Plan {
    if state.is_idle() {
        return completed(Some(Completion::Normal), None);
    }
    if state.operation.abort_requested() {
        return plan_abort(state);
    }
    let Some(step) = state.operation.step() else {
        return start_step(state, step_kind(&state.operation));
    };
    if let Some(reason) = changed(state, step, current) {
        return Plan::Blocked { reason };
    }
    match (step.status, &state.operation) {
        (StepStatus::Failed, _) => failed(
            step.failure
                .clone()
                .unwrap_or_else(|| FactError::new("model_error", "the model gave no answer")),
        ),
        (StepStatus::Attempting, _) => plan_attempt(step),
        (StepStatus::Settled, Operation::Run(run)) => plan_answer(state, run, step, current),
        (StepStatus::Settled, Operation::Idle | Operation::Compaction(_)) => {
            completed(None, step.settled_entry_id.clone())
        }
    }
}

fn changed(
    state: &SessionState,
    step: &Step,
    current: &CurrentConfiguration,
) -> Option<BlockReason> {
    if step.configuration_digest != current.configuration_digest {
        Some(BlockReason::ConfigurationChanged)
    } else if state.header.environment_identity != current.environment_identity {
        Some(BlockReason::EnvironmentChanged)
    } else {
        None
    }
}

const fn step_kind(operation: &Operation) -> StepKind {
    match operation {
        Operation::Idle | Operation::Run(_) => StepKind::Assistant,
        Operation::Compaction(_) => StepKind::Compaction,
    }
}

fn plan_abort(state: &SessionState) -> Plan {
    let attempting =
        state.operation.step().is_some_and(|step| step.status == StepStatus::Attempting);
    if attempting {
        return Plan::CloseAttempt { error: FactError::new("aborted", "Operation aborted") };
    }
    let results = close_calls(state);
    if results.is_empty() {
        return finish(Outcome::Aborted);
    }
    Plan::AppendSynthetic { results }
}

/// Fixed results for every call without one: "interrupted" if it had been started.
pub(crate) fn close_calls(state: &SessionState) -> Vec<SyntheticResult> {
    let Operation::Run(run) = &state.operation else { return Vec::new() };
    let Some((turn, calls)) = open_calls(state) else { return Vec::new() };
    let close = |(index, call): (usize, &ToolCall)| match turn.calls.get(index)? {
        CallProgress::Answered => None,
        CallProgress::Started(position) => run.tool_calls.get(*position).map(interrupted),
        CallProgress::Untouched => Some(unstarted(turn, index, call, SyntheticReason::Aborted)),
    };
    calls.iter().enumerate().filter_map(close).collect()
}

/// The latest answer with its calls; none if it has no call.
fn open_calls(state: &SessionState) -> Option<(&OpenTurn, &[ToolCall])> {
    let (turn, placed) = state.open_answer()?;
    let calls = placed.message.tool_calls();
    (!calls.is_empty()).then_some((turn, calls))
}

fn plan_attempt(step: &Step) -> Plan {
    if step.attempt > 1 {
        return Plan::Blocked { reason: BlockReason::AttemptsExhausted };
    }
    Plan::StartStep {
        step_kind: step.step_kind,
        attempt: 2,
        step_id: Some(step.step_id.clone()),
        context_through_entry_id: step.context_through_entry_id.clone(),
    }
}

fn plan_answer(
    state: &SessionState,
    run: &RunOperation,
    step: &Step,
    current: &CurrentConfiguration,
) -> Plan {
    let cut = step.stop_reason == Some(StopReason::Length);
    let Some((turn, calls)) = open_calls(state) else {
        return plan_text(state, step, cut);
    };
    if cut {
        return plan_cut(turn, calls, step);
    }
    let untouched = turn.calls.iter().position(|call| *call == CallProgress::Untouched);
    if let Some((index, call)) = untouched.and_then(|index| Some((index, calls.get(index)?))) {
        return plan_call(turn, index, call, current);
    }
    let started = turn.calls.iter().find_map(|call| match call {
        CallProgress::Started(position) => run.tool_calls.get(*position),
        CallProgress::Untouched | CallProgress::Answered => None,
    });
    match started {
        Some(tool) => plan_started(tool, step, current),
        None => start_step(state, StepKind::Assistant),
    }
}

/// An answer without calls ends the run; one that is empty or cut is no answer.
fn plan_text(state: &SessionState, step: &Step, cut: bool) -> Plan {
    let text = state.transcript.iter().rev().find_map(|placed| match &*placed.message {
        Message::Assistant(answer) => Some(answer.content.as_deref().unwrap_or_default()),
        Message::User(_) | Message::Tool(_) => None,
    });
    if cut {
        failed(FactError::new("truncated", "the answer was cut at the token limit"))
    } else if text.is_none_or(|text| text.trim().is_empty()) {
        failed(FactError::new("empty_answer", "the model gave an empty answer"))
    } else {
        completed(Some(Completion::Normal), step.settled_entry_id.clone())
    }
}

fn plan_cut(turn: &OpenTurn, calls: &[ToolCall], step: &Step) -> Plan {
    let open = |(index, call): (usize, &ToolCall)| {
        let is_open = turn.calls.get(index) == Some(&CallProgress::Untouched);
        is_open.then(|| unstarted(turn, index, call, SyntheticReason::Truncated))
    };
    let results: Vec<_> = calls.iter().enumerate().filter_map(open).collect();
    if results.is_empty() {
        return completed(Some(Completion::Truncated), step.settled_entry_id.clone());
    }
    Plan::AppendSynthetic { results }
}

fn plan_call(
    turn: &OpenTurn,
    index: usize,
    call: &ToolCall,
    current: &CurrentConfiguration,
) -> Plan {
    let refuse =
        |reason| Plan::AppendSynthetic { results: vec![unstarted(turn, index, call, reason)] };
    if current.tool(&call.function.name).is_none() {
        return refuse(SyntheticReason::UnknownTool);
    }
    match parse_strict(call.function.arguments.as_bytes()) {
        Ok(Value::Object(arguments)) => Plan::StartTool {
            mode: ToolMode::Start,
            assistant_entry_id: turn.assistant_entry_id.clone(),
            tool_index: number(index),
            tool_started_id: None,
            tool_name: call.function.name.clone(),
            arguments,
        },
        Ok(_) | Err(_) => refuse(SyntheticReason::InvalidArguments),
    }
}

fn plan_started(tool: &ToolState, step: &Step, current: &CurrentConfiguration) -> Plan {
    if tool.environment_identity != current.environment_identity {
        return Plan::Blocked { reason: BlockReason::EnvironmentChanged };
    }
    let recorded = step.configuration_snapshot.tools.iter();
    let recorded = recorded.clone().find(|recorded| recorded.name == tool.tool_name);
    let declared = current.tool(&tool.tool_name);
    let (Some(recorded), Some(declared)) = (recorded, declared) else {
        return Plan::Blocked { reason: BlockReason::ConfigurationChanged };
    };
    if recorded.definition_digest != declared.definition_digest {
        return Plan::Blocked { reason: BlockReason::ConfigurationChanged };
    }
    if tool.replay == Replay::Never {
        return Plan::AppendSynthetic { results: vec![interrupted(tool)] };
    }
    if declared.replay != Replay::Safe || declared.replay_key != tool.replay_key {
        return Plan::Blocked { reason: BlockReason::ReplayDeclarationChanged };
    }
    Plan::StartTool {
        mode: ToolMode::Replay,
        assistant_entry_id: tool.assistant_entry_id.clone(),
        tool_index: tool.tool_index,
        tool_started_id: Some(tool.tool_started_id.clone()),
        tool_name: tool.tool_name.clone(),
        arguments: tool.arguments.clone(),
    }
}

fn start_step(state: &SessionState, step_kind: StepKind) -> Plan {
    let through = state.context_through.clone();
    through.map_or_else(
        || failed(FactError::new("no_input", "the session holds no message")),
        |context_through_entry_id| Plan::StartStep {
            step_kind,
            attempt: 1,
            step_id: None,
            context_through_entry_id,
        },
    )
}

const fn finish(outcome: Outcome) -> Plan {
    Plan::Finish { outcome, completion: None, final_entry_id: None, error: None }
}

const fn completed(completion: Option<Completion>, final_entry_id: Option<Id>) -> Plan {
    Plan::Finish { outcome: Outcome::Completed, completion, final_entry_id, error: None }
}

const fn failed(error: FactError) -> Plan {
    Plan::Finish {
        outcome: Outcome::Failed,
        completion: None,
        final_entry_id: None,
        error: Some(error),
    }
}

pub(crate) fn interrupted(tool: &ToolState) -> SyntheticResult {
    SyntheticResult {
        assistant_entry_id: tool.assistant_entry_id.clone(),
        tool_index: tool.tool_index,
        tool_call_id: tool.tool_call_id.clone(),
        tool_name: tool.tool_name.clone(),
        tool_started_id: Some(tool.tool_started_id.clone()),
        result_entry_id: Some(tool.result_entry_id.clone()),
        reason: SyntheticReason::Interrupted,
        content: SyntheticReason::Interrupted.content(),
    }
}

pub(crate) fn unstarted(
    turn: &OpenTurn,
    index: usize,
    call: &ToolCall,
    reason: SyntheticReason,
) -> SyntheticResult {
    SyntheticResult {
        assistant_entry_id: turn.assistant_entry_id.clone(),
        tool_index: number(index),
        tool_call_id: call.id.clone(),
        tool_name: call.function.name.clone(),
        tool_started_id: None,
        result_entry_id: None,
        reason,
        content: reason.content(),
    }
}

fn number(index: usize) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX)
}
