//! A model that answers from a script: for the demonstration, for tests, and for replaying a run.
//!
//! A script can do what a live server can: text, thinking, several calls, malformed arguments,
//! errors, delays, cut streams. A turn may also say what it expects of the run, which makes a script
//! a test.

mod format;
pub mod record;
pub mod recording;
#[cfg(test)]
mod tests;

use crate::base::limits::{MODEL_EVENT_BYTES_MAX, SCRIPT_BYTES_MAX};
use crate::base::text::{escape, prefix};
use crate::model::ModelConfig;
use crate::model::adapter::ErrorContext;
use crate::model::adapter::build::AnswerBuilder;
use crate::model::error::ModelError;
use crate::model::message::{Answer, Finish, Message, ModelRequest, Shown, StreamEvent};
use crate::model::retry_after;
use format::{ErrorKind, ErrorLine, Turn};
use std::io::Read as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

type Sink<'a> = &'a mut dyn FnMut(StreamEvent) -> Shown;

/// Reads the file of a `script/FILE` model.
///
/// # Errors
/// [`ModelError::Configuration`] if it cannot be read.
pub fn read(path: &Path) -> Result<ModelConfig, ModelError> {
    let name = path.display().to_string();
    let wrong = |problem: String| {
        ModelError::Configuration(format!("script `{}`: {problem}", escape(&name)))
    };
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut text = String::new();
    let read = file.take(SCRIPT_BYTES_MAX + 1).read_to_string(&mut text);
    let bytes = read.map_err(|error| wrong(error.to_string()))?;
    if bytes as u64 > SCRIPT_BYTES_MAX {
        return Err(wrong(format!("is longer than {SCRIPT_BYTES_MAX} bytes")));
    }
    Ok(ModelConfig::Script { name, text })
}

/// A script and how far it has been played.
#[derive(Debug)]
pub(crate) struct Script {
    name: String,
    turns: Vec<Turn>,
    used: Mutex<Vec<bool>>,
}

impl Script {
    /// Reads a script; `name` is for messages.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        let turns = format::parse(name, text)?;
        let used = Mutex::new(vec![false; turns.len()]);
        Ok(Self { name: name.to_owned(), turns, used })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Plays the next turn.
    pub(crate) async fn attempt(
        &self,
        request: &ModelRequest,
        on_event: Sink<'_>,
    ) -> Result<Answer, ModelError> {
        let (number, turn) = self.next_turn(&request.agent)?;
        if turn.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(turn.delay_ms)).await;
        }
        self.check_expectations(turn, request)?;
        let mut answer = AnswerBuilder::new(MODEL_EVENT_BYTES_MAX);
        fill(&mut answer, number, turn, on_event)?;
        if let Some(error) = &turn.error {
            return Err(failure(error));
        }
        if !turn.cut {
            answer.set_finish(turn.finish.unwrap_or(Finish::Stop), "scripted");
        }
        if let Some(usage) = turn.usage {
            answer.set_usage(usage);
        }
        answer.set_model(&self.name);
        let (answer, events) = answer.build(request)?;
        tell(events, on_event);
        Ok(answer)
    }

    /// The first unused turn of `agent`; of nobody in particular if it has none of its own.
    fn next_turn(&self, agent: &str) -> Result<(usize, &Turn), ModelError> {
        let of_agent = |turn: &Turn| turn.agent.as_deref() == Some(agent);
        let has_own = self.turns.iter().any(of_agent);
        let fits = |turn: &Turn| if has_own { of_agent(turn) } else { turn.agent.is_none() };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut candidates = self.turns.iter().zip(used.iter_mut()).enumerate();
        let found = candidates.find(|(_, (turn, used))| !**used && fits(turn));
        if let Some((index, (turn, used))) = found {
            *used = true;
            return Ok((index + 1, turn));
        }
        Err(ModelError::ScriptExhausted {
            name: self.name.clone(),
            agent: agent.to_owned(),
            used: used.iter().filter(|used| **used).count(),
        })
    }

    fn check_expectations(&self, turn: &Turn, request: &ModelRequest) -> Result<(), ModelError> {
        let seen = last_results(&request.messages);
        let missing = turn.expect.as_slice().iter().find(|text| !seen.contains(text.as_str()));
        let present = turn.expect_not.as_slice().iter().find(|text| seen.contains(text.as_str()));
        let tools: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        let shown = || escape(prefix(&seen, 2_000));
        let problem = match (missing, present, &turn.expect_tools) {
            (Some(text), _, _) => format!("expected `{}` in: {}", escape(text), shown()),
            (None, Some(text), _) => format!("did not expect `{}` in: {}", escape(text), shown()),
            (None, None, Some(expected)) if *expected != tools => {
                format!("expected the tools {expected:?}, the request has {tools:?}")
            }
            (None, None, Some(_) | None) => return Ok(()),
        };
        Err(ModelError::Script { place: format!("{}:{}", escape(&self.name), turn.line), problem })
    }
}

