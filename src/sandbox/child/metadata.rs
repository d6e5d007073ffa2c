//! Modes, owners and times by path where there is no mount view.
//!
//! Landlock does not govern them and the filter cannot see a path, so the filter hands these calls
//! to this process, which is the program's parent: the same user, under the same Landlock rules,
//! without the filter. It resolves the path as the program would, looks at where it ended, and acts
//! only on what lies in a writable grant; the program's own memory is read once and never trusted
//! again. A call that cannot be answered fails; none is ever let through to the kernel.

use super::super::sys::{self, Notification};
use super::grants::{self, Granted};
use nix::errno::Errno;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chownat, openat2,
    utimensat,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes of a path, with its end (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4_096;
/// Bytes that one read of the program's memory must not cross, since the next page may be missing.
const PAGE_BYTES: u64 = 4_096;
/// `AT_FDCWD`, as the 32 bits that the kernel compares.
const CURRENT_DIRECTORY: i32 = libc::AT_FDCWD;

/// The directories in which metadata may be changed.
pub(super) struct Places {
    grants: Vec<(PathBuf, bool)>,
}

impl Places {
    /// From the opened grants, and the temporary directory.
    pub(super) fn new(grants: &[Granted], private_tmp: Option<&Path>) -> Self {
        let granted = grants.iter().map(|granted| (granted.real.clone(), granted.access.writes()));
        let temporary = private_tmp.map(|path| (path.to_owned(), true));
        let mut grants: Vec<(PathBuf, bool)> = granted.chain(temporary).collect();
        grants.sort_by_key(|(path, _)| path.components().count());
        Self { grants }
    }

    /// Whether `path` lies in a grant at all.
    pub(super) fn hold(&self, path: &Path) -> bool {
        self.covering(path).is_some()
    }

    /// Whether the innermost grant that holds `path` may be written.
    fn may_change(&self, path: &Path) -> bool {
        self.covering(path).unwrap_or(false)
    }

    fn covering(&self, path: &Path) -> Option<bool> {
        let covering = self.grants.iter().rev().find(|(place, _)| path.starts_with(place));
        covering.map(|(_, writes)| *writes)
    }
}

/// Answers one call of the program. An error means that the program is gone or interrupted.
pub(super) fn answer(listener: impl AsFd, places: &Places) -> io::Result<()> {
    let call = sys::receive_notification(listener.as_fd())?;
    let result = Caller { listener: listener.as_fd(), call: &call }.serve(places);
    let errno = result.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EPERM));
    sys::answer_notification(listener.as_fd(), call.id, errno)
}

/// A call that waits for its answer.
struct Caller<'a> {
    listener: BorrowedFd<'a>,
    call: &'a Notification,
}

