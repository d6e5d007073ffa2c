//! The durable line file under the session journal and the audit log.
//!
//! One writer (an exclusive lock), every append flushed before it returns, some disk held in
//! reserve so that a full disk can still be recorded, and a torn last line told apart from damage.
//! It knows bytes and lines; what a line means is the business of `session` and `audit`.

use crate::base::limits::LOG_RESERVE_BYTES;
use rustix::fs::{self as rfs, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Bytes at the end of a file that are looked at first for its last line: a dozen ledger lines.
const END_BYTES: u64 = 4 * 1024;

/// What can go wrong with a line file.
#[derive(Debug, thiserror::Error)]
pub enum JsonlError {
    /// Another process holds the lock.
    #[error("`{}` is in use by process {holder}; wait for it to end, or stop it", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
        /// The holder's process id as it wrote it, or `unknown`.
        holder: String,
    },
    /// The operating system refused; nothing was written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line with a line feed inside would read back as two.
    #[error("a record for `{}` holds a line feed", path.display())]
    LineFeed {
        /// The file.
        path: PathBuf,
    },
}

/// A locked, append-only file of LF-terminated lines.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    path: PathBuf,
    length: u64,
    reserved_to: u64,
    /// Lines were appended that no flush has covered yet.
    is_unflushed: bool,
    /// A partial line could not be cut off: a further append would make it part of a complete one.
    is_torn: bool,
    /// The file is new, and its name not yet known to be on the disk.
    is_name_unflushed: bool,
    _lock: File,
}

/// What was in the file when it was opened.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The complete lines, with their line feeds.
    pub complete: Vec<u8>,
    /// Bytes after the last line feed: a line whose write did not finish.
    pub torn: Vec<u8>,
}

impl Contents {
    fn split(mut bytes: Vec<u8>) -> Self {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let torn = bytes.split_off(end);
        Self { complete: bytes, torn }
    }
}

impl LineFile {
    /// Opens `path` for appending, creating it with mode 0600, and takes its lock. The torn tail, if
    /// any, is cut off the file before this returns and handed to the caller in [`Contents`].
    ///
    /// # Errors
    /// [`JsonlError::Locked`] if another process has it; [`JsonlError::Io`] otherwise, also when the
    /// path is a symbolic link or not a regular file.
    pub fn open(path: &Path) -> Result<(Self, Contents), JsonlError> {
        Self::open_keeping(path, |_, _| Ok(()))
    }

    /// Like [`Self::open`], but hands a torn tail (its offset and bytes) to `keep` while the lock is
    /// held and before the tail is cut, so that a crash between the two loses nothing.
    ///
    /// # Errors
    /// As [`Self::open`], and what `keep` gives; the file is then left as it was.
    pub fn open_keeping(
        path: &Path,
        keep: impl FnOnce(u64, &[u8]) -> Result<(), JsonlError>,
    ) -> Result<(Self, Contents), JsonlError> {
        let mut opened = Self::locked(path, OFlags::CREATE)?;
        let mut bytes = Vec::new();
        opened.file.read_to_end(&mut bytes).map_err(io("read", path))?;
        let contents = Contents::split(bytes);
        let length = u64::try_from(contents.complete.len()).unwrap_or(u64::MAX);
        opened.begin_at(length, &contents.torn, keep)?;
        // Whoever made the file may have ended before its name was durable.
        sync_directory(path)?;
        Ok((opened, contents))
    }

    /// Makes `path`, which must not exist, and takes its lock. The first flush of a line also makes the
    /// name durable.
    ///
    /// # Errors
    /// As [`Self::open`], and if there is such a file.
    pub fn create(path: &Path) -> Result<Self, JsonlError> {
        let made = Self::locked(path, OFlags::CREATE | OFlags::EXCL)?;
        Ok(Self { is_name_unflushed: true, ..made })
    }

