//! Ground layer: what every other module may use and what knows none of them.
//!
//! Holds identifiers, limits, paths and patterns over them, text that came from outside, secrets, the
//! clock, strict JSON, digests and the durable line file. It decides nothing about tools, policy or models.

pub mod clock;
pub mod digest;
pub mod dollars;
pub mod exit;
pub mod ids;
pub mod json;
pub mod jsonl;
pub mod limits;
pub mod paths;
pub mod pattern;
pub mod secret;
pub mod text;
