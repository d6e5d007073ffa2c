//! The form of a script: one JSON object a line, strict keys, errors with file and line. What a turn
//! does is the business of `script`; the format is described in docs/script-format.md.

use crate::base::limits::SCRIPT_REPEAT_MAX;
use crate::model::error::ModelError;
use crate::model::message::{Finish, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One turn: what is expected, and what is answered.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Turn {
    /// Line in the file, counted from 1.
    #[serde(skip)]
    pub(crate) line: usize,
    /// The agent that this turn is for; any agent without turns of its own if absent.
    pub(crate) agent: Option<String>,
    /// Texts that must be in the last tool results.
    pub(crate) expect: Texts,
    /// Texts that must not be there.
    pub(crate) expect_not: Texts,
    /// The names of the tools in the request, in order.
    pub(crate) expect_tools: Option<Vec<String>>,
    /// Milliseconds before anything else happens.
    pub(crate) delay_ms: u64,
    /// Thinking.
    pub(crate) thinking: Option<String>,
    /// Answer text; may hold think blocks.
    pub(crate) text: Option<String>,
    /// Calls.
    pub(crate) calls: Vec<CallLine>,
    /// Bytes of text in one piece of the stream; all at once if absent.
    pub(crate) chunk: Option<usize>,
    /// Why the answer ends; found from the calls if absent.
    pub(crate) finish: Option<Finish>,
    /// What it costs.
    pub(crate) usage: Option<Usage>,
    /// Ends the stream here, without a finish reason.
    pub(crate) cut: bool,
    /// Fails the attempt here.
    pub(crate) error: Option<ErrorLine>,
    /// How many times the turn is answered; once if absent.
    pub(crate) repeat: Option<usize>,
}

/// A call of a turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallLine {
    /// Identifier; made from turn and place if absent.
    pub(crate) id: Option<String>,
    /// The tool's name.
    pub(crate) name: String,
    /// A JSON object, or a string that is passed on as it is, malformed or not.
    pub(crate) arguments: Box<RawValue>,
}

/// A failure of a turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorLine {
    /// An HTTP status; or else `kind`.
    pub(crate) status: Option<u16>,
    /// A failure without status.
    pub(crate) kind: Option<ErrorKind>,
    /// The server's words.
    #[serde(default)]
    pub(crate) message: String,
    /// Value of the `retry-after` header.
    pub(crate) retry_after: Option<String>,
}

/// Failures that have no status.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorKind {
    /// No connection.
    Connect,
    /// The connection broke.
    Transport,
    /// The answer was no valid document.
    InvalidAnswer,
    /// Nothing came for too long.
    Idle,
}

/// One text or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Default for Texts {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Texts {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// Reads a script. Blank lines and lines that begin with `#` are skipped.
pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<Turn>, ModelError> {
    let mut turns = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line_number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |problem: String| ModelError::Script {
            place: format!("{}:{line_number}", crate::base::text::escape(name)),
            problem: crate::base::text::escape(&problem),
        };
        if !line.starts_with('{') {
            return Err(wrong("a turn is one JSON object on one line".to_owned()));
        }
        let mut turn: Turn = serde_json::from_str(line).map_err(|error| {
            wrong(format!("column {}: {}", error.column(), without_position(&error)))
        })?;
        turn.line = line_number;
        check(&turn).map_err(|problem| wrong(problem.to_owned()))?;
        for _ in 0..turn.repeat.unwrap_or(1) {
            turns.push(turn.clone());
        }
    }
    if turns.is_empty() {
        let place = crate::base::text::escape(name);
        let problem = "the script holds no turn; see docs/script-format.md".to_owned();
        return Err(ModelError::Script { place, problem });
    }
    Ok(turns)
}

fn check(turn: &Turn) -> Result<(), &'static str> {
    if turn.repeat.is_some_and(|count| count == 0 || count > SCRIPT_REPEAT_MAX) {
        return Err("`repeat` must be between 1 and 10000");
    }
    if turn.chunk == Some(0) {
        return Err("`chunk` must be at least 1");
    }
    if turn.cut && (turn.error.is_some() || turn.finish.is_some()) {
        return Err("`cut` ends the stream: it stands with neither `error` nor `finish`");
    }
    if turn.error.is_some() && turn.finish.is_some() {
        return Err("`error` fails the attempt: it does not stand with `finish`");
    }
    match &turn.error {
        Some(error) if error.status.is_some() == error.kind.is_some() => {
            Err("`error` needs either `status` or `kind`")
        }
        Some(error) if error.status.is_some_and(|status| !(300..600).contains(&status)) => {
            Err("`status` must be between 300 and 599")
        }
        Some(_) | None => Ok(()),
    }
}

/// The parser counts lines from the one it was given.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.to_owned())
}
