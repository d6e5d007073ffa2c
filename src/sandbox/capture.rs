//! Bounded memory of an unbounded output: the first bytes, the last bytes and the exact count.
//!
//! The whole may also go to a spill file that stops growing at its own bound. Nothing here decides
//! what a reader is shown; cuts on character boundaries are the business of whoever renders.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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
#[derive(Debug)]
pub(super) struct Ring {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    total: u64,
}

impl Ring {
    pub(super) fn new(head_max: usize, tail_max: usize) -> Self {
        Self { head: Vec::new(), head_max, tail: VecDeque::new(), tail_max, total: 0 }
    }

    /// Adds bytes in constant memory.
    pub(super) fn push(&mut self, bytes: &[u8]) {
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

    pub(super) fn finish(self, spill: Option<&Spill>) -> Captured {
        Captured {
            head: self.head,
            tail: self.tail.into(),
            total_bytes: self.total,
            spill: spill.map(|spill| spill.path.clone()),
            spill_cut: spill.is_some_and(|spill| spill.cut),
        }
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
            let mut ring = Ring::new(head_max, tail_max);
            for piece in &pieces {
                ring.push(piece);
            }
            let captured = ring.finish(None);
            let head = head_max.min(whole.len());
            let tail = tail_max.min(whole.len() - head);
            prop_assert_eq!(&captured.head, &whole[..head]);
            prop_assert_eq!(&captured.tail, &whole[whole.len() - tail..]);
            prop_assert_eq!(captured.total_bytes, whole.len() as u64);
            prop_assert_eq!(captured.omitted_bytes(), (whole.len() - head - tail) as u64);
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
