//! One line a record: the table of `audit log` and `audit query`.

use crate::audit::query::Row;
use crate::audit::record::{AgentEvent, Body, Decision, NetworkVerdict, Ruling};
use crate::base::text::{Untrusted, prefix};

/// Bytes of a summary: with the columns before it, what a wide terminal shows in two lines.
const SUMMARY_BYTES_MAX: usize = 200;

/// The line above the table.
pub const LOG_HEADER: &str = "   SEQ  TIME                      KIND        CALL      WHAT";

/// A record as one line of the table, without the line feed.
#[must_use]
pub fn log_line(row: &Row) -> String {
    let record = &row.record;
    let call = record.body.call().map_or("", |call| call.short());
    let summary = summary(&record.body);
    let start = prefix(&summary, SUMMARY_BYTES_MAX);
    let more = if start.len() == summary.len() { "" } else { " …" };
    let time = Untrusted::new(record.time.as_str()).to_string();
    format!("{:>6}  {time:<24}  {:<10}  {call:<8}  {start}{more}", record.seq, record.body.kind())
}

/// What a record says, in one escaped line.
pub(super) fn summary(body: &Body) -> String {
    match body {
        Body::Session(session) => {
            let unknown = || "an unknown login".to_owned();
            let login = session.login.as_ref().map_or_else(unknown, ToString::to_string);
            let verb = if session.resumed { "resumed" } else { "began" };
            format!(
                "{} {verb} by {login} (uid {}) on {} as {}, {}, policy {}",
                session.session,
                session.uid,
                session.host,
                session.role,
                session.model,
                session.policy.digest.short()
            )
        }
        Body::Decision(decision) => decision_summary(decision),
        Body::Started(_) => "started".to_owned(),
        Body::Outcome(outcome) => format!("{}, {} ms", outcome.exit, outcome.duration_ms),
        Body::Rejected(rejected) => {
            format!("{} rejected: {}", rejected.tool, rejected.because.as_str())
        }
        Body::Grant(grant) => {
            let answer = if grant.approved { "approved" } else { "refused" };
            format!("{answer} by {}: {}", grant.by, grant.shown)
        }
        Body::Network(network) => {
            let verdict = match network.verdict {
                NetworkVerdict::Passed => "passed",
                NetworkVerdict::Denied => "denied",
                NetworkVerdict::Failed => "failed",
            };
            format!("{}:{} {verdict}: {}", network.host, network.port, network.code)
        }
        Body::Hook(hook) => {
            format!("{} {}: {} {}", hook.hook, hook.verdict.as_str(), hook.code, hook.sentence)
        }
        Body::Guardian(guardian) => {
            let verdict = guardian.verdict.as_str();
            format!("{} {verdict}: {} {}", guardian.model, guardian.code, guardian.sentence)
        }
        Body::Agent(agent) => match &agent.event {
            AgentEvent::Spawned { .. } => format!("{} spawned as {}", agent.origin, agent.role),
            AgentEvent::Ended { finish, .. } => format!("{} ended: {finish}", agent.origin),
        },
        Body::Retry(retry) => {
            format!("{} attempt {} failed: {}", retry.model, retry.attempt, retry.cause)
        }
        Body::Repair(repair) => format!("{}: {}", repair.code, repair.sentence),
        Body::Checkpoint(checkpoint) => {
            let signed = if checkpoint.signature.is_some() { ", signed" } else { "" };
            format!("{} records, head {}{signed}", checkpoint.records, checkpoint.head.short())
        }
        Body::Recovered(recovered) => {
            format!("{} bytes of a torn record moved to {}", recovered.bytes, recovered.aside)
        }
        Body::End(end) => {
            let (approved, denied, rejected) = (end.approved, end.denied, end.rejected);
            format!(
                "{}, exit code {}: {approved} approved, {denied} denied, {rejected} rejected",
                end.finish, end.exit_code
            )
        }
    }
}

fn decision_summary(decision: &Decision) -> String {
    let subject = subject(decision);
    match (decision.ruling, decision.stages.denial()) {
        (Ruling::Approved, _) => format!("approved  {} {subject}", decision.tool),
        (Ruling::Denied, None) => format!("denied  {} {subject}", decision.tool),
        (Ruling::Denied, Some((stage, record))) => {
            let reason = record.reasons.first();
            let code = reason.map_or_else(String::new, |reason| format!(" {}", reason.code));
            let rule = reason.and_then(|reason| reason.rule.as_ref());
            let rule = rule.map_or_else(String::new, |rule| format!(" ({rule})"));
            format!("denied by {}{code}{rule}  {} {subject}", stage.as_str(), decision.tool)
        }
    }
}

/// The argument that tells most about a call.
#[must_use]
pub fn subject(decision: &Decision) -> Untrusted {
    let found = ["command", "path", "pattern", "url"]
        .into_iter()
        .find_map(|key| decision.arguments.get(key).and_then(serde_json::Value::as_str));
    Untrusted::new(prefix(found.unwrap_or(""), SUMMARY_BYTES_MAX))
}
