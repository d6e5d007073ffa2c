//! Finds the names below one directory that the patterns of masks mean now, in one walk that follows
//! no link. What is done about a match, and where links lead, is the business of `masks`.
//!
//! The walk is what a launch into a large tree costs, so it makes one system call for some hundred
//! names and compares bytes alone.

use super::super::spec::{Mask, MaskKind, MaskPattern};
use crate::base::pattern::{Selection, names};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, openat2, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of names that are read from a directory at once.
const LIST_BYTES: usize = 32 * 1024;

/// A name that was found.
#[derive(Debug)]
pub(super) struct Found<'m> {
    /// Where it is.
    pub(super) path: PathBuf,
    /// The mask that means it.
    pub(super) mask: &'m Mask,
    /// Whether it stays meant when a directory above it is renamed.
    pub(super) last_name_alone: bool,
}

/// Searches `root` for what `masks` mean. What is hidden is not searched further, and below what is
/// read-only nothing is looked for that is only to be read-only. `entries_left` bounds the names that
/// are looked at.
pub(super) fn search<'m>(
    root: &Path,
    masks: &[&'m Mask],
    entries_left: &mut usize,
) -> io::Result<Vec<Found<'m>>> {
    let patterns = Patterns::new(masks)?;
    let mut walk = Walk { root, patterns, found: Vec::new(), pending: Vec::new(), entries_left };
    walk.pending.push(Pending { path: root.to_owned(), level: 1, read_only: false });
    let mut buffer = Vec::with_capacity(LIST_BYTES);
    while let Some(directory) = walk.pending.pop() {
        walk.list(&directory, &mut buffer)?;
    }
    Ok(walk.found)
}

struct Walk<'w, 'm> {
    root: &'w Path,
    patterns: Patterns<'m>,
    found: Vec<Found<'m>>,
    pending: Vec<Pending>,
    entries_left: &'w mut usize,
}

/// A directory that is still to be searched.
struct Pending {
    path: PathBuf,
    /// The level of the names in it; those of the root are at 1.
    level: usize,
    /// Whether it lies in a directory that is read-only as a whole.
    read_only: bool,
}

impl Walk<'_, '_> {
    fn list(&mut self, directory: &Pending, buffer: &mut Vec<u8>) -> io::Result<()> {
        let Some(node) = open_directory(&directory.path)? else { return Ok(()) };
        let above = names(directory.path.strip_prefix(self.root).unwrap_or(Path::new("")));
        let mut entries = RawDir::new(node, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            *self.entries_left = self.entries_left.checked_sub(1).ok_or_else(|| {
                io::Error::other("the pattern searches more names than a launch may look at")
            })?;
            let path_names: Vec<&[u8]> = above.iter().copied().chain([name]).collect();
            self.look_at(directory, &path_names, entry.file_type());
        }
        Ok(())
    }

    /// Notes the masks that mean one name, and whether what is below it is to be searched.
    fn look_at(&mut self, directory: &Pending, names: &[&[u8]], kind: FileType) {
        let Some(name) = names.last() else { return };
        let path = || directory.path.join(OsStr::from_bytes(name));
        let (mut hidden, mut read_only) = (false, directory.read_only);
        for (mask, last_name_alone) in self.patterns.matching(names) {
            match mask.kind {
                MaskKind::Hide => hidden = true,
                MaskKind::ReadOnly if directory.read_only => continue,
                MaskKind::ReadOnly => read_only = true,
            }
            self.found.push(Found { path: path(), mask, last_name_alone });
        }
        let level = directory.level;
        if !hidden && self.patterns.reach_below(level) && is_real_directory(kind, path) {
            self.pending.push(Pending { path: path(), level: level + 1, read_only });
        }
    }
}

/// The patterns of one directory.
struct Patterns<'m> {
    each: Vec<(&'m Mask, Selection)>,
    depth: Option<usize>,
}

