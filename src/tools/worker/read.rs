//! Reading a page of a text file of any size in bounded memory.
//!
//! The page holds whole lines as they are, line ends included. Bytes that are not UTF-8 are shown
//! as U+FFFD and counted; a file is taken for binary if its first bytes hold a NUL or if more than
//! three of ten bytes of the page cannot be shown. A byte order mark is named, not shown.

use super::Stopwatch;
use super::beneath::Places;
use super::job::FileJob;
use super::reply::{JobError, Page, Stopped};
use super::shown::{self, Decoded};
use crate::base::digest::Hasher;
use crate::call::request::ReadArguments;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes at the start of a file that are looked at to tell text from other content.
const SAMPLE_BYTES: usize = 8 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the page that `arguments` ask for.
pub(super) fn read(
    job: &FileJob,
    places: &Places<'_>,
    arguments: &ReadArguments,
    clock: &Stopwatch,
) -> Result<Page, JobError> {
    let (place, _) = places.existing(&arguments.path)?;
    let (file, facts) = place.open_file()?;
    let limits = &job.limits;
    let mut pager = Pager {
        first: arguments.offset.unwrap_or(1).max(1),
        lines_max: arguments.limit.unwrap_or(limits.page_lines).clamp(1, limits.page_lines.max(1)),
        bytes_max: limits.page_bytes,
        ..Pager::default()
    };
    let whole = facts.bytes <= limits.edit_bytes;
    let scan = Scan { whole, bytes_max: limits.scan_bytes, path: &place.real };
    let scanned = scan.run(file, &mut pager, clock)?;
    page(&place.real, facts.bytes, pager, scanned)
}

/// How a file is passed over.
struct Scan<'a> {
    /// Whether to go on to the end of the file once the page is full, for its digest.
    whole: bool,
    bytes_max: u64,
    path: &'a Path,
}

/// What a scan learned besides the page.
#[derive(Default)]
struct Scanned {
    bytes: u64,
    reached_end: bool,
    digest: Option<crate::base::digest::Digest>,
    byte_order_mark: bool,
    stopped: Option<Stopped>,
}

impl Scan<'_> {
    fn run(
        &self,
        mut file: File,
        pager: &mut Pager,
        clock: &Stopwatch,
    ) -> Result<Scanned, JobError> {
        let mut chunk = vec![0_u8; CHUNK_BYTES];
        let mut hasher = Hasher::new();
        let mut scanned = Scanned::default();
        loop {
            let filled = fill(&mut file, &mut chunk).map_err(|error| self.io_error(&error))?;
            let bytes = chunk.get(..filled).unwrap_or_default();
            if scanned.bytes == 0 {
                refuse_binary(self.path, bytes, &file)?;
                scanned.byte_order_mark = bytes.starts_with(BYTE_ORDER_MARK);
            }
            scanned.bytes += filled as u64;
            if self.whole {
                hasher.update(bytes);
            }
            pager.push(bytes);
            if filled < CHUNK_BYTES {
                scanned.reached_end = true;
                scanned.digest = self.whole.then(|| hasher.finish());
                return Ok(scanned);
            }
            scanned.stopped = stop_cause(scanned.bytes >= self.bytes_max, clock.is_over());
            if scanned.stopped.is_some() || (pager.is_past_page() && !self.whole) {
                return Ok(scanned);
            }
        }
    }

    fn io_error(&self, error: &std::io::Error) -> JobError {
        JobError::Io {
            action: "read".to_owned(),
            path: shown::path(self.path),
            problem: error.to_string(),
        }
    }
}

const fn stop_cause(bytes: bool, time: bool) -> Option<Stopped> {
    match (bytes, time) {
        (true, _) => Some(Stopped::Bytes),
        (false, true) => Some(Stopped::Time),
        (false, false) => None,
    }
}

/// Reads until `buffer` is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn refuse_binary(path: &Path, start: &[u8], file: &File) -> Result<(), JobError> {
    let sample = start.get(..SAMPLE_BYTES).unwrap_or(start);
    let encoding = match sample {
        [0xff, 0xfe, ..] => Some("UTF-16 little-endian"),
        [0xfe, 0xff, ..] => Some("UTF-16 big-endian"),
        _other => None,
    };
    if !sample.contains(&0) {
        return Ok(());
    }
    Err(JobError::Binary {
        path: shown::path(path),
        bytes: file.metadata().map_or(0, |metadata| metadata.len()),
        encoding: encoding.map(str::to_owned),
    })
}

/// Collects the lines of one page from a stream of chunks.
#[derive(Debug, Default)]
struct Pager {
    /// Number of the first line wanted.
    first: u64,
    lines_max: u64,
    bytes_max: usize,
    /// Complete lines seen so far.
    ended: u64,
    /// Bytes of the line that has not ended yet.
    open_bytes: u64,
    /// The page's complete lines.
    page: Vec<u8>,
    page_lines: u64,
    /// The part of the open line that may go into the page.
    open: Vec<u8>,
    /// The page takes no more lines.
    full: bool,
    /// Length of the single line that was cut to fit.
    cut: Option<u64>,
}

