//! The wait that a server asks for: `retry-after-ms`, and `retry-after` in seconds or as a date.
//! What cannot be read is ignored.

use jiff::Timestamp;
use jiff::fmt::{rfc2822, strtime};
use reqwest::header::HeaderMap;
use std::time::Duration;

/// The wait in `headers`, seen from `now_ms`.
pub(crate) fn delay(headers: &HeaderMap, now_ms: u64) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    text("retry-after-ms")
        .and_then(|value| number(value, 1e-3))
        .or_else(|| text("retry-after").and_then(|value| parse(value, now_ms)))
}

/// Reads the value of `retry-after`.
pub(crate) fn parse(value: &str, now_ms: u64) -> Option<Duration> {
    number(value, 1.0).or_else(|| {
        let at = u64::try_from(http_date(value.trim())?.as_millisecond()).ok()?;
        Some(Duration::from_millis(at.saturating_sub(now_ms)))
    })
}

/// Digits with an optional fraction, times `unit` seconds. Nothing else that a float may be.
fn number(value: &str, unit: f64) -> Option<Duration> {
    let value = value.trim();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = match value.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(value),
    };
    let number: f64 = value.parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(number * unit).ok().or(Some(Duration::MAX))
}

/// The three forms of RFC 9110.
fn http_date(value: &str) -> Option<Timestamp> {
    if let Ok(zoned) = rfc2822::parse(value) {
        return Some(zoned.timestamp());
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"].iter().find_map(|form| {
        let date = strtime::parse(form, value).ok()?.to_datetime().ok()?;
        date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-30T18:00:00Z
    const NOW: u64 = 1_796_061_600_000;

    #[test]
    fn every_form_is_read_or_ignored() {
        let seconds = |number| Some(Duration::from_secs(number));
        for (value, expected) in [
            ("5", seconds(5)),
            (" 5 ", seconds(5)),
            ("0", seconds(0)),
            ("1.5", Some(Duration::from_millis(1_500))),
            ("999999", seconds(999_999)),
            ("99999999999999999999999999", Some(Duration::MAX)),
            ("abc", None),
            ("2abc", None),
            ("-1", None),
            ("1e3", None),
            ("inf", None),
            ("NaN", None),
            ("", None),
            ("Mon, 30 Nov 2026 18:00:30 GMT", seconds(30)),
            ("Monday, 30-Nov-26 18:00:30 GMT", seconds(30)),
            ("Mon Nov 30 18:00:30 2026", seconds(30)),
            ("Mon, 30 Nov 2026 17:00:00 GMT", seconds(0)),
            ("Tue, 99 Nov 2026 17:00:00 GMT", None),
            ("2026-11-30T18:00:30Z", None),
        ] {
            assert_eq!(parse(value, NOW), expected, "{value:?}");
        }
    }

    #[test]
    fn milliseconds_come_first() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        assert_eq!(delay(&headers, NOW), Some(Duration::from_secs(7)));
        headers.insert("retry-after-ms", "1500".parse().unwrap());
        assert_eq!(delay(&headers, NOW), Some(Duration::from_millis(1_500)));
        headers.insert("retry-after-ms", "soon".parse().unwrap());
        assert_eq!(delay(&headers, NOW), Some(Duration::from_secs(7)));
    }
}
