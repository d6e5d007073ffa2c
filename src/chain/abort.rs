//! The wish to stop, in two steps. The wish itself is known at once: a model call is given up and no call
//! starts any more. Cells and questions are ended by the second step, so that a loop can write down before
//! it that the run is being aborted. Both steps are final.

use crate::model::Abort;
use crate::sandbox::Cancel;
use std::sync::{Arc, OnceLock};

/// A clonable signal that ends model calls, questions and cells.
#[derive(Debug, Clone, Default)]
pub struct AbortSignal {
    model: Abort,
    cell: Cancel,
    cause: Arc<OnceLock<StopCause>>,
}

/// Why the run is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// The person at the terminal wants it.
    Interrupt,
    /// The system, or whoever manages the process, wants it.
    Termination,
    /// The time that the policy gives a run is over.
    Time,
}

impl AbortSignal {
    /// A signal that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The first step: the model is waited for no longer and no call starts. Cells go on until
    /// [`Self::end_cells`].
    pub fn ask(&self, cause: StopCause) {
        // Only the first cause counts.
        self.cause.get_or_init(|| cause);
        self.model.abort();
    }

    /// The second step: cells end now, and questions are waited for no longer.
    pub fn end_cells(&self) {
        self.cell.cancel();
    }

    /// Both steps at once, for whoever keeps no journal.
    pub fn abort(&self, cause: StopCause) {
        self.ask(cause);
        self.end_cells();
    }

    /// Returns when the first step has been taken.
    pub async fn asked(&self) {
        self.model.aborted().await;
    }

    /// Why it was set first; meaningless before.
    #[must_use]
    pub fn cause(&self) -> StopCause {
        self.cause.get().copied().unwrap_or(StopCause::Interrupt)
    }

    /// Whether the first step has been taken.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.model.is_aborted()
    }

    /// The form that model calls await; the first step sets it.
    #[must_use]
    pub const fn for_model(&self) -> &Abort {
        &self.model
    }

    /// The form that cells and questions poll; the second step sets it.
    #[must_use]
    pub const fn for_cell(&self) -> &Cancel {
        &self.cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_go_on_until_the_second_step_and_the_first_cause_counts() {
        let signal = AbortSignal::new();
        assert!(!signal.is_aborted() && !signal.for_cell().is_cancelled());
        signal.ask(StopCause::Termination);
        assert!(signal.is_aborted() && signal.for_model().is_aborted());
        assert!(!signal.for_cell().is_cancelled());
        signal.abort(StopCause::Interrupt);
        assert!(signal.for_cell().is_cancelled());
        assert_eq!(signal.cause(), StopCause::Termination);
    }
}
