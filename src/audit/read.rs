//! Lines of a log, one at a time, with their numbers and links. Memory is bounded by one line.
//!
//! `verify` and `query` read through this; what a line says is the business of `record`.

use crate::audit::record::RECORD_BYTES_MAX;
use crate::base::digest::Digest;
use crate::base::jsonl::{self, JsonlError};
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

/// One line as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLine {
    /// Line number, from 1.
    pub number: u64,
    /// Byte offset of its first byte.
    pub offset: u64,
    /// Its bytes without the line feed; cut if it is longer than any record.
    pub bytes: Vec<u8>,
    /// Whether it ends in a line feed.
    pub is_complete: bool,
    /// Whether it is longer than any record can be.
    pub is_too_long: bool,
}

impl RawLine {
    /// The link that the next record must hold.
    #[must_use]
    pub fn link(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

/// Reads lines from a log.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    number: u64,
    offset: u64,
}

impl Lines<BufReader<File>> {
    /// Opens the log at `path`. It is neither locked nor changed.
    ///
    /// # Errors
    /// [`JsonlError`], also when the path is a symbolic link or not a regular file.
    pub fn open(path: &Path) -> Result<Self, JsonlError> {
        jsonl::open_to_read(path).map(|file| Self::new(BufReader::with_capacity(64 * 1024, file)))
    }
}

impl<R: BufRead> Lines<R> {
    /// Reads from `reader`.
    pub const fn new(reader: R) -> Self {
        Self { reader, number: 0, offset: 0 }
    }

    fn read_line(&mut self) -> std::io::Result<Option<RawLine>> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(RECORD_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        let mut length = (&mut self.reader).take(limit).read_until(b'\n', &mut bytes)?;
        if length == 0 {
            return Ok(None);
        }
        let is_too_long = length > RECORD_BYTES_MAX && bytes.last() != Some(&b'\n');
        let mut is_complete = bytes.last() == Some(&b'\n');
        if is_complete {
            bytes.pop();
        }
        if is_too_long {
            let (skipped, found) = self.skip_line()?;
            length = length.saturating_add(skipped);
            is_complete = found;
        }
        self.number += 1;
        let line =
            RawLine { number: self.number, offset: self.offset, bytes, is_complete, is_too_long };
        self.offset += u64::try_from(length).unwrap_or(u64::MAX);
        Ok(Some(line))
    }

    /// Skips to the end of a line that is too long; how far that was, and whether a line feed was
    /// found.
    fn skip_line(&mut self) -> std::io::Result<(usize, bool)> {
        let mut skipped = 0_usize;
        loop {
            let available = self.reader.fill_buf()?;
            if available.is_empty() {
                return Ok((skipped, false));
            }
            let found = available.iter().position(|byte| *byte == b'\n');
            let used = found.map_or(available.len(), |position| position + 1);
            self.reader.consume(used);
            skipped = skipped.saturating_add(used);
            if found.is_some() {
                return Ok((skipped, true));
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = std::io::Result<RawLine>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_line().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_carry_number_offset_and_whether_they_are_complete() {
        let lines: Vec<_> =
            Lines::new(&b"a\n\nbc\nd"[..]).map(|line| line.expect("reads from memory")).collect();
        let found: Vec<_> = lines
            .iter()
            .map(|line| (line.number, line.offset, line.bytes.as_slice(), line.is_complete))
            .collect();
        let expected: [(u64, u64, &[u8], bool); 4] =
            [(1, 0, b"a", true), (2, 2, b"", true), (3, 3, b"bc", true), (4, 6, b"d", false)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_longer_than_any_record_is_skipped_in_bounded_memory() {
        let mut bytes = vec![b'x'; RECORD_BYTES_MAX + 100];
        bytes.extend_from_slice(b"\nnext\n");
        let lines: Vec<_> = Lines::new(bytes.as_slice()).map(Result::unwrap).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].is_too_long && lines[0].is_complete);
        assert_eq!(lines[1].bytes, b"next");
        assert_eq!(lines[1].offset, bytes.len() as u64 - 5);
    }
}
