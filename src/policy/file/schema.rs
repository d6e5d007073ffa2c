//! The policy language as types: every section and key, as written. The JSON Schema comes from these
//! types, and `docs/policy-reference.md` is checked against them. Nothing here is validated beyond
//! its shape; `check` does that.

use super::located::{Located, TokenText, Words};
use crate::call::effects::{Access, UnresolvedReason};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
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

/// `[command]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CommandSection {
    /// Answer for a command that no rule names.
    pub default: Option<Located<Decision>>,
    /// Answer for a part of a script whose effect cannot be told. Default ask.
    pub unresolved: Option<Located<UnresolvedSetting>>,
    /// Answer for a variable in front of a command that is neither known to be harmless nor named
    /// by a rule. Default: `default`.
    pub assignment_default: Option<Located<Decision>>,
    /// Rules for commands.
    pub rule: Vec<CommandRule>,
    /// Rules for variables in front of commands.
    pub assignment: Vec<AssignmentRule>,
}

/// One answer for everything unresolved, or one for each reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnresolvedSetting {
    /// For the reasons that are not listed.
    pub default: Option<Decision>,
    /// By reason.
    pub by_reason: BTreeMap<UnresolvedReason, Decision>,
}

/// Every reason with its stable spelling.
pub const UNRESOLVED_REASONS: [(&str, UnresolvedReason); 11] = [
    ("syntax", UnresolvedReason::Syntax),
    ("too-large", UnresolvedReason::TooLarge),
    ("program-word", UnresolvedReason::ProgramWord),
    ("code-word", UnresolvedReason::CodeWord),
    ("redirection-target", UnresolvedReason::RedirectionTarget),
    ("path-word", UnresolvedReason::PathWord),
    ("shell-state", UnresolvedReason::ShellState),
    ("wrapper", UnresolvedReason::Wrapper),
    ("foreign-code", UnresolvedReason::ForeignCode),
    ("inserted-word", UnresolvedReason::InsertedWord),
    ("refused", UnresolvedReason::Refused),
];

/// The stable spelling of a reason.
#[must_use]
pub fn unresolved_name(reason: UnresolvedReason) -> &'static str {
    UNRESOLVED_REASONS
        .iter()
        .find(|(_, known)| *known == reason)
        .map_or("unresolved", |(name, _)| name)
}

struct UnresolvedVisitor;

impl<'de> Visitor<'de> for UnresolvedVisitor {
    type Value = UnresolvedSetting;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a decision, or a table from reason to decision")
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<UnresolvedSetting, E> {
        let deserializer = de::value::StrDeserializer::<E>::new(value);
        let default = Some(Decision::deserialize(deserializer)?);
        Ok(UnresolvedSetting { default, by_reason: BTreeMap::new() })
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UnresolvedSetting, A::Error> {
        const KEYS: &[&str] = &[
            "default",
            "syntax",
            "too-large",
            "program-word",
            "code-word",
            "redirection-target",
            "path-word",
            "shell-state",
            "wrapper",
            "foreign-code",
            "inserted-word",
            "refused",
        ];
        let mut setting = UnresolvedSetting::default();
        while let Some((key, decision)) = map.next_entry::<String, Decision>()? {
            if key == "default" {
                setting.default = Some(decision);
                continue;
            }
            let known = UNRESOLVED_REASONS.iter().find(|(name, _)| *name == key);
            let (_, reason) = known.ok_or_else(|| de::Error::unknown_field(&key, KEYS))?;
            setting.by_reason.insert(*reason, decision);
        }
        Ok(setting)
    }
}

impl<'de> Deserialize<'de> for UnresolvedSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UnresolvedVisitor)
    }
}

impl JsonSchema for UnresolvedSetting {
    fn schema_name() -> Cow<'static, str> {
        "Unresolved".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let decision = generator.subschema_for::<Decision>();
        let mut properties = serde_json::Map::new();
        properties.insert("default".into(), decision.clone().to_value());
        for (name, _) in UNRESOLVED_REASONS {
            properties.insert(name.into(), decision.clone().to_value());
        }
        let table = serde_json::json!({
            "type": "object", "additionalProperties": false, "properties": properties
        });
        Schema::try_from(serde_json::json!({"anyOf": [decision.to_value(), table]}))
            .unwrap_or_default()
    }
}

/// `[[command.rule]]`
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandRule {
    /// Name of the rule, unique in the policy.
    pub id: Located<String>,
    /// The answer.
    pub decision: Located<Decision>,
    /// Why, in a sentence.
    pub reason: Located<String>,
    /// The program: a name, an absolute path, or `*`; a list is alternatives.
    pub program: Located<Words>,
    /// The arguments, in order. Unset: any.
    #[serde(default)]
    pub tokens: Option<Vec<Located<TokenText>>>,
    /// Options that must all be present, anywhere and in any order; an inner list is alternatives.
    #[serde(default)]
    pub flags: Vec<Located<Words>>,
    /// Whether the rule also covers code that is handed to the program in an argument.
    #[serde(default)]
    pub code: bool,
    /// Commands that the rule must match.
    #[serde(default, rename = "match")]
    pub matches: Vec<Located<String>>,
    /// Commands that the rule must not match.
    #[serde(default)]
    pub not_match: Vec<Located<String>>,
}

/// `[[command.assignment]]`
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignmentRule {
    /// Name of the rule, unique in the policy.
    pub id: Located<String>,
    /// The answer.
    pub decision: Located<Decision>,
    /// Why, in a sentence.
    pub reason: Located<String>,
    /// The variables; a `*` at the end means any rest.
    pub name: Located<Words>,
    /// Values for which the rule holds, as regular expression over the whole value. Unset: any.
    #[serde(default)]
    pub value: Option<Located<String>>,
    /// Assignments (`NAME=value`) that the rule must match.
    #[serde(default, rename = "match")]
    pub matches: Vec<Located<String>>,
    /// Assignments that the rule must not match.
    #[serde(default)]
    pub not_match: Vec<Located<String>>,
}

