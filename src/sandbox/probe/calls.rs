//! System calls that a confined program must not get through, with arguments that make them do
//! nothing even where they are allowed: no descriptor, no process, no memory is named by them.
//!
//! A pointer is null or 1, a descriptor -1, flags are ones that the kernel does not know. So a call
//! that reaches the kernel answers with a complaint about its arguments, and one that the filter
//! stops answers EPERM, ENOSYS or EOPNOTSUPP. Each is tried first outside the cell: that is the control.
//!
//! INVARIANT: no row passes the address of memory, and none changes the machine, also for root.

/// What a call answers inside a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// EPERM.
    Refused,
    /// ENOSYS.
    Absent,
    /// EOPNOTSUPP.
    NotSupported,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Name of the case.
    pub name: &'static str,
    /// What it answers inside.
    pub stopped: Stopped,
    pub(in super::super) number: libc::c_long,
    pub(in super::super) arguments: [i64; 6],
}

const fn refused(name: &'static str, number: libc::c_long, arguments: [i64; 6]) -> Call {
    Call { name, stopped: Stopped::Refused, number, arguments }
}

const fn absent(name: &'static str, number: libc::c_long, arguments: [i64; 6]) -> Call {
    Call { name, stopped: Stopped::Absent, number, arguments }
}

/// No process has this number: it is above the largest that Linux gives.
const NOBODY: i64 = 0x7fff_ffff;
/// A process number, command or flag set that no call knows.
const ODD: i64 = 0x7f7f;
/// libc does not name it on every architecture.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: libc::c_long = 320;
#[cfg(not(target_arch = "x86_64"))]
const KEXEC_FILE_LOAD: libc::c_long = 294;
const NEW_USER: i64 = libc::CLONE_NEWUSER as i64;
const PAGE_FLAGS: i64 = libc::CLONE_FS as i64;

