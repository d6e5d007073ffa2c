//! Creating and replacing files, whole or not at all.
//!
//! The content goes to a new file of a random name in the same directory, is flushed, and takes the
//! place of the target by rename, so that no reader and no crash ever sees half of it. A replaced
//! file keeps its permission bits and, where the system lets it, its owner; set-id bits and extended
//! attributes are not carried over. A link that leads to the target stays a link.

use super::beneath::{Place, Places};
use super::job::FileJob;
use super::node::{Facts, facts, io_error, open_at};
use super::reply::{FileKind, JobError, Written};
use super::shown;
use crate::base::digest::Digest;
use crate::call::request::WriteArguments;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self as rfs, AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;

/// Creates or overwrites the file that `arguments` name.
pub(super) fn write(
    job: &FileJob,
    places: &Places<'_>,
    arguments: &WriteArguments,
) -> Result<Written, JobError> {
    let place = places.to_write(&arguments.path)?;
    if let Some((_, facts)) = &place.node {
        check_target(job, &place, facts)?;
    }
    put(place, arguments.content.as_bytes())
}

/// Refuses a target that is not a regular file of its own.
pub(super) fn check_target(job: &FileJob, place: &Place, facts: &Facts) -> Result<(), JobError> {
    let path = || shown::path(&place.real);
    if facts.kind != FileKind::Regular {
        return Err(JobError::NotRegularFile { path: path(), kind: facts.kind });
    }
    if facts.links > 1 && !job.created.contains(&facts.identity) {
        return Err(JobError::HardLinked { path: path(), links: facts.links });
    }
    Ok(())
}

/// Makes `content` the content of the file at `place`, which was checked.
pub(super) fn put(place: Place, content: &[u8]) -> Result<Written, JobError> {
    let Place { parent, missing, name, node, real, .. } = place;
    let directory = make_directories(parent, &missing, &real)?;
    let old = node.map(|(_, facts)| facts);
    if old.is_some() {
        check_writable(directory.as_fd(), &name, &real)?;
    }
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let mut new = Draft::create(&directory, &real, Mode::from_raw_mode(mode))?;
    let failed = |errno| io_error("write", &real, errno);
    new.fill(content).map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    if let Some(old) = &old {
        new.take_over(old).map_err(failed)?;
    }
    let identity = facts(new.file.as_fd()).map_err(failed)?.identity;
    new.rename_to(&name, old.is_some()).map_err(|errno| match errno {
        Errno::EXIST | Errno::ISDIR => JobError::Changed { path: shown::path(&real) },
        errno => failed(errno),
    })?;
    Ok(Written {
        bytes: content.len() as u64,
        replaced_bytes: old.map(|facts| facts.bytes),
        digest: Digest::of(content),
        identity,
        path: real,
    })
}

/// Makes the directories that are missing, one by one beneath the held one.
fn make_directories(
    parent: OwnedFd,
    missing: &[OsString],
    real: &Path,
) -> Result<OwnedFd, JobError> {
    let failed = |errno| io_error("make a directory for", real, errno);
    missing.iter().try_fold(parent, |directory, name| {
        match rfs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        open_at(directory.as_fd(), name, flags, Mode::empty()).map_err(failed)
    })
}

/// Replacing by rename needs no right on the file itself; a file that may not be written, by its
/// mode or since it is bound read-only, is refused all the same.
fn check_writable(directory: BorrowedFd<'_>, name: &OsStr, real: &Path) -> Result<(), JobError> {
    match open_at(directory, name, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()) {
        // A program that runs cannot be written in place, but its name can be given to a new file.
        Ok(_) | Err(Errno::TXTBSY) => Ok(()),
        Err(errno) => Err(io_error("write", real, errno)),
    }
}

/// A new file under a random name, removed again unless it gets its final name.
struct Draft<'directory> {
    directory: &'directory OwnedFd,
    name: String,
    file: std::fs::File,
    has_final_name: bool,
}

impl<'directory> Draft<'directory> {
    fn create(directory: &'directory OwnedFd, real: &Path, mode: Mode) -> Result<Self, JobError> {
        let name = format!(".stoplog-{}", crate::base::ids::Id::new());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = open_at(directory.as_fd(), OsStr::new(&name), flags, mode)
            .map_err(|errno| io_error("create a file beside", real, errno))?;
        Ok(Self { directory, name, file: std::fs::File::from(fd), has_final_name: false })
    }

    fn fill(&mut self, content: &[u8]) -> std::io::Result<()> {
        self.file.write_all(content)?;
        self.file.sync_data()
    }

    /// Takes over the owner and the permission bits of the file that is replaced.
    fn take_over(&self, old: &Facts) -> Result<(), Errno> {
        let new = facts(self.file.as_fd())?;
        let mut mode = old.mode & 0o777;
        if new.owner != old.owner {
            let (user, group) = old.owner;
            let given =
                rfs::fchown(&self.file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            if given.is_err() && new.owner.1 != group {
                // Bits meant for the old group would now serve another one.
                mode &= 0o707;
            }
        }
        rfs::fchmod(&self.file, Mode::from_raw_mode(mode))
    }

    fn rename_to(mut self, name: &OsStr, replaces: bool) -> Result<(), Errno> {
        let renamed = if replaces {
            rfs::renameat(self.directory, &self.name, self.directory, name)
        } else {
            self.rename_new(name)
        };
        self.has_final_name = renamed.is_ok();
        renamed
    }

    /// Fails if the name was taken meanwhile, where the file system can tell.
    fn rename_new(&self, name: &OsStr) -> Result<(), Errno> {
        let flags = RenameFlags::NOREPLACE;
        match rfs::renameat_with(self.directory, &self.name, self.directory, name, flags) {
            Err(Errno::INVAL | Errno::NOSYS) => {
                rfs::renameat(self.directory, &self.name, self.directory, name)
            }
            result => result,
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.has_final_name {
            // Nothing more can be done about a draft that cannot be removed.
            rfs::unlinkat(self.directory, &self.name, AtFlags::empty()).ok();
        }
    }
}
