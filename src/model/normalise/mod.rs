//! Makes a history that every provider accepts: a pure function, and idempotent.
//!
//! The journal keeps what happened; this makes what is sent. Each call has exactly one result behind
//! its message, identifiers are unique, arguments are JSON objects, nothing is empty, and the history
//! is cut only where a user speaks. The identity of a call is its place (assistant message, index),
//! never the provider's identifier. Every change is reported, so that it can be logged. What has been
//! made once is kept (see [`History`]), so that a turn costs what is new in it.

mod history;
mod repair;
#[cfg(test)]
mod tests;

pub use history::History;
pub use repair::Repair;

use crate::base::json::parse_strict;
use crate::base::text::prefix;
use crate::model::message::{Message, ModelToolCall};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Result of a call whose own result is not in the history.
pub const MISSING_RESULT: &str =
    "Operation interrupted after execution status became unknown; the tool was not replayed.";
/// Stands for a result without text.
pub const EMPTY_RESULT: &str = "(no output)";
/// Stands for a user message without text.
pub const EMPTY_USER: &str = "(empty message)";
/// Stands in front of a history in which nobody has asked for anything.
pub const START: &str = "(the conversation continues)";
/// Key under which malformed arguments are shown to the model.
pub const MALFORMED_KEY: &str = "malformed_arguments";
/// Stands for a tool name that providers refuse.
pub const INVALID_NAME: &str = "invalid_tool_name";
/// Bytes of malformed arguments that are shown.
const MALFORMED_BYTES_MAX: usize = 2_000;
/// Bytes of an identifier or tool name that every provider accepts.
const NAME_BYTES_MAX: usize = 64;

/// The history to send for `view`, with at most `messages_max` messages as far as a cut at a user
/// message allows, and what had to be changed.
#[must_use]
pub fn normalise(view: &[Message], messages_max: usize) -> (Vec<Message>, Vec<Repair>) {
    let (messages, repairs) = History::default().of(view, messages_max);
    (Arc::unwrap_or_clone(messages), repairs)
}

fn is_assistant(view: &[Message], place: usize) -> bool {
    matches!(view.get(place), Some(Message::Assistant { .. }))
}

/// Takes messages of a view behind those that were taken before.
struct Normaliser<'h> {
    messages: &'h mut Vec<Message>,
    used_ids: &'h mut BTreeSet<String>,
    repairs: Vec<Repair>,
}

/// A result that waits for its call.
struct WaitingResult {
    place: usize,
    content: Arc<str>,
    is_error: bool,
}

