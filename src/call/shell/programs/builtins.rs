//! Builtins: those that run code, those that change the meaning of what follows, and those that
//! evaluate their arguments.

use super::{Invoked, directories, shells, variables};
use crate::call::effects::{Access, PathOrigin, UnresolvedReason, Word};
use crate::call::shell::meaning::fields::Field;
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
const SEEN_BEFORE: [&str; 28] = [
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
    "compgen",
    "set",
    "shift",
    "shopt",
];

/// Settings of `set -o` and `shopt` that do not change how a script is read.
pub(crate) fn is_harmless_setting(name: &str) -> bool {
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
        analysis.shell.beliefs.shaken.set(true);
        state(analysis, invoked);
    }
    match invoked.name {
        "eval" => eval(analysis, invoked)?,
        "source" | "." => source(analysis, invoked),
        "trap" => trap(analysis, invoked)?,
        "cd" => directories::change_directory(analysis, invoked),
        "pushd" => directories::push_directory(analysis, invoked),
        "popd" => directories::pop_directory(analysis),
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
        "export" | "declare" | "typeset" | "local" | "readonly" => {
            variables::declare(analysis, invoked)
        }
        "let" => invoked.arguments.iter().for_each(|field| variables::expression(analysis, field)),
        "wait" => variables::wait(analysis, invoked),
        "read" | "unset" | "getopts" => {
            variables::variable_names(analysis, invoked, invoked.arguments)
        }
        "mapfile" | "readarray" => {
            variables::variable_names(analysis, invoked, invoked.arguments);
            return Ok(false);
        }
        "printf" => variables::printf(analysis, invoked),
        "test" | "[" => variables::test(analysis, invoked),
        "jobs" if invoked.argument(0).and_then(Field::exact) == Some("-x") => {
            analysis.run(invoked.inner(invoked.arguments.get(1..).unwrap_or_default()))?;
        }
        "kill" => own_jobs(analysis, invoked),
        "hash" | "jobs" | "echo" | "pwd" | ":" | "true" | "false" | "exit" | "return" | "break"
        | "continue" | "shift" | "times" | "umask" | "ulimit" | "type" | "dirs" | "bg" | "fg"
        | "disown" | "suspend" | "logout" | "history" | "help" | "caller" | "unalias" => {}
        _ => return Ok(false),
    }
    Ok(true)
}

/// Words that certainly name this shell or what it started itself are all shown as `$!`, however they
/// are spelled, so that a rule can tell them from other processes.
fn own_jobs(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let is_own: Vec<bool> =
        invoked.arguments.iter().map(|field| names_own_job(analysis, field)).collect();
    let Some(command) = analysis.effects.commands.get_mut(invoked.index) else { return };
    for (word, is_own) in command.arguments.iter_mut().zip(is_own) {
        if is_own {
            *word = Word::Unknown { text: "$!".to_owned(), prefix: String::new() };
        }
    }
}

fn names_own_job(analysis: &Analysis, field: &Field) -> bool {
    let text = &*field.text;
    let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let is_first = matches!(bare, "$(jobs -p)" | "$(jobs -pr)" | "$(jobs -rp)");
    if is_first && !analysis.shell.facts.functions.contains_key("jobs") {
        return true;
    }
    let Some(name) = bare.strip_prefix('$') else { return false };
    let name = name.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(name);
    let name = name.strip_suffix("[@]").or_else(|| name.strip_suffix("[*]")).unwrap_or(name);
    let child = analysis.shell.facts.variables.get(name).is_some_and(|assigned| assigned.child);
    matches!(name, "!" | "$" | "BASHPID") || child && !analysis.shell.is_poisoned()
}

fn only(invoked: &Invoked<'_>, allowed: impl Fn(&str) -> bool) -> bool {
    invoked.arguments.iter().all(|field| field.exact().is_some_and(&allowed))
}

pub(super) fn state(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    analysis.unresolved(UnresolvedReason::ShellState, invoked.name, invoked.call.span);
}

pub(super) fn code_word(analysis: &mut Analysis, field: &Field) {
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
    // Its parameters are those of the place where it will run.
    let function = analysis.shell.function.take();
    let walked = analysis.deeper(|analysis| {
        analysis.take_text(text.len())?;
        analysis.script(text, Origin::Fixed(invoked.call.span), false)
    });
    analysis.shell.function = function;
    walked
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
