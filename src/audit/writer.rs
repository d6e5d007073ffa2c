//! The one writer of a log. What it returns is proof that a record is on the disk.
//!
//! INVARIANT: a [`Receipt`] exists only for a record that was flushed; `chain` gives its approval
//! only against one. After a failed append nothing more is accepted but the `end` record, for which
//! some disk is held in reserve.

use crate::audit::ledger::{self, Head, HeadEvent, keep_torn};
use crate::audit::record::{Body, Checkpoint, FORMAT_VERSION, RECORD_BYTES_MAX, Record, Recovered};
use crate::audit::redact::{Redact as _, Redaction, Redactor};
use crate::audit::verify::{Anchors, GapKind, Report, verify_reader};
use crate::audit::{ledger_path, log_path};
use crate::base::clock::{Clock, rfc3339};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::jsonl::{Contents, JsonlError, LineFile};
use crate::base::text::Untrusted;
use std::path::{Path, PathBuf};

/// Records between two checkpoints that the writer adds by itself: a cut is then seen to within
/// this many, at the price of one more flush in fifty.
pub const CHECKPOINT_RECORDS: u64 = 50;

/// Why a record is not in the log. The call that it belongs to must not go on.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The log or the ledger could not be opened or written.
    #[error("audit log: {0}")]
    File(#[from] JsonlError),
    /// The log that is there is not what was written; it is left alone.
    #[error("audit log is damaged; keep it for inspection and start a new session\n{0}")]
    Damaged(Box<Report>),
    /// The record is larger than a reader accepts.
    #[error("an audit record of {bytes} bytes; at most {RECORD_BYTES_MAX} are allowed")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// The record could not be put into bytes.
    #[error("cannot encode an audit record: {0}")]
    Encode(#[from] serde_json::Error),
    /// An earlier append failed, so the log has a hole that only the end of the run may follow.
    #[error("the audit log failed before; only the end of the run can be recorded")]
    Stopped,
    /// The record may not stand here: before `session`, or after `end`.
    #[error("a `{kind}` record cannot stand here: the run {why}")]
    OutOfPlace {
        /// Kind of the record.
        kind: &'static str,
        /// Where the run is.
        why: &'static str,
    },
}

/// Proof that a record is durable. Only the writer makes one, and it cannot be copied.
#[derive(Debug, PartialEq, Eq)]
pub struct Receipt {
    sequence: u64,
    link: Digest,
}

impl Receipt {
    /// Place of the record in the log.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Its link: the digest of its line.
    #[must_use]
    pub const fn link(&self) -> Digest {
        self.link
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Opened,
    Running,
    Stopped,
    Ended,
}

/// When a record reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    Now,
    /// Now, and it may use the disk held in reserve.
    FromReserve,
    /// With the next record.
    WithNext,
}

/// The writer of one session's log.
#[derive(Debug)]
pub struct AuditWriter {
    file: LineFile,
    ledger: PathBuf,
    session: Id,
    head: Head,
    since_checkpoint: u64,
    checkpoint_every: u64,
    state: State,
    /// Calls that had started and had no outcome when the log was opened.
    unfinished: Vec<Id>,
    redactor: Redactor,
    clock: Clock,
}

impl AuditWriter {
    /// Opens the log of `session` in `directory`, which must exist, and continues its chain. What is
    /// there is verified first. A torn last line is moved to a file of its own and recorded.
    ///
    /// # Errors
    /// [`AuditError::File`] if another process writes it or the disk refuses;
    /// [`AuditError::Damaged`] if what is there is not what was written.
    pub fn open(
        directory: &Path,
        session: &Id,
        redactor: Redactor,
        clock: Clock,
    ) -> Result<Self, AuditError> {
        let path = log_path(directory, session);
        let mut aside = PathBuf::new();
        let (file, contents) = LineFile::open_keeping(&path, |offset, torn| {
            aside = keep_torn(&path, offset, torn)?;
            Ok(())
        })?;
        let (head, unfinished) = verified(&path, &contents)?;
        let new = Self::over(file, directory, session, (redactor, clock));
        let mut writer = Self { head, unfinished, ..new };
        writer.note_head(HeadEvent::Opened)?;
        if !contents.torn.is_empty() {
            let recovered = recovered(&contents, &aside);
            writer.write(Body::Recovered(recovered), Flush::Now)?;
        }
        Ok(writer)
    }

    /// Begins the log of `session`, an id that was just made, in `directory`, which must exist. There
    /// is nothing to verify: nobody could have written or removed a log of that name.
    ///
    /// # Errors
    /// [`AuditError::File`] if the disk refuses or there is such a log.
    pub fn create(
        directory: &Path,
        session: &Id,
        redactor: Redactor,
        clock: Clock,
    ) -> Result<Self, AuditError> {
        let file = LineFile::create(&log_path(directory, session))?;
        let writer = Self::over(file, directory, session, (redactor, clock));
        writer.note_head(HeadEvent::Opened)?;
        Ok(writer)
    }

    fn over(
        file: LineFile,
        directory: &Path,
        session: &Id,
        (redactor, clock): (Redactor, Clock),
    ) -> Self {
        Self {
            file,
            ledger: ledger_path(directory),
            session: session.clone(),
            head: Head::EMPTY,
            since_checkpoint: 0,
            checkpoint_every: CHECKPOINT_RECORDS,
            state: State::Opened,
            unfinished: Vec::new(),
            redactor,
            clock,
        }
    }

    /// The same writer with a checkpoint behind every `records` records, at least one.
    #[must_use]
    pub fn with_checkpoint_every(self, records: u64) -> Self {
        Self { checkpoint_every: records.max(1), ..self }
    }

    /// Redacts and appends a record and flushes it to the disk; before it, now and then, a
    /// checkpoint. `end` also notes the head in the ledger and closes the log for further records.
    ///
    /// # Errors
    /// [`AuditError`]; the log is then as before, and every later append but that of `end` fails.
    pub fn append(&mut self, body: &Body) -> Result<Receipt, AuditError> {
        self.append_as(body, Flush::Now)
    }

    /// The same without a flush of its own and so without a receipt: the next append flushes both. For
    /// a record on which nothing waits and that another one follows at once.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_unflushed(&mut self, body: &Body) -> Result<(), AuditError> {
        self.append_as(body, Flush::WithNext).map(drop)
    }

    /// Appends two records with one flush. A crash leaves both, the first alone, or neither; nothing
    /// may have happened between them.
    ///
    /// # Errors
    /// As [`Self::append`], for either.
    pub fn append_both(
        &mut self,
        first: &Body,
        second: &Body,
    ) -> Result<(Receipt, Receipt), AuditError> {
        // No receipt leaves this function before the flush behind the second.
        let first = self.append_as(first, Flush::WithNext)?;
        let second = self.append_as(second, Flush::Now)?;
        Ok((first, second))
    }

    fn append_as(&mut self, body: &Body, flush: Flush) -> Result<Receipt, AuditError> {
        self.check_place(body)?;
        if self.since_checkpoint >= self.checkpoint_every && self.state == State::Running {
            self.write_checkpoint()?;
        }
        let receipt = self.write(body.clone(), flush)?;
        match body {
            Body::End(_) => {
                self.state = State::Ended;
                self.note_head(HeadEvent::Ended)?;
            }
            Body::Session(_) => self.state = State::Running,
            Body::Decision(_)
            | Body::Started(_)
            | Body::Outcome(_)
            | Body::Rejected(_)
            | Body::Grant(_)
            | Body::Network(_)
            | Body::Hook(_)
            | Body::Guardian(_)
            | Body::Agent(_)
            | Body::Retry(_)
            | Body::Repair(_)
            | Body::Checkpoint(_)
            | Body::Recovered(_) => {}
        }
        Ok(receipt)
    }

    /// The calls that an earlier process started and of whose end the log it left says nothing.
    #[must_use]
    pub fn take_unfinished(&mut self) -> Vec<Id> {
        std::mem::take(&mut self.unfinished)
    }

    /// The number of records and the link of the last.
    #[must_use]
    pub const fn head(&self) -> Head {
        self.head
    }

    /// Where the log lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    fn write_checkpoint(&mut self) -> Result<(), AuditError> {
        let Head { records, link } = self.head;
        let checkpoint = Checkpoint { records, head: link, signature: None };
        self.write(Body::Checkpoint(checkpoint), Flush::Now)?;
        self.since_checkpoint = 0;
        self.note_head(HeadEvent::Checkpoint)
    }

    fn check_place(&self, body: &Body) -> Result<(), AuditError> {
        let is_session = matches!(body, Body::Session(_));
        let is_end = matches!(body, Body::End(_));
        let kind = body.kind();
        match self.state {
            State::Opened if is_session => Ok(()),
            State::Opened => Err(AuditError::OutOfPlace { kind, why: "has not begun" }),
            State::Running if is_session => {
                Err(AuditError::OutOfPlace { kind, why: "has begun already" })
            }
            State::Running => Ok(()),
            State::Stopped if is_end => Ok(()),
            State::Stopped => Err(AuditError::Stopped),
            State::Ended => Err(AuditError::OutOfPlace { kind, why: "has ended" }),
        }
    }

    fn write(&mut self, mut body: Body, flush: Flush) -> Result<Receipt, AuditError> {
        body.redact(&mut Redaction::new(&self.redactor));
        let flush = if matches!(body, Body::End(_)) { Flush::FromReserve } else { flush };
        let sequence = self.head.records + 1;
        let time = rfc3339(self.clock.now_ms());
        let prev = self.head.link;
        let line = Record { v: FORMAT_VERSION, seq: sequence, time, prev, body }.to_line()?;
        let result = self.write_line(&line, flush);
        if result.is_err() {
            self.state = State::Stopped;
        }
        result?;
        let link = Digest::of(&line);
        self.head = Head { records: sequence, link };
        self.since_checkpoint += 1;
        Ok(Receipt { sequence, link })
    }

    fn write_line(&mut self, line: &[u8], flush: Flush) -> Result<(), AuditError> {
        if line.len() > RECORD_BYTES_MAX {
            return Err(AuditError::TooLarge { bytes: line.len() });
        }
        match flush {
            Flush::Now => self.file.append(line)?,
            Flush::FromReserve => self.file.append_from_reserve(line)?,
            Flush::WithNext => self.file.append_unflushed(line)?,
        }
        Ok(())
    }

    fn note_head(&self, event: HeadEvent) -> Result<(), AuditError> {
        Ok(ledger::note(&self.ledger, &self.clock, (event, &self.session, self.head))?)
    }
}

