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
            && !self.is_poisoned()
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
        self.printed_names(command, &read).unwrap_or(Input::Stream)
    }

    /// The names of files that a program lists, or takes some of out of a list.
    fn printed_names(&self, command: &Command, read: &Input) -> Option<Input> {
        let CommandKind::Simple(simple) = &command.kind else { return None };
        let program = simple.words.first().and_then(super::facts::literal)?;
        let is_plain = simple.assignments.is_empty()
            && command.redirects.iter().all(leaves_output_alone)
            && !self.shell.facts.functions.contains_key(program);
        if !is_plain {
            return None;
        }
        let words: Vec<Option<&str>> =
            simple.words.iter().skip(1).map(super::facts::literal).collect();
        if lists_names(program, &words) {
            let below_here = words.iter().all(|word| word.is_some_and(stays_here));
            return Some(Input::Names { below_here });
        }
        match read {
            Input::Names { .. } if chooses_lines(program, &words) => Some(read.clone()),
            Input::Names { .. } | Input::Text(_) | Input::File | Input::Stream => None,
        }
    }
}

/// Whether what a program prints is names of files that exist, and nothing that it makes up.
fn lists_names(program: &str, words: &[Option<&str>]) -> bool {
    let has = |wanted: &[&str]| words.iter().flatten().any(|word| wanted.contains(word));
    match program {
        "find" => !has(&["-printf", "-exec", "-execdir", "-ok", "-okdir", "-ls"]),
        "ls" => !words.iter().flatten().any(|word| {
            word.starts_with("--")
                || word.starts_with('-') && word.contains(['l', 'g', 'n', 'o', 's', 'i'])
        }),
        "fd" | "fdfind" => !has(&["-x", "-X", "--exec", "--exec-batch", "--format"]),
        "git" => matches!(
            words,
            [Some("ls-files"), ..] | [Some("diff" | "show"), Some("--name-only"), ..]
        ),
        "rg" => has(&["-l", "--files", "--files-with-matches", "--files-without-match"]),
        "grep" | "egrep" | "fgrep" => words.iter().flatten().any(|word| {
            word.strip_prefix('-').is_some_and(|letters| {
                letters.contains(['l', 'L'])
                    && letters.bytes().all(|letter| b"rRilLwEFGPsaIZzvx".contains(&letter))
            })
        }),
        // Numbers are as harmless as names.
        "seq" => words.iter().all(|word| {
            word.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
        }),
        _ => false,
    }
}

/// Whether a program prints some of the lines that it reads, each as it is.
fn chooses_lines(program: &str, words: &[Option<&str>]) -> bool {
    let reads_no_file = words.iter().flatten().all(|word| word.starts_with('-'));
    match program {
        "sort" | "uniq" | "tac" | "head" | "tail" => {
            let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
            let is_count = matches!(words, [Some("-n"), Some(count)] if is_number(count));
            let is_plain = words
                .iter()
                .flatten()
                .all(|word| !word.starts_with("--") && !word.contains(['o', 'c', 'z']));
            is_count || words.iter().all(Option::is_some) && reads_no_file && is_plain
        }
        "grep" | "egrep" | "fgrep" => {
            let (options, operands): (Vec<&str>, Vec<&str>) =
                words.iter().flatten().partition(|word| word.starts_with('-'));
            let is_plain =
                |option: &&str| option.bytes().skip(1).all(|letter| b"EFGPivwxz".contains(&letter));
            operands.len() == 1 && words.len() == options.len() + 1 && options.iter().all(is_plain)
        }
        _ => false,
    }
}

/// Whether a word of a lister, if it is a place, is one below the directory.
fn stays_here(word: &str) -> bool {
    !word.starts_with(['/', '~']) && !word.contains("..") && !word.contains("=/")
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
