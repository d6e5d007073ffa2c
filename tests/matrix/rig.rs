//! One row: its programs are looked for, its script runs outside and inside, and both must print
//! what the row says.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_stoplog");

/// Programs, separated by spaces, without which the rows that need them fail.
const REQUIRE: &str = "STOPLOG_MATRIX_REQUIRE";

/// What the callers of both sides have, besides `HOME` and `PATH`.
const ENVIRONMENT: [(&str, &str); 2] = [("LANG", "C.UTF-8"), ("USER", "someone")];

/// A script for bash with what it must print.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Programs that must be installed.
    pub(crate) needs: &'static [&'static str],
    pub(crate) script: &'static str,
    /// The whole of standard output.
    pub(crate) prints: &'static str,
}

/// How a script ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A workspace with a state directory beside it. Not below `/tmp`, which a cell replaces by its own.
pub(crate) struct Place {
    root: TempDir,
}

impl Row {
    pub(crate) fn holds(&self) {
        self.holds_in(|_place| ());
    }

    /// As [`Row::holds`], in workspaces that `prepare` was given first.
    pub(crate) fn holds_in(&self, prepare: impl Fn(&Place)) {
        if !self.can_run() {
            return;
        }
        let [outside, inside] = [(); 2].map(|()| Place::new());
        [&outside, &inside].into_iter().for_each(prepare);
        let control = outside.plain(self.script);
        assert_eq!(
            (control.code, control.stdout.as_str()),
            (Some(0), self.prints),
            "{}: the control fails, so the row shows nothing: {control:?}",
            self.name
        );
        if let Some(program) = self.unseen(&inside) {
            println!("{} did not run, outside what the policy shows: {program}", self.name);
            return;
        }
        let inside = inside.confined(&[], self.script);
        assert_eq!(
            (inside.code, inside.stdout.as_str()),
            (Some(0), self.prints),
            "{} in the cell: {inside:?}",
            self.name
        );
    }

    /// A program that this machine keeps where `workspace` shows nothing, as a tool chain in a directory
    /// of its own may be. One that is required has to be seen.
    fn unseen(&self, place: &Place) -> Option<&'static str> {
        let required = std::env::var(REQUIRE).unwrap_or_default();
        let is_required = |need: &str| required.split(' ').any(|name| name == need);
        let programs = self.needs.iter().map(|need| need.split(':').next().unwrap_or(need));
        let mut open = programs.filter(|program| !is_required(program));
        open.find(|need| place.confined(&[], &format!("command -v {need}")).code != Some(0))
    }

    fn can_run(&self) -> bool {
        let missing: Vec<&str> =
            self.needs.iter().copied().filter(|need| !is_installed(need)).collect();
        let required = std::env::var(REQUIRE).unwrap_or_default();
        let owed = required.split(' ').find(|name| missing.contains(name));
        assert_eq!(owed, None, "{}: {REQUIRE} names a program that is not there", self.name);
        if !missing.is_empty() {
            println!("{} did not run, not installed: {}", self.name, missing.join(", "));
        }
        missing.is_empty()
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let root =
            tempfile::Builder::new().prefix("stoplog-matrix-").tempdir_in("/var/tmp").unwrap();
        let place = Self { root };
        std::fs::create_dir(place.workspace()).unwrap();
        place
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Writes a file in a home directory of this place's own, which both sides have from then on.
    pub(crate) fn home_file(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.own_home()).unwrap();
        std::fs::write(self.own_home().join(name), text).unwrap();
    }

    fn own_home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Copies the files of a directory to one in the workspace.
    pub(crate) fn copy(&self, from: &Path, name: &str) {
        let to = self.workspace().join(name);
        std::fs::create_dir(&to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    /// Writes a policy beside the workspace that extends `workspace`.
    pub(crate) fn policy(&self, text: &str) -> String {
        let path = self.root.path().join("policy.toml");
        std::fs::write(&path, format!("version = 1\nextends = [\"workspace\"]\n{text}")).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The script without a cell.
    pub(crate) fn plain(&self, script: &str) -> Ended {
        let tmp = self.root.path().join("tmp");
        std::fs::create_dir_all(&tmp).unwrap();
        let mut command = Command::new("bash");
        command.args(["-c", script]);
        // What every cell has as well: nobody to ask, no terminal, a directory of its own.
        let settings = [("CI", "1"), ("GIT_TERMINAL_PROMPT", "0"), ("NO_COLOR", "1")];
        command.envs(settings).env("TMPDIR", tmp).env("TERM", "dumb");
        self.ended(&mut command)
    }

    /// The script through `stoplog exec`, by the policy `workspace` unless the options name others.
    pub(crate) fn confined(&self, options: &[&str], script: &str) -> Ended {
        let mut command = Command::new(PROGRAM);
        command.arg("--state-dir").arg(self.root.path().join("state"));
        command.arg("exec").args(options).arg("--workspace").arg(self.workspace());
        self.ended(command.args(["--", "bash", "-c", script]))
    }

    fn ended(&self, command: &mut Command) -> Ended {
        if self.own_home().exists() {
            command.env("HOME", self.own_home());
        }
        ended(command, &self.workspace())
    }
}

fn ended(command: &mut Command, directory: &Path) -> Ended {
    let kept = ["HOME", "PATH"].map(|name| (name, std::env::var_os(name).unwrap_or_default()));
    let own: Vec<_> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    command.env_clear().envs(ENVIRONMENT).envs(kept).envs(own);
    let output = command.current_dir(directory).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A program, or `python3:MODULE` for a module of Python.
fn is_installed(need: &str) -> bool {
    let script = match need.split_once(':') {
        Some((python, module)) => format!("{python} -c 'import {module}'"),
        None => format!(
            "command -v {need} && {{ {need} --version || {need} -version || {need} version || {need} -V; }}"
        ),
    };
    let output = Command::new("bash").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    output.status.success()
}
