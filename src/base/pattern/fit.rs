//! Whether a path has the form of a pattern. Both loops have one point of return, so that no pattern
//! makes them take more steps than the product of the two lengths.

use super::{Atom, Part};

/// Greedy with one point of return: the last `**`. Each `**` that follows replaces it, so time is
/// bounded by the product of the lengths.
pub(super) fn parts(parts: &[Part], names: &[&[u8]], fold: bool) -> bool {
    let (mut part, mut name) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(current) = names.get(name) {
        match parts.get(part) {
            Some(Part::AnyDirectories) => {
                back = Some((part + 1, name));
                part += 1;
                continue;
            }
            Some(wanted) if wanted.fits(current, fold) => {
                part += 1;
                name += 1;
                continue;
            }
            Some(_) | None => {}
        }
        let Some((after, from)) = back else { return false };
        back = Some((after, from + 1));
        part = after;
        name = from + 1;
    }
    parts.iter().skip(part).all(|rest| *rest == Part::AnyDirectories)
}

impl Part {
    pub(super) fn fits(&self, name: &[u8], fold: bool) -> bool {
        match self {
            Self::AnyDirectories => true,
            Self::Literal(literal) if fold => literal.eq_ignore_ascii_case(name),
            Self::Literal(literal) => literal == name,
            Self::Wild(atoms) => fits_atoms(atoms, name, fold),
        }
    }
}

/// The same way of matching inside one name, with `*` as the point of return.
fn fits_atoms(atoms: &[Atom], name: &[u8], fold: bool) -> bool {
    let (mut atom, mut at) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < name.len() {
        let rest = name.get(at..).unwrap_or(&[]);
        let taken = match atoms.get(atom) {
            Some(Atom::AnyMany) => {
                back = Some((atom + 1, at));
                atom += 1;
                continue;
            }
            Some(single) => single.takes(rest, fold),
            None => 0,
        };
        if taken > 0 {
            atom += 1;
            at += taken;
            continue;
        }
        let Some((after, from)) = back else { return false };
        back = Some((after, from + 1));
        atom = after;
        at = from + 1;
    }
    atoms.iter().skip(atom).all(|rest| *rest == Atom::AnyMany)
}

impl Atom {
    /// Bytes at the front of `rest` that it matches; 0: it does not.
    fn takes(&self, rest: &[u8], fold: bool) -> usize {
        let Some(first) = rest.first() else { return 0 };
        match self {
            Self::Byte(byte) if fold => usize::from(byte.eq_ignore_ascii_case(first)),
            Self::Byte(byte) => usize::from(byte == first),
            Self::AnyOne => character(rest).1,
            Self::Class { negated, ranges } => {
                let (found, length) = character(rest);
                let holds = |c: char| ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
                let is_in = found.is_some_and(|c| {
                    holds(c)
                        || (fold
                            && (holds(c.to_ascii_lowercase()) || holds(c.to_ascii_uppercase())))
                });
                if is_in != *negated { length } else { 0 }
            }
            Self::AnyMany => 0,
        }
    }
}

/// The character at the front and its length; a byte that is none counts as one.
fn character(rest: &[u8]) -> (Option<char>, usize) {
    let front = rest.get(..rest.len().min(4)).unwrap_or(rest);
    let valid = match std::str::from_utf8(front) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(front.get(..error.valid_up_to()).unwrap_or(&[])).unwrap_or("")
        }
    };
    valid.chars().next().map_or((None, 1), |c| (Some(c), c.len_utf8()))
}
