//! Archives and compressed files. Data only.

use super::{R, W};
use crate::call::shell::programs::paths::{Operands, Row, options};

pub(super) static ARCHIVES: &[Row] = &[
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
