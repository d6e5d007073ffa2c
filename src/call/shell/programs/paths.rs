//! Paths in the arguments of well-known programs, as data: which operands and option values are
//! paths, and what is done to them. A program that is missing names no paths here; the cell holds it.

use super::Invoked;
use super::options::{Options, Read, read};
use crate::call::effects::{Access, PathOrigin};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::Analysis;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Which operands are paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    None,
    /// All, in this way.
    All(Access),
    /// All; without any, the current directory.
    AllOrHere(Access),
    /// All but the first, which is a pattern, a mode or an owner, unless one of these options gives
    /// that.
    AfterFirst(Access, &'static [&'static str]),
    /// All are read, the last is written.
    Copy,
    /// The first is read, the second written.
    InOut,
    /// The first in this way, the others in that.
    FirstThen(Access, Access),
}

struct Row {
    names: &'static [&'static str],
    options: Options,
    /// Options whose values are paths.
    values: &'static [(&'static str, Access)],
    operands: Operands,
}

const R: Access = Access::Read;
const W: Access = Access::Write;

const fn options(short: &'static str, long: &'static [&'static str]) -> Options {
    Options { short, long, single_dash: false }
}

static ROWS: &[Row] = &[
    Row {
        names: &[
            "cat",
            "tac",
            "nl",
            "rev",
            "md5sum",
            "sha1sum",
            "sha224sum",
            "sha256sum",
            "sha384sum",
            "sha512sum",
            "b2sum",
            "cksum",
            "sum",
            "zcat",
            "bzcat",
            "xzcat",
            "zstdcat",
            "strings",
            "file",
            "stat",
            "readlink",
            "realpath",
            "cmp",
            "paste",
            "tsort",
            "unexpand",
            "expand",
            "fold",
            "fmt",
            "column",
            "diff3",
            "hexdump",
            "hd",
            "more",
            "less",
            "bat",
            "batcat",
            "view",
            "nm",
            "objdump",
            "ldd",
            "size",
            "source-highlight",
            "pr",
        ],
        options: options("n:s:w:b:v:t:f:c:", &["files0-from="]),
        values: &[("--files0-from", R)],
        operands: Operands::All(R),
    },
    Row {
        names: &["head", "tail"],
        options: options("n:c:s:", &["lines=", "bytes=", "pid=", "sleep-interval=", "follow?"]),
        values: &[],
        operands: Operands::All(R),
    },
    Row {
        names: &["wc"],
        options: options("", &["files0-from=", "total="]),
        values: &[("--files0-from", R)],
        operands: Operands::All(R),
    },
    Row {
        names: &["od", "xxd"],
        options: options("A:j:N:t:w:S:c:g:l:s:o:", &[]),
        values: &[],
        operands: Operands::All(R),
    },
    Row {
        names: &["base64", "base32"],
        options: options("w:", &["wrap="]),
        values: &[],
        operands: Operands::All(R),
    },
    Row {
        names: &["cut"],
        options: options(
            "b:c:d:f:",
            &["bytes=", "characters=", "delimiter=", "fields=", "output-delimiter="],
        ),
        values: &[],
        operands: Operands::All(R),
    },
    Row {
        names: &["sort"],
        options: options(
            "k:o:S:t:T:",
            &[
                "output=",
                "key=",
                "temporary-directory=",
                "files0-from=",
                "random-source=",
                "compress-program=",
                "field-separator=",
                "buffer-size=",
                "parallel=",
            ],
        ),
        values: &[
            ("-o", W),
            ("--output", W),
            ("-T", W),
            ("--temporary-directory", W),
            ("--files0-from", R),
            ("--random-source", R),
        ],
        operands: Operands::All(R),
    },
    Row {
        names: &["uniq"],
        options: options("f:s:w:", &["skip-fields=", "skip-chars=", "check-chars="]),
        values: &[],
        operands: Operands::InOut,
    },
    Row {
        names: &["comm", "join", "diff", "colordiff", "sdiff", "vimdiff"],
        options: options(
            "1:2:t:a:e:o:j:v:U:C:x:X:I:F:W:",
            &["exclude-from=", "from-file=", "to-file=", "output=", "label="],
        ),
        values: &[("-X", R), ("--exclude-from", R), ("--from-file", R), ("--to-file", R)],
        operands: Operands::All(R),
    },
    Row {
        names: &["grep", "egrep", "fgrep", "zgrep", "rgrep"],
        options: options(
            "e:f:m:A:B:C:d:D:",
            &[
                "regexp=",
                "file=",
                "max-count=",
                "after-context=",
                "before-context=",
                "context=",
                "include=",
                "exclude=",
                "exclude-from=",
                "exclude-dir=",
                "label=",
                "color?",
                "colour?",
                "binary-files=",
                "directories=",
                "devices=",
            ],
        ),
        values: &[("-f", R), ("--file", R), ("--exclude-from", R)],
        operands: Operands::AfterFirst(R, &["-e", "-f", "--regexp", "--file"]),
    },
    Row {
        names: &["rg", "ag", "ack"],
        options: options(
            "e:f:g:m:t:T:A:B:C:d:j:M:r:E:",
            &[
                "pre=",
                "pre-glob=",
                "regexp=",
                "file=",
                "glob=",
                "iglob=",
                "type=",
                "type-not=",
                "max-count=",
                "after-context=",
                "before-context=",
                "context=",
                "ignore-file=",
                "max-depth=",
                "threads=",
                "replace=",
                "sort=",
                "files",
            ],
        ),
        values: &[("-f", R), ("--file", R), ("--ignore-file", R)],
        operands: Operands::AfterFirst(R, &["-e", "-f", "--regexp", "--file", "--files"]),
    },
    Row {
        names: &["jq", "yq", "gojq"],
        options: options("f:L:", &["from-file=", "indent="]),
        values: &[("-f", R), ("--from-file", R), ("-L", R)],
        operands: Operands::AfterFirst(R, &["-f", "--from-file"]),
    },
    Row {
        names: &["ls", "dir", "vdir", "exa", "eza", "lsd"],
        options: options(
            "I:w:T:",
            &["hide=", "ignore=", "width=", "time=", "sort=", "format=", "block-size=", "color?"],
        ),
        values: &[],
        operands: Operands::AllOrHere(R),
    },
    Row {
        names: &["tree"],
        options: options("L:P:I:o:", &["charset=", "filelimit=", "sort?"]),
        values: &[("-o", W)],
        operands: Operands::AllOrHere(R),
    },
    Row {
        names: &["du"],
        options: options(
            "B:d:t:X:",
            &[
                "block-size=",
                "max-depth=",
                "threshold=",
                "exclude=",
                "exclude-from=",
                "files0-from=",
            ],
        ),
        values: &[("-X", R), ("--exclude-from", R), ("--files0-from", R)],
        operands: Operands::AllOrHere(R),
    },
    Row {
        names: &["cp"],
        options: options(
            "t:S:",
            &[
                "target-directory=",
                "suffix=",
                "backup?",
                "reflink?",
                "sparse=",
                "preserve?",
                "no-preserve=",
            ],
        ),
        values: &[("-t", W), ("--target-directory", W)],
        operands: Operands::Copy,
    },
    Row {
        names: &["mv"],
        options: options("t:S:", &["target-directory=", "suffix=", "backup?"]),
        values: &[("-t", W), ("--target-directory", W)],
        operands: Operands::All(W),
    },
    Row {
        names: &["install"],
        options: options(
            "t:S:m:o:g:",
            &["target-directory=", "suffix=", "mode=", "owner=", "group=", "backup?"],
        ),
        values: &[("-t", W), ("--target-directory", W)],
        operands: Operands::Copy,
    },
    Row {
        names: &["ln", "link"],
        options: options("t:S:", &["target-directory=", "suffix=", "backup?"]),
        values: &[("-t", W), ("--target-directory", W)],
        operands: Operands::Copy,
    },
    Row {
        names: &["rm", "rmdir", "unlink", "shred", "wipe", "srm"],
        options: options(
            "n:s:",
            &[
                "iterations=",
                "size=",
                "random-source=",
                "remove?",
                "interactive?",
                "preserve-root?",
            ],
        ),
        values: &[],
        operands: Operands::All(W),
    },
    Row {
        names: &["mkdir", "mkfifo", "mktemp"],
        options: options("m:p:", &["mode=", "context?", "tmpdir?", "suffix="]),
        values: &[],
        operands: Operands::All(W),
    },
    Row {
        names: &["touch"],
        options: options("d:r:t:", &["date=", "reference=", "time="]),
        values: &[("-r", R), ("--reference", R)],
        operands: Operands::All(W),
    },
    Row {
        names: &["truncate"],
        options: options("s:r:", &["size=", "reference="]),
        values: &[("-r", R), ("--reference", R)],
        operands: Operands::All(W),
    },
    Row {
        names: &["fallocate"],
        options: options("l:o:", &["length=", "offset="]),
        values: &[],
        operands: Operands::All(W),
    },
    Row {
        names: &["tee"],
        options: options("", &["output-error?"]),
        values: &[],
        operands: Operands::All(W),
    },
    Row {
        names: &[
            "sponge", "vim", "vi", "nvim", "nano", "emacs", "ex", "ed", "pico", "micro",
            "dos2unix", "unix2dos", "rustfmt", "gofmt", "black", "prettier",
        ],
        options: options("c:S:s:u:w:l:f:e:", &["cmd=", "config=", "line-length="]),
        values: &[],
        operands: Operands::All(W),
    },
    Row {
        names: &["chmod", "chown", "chgrp", "chattr", "chcon", "setfattr"],
        options: options("n:v:x:", &["reference=", "from="]),
        values: &[("--reference", R)],
        operands: Operands::AfterFirst(W, &["--reference", "-n"]),
    },
    Row {
        names: &["setfacl"],
        options: options("m:x:M:X:", &["modify=", "remove=", "set=", "set-file=", "restore="]),
        values: &[("-M", R), ("-X", R), ("--set-file", R), ("--restore", R)],
        operands: Operands::All(W),
    },
    Row {
        names: &["mknod"],
        options: options("m:Z:", &["mode="]),
        values: &[],
        operands: Operands::FirstThen(W, W),
    },
    Row {
        names: &[
            "gzip",
            "gunzip",
            "bzip2",
            "bunzip2",
            "xz",
            "unxz",
            "lzma",
            "zstd",
            "unzstd",
            "lz4",
            "compress",
            "uncompress",
        ],
        options: options("S:o:D:T:", &["suffix=", "threads="]),
        values: &[("-o", W)],
        operands: Operands::All(W),
    },
    Row {
        names: &["zip"],
        options: options("x:i:b:P:t:", &[]),
        values: &[("-b", W)],
        operands: Operands::FirstThen(W, R),
    },
    Row {
        names: &["unzip"],
        options: options("d:x:P:", &[]),
        values: &[("-d", W)],
        operands: Operands::FirstThen(R, R),
    },
    Row {
        names: &["patch"],
        options: options(
            "i:o:p:d:r:B:z:D:F:g:",
            &["input=", "output=", "strip=", "directory=", "reject-file=", "fuzz="],
        ),
        values: &[
            ("-i", R),
            ("--input", R),
            ("-o", W),
            ("--output", W),
            ("-d", W),
            ("--directory", W),
            ("-r", W),
            ("--reject-file", W),
        ],
        operands: Operands::FirstThen(W, R),
    },
    Row {
        names: &["split", "csplit"],
        options: options(
            "a:b:C:l:n:t:f:",
            &[
                "filter=",
                "bytes=",
                "lines=",
                "number=",
                "prefix=",
                "suffix-length=",
                "additional-suffix=",
            ],
        ),
        values: &[("-f", W), ("--prefix", W)],
        operands: Operands::InOut,
    },
    Row {
        names: &["curl"],
        options: options(
            "#:o:T:K:c:b:D:E:d:F:H:X:u:A:e:m:r:w:x:C:y:Y:z:Q:P:t:U:",
            &[
                "output=",
                "output-dir=",
                "upload-file=",
                "config=",
                "cookie-jar=",
                "cookie=",
                "dump-header=",
                "cert=",
                "key=",
                "cacert=",
                "capath=",
                "data=",
                "data-binary=",
                "data-raw=",
                "data-ascii=",
                "data-urlencode=",
                "form=",
                "form-string=",
                "json=",
                "header=",
                "request=",
                "user=",
                "user-agent=",
                "referer=",
                "max-time=",
                "connect-timeout=",
                "proxy=",
                "range=",
                "write-out=",
                "trace=",
                "trace-ascii=",
                "stderr=",
                "netrc-file=",
                "url=",
                "retry=",
                "retry-delay=",
                "unix-socket=",
                "abstract-unix-socket=",
                "resolve=",
                "connect-to=",
                "interface=",
                "libcurl=",
                "etag-save=",
                "etag-compare=",
                "hsts=",
                "alt-svc=",
            ],
        ),
        values: &[
            ("-o", W),
            ("--output", W),
            ("--output-dir", W),
            ("-T", R),
            ("--upload-file", R),
            ("-K", R),
            ("--config", R),
            ("-c", W),
            ("--cookie-jar", W),
            ("-D", W),
            ("--dump-header", W),
            ("-E", R),
            ("--cert", R),
            ("--key", R),
            ("--cacert", R),
            ("--trace", W),
            ("--trace-ascii", W),
            ("--stderr", W),
            ("--netrc-file", R),
            ("--unix-socket", W),
            ("--libcurl", W),
            ("--etag-save", W),
            ("--etag-compare", R),
            ("--hsts", W),
            ("--alt-svc", W),
        ],
        operands: Operands::None,
    },
    Row {
        names: &["wget"],
        options: options(
            "O:P:o:a:i:e:U:T:t:w:Q:l:A:R:D:I:X:B:",
            &[
                "output-document=",
                "directory-prefix=",
                "output-file=",
                "append-output=",
                "input-file=",
                "post-file=",
                "body-file=",
                "load-cookies=",
                "save-cookies=",
                "ca-certificate=",
                "certificate=",
                "private-key=",
                "config=",
                "header=",
                "user-agent=",
                "execute=",
                "tries=",
                "timeout=",
                "user=",
                "password=",
            ],
        ),
        values: &[
            ("-O", W),
            ("--output-document", W),
            ("-P", W),
            ("--directory-prefix", W),
            ("-o", W),
            ("--output-file", W),
            ("-a", W),
            ("--append-output", W),
            ("-i", R),
            ("--input-file", R),
            ("--post-file", R),
            ("--body-file", R),
            ("--load-cookies", R),
            ("--save-cookies", W),
            ("--config", R),
        ],
        operands: Operands::None,
    },
    Row {
        names: &["rsync", "scp"],
        options: options(
            "e:f:T:B:M:i:F:J:l:o:P:S:c:",
            &[
                "rsh=",
                "rsync-path=",
                "exclude=",
                "include=",
                "exclude-from=",
                "include-from=",
                "files-from=",
                "filter=",
                "backup-dir=",
                "log-file=",
                "partial-dir=",
                "temp-dir=",
                "link-dest=",
                "copy-dest=",
                "compare-dest=",
                "bwlimit=",
                "port=",
                "password-file=",
            ],
        ),
        values: &[
            ("--exclude-from", R),
            ("--include-from", R),
            ("--files-from", R),
            ("--backup-dir", W),
            ("--log-file", W),
            ("--partial-dir", W),
            ("-T", W),
            ("--temp-dir", W),
            ("--link-dest", R),
            ("--copy-dest", R),
            ("--compare-dest", R),
            ("--password-file", R),
        ],
        operands: Operands::Copy,
    },
    Row {
        names: &["ssh"],
        options: options("B:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:", &[]),
        values: &[("-i", R), ("-F", R), ("-E", W)],
        operands: Operands::None,
    },
    Row {
        names: &["ssh-keygen"],
        options: options("f:b:C:N:P:t:O:s:I:n:V:", &[]),
        values: &[("-f", W)],
        operands: Operands::None,
    },
    Row {
        names: &["openssl"],
        options: Options {
            short: "",
            long: &[
                "in=", "out=", "key=", "inkey=", "CA=", "CAkey=", "keyout=", "config=", "CAfile=",
                "kfile=",
            ],
            single_dash: true,
        },
        values: &[
            ("--in", R),
            ("--out", W),
            ("--key", R),
            ("--inkey", R),
            ("--keyout", W),
            ("--config", R),
            ("--CAfile", R),
            ("--kfile", R),
        ],
        operands: Operands::None,
    },
    Row {
        names: &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "rustc"],
        options: Options {
            short: "",
            long: &["o=", "I=", "L=", "include=", "x=", "D="],
            single_dash: true,
        },
        values: &[("--o", W), ("--I", R), ("--L", R), ("--include", R)],
        operands: Operands::All(R),
    },
    Row {
        names: &["make", "gmake", "ninja", "cmake"],
        options: options("C:f:I:j::l::o:W:S:B:P:", &["directory=", "file=", "makefile="]),
        values: &[
            ("-C", W),
            ("--directory", W),
            ("-f", R),
            ("--file", R),
            ("--makefile", R),
            ("-S", R),
            ("-B", W),
            ("-P", R),
        ],
        operands: Operands::None,
    },
    Row {
        names: &["awk", "gawk", "mawk", "nawk"],
        options: options(
            "F:v:f:e:E:i:l:",
            &["file=", "field-separator=", "assign=", "source=", "exec=", "include="],
        ),
        values: &[("-f", R), ("--file", R), ("-E", R), ("--exec", R)],
        operands: Operands::AfterFirst(R, &["-f", "-e", "-E", "--file", "--source", "--exec"]),
    },
    Row {
        names: &["pandoc"],
        options: options("o:f:t:", &["output=", "from=", "to="]),
        values: &[("-o", W), ("--output", W)],
        operands: Operands::All(R),
    },
    Row {
        names: &["script"],
        options: options("c:", &["command="]),
        values: &[],
        operands: Operands::All(W),
    },
    Row {
        names: &["flock"],
        options: options("w:E:c:", &[]),
        values: &[],
        operands: Operands::None,
    },
    Row {
        names: &["mount", "umount"],
        options: options("t:o:L:U:", &[]),
        values: &[],
        operands: Operands::All(W),
    },
    Row {
        names: &["tar", "gtar", "bsdtar"],
        options: options(
            "f:C:T:X:I:b:L:K:N:V:H:g:F:",
            &[
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
                "use-compress-program=",
                "to-command=",
                "checkpoint-action=",
                "one-top-level?",
            ],
        ),
        values: &[("-T", R), ("--files-from", R), ("-X", R), ("--exclude-from", R), ("-g", W)],
        operands: Operands::None,
    },
];

