//! Identifiers. All are version 7 UUIDs: unique, sortable by time, and the form that the session
//! format asks for.

use std::fmt;

/// A version 7 UUID in its lower-case, hyphenated spelling.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Id(String);

impl Id {
    /// A new identifier, later than every earlier one of this process.
    #[must_use]
    pub fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// Accepts exactly the lower-case, hyphenated version 7 form; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let uuid = uuid::Uuid::try_parse(text).ok()?;
        let canonical = uuid.get_version_num() == 7
            && uuid.get_variant() == uuid::Variant::RFC4122
            && uuid.to_string() == text;
        canonical.then(|| Self(text.to_owned()))
    }

    /// The spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last eight digits: enough to tell the identifiers of one session apart for a person.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(self.0.len().saturating_sub(8)..).unwrap_or(&self.0)
    }
}

impl Default for Id {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a version 7 UUID"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_version_7_form_is_accepted() {
        assert!(Id::parse("018f0000-0000-7000-8000-000000000001").is_some());
        assert!(Id::parse("018F0000-0000-7000-8000-000000000001").is_none());
        assert!(Id::parse("018f0000-0000-4000-8000-000000000001").is_none());
        assert!(Id::parse("018f0000-0000-7000-c000-000000000001").is_none());
        assert!(Id::parse("018f00000000700080000000000000 01").is_none());
    }

    #[test]
    fn later_identifiers_sort_later() {
        let (first, second) = (Id::new(), Id::new());
        assert!(first < second);
    }
}
