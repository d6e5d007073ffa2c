//! The start of a new session, in the order in which failures cost least: arguments, policy, places,
//! state directory, cell, model, and only then files that remain.

use super::cell::{self, CellInputs};
use super::environment::Environment;
use super::error::RunError;
use super::memory::Memory;
use super::model::{self, ModelName};
use super::opening::{self, RunFacts, init, run_context, session_record, unknown_outcome};
use super::options::{check_prices, check_role, guardian, permission, person, settings, unwatched};
use super::{RunConfig, hard_links, policies, sockets, workspace};
use crate::agent::Parts;
use crate::agent::background::BackgroundQueue;
use crate::agent::events::Listener;
use crate::agent::executor::Executor;
use crate::agent::settings::AgentSettings;
use crate::audit::record::Body;
use crate::audit::{AuditWriter, Redactor};
use crate::base::clock::Clock;
use crate::base::ids::Id;
use crate::chain::Chain;
use crate::chain::abort::AbortSignal;
use crate::chain::cell::CellBase;
use crate::chain::guardian::Guardian;
use crate::chain::subject::Setting;
use crate::model::Model;
use crate::policy::{BoundPolicy, Places, PolicySet};
use crate::sandbox::{Enforced, probe};
use crate::session::{Header, Journal, Scratch, SessionDirectory, Store};
use crate::tools::jobs::Jobs;
use crate::tools::toolbox::{OutputDirectory, Toolbox};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where this machine has temporary files, and a cell its own.
const TMP: &str = "/tmp";

/// What stands before any session: where, and under which rules.
#[derive(Debug)]
pub struct Grounds {
    /// The workspace, resolved.
    pub workspace: PathBuf,
    /// Sessions.
    pub store: Store,
    /// The state directory.
    pub state: PathBuf,
    /// The policy, bound to its places.
    pub policy: Arc<BoundPolicy>,
}

/// Resolves the workspace and the state directory and loads the policy; `set` replaces the files of
/// the configuration by a set that is loaded already.
///
/// # Errors
/// [`RunError`] for whatever cannot be used.
pub fn grounds(config: &RunConfig, set: Option<PolicySet>) -> Result<Grounds, RunError> {
    let workspace = workspace::resolve(config.workspace.as_deref(), &config.environment)?;
    let set = match set {
        Some(set) => set,
        None => policies::load(&config.policies, Some(&workspace), &config.environment)?,
    };
    let state = state_directory(config.state_directory.as_deref(), &config.environment)?;
    let store = Store::open(&state, &[&workspace])?;
    store.sweep_scratch(Path::new(TMP));
    let home = config.home.clone().or_else(|| config.environment.home());
    let home = home.map(|home| std::fs::canonicalize(&home).unwrap_or(home));
    let state = std::fs::canonicalize(&state)?;
    let places = Places {
        workspace: workspace.clone(),
        home,
        tmp: PathBuf::from(TMP),
        protected: policies::protected(&state, &workspace, &set, &config.environment),
    };
    let policy = Arc::new(set.bind(&places)?);
    Ok(Grounds { workspace, store, state, policy })
}

/// The state directory: what is given, or what XDG says.
///
/// # Errors
/// [`RunError::Usage`] if neither is there.
pub fn state_directory(
    given: Option<&Path>,
    environment: &Environment,
) -> Result<PathBuf, RunError> {
    let chosen = given.map(Path::to_owned).or_else(|| environment.state_directory());
    let chosen = chosen.ok_or_else(|| {
        RunError::Usage("neither HOME nor XDG_STATE_HOME is set; give --state-dir DIR".to_owned())
    })?;
    Ok(std::path::absolute(chosen)?)
}

/// Whom a run listens to, whom it tells, and what it remembers of earlier ones.
pub(super) struct Surroundings<'a> {
    pub(super) abort: &'a AbortSignal,
    pub(super) memory: &'a Memory,
    pub(super) listener: Listener,
}

/// Makes a new session and everything around it.
pub(super) fn new_session(
    config: &RunConfig,
    task: &str,
    surroundings: Surroundings<'_>,
) -> Result<Parts, RunError> {
    if task.trim().is_empty() {
        return Err(RunError::Usage("the task is empty; say what to do".to_owned()));
    }
    let grounds = grounds(config, None)?;
    check_role(&grounds.policy, config.role.as_deref())?;
    let (model, name) = model::connect(&config.model, &config.environment)?;
    let prepared = prepare(config, &grounds, model)?;
    let header = header(&grounds.workspace, &name);
    // A machine that cannot hold the policy is told before anything is left behind.
    let enforced = enforced(config, &grounds)?;
    let (directory, journal) = grounds.store.create(header, Clock::System)?;
    let opened = Opened { grounds, directory, journal, prepared, task, enforced, resumed: false };
    assemble(config, opened, surroundings)
}

