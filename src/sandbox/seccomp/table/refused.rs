//! Calls that no confined program may make, whatever the other layers hold.

use super::{Call, Row, number};
use crate::sandbox::seccomp::rules::Rule;

pub(super) const REFUSED: &[Row] = &[
    row!(
        Rule::Refuse,
        "changes what paths mean",
        [
            SYS_mount,
            SYS_umount2,
            SYS_pivot_root,
            SYS_chroot,
            SYS_open_tree,
            SYS_move_mount,
            SYS_mount_setattr,
            SYS_fsopen,
            SYS_fsconfig,
            SYS_fsmount,
            SYS_fspick,
        ]
    ),
    row!(Rule::Refuse, "enters a namespace of another process", [SYS_setns]),
    row!(
        Rule::Refuse,
        "reads or controls another process",
        [
            SYS_ptrace,
            SYS_process_vm_readv,
            SYS_process_vm_writev,
            SYS_process_madvise,
            SYS_pidfd_getfd,
            SYS_kcmp,
            SYS_migrate_pages,
        ]
    ),
    row!(
        Rule::Refuse,
        "opens a file by number instead of by path",
        [SYS_name_to_handle_at, SYS_open_by_handle_at]
    ),
    row!(
        Rule::Refuse,
        "watches whole file systems, also outside the grants",
        [SYS_fanotify_init, SYS_fanotify_mark]
    ),
    row!(
        Rule::Refuse,
        "runs code in the kernel or holds it at a page fault",
        [
            SYS_bpf,
            SYS_perf_event_open,
            SYS_userfaultfd,
            SYS_init_module,
            SYS_finit_module,
            SYS_delete_module,
            SYS_kexec_load,
        ]
    ),
    row!(
        Rule::Refuse,
        "administers the machine",
        [
            SYS_reboot,
            SYS_swapon,
            SYS_swapoff,
            SYS_acct,
            SYS_quotactl,
            SYS_quotactl_fd,
            SYS_sethostname,
            SYS_setdomainname,
            SYS_settimeofday,
            SYS_clock_settime,
            SYS_adjtimex,
            SYS_clock_adjtime,
            SYS_vhangup,
        ]
    ),
    row!(
        Rule::Refuse,
        "reads the kernel's log or its directory cache",
        [SYS_syslog, SYS_lookup_dcookie]
    ),
    row!(
        Rule::Absent,
        "carries out calls from shared memory, past this filter; libraries fall back",
        [SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register]
    ),
    row!(
        Rule::Absent,
        "memory that no limit of the cell counts; callers fall back to plain memory",
        [SYS_memfd_secret]
    ),
    row!(Rule::Absent, "takes memory from a dying process of others", [SYS_process_mrelease]),
];

/// Calls that came after the last review of libc's list, and how they are judged until then.
pub(super) const NEWER: &[Row] = &[
    numbered!(Rule::Absent, "lists mounts", "statmount", 457),
    numbered!(Rule::Absent, "lists mounts", "listmount", 458),
    numbered!(Rule::Absent, "sets attributes; callers fall back", "setxattrat", 463),
    numbered!(Rule::Absent, "reads attributes; callers fall back", "getxattrat", 464),
    numbered!(Rule::Absent, "reads attributes; callers fall back", "listxattrat", 465),
    numbered!(Rule::Absent, "sets attributes; callers fall back", "removexattrat", 466),
    numbered!(Rule::Absent, "changes what paths mean", "open_tree_attr", 467),
    numbered!(Rule::Absent, "reads file flags by path", "file_getattr", 468),
    numbered!(Rule::Absent, "sets file flags by path", "file_setattr", 469),
];
