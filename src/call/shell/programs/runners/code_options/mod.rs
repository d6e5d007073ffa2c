//! Programs with options whose values are code, one file a purpose. Data only.

mod files;
mod languages;
mod network;
mod packages;
mod searches;

use super::Runner;

/// Every row.
pub(super) fn all() -> impl Iterator<Item = &'static Runner> {
    [files::FILES, languages::LANGUAGES, network::NETWORK, packages::PACKAGES, searches::SEARCHES]
        .into_iter()
        .flatten()
}
