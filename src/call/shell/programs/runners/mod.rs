//! Programs that run other programs, as data: how their options are read, which option values are
//! code, and where the inner command stands among the operands.
//!
//! A program that is missing here is judged by its name alone. One that is here and is called in a
//! way the table does not describe becomes unresolved.

mod code_options;
mod wrappers;

use super::options::Options;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What the value of an option is to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::call::shell::programs) enum Code {
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
pub(in crate::call::shell::programs) enum Inner {
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
    /// In a place that is not worked out: with operands, the call is unresolved.
    Unclear,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(in crate::call::shell::programs) struct Runner {
    pub(in crate::call::shell::programs) names: &'static [&'static str],
    pub(in crate::call::shell::programs) options: Options,
    pub(in crate::call::shell::programs) code: &'static [(&'static str, Code)],
    pub(in crate::call::shell::programs) inner: Inner,
    /// `NAME=value` operands in front of the inner command set its environment.
    pub(in crate::call::shell::programs) assignments: bool,
    /// The inner command runs on another machine or in a container: its paths are not ours.
    pub(in crate::call::shell::programs) remote: bool,
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
pub(in crate::call::shell::programs) fn find(name: &str) -> Option<&'static Runner> {
    static BY_NAME: LazyLock<HashMap<&str, &Runner>> = LazyLock::new(|| {
        let rows = wrappers::all().chain(code_options::all());
        rows.flat_map(|row| row.names.iter().map(move |name| (*name, row))).collect()
    });
    BY_NAME.get(name).copied()
}
