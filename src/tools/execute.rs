//! Carries out one approved call in its cell and makes of it what the model and the record are told.
//!
//! It takes the approval by value: a call runs once. It opens nothing itself. A command that becomes a
//! background job, and calls about one, are the business of `job_calls`.

use super::jobs::JobName;
use super::toolbox::Toolbox;
use super::worker::reply::{Done, JobReply, Written};
use super::{job_calls, render};
use crate::audit::record::Exit as RecordedExit;
use crate::base::limits::TOOL_RESULT_BYTES_MAX;
use crate::base::text::{Untrusted, head_and_tail};
use crate::call::ToolCall;
use crate::call::request::Request;
use crate::chain::Approved;
use crate::chain::abort::AbortSignal;
use crate::sandbox::{self, Exit, Finished, Program, SandboxSpec, SetupFailed, Step};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the model is told; at most `TOOL_RESULT_BYTES_MAX` bytes.
    pub text: String,
    /// Whether the tool did what it was asked.
    pub success: bool,
    /// How it ended.
    pub exit: RecordedExit,
    /// Bytes of standard output, all of them.
    pub stdout_bytes: u64,
    /// Bytes of standard error, where it is apart.
    pub stderr_bytes: u64,
    /// Whether the model is told less than all.
    pub truncated: bool,
    /// Files that a file tool wrote.
    pub files_written: Vec<PathBuf>,
    /// Limits that were hit.
    pub limits_hit: Vec<&'static str>,
    /// What the kernel enforced; `None` if the cell never came to be.
    pub enforced: Option<Value>,
    /// Wall time.
    pub duration: Duration,
    /// Whether the tool asks for the end of the run, once every call of the answer has a result. None of
    /// the tools that run in a cell does.
    pub yields: bool,
    /// Why no cell could be made, unless that is the call's own fault. Nothing ran.
    pub setup_failed: Option<String>,
    /// The background job that the call began. What becomes of it is told when it ends.
    pub began: Option<JobName>,
}

impl Outcome {
    /// An outcome of no success, without text and output.
    #[must_use]
    pub fn failed(exit: RecordedExit) -> Self {
        Self {
            text: String::new(),
            success: false,
            exit,
            stdout_bytes: 0,
            stderr_bytes: 0,
            truncated: false,
            files_written: Vec::new(),
            limits_hit: Vec::new(),
            enforced: None,
            duration: Duration::ZERO,
            yields: false,
            setup_failed: None,
            began: None,
        }
    }
}

/// Runs the call to its end, or begins the background job that it asks for. Blocks the calling thread,
/// which owns the cell meanwhile.
#[must_use]
pub fn execute(approved: Approved, toolbox: &Toolbox, abort: &AbortSignal) -> Outcome {
    let (subject, spec, _receipt) = approved.into_parts();
    let start = Instant::now();
    let call = &subject.call;
    let mut outcome = match (&call.request, spec) {
        (Request::JobOutput(arguments), _) => job_calls::output(arguments, toolbox, abort),
        (Request::JobKill(arguments), _) => job_calls::kill(arguments, toolbox),
        (Request::Bash(arguments), Some(spec)) if arguments.is_background() => {
            job_calls::begin(call, arguments, &spec, toolbox)
        }
        (_, Some(spec)) => in_cell(call, &spec, toolbox, abort),
        (_, None) => {
            let cause = "no cell was planned for it; this is a defect";
            let text = format!("error: the call did not run: {cause}");
            let exit = RecordedExit::SetupFailed { cause: Untrusted::new(cause) };
            Outcome { text, setup_failed: Some(cause.to_owned()), ..Outcome::failed(exit) }
        }
    };
    outcome.duration = start.elapsed();
    outcome
}

fn in_cell(call: &ToolCall, spec: &SandboxSpec, toolbox: &Toolbox, abort: &AbortSignal) -> Outcome {
    let running = match sandbox::launch(spec) {
        Ok(running) => running,
        Err(failed) => return never_ran(&failed),
    };
    let finished = running.wait(abort.for_cell());
    let mut outcome = match &spec.program {
        Program::Exec { .. } => of_command(&finished, call, spec, toolbox),
        // No tool plans acts; their answers are no reply of a job, which is then said.
        Program::FileJob { .. } | Program::Acts { .. } => of_job(&finished, toolbox),
    };
    tell_protected(&mut outcome, &finished);
    outcome
}

/// What is told of a call whose cell could not be made.
pub(super) fn never_ran(failed: &SetupFailed) -> Outcome {
    let cause = failed.to_string();
    let (text, setup_failed) = if failed.step == Step::WorkingDirectory {
        let subject = &failed.subject;
        let text = format!(
            "error: the call did not run: the working directory `{subject}` does not exist or is \
             not granted; give another `cwd`, or none for the workspace"
        );
        (text, None)
    } else {
        let text = format!("error: the call did not run, its cell could not be made: {cause}");
        (text, Some(cause.clone()))
    };
    let exit = RecordedExit::SetupFailed { cause: Untrusted::new(cause) };
    Outcome { text, setup_failed, ..Outcome::failed(exit) }
}

