//! Expansion of one word into the fields that a program receives, as far as it is certain.
//!
//! The order is bash's: braces, tilde, parameters, splitting, pathnames, quote removal. Pathname
//! patterns are not matched (no disk here); such a field is known as a pattern.

use super::braces::{Atom, atoms, expand_braces};
use super::state::{Shell, Value};
use crate::call::effects::{Span, Word};
use crate::call::shell::syntax::ast::{Form, Parameter, Piece, Pieces, WordNode};
use std::rc::Rc;

/// One argument.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// The value; if `unknown_from` is set, its part before the first unknown piece.
    pub(crate) value: String,
    /// Something in it is not known.
    pub(crate) unknown: bool,
    /// It may become no field, or several.
    pub(crate) many: bool,
    /// Index in `value` of the first character of a pathname pattern.
    pub(crate) pattern: Option<usize>,
    /// The word as written.
    pub(crate) text: Box<str>,
    /// Where names of files are put into the word by the program that runs the command: the word with
    /// a variable in their place.
    pub(crate) filled: Option<Rc<str>>,
    pub(crate) span: Span,
}

impl Field {
    pub(crate) fn known(value: &str, span: Span) -> Self {
        Self {
            value: value.to_owned(),
            unknown: false,
            many: false,
            pattern: None,
            text: value.into(),
            filled: None,
            span,
        }
    }

    pub(crate) fn unknown(text: &str, span: Span) -> Self {
        Self {
            value: String::new(),
            unknown: true,
            many: true,
            pattern: None,
            text: text.into(),
            filled: None,
            span,
        }
    }

    /// The exact value, if it is certain.
    pub(crate) fn exact(&self) -> Option<&str> {
        if self.unknown || self.pattern.is_some() { None } else { Some(&self.value) }
    }

    /// What is certain about the beginning.
    pub(crate) fn prefix(&self) -> &str {
        match self.pattern {
            Some(index) => self.value.get(..index).unwrap_or(""),
            None => &self.value,
        }
    }

    pub(crate) fn word(&self) -> Word {
        match self.exact() {
            Some(value) => Word::Known(value.to_owned()),
            None => Word::Unknown { text: self.text.to_string(), prefix: self.prefix().to_owned() },
        }
    }
}

/// What a word is for. Of a path nobody is helped by hearing that its variable has no value, and whoever
/// wrote it meant another; of what runs, it is the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Argument,
    /// It may be the program.
    Program,
    /// It is code.
    Code,
}

impl Place {
    /// Whether a variable without a value counts as nothing. In quotes it would leave an empty word,
    /// or with `"$@"` none, so that another word would become the program.
    const fn takes_nothing(self, quoted: bool) -> bool {
        match self {
            Self::Argument => false,
            Self::Program => !quoted,
            Self::Code => true,
        }
    }
}

impl Shell {
    /// The fields of an argument.
    pub(crate) fn fields(&self, word: &WordNode) -> Vec<Field> {
        self.fields_at(word, Place::Argument)
    }

    /// The fields of a word at a place.
    pub(crate) fn fields_at(&self, word: &WordNode, place: Place) -> Vec<Field> {
        if let [Piece::Text { text, quoted }] = word.pieces.as_slice()
            && (*quoted || !text.contains(['{', '~', '*', '?', '[']))
        {
            return vec![Field::known(text, word.span)];
        }
        if self.expansion.is_spent() && word.text.contains('{') {
            return vec![Field::unknown(&word.text, word.span)];
        }
        let atoms = atoms(&word.pieces);
        let Some(alternatives) = expand_braces(&atoms) else {
            return vec![Field::unknown(&word.text, word.span)];
        };
        if alternatives.len() > 1 && !self.expansion.take(word.text.len() * alternatives.len()) {
            return vec![Field::unknown(&word.text, word.span)];
        }
        let mut fields = Vec::new();
        for alternative in &alternatives {
            let mut builder = Builder { place, ..Builder::new(self, word, true) };
            builder.run(alternative);
            fields.append(&mut builder.fields);
        }
        fields
    }

    /// The value of a word where nothing is split, matched or multiplied: assignments, redirections
    /// (for which see `pattern`), `case`.
    pub(crate) fn single(&self, word: &WordNode) -> Field {
        let mut builder = Builder::new(self, word, false);
        builder.run(&atoms(&word.pieces));
        let mut fields = builder.fields;
        match (fields.pop(), fields.is_empty()) {
            (Some(field), true) => field,
            (None, _) => Field::known("", word.span),
            (Some(_), false) => Field::unknown(&word.text, word.span),
        }
    }
}

/// Puts the fields of one alternative together.
struct Builder<'shell> {
    shell: &'shell Shell,
    word: &'shell WordNode,
    fields: Vec<Field>,
    current: Option<Field>,
    /// Splitting and patterns apply.
    splits: bool,
    place: Place,
}

impl<'shell> Builder<'shell> {
    fn new(shell: &'shell Shell, word: &'shell WordNode, splits: bool) -> Self {
        Self { shell, word, fields: Vec::new(), current: None, splits, place: Place::Argument }
    }

    fn current(&mut self) -> &mut Field {
        let word = self.word;
        self.current.get_or_insert_with(|| Field {
            value: String::new(),
            unknown: false,
            many: false,
            pattern: None,
            text: word.text.clone(),
            filled: None,
            span: word.span,
        })
    }

