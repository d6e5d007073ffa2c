//! What a call leaves in the session's private temporary directory while it runs: looked at now and
//! then, so that a call that fills the disk is ended.
//!
//! No kernel limit bounds a directory. Names in it are the program's: they are only counted, and no
//! link is followed. What cannot be looked into (a directory without permissions) is not counted.

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time to the first look: most calls are over by then and cost none.
const FIRST_LOOK: Duration = Duration::from_millis(250);
/// A look may take this part of the time: a large directory is looked at less often.
const SHARE: u32 = 20;
/// Names that are counted; more count as a full directory.
const NAMES_MAX: u64 = 200_000;
/// What a name itself takes, at least.
const NAME_BYTES: u64 = 1_024;

/// Looks at one directory.
#[derive(Debug)]
pub(super) struct DiskWatch {
    directory: PathBuf,
    bytes_max: u64,
    last: Option<u64>,
    next: Instant,
}

impl DiskWatch {
    pub(super) fn new(directory: PathBuf, bytes_max: u64, started: Instant) -> Self {
        Self { directory, bytes_max, last: None, next: started + FIRST_LOOK }
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Instant {
        self.next
    }

    /// Whether the directory holds more than it may and still grows: a call that only finds it full,
    /// or that clears it, is not ended.
    pub(super) fn is_being_filled(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        let used = used(&self.directory);
        let took = now.elapsed();
        self.next = Instant::now() + FIRST_LOOK.max(took * SHARE);
        let grows = self.last.replace(used).is_some_and(|last| used > last);
        grows && used > self.bytes_max
    }
}

/// Bytes on disk below a directory.
fn used(directory: &Path) -> u64 {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(root) = openat(CWD, directory, flags, Mode::empty()) else { return 0 };
    let mut pending = vec![PathBuf::from(".")];
    let (mut bytes, mut names) = (0_u64, 0_u64);
    while let Some(relative) = pending.pop() {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let Ok(opened) = openat2(&root, &relative, flags, Mode::empty(), resolve) else { continue };
        let Ok(entries) = Dir::read_from(&opened) else { continue };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            names += 1;
            let (size, is_directory) = size(&opened, name);
            bytes = bytes.saturating_add(size).saturating_add(NAME_BYTES);
            if is_directory {
                pending.push(relative.join(name));
            }
        }
        if names > NAMES_MAX {
            // More of them is more: growth is still seen.
            return u64::MAX / 2 + names;
        }
    }
    bytes
}

/// Bytes that a name has on disk, and whether it is a directory. One that went away has none.
fn size(directory: &OwnedFd, name: &OsStr) -> (u64, bool) {
    const BLOCK_BYTES: u64 = 512;
    let Ok(status) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return (0, false) };
    let blocks = u64::try_from(status.st_blocks).unwrap_or(0);
    let kind = FileType::from_raw_mode(status.st_mode);
    (blocks.saturating_mul(BLOCK_BYTES), kind == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path, bytes: usize) {
        use std::io::Write as _;
        std::fs::File::create(path).unwrap().write_all(&vec![1; bytes]).unwrap();
    }

    #[test]
    fn content_and_names_count_and_links_lead_nowhere() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        written(&outside.path().join("big"), 1_000_000);
        std::os::unix::fs::symlink(outside.path(), place.path().join("link")).unwrap();
        let empty = used(place.path());
        assert!(empty < 100_000, "{empty}");
        std::fs::create_dir_all(place.path().join("a/b")).unwrap();
        written(&place.path().join("a/b/file"), 300_000);
        let filled = used(place.path());
        assert!((300_000..900_000).contains(&filled), "{filled}");
        assert_eq!(used(Path::new("/no/such/directory")), 0);
    }

    #[test]
    fn a_full_directory_ends_a_call_only_while_it_grows() {
        let place = tempfile::tempdir().unwrap();
        written(&place.path().join("first"), 50_000);
        let start = Instant::now();
        let mut watch = DiskWatch::new(place.path().to_owned(), 10_000, start);
        assert!(!watch.is_being_filled(start), "no look is due");
        let mut look = || {
            watch.next = start;
            watch.is_being_filled(Instant::now())
        };
        assert!(!look(), "it was full before");
        assert!(!look(), "it does not grow");
        written(&place.path().join("second"), 50_000);
        assert!(look());
        std::fs::remove_file(place.path().join("second")).unwrap();
        assert!(!look(), "it shrinks");
    }
}
