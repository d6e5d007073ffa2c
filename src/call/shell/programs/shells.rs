//! Shells as programs: `bash -c`, scripts from files and streams.

use super::Invoked;
use crate::call::effects::{Access, PathOrigin, Span, UnresolvedReason};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::{Analysis, Input, Walked};

/// Shells whose language is read as bash.
const SHELLS: [&str; 8] = ["bash", "sh", "dash", "ash", "ksh", "mksh", "rbash", "yash"];
/// Shells with a language of their own: what can be read of it is judged, and the rest is foreign.
const FOREIGN_SHELLS: [&str; 6] = ["zsh", "fish", "csh", "tcsh", "rc", "elvish"];

/// Spellings that mean something else, or nothing, to a shell that is not bash.
const BASH_ONLY: [&str; 12] =
    ["$'", "$\"", "[[", "<(", ">(", "<<<", "&>", "|&", ";&", "function ", "coproc ", "select "];

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name) || FOREIGN_SHELLS.contains(&name)
}

/// Judges text that a program hands to `sh -c`.
pub(super) fn code(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    text: &str,
    span: Span,
) -> Walked {
    if let Some(word) = outside_posix(text) {
        analysis.unresolved(UnresolvedReason::Syntax, word, span);
    }
    analysis.child_script(text, span, invoked.via(), invoked.call)
}

/// The first spelling in `text` that only bash reads as we do.
fn outside_posix(text: &str) -> Option<&'static str> {
    if let Some(word) = BASH_ONLY.iter().find(|word| text.contains(**word)) {
        return Some(word);
    }
    let double = text
        .match_indices("((")
        .any(|(at, _)| !text.get(..at).is_some_and(|before| before.ends_with(['$', '('])));
    (double || text.contains("alias ")).then_some("((")
}

/// Where the script comes from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The first operand names it; without one it is standard input.
    #[default]
    File,
    /// The first operand is it (`-c`).
    Command,
    /// Standard input, whatever the operands (`-s`).
    StandardInput,
}

/// How a shell was called.
#[derive(Debug, Default)]
struct Options {
    source: Source,
    /// Reads start-up files that may define anything.
    interactive: bool,
    /// Index of the first operand.
    operand: usize,
    unclear: bool,
    /// Changes how the script is read.
    changes_reading: bool,
}

fn options(fields: &[Field]) -> Options {
    let mut options = Options::default();
    while let Some(field) = fields.get(options.operand) {
        let Some(text) = field.exact() else {
            options.unclear |= field.prefix().is_empty() || field.prefix().starts_with(['-', '+']);
            return options;
        };
        if text == "--" || text == "-" {
            options.operand += 1;
            return options;
        }
        if text.len() < 2 || !text.starts_with(['-', '+']) {
            return options;
        }
        options.operand += 1;
        let takes_value = match text.strip_prefix("--") {
            Some(long) => options.long(long),
            None => options.cluster(text.get(1..).unwrap_or("")),
        };
        if takes_value {
            let value = fields.get(options.operand).and_then(Field::exact);
            options.changes_reading |= !value.is_some_and(harmless_setting);
            options.operand += 1;
        }
    }
    options
}

/// Values of `-o` and `-O` that do not change how a script is read.
fn harmless_setting(name: &str) -> bool {
    super::builtins::is_harmless_setting(name) || name == "extglob"
}

impl Options {
    fn long(&mut self, name: &str) -> bool {
        match name {
            "rcfile" | "init-file" => {
                self.interactive = true;
                true
            }
            "norc" | "noprofile" | "login" | "noediting" | "verbose" | "version" | "help"
            | "restricted" => false,
            "posix" => {
                self.changes_reading = true;
                false
            }
            _ => {
                self.unclear = true;
                false
            }
        }
    }