    /// Like [`Self::open_keeping`], but reads no more than the end of the file: the [`Contents`] hold
    /// the last complete line and perhaps lines, or the end of one, before it.
    ///
    /// # Errors
    /// As [`Self::open_keeping`].
    pub fn open_at_end(
        path: &Path,
        keep: impl FnOnce(u64, &[u8]) -> Result<(), JsonlError>,
    ) -> Result<(Self, Contents), JsonlError> {
        let mut opened = Self::locked(path, OFlags::CREATE)?;
        let whole = opened.file.metadata().map_err(io("inspect", path))?.len();
        let contents = read_end(&opened.file, whole).map_err(io("read", path))?;
        let torn = u64::try_from(contents.torn.len()).unwrap_or(u64::MAX);
        opened.begin_at(whole.saturating_sub(torn), &contents.torn, keep)?;
        if opened.length == 0 {
            // Nothing is appended before the name is durable, so a file that holds something has been
            // through here.
            sync_directory(path)?;
        }
        Ok((opened, contents))
    }

    fn locked(path: &Path, flags: OFlags) -> Result<Self, JsonlError> {
        let lock = take_lock(path)?;
        let file = open_nofollow(path, OFlags::RDWR | OFlags::APPEND | flags)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            length: 0,
            reserved_to: 0,
            is_unflushed: false,
            is_torn: false,
            is_name_unflushed: false,
            _lock: lock,
        })
    }

    /// Takes `length` bytes for what is there, and cuts off the `torn` ones behind them.
    fn begin_at(
        &mut self,
        length: u64,
        torn: &[u8],
        keep: impl FnOnce(u64, &[u8]) -> Result<(), JsonlError>,
    ) -> Result<(), JsonlError> {
        if !torn.is_empty() {
            keep(length, torn)?;
            self.file.set_len(length).map_err(io("cut the torn end of", &self.path))?;
            self.file.sync_data().map_err(io("flush", &self.path))?;
        }
        self.length = length;
        self.reserved_to = length;
        Ok(())
    }

    /// Appends `line` and a line feed and flushes both to the disk.
    ///
    /// # Errors
    /// On any error the file is as before: a partial write is cut off again.
    pub fn append(&mut self, line: &[u8]) -> Result<(), JsonlError> {
        self.reserve(line.len())?;
        self.append_from_reserve(line)
    }

    /// Appends `line` and a line feed without flushing them: the next append flushes both lines. For a
    /// record on which nothing waits and that another follows at once.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_unflushed(&mut self, line: &[u8]) -> Result<(), JsonlError> {
        self.reserve(line.len())?;
        self.write_line(line, false)
    }

    /// Like [`Self::append`], but may use the disk held in reserve: for the record that says that the
    /// disk is full.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_from_reserve(&mut self, line: &[u8]) -> Result<(), JsonlError> {
        self.write_line(line, true)
    }

    /// Appends `line` and a line feed, lets other writers in and only then flushes: flushes of several
    /// writers become one of the disk. `reserve` keeps disk for a later line, as [`Self::append`] does.
    ///
    /// # Errors
    /// As [`Self::append`]; but a line whose flush fails may stay in the file, since others may have
    /// appended behind it.
    pub fn append_last(mut self, line: &[u8], reserve: bool) -> Result<(), JsonlError> {
        if reserve {
            self.reserve(line.len())?;
        }
        self.write_line(line, false)?;
        let Self { file, path, is_name_unflushed, _lock, .. } = self;
        drop(_lock);
        file.sync_data().map_err(io("flush", &path))?;
        if is_name_unflushed { sync_directory(&path) } else { Ok(()) }
    }

    fn write_line(&mut self, line: &[u8], flush: bool) -> Result<(), JsonlError> {
        if line.contains(&b'\n') {
            return Err(JsonlError::LineFeed { path: self.path.clone() });
        }
        if self.is_torn {
            let source = std::io::Error::other("an earlier append left a torn line behind");
            return Err(io("append to", &self.path)(source));
        }
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
        let mut written = self.file.write_all(&bytes);
        if flush {
            written = written.and_then(|()| self.file.sync_data());
        }
        if let Err(source) = written {
            self.undo_partial_write();
            return Err(io("append to", &self.path)(source));
        }
        self.length += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.is_unflushed = !flush;
        if flush { self.flush_name() } else { Ok(()) }
    }

    /// Flushes what [`Self::append_unflushed`] has left to the next append, if there is anything.
    ///
    /// # Errors
    /// [`JsonlError::Io`]; what of the lines is on the disk is then unknown.
    pub fn flush(&mut self) -> Result<(), JsonlError> {
        if !self.is_unflushed {
            return Ok(());
        }
        self.file.sync_data().map_err(io("flush", &self.path))?;
        self.is_unflushed = false;
        self.flush_name()
    }

    /// After a line, with which most file systems have written the name as well.
    fn flush_name(&mut self) -> Result<(), JsonlError> {
        if self.is_name_unflushed {
            sync_directory(&self.path)?;
            self.is_name_unflushed = false;
        }
        Ok(())
    }

    /// Bytes in the file.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Where the file lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// If even the cut fails, no more is appended; the torn line is found and cut at the next open.
    fn undo_partial_write(&mut self) {
        if self.file.metadata().is_ok_and(|found| found.len() == self.length) {
            return;
        }
        let cut = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)));
        self.is_torn = cut.is_err();
        // The cut gave back the blocks behind the end, so the reserve is asked for anew.
        self.reserved_to = self.length;
    }

    /// Keeps [`LOG_RESERVE_BYTES`] allocated behind the end. A file system that cannot do it goes
    /// without; one that is full refuses here, before anything is written.
    fn reserve(&mut self, line: usize) -> Result<(), JsonlError> {
        let needed = self.length + u64::try_from(line).unwrap_or(u64::MAX) + LOG_RESERVE_BYTES / 2;
        if needed <= self.reserved_to {
            return Ok(());
        }
        let extent = needed + LOG_RESERVE_BYTES - self.length;
        match rfs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.length, extent) {
            Ok(()) => self.reserved_to = self.length + extent,
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.reserved_to = u64::MAX,
            Err(errno) => return Err(io("reserve disk for", &self.path)(errno.into())),
        }
        Ok(())
    }
}

