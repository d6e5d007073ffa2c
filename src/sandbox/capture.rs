//! Bounded memory of an unbounded output: the first bytes, the last bytes and the exact count.
//!
//! The whole may also go to a spill file that stops growing at its own bound. Nothing here decides
//! what a reader is shown; cuts on character boundaries are the business of whoever renders.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What was kept of one output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, without any that are in `head`.
    pub tail: Vec<u8>,
    /// All bytes the program wrote that arrived here.
    pub total_bytes: u64,
    /// The spill file, when there is one.
    pub spill: Option<PathBuf>,
    /// Whether the spill file holds less than everything: its bound was reached or the disk refused.
    pub spill_cut: bool,
}

impl Captured {
    /// Bytes that are neither in `head` nor in `tail`.
    #[must_use]
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }
}

/// Takes the output of one stream.
#[derive(Debug, Clone)]
struct Ring {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    total: u64,
}

impl Ring {
    fn new(head_max: usize, tail_max: usize) -> Self {
        Self { head: Vec::new(), head_max, tail: VecDeque::new(), tail_max, total: 0 }
    }

    /// Adds bytes in constant memory.
    fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = self.head_max.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        let skipped = rest.len().saturating_sub(self.tail_max);
        let kept = rest.get(skipped..).unwrap_or_default();
        let excess = (self.tail.len() + kept.len()).saturating_sub(self.tail_max);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(kept);
    }

    /// At most `most` of the bytes that were kept from `offset` on, up to the next gap. What was let go
    /// is passed over: the piece then begins behind it.
    fn piece(&self, offset: u64, most: usize) -> Piece {
        let tail_start = self.total - self.tail.len() as u64;
        let head_end = self.head.len() as u64;
        let start = if offset < head_end { offset } else { offset.max(tail_start).min(self.total) };
        let skip = |from: u64| usize::try_from(start.saturating_sub(from)).unwrap_or(usize::MAX);
        let of_head = self.head.get(skip(0)..).unwrap_or_default();
        let mut bytes: Vec<u8> = of_head.iter().take(most).copied().collect();
        if start >= tail_start || head_end == tail_start {
            let room = most - bytes.len();
            bytes.extend(self.tail.iter().skip(skip(tail_start)).take(room));
        }
        Piece { offset: start, bytes, total_bytes: self.total }
    }

    fn finish(self, spill: Option<&Spill>) -> Captured {
        Captured {
            head: self.head,
            tail: self.tail.into(),
            total_bytes: self.total,
            spill: spill.map(|spill| spill.path.clone()),
            spill_cut: spill.is_some_and(|spill| spill.cut),
        }
    }
}

/// A part of an output that may still grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins in the whole output; behind the offset that was asked for if bytes there were
    /// let go.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Bytes of the output so far.
    pub total_bytes: u64,
}

/// One output stream of a program, which may be read while it is written. Clones share it.
#[derive(Debug, Clone)]
pub struct LiveOutput(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    taken: Mutex<Taken>,
    changed: Condvar,
}

#[derive(Debug)]
struct Taken {
    ring: Ring,
    ended: bool,
}

impl LiveOutput {
    pub(super) fn new(head_max: usize, tail_max: usize) -> Self {
        let taken = Taken { ring: Ring::new(head_max, tail_max), ended: false };
        Self(Arc::new(Shared { taken: Mutex::new(taken), changed: Condvar::new() }))
    }

    pub(super) fn push(&self, bytes: &[u8]) {
        self.lock().ring.push(bytes);
        self.0.changed.notify_all();
    }

    /// Tells whoever waits that nothing more comes.
    pub fn end(&self) {
        self.lock().ended = true;
        self.0.changed.notify_all();
    }

    /// At most `most` bytes from `offset` on, as far as they were kept.
    #[must_use]
    pub fn piece(&self, offset: u64, most: usize) -> Piece {
        self.lock().ring.piece(offset, most)
    }

