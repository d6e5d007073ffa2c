//! The file system in memory that a view stands on, and the places in it where something is mounted.
//!
//! Places may lie in a granted directory, whose content others can change, so no link is followed on
//! the way to one. What is shown there is decided in `view`.

use super::super::spec::GrantAccess;
use super::grants::Granted;
use super::privileges::Ids;
use super::tree::{attach, attributes, copy_tree, new_file_system};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, fchmod, mkdirat, mknodat, openat, openat2,
};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, move_mount};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Largest content of the file system that holds `/tmp`, `/dev/shm` and scratch directories.
const MEMORY_FILES_BYTES: &str = "2147483648";
/// Most names on it: each takes a kilobyte of the kernel's memory that the size does not count.
const MEMORY_FILES_NAMES: &str = "200000";

/// The file system in memory that is under everything, and the cell's root on it.
pub(super) struct Ground {
    pub(super) memory: OwnedFd,
    pub(super) root: OwnedFd,
    pub(super) grants: Vec<Granted>,
    /// Directories in memory that are this process's alone until the program starts, by their path in
    /// the root: what is made in them needs no second look.
    own: RefCell<BTreeMap<PathBuf, Rc<OwnedFd>>>,
}

impl Ground {
    pub(super) fn new(grants: Vec<Granted>) -> io::Result<Self> {
        let (memory, root) = ground(&grants)?;
        let mut own = BTreeMap::new();
        if grants.first().is_none_or(|granted| granted.real != Path::new("/")) {
            own.insert(PathBuf::from("/"), Rc::new(root.try_clone()?));
        }
        Ok(Self { memory, root, grants, own: RefCell::new(own) })
    }

    /// A copy of a new directory of the memory file system, writable by the cell.
    pub(super) fn memory_directory(&self, name: &str, ids: Option<Ids>) -> io::Result<OwnedFd> {
        mkdirat(&self.memory, name, Mode::from_raw_mode(0o700))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(&self.memory, name, flags, Mode::empty())?;
        let mode = if ids.is_some() { 0o700 } else { 0o1777 };
        fchmod(&directory, Mode::from_raw_mode(mode))?;
        if let Some((uid, gid)) = ids.map(Ids::owner) {
            rustix::fs::fchown(&directory, Some(uid), Some(gid))?;
        }
        let flags = attributes(GrantAccess::ReadWriteExecute);
        copy_tree(&self.memory, Path::new(name), flags, false)
    }

    /// Attaches a tree at a path of the new root, making what is missing on the way.
    pub(super) fn attach(&self, tree: &OwnedFd, path: &Path, directory: bool) -> io::Result<()> {
        let own = path.parent().and_then(|parent| self.own_directory(parent));
        let attached = match own.zip(path.file_name()) {
            Some((parent, name)) => {
                match make(&*parent, Path::new(name), directory) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
                move_mount(tree, "", &*parent, name, flags).map_err(io::Error::from)
            }
            None => attach(tree, self.place(path, directory)?),
        };
        // What was opened there before lies under the tree now.
        self.own.borrow_mut().retain(|own, _| !own.starts_with(path));
        attached
    }

    /// Notes that what was attached at `path` is this process's alone, too.
    pub(super) fn keep_own(&self, path: &Path, tree: OwnedFd) {
        self.own.borrow_mut().insert(path.to_owned(), Rc::new(tree));
    }

    /// Opens a directory that is this process's alone, making it and those above; `None` where
    /// something else is there already.
    pub(super) fn own_directory(&self, path: &Path) -> Option<Rc<OwnedFd>> {
        if let Some(own) = self.own.borrow().get(path) {
            return Some(Rc::clone(own));
        }
        let name = Path::new(path.file_name()?);
        let parent = self.own_directory(path.parent()?)?;
        make(&*parent, name, true).ok()?;
        let made = Rc::new(self.open_place(&parent, name).ok()?);
        self.own.borrow_mut().insert(path.to_owned(), Rc::clone(&made));
        Some(made)
    }

    /// Opens a directory of the new root, making what is missing on the way.
    pub(super) fn directory(&self, path: &Path) -> io::Result<Rc<OwnedFd>> {
        match self.own_directory(path) {
            Some(own) => Ok(own),
            None => self.place(path, true).map(Rc::new),
        }
    }

    /// Opens a place in the new root, making what is missing on the way. No link is followed.
    fn place(&self, path: &Path, directory: bool) -> io::Result<OwnedFd> {
        let relative = beneath_root(path);
        match self.open_place(&self.root, relative) {
            Err(Errno::NOENT) => self.make_place(relative, directory),
            other => Ok(other?),
        }
    }

    fn open_place(&self, from: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        openat2(from, path, flags, Mode::empty(), resolve)
    }

    fn make_place(&self, relative: &Path, directory: bool) -> io::Result<OwnedFd> {
        let mut at = self.open_place(&self.root, Path::new("."))?;
        let mut names = relative.components().peekable();
        while let Some(Component::Normal(name)) = names.next() {
            let last = names.peek().is_none();
            let name = Path::new(name);
            let opened = match self.open_place(&at, name) {
                Err(Errno::NOENT) => match make(&at, name, !last || directory) {
                    // Another cell with the same private directory was first.
                    Ok(()) | Err(Errno::EXIST) => self.open_place(&at, name),
                    Err(error) => Err(error),
                },
                other => other,
            };
            at = opened?;
        }
        Ok(at)
    }
}

/// Mounts the memory file system over the old root, and the new root in it.
fn ground(grants: &[Granted]) -> io::Result<(OwnedFd, OwnedFd)> {
    let bounds =
        [("size", MEMORY_FILES_BYTES), ("nr_inodes", MEMORY_FILES_NAMES), ("mode", "0755")];
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let memory = new_file_system("tmpfs", &bounds, flags)?;
    let whole = grants.iter().find(|granted| granted.real == Path::new("/"));
    let whole = whole
        .map(|granted| copy_tree(&granted.node, Path::new(""), attributes(granted.access), true))
        .transpose()?;
    move_mount(&memory, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    mkdirat(&memory, "root", Mode::from_raw_mode(0o755))?;
    let root = match whole {
        Some(root) => root,
        None => copy_tree(&memory, Path::new("root"), MountAttrFlags::empty(), false)?,
    };
    move_mount(&root, "", &memory, "root", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok((memory, root))
}

/// Makes a place for a mount: an empty directory or file.
pub(super) fn make(parent: impl AsFd, name: &Path, directory: bool) -> rustix::io::Result<()> {
    if directory {
        mkdirat(parent, name, Mode::from_raw_mode(0o755))
    } else {
        mknodat(parent, name, FileType::RegularFile, Mode::from_raw_mode(0o444), 0)
    }
}

/// An absolute path from the root.
fn beneath_root(path: &Path) -> &Path {
    match path.strip_prefix("/") {
        Ok(relative) if !relative.as_os_str().is_empty() => relative,
        Ok(_) => Path::new("."),
        Err(_) => path,
    }
}