/// What a run needs beside its session; it leaves nothing on the disk.
pub(super) struct Prepared {
    model: Arc<Model>,
    settings: AgentSettings,
    guardian: Option<Guardian>,
}

/// Finds whatever is wrong with the configuration before a session is made or changed.
pub(super) fn prepare(
    config: &RunConfig,
    grounds: &Grounds,
    model: Arc<Model>,
) -> Result<Prepared, RunError> {
    let settings = settings(config, &grounds.policy, &grounds.workspace, &model)?;
    let guardian = guardian(config, &grounds.policy)?;
    let reviewing = guardian.as_ref().map(|guardian| &*guardian.model);
    check_prices(config, &grounds.policy, [Some(&model), reviewing])?;
    Ok(Prepared { guardian, settings, model })
}

/// What the kernel enforces for this policy here, as a cell shows in which acts of attack fail.
pub(super) fn enforced(config: &RunConfig, grounds: &Grounds) -> Result<Enforced, RunError> {
    let place = tempfile::Builder::new().prefix("stoplog-probe-").tempdir()?;
    let (tmp, canary) = (place.path().join("tmp"), place.path().join("canary"));
    std::fs::create_dir(&tmp)?;
    probe::put(&canary, probe::CANARY)?;
    let inputs = CellInputs {
        environment: &config.environment,
        workspace: &grounds.workspace,
        private_tmp: Some(tmp),
        quarantine: None,
        namespaces: config.namespaces,
        unwatched: unwatched(config),
    };
    cell::prove(&cell::base(&grounds.policy, inputs)?, &canary)
}

/// A session whose journal is open.
pub(super) struct Opened<'a> {
    pub(super) grounds: Grounds,
    pub(super) directory: SessionDirectory,
    pub(super) journal: Journal,
    pub(super) prepared: Prepared,
    pub(super) task: &'a str,
    /// What the kernel holds the cells of the run to.
    pub(super) enforced: Enforced,
    pub(super) resumed: bool,
}

/// Closes what leads past the policy inside of what it grants, and says what was found.
fn close_detours(cell: &mut CellBase, mount_view: bool) -> io::Result<Vec<String>> {
    let links = hard_links::close(cell, hard_links::RUN_ENTRIES_MAX)?;
    let hidden = sockets::close(cell, mount_view)?;
    let told = hard_links::recorded(&links, mount_view).into_iter();
    Ok(told.chain(sockets::told(&hidden)).collect())
}

/// Puts the parts of a run together and writes the first records.
pub(super) fn assemble(
    config: &RunConfig,
    opened: Opened<'_>,
    surroundings: Surroundings<'_>,
) -> Result<Parts, RunError> {
    let Surroundings { abort, memory, mut listener } = surroundings;
    let Opened { grounds, directory, journal, prepared, task, enforced, resumed } = opened;
    let Prepared { model, settings, guardian } = prepared;
    let policy = Arc::clone(&grounds.policy);
    let Temporary { scratch, directory: tmp, shown } = temporary(&grounds, &directory, &enforced)?;
    let mut cell = cell::base(
        &policy,
        CellInputs {
            environment: &config.environment,
            workspace: &grounds.workspace,
            private_tmp: Some(tmp.clone()),
            quarantine: Some(directory.quarantine()),
            namespaces: config.namespaces,
            unwatched: unwatched(config),
        },
    )?;
    let warnings = close_detours(&mut cell, enforced.mount_view)?;
    let cell = Arc::new(cell);
    let session = directory.id().clone();
    let mut log = open_log(&grounds, &session, if resumed { Log::There } else { Log::New })?;
    let facts = RunFacts {
        resumed,
        role: opening::role(config, &policy),
        tools: settings.offered.iter().map(|tool| tool.as_str().to_owned()).collect(),
        model: model.identity(),
        enforced: serde_json::to_value(&enforced).unwrap_or_default(),
        warnings,
    };
    let record = session_record(config, &grounds, &session, &facts);
    let receipt = log.append(&Body::Session(Box::new(record)))?;
    for call in log.take_unfinished() {
        log.append(&Body::Outcome(Box::new(unknown_outcome(call)))).map(drop)?;
    }
    let context = run_context(policy.set(), &facts, enforced.to_string(), receipt.sequence());
    listener(&init(&session, &grounds.workspace, policy.set(), &facts, &enforced));
    let jobs = Jobs::new(journal.state().extension.jobs.len(), policy.limits().jobs);
    let toolbox = toolbox(Arc::clone(&cell), (&tmp, &shown), jobs, memory)?;
    let chain = Chain {
        abort: abort.clone(),
        guardian,
        permission: Some(permission(config, &policy).with(memory.approvals.clone())),
        cell,
        lost: enforced.lost.clone(),
        setting: Arc::new(setting(config, &grounds, task)),
        person: person(&config.environment),
        policy,
    };
    Ok(Parts {
        session,
        context,
        settings,
        model,
        chain,
        toolbox: Arc::new(toolbox),
        executor: Executor::default(),
        journal,
        log,
        background: BackgroundQueue::default(),
        recording: config.recording.clone(),
        agents_file: config.agents_file && !resumed && has_agents_file(&grounds.workspace),
        scratch,
        listener,
    })
}

