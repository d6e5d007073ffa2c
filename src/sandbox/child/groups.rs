//! Control groups: limits of the whole tree, where this machine lets us make one.
//!
//! Version 2 where the supervisor's own group is delegated to it, version 1 as root. Where neither
//! can be had the limits are resource limits alone, and `Enforced` says so.

use super::super::enforced::LimitsHeld;
use super::super::spec::Limits;
use super::super::wire::Cleaned;

/// The control groups of one cell.
#[derive(Debug)]
pub(super) struct ControlGroup {
    held: LimitsHeld,
}

impl ControlGroup {
    /// Makes what can be made for these limits.
    pub(super) fn create(_limits: &Limits) -> Self {
        Self { held: LimitsHeld::Rlimit }
    }

    /// What bounds the cell.
    pub(super) fn held(&self) -> LimitsHeld {
        self.held
    }

    /// Moves this process into the groups.
    pub(super) fn join(&self) {}

    /// Reads what the groups counted and removes them. Called when no process of the cell lives.
    pub(super) fn finish(self, _cleaned: &mut Cleaned) {}
}
