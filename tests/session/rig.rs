//! A session in a directory of its own, and short names for what the tests do with it.

use serde_json::{Map, Value, json};
use std::path::PathBuf;
use stoplog::base::clock::Clock;
use stoplog::base::digest::Digest;
use stoplog::base::ids::Id;
use stoplog::session::{
    CallPlace, ConfigurationSnapshot, Counters, CurrentConfiguration, Header, Journal, NewAnswer,
    Replay, SessionState, SnapshotTool, ToolContract, ToolOutcome,
};

pub(crate) const WORKSPACE: &str = "/home/ada/project";

pub(crate) struct Rig {
    pub(crate) journal: Journal,
    pub(crate) path: PathBuf,
    pub(crate) directory: tempfile::TempDir,
}

/// A directory in memory where there is one: the tests flush thousands of times.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn header(extensions: &[&str]) -> Header {
    Header {
        id: Id::new(),
        created_at: 1_700_000_000_000,
        cwd: WORKSPACE.to_owned(),
        provider: "script".to_owned(),
        model: "rehearsal".to_owned(),
        environment_identity: WORKSPACE.to_owned(),
        extensions: extensions.iter().map(ToString::to_string).collect(),
    }
}

pub(crate) fn rig() -> Rig {
    let directory = scratch();
    let path = directory.path().join("journal.jsonl");
    let header = header(&["stoplog/1"]);
    let journal = Journal::create(&path, &header, Clock::fixed(1_700_000_000_001)).unwrap();
    Rig { journal, path, directory }
}

pub(crate) fn contract(name: &str) -> ToolContract {
    let safe = name == "read";
    ToolContract {
        name: name.to_owned(),
        description: format!("the tool {name}"),
        parameters: json!({"type": "object"}),
        replay: if safe { Replay::Safe } else { Replay::Never },
        replay_key: format!("builtin:{name}:v1"),
    }
}

pub(crate) fn contracts() -> Vec<ToolContract> {
    ["read", "write", "bash"].map(contract).to_vec()
}

pub(crate) fn snapshot() -> ConfigurationSnapshot {
    ConfigurationSnapshot {
        model: "rehearsal".to_owned(),
        system_prompt_digest: Digest::of(b"You are careful."),
        tools: contracts()
            .iter()
            .map(|tool| SnapshotTool {
                name: tool.name.clone(),
                definition_digest: tool.definition_digest(),
            })
            .collect(),
        adapter_identity: "script:v1".to_owned(),
        routing_identity: "script:rehearsal".to_owned(),
        output_options_digest: Digest::of(b"{}"),
    }
}

pub(crate) fn current() -> CurrentConfiguration {
    CurrentConfiguration::new(&snapshot(), WORKSPACE.to_owned(), &contracts())
}

pub(crate) fn used(input: u64, output: u64) -> Counters {
    Counters { input, output, ..Counters::default() }
}

pub(crate) fn text(content: &str) -> NewAnswer {
    NewAnswer { content: Some(content.to_owned()), usage: used(7, 3), ..NewAnswer::default() }
}

/// An answer of calls, each an identifier, a name and arguments.
pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> NewAnswer {
    let own = |call: &(&str, &str, &str)| (call.0.to_owned(), call.1.to_owned(), call.2.to_owned());
    NewAnswer {
        tool_calls: calls.iter().map(own).collect(),
        usage: used(5, 2),
        ..NewAnswer::default()
    }
}

pub(crate) fn arguments(place: &CallPlace) -> Map<String, Value> {
    serde_json::from_str(&place.arguments).unwrap()
}

impl Rig {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }

    pub(crate) fn state(&self) -> &SessionState {
        self.journal.state()
    }

    /// Sends a request and settles it with `answer`.
    pub(crate) fn turn(&mut self, answer: NewAnswer) -> Vec<CallPlace> {
        self.journal.step_attempt(&snapshot()).unwrap();
        self.journal.assistant_settled(answer).unwrap()
    }

    pub(crate) fn start(&mut self, place: &CallPlace) -> Id {
        self.journal.tool_started(place, arguments(place), &contract(&place.name)).unwrap()
    }

    pub(crate) fn succeed(&mut self, started: &Id, content: &str) {
        let usage = Counters::default();
        let content = content.to_owned();
        self.journal.tool_result(started, ToolOutcome::Success, content, usage).unwrap();
    }

    /// A whole run: one turn with a call of each kind of fate, one with the answer.
    pub(crate) fn whole_run(&mut self, question: &str) -> Id {
        let run = self.journal.begin_run(question, None).unwrap();
        let places = self.turn(calls(&[
            ("a", "read", r#"{"path":"notes.txt"}"#),
            ("b", "bash", r#"{"command":"true"}"#),
        ]));
        for place in &places {
            let started = self.start(place);
            self.succeed(&started, "fine");
        }
        self.turn(text("It is done."));
        self.journal.operation_finished(None).unwrap();
        run
    }

    /// The journal as another process would open it after this one has ended.
    pub(crate) fn reopened(self) -> Self {
        let Self { journal, path, directory } = self;
        drop(journal);
        let (journal, torn) = Journal::open(&path, Clock::fixed(1_800_000_000_000)).unwrap();
        assert!(torn.is_empty());
        Self { journal, path, directory }
    }

    /// A copy of the session that ends after `bytes`.
    pub(crate) fn copy(bytes: &[u8]) -> Result<(Self, Vec<u8>), stoplog::session::SessionError> {
        let directory = scratch();
        let path = directory.path().join("journal.jsonl");
        write(&path, bytes);
        let (journal, torn) = Journal::open(&path, Clock::fixed(1_900_000_000_000))?;
        Ok((Self { journal, path, directory }, torn))
    }
}

pub(crate) fn write(path: &std::path::Path, bytes: &[u8]) {
    use std::io::Write as _;
    std::fs::File::create(path).unwrap().write_all(bytes).unwrap();
}

/// What all readers of the format agree on, and what our extensions add.
pub(crate) fn form(state: &SessionState) -> Value {
    json!([serde_json::to_value(state).unwrap(), serde_json::to_value(&state.extension).unwrap()])
}
