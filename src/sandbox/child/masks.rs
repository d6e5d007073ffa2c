//! What is taken back inside a grant: names that look absent, and names that cannot be changed.
//!
//! A name that exists is covered by a mount: a file by a link to nowhere (opening it says "no such
//! file"), a directory by an empty one, a read-only name by itself without write access. A name that
//! is a mount point can neither be removed nor renamed. So that no directory above it can be renamed
//! away either, each of them up to the grant is mounted on itself ("pinned").
//!
//! A name that does not exist gets no placeholder: on the host a placeholder is seen by every other
//! program, races with parallel cells, and stays behind when the machine stops. The directories
//! above it are pinned, and the sentinel outside moves the name aside when the call has made it.
//!
//! What this does not give: a file that somebody outside creates under a hidden name, or under a
//! pattern, while a cell runs is seen by that cell; the next one covers it. And a protected name that
//! a call creates exists on the host until the call has ended.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::spec::{Mask, MaskKind, MaskPattern};
use super::grants::{Granted, covering, is_directory, real_path};
use super::view::{attach, copy_tree};
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2, statat,
    symlinkat,
};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names that one cell may cover; each is a mount, of which a namespace has 100,000 by default.
const NAMES_MAX: usize = 50_000;
/// Directory entries that patterns may look at in one launch.
const ENTRIES_MAX: usize = 4_000_000;
/// Links that may lead from a masked name to what it means.
const LINKS_MAX: usize = 40;
/// Where a hidden file leads: nowhere, and nobody can make it lead somewhere.
const NOWHERE: &str = "/.hidden/by-policy";

/// A protected name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WatchedName {
    /// The grant it is in, on the host.
    #[serde(with = "crate::sandbox::lossless::path")]
    pub(super) grant: PathBuf,
    /// Its path below the grant.
    #[serde(with = "crate::sandbox::lossless::path")]
    pub(super) name: PathBuf,
    /// The rule that protects it.
    pub(super) reason_id: String,
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub(super) masked: u32,
    pub(super) watched: Vec<WatchedName>,
}

/// Covers every name that the masks cover now. Runs in the cell's own view, on its own paths.
pub(super) fn apply(
    masks: &[Mask],
    grants: &[Granted],
    memory: &OwnedFd,
) -> Result<Applied, SetupFailed> {
    if masks.is_empty() {
        return Ok(Applied::default());
    }
    symlinkat(NOWHERE, memory, "hidden-file").at(Step::Mask)?;
    mkdirat(memory, "hidden-directory", Mode::from_raw_mode(0o555)).at(Step::Mask)?;
    let mut work = Work {
        grants,
        memory,
        pinned: grants.iter().map(|granted| granted.real.clone()).collect(),
        covered: HashSet::new(),
        applied: Applied::default(),
        entries_left: ENTRIES_MAX,
    };
    let mut by_root: BTreeMap<PathBuf, Vec<&Mask>> = BTreeMap::new();
    for mask in masks {
        match &mask.pattern {
            MaskPattern::Exact(path) => {
                let path = crate::base::paths::normalise(Path::new("/"), path);
                work.exact(&path, mask, LINKS_MAX).about(Step::Mask, || shown(&path))?;
            }
            MaskPattern::Glob { root, .. } => {
                let root = crate::base::paths::normalise(Path::new("/"), root);
                by_root.entry(root).or_default().push(mask);
            }
        }
    }
    for (root, masks) in by_root {
        work.patterns(&root, &masks).about(Step::Mask, || shown(&root))?;
    }
    Ok(work.applied)
}

/// The patterns of one root, compiled together.
struct Patterns {
    set: GlobSet,
    each: Vec<OnePattern>,
    /// Levels below the root at which a match can lie; `None` = any.
    depth: Option<usize>,
}

struct OnePattern {
    except: GlobSet,
    /// A pattern of the last name alone still matches after a directory above is renamed.
    last_name_alone: bool,
    kind: MaskKind,
}

impl Patterns {
    fn new(masks: &[&Mask]) -> io::Result<Self> {
        let mut set = GlobSetBuilder::new();
        let mut each = Vec::with_capacity(masks.len());
        for mask in masks {
            let MaskPattern::Glob { root: _, pattern, except } = &mask.pattern else { continue };
            set.add(compiled(pattern)?);
            let mut excepted = GlobSetBuilder::new();
            for pattern in except {
                excepted.add(compiled(pattern)?);
            }
            each.push(OnePattern {
                except: excepted.build().map_err(io::Error::other)?,
                last_name_alone: pattern
                    .strip_prefix("**/")
                    .is_some_and(|rest| !rest.contains('/')),
                kind: mask.kind,
            });
        }
        let depths = masks.iter().map(|mask| match &mask.pattern {
            MaskPattern::Glob { pattern, .. } => depth(pattern),
            MaskPattern::Exact(_) => Some(0),
        });
        // One pattern without a bound makes the walk unbounded.
        let depth = depths.collect::<Option<Vec<_>>>().and_then(|depths| depths.into_iter().max());
        Ok(Self { set: set.build().map_err(io::Error::other)?, each, depth })
    }

