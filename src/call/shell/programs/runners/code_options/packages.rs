//! Package managers, version control and build tools: which of their options carry code. Data only.

use crate::call::shell::programs::runners::{BARE, Code, Inner, Runner, options, single_dash};

pub(super) static PACKAGES: &[Runner] = &[
    Runner {
        names: &["dpkg"],
        options: options(
            "iPrDL:S:s:p:V",
            &["pre-invoke=", "post-invoke=", "status-logger=", "admindir=", "root=", "instdir="],
        ),
        code: &[
            ("--pre-invoke", Code::Shell),
            ("--post-invoke", Code::Shell),
            ("--status-logger", Code::Shell),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["rpm", "rpmbuild"],
        options: options("E:", &["eval=", "load=", "pipe="]),
        code: &[
            ("-E", Code::Foreign),
            ("--eval", Code::Foreign),
            ("--load", Code::Foreign),
            ("--pipe", Code::Shell),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["dc"],
        options: options("e:f:", &["expression=", "file="]),
        code: &[("-e", Code::Foreign), ("--expression", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["apt", "apt-get", "aptitude", "apt-cache"],
        options: options("o:c:t:", &["option=", "config-file=", "target-release="]),
        code: &[
            ("-o", Code::Foreign),
            ("--option", Code::Foreign),
            ("-c", Code::Foreign),
            ("--config-file", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["hg"],
        options: options("R:", &["config=", "repository=", "debugger"]),
        code: &[("--config", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["svn"],
        options: options(
            "",
            &["diff-cmd=", "diff3-cmd=", "editor-cmd=", "config-option=", "config-dir="],
        ),
        code: &[
            ("--diff-cmd", Code::Program),
            ("--diff3-cmd", Code::Program),
            ("--editor-cmd", Code::Shell),
            ("--config-option", Code::Foreign),
            ("--config-dir", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["cargo"],
        options: options(
            "C:j:p:F:Z:",
            &["config=", "manifest-path=", "features=", "package=", "target="],
        ),
        code: &[("--config", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["go"],
        options: single_dash(&["exec=", "toolexec=", "vettool=", "run=", "o=", "C=", "overlay="]),
        code: &[("--exec", Code::Shell), ("--toolexec", Code::Shell), ("--vettool", Code::Program)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["cmake"],
        options: options("P:S:B:D:G:E:", &["build=", "install="]),
        code: &[("-P", Code::Foreign)],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["nix-shell", "nix"],
        options: options("p:c:", &["run=", "command=", "expr=", "packages="]),
        code: &[
            ("--run", Code::Shell),
            ("--command", Code::Shell),
            ("-c", Code::Shell),
            ("--expr", Code::Foreign),
        ],
        inner: Inner::None,
        ..BARE
    },
];
