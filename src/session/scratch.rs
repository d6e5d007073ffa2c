//! A temporary directory that lives no longer than the process that made it: for cells that have no
//! file tree of their own.
//!
//! It lies where everybody has his temporary files, so that whoever tools run as can reach it and rules
//! about temporary files hold for it. Beside the sessions lies an empty directory of the same name,
//! which the process holds a lock on; the lock ends with the process, however that ends. A name without
//! a lock has no owner left, and the next start removes both.

use super::store::{Store, StoreError, make_directory, make_private, refused, remove};
use crate::base::ids::Id;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Tries to make a directory before a start that sweeps removes it; one is hardly ever needed.
const TRIES: u32 = 100;

/// The directory. Dropping it removes it.
#[derive(Debug)]
pub struct Scratch {
    claim: PathBuf,
    directory: PathBuf,
    /// Nobody else removes the directory while this is open.
    _lock: OwnedFd,
}

impl Scratch {
    /// The directory, empty at first.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        clear(&self.claim, &self.directory);
    }
}

/// Removes a directory, and the claim to it only after it: what cannot be removed now is tried again by
/// the next start.
fn clear(claim: &Path, directory: &Path) {
    let gone = match remove(directory) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(()) => true,
    };
    if gone {
        // A claim that stays claims nothing.
        drop(fs::remove_dir(claim));
    }
}

impl Store {
    /// A new directory below `tmp`, mode 0700.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn scratch(&self, tmp: &Path) -> Result<Scratch, StoreError> {
        make_private(&self.scratch)?;
        for _ in 0..TRIES {
            let id = Id::new();
            let claim = self.scratch.join(id.as_str());
            make_directory(&claim)?;
            let Some(lock) = lock(&claim).map_err(refused("lock", &claim))? else { continue };
            // From here on it is cleared by us, or by a later start.
            let scratch = Scratch { claim, directory: tmp.join(name(&id)), _lock: lock };
            make_directory(&scratch.directory)?;
            return Ok(scratch);
        }
        let swept = io::Error::other("each new directory was removed at once");
        Err(refused("keep a directory in", &self.scratch)(swept))
    }

    /// Removes the directories below `tmp` of processes that have ended without doing so. What is in use
    /// stays; what cannot be removed is left to a later start.
    pub fn sweep_scratch(&self, tmp: &Path) {
        let Ok(entries) = fs::read_dir(&self.scratch) else { return };
        for entry in entries.flatten() {
            let Some(id) = entry.file_name().to_str().and_then(Id::parse) else { continue };
            if let Ok(Some(_lock)) = lock(&entry.path()) {
                clear(&entry.path(), &tmp.join(name(&id)));
            }
        }
    }
}

fn name(id: &Id) -> String {
    format!("stoplog-{id}")
}

/// Takes the lock of a directory; `None` if somebody has it, or the directory is gone.
fn lock(directory: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(CWD, directory, flags, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        other => other?,
    };
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        other => other?,
    }
    // Whoever had it before may have removed the directory.
    Ok((fstat(&opened)?.st_nlink > 0).then_some(opened))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn places() -> (tempfile::TempDir, Store, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("state"), &[]).unwrap();
        let tmp = place.path().join("tmp");
        fs::create_dir(&tmp).unwrap();
        (place, store, tmp)
    }

    fn names(directory: &Path) -> usize {
        fs::read_dir(directory).map_or(0, Iterator::count)
    }

    #[test]
    fn a_directory_is_its_owners_alone_and_goes_with_it() {
        let (_place, store, tmp) = places();
        let (first, second) = (store.scratch(&tmp).unwrap(), store.scratch(&tmp).unwrap());
        assert_ne!(first.path(), second.path());
        for directory in [first.path(), &first.claim, &store.scratch] {
            let mode = fs::metadata(directory).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o700, "{}", directory.display());
        }
        let closed = first.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::File::create(closed.join("file")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        drop(first);
        assert_eq!((names(&store.scratch), names(&tmp)), (1, 1));
        drop(second);
        assert_eq!((names(&store.scratch), names(&tmp)), (0, 0));
    }

    #[test]
    fn what_nobody_holds_is_removed_by_a_later_start_and_what_is_held_is_not() {
        let (place, store, tmp) = places();
        let outside = place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::File::create(outside.join("file")).unwrap();
        let held = store.scratch(&tmp).unwrap();
        // What a killed process leaves: at any moment between the claim and the last file.
        let (bare, filled, linked) = (Id::new(), Id::new(), Id::new());
        for id in [&bare, &filled, &linked] {
            fs::create_dir(store.scratch.join(id.as_str())).unwrap();
        }
        fs::create_dir_all(tmp.join(name(&filled)).join("below")).unwrap();
        let inner = tmp.join(name(&filled)).join("link");
        std::os::unix::fs::symlink(&outside, inner).unwrap();
        // And what somebody puts there who may write in the directory of all temporary files.
        std::os::unix::fs::symlink(&outside, tmp.join(name(&linked))).unwrap();
        let unclaimed = tmp.join(name(&Id::new()));
        fs::create_dir(&unclaimed).unwrap();
        store.sweep_scratch(&tmp);
        assert_eq!((names(&store.scratch), names(&tmp)), (1, 2));
        assert!(held.path().exists() && unclaimed.exists());
        assert!(outside.join("file").exists(), "no link is followed");
        drop(held);
        assert_eq!((names(&store.scratch), names(&tmp)), (0, 1));
    }

    #[test]
    fn a_directory_that_cannot_be_made_leaves_no_claim() {
        let (_place, store, tmp) = places();
        assert!(store.scratch(&tmp.join("missing")).is_err());
        assert_eq!(names(&store.scratch), 0);
    }
}
