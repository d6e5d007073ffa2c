//! Builtins that assign variables or evaluate their names: a subscript is an expression, and bash runs the
//! substitutions in it.

use super::Invoked;
use super::builtins::{code_word, state};
use crate::call::effects::Word;
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::numeric::names;
use crate::call::shell::meaning::state::Value;
use crate::call::shell::meaning::walk::Analysis;

pub(super) fn declare(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let mut kinds = Kinds::default();
    for field in invoked.arguments {
        match field.exact() {
            Some(option) if option.starts_with(['-', '+']) => {
                kinds.number |= option.contains('i');
                kinds.array |= option.contains(['a', 'A']);
                if option.contains('f') && invoked.name == "export"
                    || option.contains('n') && invoked.name != "export"
                {
                    state(analysis, invoked);
                }
            }
            Some(_) | None => declared(analysis, invoked, field, kinds),
        }
    }
}

/// What the options of `declare` make of a value.
#[derive(Debug, Clone, Copy, Default)]
struct Kinds {
    number: bool,
    array: bool,
}

/// Whether a value that came out of quotes is read again as the elements of an array.
fn is_read_as_elements(field: &Field, value: &Word, kinds: Kinds) -> bool {
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '+');
    let is_written_out = field
        .text
        .split_once('=')
        .is_some_and(|(name, text)| is_name(name) && text.starts_with('('));
    match value {
        // Elements that are written out have no value that is known.
        Word::Known(text) => text.trim_start().starts_with('(') && text.contains(['$', '`']),
        Word::Unknown { prefix, .. } => {
            let may_be = prefix.is_empty() || prefix.trim_start().starts_with('(');
            kinds.array && may_be && !is_written_out
        }
    }
}

/// Every value that a variable with `declare -i` gets is evaluated, wherever it comes from.
fn integer(analysis: &mut Analysis, name: &str, field: &Field) {
    let facts = &analysis.shell.facts;
    let is_number = facts.variables.get(name).is_none_or(|assigned| assigned.numeric);
    if !is_number || facts.numbers_doubtful {
        code_word(analysis, field);
    }
}

fn declared(analysis: &mut Analysis, invoked: &Invoked<'_>, field: &Field, kinds: Kinds) {
    let Some(assignment) = super::runner::assignment(field) else {
        if kinds.number {
            integer(analysis, &field.value, field);
        }
        // An unknown word could assign anything.
        if field.exact().is_none() {
            state(analysis, invoked);
        } else if field.value.contains('[') {
            code_word(analysis, field);
        }
        return;
    };
    let (name, subscript) = match assignment.name.split_once('[') {
        Some((name, subscript)) => (name.to_owned(), subscript.contains(['$', '`'])),
        None => (assignment.name.trim_end_matches('+').to_owned(), false),
    };
    let doubtful = kinds.number
        && assignment
            .value
            .known()
            .is_none_or(|value| names(value).next().is_some() || value.contains('['));
    if subscript || doubtful || is_read_as_elements(field, &assignment.value, kinds) {
        code_word(analysis, field);
    }
    if kinds.number {
        integer(analysis, &name, field);
    }
    analysis.prompt(&assignment);
    analysis.shell.assign(&name, assignment.value.known());
    let assignment = crate::call::effects::Assignment { name, ..assignment };
    analysis.effects.assignments.push(assignment);
}

/// An argument of `let`.
pub(super) fn expression(analysis: &mut Analysis, field: &Field) {
    let harmless = field.exact().is_some_and(|text| {
        !text.contains(['$', '`'])
            && names(text).all(|name| {
                matches!(
                    analysis.shell.value(name),
                    Value::Number | Value::Environment | Value::Unset
                )
            })
    });
    if !harmless {
        code_word(analysis, field);
    }
}

/// Whether a variable's name carries a subscript that bash would evaluate.
fn evaluates_subscript(field: &Field) -> bool {
    let Some(text) = field.exact() else {
        return field.prefix().is_empty() || field.prefix().contains('[');
    };
    text.split_once('[').is_some_and(|(_, subscript)| {
        let subscript = subscript.strip_suffix(']').unwrap_or(subscript);
        !subscript.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@*_-.".contains(&byte))
    })
}

pub(super) fn variable_names(analysis: &mut Analysis, invoked: &Invoked<'_>, fields: &[Field]) {
    let mut value_follows = false;
    for field in fields {
        let option = field.exact().is_some_and(|text| text.starts_with('-'));
        if std::mem::take(&mut value_follows) {
            continue;
        }
        if option {
            let last = field.value.chars().last().unwrap_or('-');
            value_follows = match invoked.name {
                "read" => "adinNptu".contains(last) && !field.value.starts_with("-a"),
                "mapfile" | "readarray" => "cCdnOsu".contains(last),
                _ => false,
            };
        } else if evaluates_subscript(field) {
            code_word(analysis, field);
        }
    }
}

/// `wait -p name` assigns; the operands are jobs.
pub(super) fn wait(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let is_option = |field: &Field| field.prefix().starts_with('-') && field.prefix().contains('p');
    let Some(place) = invoked.arguments.iter().position(is_option) else { return };
    // The name stands in the same word or in the next.
    for name in invoked.arguments.iter().skip(place).take(2) {
        if evaluates_subscript(name) {
            code_word(analysis, name);
        }
    }
}

pub(super) fn printf(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let Some(first) = invoked.argument(0) else { return };
    if first.exact() == Some("-v") {
        if let Some(name) = invoked.argument(1).filter(|name| evaluates_subscript(name)) {
            code_word(analysis, name);
        }
    } else if first.prefix().starts_with("-v") && evaluates_subscript(first) {
        code_word(analysis, first);
    }
}

/// `test -v name` and `-R` evaluate a subscript; the other operators do not.
pub(super) fn test(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    for (index, field) in invoked.arguments.iter().enumerate() {
        if matches!(field.exact(), Some("-v" | "-R"))
            && let Some(name) = invoked.argument(index + 1).filter(|name| evaluates_subscript(name))
        {
            code_word(analysis, name);
        }
    }
}