/// The calls that every cell refuses.
pub const CALLS: &[Call] = &[
    refused("mount", libc::SYS_mount, [0; 6]),
    refused("umount2", libc::SYS_umount2, [0; 6]),
    refused("pivot_root", libc::SYS_pivot_root, [0; 6]),
    refused("chroot", libc::SYS_chroot, [0; 6]),
    refused("open_tree", libc::SYS_open_tree, [-1, 0, 0, 0, 0, 0]),
    refused("move_mount", libc::SYS_move_mount, [-1, 1, -1, 1, 0, 0]),
    refused("fsopen", libc::SYS_fsopen, [0; 6]),
    refused("fsconfig", libc::SYS_fsconfig, [-1, 0, 0, 0, 0, 0]),
    refused("fsmount", libc::SYS_fsmount, [-1, 0, 0, 0, 0, 0]),
    refused("fspick", libc::SYS_fspick, [-1, 0, 0, 0, 0, 0]),
    refused("mount_setattr", libc::SYS_mount_setattr, [-1, 0, 0, 0, 0, 0]),
    refused("setns", libc::SYS_setns, [-1, 0, 0, 0, 0, 0]),
    // The kernel refuses this pair of flags, so the control makes no process.
    refused("clone-user-namespace", libc::SYS_clone, [NEW_USER | PAGE_FLAGS, 0, 0, 0, 0, 0]),
    refused("unshare-user-namespace", libc::SYS_unshare, [NEW_USER | 1, 0, 0, 0, 0, 0]),
    refused("unshare-time-namespace", libc::SYS_unshare, [0x81, 0, 0, 0, 0, 0]),
    refused("ptrace", libc::SYS_ptrace, [libc::PTRACE_ATTACH as i64, NOBODY, 0, 0, 0, 0]),
    refused("process_vm_readv", libc::SYS_process_vm_readv, [NOBODY, 0, 0, 0, 0, ODD]),
    refused("process_vm_writev", libc::SYS_process_vm_writev, [NOBODY, 0, 0, 0, 0, ODD]),
    refused("process_madvise", libc::SYS_process_madvise, [-1, 0, 0, 0, 0, 0]),
    refused("pidfd_getfd", libc::SYS_pidfd_getfd, [-1, 0, 0, 0, 0, 0]),
    refused("kcmp", libc::SYS_kcmp, [NOBODY, NOBODY, 0, 0, 0, 0]),
    refused("migrate_pages", libc::SYS_migrate_pages, [NOBODY, 0, 0, 0, 0, 0]),
    refused("name_to_handle_at", libc::SYS_name_to_handle_at, [-1, 0, 0, 0, 0, 0]),
    refused("open_by_handle_at", libc::SYS_open_by_handle_at, [-1, 0, 0, 0, 0, 0]),
    refused("fanotify_init", libc::SYS_fanotify_init, [-1, 0, 0, 0, 0, 0]),
    refused("fanotify_mark", libc::SYS_fanotify_mark, [-1, 1, 0, -1, 0, 0]),
    refused("bpf", libc::SYS_bpf, [ODD, 0, 0, 0, 0, 0]),
    refused("perf_event_open", libc::SYS_perf_event_open, [0, 0, -1, -1, 0, 0]),
    refused("userfaultfd", libc::SYS_userfaultfd, [ODD, 0, 0, 0, 0, 0]),
    refused("init_module", libc::SYS_init_module, [0; 6]),
    refused("finit_module", libc::SYS_finit_module, [-1, 0, 0, 0, 0, 0]),
    refused("delete_module", libc::SYS_delete_module, [0; 6]),
    refused("kexec_file_load", KEXEC_FILE_LOAD, [-1, -1, 0, 0, ODD, 0]),
    refused("kexec_load", libc::SYS_kexec_load, [0, 64, 0, ODD, 0, 0]),
    refused("keyctl", libc::SYS_keyctl, [ODD, 0, 0, 0, 0, 0]),
    refused("keyctl-user-keyring", libc::SYS_keyctl, [0, -4, 1, 0, 0, 0]),
    refused("add_key", libc::SYS_add_key, [0; 6]),
    refused("request_key", libc::SYS_request_key, [0; 6]),
    refused("quotactl", libc::SYS_quotactl, [0xff, 0, 0, 0, 0, 0]),
    refused("quotactl_fd", libc::SYS_quotactl_fd, [-1, 0xff, 0, 0, 0, 0]),
    refused("swapon", libc::SYS_swapon, [0, ODD << 8, 0, 0, 0, 0]),
    refused("swapoff", libc::SYS_swapoff, [0; 6]),
    refused("reboot", libc::SYS_reboot, [0; 6]),
    refused("acct", libc::SYS_acct, [1, 0, 0, 0, 0, 0]),
    refused("settimeofday", libc::SYS_settimeofday, [1, 0, 0, 0, 0, 0]),
    refused("clock_settime", libc::SYS_clock_settime, [1, 0, 0, 0, 0, 0]),
    refused("clock_adjtime", libc::SYS_clock_adjtime, [0; 6]),
    refused("adjtimex", libc::SYS_adjtimex, [0; 6]),
    refused("sethostname", libc::SYS_sethostname, [0, -1, 0, 0, 0, 0]),
    refused("setdomainname", libc::SYS_setdomainname, [0, -1, 0, 0, 0, 0]),
    refused("lookup_dcookie", libc::SYS_lookup_dcookie, [0; 6]),
    refused("syslog", libc::SYS_syslog, [ODD, 0, 0, 0, 0, 0]),
    refused("personality-no-randomisation", libc::SYS_personality, [0x0004_0000, 0, 0, 0, 0, 0]),
    refused("terminal-input", libc::SYS_ioctl, [0, 0x5412, 1, 0, 0, 0]),
    refused("terminal-input-high-bits", libc::SYS_ioctl, [0, 0x1_0000_5412, 1, 0, 0, 0]),
    refused("console-selection", libc::SYS_ioctl, [0, 0x541c, 1, 0, 0, 0]),
    refused("socket-packet", libc::SYS_socket, [libc::AF_PACKET as i64, 3, 0, 0, 0, 0]),
    refused("socket-vsock", libc::SYS_socket, [libc::AF_VSOCK as i64, 1, 0, 0, 0, 0]),
    refused("socket-crypto", libc::SYS_socket, [libc::AF_ALG as i64, 5, 0, 0, 0, 0]),
    refused("socket-raw", libc::SYS_socket, [2, 3, 1, 0, 0, 0]),
    refused("socket-ping", libc::SYS_socket, [2, 2, 1, 0, 0, 0]),
    refused("socket-multipath", libc::SYS_socket, [2, 1, 262, 0, 0, 0]),
    refused("socket-netlink-audit", libc::SYS_socket, [16, 3, 9, 0, 0, 0]),
    refused("socket-netlink-events", libc::SYS_socket, [16, 3, 15, 0, 0, 0]),
    refused("set-user-id", libc::SYS_fchmod, [-1, 0o4755, 0, 0, 0, 0]),
    refused("set-user-id-at-creation", libc::SYS_openat, [-1, 1, 0o101, 0o4755, 0, 0]),
    absent("clone3", libc::SYS_clone3, [0; 6]),
    absent("openat2", libc::SYS_openat2, [-1, 0, 0, 0, 0, 0]),
    absent("io_uring_setup", libc::SYS_io_uring_setup, [0; 6]),
    absent("io_uring_enter", libc::SYS_io_uring_enter, [-1, 0, 0, 0, 0, 0]),
    absent("io_uring_register", libc::SYS_io_uring_register, [-1, 0, 0, 0, 0, 0]),
    absent("memfd_secret", libc::SYS_memfd_secret, [ODD, 0, 0, 0, 0, 0]),
    absent("process_mrelease", libc::SYS_process_mrelease, [-1, 0, 0, 0, 0, 0]),
    // Numbers that libc does not name yet; the same on every architecture.
    absent("statmount", 457, [0; 6]),
    absent("listmount", 458, [0; 6]),
    absent("setxattrat", 463, [-1, 0, ODD, 0, 0, 0]),
    absent("getxattrat", 464, [-1, 0, ODD, 0, 0, 0]),
    absent("listxattrat", 465, [-1, 0, ODD, 0, 0, 0]),
    absent("removexattrat", 466, [-1, 0, ODD, 0, 0, 0]),
    absent("open_tree_attr", 467, [-1, 0, ODD, 0, 0, 0]),
    absent("file_getattr", 468, [-1, 0, 0, 0, ODD, 0]),
    absent("file_setattr", 469, [-1, 0, 0, 0, ODD, 0]),
    absent("unknown-number", 999, [0; 6]),
    #[cfg(target_arch = "x86_64")]
    refused("ioperm", libc::SYS_ioperm, [-1, 2, 0, 0, 0, 0]),
    #[cfg(target_arch = "x86_64")]
    refused("iopl", libc::SYS_iopl, [9, 0, 0, 0, 0, 0]),
    #[cfg(target_arch = "x86_64")]
    refused("modify_ldt", libc::SYS_modify_ldt, [ODD, 0, 0, 0, 0, 0]),
    #[cfg(target_arch = "x86_64")]
    refused("uselib", libc::SYS_uselib, [0; 6]),
    #[cfg(target_arch = "x86_64")]
    absent("x32-getpid", 0x4000_0000 | libc::SYS_getpid, [0; 6]),
];

