//! Programs that run a command of a project in its own environment. Data only.

use crate::call::shell::programs::runners::{BARE, Code, Inner, Runner, options};

pub(super) static PROJECTS: &[Runner] = &[
    Runner {
        names: &["uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"],
        options: options(
            "qvmp:C:",
            &[
                "quiet",
                "verbose",
                "with=",
                "python=",
                "extra=",
                "group=",
                "project=",
                "directory=",
                "no-sync",
                "frozen",
                "locked",
                "isolated",
                "all-extras",
                "no-project",
                "with-requirements=",
                "with-editable=",
                "env-file=",
                "module",
            ],
        ),
        inner: Inner::After(&["run"]),
        ..BARE
    },
    Runner {
        names: &["bundle", "pnpm", "yarn", "rbenv", "pyenv", "asdf", "mise", "npm"],
        options: options(
            "qsc:p:",
            &["silent", "quiet", "package=", "call=", "yes", "no", "workspace="],
        ),
        code: &[("-c", Code::Shell), ("--call", Code::Shell)],
        inner: Inner::After(&["exec"]),
        ..BARE
    },
    Runner {
        names: &["npx", "bunx", "uvx", "pipx"],
        options: options(
            "yqp:c:",
            &["yes", "no", "no-install", "quiet", "package=", "call=", "from=", "with="],
        ),
        code: &[("-c", Code::Shell), ("--call", Code::Shell)],
        ..BARE
    },
];
