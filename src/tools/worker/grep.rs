//! Searching the lines of files for a regular expression, with the libraries of ripgrep.
//!
//! Regular files only, none that is binary, each opened beneath the directory it was met in. The
//! expression cannot take more than linear time; its size, the bytes read and the time are bounded.

use super::Stopwatch;
use super::beneath::{Place, Places};
use super::find::{compile, names_hidden, options};
use super::job::FileJob;
use super::node::{facts, open_at};
use super::reply::{Coverage, Done, FileKind, JobError, Matched, MatchedLine, Stopped};
use super::shown;
use super::walk::{Entry, Options, walk};
use crate::base::limits::{GREP_LINE_BYTES_MAX, PATTERN_BYTES_MAX, REGEX_BYTES_MAX};
use crate::base::text::{escape, prefix};
use crate::call::request::GrepArguments;
use globset::GlobMatcher;
use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};
use rustix::fd::AsFd as _;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Longest line that is searched.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Searches what `arguments` name.
pub(super) fn grep(
    job: &FileJob,
    places: &Places<'_>,
    arguments: &GrepArguments,
    clock: &Stopwatch,
) -> Result<Done, JobError> {
    let include = arguments.include.as_deref().map(include_matcher).transpose()?;
    let mut search = Search::new(job, places, matcher(arguments)?, clock);
    let (place, facts) = places.existing(arguments.path.as_deref().unwrap_or("."))?;
    if facts.kind != FileKind::Directory {
        return search.single(&place);
    }
    let options = options(job, arguments.all, clock);
    let hidden = options.hidden || arguments.include.as_deref().is_some_and(names_hidden);
    let options = Options { hidden, ..options };
    let coverage = walk(places, &place, options, &mut |entry, coverage| {
        let wanted = entry.kind == FileKind::Regular
            && include.as_ref().is_none_or(|(glob, whole)| is_included(glob, *whole, entry));
        if wanted { search.entry(entry, coverage) } else { None }
    })?;
    Ok(search.done(coverage))
}

/// A glob without `/` is matched against the name, any other against the path.
fn include_matcher(pattern: &str) -> Result<(GlobMatcher, bool), JobError> {
    compile(pattern).map(|glob| (glob, pattern.contains('/')))
}

fn is_included(glob: &GlobMatcher, whole: bool, entry: &Entry<'_>) -> bool {
    if whole { glob.is_match(entry.relative) } else { glob.is_match(entry.name) }
}

fn matcher(arguments: &GrepArguments) -> Result<RegexMatcher, JobError> {
    let pattern = &arguments.pattern;
    let bad =
        |problem: String| JobError::BadPattern { pattern: escape(prefix(pattern, 200)), problem };
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(bad(format!("it has more than {PATTERN_BYTES_MAX} bytes; shorten it")));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case.unwrap_or(false))
        .multi_line(true)
        .crlf(true)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .build(pattern)
        .map_err(|error| bad(format!("{error}; patterns are Rust regular expressions")))
}

struct Search<'a> {
    places: &'a Places<'a>,
    matcher: RegexMatcher,
    searcher: Searcher,
    clock: &'a Stopwatch,
    /// Bytes that may still be read.
    bytes: u64,
    room: Room,
    matched: Matched,
}

/// What may still be given.
struct Room {
    lines: usize,
    bytes: usize,
}

impl<'a> Search<'a> {
    fn new(
        job: &FileJob,
        places: &'a Places<'a>,
        matcher: RegexMatcher,
        clock: &'a Stopwatch,
    ) -> Self {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .heap_limit(Some(LINE_BYTES_MAX))
            .binary_detection(BinaryDetection::quit(0))
            .build();
        let room = Room { lines: job.limits.found, bytes: job.limits.page_bytes };
        let matched = Matched::default();
        Self { places, matcher, searcher, clock, bytes: job.limits.scan_bytes, room, matched }
    }

    fn done(self, coverage: Coverage) -> Done {
        Done::Matched(Matched { coverage, ..self.matched })
    }

    fn single(mut self, place: &Place) -> Result<Done, JobError> {
        let (file, facts) = place.open_file()?;
        let mut coverage = Coverage::default();
        coverage.stopped = self.file(file, &shown::path(Path::new(&place.name)), &mut coverage);
        if self.matched.binary > 0 {
            let path = shown::path(&place.real);
            return Err(JobError::Binary { path, bytes: facts.bytes, encoding: None });
        }
        Ok(self.done(coverage))
    }

