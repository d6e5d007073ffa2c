//! The file tree of a cell, built from the grants alone on an empty file system.
//!
//! Every source is opened in the host's view and copied as a detached mount before anything is
//! attached, so no path is looked up twice. What is not granted is absent, not refused.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::spec::{GrantAccess, SandboxSpec, ScratchFile};
use super::super::sys;
use super::grants::{self, Granted, covering, open_path};
use super::landlock::{Rights, Rule};
use super::masks::{self, WatchedName};
use super::numbers;
use super::privileges::Ids;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, chownat, fchmod, mkdirat,
    mknodat, openat, openat2, readlinkat, statx, symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    mount_change, move_mount, open_tree, unmount,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Devices that every program may use.
pub(super) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Largest content of the file system that holds `/tmp`, `/dev/shm` and scratch directories.
const MEMORY_FILES_BYTES: &str = "2147483648";
/// Most names on it: each takes a kilobyte of the kernel's memory that the size does not count.
const MEMORY_FILES_NAMES: &str = "200000";
/// Links that may be followed while one grant's path is spelled out; the kernel's own bound.
const LINKS_MAX: usize = 40;

/// A built view.
pub(super) struct View {
    /// What Landlock allows in it.
    pub(super) rules: Vec<Rule>,
    /// Names under masks.
    pub(super) masked: u32,
    /// Protected names that do not exist.
    pub(super) watched: Vec<WatchedName>,
}

/// The file system in memory that is under everything, and the cell's root on it.
pub(super) struct Ground {
    memory: OwnedFd,
    root: OwnedFd,
    grants: Vec<Granted>,
    /// Directories in memory that are this process's alone until the program starts, by their path in
    /// the root: what is made in them needs no second look.
    own: RefCell<BTreeMap<PathBuf, Rc<OwnedFd>>>,
}

/// Builds the view and makes it this process's root.
pub(super) fn build(spec: &SandboxSpec) -> Result<View, SetupFailed> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .at(Step::View)?;
    let grants = grants::open_all(&spec.grants)?;
    let sources = sources(&grants)?;
    let tmp = spec.private_tmp.as_deref().map(|path| private_tmp(path, spec)).transpose()?;
    let devices = device_sources()?;
    let ground = Ground::new(grants).at(Step::View)?;
    ground.temporary(tmp).at(Step::View)?;
    ground.scratch(spec).at(Step::View)?;
    ground.granted(sources)?;
    ground.devices(spec, devices).at(Step::Devices)?;
    ground.processes(spec).at(Step::Processes)?;
    ground.enter(spec)
}

/// Makes a file of the spec, new, in an opened scratch directory.
pub(super) fn make_file(directory: impl AsFd, file: &ScratchFile) -> io::Result<OwnedFd> {
    let name = file.path.file_name().unwrap_or_default();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut made = File::from(openat(directory, name, flags, Mode::from_raw_mode(0o644))?);
    made.write_all(file.content.as_bytes())?;
    Ok(made.into())
}

