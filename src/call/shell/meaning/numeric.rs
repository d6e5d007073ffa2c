//! Which values are certainly numbers.
//!
//! In arithmetic bash evaluates the *value* of a variable as an expression, and the substitutions in
//! its subscripts: `x='a[$(id)]'; echo $((x))` runs `id`. Only values that cannot be such text may
//! stand there unquestioned.

use crate::call::shell::syntax::ast::{CommandKind, Form, List, Piece, Pieces};
use std::collections::BTreeSet;

/// Parameters whose value is always a number.
pub(crate) const NUMERIC_PARAMETERS: [&str; 17] = [
    "#",
    "?",
    "$",
    "!",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "UID",
    "EUID",
    "PPID",
    "BASHPID",
    "EPOCHSECONDS",
    "SHLVL",
    "OPTIND",
    "COLUMNS",
    "LINES",
];

/// Programs whose output [`prints_numbers`] believes in, unless a function of the script takes their name.
pub(crate) const NUMBER_PRINTERS: [&str; 6] = ["wc", "grep", "nproc", "id", "seq", "date"];

/// The identifiers in the text of an arithmetic expression.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
        .filter(|name| !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit()))
}

/// Whether a word gives digits whatever happens.
pub(crate) fn is_numeric_value(pieces: &Pieces, associative: &BTreeSet<String>) -> bool {
    pieces.iter().all(|piece| match piece {
        Piece::Text { text, .. } => {
            text.bytes().all(|byte| byte.is_ascii_digit() || b"-{}.,".contains(&byte))
        }
        Piece::Parameter { parameter, .. } => match parameter.form {
            Form::Length => true,
            Form::Names => !associative.contains(&parameter.name),
            Form::Plain => NUMERIC_PARAMETERS.contains(&parameter.name.as_str()),
            Form::Indirect
            | Form::AssignDefault
            | Form::Default
            | Form::Operand
            | Form::Substring
            | Form::Transform(_) => false,
        },
        Piece::Arithmetic { .. } => true,
        Piece::Command { body, .. } => prints_numbers(body),
        Piece::Process { .. } | Piece::Opaque { .. } => false,
    })
}

/// Whether a substitution's output is a number by what its last program is.
pub(crate) fn prints_numbers(body: &List) -> bool {
    let [item] = body.as_slice() else { return false };
    let Some(command) = item.first.commands.last().filter(|_| item.rest.is_empty()) else {
        return false;
    };
    let CommandKind::Simple(simple) = &command.kind else { return false };
    let words: Option<Vec<&str>> = simple.words.iter().map(super::facts::literal).collect();
    let fed = item.first.commands.len() > 1 || !command.redirects.is_empty();
    let Some(words) = words else { return false };
    match words.as_slice() {
        ["wc", "-l" | "-c" | "-w" | "-m"] => fed,
        ["grep", "-c" | "-ci" | "-cv" | "-cE" | "-cF", _pattern] => fed,
        ["grep", "-c" | "-ci" | "-cv" | "-cE" | "-cF", _pattern, file] => !file.starts_with('-'),
        ["nproc"] | ["id", "-u" | "-g"] => true,
        ["seq", numbers @ ..] => numbers
            .iter()
            .all(|number| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')),
        ["date", format] => {
            matches!(
                *format,
                "+%s" | "+%s%N" | "+%N" | "+%Y" | "+%m" | "+%d" | "+%H" | "+%M" | "+%S"
            )
        }
        _ => false,
    }
}
