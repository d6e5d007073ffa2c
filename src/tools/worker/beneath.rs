//! Where a path leads: the walk from a root, one name at a time, with every directory held open.
//!
//! Each name is opened with `openat2` beneath the directory before it and no link is ever followed
//! by the kernel: a link's text is read and walked by the same rules, so it may lead to another
//! root and nowhere else. What another process renames meanwhile cannot move the walk, since it
//! goes on from directories that are already held.

use super::job::{FileIdentity, FileJob, Root};
use super::node::{Facts, facts, io_error, open_at};
use super::protect::{Access, Protections};
use super::reply::{FileKind, JobError};
use super::shown;
use crate::base::paths::normalise;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self as rfs, Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// The kernel gives up after 40 links in one path; so does this walk.
const LINKS_MAX: usize = 40;

/// The roots and protections of a job: every path goes through here.
#[derive(Debug)]
pub(super) struct Places<'job> {
    workspace: &'job Path,
    roots: &'job [Root],
    pub(super) protections: Protections,
}

/// Where a path leads, held open.
#[derive(Debug)]
pub(super) struct Place {
    /// The deepest directory that exists on the way to `name`.
    pub(super) parent: OwnedFd,
    /// Directories still to be made below `parent`.
    pub(super) missing: Vec<OsString>,
    /// The last component; `.` if the place is a root directory.
    pub(super) name: OsString,
    /// What is there, opened without access to its content.
    pub(super) node: Option<(OwnedFd, Facts)>,
    /// The path with every link followed.
    pub(super) real: PathBuf,
    /// The links that were followed, and directories passed, for the protections.
    passed: Vec<(PathBuf, Option<FileIdentity>)>,
}

impl<'job> Places<'job> {
    pub(super) fn new(job: &'job FileJob) -> Result<Self, JobError> {
        let protections = Protections::new(&job.protected)?;
        Ok(Self { workspace: &job.workspace, roots: &job.roots, protections })
    }

    /// What exists at `path`, if it may be read.
    pub(super) fn existing(&self, path: &str) -> Result<(Place, Facts), JobError> {
        self.existing_path(&self.asked(path)?)
    }

    /// Like [`Self::existing`], for an absolute path.
    pub(super) fn existing_path(&self, path: &Path) -> Result<(Place, Facts), JobError> {
        let place = self.resolve(path)?;
        self.check(&place, Access::Read)?;
        match place.node.as_ref().map(|(_, facts)| *facts) {
            Some(facts) => Ok((place, facts)),
            None => Err(JobError::NotFound { path: shown::path(&place.real) }),
        }
    }

    /// The place of `path`, existing or not, if it may be written.
    pub(super) fn to_write(&self, path: &str) -> Result<Place, JobError> {
        let place = self.resolve(&self.asked(path)?)?;
        self.check(&place, Access::Write)?;
        let writable = |path: &Path| self.deepest_root(path).is_some_and(|root| root.writable);
        if !writable(&place.real) {
            let roots = self.roots_shown(true);
            return Err(JobError::ReadOnly { path: shown::path(&place.real), roots });
        }
        let is_file = place.node.as_ref().is_some_and(|(_, facts)| facts.kind == FileKind::Regular);
        if is_file && !place.real.parent().is_some_and(writable) {
            return Err(JobError::Io {
                action: "replace".to_owned(),
                path: shown::path(&place.real),
                problem: "only this file may be written, not its directory; use `bash`".to_owned(),
            });
        }
        Ok(place)
    }

    fn check(&self, place: &Place, access: Access) -> Result<(), JobError> {
        for (real, identity) in &place.passed {
            // What leads on may be passed for writing below it; what is closed itself may not.
            self.protections.check_passed(real, *identity, access)?;
        }
        let identity = place.node.as_ref().map(|(_, facts)| facts.identity);
        self.protections.check(&place.real, identity, access)
    }

