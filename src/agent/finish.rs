//! The end of a run: the journal and the log are closed as far as they can be written, and one result
//! says how it went.

use super::events::{FinishReason, RunResult};
use super::{Agent, Fault};
use crate::audit::record::{Body, End};
use crate::base::dollars::Dollars;
use crate::base::exit::Exit;
use crate::base::text::Untrusted;
use crate::chain::abort::StopCause;
use crate::model::ModelError;
use crate::session::{FactError, FinalStatistics, SessionError};
use std::time::Duration;

/// Time that post-tool hooks have left when the run is over: they are told, not waited for.
pub(super) const POST_HOOK_TIME: Duration = Duration::from_secs(5);

/// How a run ends.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    reason: FinishReason,
    answer: String,
    error: Option<String>,
}

impl Ending {
    pub(super) const fn stop(answer: String) -> Self {
        Self { reason: FinishReason::Stop, answer, error: None }
    }

    pub(super) const fn interrupted() -> Self {
        Self { reason: FinishReason::Interrupted, answer: String::new(), error: None }
    }

    pub(super) const fn failed(reason: FinishReason, why: String) -> Self {
        Self { reason, answer: String::new(), error: Some(why) }
    }

    pub(super) const fn reason(&self) -> FinishReason {
        self.reason
    }

    pub(super) fn with(self, answer: String) -> Self {
        Self { answer, ..self }
    }

    pub(super) fn of_model(error: &ModelError) -> Self {
        let is_empty = *error.root() == ModelError::Empty;
        let reason = if is_empty { FinishReason::Empty } else { FinishReason::Error };
        Self::failed(reason, error.to_string())
    }

    pub(super) fn of_fault(fault: &Fault) -> Self {
        Self::failed(FinishReason::RecordFailure, fault.to_string())
    }
}

impl Agent {
    /// Closes everything. An error here cannot be recorded any more; it becomes the result.
    pub(super) async fn close(&mut self, ending: Ending) -> RunResult {
        let mut ending = ending;
        let stopped = self.is_stopped(&ending);
        if let Err(error) = self.parts.journal.flush() {
            ending = self.worse(ending, &error.into());
        }
        if let Err(fault) = self.stop_cells(stopped) {
            ending = self.worse(ending, &fault);
        }
        self.wait_for_post_hooks().await;
        self.end_iteration();
        if ending.reason == FinishReason::RecordFailure {
            self.parts.journal.use_reserve();
        }
        if let Err(fault) = self.end_jobs().await {
            ending = self.worse(ending, &fault);
        }
        if stopped && let Err(fault) = self.refuse_open().await {
            ending = self.worse(ending, &fault);
        }
        if let Err(fault) = self.close_journal(&ending) {
            ending = self.worse(ending, &fault);
        }
        if let Err(fault) = self.end_hooks(ending.reason()).await {
            ending = self.worse(ending, &fault);
        }
        let result = self.result(&ending);
        if let Err(error) = self.close_log(&result) {
            let ending = self.worse(ending, &error.into());
            return self.result(&ending);
        }
        result
    }

    /// Whether the run ends since somebody stopped it, or since its time was over in the midst of it.
    fn is_stopped(&self, ending: &Ending) -> bool {
        let abort = &self.parts.chain.abort;
        let in_time = ending.reason != FinishReason::Budget || abort.cause() != StopCause::Time;
        ending.reason == FinishReason::Interrupted || abort.is_aborted() && !in_time
    }

    /// A record that fails while a run ends for another reason is the more important news.
    fn worse(&self, ending: Ending, fault: &Fault) -> Ending {
        if ending.reason == FinishReason::RecordFailure {
            return ending;
        }
        Ending::of_fault(fault).with(ending.answer)
    }

    fn close_journal(&mut self, ending: &Ending) -> Result<(), Fault> {
        let state = self.parts.journal.state();
        let run = state.run().map(|run| &run.operation_id);
        let Some(operation) = run.or(state.operation.id()).cloned() else { return Ok(()) };
        let statistics = Some(self.tally.statistics(operation, ending.reason, self.known_cost()));
        match ending.reason {
            FinishReason::Stop | FinishReason::Truncated => {
                // A tool that asks for the end, or a cut text, leaves no final answer to finish with.
                match self.parts.journal.operation_finished(statistics.clone()) {
                    Err(SessionError::Unfit { .. }) => self.fail_journal(ending, statistics),
                    finished => Ok(finished.map(drop)?),
                }
            }
            FinishReason::Interrupted => Ok(self.parts.journal.abort_operation(statistics)?),
            FinishReason::MaxIterations
            | FinishReason::Error
            | FinishReason::Empty
            | FinishReason::Budget
            | FinishReason::Loop
            | FinishReason::RecordFailure
            | FinishReason::SandboxFailure
            | FinishReason::HookDenied => self.fail_journal(ending, statistics),
        }
    }

    fn fail_journal(
        &mut self,
        ending: &Ending,
        statistics: Option<FinalStatistics>,
    ) -> Result<(), Fault> {
        let why = ending.error.as_deref().unwrap_or("the run ended without an answer");
        let fact = FactError::new(ending.reason.as_str(), why);
        Ok(self.parts.journal.fail_all(&fact, statistics)?)
    }

    fn close_log(&mut self, result: &RunResult) -> Result<(), crate::audit::AuditError> {
        let end = End {
            finish: Untrusted::new(result.finish_reason.as_str()),
            exit_code: result.exit_code,
            approved: self.tally.executed,
            denied: self.tally.denied(),
            rejected: self.tally.rejected,
            tokens: (self.tally.usage.input, self.tally.usage.output),
            cost_millionths: self.known_cost().map(Dollars::millionths),
            cause: result.error.as_deref().map(Untrusted::new),
        };
        self.parts.log.append(&Body::End(Box::new(end))).map(drop)
    }

    fn result(&self, ending: &Ending) -> RunResult {
        let any_denied = !self.tally.denials.is_empty();
        let terminated = self.parts.chain.abort.cause() == StopCause::Termination;
        let mut exit = ending.reason.exit(any_denied);
        if exit == Exit::Interrupted && terminated {
            exit = Exit::Terminated;
        }
        RunResult {
            status: match ending.reason {
                FinishReason::Stop if any_denied => "denied",
                FinishReason::Stop => "done",
                FinishReason::MaxIterations
                | FinishReason::Interrupted
                | FinishReason::Error
                | FinishReason::Truncated
                | FinishReason::Empty
                | FinishReason::Budget
                | FinishReason::Loop
                | FinishReason::RecordFailure
                | FinishReason::SandboxFailure
                | FinishReason::HookDenied => "failed",
            },
            finish_reason: ending.reason,
            answer: ending.answer.clone(),
            error: ending.error.clone(),
            usage: self.tally.usage,
            cost_dollars: self.cost_dollars(),
            turns: self.tally.turns,
            session: self.parts.session.clone(),
            denials: self.tally.denials.clone(),
            exit_code: exit.code(),
        }
    }

    async fn wait_for_post_hooks(&mut self) {
        let all = async {
            while let Some(finished) = self.post_hooks.join_next().await {
                let Ok(record) = finished else { continue };
                // A log that fails here fails again at the end of the run, where it is told.
                self.parts.log.append(&Body::Hook(Box::new(record))).ok();
            }
        };
        let in_time = tokio::time::timeout(POST_HOOK_TIME, all).await.is_ok();
        if !in_time {
            self.post_hooks.abort_all();
        }
    }
}
