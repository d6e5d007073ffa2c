//! Hard links that were there before a run: a name that no mask covers and that leads to a file which
//! one does, and files that have further names where nobody looked.
//!
//! A mask covers names; a second name of the same file is as good as the first. So the names below the
//! granted directories are looked at once, before the first call, and files are told apart by device
//! and inode. Nothing is opened but directories, no link is followed on the way, and the look is
//! bounded. A cell can make no such link later: what a mask covers cannot be linked from inside.

use super::spec::{Mask, MaskKind, MaskPattern};
use crate::base::paths::normalise;
use crate::base::pattern::{Selection, names};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Paths of files with names elsewhere that are kept as examples.
const EXAMPLES_MAX: usize = 3;
/// Directory levels below a root; each holds one open directory.
const DEPTH_MAX: usize = 64;

/// A name that leads to a file which a mask covers under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondName {
    /// The name.
    pub name: PathBuf,
    /// A name of the same file that is covered.
    pub covered: PathBuf,
    /// What the mask takes back.
    pub kind: MaskKind,
    /// The rule that asked for the mask.
    pub reason_id: String,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HardLinks {
    /// Names that go past a mask.
    pub second_names: Vec<SecondName>,
    /// Files with further names that lie elsewhere; known after a complete look only.
    pub elsewhere: u64,
    /// Some of them.
    pub examples: Vec<PathBuf>,
    /// Names that were looked at.
    pub entries: u64,
    /// Whether all names were.
    pub complete: bool,
}

/// Looks at the names below `roots`, at most `entries_max` of them.
///
/// What masks cover is worked out for the names that matter alone, which most workspaces have none of.
///
/// # Errors
/// If a pattern of a mask that had to be looked at cannot be compiled. A directory that cannot be read
/// is left out, and the answer is then not complete.
pub fn hard_links(
    roots: &[PathBuf],
    masks: &[Mask],
    entries_max: u64,
) -> Result<HardLinks, io::Error> {
    let mut look = Look {
        noted: BTreeMap::new(),
        directories: HashSet::new(),
        entries: 0,
        entries_max,
        complete: true,
    };
    for root in roots {
        look.root(root);
    }
    let mut found =
        HardLinks { entries: look.entries, complete: look.complete, ..HardLinks::default() };
    if !look.noted.is_empty() {
        let mut coverage = Coverage::new(masks)?;
        let files = targets_of_covered_links(coverage.judge(look.noted));
        files.values().for_each(|names| names.tell(&coverage, &mut found));
    }
    Ok(found)
}

/// The names that one mask covers.
struct Cover {
    root: PathBuf,
    /// `None`: the root itself and all below it.
    selection: Option<Selection>,
    kind: MaskKind,
    reason_id: String,
}

impl Cover {
    /// The names that a mask covers, pattern by pattern.
    fn all(mask: &Mask) -> io::Result<Vec<Self>> {
        let cover = |root: &Path, selection| Self {
            root: normalise(Path::new("/"), root),
            selection,
            kind: mask.kind,
            reason_id: mask.reason_id.clone(),
        };
        match &mask.pattern {
            MaskPattern::Exact(path) => Ok(vec![cover(path, None)]),
            MaskPattern::Glob { root, patterns, except } => {
                let except = Selection::exceptions(except).map_err(io::Error::other)?;
                let selection = |pattern: &String| Selection::new(pattern, Arc::clone(&except));
                let each = patterns.iter().map(selection);
                each.map(|one| Ok(cover(root, Some(one.map_err(io::Error::other)?)))).collect()
            }
        }
    }

    /// Whether it covers `path` itself; what lies below a covered directory is covered with it.
    fn covers(&self, path: &Path) -> bool {
        let Ok(relative) = path.strip_prefix(&self.root) else { return false };
        self.selection.as_ref().is_none_or(|selection| selection.fits(&names(relative)))
    }
}

/// What tells a file from every other: device and inode.
type Identity = (u64, u64);

/// What was seen of a file with more than one name, or of a symbolic link.
#[derive(Default)]
struct Noted {
    links: u64,
    is_link: bool,
    /// Each name, and the root below which it was seen.
    seen: Vec<(PathBuf, Arc<Path>)>,
}

/// The walk over names.
struct Look {
    noted: BTreeMap<Identity, Noted>,
    /// Directories that were looked at: roots may lie in one another.
    directories: HashSet<Identity>,
    entries: u64,
    entries_max: u64,
    complete: bool,
}

impl Look {
    fn root(&mut self, root: &Path) {
        match statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => self.entry(None, root, root.as_os_str(), (&status, &Arc::from(root))),
            // A grant that is not there grants nothing.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
            Err(_) => self.complete = false,
        }
    }

    fn entry(
        &mut self,
        parent: Option<&OwnedFd>,
        path: &Path,
        name: &OsStr,
        (status, root): (&Stat, &Arc<Path>),
    ) {
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => self.directory(parent, path, name, root),
            FileType::Symlink => self.note(path, status, root),
            FileType::RegularFile if status.st_nlink > 1 => self.note(path, status, root),
            FileType::RegularFile
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {}
        }
    }

    #[expect(
        clippy::useless_conversion,
        reason = "the width of the numbers differs between machines"
    )]
    fn note(&mut self, path: &Path, status: &Stat, root: &Arc<Path>) {
        let noted = self.noted.entry((status.st_dev, status.st_ino)).or_default();
        noted.links = u64::from(status.st_nlink);
        noted.is_link = FileType::from_raw_mode(status.st_mode) == FileType::Symlink;
        noted.seen.push((path.to_owned(), Arc::clone(root)));
    }

    fn directory(&mut self, parent: Option<&OwnedFd>, path: &Path, name: &OsStr, root: &Arc<Path>) {
        let depth = path.components().count();
        let Some(directory) = open_directory(parent, name).filter(|_| depth < DEPTH_MAX) else {
            self.complete = false;
            return;
        };
        let first_time = fstat(&directory)
            .is_ok_and(|status| self.directories.insert((status.st_dev, status.st_ino)));
        let Some(entries) = first_time.then(|| Dir::read_from(&directory).ok()).flatten() else {
            return;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.complete = false;
                return;
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.entries >= self.entries_max {
                self.complete = false;
                return;
            }
            self.entries += 1;
            let path = path.join(name);
            match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(status) => self.entry(Some(&directory), &path, name, (&status, root)),
                // It went away, as names of a workspace in use do.
                Err(rustix::io::Errno::NOENT) => {}
                Err(_) => self.complete = false,
            }
        }
    }
}