/// Creates `path` with mode 0600 and `bytes` in it and flushes both; never replaces a file.
///
/// # Errors
/// [`JsonlError::Io`], also when `path` exists.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), JsonlError> {
    let mut file = open_nofollow(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(io("write", path))?;
    sync_directory(path)
}

/// Opens a line file for reading only, without its lock; for files too large to be held whole.
///
/// # Errors
/// [`JsonlError::Io`], also when the path is a symbolic link or not a regular file.
pub fn open_to_read(path: &Path) -> Result<File, JsonlError> {
    open_nofollow(path, OFlags::RDONLY)
}

/// Reads a line file without locking or changing it.
///
/// # Errors
/// [`JsonlError::Io`], also when the path is a symbolic link or not a regular file.
pub fn read(path: &Path) -> Result<Contents, JsonlError> {
    let mut file = open_to_read(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io("read", path))?;
    Ok(Contents::split(bytes))
}

/// The lock is the kernel's, so a dead holder's lock is free at once and a reused process id cannot
/// keep it; the id in the file only tells people whom to look for.
fn take_lock(path: &Path) -> Result<File, JsonlError> {
    let lock_path = path.with_extension("lock");
    let mut lock = open_nofollow(&lock_path, OFlags::RDWR | OFlags::CREATE)?;
    match rfs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            let read = (&lock).take(20).read_to_string(&mut holder);
            let known = read.is_ok() && holder.trim().parse::<u32>().is_ok();
            let holder = if known { holder.trim().to_owned() } else { "unknown".to_owned() };
            return Err(JsonlError::Locked { path: path.to_owned(), holder });
        }
        Err(errno) => return Err(io("lock", &lock_path)(errno.into())),
    }
    // As wide as any id, so that an earlier one is covered without the cost of cutting the file.
    lock.write_all(format!("{:<10}\n", std::process::id()).as_bytes())
        .map_err(io("write", &lock_path))?;
    Ok(lock)
}

