//! Calls that one architecture has and the other has not.

use super::{Call, Row};
use crate::sandbox::seccomp::rules::Rule;
#[cfg(target_arch = "x86_64")]
use {super::number, crate::sandbox::seccomp::Layer};

/// Older forms that this architecture still has.
#[cfg(target_arch = "x86_64")]
pub(super) const NATIVE: &[Row] = &[
    row!(Rule::Open(1), "as openat", [SYS_open]),
    row!(Rule::Mode(1), "as openat, and always with a mode", [SYS_creat]),
    row!(Rule::Mode(1), "as mknodat", [SYS_mknod]),
    row!(Rule::ModeByPath(1), "as fchmodat", [SYS_chmod]),
    row!(Rule::MetadataByPath, "as fchownat", [SYS_chown, SYS_lchown]),
    row!(Rule::MetadataByPath, "as utimensat by path", [SYS_utime, SYS_utimes, SYS_futimesat]),
    row!(Rule::Needs(Layer::MountView), "as inotify_init1", [SYS_inotify_init]),
    row!(
        Rule::Allow,
        "as the newer forms that take a directory",
        [
            SYS_access,
            SYS_stat,
            SYS_lstat,
            SYS_readlink,
            SYS_mkdir,
            SYS_rmdir,
            SYS_link,
            SYS_symlink,
            SYS_unlink,
            SYS_rename,
            SYS_renameat,
            SYS_getdents,
            SYS_sync_file_range,
        ]
    ),
    row!(
        Rule::Allow,
        "as the newer forms that take flags",
        [
            SYS_dup2,
            SYS_pipe,
            SYS_poll,
            SYS_select,
            SYS_epoll_create,
            SYS_epoll_wait,
            SYS_eventfd,
            SYS_signalfd,
        ]
    ),
    row!(
        Rule::Allow,
        "processes and clocks; limits of the caller itself",
        [
            SYS_fork,
            SYS_vfork,
            SYS_getpgrp,
            SYS_pause,
            SYS_alarm,
            SYS_time,
            SYS_getrlimit,
            SYS_setrlimit,
            SYS_arch_prctl,
        ]
    ),
    numbered!(Rule::Allow, "as io_getevents", "io_pgetevents", 333),
    numbered!(Rule::Refuse, "starts another kernel", "kexec_file_load", 320),
    row!(
        Rule::Refuse,
        "reaches hardware, or old memory segments and libraries",
        [SYS_ioperm, SYS_iopl, SYS_modify_ldt, SYS_uselib]
    ),
];

/// Calls of this architecture that libc does not name.
#[cfg(target_arch = "aarch64")]
pub(super) const NATIVE: &[Row] = &[
    numbered!(Rule::Allow, "as renameat2", "renameat", 38),
    numbered!(Rule::Allow, "as fdatasync for a range", "sync_file_range", 84),
    numbered!(Rule::Allow, "limits of the caller itself", "getrlimit", 163),
    numbered!(Rule::Allow, "limits of the caller itself", "setrlimit", 164),
    numbered!(Rule::Allow, "as io_getevents", "io_pgetevents", 292),
    numbered!(Rule::Refuse, "starts another kernel", "kexec_file_load", 294),
];
