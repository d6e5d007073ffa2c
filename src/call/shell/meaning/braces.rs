//! Brace expansion: `a{b,c}` and `{1..5}`, before anything else of a word is expanded. A word that would
//! become too many fields is left to count as unknown.

use crate::call::shell::syntax::ast::{Piece, Pieces};

/// Fields that braces in one word may give before the word counts as unknown.
const BRACE_FIELDS_MAX: usize = 256;

/// Characters that are looked at while braces of one word are expanded: some hundred times a long word.
const BRACE_STEPS_MAX: usize = 64 * 1024;

/// A unit of a word while braces are expanded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Atom<'tree> {
    Character { character: char, quoted: bool },
    Mark,
    Piece(&'tree Piece),
}

impl Atom<'_> {
    pub(super) fn is(&self, wanted: char) -> bool {
        matches!(self, Atom::Character { character, quoted: false } if *character == wanted)
    }
}

pub(super) fn atoms(pieces: &Pieces) -> Vec<Atom<'_>> {
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
pub(super) fn expand_braces<'tree>(atoms: &[Atom<'tree>]) -> Option<Vec<Vec<Atom<'tree>>>> {
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
