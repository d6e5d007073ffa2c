//! A policy file as text, where it came from, and the policies that are built into the program.

use super::diagnostic::{Collector, Diagnostics};
use crate::base::digest::Digest;
use serde::Serialize;
use std::sync::Arc;

/// Whose file it is. Earlier layers are more trusted; the strictest answer of all layers wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The machine's administrator.
    Administrator,
    /// The user.
    User,
    /// Named on the command line.
    Explicit,
    /// The workspace: may only ask and deny.
    Workspace,
    /// Part of the program.
    BuiltIn,
}

impl Layer {
    /// Every layer, the most trusted first.
    pub const ALL: [Self; 5] =
        [Self::BuiltIn, Self::Administrator, Self::User, Self::Explicit, Self::Workspace];

    /// The word in records and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Administrator => "administrator",
            Self::User => "user",
            Self::Explicit => "explicit",
            Self::Workspace => "workspace",
            Self::BuiltIn => "built-in",
        }
    }
}

/// A policy file that was read by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySource {
    /// Its path or built-in name, as shown.
    pub name: String,
    /// Whose it is.
    pub layer: Layer,
    /// Its text.
    pub text: String,
}

impl PolicySource {
    /// A file as it was read from disk. A byte order mark at its front is left out.
    ///
    /// # Errors
    /// The place of the first byte that is not UTF-8.
    pub fn from_bytes(name: &str, layer: Layer, bytes: &[u8]) -> Result<Self, Diagnostics> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let name = name.to_owned();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, layer, text: text.to_owned() }),
            Err(error) => {
                let at = error.valid_up_to();
                let text = String::from_utf8_lossy(bytes).into_owned();
                let file = Arc::new(SourceFile::new(Self { name, layer, text }));
                let mut collector = Collector::default();
                let what = ("invalid-utf8", "the file is not UTF-8".to_owned());
                collector.error(&file, &(at..at + 3), what, None);
                Err(Diagnostics(collector.found))
            }
        }
    }
}

/// A file of a loaded set.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path or built-in name, as shown.
    pub name: String,
    /// Whose it is.
    pub layer: Layer,
    /// Its text.
    pub text: String,
    /// Digest of the text.
    pub digest: Digest,
    line_starts: Vec<usize>,
}

impl SourceFile {
    /// Takes over what the caller read.
    #[must_use]
    pub fn new(source: PolicySource) -> Self {
        let digest = Digest::of(source.text.as_bytes());
        let ends = source.text.match_indices('\n');
        let line_starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { name: source.name, layer: source.layer, text: source.text, digest, line_starts }
    }

    /// Line and column of a byte, both counted from 1; the column in characters.
    #[must_use]
    pub fn place(&self, byte: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= byte).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..byte).unwrap_or("");
        (line, before.chars().count() + 1)
    }
}

/// The names of the policies that are part of the program.
pub const BUILT_IN_NAMES: [&str; 5] = ["base", "readonly", "workspace", "ci", "untrusted"];

/// The text of a built-in policy.
#[must_use]
pub fn built_in(name: &str) -> Option<&'static str> {
    match name {
        "base" => Some(include_str!("../../../policies/base.toml")),
        "readonly" => Some(include_str!("../../../policies/readonly.toml")),
        "workspace" => Some(include_str!("../../../policies/workspace.toml")),
        "ci" => Some(include_str!("../../../policies/ci.toml")),
        "untrusted" => Some(include_str!("../../../policies/untrusted.toml")),
        _ => None,
    }
}

/// A built-in policy as a source.
#[must_use]
pub fn built_in_source(name: &str) -> Option<PolicySource> {
    let text = built_in(name)?.to_owned();
    Some(PolicySource { name: format!("policies/{name}.toml"), layer: Layer::BuiltIn, text })
}
