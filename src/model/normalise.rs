//! Makes a history that every provider accepts: a pure function, and idempotent.
//!
//! The journal keeps what happened; this makes what is sent. Each call has exactly one result behind
//! its message, identifiers are unique, arguments are JSON objects, nothing is empty, and the history
//! is cut only where a user speaks. The identity of a call is its place (assistant message, index),
//! never the provider's identifier. Every change is reported, so that it can be logged.

use crate::base::json::parse_strict;
use crate::base::text::prefix;
use crate::model::message::{Message, ModelToolCall};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

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

/// One change that was made to what is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "repair", rename_all = "snake_case")]
pub enum Repair {
    /// A call had no result and got [`MISSING_RESULT`].
    MissingResult {
        /// Place of the assistant message in the history.
        message: usize,
        /// Index of the call in it.
        call: usize,
    },
    /// A result belonged to no call and was left out.
    OrphanResult {
        /// Place of the result.
        message: usize,
    },
    /// A result stood apart from its call and was moved behind it.
    MovedResult {
        /// Place of the result.
        message: usize,
    },
    /// An assistant message without text and calls was left out.
    EmptyAssistant {
        /// Its place.
        message: usize,
    },
    /// A result or user message without text got a fixed one.
    EmptyText {
        /// Its place.
        message: usize,
    },
    /// An identifier was absent, used before or not acceptable, and was replaced.
    RenamedCall {
        /// Place of the assistant message.
        message: usize,
        /// Index of the call in it.
        call: usize,
    },
    /// Arguments were not one JSON object and were replaced by one that shows them.
    MalformedArguments {
        /// Place of the assistant message.
        message: usize,
        /// Index of the call in it.
        call: usize,
    },
    /// A tool name was not acceptable and was replaced.
    InvalidName {
        /// Place of the assistant message.
        message: usize,
        /// Index of the call in it.
        call: usize,
    },
    /// The oldest messages were left out.
    HistoryCut {
        /// How many.
        messages: usize,
    },
    /// A user message was put in front, since none stood there.
    StartAdded,
}

impl fmt::Display for Repair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingResult { message, call } => {
                write!(formatter, "call {call} of message {message} had no result")
            }
            Self::OrphanResult { message } => {
                write!(formatter, "the result in message {message} belongs to no call")
            }
            Self::MovedResult { message } => {
                write!(formatter, "the result in message {message} stood apart from its call")
            }
            Self::EmptyAssistant { message } => write!(formatter, "message {message} was empty"),
            Self::EmptyText { message } => write!(formatter, "message {message} had no text"),
            Self::RenamedCall { message, call } => {
                write!(formatter, "call {call} of message {message} got another identifier")
            }
            Self::MalformedArguments { message, call } => {
                write!(formatter, "call {call} of message {message} had malformed arguments")
            }
            Self::InvalidName { message, call } => {
                write!(formatter, "call {call} of message {message} had an invalid tool name")
            }
            Self::HistoryCut { messages } => {
                write!(formatter, "the oldest {messages} messages were left out")
            }
            Self::StartAdded => formatter.write_str("a first user message was added"),
        }
    }
}

/// The history to send for `view`, with at most `messages_max` messages as far as a cut at a user
/// message allows, and what had to be changed.
#[must_use]
pub fn normalise(view: &[Message], messages_max: usize) -> (Vec<Message>, Vec<Repair>) {
    let mut normaliser = Normaliser::default();
    let assistants: Vec<usize> =
        (0..view.len()).filter(|place| is_assistant(view, *place)).collect();
    let first = assistants.first().copied().unwrap_or(view.len());
    normaliser.take_turn(view, 0, first);
    for (number, place) in assistants.iter().enumerate() {
        let end = assistants.get(number + 1).copied().unwrap_or(view.len());
        normaliser.take_assistant(view, *place, end);
    }
    normaliser.finish(messages_max)
}

fn is_assistant(view: &[Message], place: usize) -> bool {
    matches!(view.get(place), Some(Message::Assistant { .. }))
}

#[derive(Default)]
struct Normaliser {
    messages: Vec<Message>,
    repairs: Vec<Repair>,
    used_ids: BTreeSet<String>,
}

/// A result that waits for its call.
struct WaitingResult {
    place: usize,
    content: String,
    is_error: bool,
}