    fn roots_of(&self, path: &Path) -> impl Iterator<Item = &'job Root> {
        self.roots.iter().filter(move |root| path.starts_with(&root.path))
    }

    /// The root that says what may be done at a real path.
    fn deepest_root(&self, path: &Path) -> Option<&'job Root> {
        self.roots_of(path).max_by_key(|root| root.path.components().count())
    }

    /// The root at which a walk to `path` starts: one inside another could have been swapped for a
    /// link by whoever may write there.
    fn outermost_root(&self, path: &Path) -> Option<&'job Root> {
        self.roots_of(path).min_by_key(|root| root.path.components().count())
    }

    fn roots_shown(&self, only_writable: bool) -> String {
        let mut roots: Vec<String> = self
            .roots
            .iter()
            .filter(|root| root.writable || !only_writable)
            .map(|root| format!("`{}`", shown::path(&root.path)))
            .collect();
        let more = roots.len() > 10;
        roots.truncate(10);
        if roots.is_empty() {
            return "none".to_owned();
        }
        roots.join(", ") + if more { ", …" } else { "" }
    }

    fn asked(&self, path: &str) -> Result<PathBuf, JobError> {
        if path == "~" || path.starts_with("~/") {
            let path = crate::base::text::escape(path);
            let problem = format!("`~` is not expanded in `{path}`; give the path in full");
            return Err(JobError::BadArguments { problem });
        }
        Ok(normalise(self.workspace, Path::new(path)))
    }

    fn resolve(&self, path: &Path) -> Result<Place, JobError> {
        let mut walk = Walk::start(self, path)?;
        loop {
            if let Some(place) = walk.step()? {
                return Ok(place);
            }
        }
    }
}

/// The state of one walk.
struct Walk<'places> {
    places: &'places Places<'places>,
    /// As asked for, normalised: for messages.
    asked: PathBuf,
    /// Where a link led last, if one was followed.
    via: Option<PathBuf>,
    /// The directories from the root down, the deepest last.
    held: Vec<OwnedFd>,
    /// The real path of the deepest.
    real: PathBuf,
    /// Names still to be walked.
    pending: VecDeque<OsString>,
    links: usize,
    passed: Vec<(PathBuf, Option<FileIdentity>)>,
}

impl<'places> Walk<'places> {
    fn start(places: &'places Places<'_>, asked: &Path) -> Result<Self, JobError> {
        let mut walk = Self {
            places,
            asked: asked.to_owned(),
            via: None,
            held: Vec::new(),
            real: PathBuf::new(),
            pending: VecDeque::new(),
            links: 0,
            passed: Vec::new(),
        };
        walk.enter_root(asked)?;
        Ok(walk)
    }

    /// Starts again at the root that holds the absolute path `target`.
    fn enter_root(&mut self, target: &Path) -> Result<(), JobError> {
        let outside = || JobError::Outside {
            path: shown::path(&self.asked),
            via: self.via.as_deref().map(shown::path),
            roots: self.places.roots_shown(false),
        };
        let root = self.places.outermost_root(target).ok_or_else(outside)?;
        let open = |path: &Path| {
            rfs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .map_err(|errno| io_error("open", path, errno))
        };
        let fd = open(&root.path)?;
        let facts = facts(fd.as_fd()).map_err(|errno| io_error("open", &root.path, errno))?;
        let rest = target.strip_prefix(&root.path).unwrap_or(Path::new(""));
        self.pending = names_of(rest);
        if facts.kind == FileKind::Directory {
            self.passed.push((root.path.clone(), Some(facts.identity)));
            self.held = vec![fd];
            self.real.clone_from(&root.path);
            return Ok(());
        }
        let (Some(parent), Some(name)) = (root.path.parent(), root.path.file_name()) else {
            return Err(outside());
        };
        self.held = vec![open(parent)?];
        self.real = parent.to_owned();
        self.pending.push_front(name.to_owned());
        Ok(())
    }

    /// Walks one name; gives the place when the walk has ended.
    fn step(&mut self) -> Result<Option<Place>, JobError> {
        let Some(name) = self.pending.pop_front() else {
            return self.end_at_directory().map(Some);
        };
        if name == ".." {
            return self.ascend().map(|()| None);
        }
        let Some(top) = self.held.last() else {
            return Err(io_error("open", &self.asked, Errno::BADF));
        };
        let fd = match open_at(top.as_fd(), &name, OFlags::PATH, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return self.end_at_missing(name).map(Some),
            Err(errno) => return Err(io_error("open", &self.real.join(&name), errno)),
        };
        let real = self.real.join(&name);
        let facts = facts(fd.as_fd()).map_err(|errno| io_error("look at", &real, errno))?;
        match facts.kind {
            FileKind::Symlink => self.follow(&fd, real, facts).map(|()| None),
            FileKind::Directory => {
                self.passed.push((real.clone(), Some(facts.identity)));
                self.held.push(fd);
                self.real = real;
                Ok(None)
            }
            FileKind::Regular
            | FileKind::Fifo
            | FileKind::Socket
            | FileKind::Device
            | FileKind::Other => {
                if !self.pending.is_empty() {
                    return Err(JobError::NotDirectory { path: shown::path(&real) });
                }
                self.place(name, Some((fd, facts)), Vec::new()).map(Some)
            }
        }
    }