/// The row for a program.
fn find(name: &str) -> Option<&'static Row> {
    static BY_NAME: LazyLock<HashMap<&str, &Row>> = LazyLock::new(|| {
        ROWS.iter().flat_map(|row| row.names.iter().map(move |name| (*name, row))).collect()
    });
    BY_NAME.get(name).copied()
}

fn origin(invoked: &Invoked<'_>) -> PathOrigin {
    PathOrigin::ProgramArgument { program: invoked.name.to_owned() }
}

/// Records the paths in a command's arguments.
pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    match invoked.name {
        "dd" => return blocks(analysis, invoked),
        "sed" | "gsed" => return sed(analysis, invoked),
        "tar" | "gtar" | "bsdtar" => tar(analysis, invoked),
        "curl" => uploads(analysis, invoked),
        "git" => return clone(analysis, invoked),
        _ => {}
    }
    let Some(row) = find(invoked.name) else { return };
    let read = read(invoked.arguments, &row.options, false);
    for given in &read.given {
        let access = row.values.iter().find(|(name, _)| *name == given.name);
        if let (Some((_, access)), Some(value)) = (access, &given.value) {
            local(analysis, invoked, value, *access);
        }
    }
    operands(analysis, invoked, row.operands, &read);
}

/// A path that is not on another host.
fn local(analysis: &mut Analysis, invoked: &Invoked<'_>, field: &Field, access: Access) {
    let remote = matches!(invoked.name, "scp" | "rsync")
        && field
            .prefix()
            .find(':')
            .is_some_and(|colon| !field.prefix().get(..colon).unwrap_or("/").contains('/'));
    if field.exact() != Some("-") && !remote {
        analysis.path(field, access, origin(invoked));
    }
}