    /// The numbers of the patterns that match `relative` and do not except it.
    fn matching(&self, relative: &Path) -> Vec<usize> {
        let mut found = self.set.matches(relative);
        let left = |number: &usize| {
            self.each.get(*number).is_some_and(|one| one.except.is_match(relative))
        };
        found.retain(|number| !left(number));
        found
    }

    fn hides(&self, number: usize) -> bool {
        self.each.get(number).is_some_and(|one| one.kind == MaskKind::Hide)
    }
}

/// Levels at which a pattern can match; a pattern that crosses directories has no bound. An
/// alternative with a separator in it counts for more than it is, which only makes the walk longer.
fn depth(pattern: &str) -> Option<usize> {
    (!pattern.contains("**")).then(|| pattern.split('/').count())
}

fn compiled(pattern: &str) -> io::Result<Glob> {
    GlobBuilder::new(pattern).literal_separator(true).build().map_err(io::Error::other)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

struct Work<'a> {
    grants: &'a [Granted],
    memory: &'a OwnedFd,
    /// Paths that are mount points, and so can be neither renamed nor removed.
    pinned: HashSet<PathBuf>,
    covered: HashSet<(PathBuf, bool)>,
    applied: Applied,
    entries_left: usize,
}

impl Work<'_> {
    /// Covers one name, following links from it as often as `links` says.
    fn exact(&mut self, path: &Path, mask: &Mask, links: usize) -> io::Result<()> {
        let Some(granted) = covering(self.grants, path) else {
            return self.through_link_outside(path, mask, links);
        };
        let (grant, writable) = (granted.real.clone(), granted.access.writes());
        let Ok(rest) = path.strip_prefix(&grant) else { return Ok(()) };
        let mut at = grant.clone();
        let names: Vec<&OsStr> = rest.iter().collect();
        for (number, name) in names.iter().enumerate() {
            at.push(name);
            let last = number + 1 == names.len();
            let node = match open_name(&at) {
                Ok(node) => node,
                Err(Errno::NOENT) => {
                    if writable && mask.kind == MaskKind::ReadOnly {
                        self.watch(&grant, rest, mask);
                    }
                    return Ok(());
                }
                // What the cell's own user cannot reach needs no cover.
                Err(Errno::ACCESS) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let kind = FileType::from_raw_mode(fstat(&node)?.st_mode);
            if kind == FileType::Symlink {
                let rest: PathBuf = names.iter().skip(number + 1).collect();
                return self.link(&at, &rest, (mask, writable), links);
            }
            if last {
                return self.cover(&at, &node, mask.kind);
            }
            if kind != FileType::Directory {
                // A file where a directory is meant (`.git` of a linked worktree): it must stay as
                // it is, or a directory could take its place.
                return if writable { self.cover(&at, &node, MaskKind::ReadOnly) } else { Ok(()) };
            }
            if writable {
                self.pin(&at)?;
            }
        }
        // The mask names the grant's own root.
        let node = open_name(path)?;
        self.cover(path, &node, mask.kind)
    }

    /// A masked name that is, or lies behind, a symbolic link: the link stays where it is, and what
    /// it means is covered.
    fn link(
        &mut self,
        link: &Path,
        rest: &Path,
        (mask, writable): (&Mask, bool),
        links: usize,
    ) -> io::Result<()> {
        if rest.as_os_str().is_empty() && mask.kind == MaskKind::Hide {
            let target = resolve(link);
            self.cover(link, &open_name(link)?, MaskKind::Hide)?;
            return match target {
                Some(target) if links > 0 => self.exact(&target, mask, links - 1),
                Some(_) | None => Ok(()),
            };
        }
        let target = resolve(link);
        if writable {
            self.pin(link)?;
        }
        match target {
            Some(target) if links > 0 => self.exact(&target.join(rest), mask, links - 1),
            // A link to nothing, or to what is not in the view: nothing there can be read, and the
            // link itself is pinned.
            Some(_) | None => Ok(()),
        }
    }

    /// A path that is in no grant but may be a link of the view's own to one.
    fn through_link_outside(&mut self, path: &Path, mask: &Mask, links: usize) -> io::Result<()> {
        for ancestor in path.ancestors() {
            let Some(real) = resolve(ancestor) else { continue };
            if real == ancestor || links == 0 {
                return Ok(());
            }
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            let target = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
            return self.exact(&target, mask, links - 1);
        }
        Ok(())
    }

    /// Covers every name below `root` that a pattern matches now. One walk serves all patterns of a
    /// root: the walk is what a launch into a large tree costs.
    fn patterns(&mut self, root: &Path, masks: &[&Mask]) -> io::Result<()> {
        let Some(real) = resolve(root) else { return Ok(()) };
        let patterns = Patterns::new(masks)?;
        for (path, number) in self.walk(&real, &patterns)? {
            let Some((mask, one)) = masks.get(number).zip(patterns.each.get(number)) else {
                continue;
            };
            if one.last_name_alone {
                match open_name(&path) {
                    Ok(node) => self.cover_match(&path, &node, mask)?,
                    Err(Errno::NOENT | Errno::ACCESS) => {}
                    Err(error) => return Err(error.into()),
                }
            } else {
                self.exact(&path, mask, LINKS_MAX)?;
            }
        }
        Ok(())
    }

    fn cover_match(&mut self, path: &Path, node: &OwnedFd, mask: &Mask) -> io::Result<()> {
        if FileType::from_raw_mode(fstat(node)?.st_mode) == FileType::Symlink {
            return self.exact(path, mask, LINKS_MAX);
        }
        self.cover(path, node, mask.kind)
    }

    /// Finds matches without following links, each with the number of its pattern. What is hidden is
    /// not searched further.
    fn walk(&mut self, root: &Path, patterns: &Patterns) -> io::Result<Vec<(PathBuf, usize)>> {
        let mut matches = Vec::new();
        let mut pending = vec![(root.to_owned(), 1)];
        while let Some((directory, level)) = pending.pop() {
            let Some(entries) = read_directory(&directory)? else { continue };
            for entry in entries {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                self.entries_left = self.entries_left.checked_sub(1).ok_or_else(|| {
                    io::Error::other("the pattern searches more names than a launch may look at")
                })?;
                let path = directory.join(name);
                let found = patterns.matching(path.strip_prefix(root).unwrap_or(&path));
                let hidden = found.iter().any(|number| patterns.hides(*number));
                matches.extend(found.into_iter().map(|number| (path.clone(), number)));
                let deeper = patterns.depth.is_none_or(|depth| level < depth);
                if deeper && !hidden && is_real_directory(&entry.file_type(), &path) {
                    pending.push((path, level + 1));
                }
            }
        }
        Ok(matches)
    }

    fn cover(&mut self, path: &Path, node: &OwnedFd, kind: MaskKind) -> io::Result<()> {
        if !self.covered.insert((path.to_owned(), kind == MaskKind::Hide)) {
            return Ok(());
        }
        if self.covered.len() > NAMES_MAX {
            return Err(io::Error::other("masks cover more names than a cell can have mounts"));
        }
        let tree = match kind {
            MaskKind::ReadOnly => {
                copy_tree(node, Path::new(""), MountAttrFlags::MOUNT_ATTR_RDONLY, true)?
            }
            MaskKind::Hide => {
                let name = if is_directory(node)? { "hidden-directory" } else { "hidden-file" };
                copy_tree(self.memory, Path::new(name), MountAttrFlags::MOUNT_ATTR_RDONLY, false)?
            }
        };
        attach(&tree, node)?;
        self.pinned.insert(path.to_owned());
        self.applied.masked += 1;
        Ok(())
    }

    /// Mounts a name on itself, unless it is a mount point already.
    fn pin(&mut self, path: &Path) -> io::Result<()> {
        if !self.pinned.insert(path.to_owned()) {
            return Ok(());
        }
        let tree = copy_tree(CWD, path, MountAttrFlags::empty(), true)?;
        attach(&tree, open_name(path)?)
    }

    fn watch(&mut self, grant: &Path, name: &Path, mask: &Mask) {
        let watched = WatchedName {
            grant: grant.to_owned(),
            name: name.to_owned(),
            reason_id: mask.reason_id.clone(),
        };
        if !self.applied.watched.contains(&watched) {
            self.applied.watched.push(watched);
        }
    }
}

/// Opens a name whose directories hold no link, and which may be a link itself.
fn open_name(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
}

/// Where a path leads in the cell's view, if anywhere.
fn resolve(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let node = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS).ok()?;
    real_path(&node).ok()
}

/// Opens a directory for reading; `None` when it is gone or may not be read by anyone here.
fn read_directory(path: &Path) -> io::Result<Option<Dir>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Ok(directory) => Ok(Some(Dir::new(directory)?)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_real_directory(kind: &FileType, path: &Path) -> bool {
    match kind {
        FileType::Directory => true,
        FileType::Unknown => statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
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

    #[test]
    fn a_walk_goes_no_deeper_than_a_pattern_can_match() {
        for (pattern, levels) in
            [("shadow*", Some(1)), ("ssh/*_key", Some(2)), ("**/.env", None), ("{a,b/c}", Some(2))]
        {
            assert_eq!(depth(pattern), levels, "{pattern}");
        }
    }
}
