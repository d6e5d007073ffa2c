//! `[path]`: files and directories.

use super::super::located::Located;
use super::Decision;
use crate::call::effects::Access;
use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};

/// `[path]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathSection {
    /// Answer for a path that no rule names. Unset: no opinion, which ends as deny.
    pub default: Option<Located<Decision>>,
    /// Whether the system's programs, libraries and public configuration may be read and run.
    /// Default true.
    pub system: Option<Located<bool>>,
    /// Paths that may be read: exact, or `directory/**`.
    pub read: Vec<Located<String>>,
    /// Paths that may be written.
    pub write: Vec<Located<String>>,
    /// Paths whose files may be run. Unset: whatever may be read.
    pub execute: Option<Vec<Located<String>>>,
    /// Caches and tool chains of the home directory that may be read and run.
    pub caches: Vec<Located<CacheName>>,
    /// Caches that may also be written. What one session writes there, another one reads.
    pub caches_write: Vec<Located<CacheName>>,
    /// Rules.
    pub rule: Vec<PathRule>,
}

/// A well-known directory below the home directory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, DeriveDeserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CacheName {
    /// `.cargo/registry`, `.cargo/git`, `.cargo/bin`
    Cargo,
    /// `.rustup`
    Rustup,
    /// `.npm`, `.cache/node`
    Npm,
    /// `.nvm`, `.volta`
    Nvm,
    /// `.cache/yarn`, `.yarn`
    Yarn,
    /// `.local/share/pnpm`, `.cache/pnpm`
    Pnpm,
    /// `.cache/pip`
    Pip,
    /// `.cache/uv`, `.local/share/uv`
    Uv,
    /// `.pyenv`
    Pyenv,
    /// `go`, `.cache/go-build`
    Go,
    /// `.m2/repository`
    Maven,
    /// `.gradle/caches`, `.gradle/wrapper`
    Gradle,
}

/// `[[path.rule]]`
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathRule {
    /// Name of the rule, unique in the policy.
    pub id: Located<String>,
    /// The answer.
    pub decision: Located<Decision>,
    /// Why, in a sentence.
    pub reason: Located<String>,
    /// What is done to the path. Default: everything.
    #[serde(default)]
    #[schemars(with = "Vec<AccessName>")]
    pub access: Vec<AccessName>,
    /// The paths: globs over absolute paths.
    pub paths: Vec<Located<String>>,
    /// Paths that the rule does not mean.
    #[serde(default)]
    pub except: Vec<Located<String>>,
    /// Paths that the rule must match.
    #[serde(default, rename = "match")]
    pub matches: Vec<Located<String>>,
    /// Paths that the rule must not match.
    #[serde(default)]
    pub not_match: Vec<Located<String>>,
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessName {
    /// Content or names are read.
    Read,
    /// Anything about it is changed.
    Write,
    /// It is run.
    Execute,
}

impl AccessName {
    /// The access in effects.
    #[must_use]
    pub const fn access(self) -> Access {
        match self {
            Self::Read => Access::Read,
            Self::Write => Access::Write,
            Self::Execute => Access::Execute,
        }
    }
}
