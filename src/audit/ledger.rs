//! The ledger of heads: how many records each log has held, and the link of the last of them.
//!
//! A log cannot tell that its own tail is missing. So the head of every session is written to this
//! file, beside the logs, when a log is opened, at every checkpoint and when a run ends; `verify`
//! compares. The ledger is a chain like the logs. Several processes append to it, each holding its
//! lock only while it reads the last line and writes its own; they flush side by side. What an append
//! takes does not grow with the ledger: the whole chain is looked at by `verify`, and when a log that
//! was there before is continued.

use crate::audit::record::FORMAT_VERSION;
use crate::base::clock::{Clock, rfc3339};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::json::parse_strict;
use crate::base::jsonl::{self, JsonlError, LineFile};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tries to get the ledger's lock before giving up; with [`LOCK_WAIT`] between them five seconds in
/// all, more than ten thousand times what an append holds it.
const LOCK_TRIES: u32 = 50_000;
/// Wait between two tries: about what an append holds the lock.
const LOCK_WAIT: Duration = Duration::from_micros(100);

/// How many records a log held, and the link of the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Number of records.
    pub records: u64,
    /// Link of the last; zero if there is none.
    pub link: Digest,
}

impl Head {
    /// The head of an empty log.
    pub const EMPTY: Self = Self { records: 0, link: Digest::zero() };
}

/// When a head was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadEvent {
    /// A run opened the log, before it wrote anything.
    Opened,
    /// A checkpoint was written.
    Checkpoint,
    /// A run ended.
    Ended,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Format version.
    pub v: u32,
    /// Place in the ledger, counted from 1.
    pub seq: u64,
    /// When.
    pub time: String,
    /// Link of the line before.
    pub prev: Digest,
    /// On what occasion.
    pub event: HeadEvent,
    /// The session whose log is meant.
    pub session: Id,
    /// The head of that log.
    #[serde(flatten)]
    pub head: Head,
}

/// What the ledger says, and where it is damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The entries that are in order, up to the first damage.
    pub entries: Vec<LedgerEntry>,
    /// The first line that does not follow from the one before, and how.
    pub damage: Option<(u64, String)>,
}

impl Ledger {
    /// The heads of one log, oldest first.
    pub fn of<'a>(&'a self, session: &'a Id) -> impl Iterator<Item = &'a LedgerEntry> {
        self.entries.iter().filter(move |entry| &entry.session == session)
    }

    /// The ledger as far as it concerns one log.
    #[must_use]
    pub fn only(&self, session: &Id) -> Self {
        Self { entries: self.of(session).cloned().collect(), damage: self.damage.clone() }
    }

    /// Reads the ledger's complete lines. A torn last line is no damage: its append did not finish.
    #[must_use]
    pub fn parse(complete: &[u8]) -> Self {
        let mut ledger = Self::default();
        let mut previous = Head::EMPTY;
        for line in complete.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            match following(line, previous) {
                Ok(entry) => ledger.entries.push(entry),
                Err(problem) => {
                    ledger.damage = Some((previous.records + 1, problem));
                    break;
                }
            }
            previous = Head { records: previous.records + 1, link: Digest::of(line) };
        }
        ledger
    }

    /// Reads the ledger at `path` without locking it; `None` if there is none.
    ///
    /// # Errors
    /// [`JsonlError`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Option<Self>, JsonlError> {
        match jsonl::read(path) {
            Ok(contents) => Ok(Some(Self::parse(&contents.complete))),
            Err(JsonlError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn following(line: &[u8], previous: Head) -> Result<LedgerEntry, String> {
    let value = parse_strict(line).map_err(|error| error.to_string())?;
    let entry: LedgerEntry = serde_json::from_value(value).map_err(|error| error.to_string())?;
    if entry.v != FORMAT_VERSION {
        return Err(format!("format version {} is not known", entry.v));
    }
    if entry.seq != previous.records + 1 || entry.prev != previous.link {
        return Err("does not follow from the line before".to_owned());
    }
    Ok(entry)
}

/// Appends one head to the ledger at `path`, waiting for other writers.
///
/// # Errors
/// [`JsonlError`]; a torn last line is kept in a file beside the ledger and is no error.
pub(crate) fn note(
    path: &Path,
    clock: &Clock,
    (event, session, head): (HeadEvent, &Id, Head),
) -> Result<(), JsonlError> {
    let (file, end) = open_waiting(path)?;
    let before = last_head(path, &end)?;
    let entry = LedgerEntry {
        v: FORMAT_VERSION,
        seq: before.records.saturating_add(1),
        time: rfc3339(clock.now_ms()),
        prev: before.link,
        event,
        session: session.clone(),
        head,
    };
    let line = serde_json::to_vec(&entry).map_err(|source| JsonlError::Io {
        action: "write an entry for",
        path: path.to_owned(),
        source: source.into(),
    })?;
    // The entry that opens a run reserves the disk for the one that ends it.
    file.append_last(&line, event == HeadEvent::Opened)
}

/// The ledger's own head, from its last line. One that no entry can be read from is counted: what is
/// damaged stays visible to `verify`, and the lines behind it are in order.
fn last_head(path: &Path, end: &[u8]) -> Result<Head, JsonlError> {
    let Some(last) = end.strip_suffix(b"\n").and_then(|rest| rest.rsplit(|b| *b == b'\n').next())
    else {
        return Ok(Head::EMPTY);
    };
    let link = Digest::of(last);
    if let Ok(LedgerEntry { seq, .. }) = serde_json::from_slice(last) {
        return Ok(Head { records: seq, link });
    }
    let lines = jsonl::read(path)?.complete.iter().filter(|byte| **byte == b'\n').count();
    Ok(Head { records: u64::try_from(lines).unwrap_or(u64::MAX), link })
}

fn open_waiting(path: &Path) -> Result<(LineFile, Vec<u8>), JsonlError> {
    let mut tries = 0;
    loop {
        match LineFile::open_at_end(path, |offset, torn| keep_torn(path, offset, torn).map(drop)) {
            Ok((file, contents)) => return Ok((file, contents.complete)),
            Err(JsonlError::Locked { .. }) if tries < LOCK_TRIES => {
                tries += 1;
                std::thread::sleep(LOCK_WAIT);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Keeps a torn line in a file of its own beside `path` and gives that file's path. If a crash came
/// between this and the cut, the same line is found again and the file is there already.
pub(crate) fn keep_torn(path: &Path, offset: u64, torn: &[u8]) -> Result<PathBuf, JsonlError> {
    let digest = Digest::of(torn).short();
    let aside = path.with_extension(format!("torn-{offset}-{digest}"));
    match jsonl::write_new(&aside, torn) {
        Err(JsonlError::Io { source, .. })
            if source.kind() == std::io::ErrorKind::AlreadyExists =>
        {
            keep_torn_again(aside, torn)
        }
        result => result.map(|()| aside),
    }
}

fn keep_torn_again(aside: PathBuf, torn: &[u8]) -> Result<PathBuf, JsonlError> {
    let found = jsonl::read(&aside)?;
    if found.torn == torn && found.complete.is_empty() {
        return Ok(aside);
    }
    // Half written by a crash of its own: the rest is still at hand.
    let again = aside.with_extension(format!(
        "{}-again-{}",
        aside.extension().unwrap_or_default().to_string_lossy(),
        Id::new().short()
    ));
    jsonl::write_new(&again, torn).map(|()| again)
}
