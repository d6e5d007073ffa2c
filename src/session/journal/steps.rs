//! Typed appends: one method for each moment of the loop, each one transaction.
//!
//! They choose identities, fill in what follows from the state, and keep the rules that a writer has
//! beyond the format: identifiers of calls are made unique, and an empty answer is not settled.

use super::{Draft, Journal, SessionError};
use crate::base::ids::Id;
use crate::session::facts::configuration::ConfigurationSnapshot;
use crate::session::facts::extension::{
    Extension, Injected, InjectionSource, RunContext, Thinking,
};
use crate::session::facts::message::{AssistantMessage, StopReason, ToolCall, UserMessage};
use crate::session::facts::{
    AssistantEntry, Body, Counters, Entry, FactError, OperationKind, Record, RunStarted,
    StepAttempt, StepFailed, StepKind, Usage,
};
use crate::session::state::{CallProgress, Operation, Step, StepStatus};
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
        let operation_id = Id::new();
        self.append(run_start(text, injected, &operation_id))?;
        Ok(operation_id)
    }

    /// Puts a message that no person wrote before the model, wherever the session stands: into the
    /// run if its calls have results; as a further run, with the same [`RunContext`], if the run has
    /// just been answered, whose end stands in the same transaction, since an answer without calls
    /// ends a run; as a new run if the session is idle.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn inject(
        &mut self,
        text: &str,
        source: InjectionSource,
        run_ids: Vec<Id>,
    ) -> Result<(), SessionError> {
        let injected = Some((source, run_ids));
        let ended = self.end_of_run();
        if ended.is_none() && !self.state().is_idle() {
            return self.append(user_message(text, injected)).map(drop);
        }
        let operation_id = Id::new();
        let context = self.state().run().and_then(|run| {
            let contexts = self.state().extension.run_contexts.iter();
            contexts.rev().find(|context| context.operation_id == run.operation_id)
        });
        let context = context.map(|context| {
            let context = RunContext { operation_id: operation_id.clone(), ..context.clone() };
            Draft::new(Body::Extension(Extension::RunContext(context)))
        });
        let ended = ended.map(Body::Record).map(Draft::new).into_iter();
        let begun = run_start(text, injected, &operation_id);
        self.append(ended.chain(begun).chain(context).collect()).map(drop)
    }

    /// Adds one of our own facts.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn note(&mut self, extension: Extension) -> Result<(), SessionError> {
        self.append(vec![Draft::new(Body::Extension(extension))]).map(drop)
    }

    /// Adds one of our own facts to the next transaction, whichever that is: for what nothing depends on,
    /// so that it costs no flush of its own. It must hold whatever comes until then.
    pub fn note_with_next(&mut self, extension: Extension) {
        self.waiting.push(Draft::new(Body::Extension(extension)));
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
    /// [`SessionError::Unfit`] if no attempt is open, or if the answer is empty without having been
    /// cut: that is a failed attempt. As [`Journal::append`].
    pub fn assistant_settled(&mut self, answer: NewAnswer) -> Result<Vec<CallPlace>, SessionError> {
        let step = self.open_step("settle an answer")?;
        let text = answer.content.as_deref().unwrap_or_default();
        if !answer.cut && answer.tool_calls.is_empty() && text.trim().is_empty() {
            return Err(unfit("settle an answer", "it is empty; record that the step failed"));
        }
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

    pub(super) fn open_step(&self, wanted: &'static str) -> Result<Step, SessionError> {
        let step = self.state().operation.step();
        let step = step.filter(|step| step.status == StepStatus::Attempting).cloned();
        step.ok_or_else(|| unfit(wanted, "none is open"))
    }
}

fn run_start(
    text: &str,
    injected: Option<(InjectionSource, Vec<Id>)>,
    operation_id: &Id,
) -> Vec<Draft> {
    let mut drafts = user_message(text, injected);
    let input_entry_id = drafts.first().map_or_else(Id::new, |draft| draft.id.clone());
    let started = Record::RunStarted(RunStarted {
        operation_id: operation_id.clone(),
        operation_kind: OperationKind::Run,
        input_entry_id,
    });
    drafts.insert(1.min(drafts.len()), Draft::new(Body::Record(started)));
    drafts
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

pub(super) fn failed_step(step: &Step, error: FactError) -> Draft {
    Draft::new(Body::Record(Record::StepFailed(StepFailed {
        operation_id: step.operation_id.clone(),
        step_id: step.step_id.clone(),
        attempt_id: step.attempt_id.clone(),
        error,
    })))
}

pub(super) fn idle(wanted: &'static str) -> SessionError {
    unfit(wanted, "nothing is going on")
}

pub(super) fn unfit(wanted: &'static str, why: &str) -> SessionError {
    SessionError::Unfit { wanted, why: why.to_owned() }
}