fn open_nofollow(path: &Path, flags: OFlags) -> Result<File, JsonlError> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    let fd = rfs::open(path, flags, mode).map_err(|errno| io("open", path)(errno.into()))?;
    let file = File::from(fd);
    let kind = file.metadata().map_err(io("inspect", path))?.file_type();
    if !kind.is_file() {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
        return Err(io("open", path)(source));
    }
    Ok(file)
}

/// The last complete line of a file of `length` bytes, with what comes before it in the same read and
/// what comes after it.
fn read_end(file: &File, length: u64) -> std::io::Result<Contents> {
    let mut wanted = END_BYTES;
    loop {
        let from = length.saturating_sub(wanted);
        let size = usize::try_from(length - from).map_err(std::io::Error::other)?;
        let mut bytes = vec![0; size];
        file.read_exact_at(&mut bytes, from)?;
        // One ends the line, another one the line before it.
        let feeds = bytes.iter().filter(|byte| **byte == b'\n').take(2).count();
        if feeds == 2 || from == 0 {
            return Ok(Contents::split(bytes));
        }
        wanted = wanted.saturating_mul(8);
    }
}

fn sync_directory(path: &Path) -> Result<(), JsonlError> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    File::open(directory).and_then(|opened| opened.sync_all()).map_err(io("flush", directory))
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> JsonlError {
    let path = path.to_owned();
    move |source| JsonlError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.jsonl");
        File::create(&path).unwrap().write_all(bytes).unwrap();
        (directory, path)
    }

    #[test]
    fn a_torn_tail_is_cut_before_the_next_append() {
        let (_directory, path) = file_with(b"{\"a\":1}\n{\"b\":");
        let (mut file, contents) = LineFile::open(&path).unwrap();
        assert_eq!(contents.complete, b"{\"a\":1}\n");
        assert_eq!(contents.torn, b"{\"b\":");
        file.append(b"{\"c\":3}").unwrap();
        assert_eq!(read(&path).unwrap().complete, b"{\"a\":1}\n{\"c\":3}\n");
        assert_eq!(file.length(), 16);
    }

    #[test]
    fn a_torn_tail_is_kept_before_it_is_cut() {
        let (directory, path) = file_with(b"{}\n{\"b\":");
        let refused = JsonlError::LineFeed { path: path.clone() };
        assert!(LineFile::open_keeping(&path, |_, _| Err(refused)).is_err());
        assert_eq!(read(&path).unwrap().torn, b"{\"b\":", "not kept, so not cut");
        let aside = directory.path().join("aside");
        LineFile::open_keeping(&path, |_, torn| write_new(&aside, torn)).unwrap();
        assert_eq!(read(&aside).unwrap().torn, b"{\"b\":");
        assert_eq!(read(&path).unwrap().torn, b"");
        assert!(write_new(&aside, b"").is_err(), "never replaces a file");
    }

    #[test]
    fn an_unflushed_line_stands_before_the_one_that_flushes_it() {
        let (_directory, path) = file_with(b"");
        let (mut file, _) = LineFile::open(&path).unwrap();
        file.append_unflushed(b"{\"a\":1}").unwrap();
        assert!(file.append_unflushed(b"{\n}").is_err());
        assert!(file.is_unflushed);
        file.append(b"{\"b\":2}").unwrap();
        assert_eq!(read(&path).unwrap().complete, b"{\"a\":1}\n{\"b\":2}\n");
        assert_eq!((file.length(), file.is_unflushed), (16, false));
        file.append_unflushed(b"{\"c\":3}").unwrap();
        file.flush().unwrap();
        assert!(!file.is_unflushed);
    }

    #[test]
    fn a_new_file_is_never_one_that_was_there() {
        let (_directory, path) = file_with(b"{}\n");
        assert!(LineFile::create(&path).is_err());
        assert_eq!(read(&path).unwrap().complete, b"{}\n");
        let other = path.with_file_name("other.jsonl");
        let mut file = LineFile::create(&other).unwrap();
        assert!(matches!(LineFile::open(&other), Err(JsonlError::Locked { .. })));
        file.append_unflushed(b"{\"a\":1}").unwrap();
        file.append(b"{\"b\":2}").unwrap();
        assert_eq!(read(&other).unwrap().complete, b"{\"a\":1}\n{\"b\":2}\n");
    }

    #[test]
    fn the_end_is_the_last_line_however_long_the_lines_are() {
        let long = "x".repeat(3 * 4096);
        for (before, last, torn) in [
            ("", "", ""),
            ("", "{}", ""),
            ("", "", "{"),
            ("{}\n", "{\"a\":1}", "{\"b"),
            (&format!("{long}\n"), "{}", ""),
            ("{}\n", &long, ""),
            (&format!("{long}\n{long}\n"), &long, &long),
        ] {
            let line = if last.is_empty() { String::new() } else { format!("{last}\n") };
            let (_directory, path) = file_with(format!("{before}{line}{torn}").as_bytes());
            let mut kept = (0, Vec::new());
            let (mut file, end) = LineFile::open_at_end(&path, |offset, torn| {
                kept = (offset, torn.to_vec());
                Ok(())
            })
            .unwrap();
            let found = end.complete.strip_suffix(b"\n").unwrap_or_default();
            assert_eq!(found.rsplit(|byte| *byte == b'\n').next(), Some(last.as_bytes()));
            assert_eq!(kept.1, torn.as_bytes());
            let length = u64::try_from(before.len() + line.len()).unwrap();
            assert_eq!(file.length(), length);
            file.append(b"{\"next\":1}").unwrap();
            drop(file);
            let expected = format!("{before}{line}{{\"next\":1}}\n");
            assert!(read(&path).unwrap().complete == expected.as_bytes());
        }
    }

    #[test]
    fn a_last_line_is_there_and_the_next_writer_let_in() {
        let (_directory, path) = file_with(b"{}\n");
        for number in 0..3 {
            let (file, _) = LineFile::open_at_end(&path, |_, _| Ok(())).unwrap();
            file.append_last(format!("{{\"n\":{number}}}").as_bytes(), number == 0).unwrap();
        }
        let (file, _) = LineFile::open_at_end(&path, |_, _| Ok(())).unwrap();
        assert!(matches!(file.append_last(b"a\nb", false), Err(JsonlError::LineFeed { .. })));
        let expected = b"{}\n{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n";
        assert_eq!(read(&path).unwrap().complete, expected);
    }

    #[test]
    fn a_second_writer_is_refused_with_the_holders_process_id() {
        let (_directory, path) = file_with(b"");
        let (first, _) = LineFile::open(&path).unwrap();
        let error = LineFile::open(&path).unwrap_err();
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        LineFile::open(&path).unwrap();
    }

    #[test]
    fn a_dead_holders_process_id_does_not_keep_the_lock() {
        let (_directory, path) = file_with(b"");
        File::create(path.with_extension("lock")).unwrap().write_all(b"1\n").unwrap();
        LineFile::open(&path).unwrap();
    }

    #[test]
    fn a_symbolic_link_and_a_pipe_are_refused() {
        let (directory, path) = file_with(b"");
        let link = directory.path().join("link.jsonl");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(LineFile::open(&link).is_err());
        let pipe = directory.path().join("pipe.jsonl");
        rfs::mknodat(rfs::CWD, &pipe, rfs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(LineFile::open(&pipe).is_err());
    }

    #[test]
    fn a_record_with_a_line_feed_is_refused() {
        let (_directory, path) = file_with(b"");
        let (mut file, _) = LineFile::open(&path).unwrap();
        assert!(matches!(file.append(b"a\nb"), Err(JsonlError::LineFeed { .. })));
        assert_eq!(read(&path).unwrap(), Contents::default());
    }
}
