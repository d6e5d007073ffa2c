//! Strict readers for single fields: what the format allows and nothing that merely looks like it.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;

/// The largest integer that every JSON reader keeps exactly: 2^53 - 1.
pub(crate) const SAFE_INTEGER_MAX: u64 = 9_007_199_254_740_991;

/// A whole number from 0 to [`SAFE_INTEGER_MAX`], in any JSON spelling (`3`, `3.0`, `3e0`).
pub(crate) fn whole_number(value: &Value) -> Option<u64> {
    let number = match value.as_u64() {
        Some(number) => number,
        None => whole_from_float(value.as_f64()?)?,
    };
    (number <= SAFE_INTEGER_MAX).then_some(number)
}

fn whole_from_float(number: f64) -> Option<u64> {
    if number.fract() != 0.0 || !(0.0..=9_007_199_254_740_991.0).contains(&number) {
        return None;
    }
    format!("{:.0}", number.abs()).parse().ok()
}

pub(super) fn safe_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    whole_number(&value).ok_or_else(|| D::Error::custom("not a whole number from 0 to 2^53-1"))
}

pub(super) fn attempt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match safe_integer(deserializer)? {
        1 => Ok(1),
        2 => Ok(2),
        other => Err(D::Error::custom(format!("attempt {other} is not 1 or 2"))),
    }
}

pub(super) fn non_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Err(D::Error::custom("an empty string where one with text is needed"));
    }
    Ok(text)
}

pub(super) fn non_empty_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::deserialize(deserializer)?;
    if list.is_empty() {
        return Err(D::Error::custom("an empty list where one with items is needed"));
    }
    Ok(list)
}

/// A key that must be there, with a value that may be `null`.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

/// A key that may be absent, with a value that must not be `null`.
pub(super) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// As [`present`], for a string with text.
pub(super) fn present_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    non_empty(deserializer).map(Some)
}

/// As [`present`], for a whole number.
pub(super) fn present_integer<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    safe_integer(deserializer).map(Some)
}
