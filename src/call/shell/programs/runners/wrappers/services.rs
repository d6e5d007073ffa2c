//! Programs that start a command as a service, for a session or with bounds: used by few, and able to run
//! anything. Data only.

use crate::call::shell::programs::runners::{BARE, Code, Inner, Runner, options};

pub(super) static SERVICES: &[Runner] = &[
    Runner { names: &["choom"], options: options("n:p:", &["adjust=", "pid="]), ..BARE },
    Runner { names: &["chronic"], options: options("ev", &[]), ..BARE },
    Runner { names: &["ifne"], options: options("n", &[]), ..BARE },
    Runner { names: &["cgexec"], options: options("g:", &["sticky"]), ..BARE },
    Runner {
        names: &["aa-exec"],
        options: options("p:n:idv", &["profile=", "namespace=", "immediate", "debug", "verbose"]),
        ..BARE
    },
    Runner { names: &["s6-setuidgid", "envdir"], inner: Inner::Words(1), ..BARE },
    Runner { names: &["setlock"], options: options("nNxX", &[]), inner: Inner::Words(1), ..BARE },
    Runner {
        names: &["softlimit", "s6-softlimit"],
        options: options("a:c:d:f:l:m:o:p:r:s:t:", &[]),
        ..BARE
    },
    Runner {
        names: &["chpst"],
        options: options("u:U:b:e:/:C:n:l:L:m:d:o:p:f:c:r:t:vP012", &[]),
        ..BARE
    },
    Runner {
        names: &["faketime"],
        options: options("mp:f", &["exclude-monotonic"]),
        inner: Inner::Words(1),
        ..BARE
    },
    Runner {
        names: &["systemd-cat"],
        options: options(
            "t:p:",
            &["identifier=", "priority=", "stderr-priority=", "level-prefix="],
        ),
        ..BARE
    },
    Runner {
        names: &["systemd-inhibit"],
        options: options("", &["what=", "who=", "why=", "mode=", "list", "no-pager"]),
        ..BARE
    },
    Runner {
        names: &["gpg-agent"],
        options: options(
            "qvs",
            &[
                "daemon",
                "sh",
                "csh",
                "homedir=",
                "enable-ssh-support",
                "quiet",
                "verbose",
                "options=",
            ],
        ),
        ..BARE
    },
    Runner {
        names: &["perf"],
        options: options(
            "e:o:F:c:p:t:C:r:G:D:I:aABdghiklmnqsuvzNR",
            &[
                "event=",
                "output=",
                "call-graph=",
                "freq=",
                "count=",
                "pid=",
                "tid=",
                "repeat=",
                "quiet",
                "verbose",
                "all-cpus",
                "no-inherit",
                "delay=",
                "detailed",
                "interval-print=",
            ],
        ),
        inner: Inner::After(&["stat", "record", "trace", "mem", "c2c", "kvm", "lock", "sched"]),
        ..BARE
    },
    Runner {
        names: &["conda", "mamba", "micromamba"],
        options: options(
            "n:p:v",
            &["name=", "prefix=", "no-capture-output", "live-stream", "cwd=", "verbose"],
        ),
        inner: Inner::After(&["run"]),
        ..BARE
    },
    Runner { names: &["direnv"], inner: Inner::Words(2), ..BARE },
    Runner {
        names: &["mosh"],
        options: options(
            "46ap:n:",
            &["client=", "server=", "ssh=", "predict=", "port=", "family=", "no-init", "local"],
        ),
        code: &[("--server", Code::Shell), ("--ssh", Code::Shell), ("--client", Code::Shell)],
        inner: Inner::Shell(1),
        remote: true,
        ..BARE
    },
    // Whose options are too many, or place the command in more than one way.
    Runner {
        names: &[
            "alacritty",
            "bwrap",
            "capsh",
            "daemonize",
            "dotenv",
            "fakechroot",
            "firejail",
            "gnome-terminal",
            "heaptrack",
            "kitty",
            "konsole",
            "nodemon",
            "pipexec",
            "proot",
            "rlwrap",
            "rr",
            "runcon",
            "schroot",
            "start-stop-daemon",
            "uftrace",
            "xterm",
        ],
        inner: Inner::Unclear,
        ..BARE
    },
];