impl Normaliser<'_> {
    /// Takes all from `start`, which is the first message or that of an assistant.
    fn take(&mut self, view: &[Message], start: usize) {
        let assistants: Vec<usize> =
            (start..view.len()).filter(|place| is_assistant(view, *place)).collect();
        let first = assistants.first().copied().unwrap_or(view.len());
        self.take_turn(view, start, first);
        for (number, place) in assistants.iter().enumerate() {
            let end = assistants.get(number + 1).copied().unwrap_or(view.len());
            self.take_assistant(view, *place, end);
        }
    }

    /// Takes an assistant message and all up to the next one.
    fn take_assistant(&mut self, view: &[Message], place: usize, end: usize) {
        let Some(Message::Assistant { content, thinking, tool_calls }) = view.get(place) else {
            return;
        };
        let content = content.clone().filter(|text| !is_blank(text));
        if content.is_none() && tool_calls.is_empty() {
            self.repairs.push(Repair::EmptyAssistant { message: place });
            self.take_turn(view, place + 1, end);
            return;
        }
        let mut results = waiting_results(view, place + 1, end);
        let mut sent_calls = Vec::with_capacity(tool_calls.len());
        let mut sent_results = Vec::with_capacity(tool_calls.len());
        for (index, call) in tool_calls.iter().enumerate() {
            let sent = self.take_call(call, place, index);
            sent_results.push(self.take_result(&mut results, call, &sent, (place, index)));
            sent_calls.push(sent);
        }
        self.report_moved(&sent_results, place);
        let thinking = thinking.clone();
        self.messages.push(Message::Assistant { content, thinking, tool_calls: sent_calls });
        self.messages.extend(sent_results.into_iter().map(|(_, message)| message));
        let orphans = results.into_values().flatten().map(|result| result.place);
        let mut orphans: Vec<_> = orphans.collect();
        orphans.sort_unstable();
        self.repairs.extend(orphans.into_iter().map(|message| Repair::OrphanResult { message }));
        self.take_users(view, place + 1, end);
    }

    /// Takes messages that follow no call: results there are orphans.
    fn take_turn(&mut self, view: &[Message], start: usize, end: usize) {
        for place in start..end {
            if matches!(view.get(place), Some(Message::Tool { .. })) {
                self.repairs.push(Repair::OrphanResult { message: place });
            }
        }
        self.take_users(view, start, end);
    }

    fn take_users(&mut self, view: &[Message], start: usize, end: usize) {
        for place in start..end {
            let Some(Message::User { content }) = view.get(place) else { continue };
            let content = self.with_text(content, EMPTY_USER, place);
            self.messages.push(Message::User { content });
        }
    }

    fn take_call(&mut self, call: &ModelToolCall, message: usize, index: usize) -> ModelToolCall {
        let id = if is_name(&call.id) && !self.used_ids.contains(&call.id) {
            call.id.clone()
        } else {
            self.repairs.push(Repair::RenamedCall { message, call: index });
            self.new_id(message, index)
        };
        self.used_ids.insert(id.clone());
        let arguments = if is_object(&call.arguments) {
            call.arguments.clone()
        } else {
            self.repairs.push(Repair::MalformedArguments { message, call: index });
            let shown = prefix(&call.arguments, MALFORMED_BYTES_MAX);
            serde_json::json!({ MALFORMED_KEY: shown }).to_string()
        };
        let name = if is_name(&call.name) {
            call.name.clone()
        } else {
            self.repairs.push(Repair::InvalidName { message, call: index });
            INVALID_NAME.to_owned()
        };
        ModelToolCall { id, name, arguments }
    }

    fn new_id(&self, message: usize, call: usize) -> String {
        let mut id = format!("call_{message}_{call}");
        while self.used_ids.contains(&id) {
            id.push('x');
        }
        id
    }

    /// The first result that waits under the call's own identifier, with the place it came from.
    fn take_result(
        &mut self,
        results: &mut BTreeMap<String, Vec<WaitingResult>>,
        call: &ModelToolCall,
        sent: &ModelToolCall,
        (message, index): (usize, usize),
    ) -> (Option<usize>, Message) {
        let waiting = results.get_mut(&call.id).filter(|waiting| !waiting.is_empty());
        let (place, content, is_error) = match waiting.map(|waiting| waiting.remove(0)) {
            Some(WaitingResult { place, content, is_error }) => {
                (Some(place), self.with_text(&content, EMPTY_RESULT, place), is_error)
            }
            None => {
                self.repairs.push(Repair::MissingResult { message, call: index });
                (None, MISSING_RESULT.into(), true)
            }
        };
        let (call_id, name) = (sent.id.clone(), sent.name.clone());
        (place, Message::Tool { call_id, name, content, is_error })
    }

    /// Reports the results that did not stand where they are put.
    fn report_moved(&mut self, results: &[(Option<usize>, Message)], assistant: usize) {
        let mut expected = assistant + 1;
        for place in results.iter().filter_map(|(place, _)| *place) {
            if place != expected {
                self.repairs.push(Repair::MovedResult { message: place });
            }
            expected = place + 1;
        }
    }

    fn with_text(&mut self, content: &Arc<str>, substitute: &str, message: usize) -> Arc<str> {
        if is_blank(content) {
            self.repairs.push(Repair::EmptyText { message });
            return substitute.into();
        }
        Arc::clone(content)
    }
}

/// The results between `start` and `end` by the identifier they name, in order.
fn waiting_results(
    view: &[Message],
    start: usize,
    end: usize,
) -> BTreeMap<String, Vec<WaitingResult>> {
    let mut results: BTreeMap<String, Vec<WaitingResult>> = BTreeMap::new();
    for place in start..end {
        if let Some(Message::Tool { call_id, name: _, content, is_error }) = view.get(place) {
            let result = WaitingResult { place, content: content.clone(), is_error: *is_error };
            results.entry(call_id.clone()).or_default().push(result);
        }
    }
    results
}

/// Whether a text says nothing. Looked at from its end: output may begin with any amount of white space.
fn is_blank(text: &str) -> bool {
    text.trim_end().is_empty()
}

fn is_object(arguments: &str) -> bool {
    parse_strict(arguments.as_bytes()).is_ok_and(|value| value.is_object())
}

/// What every provider accepts as identifier and as tool name.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
