//! One command in a policy's cell, without a model: decided by the same chain, written to a log of its
//! own, its streams passed through.

use super::cell::{self, CellInputs};
use super::error::RunError;
use super::opening::{self, RunFacts};
use super::options::{self, check_role};
use super::setup::{self, Grounds, Log, open_log};
use super::{RunConfig, hard_links, relay, signals, sockets};
use crate::audit::AuditWriter;
use crate::audit::record::{Body, End, Exit as RecordedExit, Outcome, Session as SessionRecord};
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
use crate::sandbox::{
    self, Enforced, Finished, Held, Program, SandboxSpec, SetupFailed, Stdin, Step,
};
use crate::session::Scratch;
use crate::tools::execute::recorded;
use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;

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
    let mut chain = ManuallyDrop::new(chain);
    tell(&known);
    let warnings: Vec<String> = known.warnings.into_iter().chain(known.unseen).collect();
    let begin = || begin_log(config, &grounds, warnings.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (outcome, mut log) = runtime.block_on(decide_and_run(&mut chain, (call, argv), &begin))?;
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
        cost_millionths: None,
        cause: outcome.as_ref().err().map(|error| Untrusted::new(error.to_string())),
    })))
    .map(drop)?;
    outcome
}

/// Opens the log and begins it. The decision follows at once, and nothing happens before that is
/// flushed.
fn begin_log(
    config: &RunConfig,
    grounds: &Grounds,
    warnings: Vec<String>,
) -> Result<AuditWriter, RunError> {
    let session = Id::new();
    let mut log = open_log(grounds, &session, Log::New)?;
    let record = session_record(config, grounds, &session, warnings);
    log.append_unflushed(&Body::Session(Box::new(record)))?;
    Ok(log)
}

/// Judges the command, has its cell built while the decision is written down, and lets it start when
/// that is on the disk. An error of the outer kind leaves no log that could be ended.
async fn decide_and_run(
    chain: &mut Chain,
    (call, argv): (ToolCall, &[OsString]),
    begin_log: &dyn Fn() -> Result<AuditWriter, RunError>,
) -> Result<(Result<ExecOutcome, RunError>, AuditWriter), RunError> {
    let abort = chain.abort.clone();
    let _listening = signals::listen(&abort, AbortSignal::abort)?;
    let plan = plan(Arc::clone(&chain.cell), argv.to_vec());
    // A log is at hand before anything has an effect. Where judging has none, the cell is begun first.
    let early = match chain.judges_without_effect(call.request.tool().as_str()) {
        true => None,
        false => Some(begin_log()?),
    };
    let judged = chain.judge(call, &plan).await;
    let held = judged.spec().cloned().map(sandbox::hold);
    let mut log = match early {
        Some(log) => log,
        None => begin_log()?,
    };
    let ruling = match judged.record_start(chain, &mut log) {
        Ok(ruling) => ruling,
        Err(error) => return Ok((Err(error.into()), log)),
    };
    let outcome = match ruling {
        Ruling::Approved(approved) => run_approved(*approved, held, &abort, &mut log).await,
        Ruling::Denied(denied) => Ok(ExecOutcome::Denied(denied)),
    };
    Ok((outcome, log))
}

/// How the command's cell is made: its streams are the caller's, who may want all of its output.
fn plan(
    base: Arc<CellBase>,
    argv: Vec<OsString>,
) -> impl Fn(&ToolCall, &[PathBuf]) -> Option<SandboxSpec> {
    move |_call, approved| {
        let stdin = if relay::has_no_input() { Stdin::Empty } else { Stdin::Pipe };
        let mut spec = base.spec(Program::Exec { argv: argv.clone(), stdin }, approved);
        spec.limits.output_head_bytes = 0;
        spec.limits.output_tail_bytes = 0;
        spec.limits.output_total_bytes = None;
        Some(spec)
    }
}

async fn run_approved(
    approved: Approved,
    held: Option<Held>,
    abort: &AbortSignal,
    log: &mut AuditWriter,
) -> Result<ExecOutcome, RunError> {
    let id = approved.subject().call.id.clone();
    let for_cell = abort.clone();
    let ran = tokio::task::spawn_blocking(move || run_through(approved, held, &for_cell)).await;
    let finished = ran.map_err(|_panicked| std::io::Error::other("the command's thread ended"))?;
    // The end of the run follows at once.
    log.append_unflushed(&Body::Outcome(Box::new(outcome(id, &finished))))?;
    let finished = finished?;
    let exit = exit_of(&finished, abort.cause());
    Ok(ExecOutcome::Ran { exit, enforced: finished.enforced })
}

/// Runs the command with our streams joined to its own through pipes: it never holds a descriptor of
/// ours, least of all a terminal.
fn run_through(
    approved: Approved,
    held: Option<Held>,
    abort: &AbortSignal,
) -> Result<Finished, RunError> {
    let (_subject, spec, _receipt) = approved.into_parts();
    // The plan above gives each command one.
    let spec = spec.ok_or_else(|| std::io::Error::other("the command has no cell"))?;
    // What was approved is what is held: both are the one value that the chain planned.
    let held = held.filter(|held| Arc::ptr_eq(&spec, held.spec()));
    let running = held.map_or_else(|| sandbox::launch(&spec), Held::release);
    let mut running = running.map_err(not_launched)?;
    let stderr = running.take_stderr();
    let (stdin, stdout) = running.take_pipes();
    if let Some(stdin) = stdin {
        // Ends with the process: nobody waits for a writer that the command does not read.
        drop(std::thread::spawn(move || relay::input(stdin)));
    }
    let relaying = std::thread::spawn(move || relay::output(stdout, stderr));
    let finished = running.wait(abort.for_cell());
    // The tree is gone, so the pipes are at their end.
    drop(relaying.join());
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
    let arguments = BashArguments { command, cwd: None, timeout_ms: None, background: None };
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
    let hidden = sockets::told(&sockets::close(&mut cell, lost.is_empty())?);
    let unseen = hard_links::unseen(&links).into_iter().chain(hidden).reduce(|a, b| a + "; " + &b);
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
            environment: policy.environment().names(),
            input: if relay::has_no_input() { StandardInput::Empty } else { StandardInput::Stream },
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
