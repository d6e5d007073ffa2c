//! What a person does with the program over several turns: talk, record, fork, export, use a provider
//! of their own. Black box: the program, its files, its output.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may fail loudly and starts the program"
)]

#[expect(dead_code, reason = "each suite uses what it needs of the server")]
#[path = "../support/scripted_http.rs"]
mod scripted_http;

mod agents_file;
mod chat;
mod keeping;
mod models;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A workspace, a home and a state directory of their own.
struct Rig {
    place: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let rig = Self { place: tempfile::tempdir().unwrap() };
        for directory in ["w", "home", "config/stoplog"] {
            std::fs::create_dir_all(rig.path(directory)).unwrap();
        }
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_string_lossy().into_owned()
    }

    /// A script and the name of the model that plays it.
    fn script(&self, lines: &[&str]) -> String {
        format!("script/{}", self.write("script.jsonl", &lines.join("\n")))
    }

    fn start(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stoplog"))
            .args(arguments)
            .current_dir(self.path("w"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("TEAM_KEY", "sk-team")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that ends before it reads is no fault of the test.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    /// The output and the exit code of one command.
    fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        texts(&self.start(arguments, ""))
    }

    /// The newest session's conversation.
    fn shown(&self) -> String {
        self.run(&["session", "show"]).0
    }
}

fn texts(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap_or(-1))
}
