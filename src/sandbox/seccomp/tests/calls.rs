//! What single calls answer: those that programs need, the doors that stay shut, and those whose answer
//! depends on the layers that hold besides the filter.

use super::*;

#[test]
fn what_programs_need_is_allowed() {
    for name in [
        "read",
        "write",
        "openat",
        "close_range",
        "faccessat2",
        "statx",
        "copy_file_range",
        "mmap",
        "mprotect",
        "memfd_create",
        "futex",
        "futex_waitv",
        "rseq",
        "membarrier",
        "clone",
        "execve",
        "wait4",
        "waitid",
        "pidfd_open",
        "epoll_pwait2",
        "getrandom",
        "prctl",
        "set_robust_list",
        "landlock_create_ruleset",
        "landlock_restrict_self",
        "seccomp",
        "mseal",
        "map_shadow_stack",
        "cachestat",
        "fchmodat2",
        "sched_getaffinity",
        "tgkill",
        "kill",
        "timer_create",
        "bind",
        "sigaltstack",
        "shmget",
        "semop",
        "inotify_init1",
        "utimensat",
        "fchownat",
        "setxattr",
        "getxattr",
        "statfs",
        "flock",
        "setsid",
        "setuid",
        "getcpu",
        "sysinfo",
        "io_submit",
    ] {
        assert_eq!(ask(&full(), name, &[0; 6]), ALLOWED, "{name}");
    }
}

