//! Compilers and what drives them. Data only.

use super::{R, W};
use crate::call::shell::programs::options::Options;
use crate::call::shell::programs::paths::{Operands, Row, options};

pub(super) static BUILD: &[Row] = &[
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
];
