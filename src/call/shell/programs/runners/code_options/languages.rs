//! Editors, debuggers, make and compilers: which of their options carry code. Data only.

use crate::call::shell::programs::runners::{BARE, Code, Inner, Runner, options, single_dash};

pub(super) static LANGUAGES: &[Runner] = &[
    Runner {
        names: &["vim", "vi", "nvim", "ex", "view", "gvim", "vimdiff", "rvim", "elvis"],
        options: options(
            "c:S:s:u:U:i:w:W:T:",
            &["cmd=", "startuptime=", "remote-send=", "remote-expr=", "listen=", "server="],
        ),
        code: &[
            ("-c", Code::Foreign),
            ("--cmd", Code::Foreign),
            ("-S", Code::Foreign),
            ("-s", Code::Foreign),
            ("-u", Code::Foreign),
            ("--remote-send", Code::Foreign),
            ("--remote-expr", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["emacs", "emacsclient"],
        options: options("f:e:l:", &["eval=", "execute=", "funcall=", "load=", "script=", "batch"]),
        code: &[
            ("-f", Code::Foreign),
            ("-e", Code::Foreign),
            ("-l", Code::Foreign),
            ("--eval", Code::Foreign),
            ("--execute", Code::Foreign),
            ("--funcall", Code::Foreign),
            ("--load", Code::Foreign),
            ("--script", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["gdb", "lldb", "rust-gdb", "rust-lldb"],
        options: single_dash(&[
            "args",
            "ex=",
            "iex=",
            "x=",
            "ix=",
            "eval-command=",
            "init-eval-command=",
            "command=",
            "init-command=",
            "o=",
            "O=",
            "S=",
            "s=",
            "b",
            "batch",
            "p=",
            "pid=",
            "q",
            "quiet",
            "nx",
            "n",
            "nh",
        ]),
        code: &[
            ("--ex", Code::Foreign),
            ("--iex", Code::Foreign),
            ("--x", Code::Foreign),
            ("--ix", Code::Foreign),
            ("--eval-command", Code::Foreign),
            ("--init-eval-command", Code::Foreign),
            ("--command", Code::Foreign),
            ("--init-command", Code::Foreign),
            ("--o", Code::Foreign),
            ("--O", Code::Foreign),
            ("--S", Code::Foreign),
            ("--s", Code::Foreign),
        ],
        inner: Inner::Words(0),
        ..BARE
    },
    Runner {
        names: &["make", "gmake"],
        options: options(
            "BbdehikmnpqrRsStvwxC:f:I:j::l::o:W:E:O::",
            &[
                "eval=",
                "file=",
                "makefile=",
                "directory=",
                "jobs?",
                "include-dir=",
                "old-file=",
                "new-file=",
                "what-if=",
            ],
        ),
        code: &[("--eval", Code::Foreign), ("-E", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["gcc", "g++", "cc", "c++", "clang", "clang++", "gfortran"],
        options: single_dash(&[
            "wrapper=", "specs=", "fplugin=", "B=", "o=", "c", "x=", "I=", "L=", "D=", "Xclang=",
            "Xlinker=", "fuse-ld=", "include=",
        ]),
        code: &[
            ("--wrapper", Code::Commas),
            ("--specs", Code::Foreign),
            ("--fplugin", Code::Foreign),
            ("--B", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
];
