//! One command in a policy's cell, without a model: decided by the same chain, written to a log of its
//! own, its streams passed through.

use super::cell::{self, CellInputs};
use super::error::RunError;
use super::opening::{self, RunFacts};
use super::options::{self, check_role};
use super::setup::{self, Grounds, Log, open_log};
use super::{RunConfig, hard_links, signals};
use crate::audit::AuditWriter;
use crate::audit::record::{
    Body, End, Exit as RecordedExit, Outcome, Session as SessionRecord, Started,
};
use crate::base::exit::Exit;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use crate::call::ToolCall;
use crate::call::request::{BashArguments, Request};
use crate::call::shell::StandardInput;
use crate::chain::abort::{AbortSignal, StopCause};
use crate::chain::cell::CellBase;
use crate::chain::subject::Setting;
use crate::chain::verdict::Denied;
use crate::chain::{Approved, Chain, Ruling};
use crate::policy::Diagnostic;
use crate::sandbox::{self, Enforced, Finished, Program, SetupFailed, Stdin, Step};
use crate::session::Scratch;
use crate::tools::execute::recorded;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;

/// Exit code for a command whose time was up. Source: `timeout` of GNU coreutils.
const TIMED_OUT: u8 = 124;
/// Bytes passed on at once: what a pipe holds.
const RELAY_BYTES: usize = 64 * 1024;
/// Exit codes above this say which signal ended a command. Source: POSIX shells.
const SIGNAL_BASE: i32 = 128;

/// What became of the command.
#[derive(Debug)]
pub enum ExecOutcome {
    /// It ran.
    Ran {
        /// Its exit code, or the one that stands for how it ended.
        exit: Exit,
        /// What the kernel held it to.
        enforced: Enforced,
    },
    /// The policy refused it.
    Denied(Box<Denied>),
}

/// What has to be known before the command runs.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Guarantees that cells here do not give.
    pub lost: Vec<String>,
    /// Hard links that go past the policy.
    pub warnings: Vec<String>,
    /// What was not looked at for them; the record has it in any case.
    pub unseen: Option<String>,
    /// Settings of the policy that do nothing in this release.
    pub notices: Vec<String>,
}

/// Decides about `argv` and runs it. `tell` is given what has to be known before anything runs.
///
/// # Errors
/// [`RunError`] if nothing could be decided or run.
pub fn exec(
    config: &RunConfig,
    argv: &[OsString],
    tell: &dyn Fn(&Known),
) -> Result<ExecOutcome, RunError> {
    // Starts while the policy is read and the command is judged.
    let _ready = sandbox::ready_once();
    // The process ends with the command: freeing each piece of a policy would only hold that up.
    let grounds = ManuallyDrop::new(setup::grounds(config, None)?);
    check_role(&grounds.policy, config.role.as_deref())?;
    let call = call(argv)?;
    let (chain, known, _scratch) = chain(config, &grounds, &AbortSignal::new())?;
    tell(&known);
    let session = Id::new();
    let mut log = open_log(&grounds, &session, Log::New)?;
    let warnings = known.warnings.into_iter().chain(known.unseen).collect();
    let record = session_record(config, &grounds, &session, warnings);
    // The decision follows at once, and nothing happens before that is flushed.
    log.append_unflushed(&Body::Session(Box::new(record)))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(decide_and_run(chain, (call, argv), &mut log));
    runtime.shutdown_background();
    let (finish, exit, approved, denied) = match &outcome {
        Ok(ExecOutcome::Ran { exit, .. }) => ("stop", *exit, 1, 0),
        Ok(ExecOutcome::Denied(_)) => ("stop", Exit::Denied, 0, 1),
        Err(error) => ("error", error.exit(), 0, 0),
    };
    log.append(&Body::End(Box::new(End {
        finish: Untrusted::new(finish),
        exit_code: exit.code(),
        approved,
        denied,
        rejected: 0,
        tokens: (0, 0),
        cause: outcome.as_ref().err().map(|error| Untrusted::new(error.to_string())),
    })))
    .map(drop)?;
    outcome
}