impl<'m> Patterns<'m> {
    /// Reads the patterns of `masks`; exact masks among them are left out.
    fn new(masks: &[&'m Mask]) -> io::Result<Self> {
        let mut each = Vec::with_capacity(masks.len());
        for mask in masks {
            let MaskPattern::Glob { root: _, patterns, except } = &mask.pattern else { continue };
            let exceptions = Selection::exceptions(except).map_err(io::Error::other)?;
            for pattern in patterns {
                let selection = Selection::new(pattern, Arc::clone(&exceptions));
                each.push((*mask, selection.map_err(io::Error::other)?));
            }
        }
        // One pattern without a bound makes the walk unbounded.
        let depths = each.iter().map(|(_, selection)| selection.depth());
        let depth = depths.collect::<Option<Vec<_>>>().map(|d| d.into_iter().max().unwrap_or(0));
        Ok(Self { each, depth })
    }

    /// The masks that mean the path with these names below the directory, each with whether its last
    /// name alone decides.
    fn matching<'a>(
        &'a self,
        names: &'a [&'a [u8]],
    ) -> impl Iterator<Item = (&'m Mask, bool)> + 'a {
        let meant = self.each.iter().filter(|(_, selection)| selection.fits(names));
        meant.map(|(mask, selection)| (*mask, selection.is_last_name_alone()))
    }

    /// Whether a match can lie below a directory at this level; what the searched directory holds is
    /// at level 1.
    fn reach_below(&self, level: usize) -> bool {
        self.depth.is_none_or(|depth| level < depth)
    }
}

/// Opens a directory for reading; `None` when it is gone or may not be read by anyone here.
fn open_directory(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_real_directory(kind: FileType, path: impl FnOnce() -> PathBuf) -> bool {
    match kind {
        FileType::Directory => true,
        FileType::Unknown => statat(CWD, path(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Directory),
        FileType::RegularFile
        | FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(pattern: &str, except: &[&str]) -> Mask {
        Mask {
            pattern: MaskPattern::Glob {
                root: "/w".into(),
                patterns: vec![pattern.to_owned()],
                except: except.iter().map(|text| (*text).to_owned()).collect(),
            },
            kind: MaskKind::Hide,
            reason_id: pattern.to_owned(),
        }
    }

    #[test]
    fn a_walk_goes_no_deeper_than_a_pattern_can_match() {
        for (pattern, levels) in
            [("shadow*", Some(1)), ("ssh/*_key", Some(2)), ("**/.env", None), ("{a,b/c}", Some(2))]
        {
            let mask = mask(pattern, &[]);
            let patterns = Patterns::new(&[&mask]).unwrap();
            assert_eq!(patterns.depth, levels, "{pattern}");
            assert!(patterns.reach_below(levels.unwrap_or(100) - 1), "{pattern}");
            assert_eq!(patterns.reach_below(levels.unwrap_or(100)), levels.is_none(), "{pattern}");
        }
    }

    #[test]
    fn each_mask_has_its_own_exceptions() {
        let masks = [
            mask("**/.env*", &["**/.env.example"]),
            mask("**/*.pem", &["**/.env.example"]),
            mask("**/.env.example", &[]),
            mask("**/.ssh/**", &["**/known_hosts"]),
            mask("**/.gnupg/**", &[]),
        ];
        let patterns = Patterns::new(&masks.iter().collect::<Vec<_>>()).unwrap();
        let found = |path: &str| -> Vec<&str> {
            let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
            patterns.matching(&names).map(|(mask, _)| mask.reason_id.as_str()).collect()
        };
        assert_eq!(found("a/.env"), ["**/.env*"]);
        assert_eq!(found("a/.env.example"), ["**/.env.example"]);
        assert_eq!(found("x.pem"), ["**/*.pem"]);
        // What is left in a directory must stay in sight; a directory without exceptions is closed.
        assert_eq!(found(".ssh"), [""; 0]);
        assert_eq!(found(".ssh/id"), ["**/.ssh/**"]);
        assert_eq!(found(".ssh/known_hosts"), [""; 0]);
        assert_eq!(found("a/.gnupg"), ["**/.gnupg/**"]);
    }
}
