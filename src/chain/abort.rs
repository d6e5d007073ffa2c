//! The wish to stop, in the two forms in which it is waited for: a model call awaits it, a cell polls
//! it. Setting it is final.

use crate::model::Abort;
use crate::sandbox::Cancel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A clonable signal that ends model calls, questions and cells.
#[derive(Debug, Clone, Default)]
pub struct AbortSignal {
    model: Abort,
    cell: Cancel,
    terminated: Arc<AtomicBool>,
}

/// Who wants the run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// The person at the terminal.
    Interrupt,
    /// The system, or whoever manages the process.
    Termination,
}

impl AbortSignal {
    /// A signal that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it: whatever waits ends now.
    pub fn abort(&self, cause: StopCause) {
        if cause == StopCause::Termination && !self.is_aborted() {
            self.terminated.store(true, Ordering::SeqCst);
        }
        self.model.abort();
        self.cell.cancel();
    }

    /// Who set it first; meaningless before.
    #[must_use]
    pub fn cause(&self) -> StopCause {
        if self.terminated.load(Ordering::SeqCst) {
            StopCause::Termination
        } else {
            StopCause::Interrupt
        }
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.model.is_aborted()
    }

    /// The form that model calls await.
    #[must_use]
    pub const fn for_model(&self) -> &Abort {
        &self.model
    }

    /// The form that cells and questions poll.
    #[must_use]
    pub const fn for_cell(&self) -> &Cancel {
        &self.cell
    }
}
