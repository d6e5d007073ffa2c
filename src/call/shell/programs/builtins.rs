//! Builtins: those that run code, those that change the meaning of what follows, and those that
//! evaluate their arguments.

use super::{Invoked, shells};
use crate::call::effects::{Access, PathOrigin, UnresolvedReason};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::numeric::names;
use crate::call::shell::meaning::state::{Directories, Value};
use crate::call::shell::meaning::walk::{Analysis, Lookup, Walked};
use crate::call::shell::syntax::Origin;

/// Names that this analysis gives a meaning of its own; a function may not take them over.
const OWN_MEANING: [&str; 46] = [
    ".",
    ":",
    "[",
    "alias",
    "bind",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "declare",
    "dirs",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "test",
    "trap",
    "true",
    "false",
    "type",
    "typeset",
    "unalias",
    "unset",
    "wait",
    "bash",
    "sh",
];

/// Whether a function of this name would change how the analysis reads what follows.
pub(crate) fn has_own_meaning(name: &str) -> bool {
    OWN_MEANING.contains(&name)
}

/// Builtins that the facts of a script are gathered from, so that they must be seen before the walk.
const SEEN_BEFORE: [&str; 26] = [
    "eval",
    "source",
    ".",
    "trap",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "unset",
    "let",
    "wait",
    "printf",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "cd",
    "pushd",
    "popd",
    "command",
    "builtin",
    "exec",
    "alias",
    "set",
    "shopt",
];

/// Settings of `set -o` and `shopt` that do not change how a script is read.
pub(super) fn is_harmless_setting(name: &str) -> bool {
    matches!(
        name,
        "errexit"
            | "nounset"
            | "pipefail"
            | "xtrace"
            | "verbose"
            | "noglob"
            | "noclobber"
            | "allexport"
            | "errtrace"
            | "functrace"
            | "monitor"
            | "notify"
            | "physical"
            | "hashall"
            | "noexec"
            | "nullglob"
            | "failglob"
            | "globstar"
            | "dotglob"
            | "nocaseglob"
            | "nocasematch"
            | "lastpipe"
            | "inherit_errexit"
            | "extglob"
            | "globasciiranges"
            | "checkwinsize"
            | "cmdhist"
            | "histappend"
            | "sourcepath"
            | "autocd"
            | "cdspell"
            | "progcomp"
            | "checkhash"
            | "dirspell"
    )
}

/// How the word behind a prefix builtin is looked up.
pub(super) fn lookup_behind(invoked: &Invoked<'_>) -> Lookup {
    match (invoked.name, invoked.call.lookup) {
        ("command" | "builtin", Lookup::Shell | Lookup::Builtin) => Lookup::Builtin,
        (_, Lookup::Shell | Lookup::Builtin | Lookup::Program) => Lookup::Program,
    }
}

/// Judges a builtin. True if nothing else remains to be judged.
pub(super) fn run(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
) -> Result<bool, crate::call::shell::syntax::TooLarge> {
    let program = invoked.call.fields.first();
    let spelled_out = program.is_some_and(|program| *program.text == *program.value);
    if !spelled_out && SEEN_BEFORE.contains(&invoked.name) {
        state(analysis, invoked);
    }
    match invoked.name {
        "eval" => eval(analysis, invoked)?,
        "source" | "." => source(analysis, invoked),
        "trap" => trap(analysis, invoked)?,
        "cd" => change_directory(analysis, invoked),
        "pushd" => push_directory(analysis, invoked),
        "popd" => pop_directory(analysis),
        "set" => set(analysis, invoked),
        "shopt" => shopt(analysis, invoked),
        "alias" => alias(analysis, invoked),
        "enable" | "bind" | "fc" => state(analysis, invoked),
        "hash"
            if !only(invoked, |word| {
                matches!(word, "-r" | "-t" | "-l" | "-d") || !word.starts_with('-')
            }) =>
        {
            state(analysis, invoked)
        }
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(analysis, invoked),
        "let" => invoked.arguments.iter().for_each(|field| expression(analysis, field)),
        "wait" => wait(analysis, invoked),
        "read" | "unset" | "getopts" => variable_names(analysis, invoked, invoked.arguments),
        "mapfile" | "readarray" => {
            variable_names(analysis, invoked, invoked.arguments);
            return Ok(false);
        }
        "printf" => printf(analysis, invoked),
        "test" | "[" => test(analysis, invoked),
        "jobs" if invoked.argument(0).and_then(Field::exact) == Some("-x") => {
            analysis.run(invoked.inner(invoked.arguments.get(1..).unwrap_or_default()))?;
        }
        "hash" | "jobs" | "echo" | "pwd" | ":" | "true" | "false" | "exit" | "return" | "break"
        | "continue" | "shift" | "times" | "umask" | "ulimit" | "type" | "kill" | "dirs" | "bg"
        | "fg" | "disown" | "suspend" | "logout" | "history" | "help" | "caller" | "unalias" => {}
        _ => return Ok(false),
    }
    Ok(true)
}

