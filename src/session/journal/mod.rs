//! The live journal: one locked file, the state it folds to, and appends that are durable.
//!
//! A transaction is folded before it is written, from the very bytes that will stand in the file, so
//! that what could not be read back is never appended. A call that returns `Ok` has been flushed to
//! the disk, unless it was asked not to be ([`Journal::unflushed`]). After a failed append the state is
//! folded anew from the file.

pub(crate) mod calls;
pub(crate) mod compact;
mod endings;
pub(crate) mod recover;
pub(crate) mod steps;

use crate::base::clock::Clock;
use crate::base::ids::Id;
use crate::base::jsonl::{self, JsonlError, LineFile};
use crate::session::facts::{Body, Fact, Header};
use crate::session::reduce::Reducer;
use crate::session::reduce::corruption::Corruption;
use crate::session::state::SessionState;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Why the journal could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The file is damaged. It has not been changed.
    #[error("session file `{}` is damaged: {corruption}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        corruption: Corruption,
    },
    /// There is a file already.
    #[error("session file `{}` exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There is no file.
    #[error("there is no session file `{}`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The facts do not fit the state; nothing was written.
    #[error("the journal refuses a transaction: {0}")]
    Rejected(Corruption),
    /// The call does not fit the state; nothing was written.
    #[error("the journal cannot {wanted}: {why}")]
    Unfit {
        /// What was asked for.
        wanted: &'static str,
        /// Why it cannot be.
        why: String,
    },
    /// The disk is full; nothing was written.
    #[error("no space is left on the disk of `{}`; the run stops here", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// An earlier append failed and the file could not be read since.
    #[error("the journal is closed after an earlier error")]
    Spent,
    /// A value that JSON cannot hold.
    #[error("a fact cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
    /// Another process has the session, or the file cannot be used.
    #[error(transparent)]
    File(#[from] JsonlError),
}

/// A fact to be appended, with the identity it will have.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Its identity, chosen beforehand where other facts must name it.
    pub id: Id,
    /// What it says.
    pub body: Body,
}

impl Draft {
    /// A fact with a new identity.
    #[must_use]
    pub fn new(body: Body) -> Self {
        Self { id: Id::new(), body }
    }
}

/// When a transaction reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// Before the append returns.
    Now,
    /// With the next flush.
    Later,
}

/// The live journal of one session.
#[derive(Debug)]
pub struct Journal {
    file: LineFile,
    reducer: Reducer,
    clock: Clock,
    reserve: bool,
    /// Facts that go along with the next transaction.
    waiting: Vec<Draft>,
    flush: Flush,
    /// After an error that left it unknown what the file holds.
    spent: bool,
}

impl Journal {
    /// Begins a new session file.
    ///
    /// # Errors
    /// [`SessionError::Exists`] if there is one, and those of the file.
    pub fn create(path: &Path, header: &Header, clock: Clock) -> Result<Self, SessionError> {
        let (mut file, contents) = LineFile::open(path)?;
        if !contents.complete.is_empty() {
            return Err(SessionError::Exists { path: path.to_owned() });
        }
        let line = header.to_line()?;
        let reducer = Reducer::start(&line).map_err(SessionError::Rejected)?;
        file.append(&line).map_err(|error| typed(error, path))?;
        Ok(Self::with(file, reducer, clock))
    }

    /// Opens a session to go on with it. Bytes behind the last complete line are cut off first; a
    /// damaged file is refused and stays as it is.
    ///
    /// # Errors
    /// [`SessionError::Corrupt`], [`SessionError::Missing`], [`JsonlError::Locked`] with the holder's
    /// process id, and those of the file.
    pub fn open(path: &Path, clock: Clock) -> Result<(Self, Vec<u8>), SessionError> {
        let corrupt = |corruption| SessionError::Corrupt { path: path.to_owned(), corruption };
        if !path.try_exists().unwrap_or(true) {
            return Err(SessionError::Missing { path: path.to_owned() });
        }
        let before = jsonl::read(path)?;
        if !before.torn.is_empty() || before.complete.is_empty() {
            Reducer::from_bytes(&before.complete).map_err(corrupt)?;
        }
        drop(before);
        let (file, contents) = LineFile::open(path)?;
        let reducer = Reducer::from_bytes(&contents.complete).map_err(corrupt)?;
        Ok((Self::with(file, reducer, clock), contents.torn))
    }

    const fn with(file: LineFile, reducer: Reducer, clock: Clock) -> Self {
        Self {
            file,
            reducer,
            clock,
            reserve: false,
            waiting: Vec::new(),
            flush: Flush::Now,
            spent: false,
        }
    }

