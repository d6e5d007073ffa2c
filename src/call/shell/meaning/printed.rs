//! What a command certainly prints: `echo` and `printf` of known words, and `cat` of known text. It
//! becomes the value of a substitution, or the standard input of the next command of a pipeline.
//!
//! Only what every shell prints alike is told.

use super::state::Shell;
use super::walk::{Analysis, Input};
use crate::call::shell::syntax::ast::{Command, CommandKind, List, Redirect};

impl Shell {
    /// The value of `$(…)`: what its commands print, without the line ends behind it.
    pub(crate) fn substituted(&self, body: &List) -> Option<String> {
        let [item] = body.as_slice() else { return None };
        let [command] = item.first.commands.as_slice() else { return None };
        if item.background || !item.rest.is_empty() {
            return None;
        }
        let mut text = self.printed(command)?;
        text.truncate(text.trim_end_matches('\n').len());
        Some(text)
    }

    fn printed(&self, command: &Command) -> Option<String> {
        let words = self.plain_words(command)?;
        let (program, arguments) = words.split_first()?;
        match program.as_str() {
            "echo" => echo(arguments),
            "printf" => printf(arguments),
            _ => None,
        }
    }

    /// The words of an `echo` or `printf` of which everything is known and nothing is redirected. A
    /// function may take over either name, so a script that may define one is left out.
    fn plain_words(&self, command: &Command) -> Option<Vec<String>> {
        let CommandKind::Simple(simple) = &command.kind else { return None };
        let program = simple.words.first().and_then(super::facts::literal)?;
        let is_plain = matches!(program, "echo" | "printf")
            && simple.assignments.is_empty()
            && command.redirects.iter().all(leaves_output_alone)
            && !self.facts.poisoned
            && !self.facts.functions.contains_key(program);
        // A substitution is read again by each one around it, which must not take time without end.
        if !is_plain || !self.expansion.take(simple.words.iter().map(|word| word.text.len()).sum())
        {
            return None;
        }
        let fields = simple.words.iter().flat_map(|word| self.fields(word));
        fields.map(|field| field.exact().map(ToOwned::to_owned)).collect()
    }
}

impl Analysis {
    /// What the next command of a pipeline reads.
    pub(super) fn printed_by(&self, command: &Command, input: &Input) -> Input {
        if let Some(text) = self.shell.printed(command) {
            return Input::Text(text.into());
        }
        let read = self.input(&command.redirects).unwrap_or_else(|| input.clone());
        if is_bare_cat(command) && !self.shell.facts.functions.contains_key("cat") {
            return read;
        }
        Input::Stream
    }
}

/// `cat`, which prints what it reads; what it writes elsewhere does not reach the pipe.
fn is_bare_cat(command: &Command) -> bool {
    use crate::call::shell::syntax::ast::RedirectOperator::{HereDocument, HereString};
    let CommandKind::Simple(simple) = &command.kind else { return false };
    let [program] = simple.words.as_slice() else { return false };
    super::facts::literal(program) == Some("cat")
        && simple.assignments.is_empty()
        && command.redirects.iter().all(|redirect| {
            matches!(redirect.operator, HereDocument | HereString) || leaves_output_alone(redirect)
        })
}

/// `2>&1` and `2>file` move what these programs never write.
fn leaves_output_alone(redirect: &Redirect) -> bool {
    redirect.descriptor == Some(2)
}

/// `echo`, whose only option that all shells know alike is `-n`, and which some shells let a backslash
/// mean something in.
fn echo(words: &[String]) -> Option<String> {
    let (words, end) = match words.split_first() {
        Some((first, rest)) if first == "-n" => (rest, ""),
        _ => (words, "\n"),
    };
    let is_option = words.first().is_some_and(|word| word.starts_with('-') && word.len() > 1);
    let is_plain = !is_option && words.iter().all(|word| !word.contains('\\'));
    is_plain.then(|| words.join(" ") + end)
}

/// `printf`, where the format is plain text or `%s`, with or without the end of a line.
fn printf(words: &[String]) -> Option<String> {
    let (format, values) = words.split_first()?;
    let (format, end) = match format.strip_suffix("\\n") {
        Some(format) => (format, "\n"),
        None => (format.as_str(), ""),
    };
    if format == "%s" {
        let values = if values.is_empty() { &[String::new()] } else { values };
        return Some(values.iter().map(|value| format!("{value}{end}")).collect());
    }
    let is_plain = !format.starts_with('-') && !format.contains(['%', '\\']);
    is_plain.then(|| format!("{format}{end}"))
}
