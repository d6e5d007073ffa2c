//! The reviewed list of system calls: one row for one reason. What the rules mean stands in `rules`.
//!
//! Numbers come from libc; the few that it does not name carry their number, which is the same on
//! every architecture from 424 on. A call that is in no row is absent (ENOSYS): obsolete calls, and
//! those newer than the last review.

use super::Layer;
use super::rules::{NEW_NAMESPACE, NEW_TIME_NAMESPACE, Rule};

/// A system call: its name, and its number on this architecture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) number: u32,
}

/// Calls that share a rule, and why they have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) rule: Rule,
    pub(super) reason: &'static str,
    pub(super) calls: &'static [Call],
}

/// A row whose numbers libc knows.
macro_rules! row {
    ($rule:expr, $reason:literal, [$($name:ident),+ $(,)?]) => {
        Row {
            rule: $rule,
            reason: $reason,
            calls: &[$(Call { name: stringify!($name), number: number(libc::$name) }),+],
        }
    };
}

/// A row of one call that libc does not name on every architecture.
macro_rules! numbered {
    ($rule:expr, $reason:literal, $name:literal, $number:literal) => {
        Row { rule: $rule, reason: $reason, calls: &[Call { name: $name, number: $number }] }
    };
}

/// Every row for this architecture.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    [FILES, METADATA, MEMORY, PROCESSES, SIGNALS, SOCKETS, SHARED, REFUSED, NEWER, NATIVE]
        .into_iter()
        .flatten()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "call numbers are small and positive; libc declares them as C long"
)]
const fn number(of: libc::c_long) -> u32 {
    of as u32
}

