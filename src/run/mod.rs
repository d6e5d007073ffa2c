//! Wires one run together: workspace, policy, cell, model, session, log, loop, signals. It decides
//! nothing about calls; what is on the screen is the business of `cli`.

pub mod cell;
pub mod environment;
pub mod exec;
pub mod error;
pub mod fork;
mod git_identity;
pub mod hard_links;
pub mod memory;
pub mod model;
pub mod policies;
mod opening;
mod options;
mod recorded;
mod relay;
pub mod learn;
pub mod replay;
mod resume;
pub mod setup;
pub mod signals;
pub mod sockets;
pub mod workspace;

pub use error::RunError;
pub use setup::{Grounds, grounds};

use crate::agent::events::{Listener, RunResult};
use crate::agent::{Agent, Start};
use crate::base::dollars::Dollars;
use crate::chain::abort::AbortSignal;
use crate::model::{Recording, ThinkingLevel, ToolCallStyle};
use crate::sandbox::{self, Namespaces};
use environment::Environment;
use memory::Memory;
use model::ModelWish;
use setup::Surroundings;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything that was asked for.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// The caller's environment.
    pub environment: Environment,
    /// Where state is kept; default by XDG.
    pub state_directory: Option<PathBuf>,
    /// Where the agent works; default the current directory.
    pub workspace: Option<PathBuf>,
    /// Policies by name or file.
    pub policies: Vec<String>,
    /// The role.
    pub role: Option<String>,
    /// The model.
    pub model: ModelWish,
    /// The tools; default all.
    pub tools: Option<Vec<String>>,
    /// Most model calls.
    pub max_iterations: Option<u32>,
    /// Repetitions that make a circle; 0 = none does.
    pub max_repeats: Option<u32>,
    /// What the model calls may cost.
    pub max_cost: Option<Dollars>,
    /// Messages of history in one request.
    pub max_history: Option<u32>,
    /// Retries of a model call.
    pub max_retries: Option<u32>,
    /// Rounds in a row in which background results alone keep the run going.
    pub max_background_rounds: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Output tokens of one answer.
    pub max_tokens: Option<u32>,
    /// How much the model may think.
    pub thinking: ThinkingLevel,
    /// How the model asks for calls.
    pub tool_calls: ToolCallStyle,
    /// Where the model's attempts are recorded.
    pub recording: Option<Arc<Recording>>,
    /// Whether the workspace's AGENTS.md is put before the model, as data.
    pub agents_file: bool,
    /// What becomes of a policy that may allow more than an earlier session had.
    pub wider_policy: WiderPolicy,
    /// Whether nobody is asked.
    pub headless: bool,
    /// Whether pieces of an answer are shown as they arrive.
    pub shows_pieces: bool,
    /// Whether namespaces may be used.
    pub namespaces: Namespaces,
    /// Home directory instead of the environment's (the demonstration has its own).
    pub home: Option<PathBuf>,
}

impl RunConfig {
    /// Nothing asked for: the caller's environment and the defaults of everything else. Somebody is
    /// asked where a rule says so, and no file of the workspace is put before the model.
    #[must_use]
    pub fn of(environment: Environment) -> Self {
        Self {
            environment,
            state_directory: None,
            workspace: None,
            policies: Vec::new(),
            role: None,
            model: ModelWish::default(),
            tools: None,
            max_iterations: None,
            max_repeats: None,
            max_cost: None,
            max_history: None,
            max_retries: None,
            max_background_rounds: None,
            temperature: None,
            max_tokens: None,
            thinking: ThinkingLevel::None,
            tool_calls: ToolCallStyle::Native,
            recording: None,
            agents_file: false,
            wider_policy: WiderPolicy::Refused,
            headless: false,
            shows_pieces: false,
            namespaces: Namespaces::Auto,
            home: None,
        }
    }
}

/// What becomes of a policy that may allow more than the session that goes on with it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WiderPolicy {
    /// The session does not go on, and the difference is told.
    Refused,
    /// What both allow is in force.
    CutDown,
}

/// What to work on.
#[derive(Debug, Clone)]
pub enum Job {
    /// A new session.
    New {
        /// The user's words.
        task: String,
    },
    /// An earlier session.
    Resume {
        /// Its id, or the beginning of one.
        session: String,
        /// Further words of the user.
        task: Option<String>,
    },
}

/// Runs a job to its end.
///
/// # Errors
/// [`RunError`] if it could not start; whatever happens later is in the result.
pub fn run(config: &RunConfig, job: Job, listener: Listener) -> Result<RunResult, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(run_once(config, job, &Memory::default(), listener));
    // A thread that still waits for a question on a terminal must not keep the process.
    runtime.shutdown_background();
    result
}

/// Runs a job to its end on the caller's runtime, which may run further ones after it; what they are
/// to remember of each other is in `memory`.
///
/// # Errors
/// As [`run`].
pub async fn run_once(
    config: &RunConfig,
    job: Job,
    memory: &Memory,
    listener: Listener,
) -> Result<RunResult, RunError> {
    // The next child starts while the policy is read, and later while the model is waited for.
    let _ready = sandbox::ready_always();
    let abort = AbortSignal::new();
    let _listening = signals::listen(&abort, AbortSignal::ask)?;
    let surroundings = Surroundings { abort: &abort, memory, listener };
    let (parts, start) = match job {
        Job::New { task } => (setup::new_session(config, &task, surroundings)?, Start::Task(task)),
        Job::Resume { session, task } => {
            resume::open_session(config, &session, task, surroundings)?
        }
    };
    Ok(Box::pin(Agent::new(parts).run(start)).await)
}
