//! A workspace with something outside it, and jobs on it.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use stoplog::base::digest::Digest;
use stoplog::tools::render;
use stoplog::tools::worker::job::{
    FileJob, FileRequest, JobLimits, Protected, ProtectedKind, ProtectedPattern, Root,
};
use stoplog::tools::worker::reply::{
    Done, Edited, Found, JobError, JobReply, Matched, Page, Written,
};
use stoplog::tools::worker::serve;

/// What stands in the file outside.
pub(crate) const SECRET: &str = "the secret outside\n";

pub(crate) struct Rig {
    _directory: tempfile::TempDir,
    /// The workspace, writable.
    pub(crate) inside: PathBuf,
    /// A directory beside it that no root holds; `secret` is in it.
    pub(crate) outside: PathBuf,
    pub(crate) job: FileJob,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// In memory where the machine has such a file system: for thousands of flushed writes.
    pub(crate) fn quick() -> Self {
        Self::at(tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap()))
    }

    fn at(directory: tempfile::TempDir) -> Self {
        let top = directory.path().canonicalize().unwrap();
        let (inside, outside) = (top.join("inside"), top.join("outside"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        put(&outside.join("secret"), SECRET.as_bytes());
        let job = FileJob {
            workspace: inside.clone(),
            roots: vec![Root { path: inside.clone(), writable: true }],
            protected: Vec::new(),
            request: FileRequest::List(serde_json::from_value(json!({})).unwrap()),
            known_content: None,
            created: Vec::new(),
            limits: JobLimits::default(),
        };
        Self { _directory: directory, inside, outside, job }
    }

    /// Puts a file into the workspace.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.inside.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        put(&path, content.as_ref());
        path
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.inside.join(name)).unwrap()
    }

    pub(crate) fn protect(&mut self, pattern: &str, kind: ProtectedKind) {
        let pattern = ProtectedPattern::Glob {
            root: self.inside.clone(),
            patterns: vec![pattern.to_owned()],
            except: Vec::new(),
        };
        self.job.protected.push(Protected { pattern, kind, rule: "test-rule".to_owned() });
    }

    pub(crate) fn protect_exact(&mut self, name: &str, kind: ProtectedKind) {
        let pattern = ProtectedPattern::Exact(self.inside.join(name));
        self.job.protected.push(Protected { pattern, kind, rule: "test-rule".to_owned() });
    }

    /// Runs one job through its JSON forms, as the child does.
    pub(crate) fn run(&self, tool: &str, arguments: Value) -> Result<Done, JobError> {
        match self.reply(tool, arguments) {
            JobReply::Done(done) => Ok(done),
            JobReply::Failed(error) => Err(error),
        }
    }

    pub(crate) fn reply(&self, tool: &str, arguments: Value) -> JobReply {
        let request = serde_json::from_value(json!({ tool: arguments })).unwrap();
        let job = FileJob { request, ..self.job.clone() };
        let mut out = Vec::new();
        assert_eq!(serve(&serde_json::to_vec(&job).unwrap(), &mut out), 0);
        JobReply::decode(&out).unwrap()
    }

    /// What the model sees.
    pub(crate) fn text(&self, tool: &str, arguments: Value) -> String {
        let text = render::job(&self.reply(tool, arguments));
        assert!(text.len() <= 50_000, "{} bytes", text.len());
        assert!(!text.is_empty());
        text
    }

    pub(crate) fn read(&self, path: &str) -> Result<Page, JobError> {
        self.read_page(json!({ "path": path }))
    }

    pub(crate) fn read_page(&self, arguments: Value) -> Result<Page, JobError> {
        let Done::Read(page) = self.run("read", arguments)? else {
            panic!("a reply of another kind");
        };
        Ok(page)
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> Result<Written, JobError> {
        let Done::Written(written) =
            self.run("write", json!({ "path": path, "content": content }))?
        else {
            panic!("a reply of another kind");
        };
        Ok(written)
    }

    pub(crate) fn edit(&self, path: &str, edits: &[(&str, &str)]) -> Result<Edited, JobError> {
        let edits: Vec<Value> =
            edits.iter().map(|(old, new)| json!({ "old": old, "new": new })).collect();
        let Done::Edited(edited) = self.run("edit", json!({ "path": path, "edits": edits }))?
        else {
            panic!("a reply of another kind");
        };
        Ok(edited)
    }

    pub(crate) fn find(&self, tool: &str, arguments: Value) -> Result<Found, JobError> {
        let Done::Found(found) = self.run(tool, arguments)? else {
            panic!("a reply of another kind");
        };
        Ok(found)
    }

    pub(crate) fn grep(&self, arguments: Value) -> Result<Matched, JobError> {
        let Done::Matched(matched) = self.run("grep", arguments)? else {
            panic!("a reply of another kind");
        };
        Ok(matched)
    }

    /// That the file outside is as it was and has no company.
    pub(crate) fn assert_outside_untouched(&self) {
        assert_eq!(fs::read_to_string(self.outside.join("secret")).unwrap(), SECRET);
        assert_eq!(names(&self.outside), ["secret"]);
    }

    /// That no draft was left behind.
    pub(crate) fn assert_no_drafts(&self) {
        let left: Vec<String> =
            names(&self.inside).into_iter().filter(|name| name.starts_with(".stoplog")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

pub(crate) fn put(path: &Path, content: &[u8]) {
    File::create(path).unwrap().write_all(content).unwrap();
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn digest_of(content: &[u8]) -> Option<Digest> {
    Some(Digest::of(content))
}

/// Peak resident memory of this process in bytes.
pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