/// `[tool]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSection {
    /// Answer for a tool that no rule names. Unset: no opinion; what the tool does is judged.
    pub default: Option<Located<Decision>>,
    /// Rules.
    pub rule: Vec<ToolRule>,
}

/// `[[tool.rule]]`
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// Name of the rule, unique in the policy.
    pub id: Located<String>,
    /// The answer.
    pub decision: Located<Decision>,
    /// Why, in a sentence.
    pub reason: Located<String>,
    /// The tools, by exact name; a `*` at the end means any rest (`mcp__github__*`).
    pub tool: Located<Words>,
    /// What the arguments must be, all of it.
    #[serde(default)]
    pub arguments: Vec<ArgumentRule>,
    /// Calls (`name {json}`) that the rule must match.
    #[serde(default, rename = "match")]
    pub matches: Vec<Located<String>>,
    /// Calls that the rule must not match.
    #[serde(default)]
    pub not_match: Vec<Located<String>>,
}

/// One condition on the arguments of a tool.
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentRule {
    /// The argument: a name, or a JSON pointer (`/list/0/name`).
    pub key: Located<String>,
    /// It has exactly this value.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Value>")]
    pub equals: Option<toml::Value>,
    /// It is a string that this regular expression matches somewhere.
    #[serde(default)]
    pub regex: Option<Located<String>>,
    /// It is present (true) or absent (false).
    #[serde(default)]
    pub present: Option<bool>,
}

/// `[network]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSection {
    /// What the cell has. Unset: off.
    pub mode: Option<Located<NetworkMode>>,
    /// Answer for a host that is named and that no rule names.
    pub default: Option<Located<Decision>>,
    /// Rules.
    pub rule: Vec<NetworkRule>,
}

/// What network the cell has. Later is wider.
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
pub enum NetworkMode {
    /// None.
    #[default]
    Off,
    /// A proxy that decides on each host.
    Proxy,
    /// The host's network, unfiltered.
    Host,
}

/// `[[network.rule]]`
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkRule {
    /// Name of the rule, unique in the policy.
    pub id: Located<String>,
    /// The answer.
    pub decision: Located<Decision>,
    /// Why, in a sentence.
    pub reason: Located<String>,
    /// The hosts: a name, `*.name` for every name below it, an address, or `*`.
    pub host: Located<Words>,
    /// The ports. Unset: any.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// HTTP methods that the proxy lets through. Unset: any.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Hosts (`name` or `name:port`) that the rule must match.
    #[serde(default, rename = "match")]
    pub matches: Vec<Located<String>>,
    /// Hosts that the rule must not match.
    #[serde(default)]
    pub not_match: Vec<Located<String>>,
}

/// `[roles]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(default)]
pub struct RolesSection {
    /// The role of a run that names none.
    pub default: Option<Located<String>>,
    /// The roles by name.
    #[serde(flatten)]
    pub roles: BTreeMap<String, RoleSection>,
}

/// `[roles.NAME]`
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleSection {
    /// The tools of the role, by exact name or with a `*` at the end. Empty: none at all.
    pub tools: Vec<Located<String>>,
    /// Why, in a sentence.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `[hooks]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HooksSection {
    /// Hooks.
    pub rule: Vec<HookRule>,
}

/// `[[hooks.rule]]`
#[derive(Debug, Clone, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookRule {
    /// Name of the hook, unique in the policy.
    pub id: Located<String>,
    /// Why, in a sentence.
    pub reason: Located<String>,
    /// When it runs.
    pub event: HookEvent,
    /// The tools, by exact name, or `*`. A list is alternatives.
    pub tools: Located<Words>,
    /// The program and its arguments.
    pub argv: Vec<Located<String>>,
    /// Time to answer, in milliseconds. Default 30,000.
    #[serde(default)]
    pub timeout_ms: Option<Located<u64>>,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    /// Before the call; its deny is final, and so is its failure.
    PreTool,
    /// After the call; it is told and cannot change anything.
    PostTool,
}

/// `[guardian]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GuardianSection {
    /// Whether a reviewing model is asked. Default false.
    pub enabled: Option<bool>,
    /// The model, `provider/name`. Default: the run's.
    pub model: Option<String>,
    /// Time to answer, in milliseconds. Default 15,000.
    pub timeout_ms: Option<Located<u64>>,
    /// Tools that are reviewed. Unset: all that change something.
    pub tools: Option<Vec<Located<String>>>,
}

/// `[permission]`
#[derive(Debug, Clone, Default, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionSection {
    /// Tools of which every call is asked about, whatever the rules say.
    pub ask: Vec<Located<String>>,
    /// How long an answer may be remembered. Default session.
    pub remember: Option<Located<Remember>>,
    /// Time a person has to answer, in milliseconds. Default 300,000.
    pub timeout_ms: Option<Located<u64>>,
}

/// How long an answer may be remembered. Later is longer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, DeriveDeserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Remember {
    /// Not at all.
    Never,
    /// Until the session ends.
    Session,
    /// Until it is revoked.
    Always,
}

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
    /// Wall time of one tool call, in milliseconds.
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
    /// Model calls in one run.
    pub iterations: Option<Located<u64>>,
    /// Tool calls in one run.
    pub tool_calls: Option<Located<u64>>,
    /// Tokens, input and output, in one run.
    pub tokens: Option<Located<u64>>,
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
