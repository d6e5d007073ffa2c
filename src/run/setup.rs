//! The start of a new session, in the order in which failures cost least: arguments, policy, places,
//! state directory, cell, model, and only then files that remain.

use super::cell::{self, CellInputs};
use super::environment::Environment;
use super::error::RunError;
use super::model::{self, ModelName};
use super::{RunConfig, policies, workspace};
use crate::agent::Parts;
use crate::agent::background::BackgroundQueue;
use crate::agent::events::{Event, Listener};
use crate::agent::prompt;
use crate::agent::settings::{AgentSettings, Budget};
use crate::audit::record::{
    Body, Exit as RecordedExit, Outcome as OutcomeRecord, PolicyRecord, PolicySourceRecord,
    Session as SessionRecord,
};
use crate::audit::{AuditWriter, Redactor};
use crate::base::clock::Clock;
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::json::canonical;
use crate::base::limits;
use crate::base::text::Untrusted;
use crate::call::request::ToolName;
use crate::chain::Chain;
use crate::chain::abort::AbortSignal;
use crate::chain::guardian::Guardian;
use crate::chain::permission::{Permission, Prompter};
use crate::chain::subject::Setting;
use crate::model::{Model, RetryPolicy, ToolCallStyle, ToolDefinition};
use crate::policy::{BoundPolicy, Places, PolicySet, Remember, RoleVerdict};
use crate::sandbox::Enforced;
use crate::session::{
    ConfigurationSnapshot, Header, Journal, PolicyPin, Replay, RunContext, SessionDirectory,
    SnapshotTool, Store, ToolContract,
};
use crate::tools::definitions::definitions;
use crate::tools::toolbox::{OutputDirectory, Toolbox};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Version of what the built-in tools do; a changed meaning gets a new number, so that a resumed
/// session does not repeat a call under another meaning.
const TOOL_VERSION: &str = "v1";

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
    let home = config.home.clone().or_else(|| config.environment.home());
    let home = home.map(|home| std::fs::canonicalize(&home).unwrap_or(home));
    let state = std::fs::canonicalize(&state)?;
    let places = Places {
        workspace: workspace.clone(),
        home,
        tmp: PathBuf::from("/tmp"),
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

/// Makes a new session and everything around it.
pub(super) fn new_session(
    config: &RunConfig,
    task: &str,
    abort: &AbortSignal,
    listener: Listener,
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
    let opened = Opened { grounds, directory, journal, prepared, task, enforced, resumed: None };
    assemble(config, opened, abort, listener)
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
    Ok(Prepared { guardian: guardian(config, &grounds.policy)?, settings, model })
}

/// What the kernel enforces for this policy here, from a cell that does nothing.
pub(super) fn enforced(config: &RunConfig, grounds: &Grounds) -> Result<Enforced, RunError> {
    let place = tempfile::Builder::new().prefix("stoplog-probe-").tempdir()?;
    let inputs = CellInputs {
        environment: &config.environment,
        workspace: &grounds.workspace,
        private_tmp: Some(place.path().to_owned()),
        quarantine: None,
        namespaces: config.namespaces,
    };
    cell::probe(&cell::base(&grounds.policy, inputs)?)
}

/// The supervisor died while the call ran: what it did is not known, and the log says so.
fn unknown_outcome(call: Id) -> OutcomeRecord {
    OutcomeRecord {
        call,
        exit: RecordedExit::Interrupted,
        stdout_bytes: 0,
        stderr_bytes: 0,
        truncated: false,
        result: None,
        files_written: Vec::new(),
        limits_hit: Vec::new(),
        enforced: None,
        duration_ms: 0,
    }
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
    pub(super) resumed: Option<Interrupted>,
}

/// What the log of a resumed session says of calls in flight.
#[derive(Debug, Default)]
pub(super) struct Interrupted {
    /// Calls that were started and of whose end nothing is recorded.
    pub(super) calls: Vec<Id>,
}

/// Puts the parts of a run together and writes the first records.
pub(super) fn assemble(
    config: &RunConfig,
    opened: Opened<'_>,
    abort: &AbortSignal,
    mut listener: Listener,
) -> Result<Parts, RunError> {
    let Opened { grounds, directory, journal, prepared, task, enforced, resumed } = opened;
    let Prepared { model, settings, guardian } = prepared;
    let policy = Arc::clone(&grounds.policy);
    let cell = Arc::new(cell::base(
        &policy,
        CellInputs {
            environment: &config.environment,
            workspace: &grounds.workspace,
            private_tmp: Some(directory.tmp()),
            quarantine: Some(directory.quarantine()),
            namespaces: config.namespaces,
        },
    )?);
    let was_resumed = resumed.is_some();
    let session = directory.id().clone();
    let mut log = open_log(&grounds, &session)?;
    let facts = RunFacts {
        resumed: was_resumed,
        role: role(config, &policy),
        tools: settings.offered.iter().map(|tool| tool.as_str().to_owned()).collect(),
        model: model.identity(),
        enforced: serde_json::to_value(&enforced).unwrap_or_default(),
    };
    let record = session_record(config, &grounds, &session, &facts);
    let receipt = log.append(&Body::Session(Box::new(record)))?;
    for call in resumed.into_iter().flat_map(|interrupted| interrupted.calls) {
        log.append(&Body::Outcome(Box::new(unknown_outcome(call)))).map(drop)?;
    }
    let context = run_context(policy.set(), &facts, enforced.to_string(), receipt.sequence());
    listener(&init(&session, &grounds.workspace, policy.set(), &facts, &enforced));
    let outputs = OutputDirectory::open(&directory.tmp(), Path::new("/tmp"))?;
    let chain = Chain {
        abort: abort.clone(),
        guardian,
        permission: Some(permission(config, &policy)),
        cell: Arc::clone(&cell),
        setting: Arc::new(Setting {
            workspace: grounds.workspace.clone(),
            home: policy.places().home.clone(),
            role: config.role.clone(),
            task: task.to_owned(),
        }),
        person: person(&config.environment),
        policy,
    };
    Ok(Parts {
        session,
        context,
        settings,
        model,
        chain,
        toolbox: Arc::new(Toolbox::new(cell, Some(outputs))),
        journal,
        log,
        background: BackgroundQueue::default(),
        recording: config.recording.clone(),
        agents_file: config.agents_file && !was_resumed && has_agents_file(&grounds.workspace),
        in_flight: Vec::new(),
        listener,
    })
}

/// Only whether there is such a file; it is opened in a cell alone.
fn has_agents_file(workspace: &Path) -> bool {
    let file = workspace.join(crate::agent::agents_file::NAME);
    std::fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_file())
}

