//! The log of decisions: hash-chained records, one writer, verification from the bytes on disk.
//!
//! One file a session, `SESSION.jsonl`, and one ledger of heads beside them; docs/audit-format.md
//! describes both. Nothing here is ever asked for a decision.

pub mod record;
pub mod redact;
pub mod ledger;
pub mod writer;
pub mod read;
pub mod verify;
pub mod query;
pub mod show;

pub use ledger::{Head, Ledger};
pub use record::{Body, Record};
pub use redact::Redactor;
pub use verify::{Anchors, Report, Status, verify, verify_all};
pub use writer::{AuditError, AuditWriter, Receipt};

use crate::base::ids::Id;
use crate::base::jsonl::JsonlError;
use std::path::{Path, PathBuf};

/// The log of `session` in `directory`.
#[must_use]
pub fn log_path(directory: &Path, session: &Id) -> PathBuf {
    directory.join(format!("{session}.jsonl"))
}

/// The ledger in `directory`.
#[must_use]
pub fn ledger_path(directory: &Path) -> PathBuf {
    directory.join("ledger.jsonl")
}

/// The session that a log's file name tells.
#[must_use]
pub fn log_session(log: &Path) -> Option<Id> {
    let is_log = log.extension().is_some_and(|extension| extension == "jsonl");
    let stem = log.file_stem().filter(|_| is_log)?.to_str()?;
    Id::parse(stem)
}

/// The sessions that have a log in `directory`, oldest first.
///
/// # Errors
/// [`JsonlError::Io`] if the directory cannot be read.
pub fn sessions(directory: &Path) -> Result<Vec<Id>, JsonlError> {
    let io = |source| JsonlError::Io { action: "list", path: directory.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(io)? {
        found.extend(log_session(&entry.map_err(io)?.path()));
    }
    found.sort();
    Ok(found)
}
