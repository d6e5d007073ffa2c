//! The loop: model, tool calls, results, again.
//!
//! It is a machine of explicit states, so that a crash at any point has a named place in the journal.
//! The loop holds no domain rule and opens nothing: it asks the model, sends every call through the
//! chain, has approved ones carried out, writes down what came of it, and decides whether to go on.

pub mod agents_file;
pub mod background;
mod calls;
mod compact;
mod conversation;
mod cycles;
pub mod events;
pub mod executor;
mod fault;
mod finish;
mod hooks;
mod iteration;
mod jobs;
pub mod prompt;
mod quiet;
pub mod settings;
mod spending;
mod stopping;
mod tally;
mod turn;
mod wave;

pub use fault::Fault;

use crate::audit::AuditWriter;
use crate::audit::record::Hook;
use crate::base::ids::Id;
use crate::chain::Chain;
use crate::model::{Model, Recording};
use crate::session::{Extension, Journal, RunContext, Scratch};
use crate::tools::toolbox::Toolbox;
use background::{BackgroundQueue, DrainRounds};
use conversation::Conversation;
use cycles::CycleWatch;
use events::{Event, Listener, RunResult};
use executor::Executor;
use finish::Ending;
use iteration::Iteration;
use settings::AgentSettings;
use std::collections::BTreeSet;
use std::sync::Arc;
use tally::Tally;
use tokio::task::JoinSet;
use turn::State;

/// What one run is made of.
pub struct Parts {
    /// The session.
    pub session: Id,
    /// What the run is allowed to do, for the journal; its operation is filled in.
    pub context: RunContext,
    /// The settings.
    pub settings: AgentSettings,
    /// The model.
    pub model: Arc<Model>,
    /// The policy chain.
    pub chain: Chain,
    /// The tools.
    pub toolbox: Arc<Toolbox>,
    /// Who carries out approved calls.
    pub executor: Executor,
    /// The journal, open and recovered.
    pub journal: Journal,
    /// The audit log, with its `session` record written.
    pub log: AuditWriter,
    /// Results of background work.
    pub background: BackgroundQueue,
    /// Who is told.
    pub listener: Listener,
    /// Where each attempt is recorded as a line of a script, if that was asked for.
    pub recording: Option<Arc<Recording>>,
    /// Whether the workspace has an AGENTS.md that is to be put before the model.
    pub agents_file: bool,
    /// The temporary directory of cells that have no view; it goes with the run.
    pub scratch: Option<Scratch>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Parts").field("session", &self.session).finish_non_exhaustive()
    }
}

/// One run of the loop.
pub struct Agent {
    parts: Parts,
    tally: Tally,
    cycles: CycleWatch,
    drains: DrainRounds,
    repairs_told: BTreeSet<String>,
    /// Compactions since the last answer.
    compactions: u32,
    conversation: Conversation,
    gauge: compact::Gauge,
    post_hooks: JoinSet<Hook>,
    /// Results of the current answer so far.
    turn_results: Vec<turn::CallResult>,
    /// The turn that has an answer and is not over.
    iteration: Option<Iteration>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.parts.fmt(formatter)
    }
}

/// How a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// With words of the user.
    Task(String),
    /// Where an interrupted run stopped: at a model request, or at calls that have not started.
    Interrupted,
}

impl Agent {
    /// A run that has not begun.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            cycles: CycleWatch::new(parts.settings.budget.repetitions),
            drains: DrainRounds::new(parts.settings.budget.background_rounds),
            parts,
            tally: Tally::new(),
            repairs_told: BTreeSet::new(),
            compactions: 0,
            conversation: Conversation::default(),
            gauge: compact::Gauge::default(),
            post_hooks: JoinSet::new(),
            turn_results: Vec::new(),
            iteration: None,
        }
    }

    /// Runs to the end. Whatever happens there is exactly one result, it is the last event, and the
    /// journal and the log are closed as far as they can be written.
    pub async fn run(mut self, start: Start) -> RunResult {
        let ending = match self.drive(start).await {
            Ok(ending) => ending,
            Err(fault) => Ending::of_fault(&fault),
        };
        let result = self.close(ending).await;
        self.tell(Event::Result(Box::new(result.clone())));
        result
    }

    async fn drive(&mut self, start: Start) -> Result<Ending, Fault> {
        let mut state = match start {
            Start::Task(task) => {
                // The user's words are durable before anything else happens.
                self.parts.journal.begin_run(&task, None)?;
                self.note_context()?;
                self.tell(Event::UserMessage { content: task });
                if let Some(ending) = self.start_hooks().await? {
                    return Ok(ending);
                }
                self.inject_agents_file().await?;
                self.inject_background()?;
                State::AwaitingModel
            }
            Start::Interrupted => {
                self.take_earlier();
                self.note_context()?;
                if let Some(ending) = self.start_hooks().await? {
                    return Ok(ending);
                }
                let state = self.state_after_recovery();
                // Between a call and its result there is no place for a message.
                if matches!(state, State::AwaitingModel) {
                    self.inject_background()?;
                }
                state
            }
        };
        loop {
            state = match state {
                State::AwaitingModel => self.await_model().await?,
                State::Compacting => self.compact().await?,
                State::Deciding(calls) => self.decide(calls).await?,
                State::Executing { wave, rest } => self.execute(wave, rest).await?,
                State::Recording(results) => self.record_turn(&results)?,
                State::Draining { answer } => self.drain(answer)?,
                State::Ended(ending) => return Ok(ending),
            };
        }
    }

    /// Pins what this run may do, so that a later resumption can only narrow it.
    fn note_context(&mut self) -> Result<(), Fault> {
        let Some(operation_id) = self.parts.journal.state().operation.id().cloned() else {
            return Ok(());
        };
        let context = RunContext { operation_id, ..self.parts.context.clone() };
        Ok(self.parts.journal.note(Extension::RunContext(context))?)
    }

    fn tell(&mut self, event: Event) {
        (self.parts.listener)(&event);
    }
}

#[cfg(test)]
mod tests;
