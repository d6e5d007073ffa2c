//! What each turn of the loop cost, for the journal: written along with whatever comes next, since
//! nothing depends on it.

use super::Agent;
use crate::base::ids::Id;
use crate::session::{Extension, IterationStatistics};
use std::time::Instant;

/// A turn that has an answer and may still run its calls.
#[derive(Debug)]
pub(super) struct Iteration {
    operation: Id,
    step: Id,
    began: Instant,
    /// Calls that had run and that had been refused when it began.
    executed: u64,
    denied: u64,
}

impl Agent {
    /// The answer of a request that was sent at `began` has been settled.
    pub(super) fn begin_iteration(&mut self, began: Instant) {
        let step = self.parts.journal.state().operation.step();
        self.iteration = step.map(|step| Iteration {
            operation: step.operation_id.clone(),
            step: step.step_id.clone(),
            began,
            executed: self.tally.executed,
            denied: self.tally.denied(),
        });
    }

    /// The turn is over, however: all its calls have results, or the run ends.
    pub(super) fn end_iteration(&mut self) {
        let Some(turn) = self.iteration.take() else { return };
        let earlier = self.parts.journal.state().extension.iterations.last();
        let earlier = earlier.filter(|earlier| earlier.operation_id == turn.operation);
        let statistics = IterationStatistics {
            iteration: earlier.map_or(1, |earlier| earlier.iteration.saturating_add(1)),
            operation_id: turn.operation,
            step_id: turn.step,
            executed: self.tally.executed.saturating_sub(turn.executed),
            denied: self.tally.denied().saturating_sub(turn.denied),
            duration_ms: u64::try_from(turn.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        self.parts.journal.note_with_next(Extension::Iteration(statistics));
    }
}