impl Pager {
    fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end + 1);
            self.extend_line(line);
            self.end_line();
            bytes = rest;
        }
        self.extend_line(bytes);
    }

    fn extend_line(&mut self, part: &[u8]) {
        self.open_bytes += part.len() as u64;
        if self.wants_line() {
            // One byte more than fits is enough to know that the line does not fit.
            let room = (self.bytes_max + 1).saturating_sub(self.open.len());
            self.open.extend_from_slice(part.get(..room).unwrap_or(part));
        }
    }

    fn wants_line(&self) -> bool {
        !self.full && self.ended + 1 >= self.first
    }

    fn end_line(&mut self) {
        if self.wants_line() {
            self.take_line();
        }
        self.ended += 1;
        self.open_bytes = 0;
        self.open.clear();
    }

    fn take_line(&mut self) {
        if self.page.len() + self.open.len() > self.bytes_max {
            self.full = true;
            if self.page_lines > 0 {
                return;
            }
            self.cut = Some(self.open_bytes);
            self.open.truncate(self.bytes_max);
            let whole = self.open.len() - shown::incomplete_end(&self.open);
            self.open.truncate(whole);
        }
        self.page.append(&mut self.open);
        self.page_lines += 1;
        self.full = self.full || self.page_lines >= self.lines_max;
    }

    /// Whether what follows can no longer change the page.
    fn is_past_page(&self) -> bool {
        self.full || self.open.len() > self.bytes_max
    }

    /// Ends the last line, if it has no line feed.
    fn finish(&mut self) {
        if self.open_bytes > 0 {
            self.end_line();
        }
    }
}

/// Ends the page where the scan ended; an error if there is none.
fn end_page(path: &Path, pager: &mut Pager, scanned: &Scanned) -> Result<(), JobError> {
    let cut_open = !scanned.reached_end && pager.is_past_page() && !pager.full;
    if scanned.reached_end || cut_open {
        pager.finish();
    }
    let is_empty_file = pager.first == 1 && scanned.reached_end;
    if pager.page_lines > 0 || is_empty_file {
        return Ok(());
    }
    let (path, offset, lines) = (shown::path(path), pager.first, pager.ended);
    Err(match scanned.stopped {
        Some(stopped) => JobError::NotReached { path, offset, lines, stopped },
        None => JobError::OffsetPastEnd { path, offset, lines },
    })
}

fn page(
    path: &Path,
    file_bytes: u64,
    mut pager: Pager,
    scanned: Scanned,
) -> Result<Page, JobError> {
    end_page(path, &mut pager, &scanned)?;
    let lines = pager.ended;
    let mut bytes = pager.page.as_slice();
    if pager.first == 1 && scanned.byte_order_mark {
        bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    }
    let Decoded { text, replaced } = shown::decode(bytes);
    if replaced.saturating_mul(10) > (bytes.len() as u64).saturating_mul(3) {
        let path = shown::path(path);
        return Err(JobError::Binary { path, bytes: file_bytes, encoding: None });
    }
    let next = pager.first + pager.page_lines;
    let goes_on = !scanned.reached_end || next <= lines;
    Ok(Page {
        path: path.to_owned(),
        first_line: pager.first,
        lines: pager.page_lines,
        next_offset: goes_on.then_some(next),
        total_lines: scanned.reached_end.then_some(lines),
        file_bytes,
        digest: scanned.digest,
        replaced_bytes: replaced,
        // A cut line that was not read to its end is at least as long as what was seen of it.
        cut_line_bytes: pager.cut,
        byte_order_mark: scanned.byte_order_mark,
        crlf: text.contains("\r\n"),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The page that starts at line `first`, from content that comes in pieces of `step` bytes.
    fn paged(content: &[u8], first: u64, lines_max: u64, bytes_max: usize, step: usize) -> Pager {
        let mut pager = Pager { first, lines_max, bytes_max, ..Pager::default() };
        content.chunks(step).for_each(|piece| pager.push(piece));
        pager.finish();
        pager
    }

    proptest! {
        #[test]
        fn pages_joined_are_the_content_however_it_arrives(
            content in "[a中\n]{0,60}",
            lines_max in 1_u64..5,
            bytes_max in 3_usize..20,
            step in 1_usize..9,
        ) {
            let total = content.lines().count() as u64;
            let (mut joined, mut first) = (Vec::new(), 1);
            while first <= total {
                let pager = paged(content.as_bytes(), first, lines_max, bytes_max, step);
                prop_assert_eq!(pager.ended, total);
                prop_assert!((1..=lines_max).contains(&pager.page_lines));
                prop_assert!(pager.page.len() <= bytes_max);
                match pager.cut {
                    None => joined.extend_from_slice(&pager.page),
                    // The cut line is the page's only one, and too long for any page.
                    Some(bytes) => {
                        prop_assert!(pager.page_lines == 1 && bytes > bytes_max as u64);
                        let mut numbered = content.split_inclusive('\n').zip(1..);
                        let (line, _) = numbered.find(|(_, number)| *number == first).unwrap();
                        prop_assert!(line.as_bytes().starts_with(&pager.page));
                        prop_assert!(std::str::from_utf8(&pager.page).is_ok());
                        prop_assert_eq!(line.len() as u64, bytes);
                        joined.extend_from_slice(line.as_bytes());
                    }
                }
                first += pager.page_lines;
            }
            prop_assert_eq!(joined, content.as_bytes());
            prop_assert_eq!(paged(content.as_bytes(), total + 1, 1, 9, step).page_lines, 0);
        }
    }
}
