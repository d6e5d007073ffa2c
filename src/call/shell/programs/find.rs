//! `find`, `xargs` and `parallel`: programs that run a command with words from elsewhere.

use super::options::{Options, read};
use super::{Invoked, shells};
use crate::call::effects::{Access, PathOrigin, UnresolvedReason};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Walked};

/// Replaces the words in which `mark` stands by unknown ones.
fn replaced(fields: &[Field], mark: &str) -> Vec<Field> {
    fields
        .iter()
        .map(|field| match field.value.find(mark) {
            Some(at) => Field {
                value: field.value.get(..at).unwrap_or("").to_owned(),
                unknown: true,
                many: field.value == mark,
                ..field.clone()
            },
            None => field.clone(),
        })
        .collect()
}

pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let expression = invoked
        .arguments
        .iter()
        .position(|field| field.prefix().starts_with(['-', '(', '!']) && !is_global(field.prefix()))
        .unwrap_or(invoked.arguments.len());
    let roots: Vec<&Field> = invoked
        .arguments
        .iter()
        .take(expression)
        .filter(|field| !is_global(field.prefix()))
        .collect();
    touch_roots(analysis, invoked, &roots, Access::Read);
    let mut index = expression;
    while let Some(field) = invoked.argument(index) {
        index += 1;
        match field.exact() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let tail = invoked.arguments.get(index..).unwrap_or_default();
                let length = tail.iter().position(ends_command).unwrap_or(tail.len());
                let mut command = replaced(tail.get(..length).unwrap_or_default(), "{}");
                if field.value == "-exec" {
                    below_root(&mut command, &roots);
                }
                index += length + 1;
                if !command.is_empty() {
                    analysis.run(invoked.inner(&command))?;
                }
            }
            Some("-delete") => touch_roots(analysis, invoked, &roots, Access::Write),
            Some("-fprint" | "-fprint0" | "-fls" | "-fprintf") => {
                if let Some(file) = invoked.argument(index) {
                    analysis.path(file, Access::Write, origin(invoked));
                }
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// Gives each `{}` that stands alone the only root as its beginning.
fn below_root(command: &mut [Field], roots: &[&Field]) {
    let root = match roots {
        [] => ".",
        [root] => match root.exact() {
            Some(root) => root,
            None => return,
        },
        [_, _, ..] => return,
    };
    for field in command.iter_mut().filter(|field| &*field.text == "{}" && field.unknown) {
        field.value = format!("{}/", root.trim_end_matches('/'));
        field.pattern = Some(field.value.len());
    }
}

fn origin(invoked: &Invoked<'_>) -> PathOrigin {
    PathOrigin::ProgramArgument { program: invoked.name.to_owned() }
}

/// Options that stand in front of the roots.
fn is_global(word: &str) -> bool {
    matches!(word, "-H" | "-L" | "-P") || word.starts_with("-O")
}

/// `;` ends a command, and so does `+`.
fn ends_command(field: &Field) -> bool {
    matches!(field.exact(), Some(";" | "+"))
}

fn touch_roots(analysis: &mut Analysis, invoked: &Invoked<'_>, roots: &[&Field], access: Access) {
    let here = Field::known(".", invoked.call.span);
    let roots = if roots.is_empty() { &[&here] } else { roots };
    let before = analysis.effects.paths.len();
    for root in roots {
        analysis.path(root, access, origin(invoked));
    }
    // Everything below a root is meant.
    analysis.effects.paths.iter_mut().skip(before).for_each(|path| path.is_pattern = true);
}

const XARGS: Options = Options {
    short: "0a:d:E:e::I:i::L:l::n:oP:prs:tx",
    long: &[
        "arg-file=",
        "delimiter=",
        "null",
        "eof?",
        "replace?",
        "max-lines?",
        "max-args=",
        "open-tty",
        "max-procs=",
        "interactive",
        "process-slot-var=",
        "no-run-if-empty",
        "max-chars=",
        "show-limits",
        "verbose",
        "exit",
    ],
    single_dash: false,
};

pub(super) fn xargs(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let given = read(invoked.arguments, &XARGS, true);
    let first = given.operands.first().copied().unwrap_or(invoked.arguments.len());
    let head = invoked.arguments.get(..first).unwrap_or_default();
    let doubtful = given.given.iter().any(|option| !option.described)
        || head.iter().any(|field| field.unknown && field.many);
    if doubtful {
        analysis.unresolved(UnresolvedReason::Wrapper, invoked.name, invoked.call.span);
        return Ok(());
    }
    let fields = invoked.arguments.get(first..).unwrap_or_default();
    if fields.is_empty() {
        return Ok(());
    }
    let replace = given
        .given
        .iter()
        .rev()
        .find(|option| matches!(option.name.as_str(), "-I" | "-i" | "--replace"));
    let command = match replace {
        Some(option) => {
            let mark = option.value.as_ref().map_or("{}", |value| value.value.as_str());
            replaced(fields, if mark.is_empty() { "{}" } else { mark })
        }
        None => {
            let mut command = fields.to_vec();
            command.push(Field::unknown("…", invoked.call.span));
            command
        }
    };
    analysis.run(invoked.inner(&command))
}

/// `parallel` joins its words, fills in inputs and gives the result to a shell.
pub(super) fn parallel(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let options = Options {
        short: "0kqumXj:a:I:n:N:P:S:L:C:d:",
        long: &[
            "jobs=",
            "null",
            "keep-order",
            "arg-file=",
            "bar",
            "eta",
            "halt=",
            "joblog=",
            "results=",
            "retries=",
            "timeout=",
            "tag",
            "verbose",
            "dry-run",
            "no-notice",
            "will-cite",
            "colsep=",
            "max-args=",
            "line-buffer",
            "progress",
            "quote",
            "pipe",
            "block=",
        ],
        single_dash: false,
    };
    let given = read(invoked.arguments, &options, true);
    let first = given.operands.first().copied().unwrap_or(invoked.arguments.len());
    let fields = invoked.arguments.get(first..).unwrap_or_default();
    let sources =
        fields.iter().position(|field| field.value.starts_with(":::")).unwrap_or(fields.len());
    let words: Option<Vec<&str>> =
        fields.get(..sources).unwrap_or_default().iter().map(Field::exact).collect();
    let doubtful = given.given.iter().any(|option| !option.described || option.name == "-I");
    if !doubtful && words.as_ref().is_some_and(Vec::is_empty) {
        return each_source(analysis, invoked, fields.get(sources..).unwrap_or_default());
    }
    let Some(words) = words.filter(|_| !doubtful) else {
        analysis.unresolved(UnresolvedReason::Wrapper, invoked.name, invoked.call.span);
        return Ok(());
    };
    // Inputs are quoted when they are filled in, so that they are words; in the place of a variable
    // they are as unknown as one.
    let script = words
        .join(" ")
        .replace("{}", "\"$input\"")
        .replace("{.}", "\"$input\"")
        .replace("{/}", "\"$input\"");
    if script.contains("{=") {
        analysis.inline_code(invoked.index, "{=");
    }
    shells::code(analysis, invoked, &script, invoked.call.span)
}

/// Without a command, each input of `:::` is one.
fn each_source(analysis: &mut Analysis, invoked: &Invoked<'_>, sources: &[Field]) -> Walked {
    if sources.is_empty() || sources.iter().any(|field| field.value.starts_with("::::")) {
        analysis.unresolved(UnresolvedReason::Wrapper, invoked.name, invoked.call.span);
    }
    for field in sources.iter().filter(|field| !field.value.starts_with(":::")) {
        match field.exact() {
            Some(text) => shells::code(analysis, invoked, text, field.span)?,
            None => analysis.unresolved(UnresolvedReason::CodeWord, &field.text, field.span),
        }
    }
    Ok(())
}
