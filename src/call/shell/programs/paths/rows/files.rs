//! Programs that list, make, move and remove files, and change what is known about them. Data only.

use super::{R, W};
use crate::call::shell::programs::paths::{Operands, Row, options};

pub(super) static FILES: &[Row] = &[
    Row {
        names: &["ls", "dir", "vdir", "exa", "eza", "lsd"],
        options: options(
            "I:w:T:aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
            &[
                "hide=",
                "ignore=",
                "width=",
                "time=",
                "sort=",
                "format=",
                "block-size=",
                "color?",
                "recursive",
                "all",
                "almost-all",
                "directory",
                "human-readable",
                "group-directories-first",
                "full-time",
                "inode",
                "reverse",
                "time-style=",
            ],
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
        options: options(
            "t:S:sfnbivrLPTd",
            &["symbolic", "target-directory=", "suffix=", "backup?", "force", "no-dereference"],
        ),
        values: &[("-t", W), ("--target-directory", W)],
        operands: Operands::Link,
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
        names: &["mount", "umount"],
        options: options("t:o:L:U:", &[]),
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
        names: &["script"],
        options: options("c:", &["command="]),
        values: &[],
        operands: Operands::All(W),
    },
];
