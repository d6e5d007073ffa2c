//! The walk through a directory tree: sorted, bounded, and never through a link.
//!
//! Each directory is opened beneath the one before it and held, so that what another process swaps
//! meanwhile cannot lead the walk elsewhere. `.gitignore` files of the walked directories and of
//! those above them up to the repository's top, and the repository's own `.git/info/exclude`, are
//! respected unless told otherwise, `.git` is never entered, and names that a protection hides are
//! counted, not given.

use super::Stopwatch;
use super::beneath::{Place, Places};
use super::node::{io_error, kind_of, open_at};
use super::reply::{Coverage, FileKind, JobError, Stopped};
use crate::base::limits::{DIRECTORY_ENTRIES_MAX, WALK_DEPTH_MAX};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self as rfs, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Bytes of one file of ignored names that are read.
const IGNORE_BYTES_MAX: u64 = 256 * 1024;

/// What a walk shall pass over, and when it shall end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options<'a> {
    /// Give ignored and hidden names too.
    pub(super) all: bool,
    /// Give hidden names, unless they are ignored.
    pub(super) hidden: bool,
    /// Levels below the start whose names are given; 1 = the start's own.
    pub(super) depth: u64,
    pub(super) entries: u64,
    pub(super) clock: &'a Stopwatch,
}

/// One name that was met.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) name: &'a OsStr,
    /// Relative to the start.
    pub(super) relative: &'a Path,
    pub(super) kind: FileKind,
}

/// What is done with each name; an answer ends the walk.
pub(super) type Visit<'a> = dyn FnMut(&Entry<'_>, &mut Coverage) -> Option<Stopped> + 'a;

/// Walks through the directory at `place`.
pub(super) fn walk(
    places: &Places<'_>,
    place: &Place,
    options: Options<'_>,
    visit: &mut Visit<'_>,
) -> Result<Coverage, JobError> {
    let start = open_directory(place.parent.as_fd(), &place.name)
        .map_err(|errno| io_error("list", &place.real, errno))?;
    let ignores = if options.all { Vec::new() } else { ignores_above(places, &place.real) };
    let mut walker = Walker {
        places,
        start: &place.real,
        options,
        visit,
        coverage: Coverage::default(),
        seen: 0,
        ignores,
    };
    walker.directory(&start, Path::new(""), 1);
    Ok(walker.coverage)
}

fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, rustix::io::Errno> {
    open_at(parent, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK, Mode::empty())
}

struct Walker<'a, 'v> {
    places: &'a Places<'a>,
    start: &'a Path,
    options: Options<'a>,
    visit: &'a mut Visit<'v>,
    coverage: Coverage,
    seen: u64,
    /// From the top down.
    ignores: Vec<Gitignore>,
}

impl Walker<'_, '_> {
    fn directory(&mut self, directory: &OwnedFd, relative: &Path, level: u64) {
        let Some((names, are_all)) = self.sorted_names(directory) else {
            self.coverage.unreadable += 1;
            return;
        };
        let above = self.ignores.len();
        if !self.options.all {
            let has_git = names.iter().any(|(name, _)| name == ".git");
            let real = self.start.join(relative);
            self.ignores.extend(ignores_of(directory.as_fd(), &real, has_git));
        }
        for (name, kind) in names {
            if self.coverage.stopped.is_some() {
                break;
            }
            self.name(directory, &relative.join(&name), kind, level);
        }
        self.ignores.truncate(above);
        if !are_all && self.coverage.stopped.is_none() {
            self.coverage.stopped = Some(Stopped::Entries);
        }
    }

    fn name(&mut self, directory: &OwnedFd, relative: &Path, kind: FileKind, level: u64) {
        let Some(name) = relative.file_name() else { return };
        self.seen += 1;
        if self.seen > self.options.entries {
            self.coverage.stopped = Some(Stopped::Entries);
            return;
        }
        if self.options.clock.is_over() {
            self.coverage.stopped = Some(Stopped::Time);
            return;
        }
        let real = self.start.join(relative);
        if name == ".git" {
            return;
        }
        if self.is_skipped(name, &real, kind) {
            self.coverage.skipped += 1;
            return;
        }
        if self.places.protections.hides(&real) {
            self.coverage.protected += 1;
            return;
        }
        let entry = Entry { directory: directory.as_fd(), name, relative, kind };
        self.coverage.stopped = (self.visit)(&entry, &mut self.coverage);
        if kind == FileKind::Directory && level < self.options.depth {
            self.enter(directory, name, relative, level);
        }
    }

