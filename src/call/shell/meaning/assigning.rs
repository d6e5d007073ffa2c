//! Builtins that assign variables named by their arguments, or run code that could: what they add to
//! the facts of a script.

use super::facts::{Facts, literal, plain_parameter};
use crate::call::shell::syntax::ast::WordNode;

impl Facts {
    /// Builtins that assign variables named by their arguments.
    pub(super) fn builtin(&mut self, words: &[WordNode], straight: bool) {
        let texts: Vec<Option<&str>> = words.iter().map(literal).collect();
        let mut rest = texts.as_slice();
        while let [Some("command" | "builtin" | "exec"), tail @ ..] = rest {
            let options =
                tail.iter().take_while(|word| word.is_some_and(|word| word.starts_with('-')));
            rest = tail.get(options.count()..).unwrap_or_default();
        }
        let skipped = texts.len() - rest.len();
        let [Some(name), arguments @ ..] = rest else {
            // If its name turns out to be that of a builtin that assigns, the walk says so.
            return;
        };
        match *name {
            "source" | "." => self.poison(words),
            "eval" | "trap" => {
                let is_inert = |text: &Option<&str>| text.is_some_and(leaves_variables_alone);
                if !arguments.iter().all(is_inert) {
                    self.poison(words);
                }
            }
            "unset" => {
                // Behind it the name may be that of a program again.
                for name in arguments.iter().flatten() {
                    *self.functions.entry((*name).to_owned()).or_default() += 2;
                }
                self.named_by(words.get(skipped..).unwrap_or_default(), false);
            }
            "wait" => self.wait(words.get(skipped + 1..).unwrap_or_default()),
            "read" | "mapfile" | "readarray" | "getopts" | "let" => {
                self.assign("REPLY", false, false);
                self.assign("MAPFILE", false, false);
                self.named_by(words.get(skipped..).unwrap_or_default(), *name == "let");
            }
            "printf"
                if arguments
                    .first()
                    .copied()
                    .flatten()
                    .is_none_or(|word| word.starts_with("-v")) =>
            {
                self.named_by(words.get(skipped..).unwrap_or_default(), false);
            }
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                let is_function = |word: &str| word.starts_with('-') && word.contains('f');
                self.forwarding.is_exported |=
                    arguments.iter().flatten().any(|word| is_function(word));
                self.declaration(name, words.get(skipped + 1..).unwrap_or_default(), straight);
            }
            "cd" | "pushd" | "popd" => self.changes_directory = true,
            "set" => {
                let is_setting = |word: &Option<&str>| {
                    word.is_some_and(|word| {
                        word.starts_with(['-', '+']) && !matches!(word, "-" | "--")
                            || crate::call::shell::programs::is_harmless_setting(word)
                    })
                };
                self.sets_positional |= !arguments.iter().all(is_setting);
                let exports =
                    |word: &str| word == "allexport" || word.starts_with('-') && word.contains('a');
                self.forwarding.is_exported |=
                    arguments.iter().any(|word| word.is_none_or(exports));
            }
            // Newer shells store what it finds.
            "compgen"
                if arguments.iter().any(|word| word.is_none_or(|word| word.starts_with("-V"))) =>
            {
                self.poison(words);
            }
            _ => {}
        }
    }

    /// `wait -p name` assigns; numbers of jobs do not.
    fn wait(&mut self, words: &[WordNode]) {
        for word in words {
            match (literal(word), plain_parameter(&word.pieces)) {
                (Some(text), _) if text.starts_with('-') && text.contains('p') => {
                    self.poison(words);
                }
                (Some(_), _) => {}
                (None, Some(name)) => self.waited.push(name.to_owned()),
                (None, None) => self.poison(words),
            }
        }
    }

    fn named_by(&mut self, words: &[WordNode], numeric: bool) {
        for word in words.iter().skip(1) {
            match literal(word) {
                Some(word) => {
                    let name = word.trim_start_matches("-v").split(['[', '=', '+']).next();
                    self.assign(name.unwrap_or(word), false, numeric);
                }
                None => self.poison(words),
            }
        }
    }

    fn declaration(&mut self, builtin: &str, words: &[WordNode], straight: bool) {
        let mut plain = matches!(builtin, "export" | "readonly");
        for word in words {
            if let Some(assignment) = &word.assignment {
                self.assignment(assignment, straight && plain);
                continue;
            }
            match literal(word) {
                Some(option) if option.starts_with(['-', '+']) => {
                    plain &= matches!(option, "-x" | "-r" | "--");
                    if option.contains('n') && builtin != "export" {
                        self.poison(words);
                    }
                    if option.contains('A') {
                        self.associative.extend(declared_names(words));
                    }
                }
                // A declaration of a name gives it no value that code could stand in.
                Some(name) => self.assign(name, false, true),
                None => self.poison(words),
            }
        }
    }
}

/// Words that assign, move or define, or run code that could.
const ASSIGNING: [&str; 24] = [
    "alias",
    "cd",
    "coproc",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "for",
    "function",
    "getopts",
    "let",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "select",
    "source",
    "typeset",
    "unset",
];

/// Whether code in an argument is so simple that no variable, function or directory changes by it: plain
/// commands of plain words.
fn leaves_variables_alone(code: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let is_plain =
        |character: char| is_word(character) || " \t\"'$;&|<>/-@*,:+~#!?.%".contains(character);
    code.chars().all(is_plain)
        && !code.split([' ', '\t', ';', '&', '|', '"', '\'', '!']).any(|word| {
            word == "."
                || matches!(word, "wait" | "set" | "shift" | "trap")
                || ASSIGNING.contains(&word)
        })
}

fn declared_names(words: &[WordNode]) -> impl Iterator<Item = String> + '_ {
    words.iter().filter_map(|word| match &word.assignment {
        Some(assignment) => Some(assignment.name.clone()),
        None => literal(word).map(ToOwned::to_owned),
    })
}
