//! The wish to stop, shared between whoever interrupts a run and a model call that waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// A clonable flag that can be awaited. Once set it stays set.
#[derive(Debug, Clone, Default)]
pub struct Abort(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    set: AtomicBool,
    wake: Notify,
}

impl Abort {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag and wakes every waiter.
    pub fn abort(&self) {
        self.0.set.store(true, Ordering::SeqCst);
        self.0.wake.notify_waiters();
    }

    /// Whether the flag is set.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.0.set.load(Ordering::SeqCst)
    }

    /// Returns when the flag is set.
    pub async fn aborted(&self) {
        let mut wake = std::pin::pin!(self.0.wake.notified());
        // Registered before the flag is read, so that a wake between the two is not lost.
        wake.as_mut().enable();
        if !self.is_aborted() {
            wake.await;
        }
    }
}
