//! A run in memory and a temporary directory: a scripted model, the built-in policy `readonly`, real
//! journal and log. Calls are refused or rejected, never carried out: the test program is no cell.

use crate::agent::background::BackgroundQueue;
use crate::agent::events::{Event, Listener, RunResult};
use crate::agent::executor::Executor;
use crate::agent::settings::{AgentSettings, Budget};
use crate::agent::{Agent, Parts, Start};
use crate::audit::record::{
    Body, PolicyRecord, PolicySourceRecord, Record, Session as SessionRecord,
};
use crate::audit::{AuditWriter, Redactor};
use crate::base::clock::Clock;
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use crate::call::request::ToolName;
use crate::chain::Chain;
use crate::chain::abort::AbortSignal;
use crate::chain::cell::CellBase;
use crate::chain::permission::{Permission, Prompter};
use crate::chain::subject::Setting;
use crate::model::{
    Endpoint, HttpOptions, Model, ModelChoice, ModelConfig, Price, ProviderTable, Recording,
    RetryPolicy, Timer,
};
use crate::policy::{self, Places};
use crate::sandbox::{Identity, Namespaces};
use crate::session::{
    ConfigurationSnapshot, CurrentConfiguration, EXTENSION, Header, Journal, PolicyPin,
    RecoverMode, Replay, RunContext, SessionState, SnapshotTool, ToolContract, reduce,
};
use crate::tools::definitions::definitions;
use crate::tools::memory::FileMemory;
use crate::tools::toolbox::Toolbox;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a run is made from; the fields may be changed before [`Rig::run`].
pub(super) struct Rig {
    pub(super) place: tempfile::TempDir,
    pub(super) budget: Budget,
    pub(super) price: Option<Price>,
    pub(super) context_window: Option<u64>,
    pub(super) max_tokens: u32,
    pub(super) shows_pieces: bool,
    pub(super) background: BackgroundQueue,
    pub(super) abort: AbortSignal,
    pub(super) recording: Option<Arc<Recording>>,
    pub(super) executor: Executor,
    pub(super) delays: Arc<Mutex<Vec<Duration>>>,
    /// Called with every event.
    pub(super) watch: Option<Listener>,
    session: Id,
}

/// What came of a run.
pub(super) struct Ran {
    pub(super) result: RunResult,
    pub(super) events: Vec<Event>,
    pub(super) state: SessionState,
    pub(super) records: Vec<Body>,
}

impl Rig {
    pub(super) fn new() -> Self {
        Self {
            place: tempfile::tempdir().unwrap(),
            budget: Budget::default(),
            price: None,
            context_window: None,
            max_tokens: 1_000,
            shows_pieces: false,
            background: BackgroundQueue::default(),
            abort: AbortSignal::new(),
            recording: None,
            executor: Executor::default(),
            delays: Arc::default(),
            watch: None,
            session: Id::new(),
        }
    }

    /// Runs `task` in a new session with a model that answers `script`.
    pub(super) fn run(&mut self, task: &str, script: &str) -> Ran {
        self.run_with(script_model(script), Start::Task(task.to_owned()))
    }

    /// Goes on with the journal as it is.
    pub(super) fn resume(&mut self, script: &str) -> Ran {
        self.run_with(script_model(script), Start::Interrupted)
    }

    pub(super) fn run_with(&mut self, model: Model, start: Start) -> Ran {
        let (agent, events) = self.agent(model);
        let result = block_on(agent.run(start));
        self.ran(result, events)
    }

    pub(super) fn ran(&self, result: RunResult, events: Rc<RefCell<Vec<Event>>>) -> Ran {
        let events = events.take();
        let state = reduce(&std::fs::read(self.journal()).unwrap()).unwrap();
        let log = self.place.path().join("audit");
        let log = crate::audit::log_path(&log, &self.session);
        let log = std::fs::read(log).unwrap();
        let lines = log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let records = lines.map(|line| Record::from_line(line).unwrap().body).collect();
        Ran { result, events, state, records }
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.place.path().join("journal.jsonl")
    }

