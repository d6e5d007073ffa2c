//! What the tools of one run share: the cell they run in, what was seen and made so far, background
//! jobs, and where whole outputs are kept.

use super::jobs::Jobs;
use super::memory::FileMemory;
use crate::base::ids::Id;
use crate::chain::cell::CellBase;
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the directory of whole outputs, below the session's temporary directory.
const OUTPUT_DIRECTORY: &str = "stoplog-output";

/// What the tools of one run share.
#[derive(Debug)]
pub struct Toolbox {
    /// The cell.
    pub cell: Arc<CellBase>,
    /// Where whole outputs go, if the session has a temporary directory.
    pub outputs: Option<OutputDirectory>,
    /// What was seen and made so far.
    pub files: FileMemory,
    /// Background jobs; they end with this.
    pub jobs: Jobs,
}

/// The directory of whole outputs. It lies where tools can read and write, so it is held by a
/// descriptor: a tool that moves it away or puts a link in its place moves nothing of ours.
#[derive(Debug)]
pub struct OutputDirectory {
    held: OwnedFd,
    shown: PathBuf,
}

impl OutputDirectory {
    /// Opens or makes the directory below `tmp`, which the cell shows as `shown_tmp`.
    ///
    /// # Errors
    /// The system's; also when a tool has put something else in its place.
    pub fn open(tmp: &Path, shown_tmp: &Path) -> std::io::Result<Self> {
        let directory = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tmp =
            rustix::fs::open(tmp, directory | OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        match rustix::fs::mkdirat(&tmp, OUTPUT_DIRECTORY, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let held = rustix::fs::openat2(&tmp, OUTPUT_DIRECTORY, directory, Mode::empty(), resolve)?;
        Ok(Self { held, shown: shown_tmp.join(OUTPUT_DIRECTORY) })
    }

    /// Where the supervisor writes the output of `call`; the name does not exist yet.
    #[must_use]
    pub fn file(&self, call: &Id) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{call}.txt", self.held.as_raw_fd()))
    }

    /// Removes the output of `call`, of which nothing was left out: a session of many calls would fill
    /// the directory that every cell looks through. One that a tool has removed is gone already.
    pub fn forget(&self, call: &Id) {
        rustix::fs::unlinkat(&self.held, format!("{call}.txt"), AtFlags::empty()).ok();
    }

    /// The same file as the model may name it.
    #[must_use]
    pub fn shown(&self, call: &Id) -> PathBuf {
        self.shown.join(format!("{call}.txt"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_place_of_the_output_directory_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let shown = Path::new("/tmp");
        std::os::unix::fs::symlink(outside.path(), place.path().join(OUTPUT_DIRECTORY)).unwrap();
        assert!(OutputDirectory::open(place.path(), shown).is_err());
    }

    #[test]
    fn a_directory_that_is_moved_away_keeps_our_file() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let outputs = OutputDirectory::open(place.path(), Path::new("/tmp")).unwrap();
        let directory = place.path().join(OUTPUT_DIRECTORY);
        std::fs::rename(&directory, place.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(outside.path(), &directory).unwrap();
        let call = Id::new();
        std::fs::File::create_new(outputs.file(&call)).unwrap();
        assert!(place.path().join("moved").join(format!("{call}.txt")).exists());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
        let named_alike = outside.path().join(format!("{call}.txt"));
        std::fs::File::create_new(&named_alike).unwrap();
        outputs.forget(&call);
        assert!(!place.path().join("moved").join(format!("{call}.txt")).exists());
        assert!(named_alike.exists(), "only ours is removed");
        assert_eq!(outputs.shown(&call), Path::new(&format!("/tmp/stoplog-output/{call}.txt")));
    }
}