impl Caller<'_> {
    fn serve(&self, places: &Places) -> io::Result<()> {
        let number = i64::from(self.call.number);
        #[cfg(target_arch = "x86_64")]
        match number {
            libc::SYS_chmod => return self.set_mode(places, Where::here(0, 0), 1),
            libc::SYS_chown => return self.set_owner(places, Where::here(0, 0), 1),
            libc::SYS_lchown => {
                return self.set_owner(places, Where::here(0, libc::AT_SYMLINK_NOFOLLOW), 1);
            }
            libc::SYS_utime => return self.set_times(places, Where::here(0, 0), Times::Seconds(1)),
            libc::SYS_utimes => return self.set_times(places, Where::here(0, 0), Times::Micro(1)),
            libc::SYS_futimesat => {
                return self.set_times(places, self.at(0, None), Times::Micro(2));
            }
            _ => {}
        }
        match number {
            libc::SYS_fchmodat => self.set_mode(places, self.at(1, None), 2),
            FCHMODAT2 => self.set_mode(places, self.at(1, Some(3)), 2),
            libc::SYS_fchownat => self.set_owner(places, self.at(1, Some(4)), 2),
            libc::SYS_utimensat => self.set_times(places, self.at(1, Some(3)), Times::Nano(2)),
            _ => Err(Errno::EPERM.into()),
        }
    }

    /// A path relative to the directory in the first argument.
    fn at(&self, path: usize, flags: Option<usize>) -> Where {
        let directory = self.low(0);
        Where { directory, path, flags: flags.map_or(0, |index| self.low(index)) }
    }

    fn argument(&self, index: usize) -> u64 {
        self.call.arguments.get(index).copied().unwrap_or(0)
    }

    /// The 32 bits of an argument that the kernel would look at.
    fn low(&self, index: usize) -> i32 {
        let [a, b, c, d, ..] = self.argument(index).to_le_bytes();
        i32::from_le_bytes([a, b, c, d])
    }

    fn set_mode(&self, places: &Places, place: Where, argument: usize) -> io::Result<()> {
        let node = self.open(places, place)?;
        let mode = self.low(argument).unsigned_abs() & 0o3777;
        std::fs::set_permissions(own_path(&node), std::fs::Permissions::from_mode(mode))
    }

    fn set_owner(&self, places: &Places, place: Where, argument: usize) -> io::Result<()> {
        let node = self.open(places, place)?;
        let (user, group) = (self.low(argument), self.low(argument + 1));
        let user = (user != -1).then(|| Uid::from_raw(user.cast_unsigned()));
        let group = (group != -1).then(|| Gid::from_raw(group.cast_unsigned()));
        Ok(chownat(&node, "", user, group, AtFlags::EMPTY_PATH)?)
    }

    fn set_times(&self, places: &Places, place: Where, times: Times) -> io::Result<()> {
        let node = self.open(places, place)?;
        let times = self.times(times)?;
        Ok(utimensat(&node, "", &times, AtFlags::EMPTY_PATH)?)
    }

    /// What the program means by a path, if it lies in a place that may be changed.
    fn open(&self, places: &Places, place: Where) -> io::Result<OwnedFd> {
        let known = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
        if place.flags & !known != 0 {
            return Err(Errno::EINVAL.into());
        }
        let path = self.path(self.argument(place.path))?;
        let process = format!("/proc/{}", self.call.process);
        let (from, path) = match (own_descriptor(&path), place.directory) {
            (Some(number), _) => (format!("{process}/fd/{number}"), Vec::new()),
            // An absolute path needs no directory, and the kernel does not look at the number.
            (None, _) if path.starts_with(b"/") => (format!("{process}/cwd"), path),
            (None, _) if path.is_empty() && place.flags & libc::AT_EMPTY_PATH == 0 => {
                return Err(Errno::ENOENT.into());
            }
            (None, CURRENT_DIRECTORY) => (format!("{process}/cwd"), path),
            (None, number) => (format!("{process}/fd/{number}"), path),
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let from = rustix::fs::open(from, flags, Mode::empty())?;
        // From here on what was opened is the program's own, or the answer reaches nobody.
        sys::notification_is_valid(self.listener, self.call.id)?;
        let node = if path.is_empty() {
            from
        } else {
            let mut flags = flags;
            flags.set(OFlags::NOFOLLOW, place.flags & libc::AT_SYMLINK_NOFOLLOW != 0);
            openat2(from, path.as_slice(), flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?
        };
        match grants::real_path(&node)? {
            path if places.may_change(&path) => Ok(node),
            _ => Err(Errno::EPERM.into()),
        }
    }

    fn memory(&self) -> io::Result<File> {
        let memory = File::open(format!("/proc/{}/mem", self.call.process))?;
        sys::notification_is_valid(self.listener, self.call.id)?;
        Ok(memory)
    }

    /// The text at `address`, without its end.
    fn path(&self, address: u64) -> io::Result<Vec<u8>> {
        let memory = self.memory()?;
        let mut path = Vec::new();
        while path.len() < PATH_BYTES_MAX {
            let at = address.saturating_add(path.len() as u64);
            let rest_of_page = PAGE_BYTES - at % PAGE_BYTES;
            let mut piece = vec![0; usize::try_from(rest_of_page).unwrap_or(0)];
            let count = memory.read_at(&mut piece, at).map_err(|_missing| Errno::EFAULT)?;
            let piece = piece.get(..count).unwrap_or_default();
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                path.extend_from_slice(piece.get(..end).unwrap_or_default());
                return if path.len() < PATH_BYTES_MAX {
                    Ok(path)
                } else {
                    Err(Errno::ENAMETOOLONG.into())
                };
            }
            if count == 0 {
                return Err(Errno::EFAULT.into());
            }
            path.extend_from_slice(piece);
        }
        Err(Errno::ENAMETOOLONG.into())
    }

    fn times(&self, times: Times) -> io::Result<Timestamps> {
        let (argument, unit, words) = match times {
            Times::Seconds(argument) => (argument, 0, 2),
            Times::Micro(argument) => (argument, 1_000, 4),
            Times::Nano(argument) => (argument, 1, 4),
        };
        let address = self.argument(argument);
        let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
        if address == 0 {
            return Ok(Timestamps { last_access: now, last_modification: now });
        }
        let mut bytes = vec![0_u8; words * 8];
        self.memory()?.read_exact_at(&mut bytes, address).map_err(|_missing| Errno::EFAULT)?;
        let words: Vec<i64> = bytes
            .chunks_exact(8)
            .filter_map(|word| word.try_into().ok().map(i64::from_le_bytes))
            .collect();
        let time = |seconds: i64, part: i64| Timespec { tv_sec: seconds, tv_nsec: part * unit };
        match words.as_slice() {
            [access, modification] => Ok(Timestamps {
                last_access: time(*access, 0),
                last_modification: time(*modification, 0),
            }),
            // The kernel refuses parts out of range, and knows the two special ones.
            [access, a, modification, m] if *a < 1 << 31 && *m < 1 << 31 => Ok(Timestamps {
                last_access: time(*access, *a),
                last_modification: time(*modification, *m),
            }),
            _ => Err(Errno::EINVAL.into()),
        }
    }
}

