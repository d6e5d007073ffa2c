//! Values that remember where in the file they were written, and the two shapes TOML lists come in.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// A value and the bytes of the file that spell it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(deserializer)?;
        let span = spanned.span();
        Ok(Self { value: spanned.into_inner(), span })
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// One string, or a list of strings that are alternatives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words(pub Vec<String>);

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or a list of strings")
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<Words, E> {
        Ok(Words(vec![value.to_owned()]))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Words, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = sequence.next_element::<String>()? {
            words.push(word);
        }
        Ok(Words(words))
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

fn words_schema() -> serde_json::Value {
    serde_json::json!({"anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1}
    ]})
}

impl JsonSchema for Words {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::try_from(words_schema()).unwrap_or_default()
    }
}

/// What one argument of a command must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenText {
    /// One of these words. `*` alone is any one word, `**` alone any rest.
    Words(Vec<String>),
    /// A word that this regular expression matches as a whole.
    Regex {
        /// The expression.
        regex: String,
        /// Also a word whose value is not known, matched by the way it is written.
        unknown: bool,
    },
}

struct TokenVisitor;

impl<'de> Visitor<'de> for TokenVisitor {
    type Value = TokenText;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string, a list of strings, or { regex = \"...\" }")
    }
    fn visit_str<E: de::Error>(self, value: &str) -> Result<TokenText, E> {
        Ok(TokenText::Words(vec![value.to_owned()]))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<TokenText, A::Error> {
        WordsVisitor.visit_seq(sequence).map(|Words(words)| TokenText::Words(words))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TokenText, A::Error> {
        let (mut regex, mut unknown) = (None, false);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "regex" => regex = Some(map.next_value::<String>()?),
                "unknown" => unknown = map.next_value::<bool>()?,
                other => return Err(de::Error::unknown_field(other, &["regex", "unknown"])),
            }
        }
        let regex = regex.ok_or_else(|| de::Error::missing_field("regex"))?;
        Ok(TokenText::Regex { regex, unknown })
    }
}

impl<'de> Deserialize<'de> for TokenText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TokenVisitor)
    }
}

impl JsonSchema for TokenText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Token".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let table = serde_json::json!({
            "type": "object", "required": ["regex"], "additionalProperties": false,
            "properties": {"regex": {"type": "string"}, "unknown": {"type": "boolean"}}
        });
        Schema::try_from(serde_json::json!({"anyOf": [words_schema(), table]})).unwrap_or_default()
    }
}
