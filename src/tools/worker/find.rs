//! Listing a directory and finding files by pattern.

use super::Stopwatch;
use super::beneath::Places;
use super::job::FileJob;
use super::reply::{Coverage, Done, FileKind, Found, JobError};
use super::shown;
use super::walk::{Entry, Options, walk};
use crate::base::limits::PATTERN_BYTES_MAX;
use crate::base::text::escape;
use crate::call::request::{GlobArguments, ListArguments};
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Lists the directory that `arguments` name.
pub(super) fn list(
    job: &FileJob,
    places: &Places<'_>,
    arguments: &ListArguments,
    clock: &Stopwatch,
) -> Result<Done, JobError> {
    let depth = arguments.depth.unwrap_or(1).clamp(1, 10);
    let options = options(job, arguments.all, clock);
    let options = Options { depth, ..options };
    find(job, places, arguments.path.as_deref(), options, &|_| true)
}

/// Finds the files that `arguments` describe.
pub(super) fn glob(
    job: &FileJob,
    places: &Places<'_>,
    arguments: &GlobArguments,
    clock: &Stopwatch,
) -> Result<Done, JobError> {
    let matcher = compile(&arguments.pattern)?;
    let options = options(job, arguments.all, clock);
    let hidden = options.hidden || names_hidden(&arguments.pattern);
    let options = Options { hidden, ..options };
    find(job, places, arguments.path.as_deref(), options, &|entry| {
        entry.kind != FileKind::Directory && matcher.is_match(entry.relative)
    })
}

/// The options of a walk through everything below its start.
pub(super) fn options<'a>(job: &FileJob, all: Option<bool>, clock: &'a Stopwatch) -> Options<'a> {
    let all = all.unwrap_or(false);
    Options { all, hidden: all, depth: u64::MAX, entries: job.limits.entries, clock }
}

/// Whether a pattern asks for hidden names itself, as `.github/*` does.
pub(super) fn names_hidden(pattern: &str) -> bool {
    pattern.split(['/', '{', ',']).any(|part| part.starts_with('.') && part != ".")
}

/// Compiles a glob over relative paths: `*` and `?` stay within one directory.
pub(super) fn compile(pattern: &str) -> Result<GlobMatcher, JobError> {
    let bad = |problem: &str| JobError::BadPattern {
        pattern: escape(crate::base::text::prefix(pattern, 200)),
        problem: problem.to_owned(),
    };
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(bad(&format!("it has more than {PATTERN_BYTES_MAX} bytes; shorten it")));
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
        return Err(bad(
            "it is matched against paths below the directory; give the directory as `path` and a \
             relative pattern without `..`",
        ));
    }
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| bad(&error.kind().to_string()))
}

fn find(
    job: &FileJob,
    places: &Places<'_>,
    path: Option<&str>,
    options: Options<'_>,
    wanted: &dyn Fn(&Entry<'_>) -> bool,
) -> Result<Done, JobError> {
    let (place, facts) = places.existing(path.unwrap_or("."))?;
    if facts.kind != FileKind::Directory {
        return Err(JobError::NotDirectory { path: shown::path(&place.real) });
    }
    let mut names = Names { found: job.limits.found, bytes: job.limits.page_bytes, list: vec![] };
    let coverage = walk(places, &place, options, &mut |entry, coverage| {
        if wanted(entry) {
            names.take(entry, coverage);
        }
        None
    })?;
    Ok(Done::Found(Found { names: names.list, coverage }))
}

/// The names given, with the room that is left.
struct Names {
    found: usize,
    bytes: usize,
    list: Vec<String>,
}

impl Names {
    fn take(&mut self, entry: &Entry<'_>, coverage: &mut Coverage) {
        let name = if self.list.len() < self.found { Some(described(entry)) } else { None };
        // Each name takes a line end of its own.
        match name.filter(|name| name.len() < self.bytes) {
            Some(name) => {
                self.bytes -= name.len() + 1;
                self.list.push(name);
            }
            None => {
                coverage.omitted += 1;
                // What came after a name without room must not be given either.
                self.found = 0;
            }
        }
    }
}

fn described(entry: &Entry<'_>) -> String {
    let name = shown::path(entry.relative);
    match entry.kind {
        FileKind::Regular => name,
        FileKind::Directory => name + "/",
        FileKind::Symlink => {
            let target = rustix::fs::readlinkat(entry.directory, entry.name, Vec::new())
                .map(|text| PathBuf::from(OsString::from_vec(text.into_bytes())));
            target.map_or(name.clone(), |target| format!("{name} -> {}", shown::path(&target)))
        }
        FileKind::Fifo | FileKind::Socket | FileKind::Device | FileKind::Other => {
            format!("{name} ({})", entry.kind)
        }
    }
}
