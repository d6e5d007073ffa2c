//! One command in a policy's cell, without a model: decided by the same chain, written to a log of its
//! own, its streams passed through.

use super::cell::{self, CellInputs};
use super::error::RunError;
use super::opening::{self, RunFacts};
use super::options::{self, check_role};
use super::setup::{self, Grounds, open_log};
use super::{RunConfig, signals};
use crate::audit::AuditWriter;
use crate::audit::record::{
    Body, End, Exit as RecordedExit, Outcome, Session as SessionRecord, Started,
};
use crate::base::exit::Exit;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use crate::call::ToolCall;
use crate::call::request::{BashArguments, Request};
use crate::chain::abort::{AbortSignal, StopCause};
use crate::chain::subject::Setting;
use crate::chain::verdict::Denied;
use crate::chain::{Approved, Chain, Ruling, spec_digest};
use crate::sandbox::{self, Enforced, Finished, Program, SetupFailed, Stdin, Step};
use crate::tools::execute::recorded;
use rustix::fd::OwnedFd;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Exit code for a command whose time was up. Source: `timeout` of GNU coreutils.
const TIMED_OUT: u8 = 124;
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

/// Decides about `argv` and runs it.
///
/// # Errors
/// [`RunError`] if nothing could be decided or run.
pub fn exec(config: &RunConfig, argv: &[OsString]) -> Result<ExecOutcome, RunError> {
    let grounds = setup::grounds(config, None)?;
    check_role(&grounds.policy, config.role.as_deref())?;
    let call = call(argv)?;
    let session = Id::new();
    let mut log = open_log(&grounds, &session)?;
    let record = session_record(config, &grounds, &session);
    log.append(&Body::Session(Box::new(record))).map(drop)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(decide_and_run(config, &grounds, (call, argv), &mut log));
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
    config: &RunConfig,
    grounds: &Grounds,
    (call, argv): (ToolCall, &[OsString]),
    log: &mut AuditWriter,
) -> Result<ExecOutcome, RunError> {
    let abort = AbortSignal::new();
    let _listening = signals::listen(&abort)?;
    let mut chain = chain(config, grounds, &abort)?;
    let base = Arc::clone(&chain.cell);
    let argv = argv.to_vec();
    let plan = move |_call: &ToolCall, approved: &[PathBuf]| {
        let stdin = if std::io::stdin().is_terminal() { Stdin::Empty } else { Stdin::Pipe };
        let mut spec = base.spec(Program::Exec { argv: argv.clone(), stdin }, approved);
        spec.limits.output_head_bytes = 0;
        spec.limits.output_tail_bytes = 0;
        spec
    };
    let approved = match chain.decide(call, &plan, log).await? {
        Ruling::Approved(approved) => *approved,
        Ruling::Denied(denied) => return Ok(ExecOutcome::Denied(denied)),
    };
    let id = approved.subject().call.id.clone();
    let sandbox = Some(spec_digest(approved.spec()));
    log.append(&Body::Started(Started { call: id.clone(), sandbox })).map(drop)?;
    let for_cell = abort.clone();
    let ran = tokio::task::spawn_blocking(move || run_through(approved, &for_cell)).await;
    let finished = ran.map_err(|_panicked| std::io::Error::other("the command's thread ended"))?;
    log.append(&Body::Outcome(Box::new(outcome(id, &finished)))).map(drop)?;
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
        drop(relay(std::io::stdin(), std::fs::File::from(stdin)));
    }
    let readers = [
        stdout.map(|pipe| relay(blocking(pipe), std::io::stdout())),
        stderr.map(|pipe| relay(blocking(pipe), std::io::stderr())),
    ];
    let finished = running.wait(abort.for_cell());
    // The tree is gone, so the pipes are at their end.
    for reader in readers.into_iter().flatten() {
        drop(reader.join());
    }
    Ok(finished)
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

fn blocking(pipe: OwnedFd) -> std::fs::File {
    // A pipe whose flags cannot be changed is read all the same, and ends early at worst.
    if let Ok(flags) = rustix::fs::fcntl_getfl(&pipe) {
        rustix::fs::fcntl_setfl(&pipe, flags.difference(rustix::fs::OFlags::NONBLOCK)).ok();
    }
    std::fs::File::from(pipe)
}

fn relay(
    mut from: impl std::io::Read + Send + 'static,
    mut to: impl std::io::Write + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        // A reader that went away (`| head`) is no error of ours.
        drop(std::io::copy(&mut from, &mut to).and_then(|_bytes| to.flush()));
    })
}

fn exit_of(finished: &Finished, cause: StopCause) -> Exit {
    let code = match finished.exit {
        sandbox::Exit::Code(code) => code,
        sandbox::Exit::Signal(signal) => SIGNAL_BASE + signal,
        sandbox::Exit::TimedOut => i32::from(TIMED_OUT),
        sandbox::Exit::OutOfMemory | sandbox::Exit::OutputCapped => SIGNAL_BASE + 9,
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

fn chain(config: &RunConfig, grounds: &Grounds, abort: &AbortSignal) -> Result<Chain, RunError> {
    let policy = Arc::clone(&grounds.policy);
    let cell = cell::base(
        &policy,
        CellInputs {
            environment: &config.environment,
            workspace: &grounds.workspace,
            private_tmp: None,
            quarantine: None,
            namespaces: config.namespaces,
        },
    )?;
    Ok(Chain {
        abort: abort.clone(),
        guardian: options::guardian(config, &policy)?,
        permission: Some(options::permission(config, &policy)),
        cell: Arc::new(cell),
        setting: Arc::new(Setting {
            workspace: grounds.workspace.clone(),
            home: policy.places().home.clone(),
            role: config.role.clone(),
            task: "run one command".to_owned(),
        }),
        person: options::person(&config.environment),
        policy,
    })
}

fn session_record(config: &RunConfig, grounds: &Grounds, session: &Id) -> SessionRecord {
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