/// `fchmodat2`, which libc does not name on every architecture.
const FCHMODAT2: i64 = 452;

/// Where a path stands among the arguments, and what it is relative to.
#[derive(Clone, Copy)]
struct Where {
    directory: i32,
    path: usize,
    flags: i32,
}

impl Where {
    /// A path relative to the working directory.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "newer machines have no such calls")
    )]
    fn here(path: usize, flags: i32) -> Self {
        Self { directory: CURRENT_DIRECTORY, path, flags }
    }
}

/// In which form two times are given, and in which argument.
#[derive(Clone, Copy)]
enum Times {
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "newer machines have no such calls")
    )]
    Seconds(usize),
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "newer machines have no such calls")
    )]
    Micro(usize),
    Nano(usize),
}

/// The number in the path by which C libraries reach one of their own descriptors. Only this link
/// of `/proc` is followed, and for the program, not for this process.
fn own_descriptor(path: &[u8]) -> Option<u32> {
    let number = path.strip_prefix(b"/proc/self/fd/")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// A path by which this process reaches what it has opened.
fn own_path(node: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", node.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_grant_decides_about_metadata() {
        let places = Places {
            grants: [("/w", true), ("/w/fixed", false), ("/w/fixed/own", true)]
                .map(|(path, writes)| (PathBuf::from(path), writes))
                .to_vec(),
        };
        for (path, held, changed) in [
            ("/w/a", true, true),
            ("/w", true, true),
            ("/w/fixed/a", true, false),
            ("/w/fixed/own/a", true, true),
            ("/w2", false, false),
            ("/", false, false),
        ] {
            let path = Path::new(path);
            assert_eq!((places.hold(path), places.may_change(path)), (held, changed), "{path:?}");
        }
    }

    #[test]
    fn only_a_number_below_the_own_descriptors_is_one() {
        for (path, number) in [
            ("/proc/self/fd/3", Some(3)),
            ("/proc/self/fd/", None),
            ("/proc/self/fd/3/x", None),
            ("/proc/self/fd/-1", None),
            ("/proc/1/fd/3", None),
            ("/proc/self/cwd", None),
        ] {
            assert_eq!(own_descriptor(path.as_bytes()), number, "{path}");
        }
    }
}
