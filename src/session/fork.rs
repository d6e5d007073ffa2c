//! A fork: a new session that begins with everything that another one holds. The other one stays as it
//! is. Only the header differs; the facts are the same bytes.

use super::reduce::corruption::Corruption;
use super::reduce::{Reducer, reduce};
use super::store::{SessionDirectory, Store, StoreError};
use crate::base::clock::Clock;
use crate::base::ids::Id;
use crate::base::jsonl;
use crate::session::facts::Header;

/// Why a session cannot be forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// The journal cannot be read, or the new one not written.
    #[error("{0}")]
    File(#[from] jsonl::JsonlError),
    /// The journal is damaged.
    #[error("the session is damaged: {0}")]
    Corrupt(#[from] Corruption),
    /// The new directory cannot be made.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The header cannot be written as JSON.
    #[error("the header cannot be written: {0}")]
    Header(#[from] serde_json::Error),
}

impl Store {
    /// Makes the session `id` out of the complete transactions of `source`, which may be in use.
    ///
    /// # Errors
    /// [`ForkError`]; a session that cannot be made whole is not made.
    pub fn fork(
        &self,
        source: &SessionDirectory,
        id: Id,
        clock: &Clock,
    ) -> Result<SessionDirectory, ForkError> {
        let contents = jsonl::read(&source.journal())?;
        let state = reduce(&contents.complete)?;
        let header = Header { id: id.clone(), created_at: clock.now_ms(), ..state.header };
        let mut bytes = header.to_line()?;
        let facts = contents.complete.iter().position(|byte| *byte == b'\n');
        bytes.extend(facts.and_then(|end| contents.complete.get(end..)).unwrap_or(b"\n"));
        // What is written must be readable before it exists.
        drop(Reducer::from_bytes(&bytes)?);
        let directory = self.make(id)?;
        jsonl::write_new(&directory.journal(), &bytes)?;
        Ok(directory)
    }
}
