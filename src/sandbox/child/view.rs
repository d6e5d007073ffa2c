//! The file tree of a cell, built from the grants alone on an empty file system.
//!
//! Every source is opened in the host's view and copied as a detached mount before anything is
//! attached, so no path is looked up twice. What is not granted is absent, not refused.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::spec::{GrantAccess, SandboxSpec, ScratchFile};
use super::super::sys;
use super::grants::{self, Granted, covering, open_path};
use super::ground::{Ground, make};
use super::landlock::{Rights, Rule};
use super::masks::{self, WatchedName};
use super::numbers;
use super::privileges::Ids;
use super::tree::{attributes, copy_tree, new_file_system};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, StatxFlags, chownat, mkdirat, openat, readlinkat, statx, symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags, mount_change, move_mount,
    unmount,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Devices that every program may use.
pub(super) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
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

impl Ground {
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
            self.keep_own(path, tree);
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
