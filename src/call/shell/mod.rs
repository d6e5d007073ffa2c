//! Analysis of bash scripts: what a script would run, write, read and reach, as far as its text tells.
//!
//! `syntax` reads the script, `meaning` expands and walks it, `programs` knows what well-known
//! programs do with their arguments. Pure: no disk, no clock, no process. Bounded: see
//! [`crate::base::limits`]. Fail closed: what is not understood becomes an
//! [`Unresolved`](crate::call::effects::Unresolved), never nothing.

mod meaning;
mod programs;
mod syntax;

use crate::base::limits::SHELL_BYTES_MAX;
use crate::call::effects::{Effects, Span, UnresolvedReason};
use meaning::state::{Directories, Value};
use meaning::walk::{Analysis, Input};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use syntax::Origin;

/// What is known about the shell that would run a script.
#[derive(Debug, Clone, Default)]
pub struct ShellContext {
    /// Directory it starts in, absolute.
    pub cwd: PathBuf,
    /// Value of `HOME`.
    pub home: Option<PathBuf>,
    /// Other variables of its environment whose values are known.
    pub variables: BTreeMap<String, String>,
    /// Which further variables its environment may hold.
    pub environment: EnvironmentNames,
    /// What it reads.
    pub input: StandardInput,
}

/// The variables that an environment may hold. A name that is not among them, and that nothing in the
/// script assigns, has no value: `${PYTHON:-python3}` is then `python3`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EnvironmentNames {
    /// Any.
    #[default]
    Any,
    /// No others than these; a `*` at the end means any rest.
    Only(Arc<[String]>),
}

impl EnvironmentNames {
    /// Whether a variable of this name may be there.
    #[must_use]
    pub fn may_hold(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(names) => names.iter().any(|known| match known.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => known == name,
            }),
        }
    }
}

/// What a command finds at its standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StandardInput {
    /// Nothing, as every tool call.
    #[default]
    Empty,
    /// Text that is not known before it runs: for an interpreter without a script, code.
    Stream,
}

/// Analyses a script for `bash -c`.
#[must_use]
pub fn analyse(script: &str, context: &ShellContext) -> Effects {
    let whole = Span { start: 0, end: script.len() };
    if script.len() > SHELL_BYTES_MAX {
        return Effects::opaque(UnresolvedReason::TooLarge, script, whole);
    }
    let mut inherited: BTreeMap<String, Value> = context
        .variables
        .iter()
        .map(|(name, value)| (name.clone(), Value::Known(value.clone())))
        .collect();
    if let Some(home) = context.home.as_deref().and_then(std::path::Path::to_str) {
        inherited.insert("HOME".to_owned(), Value::Known(home.to_owned()));
    }
    let mut analysis = Analysis::new(Directories::one(&context.cwd), inherited);
    analysis.shell.environment = context.environment.clone();
    if context.input == StandardInput::Stream {
        analysis.inherited = Input::Stream;
    }
    match analysis.script(script, Origin::Offset(0), true) {
        Ok(()) => analysis.finish(),
        Err(syntax::TooLarge) => Effects::opaque(UnresolvedReason::TooLarge, script, whole),
    }
}