fn operands(analysis: &mut Analysis, invoked: &Invoked<'_>, operands: Operands, read: &Read) {
    let fields: Vec<&Field> =
        read.operands.iter().filter_map(|index| invoked.argument(*index)).collect();
    let last = fields.len().saturating_sub(1);
    let given =
        |names: &[&str]| read.given.iter().any(|given| names.contains(&given.name.as_str()));
    match operands {
        Operands::None => {}
        Operands::AllOrHere(access) if fields.is_empty() => {
            let here = Field::known(".", invoked.call.span);
            analysis.path(&here, access, origin(invoked));
        }
        Operands::All(access) | Operands::AllOrHere(access) => {
            fields.iter().for_each(|field| local(analysis, invoked, field, access));
        }
        Operands::AfterFirst(access, instead) => {
            let skip = usize::from(!given(instead));
            fields.iter().skip(skip).for_each(|field| local(analysis, invoked, field, access));
        }
        Operands::Copy => {
            let directory = given(&["-t", "--target-directory"]);
            for (index, field) in fields.iter().enumerate() {
                let access = if index == last && !directory { Access::Write } else { Access::Read };
                local(analysis, invoked, field, access);
            }
        }
        Operands::InOut => {
            for (index, field) in fields.iter().enumerate() {
                local(
                    analysis,
                    invoked,
                    field,
                    if index == 0 { Access::Read } else { Access::Write },
                );
            }
        }
        Operands::FirstThen(first, then) => {
            for (index, field) in fields.iter().enumerate() {
                local(analysis, invoked, field, if index == 0 { first } else { then });
            }
        }
    }
}

