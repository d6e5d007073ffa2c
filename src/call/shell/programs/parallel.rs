//! `parallel`: joins its words, fills in inputs and gives the result to a shell.
//!
//! Where all inputs stand in the command line, or in text that is known, each command that comes of
//! them is judged; else one with the inputs in the place of a variable, which is as unknown as they.

use super::options::{Options, Read, read};
use super::{Invoked, shells};
use crate::call::effects::UnresolvedReason;
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Input, Walked};

const PARALLEL: Options = Options {
    short: "0kqumXj:a:I:n:N:P:S:L:C:d:t",
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
        "ungroup",
        "max-procs=",
        "no-run-if-empty",
    ],
    single_dash: false,
};

/// Options that change neither what is filled in nor where.
const PLAIN: &[&str] = &[
    "-k",
    "-u",
    "-j",
    "-P",
    "-t",
    "--jobs",
    "--max-procs",
    "--keep-order",
    "--bar",
    "--eta",
    "--halt",
    "--joblog",
    "--results",
    "--retries",
    "--timeout",
    "--tag",
    "--verbose",
    "--dry-run",
    "--no-notice",
    "--will-cite",
    "--line-buffer",
    "--progress",
    "--ungroup",
    "--no-run-if-empty",
    "-q",
    "--quote",
];

/// Commands that come of known inputs and are each judged; of more than these the inputs count as
/// unknown.
const COMMANDS_MAX: usize = 64;

/// An input in the text for the shell, where it is not known.
const UNKNOWN: &str = "\"$input\"";

pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let given = read(invoked.arguments, &PARALLEL, true);
    let first = given.operands.first().copied().unwrap_or(invoked.arguments.len());
    let fields = invoked.arguments.get(first..).unwrap_or_default();
    let sources =
        fields.iter().position(|field| field.value.starts_with(":::")).unwrap_or(fields.len());
    let (words, sources) = fields.split_at(sources);
    let has = |names: [&str; 2]| given.given.iter().any(|o| names.contains(&o.name.as_str()));
    let is_quoted = has(["-q", "--quote"]);
    let word = |field: &Field| {
        let text = field.exact()?;
        if is_quoted { kept(text) } else { Some(text.to_owned()) }
    };
    let words: Option<Vec<String>> = words.iter().map(word).collect();
    let is_doubtful = given.given.iter().any(|option| !option.described || option.name == "-I");
    let Some(words) = words.filter(|_| !is_doubtful) else {
        analysis.unresolved(UnresolvedReason::Wrapper, invoked.name, invoked.call.span);
        return Ok(());
    };
    if words.is_empty() {
        return each_source(analysis, invoked, sources);
    }
    let template = words.join(" ");
    if template.contains("{=") {
        analysis.inline_code(invoked.index, "{=");
    }
    match inputs(invoked, &given, sources) {
        Some(rows) => {
            for row in &rows {
                let quoted: Vec<String> = row.iter().map(|value| quote(value)).collect();
                let script = fill(&template, &quoted.join(" "), &quoted);
                shells::code(analysis, invoked, &script, invoked.call.span)?;
            }
            Ok(())
        }
        None => {
            // With `--pipe` the input is what the command reads, and no part of it.
            let script = if has(["--pipe", "--spreadstdin"]) {
                template
            } else {
                fill(&template, UNKNOWN, &[])
            };
            shells::code(analysis, invoked, &script, invoked.call.span)
        }
    }
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

/// Every combination of the inputs, one of each source, if all of them are known.
fn inputs(invoked: &Invoked<'_>, given: &Read, sources: &[Field]) -> Option<Vec<Vec<String>>> {
    if !given.given.iter().all(|option| PLAIN.contains(&option.name.as_str())) {
        return None;
    }
    if sources.is_empty() {
        let Input::Text(text) = &invoked.call.input else { return None };
        let rows: Vec<Vec<String>> = text.lines().map(|line| vec![line.to_owned()]).collect();
        return (1..=COMMANDS_MAX).contains(&rows.len()).then_some(rows);
    }
    let mut rows = vec![Vec::new()];
    for source in sources.split(|field| field.value == ":::").skip(1) {
        let values: Vec<&str> = source.iter().map(Field::exact).collect::<Option<_>>()?;
        let is_other = |value: &&str| value.starts_with(":::");
        if values.iter().any(is_other) || rows.len() * values.len() > COMMANDS_MAX {
            return None;
        }
        let with = |row: &Vec<String>, value: &str| {
            row.iter().cloned().chain([value.to_owned()]).collect::<Vec<String>>()
        };
        rows = rows.iter().flat_map(|row| values.iter().map(|value| with(row, value))).collect();
    }
    // A source of another kind in front of the first `:::`.
    sources.first().is_some_and(|field| field.value == ":::").then_some(rows)
}

/// The template with inputs in the place of its marks, or behind it where it has none.
fn fill(template: &str, whole: &str, each: &[String]) -> String {
    let mut script = String::new();
    let mut rest = template;
    let mut has_mark = false;
    while let Some((before, after)) = rest.split_once('{') {
        script.push_str(before);
        match after.split_once('}').filter(|(mark, _)| is_mark(mark)) {
            Some((mark, behind)) => {
                has_mark = true;
                script.push_str(value_of(mark, whole, each));
                rest = behind;
            }
            None => {
                script.push('{');
                rest = after;
            }
        }
    }
    script.push_str(rest);
    if !has_mark {
        script.push(' ');
        script.push_str(whole);
    }
    script
}

/// `{}`, `{.}`, `{2}`, `{2/.}`, `{#}` and their kin.
fn is_mark(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || b"./#%+-:".contains(&byte))
        || text.starts_with('=')
}

fn value_of<'v>(mark: &str, whole: &'v str, each: &'v [String]) -> &'v str {
    match mark {
        "" => whole,
        // Numbers of the job.
        "#" | "%" => "1",
        _ => {
            let place = mark.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            place.and_then(|place| each.get(place)).map_or(UNKNOWN, String::as_str)
        }
    }
}

/// A word of the template as one word of a shell, unless a mark stands in it among other text.
fn kept(word: &str) -> Option<String> {
    let mark = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if mark.is_some_and(is_mark) {
        return Some(word.to_owned());
    }
    (!word.contains('{')).then(|| quote(word))
}

/// `value` as one word of a shell.
fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}
