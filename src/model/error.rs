//! Everything that can go wrong with a model call: one typed value, with a text for the user that
//! says what to do next, and the two answers that the retry rule needs.
//!
//! Texts of a server are untrusted: they are cut, escaped and rid of the key before they get here.

use std::time::Duration;

/// Why a model call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The configuration cannot work.
    #[error("{0}")]
    Configuration(String),
    /// A provider needs a key and none was given.
    #[error("no key for provider `{provider}`; set the environment variable {variable}")]
    NoKey {
        /// The provider.
        provider: String,
        /// The variable that is read.
        variable: String,
    },
    /// No connection.
    #[error(
        "cannot connect to `{address}`: {problem}; check that the server runs and that the base URL is right"
    )]
    Connect {
        /// Scheme, host and port.
        address: String,
        /// What the system said.
        problem: String,
    },
    /// The connection broke.
    #[error("the connection to `{address}` broke: {problem}; run again")]
    Transport {
        /// Scheme, host and port.
        address: String,
        /// What the system said.
        problem: String,
    },
    /// The server answered with an error.
    #[error("{}", status_text(.0))]
    Status(StatusError),
    /// The answer is not of the protocol's form.
    #[error(
        "the model server sent an invalid answer: {problem}; check that the base URL belongs to this provider"
    )]
    InvalidAnswer {
        /// What is wrong with it.
        problem: String,
    },
    /// The stream ended before the model had finished.
    #[error("the model's answer broke off before its end; run again")]
    CutStream,
    /// Nothing came for too long.
    #[error("the model server sent nothing for {} s; run again, or raise `idle_seconds`", .0.as_secs_f64())]
    Idle(Duration),
    /// Signs of life came for too long, and nothing of an answer.
    #[error(
        "the model server sent nothing of an answer for {} s, only signs of life; run again, or raise \
         `stalled_seconds`",
        .0.as_secs_f64()
    )]
    Stalled(Duration),
    /// More came than is accepted.
    #[error("the model server sent more than {limit} bytes in one {what}; the answer was dropped")]
    TooLarge {
        /// `event`, `answer` or `header`.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// Neither text nor calls.
    #[error("the model gave an empty answer; run again, or try another model")]
    Empty,
    /// The model's side ended the answer with an error and no content.
    #[error("the model server ended the answer with an error: {0}")]
    FinishedWithError(String),
    /// A script does not fit the run, or is wrong.
    #[error("{place}: {problem}")]
    Script {
        /// File and line.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// A script has no turn left.
    #[error(
        "script `{name}` has no turn left for `{agent}` after {used} turns; add a turn that ends the run"
    )]
    ScriptExhausted {
        /// The script.
        name: String,
        /// Who asked.
        agent: String,
        /// Turns used so far.
        used: usize,
    },
    /// The server asks for a longer wait than is accepted.
    #[error("{source}; the server asks to wait {} s, more than the limit of {} s: run again later", .delay.as_secs(), .limit.as_secs())]
    DelayTooLong {
        /// The delay asked for.
        delay: Duration,
        /// The longest accepted.
        limit: Duration,
        /// The failure that carried the wish.
        source: Box<Self>,
    },
    /// Every attempt failed.
    #[error("gave up after {attempts} attempts: {source}")]
    GaveUp {
        /// How many were made.
        attempts: u32,
        /// The last failure.
        source: Box<Self>,
    },
    /// Somebody asked to stop.
    #[error("interrupted")]
    Aborted,
}

/// An error answer of a server, as a status of its response or as an event of its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusError {
    /// The HTTP status, or the one that an error event stands for.
    pub status: u16,
    /// What the status means here.
    pub kind: StatusKind,
    /// The server's words, escaped and cut.
    pub message: String,
    /// The wait that the server asked for.
    pub retry_after: Option<Duration>,
    /// The provider, for the advice.
    pub provider: String,
    /// The environment variable of the key, for the advice.
    pub key_variable: Option<String>,
}

