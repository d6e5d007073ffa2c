//! Trees of mounts before they are part of anything: copied, restricted, and attached where they are
//! to be seen. What is shown where is decided in `view`.

use super::super::spec::GrantAccess;
use super::super::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use std::io;
use std::path::Path;

/// A mount's attributes for an access. Set-user-id programs and devices never work.
pub(super) fn attributes(access: GrantAccess) -> MountAttrFlags {
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

/// A new file system, detached.
pub(super) fn new_file_system(
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
