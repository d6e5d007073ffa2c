//! The table of programs whose operands are a command, one file a purpose. Data only.

mod identity;
mod projects;
mod services;
mod surroundings;
mod tracers;

use super::Runner;

/// Every row.
pub(super) fn all() -> impl Iterator<Item = &'static Runner> {
    [
        surroundings::SURROUNDINGS,
        identity::IDENTITY,
        tracers::TRACERS,
        projects::PROJECTS,
        services::SERVICES,
    ]
    .into_iter()
    .flatten()
}