    /// Waits at most `time` for a byte at `offset`, or the end. Whether either came.
    #[must_use]
    pub fn wait(&self, offset: u64, time: Duration) -> bool {
        let silent = |taken: &mut Taken| taken.ring.total <= offset && !taken.ended;
        let waited = self.0.changed.wait_timeout_while(self.lock(), time, silent);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// What was kept; moved out if nobody else holds it.
    pub(super) fn finish(self, spill: Option<&Spill>) -> Captured {
        let ring = match Arc::try_unwrap(self.0) {
            Ok(shared) => shared.taken.into_inner().unwrap_or_else(PoisonError::into_inner).ring,
            Err(shared) => shared.taken.lock().unwrap_or_else(PoisonError::into_inner).ring.clone(),
        };
        ring.finish(spill)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // A ring is whole between any two of its bytes.
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file that takes the whole output, up to a bound.
#[derive(Debug)]
pub(super) struct Spill {
    path: PathBuf,
    file: File,
    room: u64,
    cut: bool,
}

impl Spill {
    /// Creates the file; an existing one is never reused, whoever made it.
    pub(super) fn create(path: &Path, bytes_max: u64) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self { path: path.to_owned(), file, room: bytes_max, cut: false })
    }

    /// Adds bytes; a full disk ends the file, not the call.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX).min(bytes.len());
        let kept = bytes.get(..room).unwrap_or_default();
        self.cut |= room < bytes.len();
        if self.file.write_all(kept).is_err() {
            self.cut = true;
            self.room = 0;
            return;
        }
        self.room -= room as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends_of_what_was_written(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            head_max in 0_usize..50,
            tail_max in 0_usize..50,
        ) {
            let whole: Vec<u8> = pieces.concat();
            let output = LiveOutput::new(head_max, tail_max);
            let held = output.clone();
            pieces.iter().for_each(|piece| output.push(piece));
            let captured = output.finish(None);
            prop_assert_eq!(&held.finish(None), &captured, "also for who holds it on");
            let head = head_max.min(whole.len());
            let tail = tail_max.min(whole.len() - head);
            prop_assert_eq!(&captured.head, &whole[..head]);
            prop_assert_eq!(&captured.tail, &whole[whole.len() - tail..]);
            prop_assert_eq!(captured.total_bytes, whole.len() as u64);
            prop_assert_eq!(captured.omitted_bytes(), (whole.len() - head - tail) as u64);
        }

        #[test]
        fn pieces_from_any_offset_are_what_was_written_there(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            (head_max, tail_max) in (0_usize..50, 0_usize..50),
            (offset, most) in (0_u64..900, 1_usize..90),
        ) {
            let whole: Vec<u8> = pieces.concat();
            let output = LiveOutput::new(head_max, tail_max);
            pieces.iter().for_each(|piece| output.push(piece));
            let piece = output.piece(offset, most);
            prop_assert_eq!(piece.total_bytes, whole.len() as u64);
            let start = usize::try_from(piece.offset).unwrap();
            prop_assert_eq!(&piece.bytes, &whole[start..start + piece.bytes.len()]);
            prop_assert!(piece.bytes.len() <= most);
            // Read on from there, everything that was kept comes, once.
            let (mut kept, mut at) = (0, 0);
            loop {
                let piece = output.piece(at, most);
                if piece.bytes.is_empty() {
                    break;
                }
                prop_assert!(piece.offset >= at);
                kept += piece.bytes.len();
                at = piece.offset + piece.bytes.len() as u64;
            }
            let head = head_max.min(whole.len());
            prop_assert_eq!(kept, head + tail_max.min(whole.len() - head));
            prop_assert_eq!(at, if tail_max == 0 { head as u64 } else { whole.len() as u64 });
        }
    }

    #[test]
    fn the_spill_file_stops_at_its_bound_and_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spill");
        let mut spill = Spill::create(&path, 5).unwrap();
        spill.push(b"abc");
        assert!(!spill.cut);
        spill.push(b"defg");
        assert!(spill.cut);
        assert_eq!(std::fs::read(&path).unwrap(), b"abcde");
        assert!(Spill::create(&path, 5).is_err(), "an existing file is not reused");
    }
}