fn only(invoked: &Invoked<'_>, allowed: impl Fn(&str) -> bool) -> bool {
    invoked.arguments.iter().all(|field| field.exact().is_some_and(&allowed))
}

fn state(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    analysis.unresolved(UnresolvedReason::ShellState, invoked.name, invoked.call.span);
}

fn code_word(analysis: &mut Analysis, field: &Field) {
    analysis.unresolved(UnresolvedReason::CodeWord, &field.text, field.span);
}

fn eval(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let words: Option<Vec<&str>> = invoked.arguments.iter().map(Field::exact).collect();
    let Some(mut words) = words else {
        analysis.unresolved(UnresolvedReason::CodeWord, "eval", invoked.call.span);
        return Ok(());
    };
    if words.first() == Some(&"--") {
        words.remove(0);
    }
    run_in_shell(analysis, invoked, &words.join(" "))
}

/// Judges code that this shell itself runs.
fn run_in_shell(analysis: &mut Analysis, invoked: &Invoked<'_>, text: &str) -> Walked {
    analysis.deeper(|analysis| {
        analysis.take_text(text.len())?;
        analysis.script(text, Origin::Fixed(invoked.call.span), false)
    })
}

/// A file that is run in this shell is workspace code like a script that is run by name: the cell
/// holds it. What it changes makes every variable uncertain.
fn source(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let file = invoked.arguments.iter().find(|field| field.exact() != Some("--"));
    let Some(file) = file else { return };
    let Some(path) = file.exact() else {
        return analysis.unresolved(UnresolvedReason::ForeignCode, &file.text, file.span);
    };
    if shells::is_stream(path) {
        analysis.unresolved(UnresolvedReason::ForeignCode, path, file.span);
    }
    let origin = PathOrigin::ProgramArgument { program: invoked.name.to_owned() };
    analysis.path(file, Access::Execute, origin);
}

fn trap(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let mut arguments = invoked.arguments;
    if arguments
        .first()
        .and_then(Field::exact)
        .is_some_and(|word| matches!(word, "-p" | "-l" | "-P"))
    {
        return Ok(());
    }
    if arguments.first().and_then(Field::exact) == Some("--") {
        arguments = arguments.get(1..).unwrap_or_default();
    }
    let Some(action) = arguments.first() else { return Ok(()) };
    match action.exact() {
        Some("-" | "") => Ok(()),
        Some(text) => {
            let outer = std::mem::replace(&mut analysis.shell.in_function, true);
            let directories = analysis.shell.directories.clone();
            let result = run_in_shell(analysis, invoked, text);
            analysis.shell.in_function = outer;
            analysis.shell.directories = directories;
            result
        }
        None => {
            code_word(analysis, action);
            Ok(())
        }
    }
}

fn change_directory(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let target = invoked
        .arguments
        .iter()
        .find(|field| !matches!(field.exact(), Some("--" | "-P" | "-L" | "-e" | "-@")));
    let next = match target.map(Field::exact) {
        None => directory_of(analysis, "HOME"),
        Some(Some("-")) => analysis.shell.previous.clone(),
        Some(Some("")) => analysis.shell.directories.clone(),
        Some(Some(path)) => relative_target(analysis, invoked, path),
        Some(None) => Directories::unknown(),
    };
    enter(analysis, next);
}

/// With `CDPATH` a relative name is looked up in other directories first.
fn relative_target(analysis: &Analysis, invoked: &Invoked<'_>, path: &str) -> Directories {
    let here = analysis.shell.directories.entered(path);
    if path.starts_with(['/', '.']) {
        return here;
    }
    let in_front = invoked.call.assignments.iter().find(|assignment| assignment.name == "CDPATH");
    let searched = match in_front {
        Some(assignment) => assignment.value.known().map(ToOwned::to_owned),
        None => match analysis.shell.value("CDPATH") {
            Value::Known(value) => Some(value),
            // The environment of a cell is ours, and holds no `CDPATH` that is not known.
            Value::Environment => return here,
            Value::Number | Value::Unknown => None,
        },
    };
    let Some(searched) = searched else { return Directories::unknown() };
    searched.split(':').fold(here, |found, directory| {
        let directory = if directory.is_empty() { "." } else { directory };
        found.or(&analysis.shell.directories.entered(&format!("{directory}/{path}")))
    })
}

