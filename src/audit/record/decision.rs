//! The `decision` record: one tool call, what it would do, and what each of the six stages said.
//!
//! It holds enough to decide the call again under another policy. A stage is a named field, so that
//! order and completeness are facts of the type.

use super::resolved::Resolved;
use crate::audit::redact::{Redact, Redaction};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the chain decided about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Our identifier of the call.
    pub call: Id,
    /// The provider's identifier, as given.
    pub provider_id: Untrusted,
    /// `main`, or the path of sub-agents that led to the call.
    pub origin: Untrusted,
    /// Role under which it was judged.
    pub role: Untrusted,
    /// The tool.
    pub tool: Untrusted,
    /// The arguments as a JSON object, after redaction.
    pub arguments: Value,
    /// Digest of the argument text exactly as the model sent it, before redaction.
    pub arguments_hash: Digest,
    /// Texts in this record that were redacted; set by the writer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u32,
    /// Texts in this record that were cut for length; set by the writer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u32,
    /// What the call would do.
    pub resolved: Resolved,
    /// Digest of the policy in force.
    pub policy: Digest,
    /// The sum of the stages.
    pub ruling: Ruling,
    /// What each stage said.
    pub stages: Stages,
    /// Digest of the cell in which the call would run, if it got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Digest>,
    /// Guarantees that cells of this run do not give, by their stable ids; empty = all are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// Every stage passed, or what it required was met.
    Approved,
    /// A stage denied.
    Denied,
}

/// The six stages, in the order in which they are asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Is the run being stopped?
    pub abort: StageRecord,
    /// May the role use the tool?
    pub role: StageRecord,
    /// What do the pre-tool hooks say?
    pub hooks: StageRecord,
    /// What do the rules say?
    pub firewall: StageRecord,
    /// What does the reviewing model say?
    pub guardian: StageRecord,
    /// What does the person say?
    pub permission: StageRecord,
}

impl Stages {
    /// The stages with their names, in order.
    #[must_use]
    pub const fn in_order(&self) -> [(Stage, &StageRecord); 6] {
        [
            (Stage::Abort, &self.abort),
            (Stage::Role, &self.role),
            (Stage::Hooks, &self.hooks),
            (Stage::Firewall, &self.firewall),
            (Stage::Guardian, &self.guardian),
            (Stage::Permission, &self.permission),
        ]
    }

    /// The sum: one denial denies, and nothing gives back what a stage took.
    #[must_use]
    pub fn ruling(&self) -> Ruling {
        self.denial().map_or(Ruling::Approved, |_| Ruling::Denied)
    }

    /// The stage that denied.
    #[must_use]
    pub fn denial(&self) -> Option<(Stage, &StageRecord)> {
        self.in_order().into_iter().find(|(_, record)| record.verdict == StageVerdict::Deny)
    }
}

/// A stage of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Abort check.
    Abort,
    /// Role gate.
    Role,
    /// Pre-tool hooks.
    Hooks,
    /// Firewall.
    Firewall,
    /// Guardian.
    Guardian,
    /// Permission.
    Permission,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 6] =
        [Self::Abort, Self::Role, Self::Hooks, Self::Firewall, Self::Guardian, Self::Permission];

    /// The name in records and on the screen.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Role => "role",
            Self::Hooks => "hooks",
            Self::Firewall => "firewall",
            Self::Guardian => "guardian",
            Self::Permission => "permission",
        }
    }
}

/// What one stage said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Its verdict.
    pub verdict: StageVerdict,
    /// Why, the decisive reason first. A pass may name the rules that allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Time the stage took, in microseconds.
    #[serde(default)]
    pub duration_us: u64,
}

impl StageRecord {
    /// A stage that was not asked, since an earlier one denied.
    #[must_use]
    pub const fn not_reached() -> Self {
        Self { verdict: StageVerdict::NotReached, reasons: Vec::new(), duration_us: 0 }
    }
}

/// A stage can only subtract: there is no word for "allow".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageVerdict {
    /// No objection.
    Pass,
    /// No objection if a later stage gives what is asked for.
    Require,
    /// No.
    Deny,
    /// Not configured, or nothing for it to do.
    Skipped,
    /// An earlier stage denied.
    NotReached,
}

impl StageVerdict {
    /// The spelling in records and on the screen.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Require => "require",
            Self::Deny => "deny",
            Self::Skipped => "skipped",
            Self::NotReached => "not-reached",
        }
    }
}

/// Why a stage said what it said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// Stable code, in kebab case.
    pub code: Untrusted,
    /// Identifier of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Untrusted>,
    /// Policy file that holds the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<Untrusted>,
    /// Line of the rule in that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The reason in words.
    pub sentence: Untrusted,
    /// The command or path that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Untrusted>,
    /// What would be allowed instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_allow: Option<Untrusted>,
}

impl Redact for Decision {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.provider_id.redact(redaction);
        self.origin.redact(redaction);
        self.role.redact(redaction);
        self.tool.redact(redaction);
        self.arguments.redact(redaction);
        self.resolved.redact(redaction);
        let Stages { abort, role, hooks, firewall, guardian, permission } = &mut self.stages;
        for stage in [abort, role, hooks, firewall, guardian, permission] {
            stage.reasons.redact(redaction);
        }
        self.redacted = redaction.redacted();
        self.cut = redaction.cut();
    }
}

impl Redact for Reason {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        let Self { code, rule, file, line: _, sentence, subject, would_allow } = self;
        code.redact(redaction);
        rule.redact(redaction);
        file.redact(redaction);
        sentence.redact(redaction);
        subject.redact(redaction);
        would_allow.redact(redaction);
    }
}
