//! The built-in policies as the TOML library read them when the program was built: what a start would
//! read again from forty kilobytes of text. Without the examples of the rules, which are tested and not
//! run. Knows nothing of what the tables mean; `build.rs` writes them.
//!
//! A value is a letter, where it begins in the text and how long it is there, and what the letter says:
//! `T` a table (a count, then each key as a string and its value), `A` an array (a count, then the
//! values), `W` a string as it is written, `Q` one between quotes, `S` one of its own (length and bytes),
//! `V` any other value, to be read from the text. Numbers are of seven bits a byte, the lowest first, the
//! eighth bit set on all but the last.

use super::schema::Document;
use super::source::{BUILT_IN_NAMES, built_in};
use serde::de::value::{BorrowedStrDeserializer, Error};
use serde::de::{
    Deserialize as _, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use serde_spanned::de::{SpannedDeserializer, is_spanned};
use std::ops::Range;
use toml::de::ValueDeserializer;

/// What the text says, if it is that of a built-in policy.
pub(super) fn document(text: &str) -> Option<Document> {
    let name = BUILT_IN_NAMES.into_iter().find(|name| built_in(name) == Some(text))?;
    let mut reader = Reader { bytes: read_when_built(name)?, text: built_in(name)? };
    let document = Document::deserialize(Value(&mut reader)).ok()?;
    reader.bytes.is_empty().then_some(document)
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

/// What is left to read.
struct Reader<'de> {
    bytes: &'de [u8],
    text: &'de str,
}

/// The letter of a value and where it is written.
type Head = (u8, Range<usize>);

impl<'de> Reader<'de> {
    fn byte(&mut self) -> Result<u8, Error> {
        let (first, rest) = self.bytes.split_first().ok_or_else(ends_early)?;
        self.bytes = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<usize, Error> {
        let (mut number, mut shift) = (0_usize, 0);
        loop {
            let byte = self.byte()?;
            let part = usize::from(byte & 0x7f).checked_shl(shift);
            number |= part.ok_or_else(|| Error::custom("a number is too long"))?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
    }

    fn head(&mut self) -> Result<Head, Error> {
        let tag = self.byte()?;
        let (start, length) = (self.number()?, self.number()?);
        Ok((tag, start..start.saturating_add(length)))
    }

    /// The text of a string, of which the head is read.
    fn string(&mut self, (tag, span): Head) -> Result<&'de str, Error> {
        let string = match tag {
            b'W' => self.text.get(span),
            b'Q' => self.text.get(span.start.saturating_add(1)..span.end.saturating_sub(1)),
            b'S' => {
                let length = self.number()?;
                let (string, rest) = self.bytes.split_at_checked(length).ok_or_else(ends_early)?;
                self.bytes = rest;
                std::str::from_utf8(string).ok()
            }
            _ => None,
        };
        string.ok_or_else(|| Error::custom("no string"))
    }
}

fn ends_early() -> Error {
    Error::custom("the bytes end early")
}

/// The next value.
struct Value<'r, 'de>(&'r mut Reader<'de>);

impl<'de> IntoDeserializer<'de, Error> for Value<'_, 'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let head = self.0.head()?;
        match head.0 {
            b'T' => {
                let left = self.0.number()?;
                visitor.visit_map(Values { reader: self.0, left })
            }
            b'A' => {
                let left = self.0.number()?;
                visitor.visit_seq(Values { reader: self.0, left })
            }
            b'V' => {
                let text = self.0.text.get(head.1).ok_or_else(ends_early)?;
                let value = ValueDeserializer::parse(text).map_err(Error::custom)?;
                value.deserialize_any(visitor).map_err(Error::custom)
            }
            _ => visitor.visit_borrowed_str(self.0.string(head)?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if !is_spanned(name) {
            return self.deserialize_any(visitor);
        }
        let before = self.0.bytes;
        let (_, span) = self.0.head()?;
        self.0.bytes = before;
        visitor.visit_map(SpannedDeserializer::new(self, span))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let head = self.0.head()?;
        visitor.visit_enum(BorrowedStrDeserializer::new(self.0.string(head)?))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// What a table or an array still has.
struct Values<'r, 'de> {
    reader: &'r mut Reader<'de>,
    left: usize,
}

impl Values<'_, '_> {
    fn has_next(&mut self) -> bool {
        let has_next = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_next
    }
}

impl<'de> SeqAccess<'de> for Values<'_, 'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if !self.has_next() {
            return Ok(None);
        }
        seed.deserialize(Value(self.reader)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Values<'_, 'de> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if !self.has_next() {
            return Ok(None);
        }
        let head = self.reader.head()?;
        seed.deserialize(BorrowedStrDeserializer::new(self.reader.string(head)?)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(Value(self.reader))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::{DeTable, DeValue};

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
            let table = DeTable::parse(text).unwrap();
            let span = table.span();
            let mut table = DeValue::Table(table.into_inner());
            without_examples(&mut table);
            let table = ValueDeserializer::from(toml::Spanned::new(span, table));
            let read = Document::deserialize(table).unwrap();
            // The whole of it, every place in the text included.
            assert_eq!(format!("{:?}", document(text).unwrap()), format!("{read:?}"), "{name}");
        }
    }

    #[test]
    fn another_text_is_not_a_built_in_one() {
        let text = built_in("ci").unwrap();
        assert!(document(&format!("{text}\n")).is_none() && document("").is_none());
    }

    #[test]
    fn bytes_that_end_early_are_an_error() {
        let (bytes, text) = (read_when_built("ci").unwrap(), built_in("ci").unwrap());
        for end in 0..bytes.len() {
            let mut reader = Reader { bytes: &bytes[..end], text };
            assert!(Document::deserialize(Value(&mut reader)).is_err(), "{end}");
        }
    }
}
