//! Programs that talk to other machines: which of their options carry code. Data only.

use crate::call::shell::programs::runners::{BARE, Code, Inner, Runner, options};

pub(super) static NETWORK: &[Runner] = &[
    Runner {
        names: &["scp", "sftp"],
        options: options("346ABCOpqrRsTvac:D:F:i:J:l:o:P:S:X:b:", &[]),
        code: &[("-S", Code::Program), ("-F", Code::Foreign), ("-D", Code::Program)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["nc", "ncat", "netcat", "nc.openbsd", "nc.traditional"],
        options: options(
            "46bCDdFhklNnrStUuvZze:c:g:G:i:I:M:m:O:o:P:p:q:s:T:V:w:W:X:x:",
            &["exec=", "sh-exec=", "lua-exec=", "proxy=", "listen"],
        ),
        code: &[
            ("-e", Code::Shell),
            ("-c", Code::Shell),
            ("--exec", Code::Shell),
            ("--sh-exec", Code::Shell),
            ("--lua-exec", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["wget"],
        options: options(
            "O:P:o:a:i:e:U:T:t:w:Q:l:A:R:D:I:X:B:",
            &[
                "output-document=",
                "directory-prefix=",
                "output-file=",
                "execute=",
                "use-askpass=",
                "config=",
                "input-file=",
                "user-agent=",
                "header=",
                "post-file=",
                "post-data=",
                "body-file=",
                "body-data=",
            ],
        ),
        code: &[
            ("-e", Code::Foreign),
            ("--execute", Code::Foreign),
            ("--use-askpass", Code::Program),
            ("--config", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["tcpdump"],
        options: options("z:w:r:i:c:C:G:W:s:F:", &["postrotate-command="]),
        code: &[("-z", Code::Program), ("--postrotate-command", Code::Program)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["nmap"],
        options: options("", &["script=", "script-args=", "datadir="]),
        code: &[("--script", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
];
