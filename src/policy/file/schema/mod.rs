//! The policy language as types: every section and key, as written. The JSON Schema comes from these
//! types, and `docs/policy-reference.md` is checked against them. Nothing here is validated beyond
//! its shape; `check` does that.

mod commands;
mod paths;
mod people;
mod surroundings;
mod tools;

pub use commands::*;
pub use paths::*;
pub use people::*;
pub use surroundings::*;
pub use tools::*;

use super::located::Located;
use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};
use std::fmt;

/// What a rule answers. Later is stricter, and the strictest answer wins.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    DeriveDeserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// No question is asked. The cell is never widened by this.
    Allow,
    /// A person is asked; where nobody can be asked, it is a denial.
    Ask,
    /// Refused.
    Deny,
}

impl Decision {
    /// The word in files, records and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A whole policy file.
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Document {
    /// Version of the policy language; this program knows 1.
    pub version: Option<Located<u32>>,
    /// What the policy is for, in a sentence.
    pub description: Option<String>,
    /// Policies whose rules are added to this file's: built-in names or files.
    pub extends: Vec<Located<String>>,
    /// Files and directories.
    pub path: PathSection,
    /// Shell commands.
    pub command: CommandSection,
    /// Tools by name and arguments.
    pub tool: ToolSection,
    /// Hosts.
    pub network: NetworkSection,
    /// Which role may use which tools.
    pub roles: RolesSection,
    /// Programs that are asked before, or told after, a tool call.
    pub hooks: HooksSection,
    /// The reviewing model.
    pub guardian: GuardianSection,
    /// Questions to the user.
    pub permission: PermissionSection,
    /// The environment of tool processes.
    pub env: EnvSection,
    /// What a run and a tool call may use up.
    pub limits: LimitsSection,
    /// What the cell must guarantee.
    pub sandbox: SandboxSection,
    /// The audit log.
    pub audit: AuditSection,
}
