//! Who carries out approved calls: cells, or outcomes that were given beforehand, for calls whose tools
//! do not exist yet and for tests that are no cells.

use crate::chain::Approved;
use crate::chain::abort::AbortSignal;
use crate::tools::execute::{Outcome, execute};
use crate::tools::toolbox::Toolbox;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Spends the approval of a call, once.
#[derive(Debug, Clone, Default)]
pub enum Executor {
    /// A cell for each call.
    #[default]
    Cells,
    /// The outcomes of the next calls; when they run out, cells again.
    Scripted(Arc<Mutex<VecDeque<Outcome>>>),
}

impl Executor {
    /// Carries out one call. Blocks the calling thread.
    #[must_use]
    pub fn carry_out(&self, approved: Approved, toolbox: &Toolbox, abort: &AbortSignal) -> Outcome {
        let given = match self {
            Self::Cells => None,
            Self::Scripted(outcomes) => {
                outcomes.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
            }
        };
        given.unwrap_or_else(|| execute(approved, toolbox, abort))
    }
}