/// The end of a field as a path.
fn part(field: &Field, value: &str) -> Field {
    Field { value: value.to_owned(), pattern: None, ..field.clone() }
}

/// `dd if=… of=…`
fn blocks(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    for field in invoked.arguments {
        let access = match field.prefix().split_once('=') {
            Some(("if", path)) => Some((path, Access::Read)),
            Some(("of", path)) => Some((path, Access::Write)),
            Some(_) | None => None,
        };
        if let Some((path, access)) = access {
            local(analysis, invoked, &part(field, path), access);
        }
    }
}

fn sed(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let options =
        options("e:f:l:i::nrEsuz", &["expression=", "file=", "line-length=", "in-place?"]);
    let read = read(invoked.arguments, &options, false);
    let in_place =
        read.given.iter().any(|given| matches!(given.name.as_str(), "-i" | "--in-place"));
    let access = if in_place { Access::Write } else { Access::Read };
    for given in read.given.iter().filter(|given| matches!(given.name.as_str(), "-f" | "--file")) {
        if let Some(file) = &given.value {
            local(analysis, invoked, file, Access::Read);
        }
    }
    operands(
        analysis,
        invoked,
        Operands::AfterFirst(access, &["-e", "-f", "--expression", "--file"]),
        &read,
    );
}

/// The archive and the directories of `tar`, in the old spelling too.
fn tar(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let old = invoked.argument(0).is_some_and(|field| !field.prefix().starts_with('-'));
    let mut fields = invoked.arguments.to_vec();
    if old && let Some(first) = fields.first_mut() {
        first.value.insert(0, '-');
    }
    let Some(row) = find("tar") else { return };
    let read = read(&fields, &row.options, false);
    let has = |short: &str, long: &str| {
        read.given.iter().any(|given| given.name == short || given.name == long)
    };
    let creates = has("-c", "--create") || has("-r", "--append") || has("-u", "--update");
    let extracts = has("-x", "--extract") || has("-x", "--get");
    let files = if creates { (Access::Write, Access::Read) } else { (Access::Read, Access::Write) };
    let mut directory = None;
    for given in &read.given {
        let Some(value) = &given.value else { continue };
        match given.name.as_str() {
            "-f" | "--file" => local(analysis, invoked, value, files.0),
            "-C" | "--directory" => {
                local(analysis, invoked, value, files.1);
                directory = Some(value.clone());
            }
            _ => {}
        }
    }
    if creates {
        let names: Vec<Field> =
            read.operands.iter().filter_map(|index| fields.get(*index).cloned()).collect();
        names.iter().for_each(|field| local(analysis, invoked, field, Access::Read));
    } else if extracts && directory.is_none() && !has("-O", "--to-stdout") {
        let here = Field::known(".", invoked.call.span);
        analysis.path(&here, Access::Write, origin(invoked));
    }
}