/// Which masks cover the names that were noted.
struct Coverage {
    covers: Vec<Cover>,
    /// What is known already: the names of one directory share the directories above.
    known: HashMap<PathBuf, Option<usize>>,
}

impl Coverage {
    fn new(masks: &[Mask]) -> io::Result<Self> {
        let covers = masks.iter().map(Cover::all).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { covers: covers.into_iter().flatten().collect(), known: HashMap::new() })
    }

    /// Each file with the number of the mask over each of its names. Of symbolic links only those
    /// count that a mask covers.
    fn judge(&mut self, noted: BTreeMap<Identity, Noted>) -> BTreeMap<Identity, Names> {
        let judged = noted.into_iter().filter_map(|(identity, Noted { links, is_link, seen })| {
            let seen = seen.into_iter().map(|(path, root)| {
                let covered = self.over(&path, &root);
                (path, covered)
            });
            let seen: Vec<_> = seen.filter(|(_, covered)| covered.is_some() || !is_link).collect();
            (!seen.is_empty()).then_some((identity, Names { links, seen }))
        });
        judged.collect()
    }

    /// The strictest mask over a path below `root` or over a directory that it lies in.
    fn over(&mut self, path: &Path, root: &Path) -> Option<usize> {
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        let parent = path.parent().filter(|_| path != root);
        let above = parent.and_then(|parent| self.over(parent, root));
        let covering = self.covering(path, above);
        self.known.insert(path.to_owned(), covering);
        covering
    }

    /// One that hides goes before one that forbids writing.
    fn covering(&self, path: &Path, above: Option<usize>) -> Option<usize> {
        let hides = |number: usize| {
            self.covers.get(number).is_some_and(|cover| cover.kind == MaskKind::Hide)
        };
        if above.is_some_and(hides) {
            return above;
        }
        let mut covering = (0..self.covers.len())
            .filter(|number| self.covers.get(*number).is_some_and(|cover| cover.covers(path)));
        let own = covering.clone().find(|number| hides(*number)).or_else(|| covering.next());
        own.filter(|own| above.is_none() || hides(*own)).or(above)
    }
}

/// A covered name may be a symbolic link: then what it leads to is meant.
fn targets_of_covered_links(mut files: BTreeMap<Identity, Names>) -> BTreeMap<Identity, Names> {
    let mut targets = Vec::new();
    for (path, covered) in files.values().flat_map(|names| &names.seen) {
        let Some(covered) = covered else { continue };
        let Ok(status) = statat(CWD, path, AtFlags::empty()) else { continue };
        if FileType::from_raw_mode(status.st_mode) == FileType::RegularFile {
            targets.push(((status.st_dev, status.st_ino), path.clone(), *covered));
        }
    }
    for (identity, path, covered) in targets {
        if let Some(names) = files.get_mut(&identity)
            && !names.seen.iter().any(|(name, _)| *name == path)
        {
            names.seen.push((path, Some(covered)));
            // The link itself is no name of the file.
            names.links += 1;
        }
    }
    files
}

/// The names of a file with more than one.
struct Names {
    links: u64,
    /// Each name, with the number of the mask that covers it.
    seen: Vec<(PathBuf, Option<usize>)>,
}

impl Names {
    /// Adds what is to be said of the file.
    fn tell(&self, Coverage { covers, .. }: &Coverage, found: &mut HardLinks) {
        let strictest =
            self.seen.iter().filter_map(|(name, covered)| Some((name, covers.get((*covered)?)?)));
        let strictest = strictest.min_by_key(|(_, cover)| cover.kind != MaskKind::Hide);
        if let Some((covered, cover)) = strictest {
            let open = self.seen.iter().filter(|(_, own)| {
                let own = own.and_then(|own| covers.get(own));
                own.is_none_or(|own| own.kind != cover.kind && own.kind != MaskKind::Hide)
            });
            found.second_names.extend(open.map(|(name, _)| SecondName {
                name: name.clone(),
                covered: covered.clone(),
                kind: cover.kind,
                reason_id: cover.reason_id.clone(),
            }));
        }
        let all_covered = self.seen.iter().all(|(_, covered)| covered.is_some());
        // Of an incomplete look nobody can say which names are elsewhere.
        if found.complete && (self.seen.len() as u64) < self.links && !all_covered {
            found.elsewhere += 1;
            let example = self.seen.iter().find(|(_, covered)| covered.is_none());
            found.examples.extend(
                example
                    .filter(|_| found.examples.len() < EXAMPLES_MAX)
                    .map(|(name, _)| name.clone()),
            );
        }
    }
}

fn open_directory(parent: Option<&OwnedFd>, name: &OsStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match parent {
        Some(parent) => openat(parent, name, flags, Mode::empty()).ok(),
        None => openat(CWD, name, flags, Mode::empty()).ok(),
    }
}