impl Normaliser {
    /// Takes an assistant message and all up to the next one.
    fn take_assistant(&mut self, view: &[Message], place: usize, end: usize) {
        let Some(Message::Assistant { content, thinking, tool_calls }) = view.get(place) else {
            return;
        };
        let content = content.clone().filter(|text| !text.trim().is_empty());
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
                (None, MISSING_RESULT.to_owned(), true)
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

    fn with_text(&mut self, content: &str, substitute: &str, message: usize) -> String {
        if content.trim().is_empty() {
            self.repairs.push(Repair::EmptyText { message });
            return substitute.to_owned();
        }
        content.to_owned()
    }

    fn finish(mut self, messages_max: usize) -> (Vec<Message>, Vec<Repair>) {
        let starts = matches!(self.messages.first(), Some(Message::User { .. }));
        if !starts {
            self.messages.insert(0, Message::user(START));
        }
        let cut = cut_place(&self.messages, messages_max);
        self.messages.drain(..cut);
        if cut > 0 {
            self.repairs.push(Repair::HistoryCut { messages: cut - usize::from(!starts) });
        } else if !starts {
            self.repairs.push(Repair::StartAdded);
        }
        (self.messages, self.repairs)
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

/// The first user message from which at most `messages_max` messages are left; the last user message
/// if even that leaves more; 0 if there is none.
fn cut_place(messages: &[Message], messages_max: usize) -> usize {
    let excess = messages.len().saturating_sub(messages_max);
    if excess == 0 {
        return 0;
    }
    let is_user = |place: &usize| matches!(messages.get(*place), Some(Message::User { .. }));
    (excess..messages.len())
        .find(is_user)
        .or_else(|| (0..messages.len()).rev().find(is_user))
        .unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(id: &str, arguments: &str) -> ModelToolCall {
        ModelToolCall { id: id.into(), name: "read".into(), arguments: arguments.into() }
    }

    fn assistant(content: &str, calls: &[ModelToolCall]) -> Message {
        let content = Some(content.to_owned()).filter(|text| !text.is_empty());
        Message::Assistant { content, thinking: Vec::new(), tool_calls: calls.to_vec() }
    }

    fn result(id: &str, content: &str) -> Message {
        let (call_id, content) = (id.to_owned(), content.to_owned());
        Message::Tool { call_id, name: "read".into(), content, is_error: false }
    }

    /// What a provider asks of a history.
    fn assert_legal(messages: &[Message]) {
        assert!(matches!(messages.first(), Some(Message::User { .. })), "starts with a user");
        let mut ids = BTreeSet::new();
        let mut open: Vec<String> = Vec::new();
        for message in messages {
            match message {
                Message::Tool { call_id, content, .. } => {
                    assert_eq!(open.remove(0), *call_id, "results in call order");
                    assert!(!content.trim().is_empty());
                }
                Message::User { content } => {
                    assert!(open.is_empty() && !content.trim().is_empty());
                }
                Message::Assistant { content, tool_calls, .. } => {
                    assert!(open.is_empty());
                    assert!(content.is_some() || !tool_calls.is_empty());
                    for call in tool_calls {
                        assert!(ids.insert(call.id.clone()), "`{}` is used twice", call.id);
                        assert!(is_name(&call.id) && is_name(&call.name));
                        assert!(is_object(&call.arguments), "{}", call.arguments);
                        open.push(call.id.clone());
                    }
                }
            }
        }
        assert!(open.is_empty(), "every call has a result");
    }

    #[test]
    fn a_dangling_call_gets_the_fixed_result_and_the_finished_one_is_kept() {
        let calls = [call("a", "{}"), call("b", "{}"), call("c", "{}")];
        let view = [Message::user("go"), assistant("", &calls), result("b", "kept")];
        let (messages, repairs) = normalise(&view, 100);
        assert_legal(&messages);
        let texts: Vec<_> = messages.iter().skip(2).map(|message| format!("{message:?}")).collect();
        assert!(texts[0].contains(MISSING_RESULT) && texts[2].contains(MISSING_RESULT));
        assert!(texts[1].contains("kept"));
        let missing = |call| Repair::MissingResult { message: 1, call };
        assert!(repairs.contains(&missing(0)) && repairs.contains(&missing(2)));
        assert_eq!(repairs.len(), 2, "{repairs:?}");
    }

    #[test]
    fn an_orphan_result_is_dropped_and_a_late_one_is_moved() {
        let view = [
            result("z", "before anything"),
            Message::user("go"),
            assistant("", &[call("a", "{}")]),
            Message::user("meanwhile"),
            result("a", "late"),
            result("a", "again"),
        ];
        let (messages, repairs) = normalise(&view, 100);
        assert_legal(&messages);
        assert_eq!(messages.len(), 4);
        assert!(matches!(&messages[2], Message::Tool { content, .. } if content == "late"));
        let expected = [
            Repair::OrphanResult { message: 0 },
            Repair::MovedResult { message: 4 },
            Repair::OrphanResult { message: 5 },
        ];
        assert_eq!(repairs, expected);
    }

    #[test]
    fn malformed_arguments_never_reach_a_provider() {
        for raw in ["{\"path\": \"a", "", "[]", "null", "{}{}", "{\"a\":1,\"a\":2}", "\"x\"", "1"] {
            let view = [Message::user("go"), assistant("", &[call("a", raw)]), result("a", "told")];
            let (messages, repairs) = normalise(&view, 100);
            assert_legal(&messages);
            assert_eq!(repairs, [Repair::MalformedArguments { message: 1, call: 0 }], "{raw}");
            assert!(
                matches!(&view[1], Message::Assistant { tool_calls, .. }
                if tool_calls[0].arguments == raw),
                "ours stays raw"
            );
        }
    }

    #[test]
    fn calls_are_told_apart_by_place_whatever_their_identifiers() {
        let twice = [call("a", "{}"), call("a", "{}"), call("", "{}"), call("", "{}")];
        let view = [
            Message::user("go"),
            assistant("", &twice),
            result("a", "first"),
            result("a", "second"),
            result("", "third"),
            result("", "fourth"),
            assistant("", &[call("a", "{}")]),
            result("a", "fifth"),
        ];
        let (messages, repairs) = normalise(&view, 100);
        assert_legal(&messages);
        let texts: Vec<_> = messages
            .iter()
            .filter_map(|message| match message {
                Message::Tool { content, .. } => Some(content.as_str()),
                Message::User { .. } | Message::Assistant { .. } => None,
            })
            .collect();
        assert_eq!(texts, ["first", "second", "third", "fourth", "fifth"]);
        assert_eq!(repairs.len(), 4);
    }

    #[test]
    fn empty_messages_are_dropped_or_get_a_fixed_text() {
        let view = [
            Message::user(" "),
            assistant("\n", &[]),
            assistant("x", &[call("a", "{}")]),
            result("a", ""),
        ];
        let (messages, repairs) = normalise(&view, 100);
        assert_legal(&messages);
        assert_eq!(messages.len(), 3);
        assert!(matches!(&messages[2], Message::Tool { content, .. } if content == EMPTY_RESULT));
        assert_eq!(repairs.len(), 3);
    }

    #[test]
    fn the_history_is_cut_only_where_a_user_speaks() {
        let mut view = Vec::new();
        for turn in 0..30 {
            let id = format!("c{turn}");
            view.push(Message::user(format!("question {turn}")));
            view.push(assistant("", &[call(&id, "{}")]));
            view.push(result(&id, "r"));
            view.push(assistant("answer", &[]));
        }
        let (messages, repairs) = normalise(&view, 99);
        assert_legal(&messages);
        assert_eq!(messages.len(), 96);
        assert_eq!(repairs, [Repair::HistoryCut { messages: 24 }]);
        assert_eq!(normalise(&view, 1).0, view[116..], "the last turn stays whole");
        assert_eq!(normalise(&view, 120).1, []);
    }

    fn any_message() -> impl Strategy<Value = Message> {
        let id = prop_oneof!["", "a", "b", "call_1_0", "ü", "[a-c]{70}"];
        let arguments = prop_oneof!["", "\\{\\}", "\\{", "\\[\\]", "\\{\"x\":1\\}"];
        let name = prop_oneof!["read", "", "no such name!"];
        let calls = proptest::collection::vec(
            (id.clone(), name, arguments).prop_map(|(id, name, arguments)| ModelToolCall {
                id,
                name,
                arguments,
            }),
            0..4,
        );
        prop_oneof![
            "[a ]{0,2}".prop_map(Message::user),
            ("[a ]{0,2}", calls).prop_map(|(content, tool_calls)| Message::Assistant {
                content: Some(content).filter(|text| text.len() < 2),
                thinking: Vec::new(),
                tool_calls,
            }),
            (id, "[a ]{0,2}").prop_map(|(id, content)| result(&id, &content)),
        ]
    }

    proptest! {
        #[test]
        fn any_history_becomes_legal_and_stays_as_it_is(
            view in proptest::collection::vec(any_message(), 0..40), limit in 1_usize..50,
        ) {
            let (once, _) = normalise(&view, limit);
            assert_legal(&once);
            let (twice, repairs) = normalise(&once, limit);
            prop_assert_eq!(&twice, &once);
            prop_assert_eq!(repairs, Vec::new());
        }
    }
}
