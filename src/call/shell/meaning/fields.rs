//! Expansion of one word into the fields that a program receives, as far as it is certain.
//!
//! The order is bash's: braces, tilde, parameters, splitting, pathnames, quote removal. Pathname
//! patterns are not matched (no disk here); such a field is known as a pattern.

use super::state::{Shell, Value};
use crate::call::effects::{Span, Word};
use crate::call::shell::syntax::ast::{Form, Parameter, Piece, Pieces, WordNode};
use std::rc::Rc;

/// Fields that braces in one word may give before the word counts as unknown.
const BRACE_FIELDS_MAX: usize = 256;

/// Characters that are looked at while braces of one word are expanded: some hundred times a long word.
const BRACE_STEPS_MAX: usize = 64 * 1024;

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

/// A unit of a word while braces are expanded.
#[derive(Debug, Clone, Copy)]
enum Atom<'tree> {
    Character { character: char, quoted: bool },
    Mark,
    Piece(&'tree Piece),
}

impl Atom<'_> {
    fn is(&self, wanted: char) -> bool {
        matches!(self, Atom::Character { character, quoted: false } if *character == wanted)
    }
}

impl Shell {
    /// The fields of an argument.
    pub(crate) fn fields(&self, word: &WordNode) -> Vec<Field> {
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
            let mut builder = Builder::new(self, word, true);
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

fn atoms(pieces: &Pieces) -> Vec<Atom<'_>> {
    let mut atoms = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text { text, quoted } => {
                if *quoted {
                    atoms.push(Atom::Mark);
                }
                atoms.extend(
                    text.chars().map(|character| Atom::Character { character, quoted: *quoted }),
                );
            }
            Piece::Parameter { .. }
            | Piece::Command { .. }
            | Piece::Arithmetic { .. }
            | Piece::Process { .. }
            | Piece::Opaque { .. } => atoms.push(Atom::Piece(piece)),
        }
    }
    atoms
}

/// Brace expansion; `None` if it would give too much.
fn expand_braces<'tree>(atoms: &[Atom<'tree>]) -> Option<Vec<Vec<Atom<'tree>>>> {
    let mut done = Vec::new();
    let mut waiting = vec![(atoms.to_vec(), 0_usize)];
    let mut steps = 0_usize;
    while let Some((word, from)) = waiting.pop() {
        steps += word.len() + 1;
        let Some((open, parts, close)) = find_brace(&word, from, &mut steps) else {
            if steps > BRACE_STEPS_MAX {
                return None;
            }
            done.push(word);
            continue;
        };
        if done.len() + waiting.len() + parts.len() > BRACE_FIELDS_MAX {
            return None;
        }
        // The stack is popped from its end: the first alternative must come out first.
        for part in parts.iter().rev() {
            let mut next = word.get(..open)?.to_vec();
            next.extend_from_slice(part);
            next.extend_from_slice(word.get(close + 1..)?);
            waiting.push((next, open));
        }
    }
    Some(done)
}

type Alternatives<'tree> = (usize, Vec<Vec<Atom<'tree>>>, usize);

/// The first brace pair at or behind `from` that expands: its place, alternatives and end.
fn find_brace<'tree>(
    word: &[Atom<'tree>],
    from: usize,
    steps: &mut usize,
) -> Option<Alternatives<'tree>> {
    let mut start = from;
    loop {
        let open = start + word.get(start..)?.iter().position(|atom| atom.is('{'))?;
        *steps += word.len() - open;
        if *steps > BRACE_STEPS_MAX {
            return None;
        }
        if let Some((parts, close)) = brace_at(word, open) {
            return Some((open, parts, close));
        }
        start = open + 1;
    }
}

fn brace_at<'tree>(word: &[Atom<'tree>], open: usize) -> Option<(Vec<Vec<Atom<'tree>>>, usize)> {
    let mut depth = 0_usize;
    let mut parts = Vec::new();
    let mut part = Vec::new();
    for (index, atom) in word.iter().enumerate().skip(open + 1) {
        if depth == 0 && atom.is('}') {
            parts.push(part);
            return match parts.as_slice() {
                [single] => sequence(single).map(|parts| (parts, index)),
                _ => Some((parts, index)),
            };
        }
        if depth == 0 && atom.is(',') {
            parts.push(std::mem::take(&mut part));
            continue;
        }
        if atom.is('{') {
            depth += 1;
        } else if atom.is('}') {
            depth -= 1;
        }
        part.push(*atom);
    }
    None
}