    pub(super) fn agent(&mut self, model: Model) -> (Agent, Rc<RefCell<Vec<Event>>>) {
        let events: Rc<RefCell<Vec<Event>>> = Rc::default();
        let (kept, mut watch) = (Rc::clone(&events), self.watch.take());
        let listener = Box::new(move |event: &Event| {
            if let Some(watch) = &mut watch {
                watch(event);
            }
            kept.borrow_mut().push(event.clone());
        });
        let settings = self.settings(&model);
        let audit = self.place.path().join("audit");
        std::fs::create_dir_all(&audit).unwrap();
        let redactor = Redactor::new(&[]);
        let parts = Parts {
            session: self.session.clone(),
            context: context(),
            journal: self.open_journal(&settings),
            settings,
            model: Arc::new(model),
            chain: self.chain(),
            toolbox: Arc::new(Toolbox {
                cell: Arc::new(self.cell()),
                outputs: None,
                files: FileMemory::default(),
                jobs: crate::tools::jobs::Jobs::new(0, None),
            }),
            executor: self.executor.clone(),
            log: self.began(AuditWriter::open(&audit, &self.session, redactor, Clock::System)),
            background: self.background.clone(),
            listener,
            recording: self.recording.clone(),
            agents_file: false,
            scratch: None,
        };
        (Agent::new(parts), events)
    }

    /// A log must begin with the run.
    fn began(&self, log: Result<AuditWriter, crate::audit::AuditError>) -> AuditWriter {
        let mut log = log.unwrap();
        let text = Untrusted::new(policy::built_in("readonly").unwrap());
        let source = PolicySourceRecord {
            name: Untrusted::new("readonly"),
            layer: "built-in".to_owned(),
            part: 0,
            given: true,
            text,
        };
        let record = SessionRecord {
            session: self.session.clone(),
            program: "test".to_owned(),
            resumed: self.journal().exists(),
            uid: 1,
            login: None,
            host: Untrusted::new("h"),
            pid: 1,
            role: Untrusted::new("none"),
            headless: true,
            places: std::collections::BTreeMap::new(),
            policy: PolicyRecord { digest: self.policy().set().digest(), sources: vec![source] },
            tools: Vec::new(),
            model: Untrusted::new("test"),
            enforced: serde_json::Value::Null,
            warnings: Vec::new(),
        };
        log.append(&Body::Session(Box::new(record))).map(drop).unwrap();
        log
    }

    fn open_journal(&self, settings: &AgentSettings) -> Journal {
        let path = self.journal();
        if !path.exists() {
            let header = Header {
                id: self.session.clone(),
                created_at: 1,
                cwd: "/w".into(),
                provider: "script".into(),
                model: "test".into(),
                environment_identity: "/w".into(),
                extensions: vec![EXTENSION.into()],
            };
            return Journal::create(&path, &header, Clock::System).unwrap();
        }
        let (mut journal, _torn) = Journal::open(&path, Clock::System).unwrap();
        let current =
            CurrentConfiguration::new(&settings.snapshot, "/w".to_owned(), &settings.contracts);
        journal.recover(&current, RecoverMode::Continue).unwrap();
        journal
    }

    fn settings(&self, model: &Model) -> AgentSettings {
        let tools: BTreeSet<ToolName> = ToolName::ALL.into_iter().collect();
        let definitions = definitions(&tools);
        let contracts: Vec<ToolContract> = definitions
            .iter()
            .map(|definition| ToolContract {
                name: definition.name.clone(),
                description: definition.description.clone(),
                parameters: definition.parameters.clone(),
                replay: Replay::Never,
                replay_key: "test".to_owned(),
            })
            .collect();
        let snapshot = ConfigurationSnapshot {
            model: "test".into(),
            system_prompt_digest: Digest::zero(),
            tools: contracts
                .iter()
                .map(|contract| SnapshotTool {
                    name: contract.name.clone(),
                    definition_digest: contract.definition_digest(),
                })
                .collect(),
            adapter_identity: "test".into(),
            routing_identity: model.identity(),
            output_options_digest: Digest::zero(),
        };
        AgentSettings {
            system: "be brief".into(),
            enabled: tools.clone(),
            offered: tools,
            definitions,
            contracts,
            snapshot,
            temperature: 0.1,
            max_tokens: self.max_tokens,
            thinking: crate::model::ThinkingLevel::None,
            tool_calls: crate::model::ToolCallStyle::Native,
            context_window: self.context_window,
            native_search: false,
            price: self.price,
            budget: self.budget,
            retry: RetryPolicy {
                timer: Timer::Noted(Arc::clone(&self.delays)),
                ..RetryPolicy::default()
            },
            shows_pieces: self.shows_pieces,
        }
    }