#[test]
fn second_doors_are_shut_under_every_spec() {
    let refused = [
        "mount",
        "umount2",
        "pivot_root",
        "chroot",
        "open_tree",
        "move_mount",
        "fsopen",
        "fsconfig",
        "fsmount",
        "fspick",
        "mount_setattr",
        "setns",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "process_madvise",
        "kcmp",
        "pidfd_getfd",
        "migrate_pages",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "kexec_file_load",
        "keyctl",
        "add_key",
        "request_key",
        "quotactl",
        "swapon",
        "swapoff",
        "reboot",
        "acct",
        "settimeofday",
        "clock_settime",
        "clock_adjtime",
        "adjtimex",
        "syslog",
        "lookup_dcookie",
        "vhangup",
        "name_to_handle_at",
        "open_by_handle_at",
        "fanotify_init",
        "fanotify_mark",
        "sethostname",
        "setdomainname",
        "quotactl_fd",
    ];
    let absent = ["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"];
    for spec in every_spec() {
        let filter = build(&spec).unwrap();
        for name in refused {
            assert_eq!(run(&filter, ARCHITECTURE, call(name), [0; 6]).ruling, DENIED, "{name}");
        }
        for name in absent {
            assert_eq!(run(&filter, ARCHITECTURE, call(name), [0; 6]).ruling, MISSING, "{name}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn hardware_and_old_memory_are_refused() {
    for name in ["ioperm", "iopl", "modify_ldt", "uselib"] {
        assert_eq!(ask(&full(), name, &[0; 6]), DENIED, "{name}");
    }
}

#[test]
fn no_flag_makes_a_namespace() {
    const SIGCHLD: u64 = 17;
    for bit in 0..32_u32 {
        let flag = 1_u64 << bit;
        let makes = super::rules::NEW_NAMESPACE & (1 << bit) != 0;
        let clone = if makes { DENIED } else { ALLOWED };
        let unshare = if makes || flag == 0x80 { DENIED } else { ALLOWED };
        assert_eq!(ask(&full(), "clone", &[flag | SIGCHLD]), clone, "{flag:#x}");
        assert_eq!(ask(&full(), "clone", &[flag | 1 << 40]), clone, "{flag:#x} and a high bit");
        assert_eq!(ask(&full(), "unshare", &[flag]), unshare, "{flag:#x}");
    }
    assert_eq!(ask(&full(), "clone", &[0x003d_0f00]), ALLOWED, "flags of pthread_create");
}

#[test]
fn other_processes_are_out_of_reach_without_a_process_namespace() {
    let own = spec(ProgramKind::Foreign, false, &[Layer::PidNamespace]);
    for name in [
        "prlimit64",
        "sched_setaffinity",
        "sched_setattr",
        "sched_setparam",
        "sched_setscheduler",
        "get_robust_list",
        "move_pages",
    ] {
        assert_eq!(ask(&bare(), name, &[0, 1]), ALLOWED, "{name}");
        assert_eq!(ask(&bare(), name, &[1 << 32, 1]), ALLOWED, "{name}: the kernel sees 32 bits");
        assert_eq!(ask(&bare(), name, &[1, 0]), DENIED, "{name}");
        assert_eq!(ask(&own, name, &[1, 0]), ALLOWED, "{name}");
    }
    for (name, process, user) in [("setpriority", 0, 2), ("ioprio_set", 1, 3)] {
        assert_eq!(ask(&bare(), name, &[process, 0]), ALLOWED, "{name}");
        assert_eq!(ask(&bare(), name, &[process, 1]), DENIED, "{name}");
        assert_eq!(ask(&bare(), name, &[user, 0]), DENIED, "{name}: all processes of the user");
        assert_eq!(ask(&own, name, &[user, 0]), ALLOWED, "{name}");
    }
}

#[test]
fn signals_need_a_layer_that_keeps_them_inside() {
    let names = ["tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"];
    for layer in [Layer::PidNamespace, Layer::SignalScope] {
        let own = spec(ProgramKind::Foreign, false, &[layer]);
        for name in names.into_iter().chain(["kill"]) {
            assert_eq!(ask(&own, name, &[1, 9]), ALLOWED, "{name} with {layer:?}");
        }
        assert_eq!(ask(&own, "fcntl", &[3, 8]), ALLOWED);
        assert_eq!(ask(&own, "ioctl", &[3, 0x8901]), ALLOWED);
    }
    for name in names {
        assert_eq!(ask(&bare(), name, &[1, 9]), DENIED, "{name}");
    }
    assert_eq!(ask(&bare(), "kill", &[0, 15]), ALLOWED, "the own group");
    for pid in [1, 0xffff_ffff, 0xffff_ffff_ffff_ffff, 4_000] {
        assert_eq!(ask(&bare(), "kill", &[pid, 15]), DENIED, "{pid:#x}");
    }
    for command in [8, 10, 15, 1 << 32 | 8] {
        assert_eq!(ask(&bare(), "fcntl", &[3, command]), DENIED, "{command}");
    }
    assert_eq!(ask(&bare(), "fcntl", &[3, 1030]), ALLOWED, "F_DUPFD_CLOEXEC");
    assert_eq!(ask(&bare(), "ioctl", &[3, 0x8902]), DENIED, "SIOCSPGRP");
}

#[test]
fn terminal_requests_are_refused_whatever_the_high_half_says() {
    for request in [0x5412, 0x541C, 0x5423] {
        for high in [0, 1 << 32, 0xffff_ffff << 32] {
            assert_eq!(ask(&full(), "ioctl", &[0, request | high]), DENIED, "{request:#x}");
        }
    }
    for request in [0x5401, 0x5413, 0x541B, 0x5421, 0x4004_9409] {
        assert_eq!(ask(&full(), "ioctl", &[0, request]), ALLOWED, "{request:#x}");
    }
}

#[test]
fn only_the_plain_personality() {
    for (persona, expected) in [
        (0, ALLOWED),
        (0xffff_ffff, ALLOWED),
        (0x0040_0000, DENIED),
        (0x0040_0000 | 8, DENIED),
        (8, DENIED),
        (0x0010_0000, DENIED),
    ] {
        assert_eq!(ask(&full(), "personality", &[persona]), expected, "{persona:#x}");
    }
}

#[test]
fn no_set_user_id_file_is_made() {
    const CREATE: u64 = libc::O_CREAT as u64;
    const TEMPORARY: u64 = libc::O_TMPFILE as u64;
    for (name, arguments, expected) in [
        ("fchmod", [3, 0o4755, 0, 0], DENIED),
        ("fchmod", [3, 0xffff_0000_0000_4755 | 0o4000, 0, 0], DENIED),
        ("fchmod", [3, 0o2775, 0, 0], ALLOWED),
        ("fchmodat", [3, 0, 0o4755, 0], DENIED),
        ("fchmodat", [3, 0, 0o755, 0], ALLOWED),
        ("fchmodat2", [3, 0, 0o4755, 0], DENIED),
        ("mknodat", [3, 0, 0o104_755, 0], DENIED),
        ("mknodat", [3, 0, 0o010_644, 0], ALLOWED),
        ("openat", [3, 0, CREATE | 1, 0o4755], DENIED),
        ("openat", [3, 0, CREATE | 1, 0o644], ALLOWED),
        ("openat", [3, 0, TEMPORARY | 2, 0o4755], DENIED),
        ("openat", [3, 0, libc::O_DIRECTORY as u64, 0o4755], ALLOWED),
        ("openat", [3, 0, 0, u64::MAX], ALLOWED),
    ] {
        assert_eq!(ask(&full(), name, &arguments), expected, "{name} {arguments:?}");
    }
    assert_eq!(ask(&full(), "openat2", &[0; 4]), MISSING);
    assert_eq!(ask(&spec(ProgramKind::FileJob, false, &[]), "openat2", &[0; 4]), ALLOWED);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn old_forms_are_judged_like_the_new_ones() {
    for (name, arguments, expected) in [
        ("open", [0, 0o101, 0o4755], DENIED),
        ("open", [0, 0, 0o4755], ALLOWED),
        ("creat", [0, 0o4755, 0], DENIED),
        ("creat", [0, 0o644, 0], ALLOWED),
        ("chmod", [0, 0o4755, 0], DENIED),
        ("mknod", [0, 0o104_755, 0], DENIED),
    ] {
        assert_eq!(ask(&full(), name, &arguments), expected, "{name} {arguments:?}");
    }
    for name in ["chmod", "chown", "lchown", "utime", "utimes", "futimesat", "inotify_init"] {
        assert_eq!(ask(&full(), name, &[0; 4]), ALLOWED, "{name}");
        assert_eq!(ask(&bare(), name, &[0; 4]), DENIED, "{name}");
    }
}

#[test]
fn metadata_by_path_needs_the_mount_view() {
    for name in ["fchmodat", "fchmodat2", "fchownat", "inotify_init1", "inotify_add_watch"] {
        assert_eq!(ask(&full(), name, &[0; 5]), ALLOWED, "{name}");
        assert_eq!(ask(&bare(), name, &[0; 5]), DENIED, "{name}");
    }
    for name in ["getxattr", "lgetxattr", "listxattr", "llistxattr", "setxattr", "lremovexattr"] {
        assert_eq!(ask(&bare(), name, &[0; 5]), Ruling::Failed(EOPNOTSUPP), "{name}");
    }
    for name in ["fchmod", "fchown", "fsetxattr", "fgetxattr", "fremovexattr"] {
        assert_eq!(ask(&bare(), name, &[3, 0, 0]), ALLOWED, "{name}");
    }
    for (path, expected) in [(0, ALLOWED), (0x7fff_0000_1000, DENIED), (1 << 32, DENIED)] {
        assert_eq!(ask(&bare(), "utimensat", &[3, path, 0, 0]), expected, "path at {path:#x}");
        assert_eq!(ask(&full(), "utimensat", &[3, path, 0, 0]), ALLOWED);
    }
}

#[test]
fn an_attendant_answers_for_metadata_by_path() {
    let attended = spec(ProgramKind::Foreign, false, &[Layer::MetadataAttendant]);
    for name in ["fchmodat", "fchmodat2", "fchownat"] {
        assert_eq!(ask(&attended, name, &[3, 1, 0o644, 0]), Ruling::Attended, "{name}");
    }
    assert_eq!(ask(&attended, "fchmodat", &[3, 1, 0o4755]), DENIED, "set-user-id");
    assert_eq!(ask(&attended, "utimensat", &[3, 1, 0, 0]), Ruling::Attended);
    assert_eq!(ask(&attended, "utimensat", &[3, 0, 0, 0]), ALLOWED, "on a descriptor");
    assert_eq!(ask(&attended, "setxattr", &[1, 1, 1]), Ruling::Failed(EOPNOTSUPP));
    assert_eq!(ask(&full(), "fchmodat", &[3, 1, 0o644]), ALLOWED, "the mount view judges");
}

#[test]
fn shared_objects_need_an_ipc_namespace() {
    for name in ["shmget", "shmat", "msgget", "msgsnd", "semget", "semtimedop", "mq_open"] {
        assert_eq!(ask(&full(), name, &[0; 5]), ALLOWED, "{name}");
        assert_eq!(ask(&bare(), name, &[0; 5]), DENIED, "{name}");
    }
}

/// Domain, type, protocol; and whether each cell may have it: no namespaces and no network, the
/// host's network without a view, the usual cell.
const SOCKETS: &[(u64, u64, u64, [bool; 3])] = &[
    (1, 1, 0, [false, false, true]),
    (1, 2, 0, [false, false, true]),
    (1, 5, 0, [false, false, true]),
    (2, 1, 0, [false, true, true]),
    (2, 1, 6, [false, true, true]),
    (2, 0x80801, 6, [false, true, true]),
    (2, 2, 17, [false, true, true]),
    (10, 1, 0, [false, true, true]),
    (10, 2, 17, [false, true, true]),
    (10, 2, 0, [false, true, true]),
    (2, 1, 262, [false, false, false]),
    (2, 2, 1, [false, false, false]),
    (2, 1, 132, [false, false, false]),
    (2, 3, 1, [false, false, false]),
    (2, 3, 255, [false, false, false]),
    (2, 5, 132, [false, false, false]),
    (16, 3, 0, [true, true, true]),
    (16, 0x80002, 0, [true, true, true]),
    (16, 3, 15, [false, false, false]),
    (16, 3, 12, [false, false, false]),
    (17, 3, 768, [false, false, false]),
    (38, 5, 0, [false, false, false]),
    (40, 1, 0, [false, false, false]),
    (31, 1, 3, [false, false, false]),
    (44, 2, 0, [false, false, false]),
    (1 << 32 | 2, 1, 0, [false, true, true]),
    (1 << 32 | 17, 3, 768, [false, false, false]),
];

#[test]
fn sockets_follow_the_network_and_the_layers() {
    let host = spec(ProgramKind::Foreign, true, &[]);
    let job = spec(ProgramKind::FileJob, true, &Layer::ALL);
    for (domain, kind, protocol, expected) in SOCKETS {
        for (cell, expected) in [bare(), host.clone(), full()].iter().zip(expected) {
            let answer = ask(cell, "socket", &[*domain, *kind, *protocol]);
            assert_eq!(answer == ALLOWED, *expected, "{domain} {kind} {protocol} in {cell:?}");
        }
        assert_eq!(ask(&job, "socket", &[*domain, *kind, *protocol]), DENIED);
    }
    // Abstract names of the host: reached unless the network or Landlock keeps them apart.
    for (layers, expected) in [
        (&[Layer::MountView][..], DENIED),
        (&[Layer::NetworkNamespace], DENIED),
        (&[Layer::MountView, Layer::AbstractSocketScope], ALLOWED),
        (&[Layer::MountView, Layer::NetworkNamespace], ALLOWED),
    ] {
        let cell = spec(ProgramKind::Foreign, true, layers);
        assert_eq!(ask(&cell, "socket", &[1, 1, 0]), expected, "{layers:?}");
    }
}

#[test]
fn socket_pairs_without_a_view_are_connected_ones() {
    for (kind, expected) in
        [(1, ALLOWED), (0x80001, ALLOWED), (5, ALLOWED), (2, DENIED), (3, DENIED), (0x802, DENIED)]
    {
        assert_eq!(ask(&bare(), "socketpair", &[1, kind, 0]), expected, "{kind:#x}");
        assert_eq!(ask(&full(), "socketpair", &[1, kind, 0]), ALLOWED, "{kind:#x}");
    }
    assert_eq!(ask(&full(), "socketpair", &[2, 1, 0]), DENIED);
    assert_eq!(
        ask(&spec(ProgramKind::FileJob, true, &Layer::ALL), "socketpair", &[1, 1, 0]),
        DENIED
    );
}

#[test]
fn a_file_job_starts_no_program() {
    let job = spec(ProgramKind::FileJob, false, &Layer::ALL);
    assert_eq!(ask(&job, "execve", &[0; 3]), DENIED);
    assert_eq!(ask(&job, "execveat", &[0; 5]), DENIED);
}