pub(super) fn open_log(grounds: &Grounds, session: &Id) -> Result<AuditWriter, RunError> {
    let directory = audit_directory(&grounds.state)?;
    let patterns = grounds.policy.audit().redact.iter();
    let patterns: Result<Vec<_>, _> = patterns.map(|pattern| regex::Regex::new(pattern)).collect();
    let redactor = patterns.map(|patterns| Redactor::new(&patterns)).map_err(|error| {
        RunError::Usage(format!("a redaction pattern of `[audit]` cannot be used: {error}"))
    })?;
    Ok(AuditWriter::open(&directory, session, redactor, Clock::System)?)
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

/// A role that no layer knows would be refused at every call; better said at once.
pub(super) fn check_role(policy: &BoundPolicy, role: Option<&str>) -> Result<(), RunError> {
    let known = policy.roles();
    match role {
        Some(role) if !known.contains(&role) => Err(RunError::Usage(format!(
            "role `{}` is not in the policy; it has {}",
            crate::base::text::escape(role),
            if known.is_empty() { "no roles".to_owned() } else { known.join(", ") }
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The tools that the host enables: all, or those that are named.
fn enabled(config: &RunConfig) -> Result<BTreeSet<ToolName>, RunError> {
    match &config.tools {
        None => Ok(ToolName::ALL.into_iter().collect()),
        Some(names) => names.iter().map(|name| tool(name)).collect(),
    }
}

/// What the role may not use is not offered to the model.
fn offered(
    enabled: &BTreeSet<ToolName>,
    config: &RunConfig,
    policy: &BoundPolicy,
) -> BTreeSet<ToolName> {
    let role = config.role.as_deref();
    let allowed = |tool: &&ToolName| policy.role_gate(role, tool.as_str()) == RoleVerdict::Pass;
    enabled.iter().filter(allowed).copied().collect()
}

fn tool(name: &str) -> Result<ToolName, RunError> {
    ToolName::parse(name).ok_or_else(|| {
        let known: Vec<&str> = ToolName::ALL.iter().map(|tool| tool.as_str()).collect();
        let name = crate::base::text::escape(name);
        RunError::Usage(format!("unknown tool `{name}`; known: {}", known.join(", ")))
    })
}

fn settings(
    config: &RunConfig,
    policy: &BoundPolicy,
    workspace: &Path,
    model: &Model,
) -> Result<AgentSettings, RunError> {
    let enabled = enabled(config)?;
    let offered = offered(&enabled, config, policy);
    let definitions = definitions(&offered);
    let contracts: Vec<ToolContract> = definitions.iter().map(contract).collect();
    let system = prompt::system(workspace, &offered);
    let temperature = config.temperature.unwrap_or(limits::TEMPERATURE);
    let max_tokens = config.max_tokens.unwrap_or(limits::OUTPUT_TOKENS_MAX);
    let mut options = json!({
        "temperature": temperature.to_string(),
        "maxTokens": max_tokens.to_string(),
        "thinking": config.thinking.as_str(),
    });
    if let (ToolCallStyle::Json, Some(options)) = (config.tool_calls, options.as_object_mut()) {
        options.insert("toolCalls".to_owned(), "json".into());
    }
    let snapshot_tools = contracts.iter().map(|contract| SnapshotTool {
        name: contract.name.clone(),
        definition_digest: contract.definition_digest(),
    });
    let snapshot = ConfigurationSnapshot {
        model: model.identity(),
        system_prompt_digest: Digest::of(system.as_bytes()),
        tools: snapshot_tools.collect(),
        adapter_identity: "stoplog:v1".to_owned(),
        routing_identity: model.identity(),
        output_options_digest: Digest::of(canonical(&options).as_bytes()),
    };
    Ok(AgentSettings {
        system,
        definitions,
        enabled,
        offered,
        contracts,
        snapshot,
        temperature,
        max_tokens,
        thinking: config.thinking,
        tool_calls: config.tool_calls,
        context_window: model.endpoint().and_then(|endpoint| endpoint.context_window),
        native_search: false,
        budget: budget(config, policy),
        retry: RetryPolicy::default(),
        shows_pieces: config.shows_pieces,
    })
}

fn contract(definition: &ToolDefinition) -> ToolContract {
    ToolContract {
        name: definition.name.clone(),
        description: definition.description.clone(),
        parameters: definition.parameters.clone(),
        replay: if definition.name == "read" { Replay::Safe } else { Replay::Never },
        replay_key: format!("builtin:{}:{TOOL_VERSION}", definition.name),
    }
}

/// The narrower of what the command line and the policy say.
fn budget(config: &RunConfig, policy: &BoundPolicy) -> Budget {
    let written = policy.limits();
    let by_policy = written.iterations.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    let asked = config.max_iterations.or(by_policy).unwrap_or(limits::ITERATIONS_MAX);
    Budget {
        iterations: by_policy.map_or(asked, |most| asked.min(most)),
        tool_calls: written.tool_calls,
        tokens: written.tokens,
        time: written.run_seconds.map(Duration::from_secs),
        history: limits::HISTORY_MESSAGES_MAX,
    }
}

pub(super) fn guardian(
    config: &RunConfig,
    policy: &BoundPolicy,
) -> Result<Option<Guardian>, RunError> {
    let written = policy.guardian();
    if written.enabled != Some(true) {
        return Ok(None);
    }
    let mut wish = config.model.clone();
    if let Some(name) = &written.model {
        // The reviewer is the policy's choice; an address that was given for the agent's model is
        // not meant for it.
        wish = model::ModelWish { name: Some(name.clone()), ..model::ModelWish::default() };
        wish.ca_file.clone_from(&config.model.ca_file);
    }
    let (model, _) = model::connect(&wish, &config.environment)?;
    Ok(Some(Guardian {
        model,
        time_max: written.timeout_ms.map(Duration::from_millis),
        ask_on_failure: false,
    }))
}

pub(super) fn permission(config: &RunConfig, policy: &BoundPolicy) -> Permission {
    let prompter = if config.headless { Prompter::Headless } else { Prompter::Terminal };
    let stage =
        Permission::new(prompter, policy.permission().timeout_ms.map(Duration::from_millis));
    if policy.permission().remember == Some(Remember::Never) { stage.that_forgets() } else { stage }
}

/// Who is at the terminal, for grant records.
pub(super) fn person(environment: &Environment) -> String {
    let name =
        environment.text("USER").or_else(|| environment.text("LOGNAME")).unwrap_or("unknown");
    format!("{name} (uid {})", rustix::process::getuid().as_raw())
}

/// The role that counts, by name.
pub(super) fn role(config: &RunConfig, policy: &BoundPolicy) -> String {
    config.role.as_deref().or_else(|| policy.default_role()).unwrap_or("none").to_owned()
}

/// What differs between the runs of one configuration.
pub(super) struct RunFacts {
    pub(super) resumed: bool,
    pub(super) role: String,
    pub(super) tools: Vec<String>,
    pub(super) model: String,
    pub(super) enforced: serde_json::Value,
}

/// The first record of a run.
pub(super) fn session_record(
    config: &RunConfig,
    grounds: &Grounds,
    session: &Id,
    facts: &RunFacts,
) -> SessionRecord {
    let places = grounds.policy.places();
    let mut shown = BTreeMap::from([
        ("workspace".to_owned(), Untrusted::new(places.workspace.to_string_lossy())),
        ("tmp".to_owned(), Untrusted::new(places.tmp.to_string_lossy())),
        ("state".to_owned(), Untrusted::new(grounds.state.to_string_lossy())),
    ]);
    if let Some(home) = &places.home {
        shown.insert("home".to_owned(), Untrusted::new(home.to_string_lossy()));
    }
    SessionRecord {
        session: session.clone(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        resumed: facts.resumed,
        uid: rustix::process::getuid().as_raw(),
        login: config.environment.text("USER").map(Untrusted::new),
        host: Untrusted::new(rustix::system::uname().nodename().to_string_lossy()),
        pid: std::process::id(),
        role: Untrusted::new(facts.role.as_str()),
        headless: config.headless,
        places: shown,
        policy: policy_record(grounds.policy.set()),
        tools: facts.tools.iter().map(Untrusted::new).collect(),
        model: Untrusted::new(facts.model.as_str()),
        enforced: facts.enforced.clone(),
    }
}

fn run_context(
    policy: &PolicySet,
    facts: &RunFacts,
    cell: String,
    audit_sequence: u64,
) -> RunContext {
    RunContext {
        operation_id: Id::new(),
        policy: PolicyPin { digest: policy.digest(), audit_sequence: Some(audit_sequence) },
        role: facts.role.clone(),
        tools: facts.tools.clone(),
        sandbox: cell,
        parent: None,
    }
}

fn init(
    session: &Id,
    workspace: &Path,
    policy: &PolicySet,
    facts: &RunFacts,
    cell: &Enforced,
) -> Event {
    let mut shown = facts.enforced.clone();
    if let Some(object) = shown.as_object_mut() {
        object.insert("summary".to_owned(), cell.to_string().into());
    }
    Event::Init {
        session: session.clone(),
        model: facts.model.clone(),
        policy: policy.digest().to_string(),
        tools: facts.tools.clone(),
        workspace: workspace.to_string_lossy().into_owned(),
        role: facts.role.clone(),
        cell: shown,
    }
}

fn policy_record(set: &PolicySet) -> PolicyRecord {
    let parts = (0..).zip(set.parts());
    let sources = parts.flat_map(|(number, part)| {
        let roots = part.roots();
        part.files().into_iter().map(move |file| PolicySourceRecord {
            given: roots.iter().any(|root| root.name == file.name && root.digest == file.digest),
            part: number,
            name: Untrusted::new(file.name.as_str()),
            layer: file.layer.as_str().to_owned(),
            text: Untrusted::new(file.text.as_str()),
        })
    });
    PolicyRecord { digest: set.digest(), sources: sources.collect() }
}
