//! Going on after a crash: what to append, what to do next, and what to tell the person.

use super::{Draft, Journal, SessionError};
use crate::session::facts::configuration::CurrentConfiguration;
use crate::session::facts::extension::{Extension, SubAgentFinished};
use crate::session::facts::{Body, Counters, Replay};
use crate::session::plan::{BlockReason, Plan, interrupted, plan};
use crate::session::state::{CallProgress, Operation, SessionState, StepStatus, SubAgent};

/// What to do with an operation that a crash has cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoverMode {
    /// Go on with it.
    Continue,
    /// End it as aborted, so that a new user message can be added.
    Close,
}

/// What recovery found and did.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// What was in flight, one sentence each; empty for an idle session.
    pub in_flight: Vec<String>,
    /// What must happen next.
    pub next: NextAction,
}

/// What must happen next.
#[derive(Debug, Clone, PartialEq)]
pub enum NextAction {
    /// A user message may be added.
    UserMessage,
    /// A model request must be sent: [`Plan::StartStep`].
    Step(Plan),
    /// A call must be run: [`Plan::StartTool`].
    Tool(Plan),
    /// Nothing may be done; restore the configuration, or recover with [`RecoverMode::Close`].
    Blocked(BlockReason),
}

impl Journal {
    /// Brings a session to a point from which the loop can go on, and appends what that takes:
    /// started calls whose outcome is unknown get "interrupted", unless repeating them is harmless.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn recover(
        &mut self,
        current: &CurrentConfiguration,
        mode: RecoverMode,
    ) -> Result<Recovery, SessionError> {
        let in_flight = what_was_in_flight(self.state());
        self.end_lost_sub_agents()?;
        if mode == RecoverMode::Close {
            self.abort_operation(None)?;
        }
        let next = self.advance(current)?;
        Ok(Recovery { in_flight, next })
    }

    /// Does what the planner says until something outside the journal must happen.
    fn advance(&mut self, current: &CurrentConfiguration) -> Result<NextAction, SessionError> {
        loop {
            if self.state().is_idle() {
                return Ok(NextAction::UserMessage);
            }
            match plan(self.state(), current) {
                next @ Plan::Finish { .. } => {
                    self.finish(next, None)?;
                }
                next @ Plan::StartStep { .. } => return Ok(NextAction::Step(next)),
                next @ Plan::StartTool { .. } => {
                    if !self.interrupt_unrepeatable()? {
                        return Ok(NextAction::Tool(next));
                    }
                }
                Plan::AppendSynthetic { results } => self.append_synthetic(&results)?,
                Plan::CloseAttempt { error } => {
                    self.step_failed(&error, Counters::default())?;
                }
                Plan::Blocked { reason } => return Ok(NextAction::Blocked(reason)),
            }
        }
    }

    /// The planner would first start the calls that were not; their results are better given in the
    /// light of what is unknown. Tells whether something was appended.
    fn interrupt_unrepeatable(&mut self) -> Result<bool, SessionError> {
        let state = self.state();
        let (Operation::Run(run), Some(turn)) = (&state.operation, &state.open_turn) else {
            return Ok(false);
        };
        let results: Vec<_> = turn
            .calls
            .iter()
            .filter_map(|call| match call {
                CallProgress::Started(position) => run.tool_calls.get(*position),
                CallProgress::Untouched | CallProgress::Answered => None,
            })
            .filter(|tool| tool.replay == Replay::Never)
            .map(interrupted)
            .collect();
        if results.is_empty() {
            return Ok(false);
        }
        self.append_synthetic(&results)?;
        Ok(true)
    }

    /// A sub-agent lives in the process that started it, so one without an end is lost. Its result
    /// says so and is delivered like any other.
    fn end_lost_sub_agents(&mut self) -> Result<(), SessionError> {
        let agents = self.state().extension.sub_agents.iter();
        let drafts: Vec<Draft> = agents
            .filter(|agent| agent.finished.is_none())
            .map(|agent| SubAgentFinished {
                run_id: agent.started.run_id.clone(),
                outcome: "interrupted".to_owned(),
                text: "The process ended before the sub-agent did; its effects are unknown."
                    .to_owned(),
                usage: Counters::default(),
            })
            .map(|finished| Draft::new(Body::Extension(Extension::SubAgentFinished(finished))))
            .collect();
        if drafts.is_empty() { Ok(()) } else { self.append(drafts).map(drop) }
    }
}

/// What was in flight when the last process ended, one sentence each.
#[must_use]
pub fn what_was_in_flight(state: &SessionState) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(step) = state.operation.step().filter(|step| step.status == StepStatus::Attempting)
    {
        let attempt = step.attempt;
        sentences.push(format!("A model request (attempt {attempt} of 2) had no answer yet."));
    } else if state.operation.step().is_none() && !state.is_idle() {
        sentences.push("No model request had been sent yet.".to_owned());
    }
    sentences.extend(calls_in_flight(state));
    let lost = state.extension.sub_agents.iter().filter(|agent| agent.finished.is_none());
    sentences.extend(lost.map(lost_sub_agent));
    sentences.extend(state.lost_jobs().map(|job| {
        let (name, label) = (job.started.job.escape_debug(), job.started.label.escape_debug());
        format!("Background job `{name}` (`{label}`) was running; it is gone.")
    }));
    if state.operation.abort_requested() {
        sentences.push("The operation was being aborted.".to_owned());
    }
    sentences
}

fn calls_in_flight(state: &SessionState) -> Vec<String> {
    let (Some(run), Some((turn, placed))) = (state.run(), state.open_answer()) else {
        return Vec::new();
    };
    let calls = placed.message.tool_calls();
    let total = calls.len();
    let describe = |(index, call): (usize, &crate::session::facts::message::ToolCall)| {
        let fate = match turn.calls.get(index)? {
            CallProgress::Answered => return None,
            CallProgress::Untouched => "had not started.",
            CallProgress::Started(position) => match run.tool_calls.get(*position)?.replay {
                Replay::Safe => "had started; it changes nothing and may be repeated.",
                Replay::Never => {
                    "had started; whether it took effect is unknown, and it is not repeated."
                }
            },
        };
        let (number, name) = (index + 1, call.function.name.escape_debug());
        Some(format!("Call {number} of {total}, `{name}`, {fate}"))
    };
    let unanswered = !turn.is_answered();
    calls.iter().enumerate().filter(|_| unanswered).filter_map(describe).collect()
}

fn lost_sub_agent(agent: &SubAgent) -> String {
    let label = agent.started.label.escape_debug();
    format!("Sub-agent `{label}` was running; its result is lost and its effects are unknown.")
}
