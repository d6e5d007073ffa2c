//! `[command]`: rules over commands and variables, and what an unresolved part gets.

use super::super::located::{Located, TokenText, Words};
use super::Decision;
use crate::call::effects::UnresolvedReason;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize as DeriveDeserialize;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

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
    /// Arguments, in order, with which the rule does not mean the command; each list names every one of
    /// them, as an allow does. For ask and deny.
    #[serde(default)]
    pub except: Vec<Located<Vec<Located<TokenText>>>>,
    /// Whether the rule means only commands that may reach another machine: not a `curl` whose addresses
    /// are all of this one.
    #[serde(default)]
    pub remote: bool,
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
    /// Values for which it does not hold, as regular expression over the whole value; of a value that is
    /// not known, over what is written, without the quotes around it.
    #[serde(default)]
    pub except: Option<Located<String>>,
    /// Assignments (`NAME=value`) that the rule must match.
    #[serde(default, rename = "match")]
    pub matches: Vec<Located<String>>,
    /// Assignments that the rule must not match.
    #[serde(default)]
    pub not_match: Vec<Located<String>>,
}