/// What every ended cell has in common.
fn ended(finished: &Finished, text: String, success: bool) -> Outcome {
    let limits_hit = match finished.exit {
        Exit::TimedOut => vec!["wall"],
        Exit::OutOfMemory => vec!["memory"],
        Exit::OutputCapped => vec!["output"],
        Exit::DiskFull => vec!["tmp"],
        Exit::Code(_) | Exit::Signal(_) | Exit::Cancelled => Vec::new(),
    };
    Outcome {
        text,
        success,
        exit: recorded(finished.exit),
        stdout_bytes: finished.stdout.total_bytes,
        stderr_bytes: finished.stderr.total_bytes,
        truncated: finished.stdout.omitted_bytes() > 0,
        files_written: Vec::new(),
        limits_hit,
        enforced: serde_json::to_value(&finished.enforced).ok(),
        duration: finished.resources.wall,
        yields: false,
        setup_failed: None,
        began: None,
    }
}

/// What became of a background job; the model has read its output, or not, by other calls.
pub(super) fn of_job_end(finished: &Finished) -> Outcome {
    let mut outcome = ended(finished, String::new(), finished.exit == Exit::Code(0));
    tell_protected(&mut outcome, finished);
    outcome
}

/// How the call ended, as the log says it.
#[must_use]
pub const fn recorded(exit: Exit) -> RecordedExit {
    match exit {
        Exit::Code(code) => RecordedExit::Code { code },
        Exit::Signal(signal) => RecordedExit::Signal { signal },
        Exit::TimedOut => RecordedExit::TimedOut,
        Exit::OutOfMemory => RecordedExit::OutOfMemory,
        Exit::OutputCapped => RecordedExit::OutputCapped,
        Exit::DiskFull => RecordedExit::DiskFull,
        Exit::Cancelled => RecordedExit::Cancelled,
    }
}

fn of_command(
    finished: &Finished,
    call: &ToolCall,
    spec: &SandboxSpec,
    toolbox: &Toolbox,
) -> Outcome {
    let output = &finished.stdout;
    let kept = output.total_bytes.min(spec.limits.spill_bytes);
    let shown = toolbox.outputs.as_ref().map(|outputs| outputs.shown(&call.id));
    let spill = shown.as_deref().filter(|_| output.spill.is_some()).map(|path| (path, kept));
    let text = render::command(&render::Command {
        end: match finished.exit {
            Exit::Code(code) => render::End::Code(code),
            Exit::Signal(signal) => render::End::Signal(signal),
            Exit::TimedOut => render::End::TimedOut,
            Exit::OutOfMemory => render::End::OutOfMemory,
            Exit::OutputCapped => render::End::OutputCapped,
            Exit::DiskFull => render::End::DiskFull,
            Exit::Cancelled => render::End::Cancelled,
        },
        head: &output.head,
        tail: &output.tail,
        total_bytes: output.total_bytes,
        spill,
        duration: finished.resources.wall,
        memory_bytes: spec.limits.memory_bytes,
    });
    if let Some(outputs) = &toolbox.outputs {
        let named = shown.is_some_and(|path| text.contains(&*path.to_string_lossy()));
        if !named {
            outputs.forget(&call.id);
        }
    }
    ended(finished, text, finished.exit == Exit::Code(0))
}

fn of_job(finished: &Finished, toolbox: &Toolbox) -> Outcome {
    let reply = if finished.exit == Exit::Code(0) {
        JobReply::decode(&finished.stdout.head)
    } else {
        Err(format!("the file job did not finish ({})", recorded(finished.exit)))
    };
    match reply {
        Ok(reply) => of_reply(finished, &reply, toolbox),
        Err(cause) => {
            let mut outcome = ended(finished, format!("error: {cause}"), false);
            if finished.exit == Exit::Code(0) {
                outcome.exit = RecordedExit::Failed { cause: Untrusted::new(cause) };
            }
            outcome
        }
    }
}

fn of_reply(finished: &Finished, reply: &JobReply, toolbox: &Toolbox) -> Outcome {
    let text = head_and_tail(&render::job(reply), TOOL_RESULT_BYTES_MAX);
    let mut outcome = ended(finished, text, matches!(reply, JobReply::Done(_)));
    match reply {
        JobReply::Done(Done::Read(page)) => {
            if let Some(digest) = page.digest {
                toolbox.files.note_seen(&page.path, digest);
            }
        }
        JobReply::Done(Done::Written(written)) => note_written(written, &mut outcome, toolbox),
        JobReply::Done(Done::Edited(edited)) => note_written(&edited.file, &mut outcome, toolbox),
        JobReply::Done(Done::Found(_) | Done::Matched(_)) => {}
        JobReply::Failed(error) => {
            outcome.exit = RecordedExit::Failed { cause: Untrusted::new(error.to_string()) };
        }
    }
    outcome
}

fn note_written(written: &Written, outcome: &mut Outcome, toolbox: &Toolbox) {
    toolbox.files.note_seen(&written.path, written.digest);
    if written.replaced_bytes.is_none() {
        toolbox.files.note_created(written.identity);
    }
    outcome.files_written.push(written.path.clone());
}

/// A protected name that did not exist and that the call made was moved aside; the model is told, so
/// that it does not look for the file.
fn tell_protected(outcome: &mut Outcome, finished: &Finished) {
    for name in &finished.protected_created {
        let path = Untrusted::new(name.path.to_string_lossy());
        let fate =
            if name.moved_to.is_some() { "was moved out of the workspace" } else { "remains" };
        outcome.text.push_str(&format!(
            "\nnote: `{path}` is protected by the policy; what the call created there {fate}"
        ));
        outcome.limits_hit.push("protected-name-created");
    }
}
