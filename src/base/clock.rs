//! The only source of wall-clock time. Tests and replays give a fixed one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the current time comes from.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// Starts at a given millisecond and advances by one with every reading, so that records made
    /// in a test are ordered and reproducible.
    Fixed(Arc<AtomicU64>),
}

impl Clock {
    /// A clock that starts at `start` milliseconds since the Unix epoch.
    #[must_use]
    pub fn fixed(start: u64) -> Self {
        Self::Fixed(Arc::new(AtomicU64::new(start)))
    }

    /// Milliseconds since the Unix epoch; 0 if the machine's clock stands before it.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match self {
            Self::System => system_now_ms(),
            Self::Fixed(next) => next.fetch_add(1, Ordering::Relaxed),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system clock")]
fn system_now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// `ms` since the Unix epoch as an RFC 3339 time in UTC with milliseconds.
#[must_use]
pub fn rfc3339(ms: u64) -> String {
    let bounded = i64::try_from(ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(bounded)
        .map_or_else(|_| format!("@{ms}ms"), |time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_clock_advances_by_one() {
        let clock = Clock::fixed(5);
        assert_eq!((clock.now_ms(), clock.now_ms()), (5, 6));
    }

    #[test]
    fn time_is_shown_in_utc_with_milliseconds() {
        assert_eq!(rfc3339(1_710_000_000_001), "2024-03-09T16:00:00.001Z");
    }
}
