//! Policy files: text to a validated, compiled set, and decisions on effects. Pure: no disk, no clock.
//!
//! ```text
//! PolicySource --load--> PolicySet --bind(Places)--> BoundPolicy --judge(Query)--> Judgement
//!                                                               \--cell()--> CellPlan
//! ```
//!
//! `file` knows how policies are written, `rules` what patterns match, `unit` puts the rules of one
//! file and of what it extends together. Nothing here knows stages, sandboxes or tools.

mod authoring;
mod bound;
mod cell;
mod difference;
mod examples;
pub mod file;
mod grants;
mod hook_programs;
mod in_force;
mod judge;
mod judgement;
mod load;
mod masks;
mod paths;
pub mod rules;
mod settings;
mod shape;
mod unit;
mod validate;

pub use authoring::{
    Observed, ObservedProgram, Resolved, cases, format, learn, lint, resolved, resolved_text,
    rules_of,
};
pub use bound::{BindError, BoundPolicy, RoleVerdict};
pub use cell::{CellPlan, MaskPlanKind, PlannedGrant, PlannedMask, PlannedPattern};
pub use difference::differences;
pub use file::diagnostic::{Diagnostic, Diagnostics};
pub use file::schema::{
    CellLayer, Decision, Degraded, HookEvent, IdentitySetting, NetworkMode, Remember,
};
pub use file::source::{
    BUILT_IN_NAMES, Layer, PolicySource, SourceFile, built_in, built_in_source,
};
pub use judge::Query;
pub use judgement::{Code, Finding, Judgement, SubjectKind};
pub use load::{PolicySet, Resolve, load};
pub use rules::RuleMeta;
pub use rules::globs::Places;
pub use rules::hosts::HostMatcher;
pub use settings::{
    AuditSettings, EnvironmentRules, GuardianSettings, Limits, PermissionSettings, is_code_variable,
};
pub use unit::Hook;

/// The JSON Schema of a policy file, from the same types that read it.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(file::schema::Document).to_value()
}

#[cfg(test)]
mod tests;
