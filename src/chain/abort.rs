//! The wish to stop, in the two forms in which it is waited for: a model call awaits it, a cell polls
//! it. Setting it is final.

use crate::model::Abort;
use crate::sandbox::Cancel;

/// A clonable signal that ends model calls, questions and cells.
#[derive(Debug, Clone, Default)]
pub struct AbortSignal {
    model: Abort,
    cell: Cancel,
}

impl AbortSignal {
    /// A signal that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it: whatever waits ends now.
    pub fn abort(&self) {
        self.model.abort();
        self.cell.cancel();
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
