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
use super::grants::{Granted, covering, is_directory, open_resolved};
use super::search::{Found, search};
use super::tree::{attach, copy_tree};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2, symlinkat};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
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
        outside: HashMap::new(),
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

fn shown(path: &Path) -> String {
    path.display().to_string()
}

struct Work<'a> {
    grants: &'a [Granted],
    memory: &'a OwnedFd,
    /// Paths that are mount points, and so can be neither renamed nor removed.
    pinned: HashSet<PathBuf>,
    covered: HashSet<(PathBuf, bool)>,
    /// Where paths outside the grants lead; `None` = nowhere. Masks change nothing there.
    outside: HashMap<PathBuf, Option<PathBuf>>,
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
            let Some(real) = self.resolve_outside(ancestor) else { continue };
            if real == ancestor || links == 0 {
                return Ok(());
            }
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            let target = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
            return self.exact(&target, mask, links - 1);
        }
        Ok(())
    }

    /// Where a path outside the grants leads. Most masks name files of one home directory that is not
    /// in the view: what is not there is looked for once, and nothing is looked for below it.
    fn resolve_outside(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.outside.get(path) {
            return known.clone();
        }
        let has_parent = path.parent().is_none_or(|above| self.resolve_outside(above).is_some());
        let real = if has_parent { resolve(path) } else { None };
        self.outside.insert(path.to_owned(), real.clone());
        real
    }

    /// Covers every name below `root` that a pattern matches now. One walk serves all patterns of a
    /// root: the walk is what a launch into a large tree costs.
    fn patterns(&mut self, root: &Path, masks: &[&Mask]) -> io::Result<()> {
        let Some(real) = resolve(root) else { return Ok(()) };
        for Found { path, mask, last_name_alone } in search(&real, masks, &mut self.entries_left)? {
            if !last_name_alone {
                self.exact(&path, mask, LINKS_MAX)?;
                continue;
            }
            match open_name(&path) {
                Ok(node) => self.cover_match(&path, &node, mask)?,
                Err(Errno::NOENT | Errno::ACCESS) => {}
                Err(error) => return Err(error.into()),
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
    Some(open_resolved(path).ok()?.1)
}
