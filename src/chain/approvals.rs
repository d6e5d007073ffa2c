//! What a person said yes to for longer than one call. The value is shared by the runs of one
//! conversation and ends with the process: a later one asks again.

use crate::base::digest::Digest;
use crate::base::limits::APPROVALS_MAX;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Remembered answers, each bound to exactly the call that was shown. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Approvals(Arc<Mutex<VecDeque<Digest>>>);

impl Approvals {
    /// Whether exactly this call was approved for longer than once.
    #[must_use]
    pub(super) fn covers(&self, call: &Digest) -> bool {
        self.lock().contains(call)
    }

    /// Remembers a yes. The oldest one is forgotten when there are too many, which only means that the
    /// person is asked again.
    pub(super) fn remember(&self, call: Digest) {
        let mut approved = self.lock();
        if approved.contains(&call) {
            return;
        }
        if approved.len() >= APPROVALS_MAX {
            approved.pop_front();
        }
        approved.push_back(call);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: usize) -> Digest {
        Digest::of(&number.to_le_bytes())
    }

    #[test]
    fn clones_share_answers_and_the_oldest_is_forgotten_first() {
        let approvals = Approvals::default();
        let shared = approvals.clone();
        (0..=APPROVALS_MAX).for_each(|number| approvals.remember(call(number)));
        approvals.remember(call(APPROVALS_MAX));
        assert!(!shared.covers(&call(0)), "forgotten");
        assert!((1..=APPROVALS_MAX).all(|number| shared.covers(&call(number))));
        assert!(!Approvals::default().covers(&call(1)), "another conversation knows nothing");
    }
}
