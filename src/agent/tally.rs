//! What a run has used and what was refused in it: the numbers of the final result.

use super::events::{Denial, FinishReason};
use crate::audit::record::Reason;
use crate::base::dollars::Dollars;
use crate::base::ids::Id;
use crate::chain::verdict::{Denied, place};
use crate::model::Usage;
use crate::session::{Counters, FinalStatistics, Spent};
use std::time::Instant;

/// Running totals.
#[derive(Debug)]
pub(super) struct Tally {
    /// When the run began.
    pub started: Instant,
    /// Model calls that gave an answer.
    pub turns: u32,
    /// Tokens of all answers.
    pub usage: Usage,
    /// What they and reviews cost, where prices are known.
    pub cost: Dollars,
    /// What earlier processes of the same run have spent.
    pub earlier: Spent,
    /// Calls that ran.
    pub executed: u64,
    /// Requests that never became a decision.
    pub rejected: u64,
    /// Refused calls.
    pub denials: Vec<Denial>,
}

impl Tally {
    /// Nothing yet.
    #[must_use]
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            turns: 0,
            usage: Usage::default(),
            cost: Dollars::default(),
            earlier: Spent::default(),
            executed: 0,
            rejected: 0,
            denials: Vec::new(),
        }
    }

    /// Notes a refused call.
    pub(super) fn refuse(&mut self, denied: &Denied) {
        let Reason { code, rule, sentence, .. } = &denied.reason;
        self.denials.push(Denial {
            call: denied.call.clone(),
            tool: denied.tool.clone(),
            stage: denied.stage.as_str().to_owned(),
            code: code.to_string(),
            rule: rule.as_ref().map(ToString::to_string),
            place: place(&denied.reason),
            reason: sentence.to_string(),
        });
    }

    /// Refused calls, as a number.
    #[must_use]
    pub(super) fn denied(&self) -> u64 {
        u64::try_from(self.denials.len()).unwrap_or(u64::MAX)
    }

    /// What the run has cost, earlier processes of it included.
    #[must_use]
    pub(super) const fn cost_in_all(&self) -> Dollars {
        self.cost.plus(self.earlier.cost)
    }

    /// Milliseconds since the run began.
    #[must_use]
    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The statistics that close the run in the journal.
    #[must_use]
    pub(super) fn statistics(
        &self,
        operation_id: Id,
        finish: FinishReason,
        cost: Option<Dollars>,
    ) -> FinalStatistics {
        FinalStatistics {
            operation_id,
            finish_reason: finish.as_str().to_owned(),
            iterations: u64::from(self.turns),
            executed: self.executed,
            denied: self.denied(),
            usage: counters(self.usage),
            cost_millionths: cost.map(Dollars::millionths),
            duration_ms: self.elapsed_ms(),
        }
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

/// Tokens as the journal counts them.
#[must_use]
pub(super) const fn counters(usage: Usage) -> Counters {
    let Usage { input, output, cache_read, cache_write, estimated: _ } = usage;
    Counters { input, output, cache_read, cache_write }
}