/// The calls that a cell refuses where it has no mount view, or no namespaces.
pub const CALLS_WITHOUT_NAMESPACES: &[Call] = &[
    refused("shmget", libc::SYS_shmget, [0x5354_4f50, 0, 0, 0, 0, 0]),
    refused("msgget", libc::SYS_msgget, [0x5354_4f50, 0, 0, 0, 0, 0]),
    refused("semget", libc::SYS_semget, [0x5354_4f50, 0, 0, 0, 0, 0]),
    refused("mq_open", libc::SYS_mq_open, [1, 0, 0, 0, 0, 0]),
    refused("prlimit", libc::SYS_prlimit64, [NOBODY, 1, 0, 0, 0, 0]),
    refused("setaffinity", libc::SYS_sched_setaffinity, [NOBODY, 0, 0, 0, 0, 0]),
    refused("setpriority", libc::SYS_setpriority, [0, NOBODY, 0, 0, 0, 0]),
    refused("ioprio_set", libc::SYS_ioprio_set, [1, NOBODY, 0, 0, 0, 0]),
    refused("inotify", libc::SYS_inotify_init1, [ODD, 0, 0, 0, 0, 0]),
    Call {
        name: "setxattr",
        stopped: Stopped::NotSupported,
        number: libc::SYS_setxattr,
        arguments: [0; 6],
    },
    refused("socket-unix", libc::SYS_socket, [1, 1, 0, 0, 0, 0]),
    refused("socket-inet", libc::SYS_socket, [2, 1, 0, 0, 0, 0]),
    refused("socket-inet6", libc::SYS_socket, [10, 2, 0, 0, 0, 0]),
    refused("socketpair-datagram", libc::SYS_socketpair, [1, 2, 0, 1, 0, 0]),
];

/// The call of this name.
#[must_use]
pub(super) fn find(name: &str) -> Option<&'static Call> {
    CALLS.iter().chain(CALLS_WITHOUT_NAMESPACES).find(|call| call.name == name)
}
