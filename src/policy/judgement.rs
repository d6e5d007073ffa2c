//! What the policy answered about one call, and the one set of words for it: a denial, `policy
//! explain` and `audit show` all speak through here.

use super::file::schema::Decision;
use super::rules::RuleMeta;
use crate::base::text::{escape, prefix};
use serde::Serialize;
use serde::ser::SerializeStruct;
use std::fmt::Write as _;
use std::sync::Arc;

/// Bytes of a subject that are shown.
const SHOWN_BYTES_MAX: usize = 200;
/// Findings that the model is told: enough to act on, few enough to read.
const TOLD_MAX: usize = 3;

/// What was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKind {
    /// The role of the agent.
    Role,
    /// The tool.
    Tool,
    /// A command.
    Command,
    /// A variable in front of a command, or exported.
    Assignment,
    /// A path that is read.
    Read,
    /// A path that is written.
    Write,
    /// A path that is run.
    Execute,
    /// A host.
    Host,
    /// A part whose effect cannot be told.
    Unresolved,
}

impl SubjectKind {
    /// The word in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Tool => "tool",
            Self::Command => "command",
            Self::Assignment => "assignment",
            Self::Read => "read of",
            Self::Write => "write to",
            Self::Execute => "run of",
            Self::Host => "host",
            Self::Unresolved => "unresolved",
        }
    }

    /// What holds even if the text was read wrongly.
    #[must_use]
    pub const fn held_by(self) -> &'static str {
        match self {
            Self::Role | Self::Tool => "the chain: the call is not dispatched",
            Self::Command | Self::Assignment | Self::Unresolved => {
                "text rules only; what the command touches is held by the cell"
            }
            Self::Read | Self::Write | Self::Execute => "the cell's mount view and Landlock",
            Self::Host => "the cell's network namespace, or the proxy",
        }
    }
}

/// Why a finding came about. The kebab-case spelling is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A rule matched.
    RuleMatched,
    /// No rule matched and the default answered.
    DefaultAnswered,
    /// Nothing in the policy speaks of it.
    NoRule,
    /// An unknown word could make a deny or ask rule match.
    UnknownWord,
    /// The command carries code that the allow rule does not cover.
    InlineCode,
    /// The effect of a part cannot be told.
    Unresolved,
    /// The effect cannot be told, no rule refuses a program, and the cell alone holds.
    HeldByCell,
    /// The cell has no network.
    NetworkOff,
    /// The role may not use the tool.
    RoleWithoutTool,
    /// Every call of the tool is asked about.
    AlwaysAsked,
}

impl Code {
    /// The stable spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RuleMatched => "rule-matched",
            Self::DefaultAnswered => "default-answered",
            Self::NoRule => "no-rule",
            Self::UnknownWord => "unknown-word",
            Self::InlineCode => "inline-code",
            Self::Unresolved => "unresolved",
            Self::HeldByCell => "held-by-cell",
            Self::NetworkOff => "network-off",
            Self::RoleWithoutTool => "role-without-tool",
            Self::AlwaysAsked => "always-asked",
        }
    }
}

/// One thing that was judged, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The answer.
    pub decision: Decision,
    /// Why it came about.
    pub code: Code,
    /// The rule or setting that answered.
    pub rule: Arc<RuleMeta>,
    /// What kind of thing was judged.
    pub kind: SubjectKind,
    /// The thing, as it came: never print it unescaped.
    pub subject: Arc<str>,
    /// What would be allowed, if something can be said.
    pub would_allow: Option<String>,
}

impl Finding {
    /// The subject, escaped and cut.
    #[must_use]
    pub fn shown(&self) -> String {
        let cut = prefix(&self.subject, SHOWN_BYTES_MAX);
        let more = if cut.len() < self.subject.len() { "..." } else { "" };
        format!("{}{more}", escape(cut))
    }

    /// `file:line` of the rule; a name for what is part of the program.
    #[must_use]
    pub fn place(&self) -> String {
        match self.rule.file_name() {
            Some(file) => format!("{}:{}", escape(file), self.rule.line),
            None => "built in".to_owned(),
        }
    }

    /// For the model: short, stable, without places on this machine's disk.
    #[must_use]
    pub fn for_model(&self) -> String {
        let (kind, shown) = (self.kind.as_str(), self.shown());
        let mut text = format!("{kind} `{shown}`: {} [{}]", self.reason(), self.rule.id);
        if let Some(allowed) = &self.would_allow {
            write!(text, ". {allowed}").unwrap_or_default();
        }
        text
    }

    /// For a person: with file, line and the layer that holds it.
    #[must_use]
    pub fn for_user(&self) -> String {
        let (kind, shown) = (self.kind.as_str(), self.shown());
        let mut text = format!(
            "{} {kind} `{shown}`\n  rule    {} ({})\n  reason  {}\n  code    {}",
            self.decision,
            self.rule.id,
            self.place(),
            self.reason(),
            self.code.as_str()
        );
        if self.decision != Decision::Allow {
            write!(text, "\n  held by {}", self.kind.held_by()).unwrap_or_default();
        }
        if let Some(allowed) = &self.would_allow {
            write!(text, "\n  instead {allowed}").unwrap_or_default();
        }
        text
    }

    /// The rule's sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.rule.reason
    }
}

impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Finding", 10)?;
        fields.serialize_field("decision", &self.decision)?;
        fields.serialize_field("code", &self.code)?;
        fields.serialize_field("rule", &self.rule.id)?;
        fields.serialize_field("file", &self.rule.file_name())?;
        fields.serialize_field("line", &self.rule.file.is_some().then_some(self.rule.line))?;
        fields.serialize_field("reason", self.reason())?;
        fields.serialize_field("kind", &self.kind)?;
        fields.serialize_field("subject", &*self.subject)?;
        fields.serialize_field("held_by", self.kind.held_by())?;
        fields.serialize_field("would_allow", &self.would_allow)?;
        fields.end()
    }
}

/// The answer about one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The strictest of the findings.
    pub decision: Decision,
    /// What was judged and by which rules, strictest first; for each thing only those that decided.
    pub findings: Vec<Finding>,
    /// Whether nobody can be asked.
    pub headless: bool,
}

impl Judgement {
    /// The findings that made the decision.
    pub fn deciding(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.decision == self.decision)
    }

    /// For the model: what is refused, why, and what would be allowed.
    #[must_use]
    pub fn for_model(&self) -> String {
        let head = match self.decision {
            Decision::Allow => return "allowed by the policy".to_owned(),
            Decision::Ask if self.headless => {
                "denied by the policy (a question that nobody is there to answer)"
            }
            Decision::Ask => "the policy asks the user",
            Decision::Deny => "denied by the policy",
        };
        let mut text = head.to_owned();
        let count = self.deciding().count();
        for finding in self.deciding().take(TOLD_MAX) {
            write!(text, "\n- {}", finding.for_model()).unwrap_or_default();
        }
        if count > TOLD_MAX {
            write!(text, "\n- and {} more", count - TOLD_MAX).unwrap_or_default();
        }
        text.push_str("\nAnother spelling of the same act gets the same answer.");
        text
    }

    /// For a person: the decision and every finding, with file and line.
    #[must_use]
    pub fn for_user(&self) -> String {
        let mut text = format!("decision: {}", self.decision);
        if self.headless && self.decision == Decision::Ask {
            text.push_str(" (nobody can be asked: denied)");
        }
        for finding in &self.findings {
            write!(text, "\n\n{}", finding.for_user()).unwrap_or_default();
        }
        text
    }
}
