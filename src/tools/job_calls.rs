//! The three calls about background jobs: a command begins one, `job_output` reads it, `job_kill` ends it.
//!
//! What the model reads of a job's output comes from what is kept of it in memory; the file that holds
//! more is named only where something is missing.

use super::execute::{Outcome, never_ran};
use super::jobs::Look;
use super::render;
use super::toolbox::Toolbox;
use super::worker::shown::incomplete_start;
use crate::audit::record::Exit as RecordedExit;
use crate::base::text::{Untrusted, escape, prefix};
use crate::call::ToolCall;
use crate::call::request::{BashArguments, JobKillArguments, JobOutputArguments};
use crate::chain::abort::AbortSignal;
use crate::sandbox::{self, SandboxSpec};
use std::time::Duration;

/// Bytes of a command that name its job for a person and the model.
const LABEL_BYTES_MAX: usize = 60;

/// Begins a job and gives its name at once.
pub(super) fn begin(
    call: &ToolCall,
    arguments: &BashArguments,
    spec: &SandboxSpec,
    toolbox: &Toolbox,
) -> Outcome {
    let place = match toolbox.jobs.reserve() {
        Ok(place) => place,
        Err(why) => return refused(&why),
    };
    let running = match sandbox::launch(spec) {
        Ok(running) => running,
        Err(failed) => return never_ran(&failed),
    };
    let enforced = serde_json::to_value(running.enforced()).ok();
    match place.fill(running, call.id.clone(), label(&arguments.command)) {
        Ok(job) => {
            let (name, most) = (&job.name, spec.limits.wall.as_secs_f64());
            let text = format!(
                "background job `{name}` runs; it ends by itself, with job_kill, after {most:.0} s, or \
                 with your final answer, whichever comes first\n[read its output with job_output; you are \
                 told when it has ended]"
            );
            Outcome { enforced, began: Some(job), ..done(text) }
        }
        Err(error) => refused(&format!("no thread could be had to watch it: {error}")),
    }
}

/// What is new of a job's output, and whether it runs.
pub(super) fn output(
    arguments: &JobOutputArguments,
    toolbox: &Toolbox,
    abort: &AbortSignal,
) -> Outcome {
    let wait = Duration::from_millis(arguments.wait_ms.unwrap_or(0));
    let look = toolbox.jobs.look(&arguments.job, arguments.offset, wait, abort.for_cell());
    let look = match look {
        Ok(look) => look,
        Err(why) => return refused(&why),
    };
    let shown = Shown::of(&look);
    toolbox.jobs.note_read(&arguments.job, shown.next, look.end.is_some());
    let file = toolbox.outputs.as_ref().map(|outputs| outputs.shown(&look.call));
    let file = file.map(|path| super::worker::shown::path(&path));
    let text = text(&look, &shown, file.as_deref(), &arguments.job);
    let truncated = shown.next < look.piece.total_bytes || look.piece.offset > look.asked;
    Outcome { truncated, ..done(text) }
}

/// Ends a job.
pub(super) fn kill(arguments: &JobKillArguments, toolbox: &Toolbox) -> Outcome {
    match toolbox.jobs.kill(&arguments.job) {
        Ok(end) => {
            let (seconds, notes) = (end.duration.as_secs_f64(), &end.text);
            let how = &end.exit;
            done(format!("`{}` ended after {seconds:.1} s: {how}{notes}", arguments.job))
        }
        Err(why) => refused(&why),
    }
}

/// The first line of a command, cut.
fn label(command: &str) -> String {
    let line = command.trim_start().lines().next().unwrap_or_default();
    let cut = prefix(line, LABEL_BYTES_MAX);
    let dots = if cut.len() < command.trim().len() { "…" } else { "" };
    format!("{}{dots}", escape(cut))
}

fn done(text: String) -> Outcome {
    Outcome { text, success: true, ..Outcome::failed(RecordedExit::Code { code: 0 }) }
}

fn refused(why: &str) -> Outcome {
    let exit = RecordedExit::Failed { cause: Untrusted::new(why) };
    Outcome { text: format!("error: {why}"), ..Outcome::failed(exit) }
}

/// As much of a look as a result holds.
struct Shown {
    /// Offset of the first byte that is shown.
    from: u64,
    /// Offset behind the last one.
    next: u64,
    text: String,
    replaced: u64,
}

impl Shown {
    fn of(look: &Look) -> Self {
        let piece = &look.piece;
        // Behind a gap the first bytes may end a character that began in it.
        let skipped = if piece.offset > look.asked { incomplete_start(&piece.bytes) } else { 0 };
        let bytes = piece.bytes.get(skipped..).unwrap_or_default();
        let from = piece.offset + skipped as u64;
        let ends = look.end.is_some() && from + bytes.len() as u64 == piece.total_bytes;
        let (decoded, used) = render::start_of_output(bytes, ends);
        Self { from, next: from + used as u64, text: decoded.text, replaced: decoded.replaced }
    }
}

fn text(look: &Look, shown: &Shown, file: Option<&str>, job: &str) -> String {
    let total = look.piece.total_bytes;
    let is_empty = shown.from == shown.next;
    let mut text = render::Text(match &look.end {
        _ if !is_empty => shown.text.clone(),
        Some(_) => "(no more output)".to_owned(),
        None => "(no new output)".to_owned(),
    });
    text.note_replaced(shown.replaced);
    if shown.from > look.asked && look.asked < total {
        let (asked, last) = (look.asked, shown.from - 1);
        let place = file.map_or(String::new(), |file| format!("; `{file}` holds them"));
        text.note(format_args!("bytes {asked} to {last} were not kept{place}"));
    }
    if !is_empty {
        let (from, last) = (shown.from, shown.next - 1);
        let more = if shown.next < total { "; call again for more" } else { "" };
        text.note(format_args!("bytes {from} to {last} of {total} so far{more}"));
    }
    let seconds = look.ran.as_secs_f64();
    match &look.end {
        None => text.note(format_args!("`{job}` has run for {seconds:.1} s and goes on")),
        Some(end) => {
            text.note(format_args!("`{job}` ended after {seconds:.1} s: {}{}", end.exit, end.text));
        }
    }
    text.0
}
