//! `[roles]`, `[hooks]`, `[guardian]` and `[permission]`: who may use what, and who is asked.

use super::super::located::{Located, Words};
use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// `[roles]`
#[derive(Debug, Clone, Default, JsonSchema)]
#[serde(default)]
pub struct RolesSection {
    /// The role of a run that names none.
    pub default: Option<Located<String>>,
    /// The roles by name.
    #[serde(flatten)]
    pub roles: BTreeMap<String, RoleSection>,
}

/// By hand, because serde loses the places of what it flattens.
impl<'de> Deserialize<'de> for RolesSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RolesVisitor)
    }
}

struct RolesVisitor;

impl<'de> Visitor<'de> for RolesVisitor {
    type Value = RolesSection;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of roles")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RolesSection, A::Error> {
        let mut section = RolesSection::default();
        while let Some(name) = map.next_key::<String>()? {
            if name == "default" {
                section.default = Some(map.next_value()?);
            } else {
                section.roles.insert(name, map.next_value()?);
            }
        }
        Ok(section)
    }
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
    /// The tools, by exact name, or `*`. A list is alternatives. Not for a session's events.
    #[serde(default)]
    pub tools: Option<Located<Words>>,
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
    /// Before the first model request of a run; its deny ends the run, and so does its failure.
    SessionStart,
    /// When a run is over; it is told and cannot change anything.
    SessionEnd,
}

impl HookEvent {
    /// The word in policies and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreTool => "pre-tool",
            Self::PostTool => "post-tool",
            Self::SessionStart => "session-start",
            Self::SessionEnd => "session-end",
        }
    }

    /// Whether it is about a call of a tool.
    #[must_use]
    pub const fn is_of_a_call(self) -> bool {
        match self {
            Self::PreTool | Self::PostTool => true,
            Self::SessionStart | Self::SessionEnd => false,
        }
    }
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
