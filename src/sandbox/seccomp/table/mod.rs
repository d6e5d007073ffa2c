//! The reviewed list of system calls: one row for one reason. What the rules mean stands in `rules`.
//!
//! Numbers come from libc; the few that it does not name carry their number, which is the same on
//! every architecture from 424 on. A call that is in no row is absent (ENOSYS): obsolete calls, and
//! those newer than the last review.

use super::rules::Rule;

/// A system call: its name, and its number on this architecture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) number: u32,
}

/// Calls that share a rule, and why they have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) rule: Rule,
    pub(super) reason: &'static str,
    pub(super) calls: &'static [Call],
}

/// A row whose numbers libc knows.
macro_rules! row {
    ($rule:expr, $reason:literal, [$($name:ident),+ $(,)?]) => {
        Row {
            rule: $rule,
            reason: $reason,
            calls: &[$(Call { name: stringify!($name), number: number(libc::$name) }),+],
        }
    };
}

/// A row of one call that libc does not name on every architecture.
macro_rules! numbered {
    ($rule:expr, $reason:literal, $name:literal, $number:literal) => {
        Row { rule: $rule, reason: $reason, calls: &[Call { name: $name, number: $number }] }
    };
}

mod files;
mod native;
mod processes;
mod refused;
mod shared;

use files::{FILES, METADATA};
use native::NATIVE;
use processes::{MEMORY, PROCESSES, SIGNALS};
use refused::{NEWER, REFUSED};
use shared::{SHARED, SOCKETS};

/// Every row for this architecture.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    [FILES, METADATA, MEMORY, PROCESSES, SIGNALS, SOCKETS, SHARED, REFUSED, NEWER, NATIVE]
        .into_iter()
        .flatten()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "call numbers are small and positive; libc declares them as C long"
)]
const fn number(of: libc::c_long) -> u32 {
    of as u32
}
