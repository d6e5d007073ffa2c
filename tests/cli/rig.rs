//! A place of its own for each test: home, workspace, state, policies and scripts, the binary started
//! in an environment that holds nothing else, and what came of it as values.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_stoplog");

/// A process that takes longer hangs.
const HANGS: Duration = Duration::from_secs(120);

/// The place.
pub(crate) struct Rig {
    root: TempDir,
}

/// How a process ended and what it said.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// A process that still runs.
#[derive(Debug)]
pub(crate) struct Live {
    child: Child,
    start: Instant,
    stdout: Option<Reader>,
    stderr: Option<Reader>,
}

type Reader = thread::JoinHandle<Vec<u8>>;

impl Rig {
    /// Not below `/tmp`, which a cell replaces by its own. The same directory for everybody: a run as
    /// an ordinary user must find it as well.
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("stoplog-cli-").tempdir_in("/var/tmp").unwrap();
        let rig = Self { root };
        for directory in [rig.home(), rig.work()] {
            fs::DirBuilder::new().mode(0o755).create(directory).unwrap();
        }
        rig
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A file of the workspace; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.work().join(name).exists()
    }

    /// Writes a file beside the workspace and gives its path.
    pub(crate) fn beside(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.root().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A policy that extends `workspace`.
    pub(crate) fn policy(&self, text: &str) -> String {
        self.beside("policy.toml", format!("version = 1\nextends = [\"workspace\"]\n{text}"))
    }

    /// A script, as the value of `--model`.
    pub(crate) fn script(&self, turns: &[Value]) -> String {
        let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
        format!("script/{}", self.beside("turns.jsonl", lines.join("\n")))
    }

    /// The program with nothing but a search path, the home directory and the state directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.program(
            PROGRAM,
            &[&["--state-dir", self.state().to_str().unwrap()], arguments].concat(),
        )
    }

    /// Any program in the same surroundings.
    pub(crate) fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir(self.root());
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.home());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn stoplog(&self, arguments: &[&str]) -> Done {
        Live::start(self.command(arguments)).end()
    }

    /// The arguments of a headless run that tells its events.
    pub(crate) fn arguments<'a>(&self, model: &'a str, more: &[&'a str]) -> Vec<String> {
        let work = self.work();
        let work = work.to_str().unwrap();
        let fixed = ["run", "--headless", "--output", "stream-json", "--workspace", work];
        let words = [&fixed[..], &["--model", model], more, &["do the task"]].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    /// A headless run with a model.
    pub(crate) fn run(&self, model: &str, more: &[&str]) -> Done {
        Live::start(self.run_command(model, more)).end()
    }

    pub(crate) fn run_command(&self, model: &str, more: &[&str]) -> Command {
        let arguments = self.arguments(model, more);
        self.command(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A headless run of a script.
    pub(crate) fn play(&self, turns: &[Value], more: &[&str]) -> Done {
        self.run(&self.script(turns), more)
    }

    /// The sessions' directories, the oldest first.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state().join("sessions"));
        let mut found: Vec<PathBuf> =
            entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    }

    /// The id of the newest session.
    pub(crate) fn session(&self) -> String {
        let newest = self.sessions().pop().unwrap();
        newest.file_name().unwrap().to_str().unwrap().to_owned()
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.sessions().pop().unwrap().join("journal.jsonl")
    }

    /// Every fact of the newest journal, transactions taken apart.
    pub(crate) fn facts(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.journal()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let facts = |line: Value| line.as_array().cloned().unwrap_or_else(|| vec![line]);
        lines.flat_map(facts).collect()
    }

    /// The log of the newest run, `exec` included.
    pub(crate) fn log(&self) -> PathBuf {
        let entries = fs::read_dir(self.state().join("audit")).unwrap();
        let mut logs: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .filter(|path| path.file_stem().is_some_and(|stem| stem != "ledger"))
            .collect();
        logs.sort();
        logs.pop().unwrap()
    }

    /// The records of the newest log.
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.log()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The records of one kind.
    pub(crate) fn records_of(&self, kind: &str) -> Vec<Value> {
        self.records().into_iter().filter(|record| record["kind"] == kind).collect()
    }

    /// Asserts that nothing of a run was begun: no session, no log.
    pub(crate) fn assert_nothing_began(&self) {
        assert_eq!(self.sessions(), Vec::<PathBuf>::new(), "a session was made");
        assert!(!self.state().join("audit").exists(), "a log was made");
    }

    /// Gives everything to another user, for a test that root runs as somebody ordinary.
    pub(crate) fn give_to(&self, user: u32) {
        for path in [self.root().to_owned(), self.home(), self.work()] {
            std::os::unix::fs::chown(&path, Some(user), Some(user)).unwrap();
        }
    }
}

impl Live {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        // Read from the start: a process that nobody reads from waits.
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Self { child, start: Instant::now(), stdout, stderr }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until `happened` or the process's end; tells whether it happened.
    pub(crate) fn until(&mut self, mut happened: impl FnMut() -> bool) -> bool {
        loop {
            if happened() {
                return true;
            }
            if !self.runs() || self.start.elapsed() > HANGS {
                return happened();
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Done {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.start.elapsed() > HANGS {
                self.child.kill().unwrap();
                panic!("the program hangs: {:?}", read(self.stderr));
            }
            thread::sleep(Duration::from_millis(3));
        };
        let took = self.start.elapsed();
        Done { status, stdout: read(self.stdout), stderr: read(self.stderr), took }
    }
}

fn collect(mut from: impl std::io::Read + Send + 'static) -> Reader {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut from, &mut bytes).unwrap();
        bytes
    })
}

fn read(reader: Option<Reader>) -> String {
    let bytes = reader.map(|reader| reader.join().unwrap()).unwrap_or_default();
    String::from_utf8(bytes).unwrap()
}

impl Done {
    /// The exit code; `None` if a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Asserts the exit code and shows everything if it is another.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{}\n---\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that standard error holds each of `texts`.
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "`{text}` is not in: {}", self.stderr);
        }
        self
    }

    /// Standard output as one JSON value.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}: {}\n---\n{}", self.stdout, self.stderr);
        })
    }

    /// The events, one a line.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// The last event.
    pub(crate) fn result(&self) -> Value {
        let last = self.events().pop().unwrap_or_default();
        assert_eq!(last["type"], "result", "{}\n---\n{}", self.stdout, self.stderr);
        last
    }

    /// The results, in the order of the calls; they come in the order in which calls end.
    fn results_in_order(&self) -> Vec<Value> {
        let results = self.events_of("tool_result");
        let of =
            |call: &Value| results.iter().find(|result| result["call"] == call["call"]).cloned();
        self.events_of("tool_call").iter().filter_map(of).collect()
    }

    /// What the model was told of each call, in order.
    pub(crate) fn results(&self) -> Vec<String> {
        let results = self.results_in_order();
        results.iter().map(|event| event["content"].as_str().unwrap().to_owned()).collect()
    }

    /// The status of each call, in order.
    pub(crate) fn statuses(&self) -> Vec<String> {
        let results = self.results_in_order();
        results.iter().map(|event| event["status"].as_str().unwrap().to_owned()).collect()
    }
}

/// A turn of one call.
pub(crate) fn call(tool: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": tool, "arguments": arguments}]})
}

/// A turn of several calls.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(name, arguments)| json!({"name": name, "arguments": arguments}))
        .collect();
    json!({"calls": calls})
}

pub(crate) fn bash(command: &str) -> Value {
    call("bash", &json!({"command": command}))
}

pub(crate) fn write(path: &str, content: &str) -> Value {
    call("write", &json!({"path": path, "content": content}))
}

pub(crate) fn answer(text: &str) -> Value {
    json!({"text": text})
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