    fn enter(&mut self, directory: &OwnedFd, name: &OsStr, relative: &Path, level: u64) {
        if level >= WALK_DEPTH_MAX {
            self.coverage.too_deep += 1;
            return;
        }
        match open_directory(directory.as_fd(), name) {
            Ok(below) => self.directory(&below, relative, level + 1),
            Err(_cannot_be_opened) => self.coverage.unreadable += 1,
        }
    }

    fn is_skipped(&self, name: &OsStr, real: &Path, kind: FileKind) -> bool {
        if self.options.all {
            return false;
        }
        if !self.options.hidden && name.as_bytes().starts_with(b".") {
            return true;
        }
        let is_directory = kind == FileKind::Directory;
        let decided =
            self.ignores.iter().rev().find_map(|ignore| match ignore.matched(real, is_directory) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            });
        decided.unwrap_or(false)
    }

    /// The names of a directory in the byte order of their paths, which puts `a/b` after `a.c`, and
    /// whether these are all.
    fn sorted_names(&mut self, directory: &OwnedFd) -> Option<(Vec<(OsString, FileKind)>, bool)> {
        let mut names = Vec::new();
        let mut are_all = true;
        for entry in rfs::Dir::read_from(directory).ok()? {
            let Ok(entry) = entry else {
                self.coverage.unreadable += 1;
                break;
            };
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            if names.len() >= DIRECTORY_ENTRIES_MAX {
                are_all = false;
                break;
            }
            let name = OsString::from_vec(bytes.to_vec());
            let told = kind_of(entry.file_type());
            let kind = if told == FileKind::Other { kind_at(directory, &name) } else { told };
            names.push((name, kind));
        }
        names.sort_by_cached_key(|(name, kind)| {
            let mut key = name.as_bytes().to_vec();
            key.extend((*kind == FileKind::Directory).then_some(b'/'));
            key
        });
        Some((names, are_all))
    }
}

fn kind_at(directory: &OwnedFd, name: &OsStr) -> FileKind {
    rfs::statat(directory, name, rfs::AtFlags::SYMLINK_NOFOLLOW)
        .map_or(FileKind::Other, |stat| kind_of(rfs::FileType::from_raw_mode(stat.st_mode)))
}

/// The `.gitignore` files above `start`, from the top of its repository, as far as they lie in its
/// root.
fn ignores_above(places: &Places<'_>, start: &Path) -> Vec<Gitignore> {
    let mut found = Vec::new();
    for above in start.ancestors() {
        let Ok((place, _)) = places.existing_path(above) else { break };
        let Ok(directory) = open_directory(place.parent.as_fd(), &place.name) else { break };
        let is_top = kind_at(&directory, OsStr::new(".git")) != FileKind::Other;
        if above != start {
            found.extend(ignores_of(directory.as_fd(), above, is_top).into_iter().rev());
        }
        if is_top {
            break;
        }
    }
    found.reverse();
    found
}

/// The rules of one directory, the weaker ones first: what its repository excludes, if it is the top of
/// one, and its `.gitignore`. A worktree's `.git` is a file and leads elsewhere; it is not followed.
fn ignores_of(directory: BorrowedFd<'_>, real: &Path, has_git: bool) -> Vec<Gitignore> {
    let exclude = || {
        let git = open_directory(directory, OsStr::new(".git")).ok()?;
        let info = open_directory(git.as_fd(), OsStr::new("info")).ok()?;
        read_ignore(info.as_fd(), "exclude", real)
    };
    let excluded = has_git.then(exclude).flatten();
    excluded.into_iter().chain(read_ignore(directory, ".gitignore", real)).collect()
}

/// The rules of the file `name`, for the names below `real`; `None` if there is none that can be read.
fn read_ignore(directory: BorrowedFd<'_>, name: &str, real: &Path) -> Option<Gitignore> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let fd = open_at(directory, OsStr::new(name), flags, Mode::empty()).ok()?;
    let is_file = super::node::facts(fd.as_fd()).ok()?.kind == FileKind::Regular;
    let mut bytes = Vec::new();
    let file = std::fs::File::from(fd);
    is_file.then(|| file.take(IGNORE_BYTES_MAX).read_to_end(&mut bytes).ok()).flatten()?;
    let mut builder = GitignoreBuilder::new(real);
    for line in bytes.split(|byte| *byte == b'\n') {
        // A line that is no text or no pattern matches nothing, as in git.
        let line = std::str::from_utf8(line).unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        builder.add_line(None::<PathBuf>, line).ok();
    }
    builder.build().ok()
}
