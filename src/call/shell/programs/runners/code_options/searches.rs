//! Searchers, database clients, terminals and builtins that take code: which of their options carry code. Data only.

use crate::call::shell::programs::runners::{BARE, Code, Inner, Runner, options};

pub(super) static SEARCHES: &[Runner] = &[
    Runner {
        names: &["hyperfine"],
        options: options(
            "w:m:M:r:s:p:c:n:S:iN",
            &[
                "setup=",
                "prepare=",
                "cleanup=",
                "conclude=",
                "shell=",
                "warmup=",
                "min-runs=",
                "max-runs=",
                "runs=",
                "command-name=",
            ],
        ),
        code: &[
            ("-s", Code::Shell),
            ("--setup", Code::Shell),
            ("-p", Code::Shell),
            ("--prepare", Code::Shell),
            ("-c", Code::Shell),
            ("--cleanup", Code::Shell),
        ],
        inner: Inner::Shell(0),
        ..BARE
    },
    Runner {
        names: &["fd", "fdfind"],
        options: options(
            "t:e:E:d:S:o:c:j:x:X:HIsipgauLl0",
            &[
                "exec=",
                "exec-batch=",
                "type=",
                "extension=",
                "exclude=",
                "max-depth=",
                "min-depth=",
            ],
        ),
        code: &[
            ("-x", Code::Shell),
            ("--exec", Code::Shell),
            ("-X", Code::Shell),
            ("--exec-batch", Code::Shell),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["fzf"],
        options: options("q:d:n:", &["preview=", "bind=", "query="]),
        code: &[("--preview", Code::Shell), ("--bind", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["psql"],
        options: options(
            "c:f:d:h:p:U:v:",
            &["command=", "file=", "dbname=", "host=", "port=", "username="],
        ),
        code: &[("-c", Code::Foreign), ("--command", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["mysql", "mariadb"],
        options: options(
            "e:h:P:u:D:p::",
            &["execute=", "host=", "port=", "user=", "database=", "pager?"],
        ),
        code: &[("-e", Code::Foreign), ("--execute", Code::Foreign), ("--pager", Code::Shell)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["screen", "tmux", "crontab", "at", "batch", "expect", "socat", "systemctl"],
        options: options("", &[]),
        code: &[],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["mapfile", "readarray"],
        options: options("tC:c:d:n:O:s:u:", &[]),
        code: &[("-C", Code::Shell)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["compgen", "complete"],
        options: options("abcdefgjksuvC:F:W:A:G:o:P:S:X:prDEI", &[]),
        code: &[("-C", Code::Shell), ("-F", Code::Foreign), ("-W", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
];
