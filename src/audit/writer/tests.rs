use super::*;
use crate::audit::record::{
    Decision, End, Exit, Outcome, PolicyRecord, Resolved, Ruling, Session, StageRecord,
    StageVerdict, Stages, Started,
};
use crate::audit::verify::{Status, verify};
use serde_json::json;

fn text(text: &str) -> Untrusted {
    Untrusted::new(text)
}

fn session(session: &Id) -> Body {
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
    }))
}

fn passing() -> StageRecord {
    StageRecord { verdict: StageVerdict::Pass, reasons: Vec::new(), duration_us: 1 }
}

fn decision(call: &Id, arguments: serde_json::Value) -> Body {
    Body::Decision(Box::new(Decision {
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
        ruling: Ruling::Approved,
        stages: Stages {
            abort: passing(),
            role: passing(),
            hooks: passing(),
            firewall: passing(),
            guardian: passing(),
            permission: passing(),
        },
        sandbox: None,
    }))
}

fn started(call: &Id) -> Body {
    Body::Started(Started { call: call.clone(), sandbox: None })
}

fn outcome(call: &Id) -> Body {
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

fn end() -> Body {
    Body::End(Box::new(End {
        finish: text("completed"),
        exit_code: 0,
        approved: 1,
        denied: 0,
        rejected: 0,
        tokens: (1, 2),
        cause: None,
    }))
}

fn open(directory: &Path, session: &Id) -> Result<AuditWriter, AuditError> {
    let clock = Clock::fixed(1_710_000_000_000);
    AuditWriter::open(directory, session, Redactor::new(&[]).unwrap(), clock)
}

fn checked(directory: &Path, session: &Id) -> Report {
    let path = log_path(directory, session);
    verify(&path, &Anchors::beside(&path).unwrap()).unwrap()
}

#[test]
fn a_whole_run_verifies_and_a_resumed_one_continues_the_chain() {
    let directory = tempfile::tempdir().unwrap();
    let (id, call) = (Id::new(), Id::new());
    for _ in 0..2 {
        let mut writer = open(directory.path(), &id).unwrap();
        writer.append(&session(&id)).unwrap();
        let call = Id::new();
        writer.append(&decision(&call, json!({"command": "true"}))).unwrap();
        writer.append(&started(&call)).unwrap();
        writer.append(&outcome(&call)).unwrap();
        let receipt = writer.append(&end()).unwrap();
        assert_eq!(receipt.link(), writer.head().link);
        assert!(matches!(writer.append(&started(&call)), Err(AuditError::OutOfPlace { .. })));
    }
    let report = checked(directory.path(), &id);
    assert_eq!((report.status(), report.records), (Status::Intact, 10), "{report}");
    let mut writer = open(directory.path(), &id).unwrap();
    assert!(matches!(writer.append(&started(&call)), Err(AuditError::OutOfPlace { .. })));
}

#[test]
fn a_second_writer_of_the_log_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let id = Id::new();
    let _first = open(directory.path(), &id).unwrap();
    let error = open(directory.path(), &id).unwrap_err();
    assert!(matches!(error, AuditError::File(JsonlError::Locked { .. })), "{error}");
}

#[test]
fn a_damaged_or_cut_log_is_not_continued() {
    let directory = tempfile::tempdir().unwrap();
    let id = Id::new();
    let mut writer = open(directory.path(), &id).unwrap();
    writer.append(&session(&id)).unwrap();
    writer.append(&end()).unwrap();
    drop(writer);
    let path = log_path(directory.path(), &id);
    let bytes = std::fs::read(&path).unwrap();
    for damaged in [Vec::new(), bytes.replace_first(b"ada", b"bob")] {
        std::fs::File::create(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, &damaged))
            .unwrap();
        let error = open(directory.path(), &id).unwrap_err();
        assert!(matches!(error, AuditError::Damaged(_)), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "left alone");
    }
}

trait ReplaceFirst {
    fn replace_first(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl ReplaceFirst for Vec<u8> {
    fn replace_first(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = self.windows(from.len()).position(|window| window == from).unwrap();
        let mut changed = self.clone();
        changed.splice(at..at + from.len(), to.iter().copied());
        changed
    }
}

#[test]
fn checkpoints_note_the_head_in_the_ledger() {
    let directory = tempfile::tempdir().unwrap();
    let id = Id::new();
    let mut writer = open(directory.path(), &id).unwrap();
    writer.append(&session(&id)).unwrap();
    for _ in 0..CHECKPOINT_RECORDS {
        writer.append(&decision(&Id::new(), json!({}))).unwrap();
    }
    let report = checked(directory.path(), &id);
    assert_eq!(report.anchored_records, Some(CHECKPOINT_RECORDS + 1), "{report}");
    assert_eq!(report.records, CHECKPOINT_RECORDS + 2);
    assert!(report.problems.is_empty(), "{report}");
}
