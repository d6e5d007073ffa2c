//! The fourth stage: what the policy's rules say about the paths, commands, hosts and tool of a call.
//! The evaluator is `policy`; `policy explain` calls the same function with the same value.

use crate::audit::record::Reason;
use crate::base::text::Untrusted;
use crate::chain::subject::{Setting, Subject};
use crate::chain::verdict::Verdict;
use crate::policy::{BoundPolicy, Decision, Finding, Judgement, Query, SubjectKind};
use std::path::PathBuf;

/// What the rules say about `subject`.
#[must_use]
pub fn judge(
    policy: &BoundPolicy,
    subject: &Subject,
    setting: &Setting,
    headless: bool,
) -> Judgement {
    let real_paths: Vec<(usize, PathBuf)> =
        subject.real_paths.iter().cloned().enumerate().collect();
    policy.judge(&Query {
        tool: subject.tool(),
        role: setting.role.as_deref(),
        effects: &subject.effects,
        real_paths: &real_paths,
        arguments: &subject.arguments,
        headless,
    })
}

/// The stage's verdict.
#[must_use]
pub fn verdict(judgement: &Judgement) -> Verdict {
    let reasons: Vec<Reason> = judgement.deciding().map(reason_of).collect();
    match judgement.decision {
        Decision::Allow => Verdict::Pass(reasons),
        Decision::Ask => Verdict::Require(reasons),
        Decision::Deny => Verdict::Deny(reasons),
    }
}

/// Paths that a person is asked about; an approved one is not masked for that call.
#[must_use]
pub fn asked_paths(judgement: &Judgement) -> Vec<PathBuf> {
    judgement
        .deciding()
        .filter(|finding| finding.decision == Decision::Ask)
        .filter(|finding| match finding.kind {
            SubjectKind::Read | SubjectKind::Write | SubjectKind::Execute => true,
            SubjectKind::Role
            | SubjectKind::Tool
            | SubjectKind::Command
            | SubjectKind::Assignment
            | SubjectKind::Host
            | SubjectKind::Unresolved => false,
        })
        .map(|finding| PathBuf::from(&*finding.subject))
        .collect()
}

fn reason_of(finding: &Finding) -> Reason {
    Reason {
        code: Untrusted::new(finding.code.as_str()),
        rule: Some(Untrusted::new(finding.rule.id.as_str())),
        file: finding.rule.file_name().map(Untrusted::new),
        line: finding.rule.file.is_some().then(|| u64::try_from(finding.rule.line).unwrap_or(0)),
        sentence: Untrusted::new(finding.reason()),
        subject: Some(Untrusted::new(format!("{} {}", finding.kind.as_str(), finding.shown()))),
        would_allow: finding.would_allow.as_ref().map(Untrusted::new),
    }
}