    fn cluster(&mut self, letters: &str) -> bool {
        let mut takes_value = false;
        for letter in letters.chars() {
            match letter {
                'c' => self.source = Source::Command,
                's' if self.source == Source::File => self.source = Source::StandardInput,
                's' => {}
                'i' => self.interactive = true,
                'o' | 'O' => takes_value = true,
                'a' | 'b' | 'e' | 'f' | 'h' | 'l' | 'm' | 'n' | 'p' | 'r' | 't' | 'u' | 'v'
                | 'x' | 'C' | 'E' | 'P' | 'T' | 'D' => {}
                'k' | 'B' | 'H' => self.changes_reading = true,
                _ => self.unclear = true,
            }
        }
        takes_value
    }
}

pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let options = options(invoked.arguments);
    let span = invoked.call.span;
    if options.unclear {
        analysis.unresolved(UnresolvedReason::CodeWord, invoked.name, span);
        return Ok(());
    }
    if options.changes_reading || options.interactive {
        analysis.unresolved(UnresolvedReason::ShellState, invoked.name, span);
    }
    let operand = invoked.argument(options.operand);
    match (options.source, operand) {
        (Source::Command, code) => command_string(analysis, invoked, code),
        (Source::File, Some(file)) => script_file(analysis, invoked, file),
        (Source::File, None) | (Source::StandardInput, _) => standard_input(analysis, invoked),
    }
}

fn command_string(analysis: &mut Analysis, invoked: &Invoked<'_>, code: Option<&Field>) -> Walked {
    let Some(field) = code else { return Ok(()) };
    if let Some(text) = &field.filled {
        // What stands around the names is judged as it is; a name could still be more than a word.
        analysis.unresolved(UnresolvedReason::InsertedWord, &field.text, field.span);
        return text_of(analysis, invoked, text, field.span);
    }
    let Some(text) = field.exact() else {
        analysis.unresolved(UnresolvedReason::CodeWord, &field.text, field.span);
        return Ok(());
    };
    text_of(analysis, invoked, text, field.span)
}

/// Judges a script that this shell runs.
fn text_of(analysis: &mut Analysis, invoked: &Invoked<'_>, text: &str, span: Span) -> Walked {
    if FOREIGN_SHELLS.contains(&invoked.name) {
        analysis.inline_code(invoked.index, "-c");
    }
    if matches!(invoked.name, "bash" | "rbash") {
        return analysis.child_script(text, span, invoked.via(), invoked.call);
    }
    self::code(analysis, invoked, text, span)
}

fn script_file(analysis: &mut Analysis, invoked: &Invoked<'_>, file: &Field) -> Walked {
    let Some(path) = file.exact() else {
        // Of a file in a known directory only its name is open.
        let is_in_place = file.prefix().contains('/') && !is_stream(file.prefix());
        let reason = if is_in_place && file.pattern.is_some() {
            let origin = PathOrigin::ProgramArgument { program: invoked.name.to_owned() };
            analysis.path(file, Access::Execute, origin);
            UnresolvedReason::PathWord
        } else {
            UnresolvedReason::ForeignCode
        };
        analysis.unresolved(reason, &file.text, file.span);
        return Ok(());
    };
    if path == "/dev/stdin" || path == "/dev/fd/0" || path == "/proc/self/fd/0" {
        return standard_input(analysis, invoked);
    }
    if is_stream(path) {
        analysis.unresolved(UnresolvedReason::ForeignCode, path, file.span);
    }
    let origin = PathOrigin::ProgramArgument { program: invoked.name.to_owned() };
    analysis.path(file, Access::Execute, origin);
    Ok(())
}

/// A path that is not a file: what it gives cannot be read before it runs.
pub(super) fn is_stream(path: &str) -> bool {
    path.starts_with("/dev/") || path.starts_with("/proc/")
}

pub(super) fn standard_input(analysis: &mut Analysis, invoked: &Invoked<'_>) -> Walked {
    let span = invoked.call.span;
    match &invoked.call.input {
        Input::Text(text) => text_of(analysis, invoked, text, span),
        Input::Names { .. } | Input::File | Input::Stream => {
            analysis.unresolved(UnresolvedReason::ForeignCode, invoked.name, span);
            Ok(())
        }
    }
}
