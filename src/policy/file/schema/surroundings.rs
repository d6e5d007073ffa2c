//! `[env]`, `[limits]`, `[sandbox]` and `[audit]`: what a call runs in, and what is kept of it.

use super::super::located::Located;
use crate::base::dollars::Dollars;
use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};
use std::collections::BTreeMap;

/// `[env]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EnvSection {
    /// Variables that are passed on from the caller; a `*` at the end means any rest.
    pub pass: Option<Vec<Located<String>>>,
    /// Variables that are set.
    pub set: BTreeMap<String, Located<String>>,
}

/// `[limits]`: across files and layers the smallest wins, except that a file may raise what the
/// files it extends set.
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Wall time of one tool call, in milliseconds; of a background job, too.
    pub wall_ms: Option<Located<u64>>,
    /// Time between the request to end and the kill, in milliseconds.
    pub kill_grace_ms: Option<Located<u64>>,
    /// Processor time of one tool call, in seconds.
    pub cpu_seconds: Option<Located<u64>>,
    /// Memory of one tool call, in bytes.
    pub memory_bytes: Option<Located<u64>>,
    /// Processes and threads of one tool call.
    pub processes: Option<Located<u64>>,
    /// Largest file that may be written, in bytes.
    pub file_size_bytes: Option<Located<u64>>,
    /// Open files of one process.
    pub open_files: Option<Located<u64>>,
    /// Bytes on disk in the session's private temporary directory.
    pub tmp_bytes: Option<Located<u64>>,
    /// Bytes of a result that reach the model.
    pub output_bytes: Option<Located<u64>>,
    /// Bytes of a whole output that are kept on disk.
    pub spill_bytes: Option<Located<u64>>,
    /// Background jobs at the same time; 0: none may be started.
    pub jobs: Option<Located<u64>>,
    /// Model calls in one run.
    pub iterations: Option<Located<u64>>,
    /// Tool calls in one run.
    pub tool_calls: Option<Located<u64>>,
    /// Tokens, input and output, in one run.
    pub tokens: Option<Located<u64>>,
    /// What the model calls of one run may cost, in dollars by the provider table's prices.
    pub cost_dollars: Option<Located<Dollars>>,
    /// Wall time of one run, in seconds.
    pub run_seconds: Option<Located<u64>>,
    /// Depth of agents that start agents.
    pub agent_depth: Option<Located<u64>>,
    /// Agents that work at the same time.
    pub agents: Option<Located<u64>>,
}

/// `[sandbox]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSection {
    /// Layers without which a run does not start.
    pub require: Vec<Located<CellLayer>>,
    /// What to do where denies inside allowed trees cannot be enforced. Default refuse.
    pub degraded: Option<Located<Degraded>>,
    /// As whom tools run when the caller is root. Default: the workspace's owner.
    pub identity: Option<Located<IdentitySetting>>,
}

/// A layer of the cell.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, DeriveDeserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum CellLayer {
    /// The mount view, which holds denies inside allowed trees.
    MountView,
    /// Landlock.
    Landlock,
    /// The system call filter.
    Seccomp,
    /// An own network namespace.
    NetworkNamespace,
    /// An own process namespace.
    PidNamespace,
    /// Limits over the whole tree of processes.
    Cgroup,
}

/// What to do where the mount view cannot be had.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    DeriveDeserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Degraded {
    /// Do not start.
    #[default]
    Refuse,
    /// Start, and write down which guarantee is lost.
    Allow,
}

/// As whom tools run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdentitySetting {
    /// As the caller; root loses every capability.
    Caller,
    /// As the owner of the workspace.
    WorkspaceOwner,
    /// As this user.
    User {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
    },
}

/// `[audit]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSection {
    /// Regular expressions whose matches are replaced before anything is written.
    pub redact: Vec<Located<String>>,
    /// Whether checkpoints are signed. Nothing signs them yet, so true is an error.
    pub sign: Option<Located<bool>>,
    /// Records between two checkpoints. Default 50.
    pub checkpoint_every: Option<Located<u64>>,
}