    fn workspace(&self) -> PathBuf {
        let workspace = self.place.path().join("w");
        std::fs::create_dir_all(&workspace).unwrap();
        workspace
    }

    fn policy(&self) -> policy::BoundPolicy {
        let places = Places {
            workspace: self.workspace(),
            home: None,
            tmp: PathBuf::from("/tmp"),
            protected: Vec::new(),
        };
        let source = policy::built_in_source("readonly").unwrap();
        policy::load(vec![source], &policy::built_in_source).unwrap().bind(&places).unwrap()
    }

    fn cell(&self) -> CellBase {
        CellBase {
            plan: self.policy().cell(),
            workspace: self.workspace(),
            environment: Vec::new(),
            private_tmp: None,
            scratch: Vec::new(),
            scratch_files: Vec::new(),
            quarantine: None,
            identity: Identity::Caller,
            namespaces: Namespaces::Never,
            unwatched: false,
        }
    }

    fn chain(&self) -> Chain {
        Chain {
            abort: self.abort.clone(),
            policy: Arc::new(self.policy()),
            guardian: None,
            permission: Some(Permission::new(Prompter::Headless, None)),
            cell: Arc::new(self.cell()),
            lost: Vec::new(),
            setting: Arc::new(Setting {
                workspace: self.workspace(),
                home: None,
                role: None,
                task: String::new(),
                environment: crate::call::shell::EnvironmentNames::Any,
                input: crate::call::shell::StandardInput::Empty,
            }),
            person: "nobody".to_owned(),
        }
    }
}

impl Ran {
    /// How many events `wanted` says yes to.
    pub(super) fn count(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| wanted(event)).count()
    }

    /// The sentences of the log's repair records of this code.
    pub(super) fn repairs(&self, wanted: &str) -> Vec<String> {
        let repairs = self
            .records
            .iter()
            .filter_map(|body| if let Body::Repair(repair) = body { Some(repair) } else { None });
        let repairs = repairs.filter(|repair| repair.code.raw() == wanted);
        repairs.map(|repair| repair.sentence.raw().to_owned()).collect()
    }

    /// The contents of the conversation that no call is part of.
    pub(super) fn said(&self) -> Vec<String> {
        let messages = self.state.active_context.iter();
        messages.filter_map(|placed| placed.message.content().map(str::to_owned)).collect()
    }
}

fn context() -> RunContext {
    RunContext {
        operation_id: Id::new(),
        policy: PolicyPin { digest: Digest::zero(), audit_sequence: None },
        role: "none".to_owned(),
        tools: Vec::new(),
        sandbox: "none".to_owned(),
        parent: None,
    }
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(super) fn script_model(text: &str) -> Model {
    Model::connect(ModelConfig::Script { name: "test".to_owned(), text: text.to_owned() }).unwrap()
}

/// A model on the network that is never reached.
pub(super) fn network_model(name: &str) -> Model {
    let table = ProviderTable::built_in().unwrap();
    let choice = ModelChoice::parse(name).unwrap();
    let endpoint: Endpoint = table.resolve(&choice, Some("http://127.0.0.1:9/v1")).unwrap();
    let key = Some(crate::base::secret::Secret::new("k"));
    let options = HttpOptions::default();
    Model::connect(ModelConfig::Http { endpoint: Box::new(endpoint), key, options }).unwrap()
}