/// What the tools of the run share; the cell shows its temporary directory as `shown`.
fn toolbox(
    cell: Arc<CellBase>,
    (tmp, shown): (&Path, &Path),
    jobs: Jobs,
    memory: &Memory,
) -> Result<Toolbox, RunError> {
    let outputs = OutputDirectory::open(tmp, shown)?;
    Ok(Toolbox { cell, outputs: Some(outputs), files: memory.files.clone(), jobs })
}

/// Where the calls of a run are judged.
fn setting(config: &RunConfig, grounds: &Grounds, task: &str) -> Setting {
    Setting {
        workspace: grounds.workspace.clone(),
        home: grounds.policy.places().home.clone(),
        role: config.role.clone(),
        task: task.to_owned(),
        environment: grounds.policy.environment().names(),
        input: crate::call::shell::StandardInput::Empty,
    }
}

/// Where the cells of a run have their temporary files.
struct Temporary {
    /// What goes with the run, if it does.
    scratch: Option<Scratch>,
    directory: PathBuf,
    /// Its path inside.
    shown: PathBuf,
}

/// What a view shows as `/tmp` stays with the session; without one its path would be refused as the
/// state directory's, and a cell of another user could not reach it.
fn temporary(
    grounds: &Grounds,
    session: &SessionDirectory,
    enforced: &Enforced,
) -> Result<Temporary, RunError> {
    if enforced.mount_view {
        let (directory, shown) = (session.tmp(), PathBuf::from(TMP));
        return Ok(Temporary { scratch: None, directory, shown });
    }
    let scratch = grounds.store.scratch(&grounds.policy.places().tmp)?;
    let directory = scratch.path().to_owned();
    Ok(Temporary { scratch: Some(scratch), shown: directory.clone(), directory })
}

/// Only whether there is such a file; it is opened in a cell alone.
fn has_agents_file(workspace: &Path) -> bool {
    let file = workspace.join(crate::agent::agents_file::NAME);
    std::fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_file())
}

/// Whether a session has a log already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// Its id was just made.
    New,
    /// It has one, which is verified before it is continued; one that is gone is a damage too.
    There,
}

pub(super) fn open_log(grounds: &Grounds, session: &Id, log: Log) -> Result<AuditWriter, RunError> {
    let directory = audit_directory(&grounds.state)?;
    let patterns = grounds.policy.audit().redact.iter();
    let patterns: Result<Vec<_>, _> = patterns.map(|pattern| regex::Regex::new(pattern)).collect();
    let redactor = patterns.map(|patterns| Redactor::new(&patterns)).map_err(|error| {
        RunError::Usage(format!("a redaction pattern of `[audit]` cannot be used: {error}"))
    })?;
    let open = match log {
        Log::New => AuditWriter::create,
        Log::There => AuditWriter::open,
    };
    let writer = open(&directory, session, redactor, Clock::System)?;
    Ok(match grounds.policy.audit().checkpoint_every {
        Some(records) => writer.with_checkpoint_every(records),
        None => writer,
    })
}

/// Where the logs lie; made with mode 0700 if it is missing.
///
/// # Errors
/// The system's.
pub fn audit_directory(state: &Path) -> Result<PathBuf, RunError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let directory = state.join("audit");
    match std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory) {
        Ok(()) => Ok(directory),
        Err(source) => Err(RunError::AuditDirectory { path: directory, source }),
    }
}

fn header(workspace: &Path, name: &ModelName) -> Header {
    let workspace = workspace.to_string_lossy().into_owned();
    Header {
        id: Id::new(),
        created_at: 0,
        cwd: workspace.clone(),
        provider: name.provider.clone(),
        model: name.model.clone(),
        environment_identity: workspace,
        extensions: Vec::new(),
    }
}