    fn run(&mut self, atoms: &[Atom<'_>]) {
        let mut rest = atoms;
        if atoms.first().is_some_and(|atom| atom.is('~')) {
            rest = self.tilde(atoms);
        }
        let last_bracket = rest.iter().rposition(|atom| atom.is(']'));
        for (index, atom) in rest.iter().enumerate() {
            match atom {
                Atom::Mark => {
                    self.current();
                }
                Atom::Character { character, quoted } => {
                    let pattern = !quoted
                        && match character {
                            '*' | '?' => true,
                            '[' => last_bracket.is_some_and(|last| last > index),
                            _ => false,
                        };
                    self.push(*character, pattern);
                }
                Atom::Piece(piece) => self.piece(piece),
            }
        }
        self.fields.extend(self.current.take());
    }

    fn push(&mut self, character: char, pattern: bool) {
        let splits = self.splits;
        let field = self.current();
        if field.unknown {
            return;
        }
        if pattern && splits && field.pattern.is_none() {
            field.pattern = Some(field.value.len());
        }
        field.value.push(character);
    }

    fn set_unknown(&mut self, many: bool) {
        let field = self.current();
        field.unknown = true;
        field.many |= many;
    }

    /// Expands `~` and `~+`; gives what is left of the word.
    fn tilde<'word, 'tree>(&mut self, atoms: &'word [Atom<'tree>]) -> &'word [Atom<'tree>] {
        let end = atoms.iter().position(|atom| atom.is('/')).unwrap_or(atoms.len());
        let (login, rest) = atoms.split_at(end);
        let plain = login.iter().all(|atom| matches!(atom, Atom::Character { quoted: false, .. }));
        if !plain {
            return atoms;
        }
        let value = match login {
            [_] => self.shell.value("HOME"),
            [_, sign] if sign.is('+') => self.shell.value("PWD"),
            _ => Value::Unknown,
        };
        match value {
            Value::Known(home) => home.chars().for_each(|character| self.push(character, false)),
            Value::Number | Value::Environment | Value::Unset | Value::Unknown => {
                self.set_unknown(false);
            }
        }
        rest
    }

    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Parameter { parameter, quoted } => self.parameter(parameter, *quoted),
            Piece::Command { body, quoted } => match self.shell.substituted(body) {
                Some(text) => self.value(&text, *quoted),
                None => self.set_unknown(!quoted),
            },
            Piece::Arithmetic { quoted, .. } => self.set_unknown(!quoted),
            Piece::Process { .. } => self.set_unknown(false),
            Piece::Opaque { .. } => {
                let value_length = self.current().value.len();
                let field = self.current();
                if !field.unknown {
                    field.pattern.get_or_insert(value_length);
                }
                field.unknown = true;
            }
            Piece::Text { .. } => {}
        }
    }

    fn parameter(&mut self, parameter: &Parameter, quoted: bool) {
        let plain = parameter.form == Form::Plain && parameter.subscript.is_none();
        let is_default = parameter.form == Form::Default && parameter.subscript.is_none();
        let several = parameter.name == "@"
            || parameter.subscript.as_ref().is_some_and(|subscript| {
                matches!(subscript.as_slice(), [Piece::Text { text, .. }] if text == "@")
            });
        match self.shell.value(&parameter.name) {
            Value::Known(value) if plain => self.value(&value, quoted),
            Value::Known(value) if is_default && !value.is_empty() => self.value(&value, quoted),
            Value::Unset if is_default => self.operand(&parameter.operand, quoted),
            // Unquoted and without a value, nothing is left of it.
            Value::Unset if plain && self.place.takes_nothing(quoted) => {
                self.shell.beliefs.relied_on.set(true);
            }
            Value::Known(_)
            | Value::Number
            | Value::Environment
            | Value::Unset
            | Value::Unknown => self.set_unknown(several || !quoted),
        }
    }

    /// The word of `${x:-word}`, which takes the place of the expansion.
    fn operand(&mut self, pieces: &Pieces, quoted: bool) {
        self.shell.beliefs.relied_on.set(true);
        for (index, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text { text, quoted: false }
                    if !quoted && index == 0 && text.starts_with('~') =>
                {
                    self.set_unknown(false);
                }
                Piece::Text { text, quoted: is_quoted } => self.value(text, quoted || *is_quoted),
                Piece::Parameter { parameter, quoted: is_quoted } => {
                    self.parameter(parameter, quoted || *is_quoted);
                }
                Piece::Command { .. }
                | Piece::Arithmetic { .. }
                | Piece::Process { .. }
                | Piece::Opaque { .. } => self.set_unknown(!quoted),
            }
        }
    }

    /// The characters at which values are split, if they are known. Blanks beside others would need rules
    /// of their own.
    fn separators(&self) -> Option<String> {
        if !self.shell.facts.variables.contains_key("IFS") {
            return Some(" \t\n".to_owned());
        }
        match self.shell.value("IFS") {
            // Not assigned yet: no shell takes it from its environment.
            Value::Environment => Some(" \t\n".to_owned()),
            Value::Known(separators)
                if separators.chars().all(is_blank) || !separators.chars().any(is_blank) =>
            {
                Some(separators)
            }
            Value::Known(_) | Value::Number | Value::Unset | Value::Unknown => None,
        }
    }

    /// A known value: unquoted it is split at blanks, and its pattern characters count.
    fn value(&mut self, value: &str, quoted: bool) {
        if !self.shell.expansion.take(value.len()) {
            self.set_unknown(!quoted);
            return;
        }
        if quoted || !self.splits {
            self.current();
            value.chars().for_each(|character| self.push(character, false));
            return;
        }
        let Some(separators) = self.separators() else {
            self.set_unknown(true);
            return;
        };
        for character in value.chars() {
            if separators.contains(character) {
                // One that is no blank ends a field even where nothing stands in front of it.
                if !is_blank(character) {
                    self.current();
                }
                self.fields.extend(self.current.take());
            } else {
                self.push(character, matches!(character, '*' | '?' | '['));
            }
        }
    }
}

const fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n')
}
