//! Calls on memory, processes and signals.

use super::{Call, Row, number};
use crate::sandbox::seccomp::rules::{NEW_NAMESPACE, NEW_TIME_NAMESPACE, Rule};

pub(super) const MEMORY: &[Row] = &[
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

pub(super) const PROCESSES: &[Row] = &[
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

pub(super) const SIGNALS: &[Row] = &[
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