/// The results after the last assistant message; what the user said there if there are none.
fn last_results(messages: &[Message]) -> String {
    let is_assistant = |message: &Message| matches!(message, Message::Assistant { .. });
    let start = messages.iter().rposition(is_assistant).map_or(0, |index| index + 1);
    let tail = messages.get(start..).unwrap_or_default();
    let texts = |results: bool| {
        tail.iter()
            .filter_map(|message| match message {
                Message::Tool { content, .. } if results => Some(&**content),
                Message::User { content } if !results => Some(&**content),
                Message::Tool { .. } | Message::User { .. } | Message::Assistant { .. } => None,
            })
            .collect::<Vec<_>>()
    };
    let results = texts(true);
    if results.is_empty() { texts(false).join("\n") } else { results.join("\n") }
}

fn fill(
    answer: &mut AnswerBuilder,
    number: usize,
    turn: &Turn,
    on_event: Sink<'_>,
) -> Result<(), ModelError> {
    if let Some(thinking) = &turn.thinking {
        answer.thinking(thinking)?;
        answer.end_thinking(None);
    }
    for piece in pieces(turn.text.as_deref().unwrap_or(""), turn.chunk) {
        answer.text(piece)?;
        tell(answer.take_events(), on_event);
    }
    for (index, call) in turn.calls.iter().enumerate() {
        let id = call.id.clone().unwrap_or_else(|| format!("call_{number}_{}", index + 1));
        let place = answer.begin_call(&id, &call.name)?;
        let raw = call.arguments.get();
        // A string stands for its own text; anything else is passed on byte for byte.
        let arguments = serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned());
        answer.set_arguments(place, &arguments)?;
    }
    tell(answer.take_events(), on_event);
    Ok(())
}

/// `text` in pieces of about `bytes` bytes, cut between characters.
fn pieces(mut text: &str, bytes: Option<usize>) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let mut end = bytes.unwrap_or(text.len()).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

fn failure(error: &ErrorLine) -> ModelError {
    let address = "script".to_owned();
    let problem = error.message.clone();
    let Some(status) = error.status else {
        return match error.kind {
            Some(ErrorKind::Connect) => ModelError::Connect { address, problem },
            Some(ErrorKind::InvalidAnswer) => ModelError::InvalidAnswer { problem },
            Some(ErrorKind::Idle) => ModelError::Idle(Duration::ZERO),
            Some(ErrorKind::Transport) | None => ModelError::Transport { address, problem },
        };
    };
    // A date in a script is seen from the epoch: scripts must not depend on the day they run.
    let retry_after = error.retry_after.as_deref().and_then(|value| retry_after::parse(value, 0));
    let context = ErrorContext { provider: address, key_variable: None };
    context.status_error(status, &error.message, "", retry_after)
}

fn tell(events: Vec<StreamEvent>, on_event: Sink<'_>) {
    for event in events {
        on_event(event);
    }
}
