//! A fork of a session: its journal's copy, and a log of its own that begins with the policy under
//! which the original last ran, so that the fork can be resumed and gets no more than that.

use super::error::RunError;
use super::resume::last_start;
use super::setup::audit_directory;
use crate::audit::record::{Body, End, Session as SessionRecord};
use crate::audit::{AuditWriter, Redactor};
use crate::base::clock::Clock;
use crate::base::exit::Exit;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use crate::session::{SessionDirectory, Store};
use std::path::Path;

/// Makes the fork and tells its id. The log is there before the session, so that no session is without
/// one.
///
/// # Errors
/// [`RunError::Blocked`] if the original's log holds no policy, [`RunError::Fork`], and those of the
/// new log.
pub fn fork(state: &Path, store: &Store, source: &SessionDirectory) -> Result<Id, RunError> {
    let id = Id::new();
    let audit = audit_directory(state)?;
    let began = last_start(&audit, source.id())?;
    let redactor = Redactor::new(&[]);
    let mut log = AuditWriter::create(&audit, &id, redactor, Clock::System)?;
    let record = SessionRecord {
        session: id.clone(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        resumed: true,
        uid: rustix::process::getuid().as_raw(),
        pid: std::process::id(),
        ..began
    };
    log.append(&Body::Session(Box::new(record))).map(drop)?;
    store.fork(source, id.clone(), &Clock::System)?;
    let end = End {
        finish: Untrusted::new("forked"),
        exit_code: Exit::Done.code(),
        approved: 0,
        denied: 0,
        rejected: 0,
        tokens: (0, 0),
        cost_millionths: None,
        cause: Some(Untrusted::new(format!("a copy of session {}", source.id()))),
    };
    log.append(&Body::End(Box::new(end))).map(drop)?;
    Ok(id)
}
