//! The table of programs that run code which an option gives. Data only.

use super::{BARE, Code, Inner, Runner, options, single_dash};

/// Programs that run code which an option gives.
pub(super) static CODE_OPTIONS: &[Runner] = &[
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