fn directory_of(analysis: &Analysis, name: &str) -> Directories {
    match analysis.shell.value(name) {
        Value::Known(path) => analysis.shell.directories.entered(&path),
        Value::Number | Value::Environment | Value::Unknown => Directories::unknown(),
    }
}

fn enter(analysis: &mut Analysis, next: Directories) {
    analysis.shell.previous = std::mem::replace(&mut analysis.shell.directories, next);
}

fn push_directory(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    analysis.shell.stack.push(analysis.shell.directories.clone());
    let target =
        invoked.arguments.iter().find_map(|field| field.exact().filter(|word| *word != "--"));
    let next = match target {
        Some(path) if !path.starts_with(['-', '+']) => relative_target(analysis, invoked, path),
        Some(_) | None => Directories::unknown(),
    };
    enter(analysis, next);
}

fn pop_directory(analysis: &mut Analysis) {
    let next = analysis.shell.stack.pop().unwrap_or_else(Directories::unknown);
    enter(analysis, next);
}

fn set(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let mut words = invoked.arguments.iter();
    while let Some(field) = words.next() {
        let Some(text) = field.exact() else { return state(analysis, invoked) };
        if matches!(text, "--" | "-") || !text.starts_with(['-', '+']) {
            return;
        }
        let letters = text.get(1..).unwrap_or("");
        if !letters.chars().all(|letter| "euxvfahmnbCETo".contains(letter)) {
            return state(analysis, invoked);
        }
        if letters.contains('o') {
            let Some(setting) = words.next() else { return };
            if !setting.exact().is_some_and(is_harmless_setting) {
                return state(analysis, invoked);
            }
            analysis.shell.stops_on_error |= text.starts_with('-') && setting.value == "errexit";
        }
        if letters.contains('e') {
            analysis.shell.stops_on_error = text.starts_with('-');
        }
    }
}

fn shopt(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let harmless = only(invoked, |word| {
        matches!(word, "-s" | "-u" | "-p" | "-q" | "-o" | "-so" | "-uo")
            || is_harmless_setting(word)
    });
    if !harmless {
        state(analysis, invoked);
    }
}

/// Aliases are expanded only by interactive and POSIX shells, or after `expand_aliases`, which is a
/// change of state of its own; the definition is refused where it could take effect.
fn alias(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let defines = !only(invoked, |word| !word.contains('='));
    if defines && analysis.aliases_possible {
        state(analysis, invoked);
    }
}

fn declare(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let mut evaluates = false;
    for field in invoked.arguments {
        match field.exact() {
            Some(option) if option.starts_with(['-', '+']) => {
                evaluates |= option.contains('i');
                if option.contains('f') && invoked.name == "export"
                    || option.contains('n') && invoked.name != "export"
                {
                    state(analysis, invoked);
                }
            }
            Some(_) | None => declared(analysis, invoked, field, evaluates),
        }
    }
}

fn declared(analysis: &mut Analysis, invoked: &Invoked<'_>, field: &Field, evaluates: bool) {
    let Some(assignment) = super::runner::assignment(field) else {
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
    let doubtful = evaluates
        && assignment
            .value
            .known()
            .is_none_or(|value| names(value).next().is_some() || value.contains('['));
    if subscript || doubtful {
        code_word(analysis, field);
    }
    analysis.shell.assign(&name, assignment.value.known());
    let assignment = crate::call::effects::Assignment { name, ..assignment };
    analysis.effects.assignments.push(assignment);
}

/// An argument of `let`.
fn expression(analysis: &mut Analysis, field: &Field) {
    let harmless = field.exact().is_some_and(|text| {
        !text.contains(['$', '`'])
            && names(text).all(|name| {
                matches!(analysis.shell.value(name), Value::Number | Value::Environment)
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

fn variable_names(analysis: &mut Analysis, invoked: &Invoked<'_>, fields: &[Field]) {
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
fn wait(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let option = invoked.arguments.iter().position(|field| field.exact() == Some("-p"));
    let name = option.and_then(|place| invoked.argument(place + 1));
    if let Some(name) = name.filter(|name| evaluates_subscript(name)) {
        code_word(analysis, name);
    }
}

fn printf(analysis: &mut Analysis, invoked: &Invoked<'_>) {
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
fn test(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    for (index, field) in invoked.arguments.iter().enumerate() {
        if matches!(field.exact(), Some("-v" | "-R"))
            && let Some(name) = invoked.argument(index + 1).filter(|name| evaluates_subscript(name))
        {
            code_word(analysis, name);
        }
    }
}