/// What an error answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusKind {
    /// The key is missing, wrong or has no right.
    Authentication,
    /// The account has no credit or quota left.
    NoCredit,
    /// No such model or path.
    NotFound,
    /// The conversation is longer than the model's window.
    ContextOverflow,
    /// The request was refused for another reason.
    Refused,
    /// Too many requests.
    RateLimited,
    /// The server failed, is overloaded, or a proxy before it timed out.
    Server,
    /// A redirect; none is followed.
    Redirect,
}

impl StatusKind {
    /// What `status` with the server's `words` (type, code and message in one text) means.
    #[must_use]
    pub fn of(status: u16, words: &str) -> Self {
        let words = words.to_ascii_lowercase();
        let says = |markers: &[&str]| markers.iter().any(|marker| words.contains(marker));
        match status {
            402 => Self::NoCredit,
            400 | 403 | 429 if says(NO_CREDIT) => Self::NoCredit,
            401 | 403 => Self::Authentication,
            404 => Self::NotFound,
            400 | 413 | 422 if says(CONTEXT_OVERFLOW) => Self::ContextOverflow,
            429 => Self::RateLimited,
            300..=399 => Self::Redirect,
            408 | 409 | 425 | 500..=599 => Self::Server,
            _ => Self::Refused,
        }
    }
}

const NO_CREDIT: &[&str] = &[
    "insufficient_quota",
    "insufficient credit",
    "insufficient balance",
    "insufficient funds",
    "exceeded your current quota",
    "credit balance",
    "billing_error",
    "billing_hard_limit",
    "out of credit",
    "no credit",
    "payment required",
    "usage limit reached",
];

const CONTEXT_OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "context length",
    "context window",
    "maximum context",
    "exceed_context_size",
    "exceeds the available context",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "request_too_large",
    "string_above_max_length",
];

fn status_text(error: &StatusError) -> String {
    let StatusError { status, kind, message, retry_after: _, provider, key_variable } = error;
    let said = if message.is_empty() { String::new() } else { format!(": {message}") };
    let variable = key_variable.as_deref().unwrap_or("the provider's key");
    let advice = match kind {
        StatusKind::Authentication => format!("check {variable} and the rights of that key"),
        StatusKind::NoCredit => "add credit to the account, or use another provider".to_owned(),
        StatusKind::NotFound => "check the model's name and the base URL".to_owned(),
        StatusKind::ContextOverflow => "the conversation is too long for this model".to_owned(),
        StatusKind::Refused => "the request was refused and is not repeated".to_owned(),
        StatusKind::RateLimited => "wait, or use another model".to_owned(),
        StatusKind::Server => "run again later".to_owned(),
        StatusKind::Redirect => {
            "redirects are not followed; give the final address as base URL".to_owned()
        }
    };
    format!("provider `{provider}` answered {status}{said} ({advice})")
}

