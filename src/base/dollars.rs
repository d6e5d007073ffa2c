//! Amounts of money, as whole millionths of a dollar: they add up exactly, and the smallest price of a
//! token that a provider asks is of that size.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::borrow::Cow;
use std::fmt;

/// Millionths in a dollar.
const MILLION: f64 = 1e6;
/// The largest amount that is accepted as a limit, in dollars: far above what any run costs, and exact as
/// a floating-point number of millionths.
const DOLLARS_MAX: f64 = 1e9;

/// An amount of money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Dollars(u64);

impl Dollars {
    /// So many millionths of a dollar.
    #[must_use]
    pub const fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }

    /// The next amount that is not less than `dollars`: what is spent is never counted too low. What is no
    /// amount is the largest.
    #[must_use]
    pub fn at_least(dollars: f64) -> Self {
        Self::rounded((dollars * MILLION).ceil()).unwrap_or(Self(u64::MAX))
    }

    /// A limit as a person writes it, to the nearest millionth.
    #[must_use]
    pub fn limit(dollars: f64) -> Option<Self> {
        (dollars <= DOLLARS_MAX).then(|| Self::rounded((dollars * MILLION).round())).flatten()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is whole, not negative and below 2^53"
    )]
    fn rounded(millionths: f64) -> Option<Self> {
        (0.0..=DOLLARS_MAX * MILLION).contains(&millionths).then_some(Self(millionths as u64))
    }

    /// Millionths of a dollar.
    #[must_use]
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// As a number of dollars, for results.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "amounts of runs are far below 2^52 millionths")]
    pub fn as_number(self) -> f64 {
        self.0 as f64 / MILLION
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let digits = format!("{part:06}");
        let shown = digits.trim_end_matches('0');
        write!(formatter, "${whole}.{shown:0<2}")
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        let wanted = "an amount of dollars, such as 2.5, at most 1000000000";
        Self::limit(dollars)
            .ok_or_else(|| de::Error::invalid_value(de::Unexpected::Float(dollars), &wanted))
    }
}

impl JsonSchema for Dollars {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }
    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_rounded_up_and_what_is_no_amount_is_too_much() {
        assert_eq!(Dollars::at_least(0.000_000_1).millionths(), 1);
        assert_eq!(Dollars::at_least(0.0).millionths(), 0);
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(Dollars::at_least(bad).millionths(), u64::MAX, "{bad}");
            assert_eq!(Dollars::limit(bad), None, "{bad}");
        }
        assert_eq!(Dollars::limit(2e9), None);
        assert_eq!(Dollars::limit(0.1).map(Dollars::millionths), Some(100_000));
    }

    #[test]
    fn amounts_are_shown_with_all_that_they_have() {
        for (millionths, shown) in [
            (0, "$0.00"),
            (1, "$0.000001"),
            (100_000, "$0.10"),
            (2_500_000, "$2.50"),
            (12_345_678, "$12.345678"),
        ] {
            assert_eq!(Dollars::from_millionths(millionths).to_string(), shown);
        }
    }
}
