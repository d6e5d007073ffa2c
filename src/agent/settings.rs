//! What one run is configured with: everything the loop needs and nothing it decides.

use crate::base::dollars::Dollars;
use crate::base::limits;
use crate::call::request::{InvalidCall, Request, ToolName};
use crate::model::{Price, RetryPolicy, ThinkingLevel, ToolCallStyle, ToolDefinition};
use crate::session::{ConfigurationSnapshot, ToolContract};
use std::collections::BTreeSet;
use std::time::Duration;

/// The settings of a run.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// The system prompt; byte-identical for the whole session.
    pub system: String,
    /// The tools that the host enabled; a call of any other is unknown.
    pub enabled: BTreeSet<ToolName>,
    /// Those of them that the role may use; exactly their schemas are in every request. A call of one
    /// that is enabled and not offered is refused by the role gate.
    pub offered: BTreeSet<ToolName>,
    /// The definitions of the offered tools, sorted.
    pub definitions: Vec<ToolDefinition>,
    /// Their contracts for the journal, in the same order.
    pub contracts: Vec<ToolContract>,
    /// What every attempt depends on.
    pub snapshot: ConfigurationSnapshot,
    /// Sampling temperature.
    pub temperature: f64,
    /// Output tokens of one answer.
    pub max_tokens: u32,
    /// How much the model may think.
    pub thinking: ThinkingLevel,
    /// How the model asks for calls.
    pub tool_calls: ToolCallStyle,
    /// Tokens that the model takes, if that is known.
    pub context_window: Option<u64>,
    /// Whether the provider may search the web by itself.
    pub native_search: bool,
    /// What the model costs, if that is known.
    pub price: Option<Price>,
    /// Bounds of the run.
    pub budget: Budget,
    /// How failed model calls are repeated.
    pub retry: RetryPolicy,
    /// Whether pieces of an answer are shown as they arrive; a shown answer is not asked for again.
    pub shows_pieces: bool,
}

/// Bounds of one run.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Model calls.
    pub iterations: u32,
    /// Tool calls that run.
    pub tool_calls: Option<u64>,
    /// Tokens, input and output together.
    pub tokens: Option<u64>,
    /// Money, by the price of the model.
    pub cost: Option<Dollars>,
    /// Wall time.
    pub time: Option<Duration>,
    /// Messages of history in one request.
    pub history: usize,
    /// Rounds in a row in which background results alone keep the run going.
    pub background_rounds: u32,
    /// Repetitions of the same calls with the same results before the model is told, and again before
    /// the run ends; 0 = no such end.
    pub repetitions: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            iterations: limits::ITERATIONS_MAX,
            tool_calls: None,
            tokens: None,
            cost: None,
            time: None,
            history: limits::HISTORY_MESSAGES_MAX,
            background_rounds: limits::BACKGROUND_DRAIN_ROUNDS_MAX,
            repetitions: limits::REPETITIONS_MAX,
        }
    }
}

impl AgentSettings {
    /// Reads a call of the model. What is not enabled is unknown; the offered tools are named then.
    ///
    /// # Errors
    /// What the model is told.
    pub fn read(&self, name: &str, arguments: &str) -> Result<Request, InvalidCall> {
        let withheld = |tool| self.enabled.contains(&tool) && !self.offered.contains(&tool);
        let known =
            if ToolName::parse(name).is_some_and(withheld) { &self.enabled } else { &self.offered };
        Request::parse(name, arguments, known)
    }

    /// The contract of `tool`.
    #[must_use]
    pub fn contract(&self, tool: ToolName) -> Option<&ToolContract> {
        self.contracts.iter().find(|contract| contract.name == tool.as_str())
    }
}
