//! Strict JSON: what a decision is made on must have one meaning.
//!
//! `serde_json` keeps the last of two equal keys; another reader may keep the first. Everything that
//! a model, a hook or a file gives us is therefore read here first, where a repeated key is an error.

use crate::base::text::is_hidden;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads exactly one JSON value. Refuses repeated keys, lone surrogates, invalid UTF-8, nesting
/// deeper than 128 and anything but white space after the value.
///
/// # Errors
/// The parser's own message with line and column.
pub fn parse_strict(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = StrictValue.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The one spelling in which equal values are equal bytes: keys sorted by code point, no white
/// space, `serde_json`'s number and string forms.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

/// `value` as one line of JSON in which no character moves, hides or reorders text when the line is
/// shown: besides what JSON must escape, everything that [`is_hidden`] names is escaped. Reading the
/// line gives the same value.
///
/// # Errors
/// The serialiser's.
pub fn visible_line<T: serde::Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let line = serde_json::to_string(value)?;
    // The serialiser has escaped the control characters of ASCII but the last.
    let is_plain = line.is_ascii() && !line.contains('\u{7f}');
    if is_plain || !line.chars().any(is_hidden) {
        return Ok(line);
    }
    // Hidden characters can stand only inside strings, where each may be written as an escape.
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        if is_hidden(character) {
            let mut units = [0_u16; 2];
            for unit in character.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    Ok(shown)
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => write_list(out, ('[', ']'), items, write_canonical),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|entry| entry.0);
            write_list(out, ('{', '}'), entries, |(key, item), out| {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(item, out);
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

fn write_list<T>(
    out: &mut String,
    (open, close): (char, char),
    items: impl IntoIterator<Item = T>,
    write: impl Fn(T, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(close);
}

struct StrictValue;

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(StrictValue)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(StrictValue)?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate key `{}`", key.escape_debug())));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repeated_keys_are_refused_at_every_depth() {
        for text in [r#"{"a":1,"a":2}"#, r#"[{"b":{"a":1,"a":1}}]"#, r#"{"a":1,"\u0061":2}"#] {
            let error = parse_strict(text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("duplicate key `a`"), "{text}: {error}");
        }
        assert_eq!(parse_strict(br#"{"a":1,"b":{"a":2}}"#).unwrap(), json!({"a":1,"b":{"a":2}}));
    }

    #[test]
    fn what_is_not_one_value_is_refused() {
        let deep = "[".repeat(200);
        let bad: [&[u8]; 7] =
            [b"", b"{", b"{}{}", br#""\ud800""#, b"\"\xff\"", b"NaN", deep.as_bytes()];
        for bytes in bad {
            assert!(parse_strict(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(parse_strict(b" null \n").unwrap(), Value::Null);
    }

    #[test]
    fn a_visible_line_hides_nothing_and_means_the_same() {
        let value = json!({"a\u{202e}": "x\n\u{7f}\u{9b}y\u{e0041}grüße 漢字"});
        let line = visible_line(&value).unwrap();
        assert_eq!(line, r#"{"a\u202e":"x\n\u007f\u009by\udb40\udc41grüße 漢字"}"#);
        assert_eq!(parse_strict(line.as_bytes()).unwrap(), value);
    }

    #[test]
    fn canonical_form_sorts_keys_and_drops_space() {
        let value = parse_strict(br#" {"b":[1, 2.5,"\u000a"], "a":{"d":null,"c":true}} "#).unwrap();
        assert_eq!(canonical(&value), r#"{"a":{"c":true,"d":null},"b":[1,2.5,"\n"]}"#);
    }
}