/// A mount's attributes for an access. Set-user-id programs and devices never work.
fn attributes(access: GrantAccess) -> MountAttrFlags {
    let mut flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if !access.writes() {
        flags |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    if !access.executes() {
        flags |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
    }
    flags
}

/// A detached copy of a tree, with attributes.
pub(super) fn copy_tree(
    from: impl AsFd,
    path: &Path,
    flags: MountAttrFlags,
    recursive: bool,
) -> io::Result<OwnedFd> {
    let mut open = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if path.as_os_str().is_empty() {
        open |= OpenTreeFlags::AT_EMPTY_PATH;
    }
    if recursive {
        open |= OpenTreeFlags::AT_RECURSIVE;
    }
    let tree = open_tree(from, path, open)?;
    if !flags.is_empty() {
        sys::mount_setattr(tree.as_fd(), flags.bits().into(), recursive)?;
    }
    Ok(tree)
}

/// Attaches a detached tree on an opened place.
pub(super) fn attach(tree: &OwnedFd, place: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", place, "", flags)?)
}

/// A tree for each grant; `None` where the tree of an outer one shows the same.
fn sources(grants: &[Granted]) -> Result<Vec<Option<OwnedFd>>, SetupFailed> {
    let source = |(number, granted): (usize, &Granted)| {
        if is_shown_already(granted, grants.get(..number).unwrap_or_default()) {
            return Ok(None);
        }
        let mut flags = attributes(granted.access);
        if granted.real.starts_with("/dev") {
            flags &= !MountAttrFlags::MOUNT_ATTR_NODEV;
        }
        copy_tree(&granted.node, Path::new(""), flags, true)
            .map(Some)
            .about(Step::Grant, || granted.real.display().to_string())
    };
    grants.iter().enumerate().map(source).collect()
}

/// Whether a grant lies in one of the `outer` with the same access. Below a writable one it still needs
/// a mount: a name that is a mount point cannot be renamed away.
fn is_shown_already(granted: &Granted, outer: &[Granted]) -> bool {
    !granted.access.writes()
        && !granted.real.starts_with("/dev")
        && covering(outer, &granted.real).is_some_and(|outer| outer.access == granted.access)
}

fn private_tmp(path: &Path, spec: &SandboxSpec) -> Result<OwnedFd, SetupFailed> {
    let subject = || path.display().to_string();
    let node = open_path(path).about(Step::Grant, subject)?;
    if let Some(ids) = Ids::wanted(spec.identity) {
        // The directory is the session's own; whoever works in it has to own it.
        let (uid, gid) = ids.owner();
        chownat(&node, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)
            .about(Step::Grant, subject)?;
    }
    let flags = attributes(GrantAccess::ReadWriteExecute);
    copy_tree(&node, Path::new(""), flags, true).about(Step::Grant, subject)
}

fn device_sources() -> Result<Vec<OwnedFd>, SetupFailed> {
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let source = |name: &&str| {
        copy_tree(CWD, &Path::new("/dev").join(name), flags, false)
            .about(Step::Devices, || (*name).to_owned())
    };
    DEVICES.iter().map(source).collect()
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

fn new_file_system(
    kind: &str,
    options: &[(&str, &str)],
    flags: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

impl Ground {
    fn new(grants: Vec<Granted>) -> io::Result<Self> {
        let (memory, root) = ground(&grants)?;
        let mut own = BTreeMap::new();
        if grants.first().is_none_or(|granted| granted.real != Path::new("/")) {
            own.insert(PathBuf::from("/"), Rc::new(root.try_clone()?));
        }
        Ok(Self { memory, root, grants, own: RefCell::new(own) })
    }

    /// A copy of a new directory of the memory file system, writable by the cell.
    fn memory_directory(&self, name: &str, ids: Option<Ids>) -> io::Result<OwnedFd> {
        mkdirat(&self.memory, name, Mode::from_raw_mode(0o700))?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if ids.is_some() { 0o700 } else { 0o1777 };
        let directory = openat(
            &self.memory,
            name,
            OFlags::RDONLY | OFlags::DIRECTORY | flags & !OFlags::PATH,
            Mode::empty(),
        )?;
        fchmod(&directory, Mode::from_raw_mode(mode))?;
        if let Some((uid, gid)) = ids.map(Ids::owner) {
            rustix::fs::fchown(&directory, Some(uid), Some(gid))?;
        }
        let flags = attributes(GrantAccess::ReadWriteExecute);
        copy_tree(&self.memory, Path::new(name), flags, false)
    }

    /// `/tmp` and `/var/tmp`.
    fn temporary(&self, tmp: Option<OwnedFd>) -> io::Result<()> {
        let tmp = match tmp {
            Some(tmp) => tmp,
            None => self.memory_directory("tmp", None)?,
        };
        let second = copy_tree(&tmp, Path::new(""), MountAttrFlags::empty(), true);
        self.attach(&tmp, Path::new("/tmp"), true)?;
        // A detached tree can be copied by newer kernels alone; an attached one by all.
        let second = match second {
            Ok(second) => second,
            Err(_) => copy_tree(&tmp, Path::new(""), MountAttrFlags::empty(), true)?,
        };
        self.attach(&second, Path::new("/var/tmp"), true)
    }

    fn scratch(&self, spec: &SandboxSpec) -> io::Result<()> {
        for (number, path) in spec.scratch.iter().enumerate() {
            let ids = Ids::wanted(spec.identity).unwrap_or_else(Ids::own);
            let tree = self.memory_directory(&format!("scratch-{number}"), Some(ids))?;
            for file in spec.scratch_files.iter().filter(|file| file.path.parent() == Some(path)) {
                let made = make_file(&tree, file)?;
                let (uid, gid) = ids.owner();
                rustix::fs::fchown(&made, Some(uid), Some(gid))?;
            }
            self.attach(&tree, path, true)?;
            self.own.borrow_mut().insert(path.clone(), Rc::new(tree));
        }
        Ok(())
    }

    fn granted(&self, sources: Vec<Option<OwnedFd>>) -> Result<(), SetupFailed> {
        for (granted, source) in self.grants.iter().zip(sources) {
            let Some(source) = source.filter(|_| granted.real != Path::new("/")) else { continue };
            self.attach(&source, &granted.real, granted.directory)
                .about(Step::Grant, || granted.given.display().to_string())?;
        }
        // After all are in place, so that a link inside a grant is seen to exist.
        for granted in self.grants.iter().filter(|granted| granted.given != granted.real) {
            self.spell_out(granted).about(Step::Grant, || granted.given.display().to_string())?;
        }
        Ok(())
    }

    /// Makes the links that lead from a path as given to where it really is.
    fn spell_out(&self, granted: &Granted) -> io::Result<()> {
        let mut path = granted.given.clone();
        for _ in 0..LINKS_MAX {
            if path == granted.real {
                return Ok(());
            }
            let Some((link, target, rest)) = first_link(&path)? else { return Ok(()) };
            if covering(&self.grants, &link).is_none() {
                let parent = link.parent().unwrap_or(Path::new("/"));
                let place = self.directory(parent)?;
                match symlinkat(&target, &*place, link.file_name().unwrap_or_default()) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let parent = link.parent().unwrap_or(Path::new("/"));
            path = crate::base::paths::normalise(parent, &target).join(rest);
        }
        Err(io::Error::from_raw_os_error(libc::ELOOP))
    }

    /// Attaches a tree at a path of the new root, making what is missing on the way.
    fn attach(&self, tree: &OwnedFd, path: &Path, directory: bool) -> io::Result<()> {
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

    /// Opens a directory that is this process's alone, making it and those above; `None` where
    /// something else is there already.
    fn own_directory(&self, path: &Path) -> Option<Rc<OwnedFd>> {
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
    fn directory(&self, path: &Path) -> io::Result<Rc<OwnedFd>> {
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
                Err(Errno::NOENT) => {
                    match make(&at, name, !last || directory) {
                        // Another cell with the same private directory was first.
                        Ok(()) | Err(Errno::EXIST) => self.open_place(&at, name),
                        Err(error) => Err(error),
                    }
                }
                other => other,
            };
            at = opened?;
        }
        Ok(at)
    }

    /// A device directory with nothing that reaches a terminal or hardware.
    fn devices(&self, spec: &SandboxSpec, sources: Vec<OwnedFd>) -> io::Result<()> {
        if covering(&self.grants, Path::new("/dev")).is_some() {
            // Hide the host's devices behind an empty directory.
            mkdirat(&self.memory, "dev", Mode::from_raw_mode(0o755))?;
            let empty = copy_tree(&self.memory, Path::new("dev"), MountAttrFlags::empty(), false)?;
            self.attach(&empty, Path::new("/dev"), true)?;
        }
        // In memory of our own, where no other process has put anything, names need no second look.
        let directory = self.directory(Path::new("/dev"))?;
        for (name, source) in DEVICES.iter().zip(sources) {
            match make(&*directory, Path::new(name), false) {
                // A grant names this device.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            move_mount(&source, "", &*directory, *name, flags)?;
        }
        let shared = self.memory_directory("shm", None)?;
        self.attach(&shared, Path::new("/dev/shm"), true)?;
        let links = [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ];
        for (name, target) in links {
            symlinkat(target, &*directory, name)?;
        }
        if spec.pseudo_terminals {
            let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0600")];
            let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
            let terminals = new_file_system("devpts", options.get(1..).unwrap_or_default(), flags)?;
            self.attach(&terminals, Path::new("/dev/pts"), true)?;
            symlinkat("pts/ptmx", &*directory, "ptmx")?;
        }
        Ok(())
    }

    /// The cell's own processes alone, and nothing that sets the kernel.
    fn processes(&self, spec: &SandboxSpec) -> io::Result<()> {
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let processes = new_file_system("proc", &[], flags)?;
        numbers::bound(&processes, &spec.limits)?;
        let read_only = MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into();
        sys::mount_setattr(processes.as_fd(), read_only, false)?;
        self.attach(&processes, Path::new("/proc"), true)
    }

    /// Makes the view the root, takes back what masks name, and lets the host's tree go.
    fn enter(self, spec: &SandboxSpec) -> Result<View, SetupFailed> {
        let own_root = self.grants.first().is_none_or(|granted| granted.real != Path::new("/"));
        rustix::process::fchdir(&self.root).at(Step::Root)?;
        rustix::process::pivot_root(".", ".").at(Step::Root)?;
        // The old root now lies over the new one; paths from `/` start below it.
        let masks = masks::apply(&spec.masks, &self.grants, &self.memory)?;
        if own_root {
            sys::mount_setattr(
                self.root.as_fd(),
                MountAttrFlags::MOUNT_ATTR_RDONLY.bits().into(),
                false,
            )
            .at(Step::View)?;
        }
        let_go_of_the_host(&self.root)?;
        let mut rules = own_rules(spec).at(Step::View)?;
        rules.extend(grants::rules(self.grants));
        Ok(View { rules, masked: masks.masked, watched: masks.watched })
    }
}

/// Unmounts what lies over the new root: the memory file system, and below it the host's tree, which
/// `..` at the root would lead into as long as it is there.
fn let_go_of_the_host(root: &OwnedFd) -> Result<(), SetupFailed> {
    for _over in ["memory", "host"] {
        unmount(".", UnmountFlags::DETACH).at(Step::Root)?;
    }
    rustix::process::chdir("/").at(Step::Root)?;
    let mount_of = |place: &OwnedFd| -> io::Result<u64> {
        let flags = AtFlags::EMPTY_PATH;
        Ok(statx(place, "", flags, StatxFlags::MNT_ID)?.stx_mnt_id)
    };
    // A mount that is left would be entered by the walk up, so that is what is looked at.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let above = openat(CWD, "..", flags, Mode::empty()).at(Step::Root)?;
    if mount_of(&above).at(Step::Root)? != mount_of(root).at(Step::Root)? {
        return Err(SetupFailed::because(Step::Root, "a file tree of the host is still over it"));
    }
    Ok(())
}

/// Makes a place for a mount: an empty directory or file.
fn make(parent: impl AsFd, name: &Path, directory: bool) -> rustix::io::Result<()> {
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

/// Rules for what the view adds to the grants.
fn own_rules(spec: &SandboxSpec) -> io::Result<Vec<Rule>> {
    let all = Rights::Grant(GrantAccess::ReadWriteExecute);
    let read = Rights::Grant(GrantAccess::ReadOnly);
    let mut places: Vec<(&Path, Rights)> = [
        ("/", Rights::List),
        ("/dev", Rights::Devices),
        ("/dev/shm", all),
        ("/proc", read),
        ("/tmp", all),
        ("/var/tmp", all),
    ]
    .map(|(path, rights)| (Path::new(path), rights))
    .into();
    places.extend(spec.scratch.iter().map(|path| (path.as_path(), all)));
    places
        .into_iter()
        .map(|(path, rights)| Ok(Rule { node: open_path(path)?, directory: true, rights }))
        .collect()
}

/// The first link on the way of a path: where it is, what it says, what follows it.
fn first_link(path: &Path) -> io::Result<Option<(PathBuf, PathBuf, PathBuf)>> {
    let mut at = PathBuf::from("/");
    let mut names = path.components();
    names.next();
    while let Some(name) = names.next() {
        at.push(name);
        match readlinkat(CWD, &at, Vec::new()) {
            Ok(target) => {
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                return Ok(Some((at, target, names.as_path().to_owned())));
            }
            Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
