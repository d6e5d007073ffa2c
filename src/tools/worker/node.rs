//! One file of the system: opened beneath a held directory, and what the system says about it.

use super::job::FileIdentity;
use super::reply::{FileKind, JobError};
use super::shown;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{self as rfs, AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::path::Path;

const RESOLVE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_SYMLINKS);

/// Opens one name beneath a held directory; never follows a link.
pub(super) fn open_at(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rfs::openat2(directory, name, flags, mode, RESOLVE)
}

/// What the system says about an open file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) kind: FileKind,
    pub(super) identity: FileIdentity,
    pub(super) links: u64,
    pub(super) bytes: u64,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
}

/// The facts of an open file.
pub(super) fn facts(file: BorrowedFd<'_>) -> Result<Facts, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    rfs::statx(file, "", AtFlags::EMPTY_PATH, wanted).map(|stat| facts_of(&stat))
}

/// Which file a path names now, links followed; `None` if none can be told.
pub(super) fn identity_of(path: &Path) -> Option<FileIdentity> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    rfs::statx(rfs::CWD, path, AtFlags::empty(), wanted).ok().map(|stat| facts_of(&stat).identity)
}

fn facts_of(stat: &rfs::Statx) -> Facts {
    let has_birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    let born = stat.stx_btime;
    let born_ns =
        born.tv_sec.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(born.tv_nsec.into()));
    Facts {
        kind: kind_of(rfs::FileType::from_raw_mode(stat.stx_mode.into())),
        identity: FileIdentity {
            device: (u64::from(stat.stx_dev_major) << 32) | u64::from(stat.stx_dev_minor),
            inode: stat.stx_ino,
            born_ns: born_ns.filter(|_| has_birth),
        },
        links: stat.stx_nlink.into(),
        bytes: stat.stx_size,
        mode: stat.stx_mode.into(),
        owner: (stat.stx_uid, stat.stx_gid),
    }
}

/// The kind behind a file type of the system.
pub(super) const fn kind_of(file_type: rfs::FileType) -> FileKind {
    match file_type {
        rfs::FileType::RegularFile => FileKind::Regular,
        rfs::FileType::Directory => FileKind::Directory,
        rfs::FileType::Symlink => FileKind::Symlink,
        rfs::FileType::Fifo => FileKind::Fifo,
        rfs::FileType::Socket => FileKind::Socket,
        rfs::FileType::CharacterDevice | rfs::FileType::BlockDevice => FileKind::Device,
        rfs::FileType::Unknown => FileKind::Other,
    }
}

/// An error of the system as an answer.
pub(super) fn io_error(action: &str, path: &Path, errno: Errno) -> JobError {
    let path_shown = shown::path(path);
    match errno {
        Errno::NOENT => JobError::NotFound { path: path_shown },
        Errno::LOOP | Errno::XDEV | Errno::AGAIN => JobError::Changed { path: path_shown },
        errno => JobError::Io {
            action: action.to_owned(),
            path: path_shown,
            problem: std::io::Error::from(errno).to_string(),
        },
    }
}
