//! What a run has spent, and when that is enough. Budgets are looked at before each model request: what is
//! spent then is never spent again, and a run that goes on after a crash begins with what it had spent.

use super::Agent;
use super::events::FinishReason;
use super::finish::Ending;
use crate::base::dollars::Dollars;
use crate::chain::abort::StopCause;
use crate::model::{Price, Usage};
use crate::session::{Cost, Extension};
use std::time::Duration;

impl Agent {
    /// The ending that a spent budget or the wish to stop makes, if there is one.
    pub(super) fn spent(&self) -> Option<Ending> {
        let (budget, tally) = (&self.parts.settings.budget, &self.tally);
        let abort = &self.parts.chain.abort;
        if abort.is_aborted() && abort.cause() != StopCause::Time {
            return Some(Ending::interrupted());
        }
        let earlier = &tally.earlier;
        if u64::from(tally.turns).saturating_add(earlier.answers) >= u64::from(budget.iterations) {
            let limit = budget.iterations;
            let why =
                format!("the limit of {limit} model calls is reached; raise --max-iterations");
            return Some(Ending::failed(FinishReason::MaxIterations, why));
        }
        if let Some(limit) = budget.cost.filter(|limit| tally.cost_in_all() >= *limit) {
            let cost = tally.cost_in_all();
            let why = format!(
                "the cost budget of {limit} is spent ({cost}); raise --max-cost or \
                               `limits.cost_dollars` of the policy"
            );
            return Some(Ending::failed(FinishReason::Budget, why));
        }
        let tokens = tally.usage.input.saturating_add(tally.usage.output);
        let tokens = tokens.saturating_add(earlier.tokens);
        let calls = tally.executed.saturating_add(earlier.calls);
        let spent = [
            budget.tokens.filter(|limit| tokens >= *limit).map(|_| "tokens"),
            budget.time.filter(|limit| self.time() >= *limit).map(|_| "run_seconds"),
            budget.tool_calls.filter(|limit| calls >= *limit).map(|_| "tool_calls"),
        ];
        let spent = spent.into_iter().flatten().next()?;
        let why = format!("the budget `limits.{spent}` of the policy is spent");
        Some(Ending::failed(FinishReason::Budget, why))
    }

    /// The ending of a run whose model call was given up: somebody wants it, or its time is up.
    pub(super) fn stopped(&self) -> Ending {
        self.spent().unwrap_or_else(Ending::interrupted)
    }

    /// What is left of the run's time, if that is bounded.
    pub(super) fn time_left(&self) -> Option<Duration> {
        Some(self.parts.settings.budget.time?.saturating_sub(self.time()))
    }

    fn time(&self) -> Duration {
        self.tally.started.elapsed() + Duration::from_millis(self.tally.earlier.duration_ms)
    }

    /// Counts what a model call used. Its cost stands in the next transaction, which is the one that
    /// settles the call.
    pub(super) fn spend(&mut self, usage: Usage) {
        self.tally.usage = self.tally.usage.plus(usage);
        self.pay(self.parts.settings.price, usage);
    }

    /// Counts what reviews since the last look have cost. Their tokens are not the agent's.
    pub(super) fn spend_on_reviews(&mut self) {
        let Some(guardian) = &self.parts.chain.guardian else { return };
        let (price, usage) = (guardian.model.price(), guardian.take_used());
        self.pay(price, usage);
    }

    fn pay(&mut self, price: Option<Price>, usage: Usage) {
        let Some(price) = price else { return };
        let cost = price.cost(&usage);
        let operation = self.parts.journal.state().operation.id();
        if let Some(operation_id) = operation.cloned().filter(|_| cost.millionths() > 0) {
            self.tally.cost = self.tally.cost.plus(cost);
            let fact = Cost { operation_id, millionths: cost.millionths() };
            self.parts.journal.note_with_next(Extension::Cost(fact));
        }
    }

    /// What the run has cost since its process began, if anything of it has a price.
    pub(super) fn cost_dollars(&self) -> Option<f64> {
        self.known_cost().map(Dollars::as_number)
    }

    /// The same, exactly.
    pub(super) fn known_cost(&self) -> Option<Dollars> {
        let reviewed =
            self.parts.chain.guardian.as_ref().and_then(|guardian| guardian.model.price());
        self.parts.settings.price.or(reviewed).map(|_| self.tally.cost)
    }

    /// Takes what an earlier process of the same run has spent.
    pub(super) fn take_earlier(&mut self) {
        self.tally.earlier = self.parts.journal.state().spent_since_person();
    }
}
