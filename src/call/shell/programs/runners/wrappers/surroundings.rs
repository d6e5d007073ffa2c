//! Programs that change how a command runs: time, priority, streams, environment. Data only.

use crate::call::shell::programs::runners::{BARE, Code, Inner, Runner, options};

pub(super) static SURROUNDINGS: &[Runner] = &[
    Runner {
        names: &[
            "nohup",
            "eatmydata",
            "fakeroot",
            "tini",
            "dumb-init",
            "catatonit",
            "torsocks",
            "proxychains",
            "proxychains4",
            "setsid-run",
            "busybox",
            "toybox",
            "unbuffer",
            "catchsegv",
        ],
        options: options("cvqp", &["help", "version"]),
        ..BARE
    },
    Runner { names: &["setsid"], options: options("cfw", &["ctty", "fork", "wait"]), ..BARE },
    Runner { names: &["nice"], options: options("n:0123456789", &["adjustment="]), ..BARE },
    Runner {
        names: &["timeout"],
        options: options(
            "s:k:vfp",
            &["signal=", "kill-after=", "preserve-status", "foreground", "verbose"],
        ),
        inner: Inner::Words(1),
        ..BARE
    },
    Runner {
        names: &["stdbuf"],
        options: options("i:o:e:", &["input=", "output=", "error="]),
        ..BARE
    },
    Runner {
        names: &["ionice"],
        options: options(
            "c:n:p:P:u:t",
            &["class=", "classdata=", "ignore", "pid=", "pgid=", "uid="],
        ),
        ..BARE
    },
    Runner {
        names: &["chrt"],
        options: options(
            "abdefimoprRvT:P:D:",
            &[
                "all-tasks",
                "batch",
                "deadline",
                "ext",
                "fifo",
                "idle",
                "max",
                "other",
                "pid",
                "rr",
                "reset-on-fork",
                "sched-runtime=",
                "sched-period=",
                "sched-deadline=",
                "verbose",
            ],
        ),
        inner: Inner::Words(1),
        ..BARE
    },
    Runner {
        names: &["taskset"],
        options: options("acp", &["all-tasks", "cpu-list", "pid"]),
        inner: Inner::Words(1),
        ..BARE
    },
    Runner {
        names: &["time", "gtime"],
        options: options(
            "apqvlf:o:",
            &["append", "format=", "output=", "portability", "quiet", "verbose"],
        ),
        ..BARE
    },
    Runner {
        names: &["env"],
        options: options(
            "0ivu:C:S:a:",
            &[
                "ignore-environment",
                "null",
                "unset=",
                "chdir=",
                "split-string=",
                "block-signal?",
                "default-signal?",
                "ignore-signal?",
                "list-signal-handling",
                "debug",
                "argv0=",
            ],
        ),
        assignments: true,
        ..BARE
    },
    Runner { names: &["exec"], options: options("cla:", &[]), ..BARE },
    Runner { names: &["command"], options: options("pvV", &[]), ..BARE },
    Runner { names: &["builtin"], ..BARE },
    Runner { names: &["jobs"], options: options("lnprs", &[]), inner: Inner::None, ..BARE },
    Runner {
        names: &["flock"],
        options: options(
            "sxeunoFvw:E:c:",
            &[
                "shared",
                "exclusive",
                "unlock",
                "nonblock",
                "nb",
                "timeout=",
                "wait=",
                "close",
                "conflict-exit-code=",
                "no-fork",
                "verbose",
                "command=",
                "fcntl",
            ],
        ),
        code: &[("-c", Code::Shell), ("--command", Code::Shell)],
        inner: Inner::Words(1),
        ..BARE
    },
    Runner {
        names: &["numactl"],
        options: options(
            "ai:p:m:N:C:l",
            &[
                "all",
                "interleave=",
                "preferred=",
                "membind=",
                "cpunodebind=",
                "physcpubind=",
                "localalloc",
            ],
        ),
        ..BARE
    },
    Runner {
        names: &["prlimit"],
        options: options(
            "p:c::d::e::f::i::l::m::n::q::r::s::t::u::v::x::y::",
            &[
                "pid=",
                "nofile?",
                "nproc?",
                "as?",
                "core?",
                "cpu?",
                "data?",
                "fsize?",
                "memlock?",
                "stack?",
                "noheadings",
                "output=",
                "raw",
                "verbose",
            ],
        ),
        ..BARE
    },
    Runner {
        names: &["cpulimit"],
        options: options("l:bqkrivm", &["limit=", "foreground", "include-children"]),
        ..BARE
    },
    Runner {
        names: &["xvfb-run"],
        options: options(
            "ae:f:hln:p:s:w:",
            &[
                "auto-servernum",
                "error-file=",
                "auth-file=",
                "listen-tcp",
                "server-num=",
                "xauth-protocol=",
                "server-args=",
                "wait=",
            ],
        ),
        ..BARE
    },
    Runner {
        names: &["dbus-run-session", "dbus-launch", "ssh-agent"],
        options: options(
            "acskdt:",
            &["config-file=", "dbus-daemon=", "exit-with-session", "sh-syntax"],
        ),
        ..BARE
    },
    Runner {
        names: &["ld.so"],
        options: options(
            "",
            &[
                "list",
                "verify",
                "inhibit-cache",
                "library-path=",
                "inhibit-rpath=",
                "audit=",
                "preload=",
                "argv0=",
                "glibc-hwcaps-prepend=",
                "glibc-hwcaps-mask=",
            ],
        ),
        code: &[("--preload", Code::Foreign), ("--audit", Code::Foreign)],
        ..BARE
    },
    Runner {
        names: &["watch"],
        options: options(
            "bceCd::gn:pq:rtwxs:f",
            &[
                "beep",
                "color",
                "no-color",
                "differences?",
                "errexit",
                "chgexit",
                "equexit=",
                "interval=",
                "precise",
                "no-rerun",
                "no-title",
                "no-wrap",
                "exec",
                "shotsdir=",
                "follow",
            ],
        ),
        inner: Inner::Shell(0),
        ..BARE
    },
    Runner {
        names: &["script"],
        options: options(
            "aqefc:B:E:I:O:T:m:o:t::",
            &[
                "append",
                "command=",
                "quiet",
                "return",
                "flush",
                "force",
                "log-io=",
                "log-in=",
                "log-out=",
                "log-timing=",
                "logging-format=",
                "output-limit=",
                "timing?",
                "echo=",
            ],
        ),
        code: &[("-c", Code::Shell), ("--command", Code::Shell)],
        inner: Inner::Dashes,
        ..BARE
    },
];
