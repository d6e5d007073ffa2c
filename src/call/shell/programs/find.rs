//! `find` and `xargs`: programs that run a command with words from elsewhere.

use super::Invoked;
use super::options::{Options, Read, read};
use crate::call::effects::{Access, PathOrigin, UnresolvedReason};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Input, Walked};

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
                named(&mut command, tail, "{}", HERE);
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

/// Remembers of each word into which names of files are put what stands around them.
fn named(command: &mut [Field], written: &[Field], mark: &str, variable: &str) {
    for (field, written) in command.iter_mut().zip(written) {
        let names = written.exact().filter(|text| text.contains(mark));
        field.filled = names.map(|text| text.replace(mark, variable).into());
    }
}

/// What stands in code for a name of a file that was found, and for one that may lie anywhere: rules tell
/// them apart.
const HERE: &str = "${name}";
const ANYWHERE: &str = "${input}";

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
    short: "0a:d:E:e::I:i::J:L:l::n:oP:prs:tx",
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
    for command in filled(invoked, &given, fields) {
        analysis.run(invoked.inner(&command))?;
    }
    Ok(())
}

/// Lines of known input that are each judged as a command; of more than these the input counts as
/// unknown.
const LINES_MAX: usize = 64;

/// The commands that `xargs` runs, each with its input in place: as it is where it is known, else
/// unknown.
fn filled(invoked: &Invoked<'_>, given: &Read, fields: &[Field]) -> Vec<Vec<Field>> {
    let mark = |option: &super::options::Given| match (option.name.as_str(), &option.value) {
        ("-I" | "-J", Some(value)) => Some(value.value.clone()),
        ("-i" | "--replace", value) => {
            let mark = value.as_ref().map_or("{}", |value| value.value.as_str());
            Some(if mark.is_empty() { "{}" } else { mark }.to_owned())
        }
        _ => None,
    };
    let span = invoked.call.span;
    let replace = given.given.iter().rev().find_map(|option| Some((option, mark(option)?)));
    let known = known_input(invoked, given);
    match (replace, known) {
        (Some((option, mark)), Some(text)) if option.name != "-J" => {
            let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
            let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            if lines.len() > LINES_MAX {
                return vec![replaced(fields, &mark)];
            }
            let each = |line: &&str| fields.iter().map(|field| with(field, &mark, line)).collect();
            lines.iter().map(each).collect()
        }
        // All of the input takes the place of the mark.
        (Some((option, mark)), _) if option.name == "-J" => {
            let rest = || Field::unknown("…", span);
            let each = |field: &Field| if field.value == mark { rest() } else { field.clone() };
            vec![fields.iter().map(each).collect()]
        }
        (Some((_, mark)), _) => {
            let mut command = replaced(fields, &mark);
            if let Some(Input::Names { below_here }) = names_read(invoked, given) {
                named(&mut command, fields, &mark, if *below_here { HERE } else { ANYWHERE });
            }
            vec![command]
        }
        (None, Some(text)) => {
            let items = text.split_ascii_whitespace().map(|item| Field::known(item, span));
            vec![fields.iter().cloned().chain(items).collect()]
        }
        (None, None) => {
            let mut rest = Field::unknown("…", span);
            if names_read(invoked, given) == Some(&Input::Names { below_here: true }) {
                rest.text = "./…".into();
                rest.value = "./".to_owned();
                rest.pattern = Some(rest.value.len());
            }
            vec![fields.iter().cloned().chain([rest]).collect()]
        }
    }
}

/// What `xargs` reads, unless a file is named instead.
fn names_read<'call>(invoked: &'call Invoked<'_>, given: &Read) -> Option<&'call Input> {
    let is_file = |name: &str| matches!(name, "-a" | "--arg-file");
    let reads_file = given.given.iter().any(|option| is_file(&option.name));
    (!reads_file).then_some(&invoked.call.input)
}

/// A word with the mark filled in.
fn with(field: &Field, mark: &str, value: &str) -> Field {
    match field.exact() {
        Some(text) if text.contains(mark) => Field::known(&text.replace(mark, value), field.span),
        Some(_) | None => field.clone(),
    }
}

/// What `xargs` reads, if it is known, in words as every `xargs` splits it, and given to one command.
fn known_input<'call>(invoked: &'call Invoked<'_>, given: &Read) -> Option<&'call str> {
    let Input::Text(text) = &invoked.call.input else { return None };
    let is_plain = |name: &str| {
        matches!(
            name,
            "-r" | "-t"
                | "-x"
                | "-P"
                | "-I"
                | "-i"
                | "--replace"
                | "--no-run-if-empty"
                | "--verbose"
                | "--exit"
                | "--max-procs"
        )
    };
    let plain = given.given.iter().all(|option| is_plain(&option.name));
    // Of a command that gets nothing to work on the words are of interest all the same.
    (plain && !text.is_empty() && !text.contains(['\'', '"', '\\'])).then_some(text)
}
