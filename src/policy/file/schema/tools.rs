//! `[tool]` and `[network]`: tools by name and arguments, hosts.

use super::super::located::{Located, Words};
use super::Decision;
use schemars::JsonSchema;
use serde::{Deserialize as DeriveDeserialize, Serialize};

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
