//! Granted paths, opened: every path is resolved once, and what was opened is what is granted.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::spec::{Grant, GrantAccess, Network, SandboxSpec};
use super::landlock::{Rights, Rule};
use super::metadata::Places;
use crate::base::paths::normalise;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, readlinkat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A granted path that exists.
#[derive(Debug)]
pub(super) struct Granted {
    /// The path as the spec names it.
    pub(super) given: PathBuf,
    /// The same without any symbolic link.
    pub(super) real: PathBuf,
    /// What was opened.
    pub(super) node: OwnedFd,
    /// Whether it is a directory.
    pub(super) directory: bool,
    /// What may be done below it.
    pub(super) access: GrantAccess,
}

/// Opens a path as a path.
pub(super) fn open_path(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?)
}

/// Whether an opened path is a directory.
pub(super) fn is_directory(node: impl AsFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(node)?.st_mode) == FileType::Directory)
}

/// Opens an absolute path and tells where it really is. Most paths hold no link, so that their text
/// tells it.
pub(super) fn open_resolved(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(node) => Ok((node, normalise(Path::new("/"), path))),
        Err(Errno::LOOP) => {
            let node = open_path(path)?;
            let real = real_path(&node)?;
            Ok((node, real))
        }
        Err(error) => Err(error.into()),
    }
}

/// The path of an opened one, without links.
pub(super) fn real_path(node: &OwnedFd) -> io::Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", node.as_raw_fd());
    let target = readlinkat(CWD, link, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()).into())
}

/// Opens every grant, shortest path first, so that an outer one always precedes an inner one. Two
/// grants of one place are one grant that allows what both allow.
pub(super) fn open_all(grants: &[Grant]) -> Result<Vec<Granted>, SetupFailed> {
    let mut sorted: Vec<&Grant> = grants.iter().collect();
    sorted.sort_by_key(|grant| grant.path.components().count());
    let mut opened: Vec<Granted> = Vec::with_capacity(sorted.len());
    for grant in sorted {
        let place = match open(&grant.path, &opened) {
            Err(error) if grant.optional && is_absent(&error) => continue,
            other => other.about(Step::Grant, || grant.path.display().to_string())?,
        };
        let granted =
            describe(place, grant).about(Step::Grant, || grant.path.display().to_string())?;
        match opened.iter_mut().find(|other| other.real == granted.real) {
            Some(other) => other.access = other.access.union(granted.access),
            None => opened.push(granted),
        }
    }
    opened.sort_by_key(|granted| granted.real.components().count());
    Ok(opened)
}

fn describe((node, real): (OwnedFd, PathBuf), grant: &Grant) -> io::Result<Granted> {
    Ok(Granted {
        given: grant.path.clone(),
        real,
        directory: is_directory(&node)?,
        access: grant.access,
        node,
    })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

/// Opens one path, and tells where it really is. Below a writable grant an earlier call may have put any link, so there the way
/// must not leave that grant.
fn open(path: &Path, outer: &[Granted]) -> io::Result<(OwnedFd, PathBuf)> {
    let below = |granted: &Granted| {
        let rest = path.strip_prefix(&granted.given).or_else(|_| path.strip_prefix(&granted.real));
        rest.ok().filter(|rest| !rest.as_os_str().is_empty()).map(Path::to_owned)
    };
    let writable = outer.iter().rev().filter(|granted| granted.access.writes());
    let Some((granted, rest)) =
        writable.filter_map(|granted| Some((granted, below(granted)?))).next()
    else {
        return open_resolved(path);
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let node = openat2(&granted.node, rest, flags, Mode::empty(), resolve)?;
    let real = real_path(&node)?;
    Ok((node, real))
}

/// The grant that decides about a path: the innermost one that holds it.
pub(super) fn covering<'a>(grants: &'a [Granted], path: &Path) -> Option<&'a Granted> {
    grants.iter().rev().find(|granted| path.starts_with(&granted.real))
}

/// Landlock rules of opened grants.
pub(super) fn rules(grants: Vec<Granted>) -> Vec<Rule> {
    let rule = |granted: Granted| Rule {
        node: granted.node,
        directory: granted.directory,
        rights: Rights::Grant(granted.access),
    };
    grants.into_iter().map(rule).collect()
}

/// Rules where there is no mount view: the grants, the harmless devices, `/proc` and the temporary
/// directory. `/dev/shm` and `/tmp` are shared with the host there and stay out.
pub(super) fn without_view(spec: &SandboxSpec) -> Result<(Vec<Rule>, Places), SetupFailed> {
    let opened = open_all(&spec.grants)?;
    let places = Places::new(&opened, spec.private_tmp.as_deref());
    let mut rules = rules(opened);
    for device in super::view::DEVICES {
        let node =
            open_path(&Path::new("/dev").join(device)).about(Step::Devices, || device.into())?;
        rules.push(Rule { node, directory: false, rights: Rights::Devices });
    }
    let more = [
        (Some(Path::new("/proc")), GrantAccess::ReadOnly),
        (spec.private_tmp.as_deref(), GrantAccess::ReadWriteExecute),
    ];
    for (path, access) in more {
        let Some(path) = path else { continue };
        let node = open_path(path).about(Step::Grant, || path.display().to_string())?;
        rules.push(Rule { node, directory: true, rights: Rights::Grant(access) });
    }
    Ok((rules, places))
}

/// What a cell without a mount view and namespaces does not give.
pub(super) fn lost_without_view(spec: &SandboxSpec) -> Vec<String> {
    let always = ["L2-names-outside-visible", "G7-other-processes-visible"];
    let mut lost: Vec<String> = always.map(str::to_owned).into();
    lost.extend((!spec.masks.is_empty()).then(|| "G4-deny-inside-allow".to_owned()));
    lost.extend((!spec.masks.is_empty()).then(|| "G10-protected-names".to_owned()));
    lost.extend(spec.private_tmp.is_none().then(|| "private-tmp".to_owned()));
    lost.extend((!spec.scratch.is_empty()).then(|| "scratch-directories".to_owned()));
    lost.extend((spec.network == Network::Off).then(|| "network-namespace".to_owned()));
    lost
}