impl ModelError {
    /// Whether the same request may succeed if it is sent again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Transport { .. }
            | Self::InvalidAnswer { .. }
            | Self::CutStream
            | Self::Idle(_)
            | Self::Stalled(_)
            | Self::Empty
            | Self::FinishedWithError(_) => true,
            Self::Status(error) => match error.kind {
                StatusKind::RateLimited | StatusKind::Server => true,
                StatusKind::Authentication
                | StatusKind::NoCredit
                | StatusKind::NotFound
                | StatusKind::ContextOverflow
                | StatusKind::Refused
                | StatusKind::Redirect => false,
            },
            Self::Configuration(_)
            | Self::NoKey { .. }
            | Self::TooLarge { .. }
            | Self::Script { .. }
            | Self::ScriptExhausted { .. }
            | Self::DelayTooLong { .. }
            | Self::GaveUp { .. }
            | Self::Aborted => false,
        }
    }

    /// The wait that the server asked for, if it did.
    #[must_use]
    pub const fn server_delay(&self) -> Option<Duration> {
        if let Self::Status(error) = self { error.retry_after } else { None }
    }

    /// The failure under [`ModelError::GaveUp`] and [`ModelError::DelayTooLong`], or this one.
    #[must_use]
    pub fn root(&self) -> &Self {
        if let Self::GaveUp { source, .. } | Self::DelayTooLong { source, .. } = self {
            source.root()
        } else {
            self
        }
    }

    /// Whether the conversation is too long for the model: a shorter one may succeed.
    #[must_use]
    pub fn is_context_overflow(&self) -> bool {
        matches!(self.root(), Self::Status(error) if error.kind == StatusKind::ContextOverflow)
    }

    /// A stable code for records and machine-readable output; that of the last failure where
    /// several attempts were made.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.root() {
            Self::Configuration(_) => "model-configuration",
            Self::NoKey { .. } => "model-no-key",
            Self::Connect { .. } => "model-connect",
            Self::Transport { .. } => "model-transport",
            Self::Status(error) => match error.kind {
                StatusKind::Authentication => "model-authentication",
                StatusKind::NoCredit => "model-no-credit",
                StatusKind::NotFound => "model-not-found",
                StatusKind::ContextOverflow => "model-context-overflow",
                StatusKind::Refused => "model-refused",
                StatusKind::RateLimited => "model-rate-limited",
                StatusKind::Server => "model-server",
                StatusKind::Redirect => "model-redirect",
            },
            Self::InvalidAnswer { .. } => "model-invalid-answer",
            Self::CutStream => "model-cut-stream",
            Self::Idle(_) => "model-idle",
            Self::Stalled(_) => "model-stalled",
            Self::TooLarge { .. } => "model-too-large",
            Self::Empty => "model-empty",
            Self::FinishedWithError(_) => "model-finished-with-error",
            Self::Script { .. } => "model-script",
            Self::ScriptExhausted { .. } => "model-script-exhausted",
            Self::DelayTooLong { .. } => "model-delay-too-long",
            Self::GaveUp { .. } => "model-gave-up",
            Self::Aborted => "model-aborted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_told_apart_by_number_and_words() {
        for (status, words, kind, retryable) in [
            (400, "bad", StatusKind::Refused, false),
            (400, "context_length_exceeded", StatusKind::ContextOverflow, false),
            (400, "prompt is too long: 210000 tokens > 200000", StatusKind::ContextOverflow, false),
            (400, "Your credit balance is too low", StatusKind::NoCredit, false),
            (401, "", StatusKind::Authentication, false),
            (402, "", StatusKind::NoCredit, false),
            (403, "", StatusKind::Authentication, false),
            (404, "", StatusKind::NotFound, false),
            (308, "", StatusKind::Redirect, false),
            (408, "", StatusKind::Server, true),
            (409, "", StatusKind::Server, true),
            (425, "", StatusKind::Server, true),
            (429, "slow down", StatusKind::RateLimited, true),
            (429, "insufficient_quota", StatusKind::NoCredit, false),
            (500, "", StatusKind::Server, true),
            (503, "", StatusKind::Server, true),
            (529, "overloaded_error", StatusKind::Server, true),
        ] {
            assert_eq!(StatusKind::of(status, words), kind, "{status} {words}");
            let error = StatusError {
                status,
                kind,
                message: words.to_owned(),
                retry_after: None,
                provider: "p".to_owned(),
                key_variable: None,
            };
            assert_eq!(ModelError::Status(error).is_retryable(), retryable, "{status} {words}");
        }
    }

    #[test]
    fn an_authentication_error_names_the_variable() {
        let error = ModelError::Status(StatusError {
            status: 401,
            kind: StatusKind::Authentication,
            message: "bad key".to_owned(),
            retry_after: None,
            provider: "openai".to_owned(),
            key_variable: Some("OPENAI_API_KEY".to_owned()),
        });
        let text = error.to_string();
        assert!(text.contains("401") && text.contains("OPENAI_API_KEY"), "{text}");
    }
}
