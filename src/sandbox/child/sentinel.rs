//! Protected names that did not exist when a call began: if they exist when it has ended, they are
//! moved aside, whether or not the supervisor still lives.
//!
//! Nothing is deleted: the file may be a person's, made meanwhile. The way to a name follows no
//! link, so nothing outside its grant is touched whatever the call has put there.

use super::super::wire::{ProtectedName, ReportReader};
use super::masks::WatchedName;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with, statat,
};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Names to look at when all is over.
#[derive(Debug, Default)]
pub(super) struct Sentinel {
    watched: Vec<WatchedName>,
}

/// Tells the monitor which names to watch.
pub(super) fn announce(pipe: &OwnedFd, watched: &[WatchedName]) -> io::Result<()> {
    super::wire::send(pipe, &watched)
}

/// What follows the names: everything in the cell but its init has ended.
const OVER: u8 = b'o';

/// Tells the monitor that nothing but this process is left of the cell.
pub(super) fn say_over(pipe: &OwnedFd) {
    // A monitor that does not hear it waits for the end of this process.
    rustix::io::write(pipe, &[OVER]).ok();
}

/// Whether that is the next word in the pipe.
pub(super) fn says_over(pipe: &OwnedFd) -> bool {
    let mut word = [0_u8; 1];
    matches!(rustix::io::read(pipe, &mut word), Ok(1)) && word == [OVER]
}

impl Sentinel {
    /// Takes the names from a pipe. An init that ended before it could tell has started nothing.
    pub(super) fn read(pipe: &OwnedFd) -> Self {
        let mut reader = ReportReader::default();
        loop {
            match reader.next() {
                Ok(None) if reader.read(pipe).unwrap_or(false) => {}
                Ok(watched) => return Self { watched: watched.unwrap_or_default() },
                Err(_) => return Self::default(),
            }
        }
    }

    /// Moves what exists now aside. Called when no process of the cell lives.
    pub(super) fn move_aside(&self, quarantine: Option<&Path>) -> Vec<ProtectedName> {
        let mut roots = Roots::new();
        let watched = self.watched.iter();
        watched.filter_map(|watched| move_one(watched, &mut roots, quarantine)).collect()
    }
}

/// Grants that are open: most names are watched below one.
type Roots = BTreeMap<PathBuf, OwnedFd>;

/// `None` when the name still does not exist.
fn move_one(
    watched: &WatchedName,
    roots: &mut Roots,
    quarantine: Option<&Path>,
) -> Option<ProtectedName> {
    let moved = first_new(watched, roots).map(|found| {
        found.map(|(directory, name, path)| (set_aside(&directory, &name, &path, quarantine), path))
    });
    let (moved_to, path) = match moved {
        Ok(None) => return None,
        Ok(Some((moved, path))) => (moved.ok(), path),
        Err(_) => (None, watched.grant.join(&watched.name)),
    };
    Some(ProtectedName { path, moved_to, reason_id: watched.reason_id.clone() })
}

type Found = (OwnedFd, OsString, PathBuf);

/// The directory and name of what the call made: the protected name itself, or a link on the way to
/// it, which would let the name mean something else.
fn first_new(watched: &WatchedName, roots: &mut Roots) -> io::Result<Option<Found>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut path = watched.grant.clone();
    let root: &OwnedFd = match roots.entry(path.clone()) {
        Entry::Occupied(open) => open.into_mut(),
        Entry::Vacant(free) => {
            free.insert(openat2(CWD, &path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
        }
    };
    let mut below: Option<OwnedFd> = None;
    let mut names = watched.name.iter().peekable();
    while let Some(name) = names.next() {
        path.push(name);
        let at = below.as_ref().unwrap_or(root);
        let exists = match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => true,
            Err(Errno::NOENT) => false,
            Err(error) => return Err(error.into()),
        };
        if !exists {
            return Ok(None);
        }
        if names.peek().is_none() {
            return Ok(Some((at.try_clone()?, name.to_owned(), path)));
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let next = match openat2(at, name, flags, Mode::empty(), resolve) {
            Ok(next) => next,
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Ok(Some((at.try_clone()?, name.to_owned(), path)));
            }
            Err(error) => return Err(error.into()),
        };
        below = Some(next);
    }
    Ok(None)
}

/// Renames into the quarantine directory, or in place where that is another file system.
fn set_aside(
    directory: &OwnedFd,
    name: &OsStr,
    path: &Path,
    quarantine: Option<&Path>,
) -> io::Result<PathBuf> {
    const TRIES: u32 = 1_000;
    for number in 0..TRIES {
        let mut aside = name.to_owned();
        aside.push(format!(".refused-{number}"));
        let in_quarantine = quarantine.map(|quarantine| quarantine.join(&aside));
        let moved = match &in_quarantine {
            Some(target) => renameat_with(directory, name, CWD, target, RenameFlags::NOREPLACE),
            None => Err(Errno::XDEV),
        };
        match moved {
            Ok(()) => return Ok(in_quarantine.unwrap_or_default()),
            Err(Errno::EXIST) => continue,
            Err(_) => {}
        }
        match renameat_with(directory, name, directory, &aside, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(path.with_file_name(aside)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}
