//! Calls on files and directories, and on what is known about them.

use super::{Call, Row, number};
use crate::sandbox::seccomp::Layer;
use crate::sandbox::seccomp::rules::Rule;

pub(super) const FILES: &[Row] = &[
    row!(
        Rule::Allow,
        "moves bytes through descriptors that are already open",
        [
            SYS_read,
            SYS_write,
            SYS_readv,
            SYS_writev,
            SYS_pread64,
            SYS_pwrite64,
            SYS_preadv,
            SYS_pwritev,
            SYS_preadv2,
            SYS_pwritev2,
            SYS_lseek,
            SYS_sendfile,
            SYS_splice,
            SYS_tee,
            SYS_vmsplice,
            SYS_copy_file_range,
            SYS_readahead,
            SYS_fadvise64,
        ]
    ),
    row!(
        Rule::Allow,
        "changes the size of an open file, or waits until it is on disk",
        [SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync]
    ),
    row!(
        Rule::Allow,
        "makes, copies and closes descriptors",
        [SYS_close, SYS_close_range, SYS_dup, SYS_dup3, SYS_pipe2, SYS_flock]
    ),
    row!(
        Rule::DescriptorControl,
        "flags, locks and copies of descriptors; the owner of one is sent signals",
        [SYS_fcntl]
    ),
    row!(
        Rule::DeviceControl,
        "terminals, sockets and files need it; two requests type into a terminal",
        [SYS_ioctl]
    ),
    row!(
        Rule::Allow,
        "waits for descriptors",
        [
            SYS_epoll_create1,
            SYS_epoll_ctl,
            SYS_epoll_pwait,
            SYS_epoll_pwait2,
            SYS_ppoll,
            SYS_pselect6,
            SYS_eventfd2,
            SYS_signalfd4,
            SYS_timerfd_create,
            SYS_timerfd_gettime,
            SYS_timerfd_settime,
        ]
    ),
    row!(
        Rule::Allow,
        "asynchronous reads and writes on open descriptors, for databases",
        [SYS_io_setup, SYS_io_destroy, SYS_io_submit, SYS_io_cancel, SYS_io_getevents]
    ),
    row!(Rule::Open(2), "the mount view and Landlock judge the path", [SYS_openat]),
    row!(
        Rule::OpenByStructure,
        "its mode lies in memory, so a set-user-id file could be made; callers fall back to openat",
        [SYS_openat2]
    ),
    row!(
        Rule::Allow,
        "names and directories; the mount view and Landlock judge the path",
        [
            SYS_mkdirat,
            SYS_linkat,
            SYS_symlinkat,
            SYS_unlinkat,
            SYS_renameat2,
            SYS_truncate,
            SYS_chdir,
            SYS_fchdir,
            SYS_getcwd,
            SYS_getdents64,
            SYS_umask,
        ]
    ),
    row!(Rule::Mode(2), "makes files and FIFOs, with a mode", [SYS_mknodat]),
    row!(
        Rule::Allow,
        "asks about a path; without a mount view existence stays visible",
        [
            SYS_faccessat,
            SYS_faccessat2,
            SYS_newfstatat,
            SYS_fstat,
            SYS_statx,
            SYS_statfs,
            SYS_fstatfs,
            SYS_readlinkat,
        ]
    ),
    row!(
        Rule::Needs(Layer::MountView),
        "Landlock does not stop watching a path outside the grants",
        [SYS_inotify_init1, SYS_inotify_add_watch, SYS_inotify_rm_watch]
    ),
];

pub(super) const METADATA: &[Row] = &[
    row!(Rule::Mode(1), "the descriptor had to be opened first", [SYS_fchmod]),
    row!(
        Rule::Allow,
        "the descriptor had to be opened first",
        [SYS_fchown, SYS_fsetxattr, SYS_fremovexattr, SYS_fgetxattr, SYS_flistxattr]
    ),
    row!(Rule::ModeByPath(2), "Landlock does not govern modes", [SYS_fchmodat]),
    numbered!(Rule::ModeByPath(2), "Landlock does not govern modes", "fchmodat2", 452),
    row!(Rule::MetadataByPath, "Landlock does not govern owners", [SYS_fchownat]),
    row!(
        Rule::Attributes,
        "Landlock does not govern extended attributes",
        [
            SYS_setxattr,
            SYS_lsetxattr,
            SYS_removexattr,
            SYS_lremovexattr,
            SYS_getxattr,
            SYS_lgetxattr,
            SYS_listxattr,
            SYS_llistxattr,
        ]
    ),
    row!(Rule::Times, "Landlock does not govern times", [SYS_utimensat]),
];
