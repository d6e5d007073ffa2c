//! Programs that run other programs, as data: how their options are read, which option values are
//! code, and where the inner command stands among the operands.
//!
//! A program that is missing here is judged by its name alone. One that is here and is called in a
//! way the table does not describe becomes unresolved.

use super::options::Options;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What the value of an option is to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// Given to `sh -c`, or split into words and run.
    Shell,
    /// The name of a program.
    Program,
    /// A program and its arguments, separated by commas.
    Commas,
    /// Code in another language, or a file of settings that can name programs.
    Foreign,
    /// `exec=COMMAND` runs a command, other values do not.
    ExecPrefix,
    /// A file, unless it starts with `|` or `!`: then a command.
    PipePrefix,
}

/// Where the inner command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inner {
    /// The program runs no operand.
    None,
    /// Behind this many operands; without it the program does something harmless of its own.
    Words(usize),
    /// The same, but joined with blanks and given to a shell.
    Shell(usize),
    /// Behind these words, which stand directly behind the options (`uv run`).
    After(&'static [&'static str]),
    /// Behind `--` alone.
    Dashes,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runner {
    pub(super) names: &'static [&'static str],
    pub(super) options: Options,
    pub(super) code: &'static [(&'static str, Code)],
    pub(super) inner: Inner,
    /// `NAME=value` operands in front of the inner command set its environment.
    pub(super) assignments: bool,
    /// The inner command runs on another machine or in a container: its paths are not ours.
    pub(super) remote: bool,
}

const BARE: Runner = Runner {
    names: &[],
    options: Options { short: "", long: &[], single_dash: false },
    code: &[],
    inner: Inner::Words(0),
    assignments: false,
    remote: false,
};

const fn options(short: &'static str, long: &'static [&'static str]) -> Options {
    Options { short, long, single_dash: false }
}

const fn single_dash(long: &'static [&'static str]) -> Options {
    Options { short: "", long, single_dash: true }
}

/// The row for a program.
pub(super) fn find(name: &str) -> Option<&'static Runner> {
    static BY_NAME: LazyLock<HashMap<&str, &Runner>> = LazyLock::new(|| {
        let rows = WRAPPERS.iter().chain(CODE_OPTIONS);
        rows.flat_map(|row| row.names.iter().map(move |name| (*name, row))).collect()
    });
    BY_NAME.get(name).copied()
}