    /// `..`, which only the text of a link can hold: back to the directory held before, or out of
    /// the root by its own name.
    fn ascend(&mut self) -> Result<(), JobError> {
        if self.held.len() > 1 {
            self.held.pop();
            self.real.pop();
            return Ok(());
        }
        let mut target = self.real.clone();
        target.pop();
        while self.pending.front().is_some_and(|name| name == "..") {
            self.pending.pop_front();
            target.pop();
        }
        target.extend(self.pending.iter());
        self.via = Some(target.clone());
        self.enter_root(&target)
    }

    fn follow(&mut self, link: &OwnedFd, real: PathBuf, facts: Facts) -> Result<(), JobError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(JobError::TooManyLinks { path: shown::path(&self.asked) });
        }
        let text = rfs::readlinkat(link, "", Vec::new())
            .map_err(|errno| io_error("read the link", &real, errno))?;
        let target = PathBuf::from(OsString::from_vec(text.into_bytes()));
        self.passed.push((real, Some(facts.identity)));
        let mut names = names_of(&target);
        names.append(&mut self.pending);
        self.pending = names;
        if !target.is_absolute() {
            self.via = Some(self.real.join(&target));
            return Ok(());
        }
        self.via = Some(target);
        let mut whole = PathBuf::from("/");
        whole.extend(self.pending.iter());
        self.enter_root(&whole)
    }

    fn end_at_directory(&mut self) -> Result<Place, JobError> {
        let Some(fd) = self.held.pop() else {
            return Err(io_error("open", &self.asked, Errno::BADF));
        };
        let facts = facts(fd.as_fd()).map_err(|errno| io_error("look at", &self.real, errno))?;
        if self.held.is_empty() {
            let same = fd.try_clone();
            self.held
                .push(same.map_err(|_no_descriptor| io_error("open", &self.real, Errno::MFILE))?);
            return self.place(OsString::from("."), Some((fd, facts)), Vec::new());
        }
        let name = self.real.file_name().map(OsStr::to_owned).unwrap_or_default();
        self.real.pop();
        self.place(name, Some((fd, facts)), Vec::new())
    }

    fn end_at_missing(&mut self, first: OsString) -> Result<Place, JobError> {
        let mut names: Vec<OsString> =
            std::iter::once(first).chain(self.pending.drain(..)).collect();
        let climbs = names.iter().any(|name| name == "..");
        match names.pop().filter(|_| !climbs) {
            Some(name) => self.place(name, None, names),
            None => Err(JobError::NotFound { path: shown::path(&self.asked) }),
        }
    }

    fn place(
        &mut self,
        name: OsString,
        node: Option<(OwnedFd, Facts)>,
        missing: Vec<OsString>,
    ) -> Result<Place, JobError> {
        let Some(parent) = self.held.pop() else {
            return Err(io_error("open", &self.asked, Errno::BADF));
        };
        let mut real = std::mem::take(&mut self.real);
        real.extend(&missing);
        if name != "." {
            real.push(&name);
        }
        let passed = std::mem::take(&mut self.passed);
        Ok(Place { parent, missing, name, node, real, passed })
    }
}

/// The names of a path, `..` included, `.` and the root left out.
fn names_of(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect()
}

impl Place {
    /// Opens the regular file at this place to be read.
    pub(super) fn open_file(&self) -> Result<(std::fs::File, Facts), JobError> {
        let wrong = |kind| JobError::NotRegularFile { path: shown::path(&self.real), kind };
        if let Some((_, facts)) = self.node.as_ref().filter(|(_, f)| f.kind != FileKind::Regular) {
            return Err(wrong(facts.kind));
        }
        // Not blocking: should a pipe have taken the file's place, opening it must not wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = open_at(self.parent.as_fd(), &self.name, flags, Mode::empty())
            .map_err(|errno| io_error("read", &self.real, errno))?;
        let opened = facts(fd.as_fd()).map_err(|errno| io_error("read", &self.real, errno))?;
        if opened.kind != FileKind::Regular {
            return Err(wrong(opened.kind));
        }
        let seen = self.node.as_ref().map(|(_, facts)| facts.identity);
        if seen.is_some_and(|identity| identity != opened.identity) {
            return Err(JobError::Changed { path: shown::path(&self.real) });
        }
        Ok((std::fs::File::from(fd), opened))
    }
}