const FILES: &[Row] = &[
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

const METADATA: &[Row] = &[
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

const MEMORY: &[Row] = &[
    row!(
        Rule::Allow,
        "the caller's own address space",
        [
            SYS_brk,
            SYS_mmap,
            SYS_munmap,
            SYS_mprotect,
            SYS_mremap,
            SYS_msync,
            SYS_madvise,
            SYS_mincore,
            SYS_mlock,
            SYS_mlock2,
            SYS_mlockall,
            SYS_munlock,
            SYS_munlockall,
            SYS_remap_file_pages,
            SYS_pkey_alloc,
            SYS_pkey_free,
            SYS_pkey_mprotect,
            SYS_mseal,
            SYS_membarrier,
            SYS_memfd_create,
        ]
    ),
    row!(
        Rule::Allow,
        "memory placement of the caller itself, for numeric libraries",
        [SYS_get_mempolicy, SYS_set_mempolicy, SYS_set_mempolicy_home_node, SYS_mbind]
    ),
    row!(Rule::OwnProcess(0), "memory placement, by process number", [SYS_move_pages]),
    numbered!(Rule::Allow, "maps a shadow stack for the caller", "map_shadow_stack", 453),
    numbered!(Rule::Allow, "asks which pages of an open file are cached", "cachestat", 451),
];

const PROCESSES: &[Row] = &[
    row!(Rule::NoNewNamespace(NEW_NAMESPACE), "processes and threads", [SYS_clone]),
    row!(
        Rule::NoNewNamespace(NEW_NAMESPACE | NEW_TIME_NAMESPACE),
        "a new namespace gives capabilities inside it; the other uses are harmless",
        [SYS_unshare]
    ),
    row!(
        Rule::Absent,
        "its flags lie in memory; ENOSYS makes C libraries fall back to clone",
        [SYS_clone3]
    ),
    row!(
        Rule::Execute,
        "programs of the view; Landlock judges the path",
        [SYS_execve, SYS_execveat]
    ),
    row!(
        Rule::Allow,
        "ends and waits for own processes",
        [SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_pidfd_open]
    ),
    row!(
        Rule::Allow,
        "groups and sessions of own processes",
        [SYS_setpgid, SYS_getpgid, SYS_setsid, SYS_getsid]
    ),
    row!(
        Rule::Allow,
        "identity; without capabilities the kernel lets a caller choose among its own ids only",
        [
            SYS_getpid,
            SYS_getppid,
            SYS_gettid,
            SYS_getuid,
            SYS_geteuid,
            SYS_getgid,
            SYS_getegid,
            SYS_getresuid,
            SYS_getresgid,
            SYS_getgroups,
            SYS_setuid,
            SYS_setgid,
            SYS_setreuid,
            SYS_setregid,
            SYS_setresuid,
            SYS_setresgid,
            SYS_setfsuid,
            SYS_setfsgid,
            SYS_setgroups,
            SYS_capget,
            SYS_capset,
        ]
    ),
    row!(
        Rule::Allow,
        "threads: locks, their start and their end",
        [
            SYS_futex,
            SYS_futex_waitv,
            SYS_set_tid_address,
            SYS_set_robust_list,
            SYS_rseq,
            SYS_sched_yield,
            SYS_restart_syscall,
        ]
    ),
    numbered!(Rule::Allow, "wakes a thread", "futex_wake", 454),
    numbered!(Rule::Allow, "waits for a thread", "futex_wait", 455),
    numbered!(Rule::Allow, "moves waiting threads to another lock", "futex_requeue", 456),
    row!(
        Rule::OwnProcess(0),
        "limits, placement and scheduling of any process of the same user",
        [
            SYS_prlimit64,
            SYS_sched_setaffinity,
            SYS_sched_setattr,
            SYS_sched_setparam,
            SYS_sched_setscheduler,
            SYS_get_robust_list,
        ]
    ),
    row!(
        Rule::OwnPriority([0, 1]),
        "priority of any process of the same user; PRIO_USER means all of them",
        [SYS_setpriority]
    ),
    row!(
        Rule::OwnPriority([1, 2]),
        "disk priority of any process of the same user; IOPRIO_WHO_USER means all of them",
        [SYS_ioprio_set]
    ),
    row!(
        Rule::Allow,
        "asks about scheduling; changes nothing",
        [
            SYS_getcpu,
            SYS_getpriority,
            SYS_ioprio_get,
            SYS_sched_getaffinity,
            SYS_sched_getattr,
            SYS_sched_getparam,
            SYS_sched_getscheduler,
            SYS_sched_get_priority_max,
            SYS_sched_get_priority_min,
            SYS_sched_rr_get_interval,
        ]
    ),
    row!(
        Rule::Allow,
        "a process may confine itself further",
        [
            SYS_prctl,
            SYS_seccomp,
            SYS_landlock_create_ruleset,
            SYS_landlock_add_rule,
            SYS_landlock_restrict_self,
        ]
    ),
    row!(
        Rule::Personality,
        "old execution domains weaken memory protection; asking is harmless",
        [SYS_personality]
    ),
    row!(
        Rule::Allow,
        "clocks, timers and resource use of the caller",
        [
            SYS_clock_gettime,
            SYS_clock_getres,
            SYS_clock_nanosleep,
            SYS_nanosleep,
            SYS_gettimeofday,
            SYS_getitimer,
            SYS_setitimer,
            SYS_timer_create,
            SYS_timer_delete,
            SYS_timer_getoverrun,
            SYS_timer_gettime,
            SYS_timer_settime,
            SYS_times,
            SYS_getrusage,
        ]
    ),
    row!(
        Rule::Allow,
        "facts about the machine, and random bytes",
        [SYS_uname, SYS_sysinfo, SYS_getrandom]
    ),
];

const SIGNALS: &[Row] = &[
    row!(
        Rule::Allow,
        "the caller's own handling of signals",
        [
            SYS_rt_sigaction,
            SYS_rt_sigpending,
            SYS_rt_sigprocmask,
            SYS_rt_sigreturn,
            SYS_rt_sigsuspend,
            SYS_rt_sigtimedwait,
            SYS_sigaltstack,
        ]
    ),
    row!(Rule::Kill, "reaches any process of the same user", [SYS_kill]),
    row!(
        Rule::Signal,
        "reaches any process of the same user",
        [SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal,]
    ),
];

const SOCKETS: &[Row] = &[
    row!(Rule::Socket, "every way out of the cell begins here", [SYS_socket]),
    row!(Rule::SocketPair, "a datagram pair can send to other sockets", [SYS_socketpair]),
    row!(
        Rule::Allow,
        "works on sockets that the cell could make",
        [
            SYS_bind,
            SYS_listen,
            SYS_accept,
            SYS_accept4,
            SYS_connect,
            SYS_shutdown,
            SYS_getsockname,
            SYS_getpeername,
            SYS_getsockopt,
            SYS_setsockopt,
            SYS_sendto,
            SYS_sendmsg,
            SYS_sendmmsg,
            SYS_recvfrom,
            SYS_recvmsg,
            SYS_recvmmsg,
        ]
    ),
];

const SHARED: &[Row] = &[
    row!(
        Rule::Needs(Layer::IpcNamespace),
        "System V memory, queues and semaphores are shared by all processes of a namespace",
        [
            SYS_shmget,
            SYS_shmat,
            SYS_shmdt,
            SYS_shmctl,
            SYS_msgget,
            SYS_msgsnd,
            SYS_msgrcv,
            SYS_msgctl,
            SYS_semget,
            SYS_semop,
            SYS_semtimedop,
            SYS_semctl,
        ]
    ),
    row!(
        Rule::Needs(Layer::IpcNamespace),
        "message queues have names of their own that no path rule sees",
        [
            SYS_mq_open,
            SYS_mq_unlink,
            SYS_mq_timedsend,
            SYS_mq_timedreceive,
            SYS_mq_notify,
            SYS_mq_getsetattr,
        ]
    ),
    row!(
        Rule::Refuse,
        "keyrings are shared by all processes of a user",
        [SYS_add_key, SYS_request_key, SYS_keyctl]
    ),
];

const REFUSED: &[Row] = &[
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
const NEWER: &[Row] = &[
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

/// Older forms that this architecture still has.
#[cfg(target_arch = "x86_64")]
const NATIVE: &[Row] = &[
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
const NATIVE: &[Row] = &[
    numbered!(Rule::Allow, "as renameat2", "renameat", 38),
    numbered!(Rule::Allow, "as fdatasync for a range", "sync_file_range", 84),
    numbered!(Rule::Allow, "limits of the caller itself", "getrlimit", 163),
    numbered!(Rule::Allow, "limits of the caller itself", "setrlimit", 164),
    numbered!(Rule::Allow, "as io_getevents", "io_pgetevents", 292),
    numbered!(Rule::Refuse, "starts another kernel", "kexec_file_load", 294),
];