async fn decide_and_run(
    mut chain: Chain,
    (call, argv): (ToolCall, &[OsString]),
    log: &mut AuditWriter,
) -> Result<ExecOutcome, RunError> {
    let abort = chain.abort.clone();
    let _listening = signals::listen(&abort)?;
    let base = Arc::clone(&chain.cell);
    let argv = argv.to_vec();
    let plan = move |_call: &ToolCall, approved: &[PathBuf]| {
        let stdin = if has_no_input() { Stdin::Empty } else { Stdin::Pipe };
        let mut spec = base.spec(Program::Exec { argv: argv.clone(), stdin }, approved);
        spec.limits.output_head_bytes = 0;
        spec.limits.output_tail_bytes = 0;
        // It goes to the caller, who may want all of it.
        spec.limits.output_total_bytes = None;
        spec
    };
    let approved = match chain.decide(call, &plan, log).await? {
        Ruling::Approved(approved) => *approved,
        Ruling::Denied(denied) => return Ok(ExecOutcome::Denied(denied)),
    };
    let id = approved.subject().call.id.clone();
    let sandbox = Some(approved.spec_digest());
    log.append(&Body::Started(Started { call: id.clone(), sandbox })).map(drop)?;
    let for_cell = abort.clone();
    let ran = tokio::task::spawn_blocking(move || run_through(approved, &for_cell)).await;
    let finished = ran.map_err(|_panicked| std::io::Error::other("the command's thread ended"))?;
    // The end of the run follows at once.
    log.append_unflushed(&Body::Outcome(Box::new(outcome(id, &finished))))?;
    let finished = finished?;
    let exit = exit_of(&finished, abort.cause());
    Ok(ExecOutcome::Ran { exit, enforced: finished.enforced })
}

/// Runs the command with our streams joined to its own through pipes: it never holds a descriptor of
/// ours, least of all a terminal.
fn run_through(approved: Approved, abort: &AbortSignal) -> Result<Finished, RunError> {
    let (_subject, spec, _receipt) = approved.into_parts();
    let mut running = sandbox::launch(&spec).map_err(not_launched)?;
    let stderr = running.take_stderr();
    let (stdin, stdout) = running.take_pipes();
    if let Some(stdin) = stdin {
        // Ends with the process: nobody waits for a writer that the command does not read.
        drop(std::thread::spawn(move || relay_input(stdin)));
    }
    let relaying = std::thread::spawn(move || relay_output(stdout, stderr));
    let finished = running.wait(abort.for_cell());
    // The tree is gone, so the pipes are at their end.
    drop(relaying.join());
    Ok(finished)
}

/// Whether nobody can have anything to say to the command: a terminal is never handed on, and the null
/// device is what a command without input gets anyway.
fn has_no_input() -> bool {
    let stdin = std::io::stdin();
    let null = rustix::fs::makedev(1, 3);
    let is_null = rustix::fs::fstat(&stdin).is_ok_and(|status| {
        let kind = rustix::fs::FileType::from_raw_mode(status.st_mode);
        kind == rustix::fs::FileType::CharacterDevice && status.st_rdev == null
    });
    is_null || stdin.is_terminal()
}

/// Passes both streams on, as they come, until both have ended. One thread is enough for that: a reader
/// of ours that does not read holds up a command that writes to it, as it would without us.
fn relay_output(stdout: Option<OwnedFd>, stderr: Option<OwnedFd>) {
    let mut buffer = vec![0_u8; RELAY_BYTES];
    let mut open: Vec<(OwnedFd, Stream)> = Vec::new();
    open.extend(stdout.map(|pipe| (pipe, Stream::Output)));
    open.extend(stderr.map(|pipe| (pipe, Stream::Error)));
    while !open.is_empty() {
        let mut ready: Vec<_> = open.iter().map(|(p, _)| PollFd::new(p, PollFlags::IN)).collect();
        // An interrupted look is followed by reads that find nothing.
        poll(&mut ready, None).ok();
        open.retain(|(pipe, stream)| match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => false,
            // A reader that went away (`| head`) is no error of ours; the command is told by its pipe.
            Ok(count) => stream.write(buffer.get(..count).unwrap_or_default()).is_ok(),
            Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
        });
    }
}

/// One of our own streams.
#[derive(Clone, Copy)]
enum Stream {
    Output,
    Error,
}

impl Stream {
    fn write(self, bytes: &[u8]) -> std::io::Result<()> {
        use std::io::Write as _;
        match self {
            Self::Output => {
                let mut stream = std::io::stdout().lock();
                stream.write_all(bytes).and_then(|()| stream.flush())
            }
            Self::Error => std::io::stderr().lock().write_all(bytes),
        }
    }
}

/// A program that cannot be started is the caller's business; everything else is the cell's.
fn not_launched(failed: SetupFailed) -> RunError {
    if failed.step != Step::Exec || failed.errno == 0 {
        return failed.into();
    }
    RunError::Program {
        program: crate::base::text::escape(&failed.subject),
        problem: std::io::Error::from_raw_os_error(failed.errno),
    }
}

/// Passes our input on until it ends or the command does not read.
fn relay_input(to: OwnedFd) {
    // A command that ended early is no error of ours.
    drop(std::io::copy(&mut std::io::stdin(), &mut std::fs::File::from(to)));
}

