//! From the text of a pattern to its parts. What a part then matches is decided in `fit`.

use super::{Atom, Part};

/// Patterns that alternatives may expand to: `{a,b}` in six places is already 64.
const ALTERNATIVES_MAX: usize = 256;

/// The texts that a text with alternatives in braces stands for.
pub(super) fn alternatives(text: &str) -> Result<Vec<String>, &'static str> {
    let mut texts = vec![String::new()];
    append_alternatives(text, &mut texts)?;
    Ok(texts)
}

/// Appends `text` to each of `done`, once for each alternative of its braces.
fn append_alternatives(text: &str, done: &mut Vec<String>) -> Result<(), &'static str> {
    let mut rest = text;
    while let Some((before, inner)) = split_at_plain(rest, '{') {
        let (inner, after) = split_at_plain(inner, '}').ok_or("`{` has no `}`")?;
        if split_at_plain(inner, '{').is_some() {
            return Err("`{}` inside `{}`");
        }
        let mut choices = Vec::new();
        let mut left = inner;
        while let Some((choice, more)) = split_at_plain(left, ',') {
            choices.push(choice);
            left = more;
        }
        choices.push(left);
        if done.len().saturating_mul(choices.len()) > ALTERNATIVES_MAX {
            return Err("more than 256 alternatives");
        }
        *done = done
            .iter()
            .flat_map(|one| choices.iter().map(move |choice| format!("{one}{before}{choice}")))
            .collect();
        rest = after;
    }
    done.iter_mut().for_each(|one| one.push_str(rest));
    Ok(())
}

/// The text before and behind the first `wanted` that no backslash stands before.
fn split_at_plain(text: &str, wanted: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if character == wanted && !escaped {
            return Some((text.get(..at)?, text.get(at + character.len_utf8()..)?));
        }
        escaped = character == '\\' && !escaped;
    }
    None
}

impl Part {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "**" {
            return Ok(Self::AnyDirectories);
        }
        if !text.contains(['*', '?', '[', '\\']) {
            return Ok(Self::Literal(text.as_bytes().to_vec()));
        }
        let mut atoms = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            atoms.extend(match character {
                '*' => vec![Atom::AnyMany],
                '?' => vec![Atom::AnyOne],
                '[' => vec![class(&mut characters)?],
                '\\' => bytes(characters.next().ok_or("`\\` stands at the end")?),
                other => bytes(other),
            });
        }
        Ok(Self::Wild(atoms))
    }
}

fn bytes(character: char) -> Vec<Atom> {
    let mut buffer = [0; 4];
    character.encode_utf8(&mut buffer).bytes().map(Atom::Byte).collect()
}

/// Reads a class behind its `[`.
fn class(characters: &mut std::str::Chars<'_>) -> Result<Atom, &'static str> {
    let unclosed = "`[` has no `]`";
    let mut rest = characters.clone();
    let mut next = rest.next().ok_or(unclosed)?;
    let negated = matches!(next, '!' | '^');
    if negated {
        next = rest.next().ok_or(unclosed)?;
    }
    let mut ranges = Vec::new();
    let mut is_first = true;
    while is_first || next != ']' {
        is_first = false;
        let mut ahead = rest.clone();
        if ahead.next() == Some('-') && ahead.clone().next().is_some_and(|end| end != ']') {
            let end = ahead.next().ok_or(unclosed)?;
            if end < next {
                return Err("a range in `[]` runs backwards");
            }
            ranges.push((next, end));
            rest = ahead;
        } else {
            ranges.push((next, next));
        }
        next = rest.next().ok_or(unclosed)?;
    }
    *characters = rest;
    Ok(Atom::Class { negated, ranges })
}