/// Programs whose operands are a command.
static WRAPPERS: &[Runner] = &[
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
        names: &["sudo"],
        options: options(
            "ABbEHhKklnPSsvVia:C:c:D:g:p:R:r:T:t:U:u:",
            &[
                "askpass",
                "auth-type=",
                "background",
                "bell",
                "close-from=",
                "login-class=",
                "chdir=",
                "preserve-env?",
                "edit",
                "group=",
                "set-home",
                "help",
                "host=",
                "login",
                "remove-timestamp",
                "reset-timestamp",
                "list",
                "non-interactive",
                "preserve-groups",
                "prompt=",
                "chroot=",
                "role=",
                "stdin",
                "shell",
                "type=",
                "command-timeout=",
                "other-user=",
                "user=",
                "version",
                "validate",
                "no-update",
            ],
        ),
        assignments: true,
        ..BARE
    },
    Runner { names: &["doas"], options: options("LnsC:a:u:", &[]), ..BARE },
    Runner {
        names: &["pkexec", "run0"],
        options: options(
            "u:g:D:",
            &[
                "user=",
                "group=",
                "disable-internal-agent",
                "keep-cwd",
                "unit=",
                "property=",
                "description=",
                "slice=",
                "nice=",
                "chdir=",
                "setenv=",
                "background=",
                "no-ask-password",
                "machine=",
            ],
        ),
        ..BARE
    },
    Runner { names: &["gosu", "su-exec", "setuidgid"], inner: Inner::Words(1), ..BARE },
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
        names: &["chroot"],
        options: options("", &["userspec=", "groups=", "skip-chdir"]),
        inner: Inner::Words(1),
        remote: true,
        ..BARE
    },
    Runner {
        names: &["unshare"],
        options: options(
            "imnpuUCTfrcR:w:S:G:l:",
            &[
                "ipc?",
                "mount?",
                "net?",
                "pid?",
                "uts?",
                "user?",
                "cgroup?",
                "time?",
                "fork",
                "map-root-user",
                "map-current-user",
                "map-auto",
                "map-user=",
                "map-group=",
                "map-users=",
                "map-groups=",
                "mount-proc?",
                "mount-binfmt?",
                "kill-child?",
                "keep-caps",
                "propagation=",
                "setgroups=",
                "root=",
                "wd=",
                "setuid=",
                "setgid=",
                "monotonic=",
                "boottime=",
                "load-interp=",
            ],
        ),
        ..BARE
    },
    Runner {
        names: &["nsenter"],
        options: options(
            "am::u::i::n::p::C::U::T::r::w::t:S:G:W:eFZ",
            &[
                "all",
                "target=",
                "mount?",
                "uts?",
                "ipc?",
                "net?",
                "pid?",
                "cgroup?",
                "user?",
                "time?",
                "setuid=",
                "setgid=",
                "preserve-credentials",
                "keep-caps",
                "root?",
                "wd?",
                "wdns=",
                "env",
                "no-fork",
                "follow-context",
                "user-parent",
                "join-cgroup",
            ],
        ),
        remote: true,
        ..BARE
    },
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
        names: &["strace"],
        options: options(
            "ACcdfFhiknNqrtTvVwxyYzZa:b:e:E:I:o:O:p:P:s:S:u:U:X:DL",
            &[
                "trace=",
                "output=",
                "attach=",
                "follow-forks",
                "seccomp-bpf",
                "string-limit=",
                "env=",
                "status=",
                "quiet?",
                "decode-fds?",
                "summary",
                "summary-only",
                "absolute-timestamps?",
                "user=",
                "stack-trace?",
                "stack-traces",
                "relative-timestamps?",
                "syscall-times?",
                "no-abbrev",
                "columns=",
                "interruptible=",
                "detach-on=",
                "daemonize?",
                "output-separately",
                "output-append-mode",
                "instruction-pointer",
                "successful-only",
                "failed-only",
                "failing-only",
                "read=",
                "write=",
                "fault=",
                "inject=",
                "signal=",
                "raw=",
                "verbose=",
                "abbrev=",
                "strings-in-hex?",
                "summary-columns=",
                "summary-sort-by=",
                "summary-wall-clock",
                "trace-path=",
                "debug",
                "trace-fds=",
                "syscall-number",
                "decode-pids=",
            ],
        ),
        code: &[("-o", Code::PipePrefix), ("--output", Code::PipePrefix)],
        ..BARE
    },
    Runner {
        names: &["ltrace"],
        options: options(
            "bcCfFhiLrStTVa:A:D:e:l:n:o:p:s:u:w:x:",
            &[
                "align=", "config=", "debug=", "demangle", "indent=", "library=", "output=",
                "where=",
            ],
        ),
        ..BARE
    },
    Runner {
        names: &["valgrind"],
        options: options(
            "qv",
            &[
                "tool=",
                "leak-check?",
                "track-origins?",
                "error-exitcode=",
                "log-file=",
                "trace-children?",
                "show-leak-kinds?",
                "quiet",
                "verbose",
                "num-callers=",
                "suppressions=",
                "xml?",
                "xml-file=",
            ],
        ),
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
        names: &["setpriv"],
        options: options(
            "d",
            &[
                "clear-groups",
                "keep-groups",
                "init-groups",
                "groups=",
                "inh-caps=",
                "ambient-caps=",
                "bounding-set=",
                "no-new-privs",
                "rgid=",
                "ruid=",
                "regid=",
                "reuid=",
                "egid=",
                "euid=",
                "securebits=",
                "pdeathsig=",
                "selinux-label=",
                "apparmor-profile=",
                "reset-env",
                "dump",
                "list-caps",
                "seccomp-filter=",
                "landlock-access=",
                "landlock-rule=",
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
        names: &["systemd-run"],
        options: options(
            "H:M:p:u:tGdPqrSE:",
            &[
                "user",
                "system",
                "scope",
                "unit=",
                "property=",
                "description=",
                "slice=",
                "slice-inherit",
                "remain-after-exit",
                "send-sighup",
                "service-type=",
                "uid=",
                "gid=",
                "nice=",
                "working-directory=",
                "same-dir",
                "setenv=",
                "pty",
                "pipe",
                "quiet",
                "on-active=",
                "on-calendar=",
                "wait",
                "collect",
                "shell",
                "no-block",
                "machine=",
                "host=",
            ],
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
    Runner {
        names: &["su"],
        options: options(
            "lmpPTc:s:g:G:w:",
            &[
                "command=",
                "session-command=",
                "login",
                "preserve-environment",
                "shell=",
                "group=",
                "supp-group=",
                "pty",
                "whitelist-environment=",
                "fast",
            ],
        ),
        code: &[
            ("-c", Code::Shell),
            ("--command", Code::Shell),
            ("--session-command", Code::Shell),
            ("-s", Code::Program),
            ("--shell", Code::Program),
        ],
        inner: Inner::None,
        ..BARE
    },
    Runner {
        names: &["runuser"],
        options: options(
            "lmpPTc:s:g:G:u:w:",
            &[
                "command=",
                "session-command=",
                "login",
                "preserve-environment",
                "shell=",
                "group=",
                "supp-group=",
                "user=",
                "pty",
                "whitelist-environment=",
            ],
        ),
        code: &[
            ("-c", Code::Shell),
            ("--command", Code::Shell),
            ("--session-command", Code::Shell),
            ("-s", Code::Program),
            ("--shell", Code::Program),
        ],
        ..BARE
    },
    Runner {
        names: &["ssh"],
        options: options(
            "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:",
            &[],
        ),
        code: &[("-F", Code::Foreign), ("-I", Code::Foreign)],
        inner: Inner::Shell(1),
        remote: true,
        ..BARE
    },
    Runner {
        names: &["kubectl", "oc", "lxc", "incus"],
        options: options(
            "itqn:c:f:l:o:",
            &[
                "namespace=",
                "container=",
                "context=",
                "kubeconfig=",
                "filename=",
                "selector=",
                "output=",
            ],
        ),
        inner: Inner::Dashes,
        remote: true,
        ..BARE
    },
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
        names: &["bundle", "pnpm", "yarn", "rbenv", "pyenv", "asdf", "direnv", "mise", "npm"],
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

/// Programs that run code which an option gives.
static CODE_OPTIONS: &[Runner] = &[
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
            ("-H", Code::Program),
            ("--html", Code::Program),
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
        names: &[
            "screen",
            "tmux",
            "crontab",
            "at",
            "batch",
            "expect",
            "socat",
            "systemctl",
            "start-stop-daemon",
        ],
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