/// `curl -d @file`, `-F name=@file`, `-O`.
fn uploads(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let Some(row) = find("curl") else { return };
    let read = read(invoked.arguments, &row.options, false);
    for given in &read.given {
        let Some(value) = &given.value else {
            if matches!(given.name.as_str(), "-O" | "--remote-name") {
                let here = Field::known(".", invoked.call.span);
                analysis.path(&here, Access::Write, origin(invoked));
            }
            continue;
        };
        let data = matches!(
            given.name.as_str(),
            "-d" | "--data"
                | "--data-binary"
                | "--data-ascii"
                | "--data-urlencode"
                | "--json"
                | "-F"
                | "--form"
                | "-H"
                | "--header"
                | "-b"
                | "--cookie"
        );
        let file = value.prefix().split_once('@').filter(|(name, _)| {
            name.is_empty() || name.ends_with('=') || given.name == "--data-urlencode"
        });
        match file {
            Some((_, path)) if data => {
                let path = path.split(';').next().unwrap_or(path).to_owned();
                local(analysis, invoked, &part(value, &path), Access::Read);
            }
            Some(_) | None => {}
        }
    }
}

/// `git clone URL DIRECTORY`
fn clone(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let words: Vec<&Field> =
        invoked.arguments.iter().filter(|field| !field.prefix().starts_with('-')).collect();
    if let [verb, _, directory] = words.as_slice()
        && verb.exact() == Some("clone")
    {
        local(analysis, invoked, directory, Access::Write);
    }
}