/// `{1..5}`, `{a..e}`, with an optional step.
fn sequence<'tree>(part: &[Atom<'tree>]) -> Option<Vec<Vec<Atom<'tree>>>> {
    let text: Option<String> = part
        .iter()
        .map(|atom| match atom {
            Atom::Character { character, quoted: false } => Some(*character),
            Atom::Character { .. } | Atom::Mark | Atom::Piece(_) => None,
        })
        .collect();
    let text = text?;
    let parts: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match parts.as_slice() {
        [first, last] => (*first, *last, 1),
        [first, last, step] => (*first, *last, step.parse::<i64>().ok()?.unsigned_abs().max(1)),
        _ => return None,
    };
    let values =
        number_sequence(first, last, step).or_else(|| letter_sequence(first, last, step))?;
    let plain = |character| Atom::Character { character, quoted: false };
    Some(values.iter().map(|value| value.chars().map(plain).collect()).collect())
}

fn number_sequence(first: &str, last: &str, step: u64) -> Option<Vec<String>> {
    let (start, end) = (first.parse::<i64>().ok()?, last.parse::<i64>().ok()?);
    let padded = [first, last]
        .iter()
        .any(|text| text.trim_start_matches('-').starts_with('0') && text.len() > 1);
    let width = if padded { first.len().max(last.len()) } else { 0 };
    let count = start.abs_diff(end) / step;
    let step = i64::try_from(step).ok()?;
    let signed = if start <= end { step } else { step.checked_neg()? };
    // One more than fits, so that the caller sees that it is too much.
    let count = i64::try_from(count.min(u64::try_from(BRACE_FIELDS_MAX).ok()? + 1)).ok()?;
    (0..=count)
        .map(|index| start.checked_add(index.checked_mul(signed)?))
        .map(|value| value.map(|value| format!("{value:0width$}")))
        .collect()
}

fn letter_sequence(first: &str, last: &str, step: u64) -> Option<Vec<String>> {
    let letter = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|one| one.is_ascii_alphabetic() && characters.next().is_none())
    };
    let (start, end) = (u32::from(letter(first)?), u32::from(letter(last)?));
    let step = usize::try_from(step).ok()?;
    let values: Vec<u32> = if start <= end {
        (start..=end).step_by(step).collect()
    } else {
        (end..=start).rev().step_by(step).collect()
    };
    Some(values.into_iter().filter_map(char::from_u32).map(String::from).collect())
}

/// Puts the fields of one alternative together.
struct Builder<'shell> {
    shell: &'shell Shell,
    word: &'shell WordNode,
    fields: Vec<Field>,
    current: Option<Field>,
    /// Splitting and patterns apply.
    splits: bool,
}

impl<'shell> Builder<'shell> {
    fn new(shell: &'shell Shell, word: &'shell WordNode, splits: bool) -> Self {
        Self { shell, word, fields: Vec::new(), current: None, splits }
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
            Value::Number | Value::Environment | Value::Unknown => self.set_unknown(false),
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
        let several = parameter.name == "@"
            || parameter.subscript.as_ref().is_some_and(|subscript| {
                matches!(subscript.as_slice(), [Piece::Text { text, .. }] if text == "@")
            });
        match self.shell.value(&parameter.name) {
            Value::Known(value) if plain => self.value(&value, quoted),
            Value::Known(_) | Value::Number | Value::Environment | Value::Unknown => {
                self.set_unknown(several || !quoted);
            }
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
        if self.shell.facts.variables.contains_key("IFS") {
            self.set_unknown(true);
            return;
        }
        for character in value.chars() {
            if matches!(character, ' ' | '\t' | '\n') {
                self.fields.extend(self.current.take());
            } else {
                self.push(character, matches!(character, '*' | '?' | '['));
            }
        }
    }
}
