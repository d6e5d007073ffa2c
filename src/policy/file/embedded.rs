//! The built-in policies as the TOML library read them when the program was built: what a start would
//! read again from forty kilobytes of text. Without the examples of the rules, which are tested and not
//! run. Knows nothing of what the tables mean; `build.rs` writes them.
//!
//! A value is a letter, where it begins in the text and how long it is there, and what the letter says:
//! `T` a table (a count, then each key as a string and its value), `A` an array (a count, then the
//! values), `W` a string as it is written, `Q` one between quotes, `S` one of its own (length and bytes),
//! `V` any other value, to be read from the text. Numbers are of seven bits a byte, the lowest first, the
//! eighth bit set on all but the last.

use super::source::{BUILT_IN_NAMES, built_in};
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Tables and arrays that lie in each other, at most.
const DEPTH_MAX: usize = 16;

/// What the TOML library read of `text`, if that is the text of a built-in policy.
pub(super) fn table(text: &str) -> Option<DeTable<'static>> {
    let name = BUILT_IN_NAMES.into_iter().find(|name| built_in(name) == Some(text))?;
    let mut reader = Reader { bytes: read_when_built(name)?, text: built_in(name)? };
    let DeValue::Table(table) = reader.value(0)?.into_inner() else { return None };
    reader.bytes.is_empty().then_some(table)
}

fn read_when_built(name: &str) -> Option<&'static [u8]> {
    Some(match name {
        "base" => include_bytes!(concat!(env!("OUT_DIR"), "/base.policy")),
        "readonly" => include_bytes!(concat!(env!("OUT_DIR"), "/readonly.policy")),
        "workspace" => include_bytes!(concat!(env!("OUT_DIR"), "/workspace.policy")),
        "ci" => include_bytes!(concat!(env!("OUT_DIR"), "/ci.policy")),
        "untrusted" => include_bytes!(concat!(env!("OUT_DIR"), "/untrusted.policy")),
        _ => return None,
    })
}

struct Reader {
    bytes: &'static [u8],
    text: &'static str,
}

impl Reader {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<usize> {
        let (mut number, mut shift) = (0_usize, 0);
        loop {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }

    fn head(&mut self) -> Option<(u8, Range<usize>)> {
        let tag = self.byte()?;
        let (start, length) = (self.number()?, self.number()?);
        Some((tag, start..start.checked_add(length)?))
    }

    fn value(&mut self, depth: usize) -> Option<Spanned<DeValue<'static>>> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (tag, span) = self.head()?;
        let value = match tag {
            b'T' => DeValue::Table(self.entries(depth)?),
            b'A' => {
                let mut array = DeArray::new();
                for _ in 0..self.number()? {
                    array.push(self.value(depth + 1)?);
                }
                DeValue::Array(array)
            }
            b'V' => DeValue::parse(self.text.get(span.clone())?).ok()?.into_inner(),
            _ => DeValue::String(self.string(tag, &span)?),
        };
        Some(Spanned::new(span, value))
    }

    fn entries(&mut self, depth: usize) -> Option<DeTable<'static>> {
        let count = self.number()?;
        let mut table = DeTable::new();
        for _ in 0..count {
            let (tag, span) = self.head()?;
            let key = self.string(tag, &span)?;
            table.insert(Spanned::new(span, key), self.value(depth + 1)?);
        }
        Some(table)
    }

    fn string(&mut self, tag: u8, span: &Range<usize>) -> Option<Cow<'static, str>> {
        let string = match tag {
            b'W' => self.text.get(span.clone())?,
            b'Q' => self.text.get(span.start.checked_add(1)?..span.end.checked_sub(1)?)?,
            b'S' => {
                let length = self.number()?;
                let (string, rest) = self.bytes.split_at_checked(length)?;
                self.bytes = rest;
                std::str::from_utf8(string).ok()?
            }
            _ => return None,
        };
        Some(Cow::Borrowed(string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the examples of the rules, at any depth.
    fn without_examples(value: &mut DeValue<'_>) {
        match value {
            DeValue::Table(table) => {
                table.remove("match");
                table.remove("not_match");
                table.iter_mut().for_each(|(_, value)| without_examples(value.get_mut()));
            }
            DeValue::Array(array) => {
                array.iter_mut().for_each(|value| without_examples(value.get_mut()));
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => {}
        }
    }

    #[test]
    fn what_was_read_when_built_is_what_the_text_says_without_its_examples() {
        for name in BUILT_IN_NAMES {
            let text = built_in(name).unwrap();
            let mut read = DeValue::Table(DeTable::parse(text).unwrap().into_inner());
            without_examples(&mut read);
            let taken = DeValue::Table(table(text).unwrap());
            // The whole of it, every span included.
            assert_eq!(format!("{taken:?}"), format!("{read:?}"), "{name}");
        }
    }

    #[test]
    fn another_text_is_not_a_built_in_one() {
        let text = built_in("ci").unwrap();
        assert!(table(&format!("{text}\n")).is_none() && table("").is_none());
    }

    #[test]
    fn bytes_that_end_early_are_nothing() {
        let (bytes, text) = (read_when_built("ci").unwrap(), built_in("ci").unwrap());
        for end in 0..bytes.len() {
            assert!(Reader { bytes: &bytes[..end], text }.value(0).is_none(), "{end}");
        }
    }
}
