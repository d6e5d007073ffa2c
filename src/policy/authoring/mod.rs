//! For the people who write policies: what a valid policy probably does not mean, its layout, tests of
//! it, and what the words of a call resolved to, and a policy from calls that were approved. Nothing here changes an answer.

pub mod cases;
mod explain;
mod format;
mod learn;
mod lint;
mod rules;

pub use explain::{Resolved, resolved, resolved_text};
pub use format::format;
pub use learn::{Observed, ObservedProgram, learn};
pub use lint::lint;
pub use rules::rules as rules_of;
