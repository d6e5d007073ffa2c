//! The third stage: programs of the policy that look at a call before it runs.
//!
//! A hook runs in the same kind of cell as a tool, reads the call as JSON from standard input and
//! answers by its exit code and output ([`answer`]). Hooks come from trusted policy layers only.

pub mod answer;

use crate::audit::record::{Hook as HookRecord, StageVerdict};
use crate::base::ids::Id;
use crate::base::limits::{HOOK_OUTPUT_BYTES_MAX, HOOK_TIME_MAX};
use crate::base::paths::is_within;
use crate::base::text::Untrusted;
use crate::chain::abort::AbortSignal;
use crate::chain::cell::CellBase;
use crate::chain::subject::{Setting, Subject};
use crate::chain::verdict::Verdict;
use crate::policy::{Hook, HookEvent};
use crate::sandbox::{self, Grant, GrantAccess, Program, Stdin};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The hooks that are asked about `tool` at `event`, in the policy's order.
pub fn of<'h>(
    hooks: &'h [Hook],
    event: HookEvent,
    tool: &'h str,
) -> impl Iterator<Item = &'h Hook> {
    hooks.iter().filter(move |hook| hook.event == event && hook.is_for(tool))
}

/// What a pre-tool hook reads: one JSON object.
#[must_use]
pub fn input(subject: &Subject, setting: &Setting) -> Vec<u8> {
    json!({
        "event": "pre-tool",
        "call": subject.call.id,
        "origin": subject.call.origin,
        "tool": subject.tool(),
        "arguments": subject.arguments,
        "workspace": setting.workspace.to_string_lossy(),
        "role": setting.role,
    })
    .to_string()
    .into_bytes()
}

/// What a post-tool hook reads: one JSON object.
#[must_use]
pub fn outcome_input(call: &Id, tool: &str, arguments: &str, status: &str) -> Vec<u8> {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    json!({
        "event": "post-tool", "call": call, "tool": tool, "arguments": arguments, "status": status,
    })
    .to_string()
    .into_bytes()
}

/// What a hook of a session reads: one JSON object.
#[must_use]
pub fn session_input(event: HookEvent, session: &Id, setting: &Setting, finish: &str) -> Vec<u8> {
    let mut told = json!({
        "event": event.as_str(),
        "session": session,
        "workspace": setting.workspace.to_string_lossy(),
        "role": setting.role,
    });
    if let (HookEvent::SessionEnd, Some(told)) = (event, told.as_object_mut()) {
        told.insert("finish".to_owned(), finish.into());
    }
    told.to_string().into_bytes()
}

/// Runs one hook to its end and reads its verdict. Blocks the calling thread. What a session's hook is
/// about is the session.
#[must_use]
pub fn run(
    hook: &Hook,
    call: &Id,
    stdin: Vec<u8>,
    cell: &CellBase,
    abort: &AbortSignal,
) -> (Verdict, HookRecord) {
    let start = Instant::now();
    let argv = hook.argv.iter().map(Into::into).collect();
    let mut spec = cell.spec(Program::Exec { argv, stdin: Stdin::Bytes(stdin) }, &[]);
    spec.grants.extend(own_program(hook, &spec.grants));
    spec.limits.wall = hook.timeout_ms.map_or(HOOK_TIME_MAX, Duration::from_millis);
    spec.limits.output_head_bytes = HOOK_OUTPUT_BYTES_MAX + 1;
    spec.limits.output_tail_bytes = 0;
    let id = hook.meta.id.as_str();
    let verdict = match sandbox::launch(&spec) {
        Ok(running) => {
            let finished = running.wait(abort.for_cell());
            answer::verdict(id, &finished.exit, &finished.stdout.head, &finished.stderr.head)
        }
        Err(failed) => answer::not_started(id, &failed.to_string()),
    };
    let record = record(hook, call, &verdict, start.elapsed());
    (verdict, record)
}

/// The file of a hook's program, where no grant shows it: what a trusted policy names may be run as a
/// hook, wherever it lies, and no call of the model sees it for that.
fn own_program(hook: &Hook, grants: &[Grant]) -> Option<Grant> {
    let path = PathBuf::from(hook.argv.first()?);
    let is_shown = grants.iter().any(|grant| is_within(&path, &grant.path));
    (path.is_absolute() && !is_shown).then_some(Grant {
        path,
        access: GrantAccess::ReadExecute,
        optional: true,
    })
}

/// What counts if a hook could not even be run to its failure.
#[must_use]
pub fn failed(hook: &Hook, call: &Id) -> (Verdict, HookRecord) {
    let verdict = answer::not_started(hook.meta.id.as_str(), "its thread ended");
    let record = record(hook, call, &verdict, Duration::ZERO);
    (verdict, record)
}

fn record(hook: &Hook, call: &Id, verdict: &Verdict, took: Duration) -> HookRecord {
    let (stage, reasons) = match verdict {
        Verdict::Pass(reasons) => (StageVerdict::Pass, reasons.as_slice()),
        Verdict::Require(reasons) => (StageVerdict::Require, reasons.as_slice()),
        Verdict::Deny(reasons) => (StageVerdict::Deny, reasons.as_slice()),
        Verdict::Skipped(_) => (StageVerdict::Skipped, [].as_slice()),
    };
    let first = reasons.first();
    let code = first.map_or_else(|| Untrusted::new("hook-passed"), |reason| reason.code.clone());
    let sentence =
        first.map_or_else(|| Untrusted::new("no objection"), |reason| reason.sentence.clone());
    HookRecord {
        call: call.clone(),
        hook: Untrusted::new(hook.meta.id.as_str()),
        event: Untrusted::new(hook.event.as_str()),
        verdict: stage,
        code,
        sentence,
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }
}