fn exit_of(finished: &Finished, cause: StopCause) -> Exit {
    let code = match finished.exit {
        sandbox::Exit::Code(code) => code,
        sandbox::Exit::Signal(signal) => SIGNAL_BASE + signal,
        sandbox::Exit::TimedOut => i32::from(TIMED_OUT),
        sandbox::Exit::OutOfMemory | sandbox::Exit::OutputCapped | sandbox::Exit::DiskFull => {
            SIGNAL_BASE + 9
        }
        sandbox::Exit::Cancelled => return signals::exit_of(cause),
    };
    Exit::Command(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

fn outcome(call: Id, finished: &Result<Finished, RunError>) -> Outcome {
    let (exit, enforced, duration) = match finished {
        Ok(finished) => (
            recorded(finished.exit),
            serde_json::to_value(&finished.enforced).ok(),
            finished.resources.wall,
        ),
        Err(error) => (
            RecordedExit::SetupFailed { cause: Untrusted::new(error.to_string()) },
            None,
            std::time::Duration::ZERO,
        ),
    };
    Outcome {
        call,
        exit,
        stdout_bytes: 0,
        stderr_bytes: 0,
        truncated: false,
        result: None,
        files_written: Vec::new(),
        limits_hit: Vec::new(),
        enforced,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
    }
}

/// The command as a shell would have to be told it, so that the rules see what they see of `bash`.
fn call(argv: &[OsString]) -> Result<ToolCall, RunError> {
    let words: Option<Vec<String>> = argv.iter().map(|word| word.to_str().map(quoted)).collect();
    let command = words.map(|words| words.join(" ")).ok_or_else(|| {
        RunError::Usage("the command is not UTF-8 text, so no rule could judge it".to_owned())
    })?;
    let arguments = BashArguments { command, cwd: None, timeout_ms: None };
    let raw_arguments = serde_json::to_string(&arguments).map_err(std::io::Error::from)?;
    Ok(ToolCall {
        id: Id::new(),
        provider_id: String::new(),
        origin: "exec".to_owned(),
        request: Request::Bash(arguments),
        raw_arguments,
    })
}

/// A word in single quotes, unless it needs none.
fn quoted(word: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:=,+@%".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn chain(
    config: &RunConfig,
    grounds: &Grounds,
    abort: &AbortSignal,
) -> Result<(Chain, Known, Option<Scratch>), RunError> {
    let policy = Arc::clone(&grounds.policy);
    let mut cell = cell::base(
        &policy,
        CellInputs {
            environment: &config.environment,
            workspace: &grounds.workspace,
            private_tmp: None,
            quarantine: None,
            namespaces: config.namespaces,
            unwatched: options::unwatched(config),
        },
    )?;
    let (lost, scratch) = lost(&mut cell, grounds)?;
    let links = hard_links::close(&mut cell, hard_links::EXEC_ENTRIES_MAX)?;
    let warnings = hard_links::warnings(&links, lost.is_empty());
    let notices = policy.set().not_in_force().iter().map(Diagnostic::line).collect();
    let unseen = hard_links::unseen(&links);
    let known = Known { lost: lost.clone(), warnings, unseen, notices };
    let chain = Chain {
        abort: abort.clone(),
        guardian: options::guardian(config, &policy)?,
        permission: Some(options::permission(config, &policy)),
        cell: Arc::new(cell),
        lost,
        setting: Arc::new(Setting {
            workspace: grounds.workspace.clone(),
            home: policy.places().home.clone(),
            role: config.role.clone(),
            task: "run one command".to_owned(),
            input: if has_no_input() { StandardInput::Empty } else { StandardInput::Stream },
        }),
        person: options::person(&config.environment),
        policy,
    };
    Ok((chain, known, scratch))
}

/// What cells here do not give, which must be known before anything is decided. A cell is tried for
/// it only if one that loses something would start: for any other the answer is "nothing".
///
/// A view brings a temporary directory of its own, in memory; a cell without one gets one on the disk,
/// which lasts as long as what is returned with it.
fn lost(
    cell: &mut CellBase,
    grounds: &Grounds,
) -> Result<(Vec<String>, Option<Scratch>), RunError> {
    if sandbox::loses_nothing(&cell.spec(Program::FileJob { job: Vec::new() }, &[])) {
        return Ok((Vec::new(), None));
    }
    let scratch = grounds.store.scratch(&grounds.policy.places().tmp)?;
    cell::give_tmp(cell, scratch.path().to_owned())?;
    let enforced = cell::enforced(&cell.spec(Program::FileJob { job: Vec::new() }, &[]))?;
    if enforced.mount_view {
        cell.private_tmp = None;
        return Ok((enforced.lost, None));
    }
    Ok((enforced.lost, Some(scratch)))
}

fn session_record(
    config: &RunConfig,
    grounds: &Grounds,
    session: &Id,
    warnings: Vec<String>,
) -> SessionRecord {
    opening::session_record(
        config,
        grounds,
        session,
        &RunFacts {
            resumed: false,
            role: opening::role(config, &grounds.policy),
            tools: vec!["bash".to_owned()],
            model: "none".to_owned(),
            enforced: serde_json::Value::Null,
            warnings,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shells_reading() {
        for (word, expected) in [
            ("ls", "ls"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("--a=b", "--a=b"),
            ("~", "'~'"),
            ("*", "'*'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