    fn entry(&mut self, entry: &Entry<'_>, coverage: &mut Coverage) -> Option<Stopped> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = open_at(entry.directory, entry.name, flags, Mode::empty());
        let opened = opened.and_then(|fd| facts(fd.as_fd()).map(|facts| (fd, facts)));
        match opened {
            Ok((_, facts)) if self.places.protections.hides_file(facts.identity) => {
                coverage.protected += 1;
                None
            }
            Ok((fd, facts)) if facts.kind == FileKind::Regular => {
                self.file(File::from(fd), &shown::path(entry.relative), coverage)
            }
            Ok(_) | Err(_) => {
                coverage.unreadable += 1;
                None
            }
        }
    }

    fn file(&mut self, file: File, name: &str, coverage: &mut Coverage) -> Option<Stopped> {
        let mut reader = Metered { file, bytes: self.bytes, clock: self.clock, stopped: None };
        let mut lines = Lines {
            matcher: &self.matcher,
            name,
            room: &mut self.room,
            found: Vec::new(),
            omitted: 0,
            is_binary: false,
        };
        let result = self.searcher.search_reader(&self.matcher, &mut reader, &mut lines);
        self.bytes = reader.bytes;
        let Lines { found, omitted, is_binary, .. } = lines;
        if is_binary {
            // What was found before the first NUL byte is not text either.
            self.room.give_back(&found);
            self.matched.binary += 1;
            return reader.stopped;
        }
        self.matched.files += u64::from(!found.is_empty() || omitted > 0);
        self.matched.lines.extend(found);
        coverage.omitted += omitted;
        if result.is_err() && reader.stopped.is_none() {
            self.matched.long_lines += 1;
        }
        reader.stopped
    }
}

impl Room {
    fn take(&mut self, line: &MatchedLine) -> bool {
        let cost = line.cost();
        if self.lines == 0 || cost > self.bytes {
            // What comes after a line without room must not be given either.
            self.lines = 0;
            return false;
        }
        self.lines -= 1;
        self.bytes -= cost;
        true
    }

    fn give_back(&mut self, lines: &[MatchedLine]) {
        self.lines += lines.len();
        self.bytes += lines.iter().map(MatchedLine::cost).sum::<usize>();
    }
}

impl MatchedLine {
    /// Bytes it takes in a result, with its number, the marks around it and the note on what was
    /// left out of it.
    fn cost(&self) -> usize {
        let note = if self.omitted_bytes > 0 { 50 } else { 0 };
        self.file.len() + self.line.to_string().len() + self.text.len() + "::\n".len() + note
    }
}

/// Reads a file until the job's bytes or time are used up.
struct Metered<'a> {
    file: File,
    bytes: u64,
    clock: &'a Stopwatch,
    stopped: Option<Stopped>,
}

impl Read for Metered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stopped = match (self.bytes, self.clock.is_over()) {
            (0, _) => Some(Stopped::Bytes),
            (_, true) => Some(Stopped::Time),
            (_, false) => None,
        };
        if self.stopped.is_some() {
            return Ok(0);
        }
        let count = self.file.read(buffer)?;
        self.bytes = self.bytes.saturating_sub(count as u64);
        Ok(count)
    }
}

/// Collects the matching lines of one file.
struct Lines<'a> {
    matcher: &'a RegexMatcher,
    name: &'a str,
    room: &'a mut Room,
    found: Vec<MatchedLine>,
    omitted: u64,
    is_binary: bool,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let bytes = found.bytes();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let at = self.matcher.find(bytes).ok().flatten().map_or(0, |place| place.start());
        let (text, omitted_bytes) = around(bytes, at);
        let line = found.line_number().unwrap_or(0);
        let line = MatchedLine { file: self.name.to_owned(), line, text, omitted_bytes };
        if self.room.take(&line) {
            self.found.push(line);
        } else {
            self.omitted += 1;
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary = self.is_binary || finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// The part of a line around the match that begins at `at`, and how many bytes that leaves out.
fn around(line: &[u8], at: usize) -> (String, u64) {
    if line.len() <= GREP_LINE_BYTES_MAX {
        return (shown::decode(line).text, 0);
    }
    let start = at.saturating_sub(GREP_LINE_BYTES_MAX / 4).min(line.len() - GREP_LINE_BYTES_MAX);
    let part = line.get(start..).unwrap_or_default();
    let part = part.get(shown::incomplete_start(part)..).unwrap_or_default();
    let part = part.get(..GREP_LINE_BYTES_MAX).unwrap_or(part);
    let part = part.get(..part.len() - shown::incomplete_end(part)).unwrap_or_default();
    (shown::decode(part).text, (line.len() - part.len()) as u64)
}