    /// The state after everything that is in the file.
    #[must_use]
    pub const fn state(&self) -> &SessionState {
        self.reducer.state()
    }

    /// Where the file lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Lets the following appends use the disk that is held in reserve: for the facts that close a
    /// session after [`SessionError::DiskFull`].
    pub const fn use_reserve(&mut self) {
        self.reserve = true;
    }

    /// Does what `append` says without a flush of its own. The transaction is in the file, so that the death
    /// of the process does not lose it; the next append flushes it as well, or [`Self::flush`] does. Only
    /// for what nothing acts on before one of them.
    ///
    /// # Errors
    /// Those of `append`.
    pub fn unflushed<T>(
        &mut self,
        append: impl FnOnce(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        self.flush = Flush::Later;
        let done = append(self);
        self.flush = Flush::Now;
        done
    }

    /// Flushes what [`Self::unflushed`] has left to the next append, if there is anything.
    ///
    /// # Errors
    /// Those of the file.
    pub fn flush(&mut self) -> Result<(), SessionError> {
        self.file.flush().map_err(|error| typed(error, self.file.path()))
    }

    /// Appends one transaction and flushes it to the disk, and before its facts those that waited for
    /// it. They are lost if it cannot be appended.
    ///
    /// # Errors
    /// [`SessionError::Rejected`] if the facts do not fit the state, [`SessionError::DiskFull`], and
    /// those of the file. In every case the file and the state are as before.
    pub fn append(&mut self, drafts: Vec<Draft>) -> Result<Vec<Id>, SessionError> {
        if self.spent {
            return Err(SessionError::Spent);
        }
        let timestamp = self.clock.now_ms();
        let waited = std::mem::take(&mut self.waiting);
        let own = waited.len();
        let facts: Vec<Fact> = (self.state().next_seq..)
            .zip(waited.into_iter().chain(drafts))
            .map(|(seq, Draft { id, body })| Fact { seq, id, timestamp, body })
            .collect();
        let line = match facts.as_slice() {
            [single] => serde_json::to_vec(single)?,
            several => serde_json::to_vec(several)?,
        };
        if let Err(error) = self.write(&line) {
            self.fold_again();
            return Err(error);
        }
        Ok(facts.into_iter().skip(own).map(|fact| fact.id).collect())
    }

    fn write(&mut self, line: &[u8]) -> Result<(), SessionError> {
        self.reducer.apply(line).map_err(SessionError::Rejected)?;
        if self.state().is_idle() && self.reducer.has_unanswered_calls() {
            return Err(SessionError::Unfit {
                wanted: "end the run",
                why: "calls without a result would make the session unusable".to_owned(),
            });
        }
        let appended = match (self.reserve, self.flush) {
            (true, _) => self.file.append_from_reserve(line),
            (false, Flush::Now) => self.file.append(line),
            (false, Flush::Later) => self.file.append_unflushed(line),
        };
        appended.map_err(|error| typed(error, self.file.path()))
    }

    /// The state as the file has it, after an append that failed. A line that could not be cut off
    /// again would swallow the next one, so nothing is appended behind it.
    fn fold_again(&mut self) {
        let contents = jsonl::read(self.file.path()).ok();
        let whole = contents.filter(|contents| contents.torn.is_empty());
        match whole.and_then(|whole| Reducer::from_bytes(&whole.complete).ok()) {
            Some(reducer) => self.reducer = reducer,
            None => self.spent = true,
        }
    }
}

/// Tells a full disk from the other errors.
fn typed(error: JsonlError, path: &Path) -> SessionError {
    let full = match &error {
        JsonlError::Io { source, .. } => source.raw_os_error().is_some_and(|code| {
            [Errno::NOSPC, Errno::DQUOT, Errno::FBIG].map(Errno::raw_os_error).contains(&code)
        }),
        JsonlError::Locked { .. } | JsonlError::LineFeed { .. } => false,
    };
    if full { SessionError::DiskFull { path: path.to_owned() } } else { SessionError::File(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_errors() {
        let path = Path::new("/state/journal.jsonl");
        let error = |errno: Errno| JsonlError::Io {
            action: "append to",
            path: path.to_owned(),
            source: errno.into(),
        };
        for full in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
            assert!(matches!(typed(error(full), path), SessionError::DiskFull { .. }));
        }
        assert!(matches!(typed(error(Errno::IO), path), SessionError::File(_)));
    }
}
