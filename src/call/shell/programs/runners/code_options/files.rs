//! Programs over text, files and archives: which of their options carry code. Data only.

use crate::call::shell::programs::runners::{BARE, Code, Inner, Runner, options, single_dash};

pub(super) static FILES: &[Runner] = &[
    Runner {
        names: &["sort"],
        options: options(
            "bdfghiMnRrVcCmsuzk:o:S:t:T:",
            &[
                "compress-program=",
                "output=",
                "key=",
                "buffer-size=",
                "field-separator=",
                "temporary-directory=",
                "files0-from=",
                "batch-size=",
                "parallel=",
                "random-source=",
                "check?",
                "sort=",
            ],
        ),
        code: &[("--compress-program", Code::Program)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["tar", "gtar", "bsdtar"],
        options: options(
            "AcdrtuxjJzZavwklmpOPhSiUWnsGMBoRI:F:f:C:T:X:b:L:K:N:V:H:g:",
            &[
                "use-compress-program=",
                "to-command=",
                "checkpoint-action=",
                "checkpoint?",
                "info-script=",
                "new-volume-script=",
                "rsh-command=",
                "rmt-command=",
                "file=",
                "directory=",
                "files-from=",
                "exclude-from=",
                "exclude=",
                "transform=",
                "xform=",
                "strip-components=",
                "owner=",
                "group=",
                "mode=",
                "mtime=",
                "extract",
                "create",
                "list",
                "gzip",
                "verbose",
                "get",
                "append",
                "update",
            ],
        ),
        code: &[
            ("-I", Code::Shell),
            ("--use-compress-program", Code::Shell),
            ("--to-command", Code::Shell),
            ("--checkpoint-action", Code::ExecPrefix),
            ("-F", Code::Shell),
            ("--info-script", Code::Shell),
            ("--new-volume-script", Code::Shell),
            ("--rsh-command", Code::Program),
            ("--rmt-command", Code::Program),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["cpio"],
        options: options("", &["rsh-command=", "to-stdout"]),
        code: &[("--rsh-command", Code::Program)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["rg"],
        options: options(
            "e:f:g:m:t:T:A:B:C:d:j:M:r:E:",
            &[
                "pre=",
                "pre-glob=",
                "hostname-bin=",
                "regexp=",
                "file=",
                "glob=",
                "type=",
                "max-count=",
                "after-context=",
                "before-context=",
                "context=",
            ],
        ),
        code: &[("--pre", Code::Program), ("--hostname-bin", Code::Program)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["ag", "ack"],
        options: options("", &["pager="]),
        code: &[("--pager", Code::Shell)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["bat", "batcat"],
        options: options("", &["pager="]),
        code: &[("--pager", Code::Shell)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["rsync"],
        options: options(
            "e:f:T:B:M:",
            &["rsh=", "rsync-path=", "exclude=", "include=", "files-from=", "early-input="],
        ),
        code: &[("-e", Code::Shell), ("--rsh", Code::Shell), ("--rsync-path", Code::Shell)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["man"],
        options: options(
            "P:H::p:C:M:s:S:L:E:r:",
            &["pager=", "html?", "config-file=", "preprocessor="],
        ),
        code: &[
            ("-P", Code::Shell),
            ("--pager", Code::Shell),
            ("-H", Code::Shell),
            ("--html", Code::Shell),
            ("-C", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["split"],
        options: options(
            "a:b:C:l:n:t:",
            &["filter=", "bytes=", "lines=", "number=", "suffix-length=", "additional-suffix="],
        ),
        code: &[("--filter", Code::Shell)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["zip"],
        options: single_dash(&["TT=", "-unzip-command=", "i=", "x=", "P=", "b="]),
        code: &[("--TT", Code::Shell), ("---unzip-command", Code::Shell)],
        inner: Inner::None,
        ..BARE
    },
];
