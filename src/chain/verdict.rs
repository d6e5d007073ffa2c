//! What a stage may say. There is no "allow": a stage passes, requires something more, or denies, so
//! no stage can give back what another took. Stages and reasons are those of the decision record.

use crate::audit::record::{Reason, Stage, StageRecord, StageVerdict, Stages};
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use std::time::Duration;

/// What one stage says about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nothing against it; the reasons name rules that allowed, if any did.
    Pass(Vec<Reason>),
    /// Only if a person agrees; each reason is shown to that person.
    Require(Vec<Reason>),
    /// No; the decisive reason first.
    Deny(Vec<Reason>),
    /// The stage had nothing to do, and why.
    Skipped(&'static str),
}

impl Verdict {
    /// A denial for one reason.
    #[must_use]
    pub fn deny(reason: Reason) -> Self {
        Self::Deny(vec![reason])
    }

    fn into_record(self, took: Duration) -> StageRecord {
        let (verdict, reasons) = match self {
            Self::Pass(reasons) => (StageVerdict::Pass, reasons),
            Self::Require(reasons) => (StageVerdict::Require, reasons),
            Self::Deny(reasons) => (StageVerdict::Deny, reasons),
            Self::Skipped(why) => (StageVerdict::Skipped, vec![reason("skipped", why)]),
        };
        let duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        StageRecord { verdict, reasons, duration_us }
    }
}

/// A reason that no rule stands behind.
#[must_use]
pub fn reason(code: &str, sentence: impl Into<String>) -> Reason {
    Reason {
        code: Untrusted::new(code),
        rule: None,
        file: None,
        line: None,
        sentence: Untrusted::new(sentence),
        subject: None,
        would_allow: None,
    }
}

/// The verdicts so far; stages after a denial stay "not reached".
#[derive(Debug)]
pub struct Trail {
    stages: Stages,
    denied: bool,
    required: Vec<Reason>,
}

impl Default for Trail {
    fn default() -> Self {
        let none = StageRecord::not_reached;
        let stages = Stages {
            abort: none(),
            role: none(),
            hooks: none(),
            firewall: none(),
            guardian: none(),
            permission: none(),
        };
        Self { stages, denied: false, required: Vec::new() }
    }
}

impl Trail {
    /// Takes a stage's verdict.
    pub fn put(&mut self, stage: Stage, verdict: Verdict, took: Duration) {
        match &verdict {
            Verdict::Deny(_) => self.denied = true,
            Verdict::Require(reasons) => self.required.extend(reasons.iter().cloned()),
            Verdict::Pass(_) | Verdict::Skipped(_) => {}
        }
        let record = verdict.into_record(took);
        match stage {
            Stage::Abort => self.stages.abort = record,
            Stage::Role => self.stages.role = record,
            Stage::Hooks => self.stages.hooks = record,
            Stage::Firewall => self.stages.firewall = record,
            Stage::Guardian => self.stages.guardian = record,
            Stage::Permission => self.stages.permission = record,
        }
    }

    /// Whether a stage has denied, so that no further one is asked.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        self.denied
    }

    /// What a person must agree to.
    #[must_use]
    pub fn required(&self) -> &[Reason] {
        &self.required
    }

    /// The six entries of the record.
    #[must_use]
    pub fn into_stages(self) -> Stages {
        self.stages
    }
}

/// A refused call: an ordinary value, told to the model and listed in the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Denied {
    /// The call.
    pub call: Id,
    /// The tool.
    pub tool: String,
    /// The stage that said no.
    pub stage: Stage,
    /// Why.
    pub reason: Reason,
    /// What every stage said.
    pub stages: Stages,
    /// Place of the decision in the audit log.
    pub sequence: u64,
}

impl Denied {
    /// What the model gets back: short and stable, so that it changes course instead of trying again
    /// in other words. It names the rule and not the file, which is no business of the model.
    #[must_use]
    pub fn for_model(&self) -> String {
        let rule = self.reason.rule.as_ref().map_or(String::new(), |rule| format!(", rule {rule}"));
        let Reason { code, sentence, subject, would_allow, .. } = &self.reason;
        let stage = self.stage.as_str();
        let mut text = format!("denied by policy ({stage}{rule}, {code}): {sentence}");
        if let Some(subject) = subject {
            text.push_str(&format!("\nRefused: {subject}"));
        }
        if let Some(allowed) = would_allow {
            text.push_str(&format!("\nAllowed instead: {allowed}"));
        }
        text.push_str("\nThis is final: the same act in another spelling is refused as well.");
        text
    }
}

/// A reason for people: in words, with the stage, the rule and its place.
#[must_use]
pub fn for_person(stage: Stage, reason: &Reason) -> String {
    let mut text = format!("{} ({}", reason.sentence, stage.as_str());
    if let Some(rule) = &reason.rule {
        text.push_str(&format!(", rule {rule}"));
    }
    if let Some(place) = place(reason) {
        text.push_str(&format!(", {place}"));
    }
    text.push(')');
    text
}

/// `file:line` of the rule behind a reason.
#[must_use]
pub fn place(reason: &Reason) -> Option<String> {
    let file = reason.file.as_ref()?;
    Some(reason.line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_names_rule_reason_and_what_would_be_allowed() {
        let reason = Reason {
            rule: Some(Untrusted::new("base/ssh-keys")),
            file: Some(Untrusted::new("policies/base.toml")),
            line: Some(12),
            would_allow: Some(Untrusted::new("paths below the workspace")),
            ..reason("path-denied", "private keys stay with their owner")
        };
        let denied = Denied {
            call: Id::new(),
            tool: "read".to_owned(),
            stage: Stage::Firewall,
            reason: reason.clone(),
            stages: Trail::default().into_stages(),
            sequence: 1,
        };
        let model = denied.for_model();
        assert!(model.contains("rule base/ssh-keys") && model.contains("below the workspace"));
        assert!(!model.contains("base.toml"), "the file is for the user only");
        assert!(for_person(Stage::Firewall, &reason).contains("policies/base.toml:12"));
    }

    #[test]
    fn stages_behind_a_denial_are_not_reached() {
        let mut trail = Trail::default();
        trail.put(Stage::Abort, Verdict::Pass(Vec::new()), Duration::ZERO);
        trail.put(Stage::Role, Verdict::deny(reason("role-denied", "no")), Duration::ZERO);
        assert!(trail.is_denied());
        let stages = trail.into_stages();
        assert_eq!(stages.hooks.verdict, StageVerdict::NotReached);
        assert_eq!(stages.denial().map(|(stage, _)| stage), Some(Stage::Role));
    }
}
