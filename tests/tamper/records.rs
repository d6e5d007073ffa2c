//! Records and logs that the other files use.

use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use stoplog::audit::record::*;
use stoplog::audit::verify::verify_reader;
use stoplog::audit::{
    Anchors, AuditError, AuditWriter, Body, Redactor, Report, ledger_path, log_path, verify,
};
use stoplog::base::clock::Clock;
use stoplog::base::digest::Digest;
use stoplog::base::ids::Id;
use stoplog::base::text::Untrusted;

pub(crate) fn text(text: &str) -> Untrusted {
    Untrusted::new(text)
}

pub(crate) fn session(session: &Id) -> Body {
    Body::Session(Box::new(Session {
        session: session.clone(),
        program: "0.1.0".into(),
        resumed: false,
        uid: 1000,
        login: Some(text("ada")),
        host: text("host"),
        pid: 1,
        role: text("main"),
        headless: true,
        places: [("workspace".to_owned(), text("/w"))].into(),
        policy: PolicyRecord { digest: Digest::of(b"policy"), sources: Vec::new() },
        tools: vec![text("bash")],
        model: text("script/x"),
        enforced: json!({"landlock_abi": 7}),
        warnings: Vec::new(),
    }))
}

pub(crate) fn stage(verdict: StageVerdict) -> StageRecord {
    StageRecord { verdict, reasons: Vec::new(), duration_us: 1_234 }
}

pub(crate) fn approving() -> Stages {
    let pass = || stage(StageVerdict::Pass);
    Stages {
        abort: pass(),
        role: pass(),
        hooks: stage(StageVerdict::Skipped),
        firewall: pass(),
        guardian: stage(StageVerdict::Skipped),
        permission: pass(),
    }
}

pub(crate) fn denying() -> Stages {
    let reason = Reason {
        code: text("command-denied"),
        rule: Some(text("no-push")),
        file: Some(text("base.toml")),
        line: Some(12),
        sentence: text("pushing is for people"),
        subject: Some(text("git push")),
        would_allow: Some(text("git commit")),
    };
    let mut firewall = stage(StageVerdict::Deny);
    firewall.reasons.push(reason);
    Stages {
        firewall,
        guardian: StageRecord::not_reached(),
        permission: StageRecord::not_reached(),
        ..approving()
    }
}

pub(crate) fn decision_with(call: &Id, arguments: Value, stages: Stages) -> Decision {
    Decision {
        call: call.clone(),
        provider_id: text("call_1"),
        origin: text("main"),
        role: text("main"),
        tool: text("bash"),
        arguments_hash: Digest::of(arguments.to_string().as_bytes()),
        arguments,
        redacted: 0,
        cut: 0,
        resolved: Resolved::default(),
        policy: Digest::of(b"policy"),
        ruling: stages.ruling(),
        stages,
        sandbox: None,
        lost: Vec::new(),
    }
}

pub(crate) fn decision(call: &Id) -> Body {
    Body::Decision(Box::new(decision_with(call, json!({"command": "true"}), approving())))
}

pub(crate) fn started(call: &Id) -> Body {
    Body::Started(Started { call: call.clone(), sandbox: None })
}

pub(crate) fn outcome(call: &Id) -> Body {
    Body::Outcome(Box::new(Outcome {
        call: call.clone(),
        exit: Exit::Code { code: 0 },
        stdout_bytes: 1,
        stderr_bytes: 0,
        truncated: false,
        result: None,
        files_written: Vec::new(),
        limits_hit: Vec::new(),
        enforced: None,
        duration_ms: 1,
    }))
}

pub(crate) fn end() -> Body {
    Body::End(Box::new(End {
        finish: text("completed"),
        exit_code: 0,
        approved: 1,
        denied: 0,
        rejected: 0,
        cost_millionths: Some(12),
        tokens: (1, 2),
        cause: None,
    }))
}

/// A directory of logs with one session in it.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) session: Id,
}

/// In memory where there is such a place: thousands of flushes to a disk would take minutes.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: directory(), session: Id::new() }
    }

    /// One run with one call; five records.
    pub(crate) fn with_run() -> Self {
        let place = Self::new();
        place.run();
        place
    }

    pub(crate) fn run(&self) {
        let mut writer = self.open().unwrap();
        let call = Id::new();
        writer.append(&session(&self.session)).unwrap();
        for body in [decision(&call), started(&call), outcome(&call), end()] {
            writer.append(&body).unwrap();
        }
    }

    /// Appends `bodies` after a `session` record, without an end.
    pub(crate) fn write(&self, bodies: &[Body]) {
        let mut writer = self.open().unwrap();
        writer.append(&session(&self.session)).unwrap();
        for body in bodies {
            writer.append(body).unwrap();
        }
    }

    pub(crate) fn open(&self) -> Result<AuditWriter, AuditError> {
        open_in(self.directory.path(), &self.session)
    }

    pub(crate) fn log(&self) -> PathBuf {
        log_path(self.directory.path(), &self.session)
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        ledger_path(self.directory.path())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.log()).unwrap()
    }

    pub(crate) fn anchors(&self) -> Anchors {
        Anchors::beside(&self.log()).unwrap()
    }

    pub(crate) fn verify(&self) -> Report {
        verify(&self.log(), &self.anchors()).unwrap()
    }
}

pub(crate) fn open_in(directory: &Path, session: &Id) -> Result<AuditWriter, AuditError> {
    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(&[]));
    let clock = Clock::fixed(1_710_000_000_000);
    AuditWriter::open(directory, session, REDACTOR.clone(), clock)
}

pub(crate) fn verify_bytes(bytes: &[u8], anchors: &Anchors) -> Report {
    verify_reader("log", bytes, anchors).unwrap()
}

/// Replaces the file: how somebody with a text editor would.
pub(crate) fn overwrite(path: &Path, bytes: &[u8]) {
    std::fs::File::create(path).unwrap().write_all(bytes).unwrap();
}

/// The lines, each with its line feed.
pub(crate) fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

pub(crate) fn value(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

/// The lines from `first` on (counted from 0) with all links made to fit, as a forger with the
/// format page would.
pub(crate) fn relink(lines: &mut [Vec<u8>], first: usize) {
    for index in first..lines.len() {
        let before = index.checked_sub(1).map(|before| lines[before].clone());
        let link = before.map_or_else(Digest::zero, |line| Digest::of(line.trim_ascii_end()));
        let mut record = value(&lines[index]);
        record["prev"] = json!(link);
        record["seq"] = json!(index + 1);
        lines[index] = format!("{record}\n").into_bytes();
    }
}
