//! When a failed attempt is repeated, and after what delay.
//!
//! Three attempts in all, one second and two seconds apart, or as long as the server asks, up to a
//! cap. Nothing is repeated that cannot succeed, and nothing of which a piece has been shown. The
//! wish to stop is looked at before every attempt and during every wait.

use crate::base::limits::{MODEL_RETRIES_MAX, MODEL_RETRY_DELAY, MODEL_RETRY_DELAY_MAX};
use crate::model::Model;
use crate::model::abort::Abort;
use crate::model::error::ModelError;
use crate::model::message::{Answer, ModelRequest, Shown, StreamEvent};
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often and after what delays.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Retries after the first attempt.
    pub retries: u32,
    /// Delay before retry `n` is `n` times this.
    pub delay: Duration,
    /// The longest delay that a server may ask for.
    pub delay_max: Duration,
    /// How a delay is spent.
    pub timer: Timer,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: MODEL_RETRIES_MAX,
            delay: MODEL_RETRY_DELAY,
            delay_max: MODEL_RETRY_DELAY_MAX,
            timer: Timer::Real,
        }
    }
}

/// How a delay is spent.
#[derive(Debug, Clone, Default)]
pub enum Timer {
    /// By waiting, a little longer each time by chance so that many clients do not come back at once.
    #[default]
    Real,
    /// Not at all: the delays are noted here, without the chance.
    Noted(Arc<Mutex<Vec<Duration>>>),
}

impl Timer {
    fn with_jitter(&self, delay: Duration, most: Duration) -> Duration {
        match self {
            Self::Real => delay.saturating_add(jitter(delay)).min(most.max(delay)),
            Self::Noted(_) => delay,
        }
    }

    async fn wait(&self, delay: Duration) {
        match self {
            Self::Real => tokio::time::sleep(delay).await,
            Self::Noted(delays) => {
                delays.lock().unwrap_or_else(PoisonError::into_inner).push(delay);
            }
        }
    }
}

/// Up to a tenth of `delay`. `RandomState` is the standard library's source of chance.
fn jitter(delay: Duration) -> Duration {
    let chance = std::hash::RandomState::new().build_hasher().finish() % 1_000;
    let chance = u32::try_from(chance).unwrap_or(0);
    delay / 10 / 1_000 * chance
}

/// One failed attempt, for the audit log and the event stream.
#[derive(Debug)]
pub struct AttemptFailure<'a> {
    /// Which attempt, counted from 1.
    pub attempt: u32,
    /// The most attempts that may be made.
    pub attempts_max: u32,
    /// Why it failed.
    pub error: &'a ModelError,
    /// The wait before the next one; `None` if there is none.
    pub retry_in: Option<Duration>,
    /// Whether a part of the answer had been shown, which forbids another attempt.
    pub shown: bool,
}

/// Who is told what happens during a call.
pub struct Listener<'a> {
    /// Told every piece of the answer; says whether it was shown to anybody.
    pub on_event: &'a mut dyn FnMut(StreamEvent) -> Shown,
    /// Told every failed attempt, before the wait.
    pub on_failure: &'a mut dyn FnMut(&AttemptFailure<'_>),
}

impl std::fmt::Debug for Listener<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Listener")
    }
}

/// Calls `model` until an attempt succeeds or none may follow.
///
/// # Errors
/// The failure of the only attempt; [`ModelError::GaveUp`] after several; and
/// [`ModelError::DelayTooLong`], [`ModelError::Aborted`].
pub async fn call_with_retry(
    model: &Model,
    request: &ModelRequest,
    policy: &RetryPolicy,
    listener: Listener<'_>,
    abort: &Abort,
) -> Result<Answer, ModelError> {
    let Listener { on_event, on_failure } = listener;
    let attempts_max = policy.retries.saturating_add(1);
    let mut attempt = 0;
    loop {
        if abort.is_aborted() {
            return Err(ModelError::Aborted);
        }
        attempt += 1;
        let mut shown = false;
        let mut watch = |event| {
            let answer = on_event(event);
            shown |= answer == Shown::Yes;
            answer
        };
        let error = match model.call(request, &mut watch, abort).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let next = if attempt < attempts_max && !shown {
            next_delay(&error, attempt, policy)
        } else {
            Ok(None)
        };
        let retry_in = next.as_ref().ok().copied().flatten();
        on_failure(&AttemptFailure { attempt, attempts_max, error: &error, retry_in, shown });
        match next {
            Ok(Some(delay)) => wait(delay, policy, abort).await?,
            Ok(None) if attempt > 1 => {
                return Err(ModelError::GaveUp { attempts: attempt, source: Box::new(error) });
            }
            Ok(None) => return Err(error),
            Err(too_long) => return Err(too_long),
        }
    }
}

async fn wait(delay: Duration, policy: &RetryPolicy, abort: &Abort) -> Result<(), ModelError> {
    tokio::select! {
        biased;
        () = abort.aborted() => Err(ModelError::Aborted),
        () = policy.timer.wait(delay) => Ok(()),
    }
}

/// The delay before the attempt after number `attempt`; `None` if the failure is final.
fn next_delay(
    error: &ModelError,
    attempt: u32,
    policy: &RetryPolicy,
) -> Result<Option<Duration>, ModelError> {
    if !error.is_retryable() {
        return Ok(None);
    }
    let backoff = policy.delay.saturating_mul(attempt);
    let delay = error.server_delay().map_or(backoff, |asked| asked.max(backoff));
    if delay > policy.delay_max {
        let source = Box::new(error.clone());
        return Err(ModelError::DelayTooLong { delay, limit: policy.delay_max, source });
    }
    Ok(Some(policy.timer.with_jitter(delay, policy.delay_max)))
}
