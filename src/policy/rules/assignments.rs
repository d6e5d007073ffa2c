//! Variables in front of commands: which are harmless, and rules for the others.

use super::{LazyRegex, NamePattern, RuleMeta};
use crate::call::effects::Assignment;
use std::sync::Arc;

/// Variables that change how a program prints, logs or counts, and never what it runs.
pub const HARMLESS_NAMES: [&str; 46] = [
    "ASAN_OPTIONS",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TERM_COLOR",
    "CFLAGS",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "CXXFLAGS",
    "DEBUG",
    "DEBIAN_FRONTEND",
    "DO_NOT_TRACK",
    "FORCE_COLOR",
    "GOFLAGS",
    "GOARCH",
    "GOOS",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LINES",
    "LOG_LEVEL",
    "MAKEFLAGS",
    "NEXTEST_*",
    "NODE_ENV",
    "NO_COLOR",
    "NPM_CONFIG_LOGLEVEL",
    "OMP_NUM_THREADS",
    "PIP_NO_INDEX",
    "PROPTEST_CASES",
    "PYTEST_ADDOPTS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "RAYON_NUM_THREADS",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TMPDIR",
    "TZ",
    "VERBOSE",
];

/// Whether a variable is harmless whatever its value.
#[must_use]
pub fn is_harmless(name: &str) -> bool {
    HARMLESS_NAMES.iter().any(|known| match known.strip_suffix('*') {
        None => *known == name,
        Some(prefix) => name.starts_with(prefix),
    })
}

/// A compiled rule over assignments.
#[derive(Debug)]
pub struct AssignmentMatcher {
    /// Who says it.
    pub meta: Arc<RuleMeta>,
    /// The variables.
    pub names: Vec<NamePattern>,
    /// The values; `None`: any.
    pub value: Option<LazyRegex>,
    /// Values that are not meant; of one that is not known, the way it is written.
    pub except: Option<LazyRegex>,
}

impl AssignmentMatcher {
    /// Whether the rule means this assignment. A value that is not known may be any.
    #[must_use]
    pub fn fits(&self, assignment: &Assignment) -> bool {
        let loose = self.meta.decision > crate::policy::file::schema::Decision::Allow;
        let text = assignment.value.shown();
        let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        self.names.iter().any(|name| name.fits(&assignment.name))
            && !self.except.as_ref().is_some_and(|regex| regex.is_match(bare, false))
            && self.value.as_ref().is_none_or(|regex| {
                assignment.value.known().map_or(loose, |v| regex.is_match(v, loose))
            })
    }
}