/// The head of what is there, if all of it is as it was written, and its calls without outcome. A ledger that is gone counts as an
/// empty one, which knows no log: whoever removed it may have cut the log too.
fn verified(path: &Path, contents: &Contents) -> Result<(Head, Vec<Id>), AuditError> {
    let mut anchors = Anchors::beside(path)?;
    anchors.ledger.get_or_insert_default();
    let name = path.to_string_lossy();
    let report = verify_reader(&name, contents.complete.as_slice(), &anchors)
        .map_err(|source| JsonlError::Io { action: "read", path: path.to_owned(), source })?;
    if !report.problems.is_empty() {
        return Err(AuditError::Damaged(Box::new(report)));
    }
    let head = Head { records: report.records, link: report.head.unwrap_or_else(Digest::zero) };
    let gaps = report.gaps.into_iter().filter(|gap| gap.kind == GapKind::StartWithoutOutcome);
    Ok((head, gaps.map(|gap| gap.call).collect()))
}

fn recovered(contents: &Contents, aside: &Path) -> Recovered {
    let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let name = aside.file_name().unwrap_or_default().to_string_lossy();
    Recovered {
        offset: length(&contents.complete),
        bytes: length(&contents.torn),
        digest: Digest::of(&contents.torn),
        aside: Untrusted::new(name),
    }
}
