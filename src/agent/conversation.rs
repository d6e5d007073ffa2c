//! The conversation as the model is sent it: the journal's view in the model's form.
//!
//! It only grows, but for a compaction, so that each request takes what is new and not all of it again.

use crate::base::ids::Id;
use crate::model::normalise::{History, Repair};
use crate::model::{Message, ModelToolCall, Replay, Thinking};
use crate::session::{self, SessionState, ViewMessage};
use std::collections::HashMap;
use std::sync::Arc;

/// The messages so far.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    /// Results name their tool only through the call that they answer.
    names: HashMap<String, String>,
    /// How many messages of the context were taken, and the entries of the first and the last of them.
    taken: usize,
    ends: Option<(Id, Id)>,
    history: History,
}

impl Conversation {
    /// What is sent of `state`, at most about `messages_max` messages, and what had to be changed in
    /// the part that is new.
    pub(super) fn history(
        &mut self,
        state: &SessionState,
        messages_max: usize,
    ) -> (Arc<Vec<Message>>, Vec<Repair>) {
        self.take(state);
        self.history.of(&self.messages, messages_max)
    }

    /// The messages of `state`, in order.
    fn take(&mut self, state: &SessionState) -> &[Message] {
        if !self.goes_on(state) {
            *self = Self::default();
        }
        for item in session::view_from(state, self.taken) {
            let message = message(&item, &mut self.names);
            self.messages.push(message);
        }
        self.taken = state.active_context.len();
        self.ends = ends(&state.active_context);
        &self.messages
    }

    /// Whether what was taken still stands (a compaction has another first entry), and what is new begins
    /// behind whole groups of a message and its results.
    fn goes_on(&self, state: &SessionState) -> bool {
        let stands =
            state.active_context.get(..self.taken).is_some_and(|taken| ends(taken) == self.ends);
        let next = state.active_context.get(self.taken).map(|placed| &*placed.message);
        stands && !matches!(next, Some(session::Message::Tool(_)))
    }
}

/// The first and the last entry.
fn ends(context: &[session::Placed]) -> Option<(Id, Id)> {
    let (first, last) = (context.first()?, context.last()?);
    Some((first.entry_id.clone(), last.entry_id.clone()))
}

fn message(item: &ViewMessage, names: &mut HashMap<String, String>) -> Message {
    match &*item.message {
        session::Message::User(user) => Message::user(user.content.as_str()),
        session::Message::Assistant(assistant) => {
            for call in &assistant.tool_calls {
                names.insert(call.id.clone(), call.function.name.clone());
            }
            Message::Assistant {
                content: assistant.content.as_deref().map(Into::into),
                thinking: item.thinking.iter().map(thinking).collect(),
                tool_calls: assistant.tool_calls.iter().map(call).collect(),
            }
        }
        session::Message::Tool(tool) => Message::Tool {
            call_id: tool.tool_call_id.clone(),
            name: names.get(&tool.tool_call_id).cloned().unwrap_or_default(),
            content: tool.content.as_str().into(),
            is_error: false,
        },
    }
}

fn call(call: &session::ToolCall) -> ModelToolCall {
    ModelToolCall {
        id: call.id.clone(),
        name: call.function.name.clone(),
        arguments: call.function.arguments.clone(),
    }
}

/// The journal keeps what a provider wants back with a thought as JSON text.
fn thinking(thought: &session::Thinking) -> Thinking {
    let replay = thought.signature.as_deref();
    let replay = replay.and_then(|text| serde_json::from_str::<Replay>(text).ok());
    Thinking { text: thought.text.clone(), replay }
}

/// The form in which the journal takes a thought.
#[must_use]
pub(super) fn recorded_thinking(thoughts: &[Thinking]) -> Vec<(String, Option<String>)> {
    let signature = |replay: &Replay| serde_json::to_string(replay).ok();
    thoughts
        .iter()
        .map(|thought| (thought.text.clone(), thought.replay.as_ref().and_then(signature)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Clock;
    use crate::session::{
        ConfigurationSnapshot, Counters, Header, Journal, NewAnswer, SnapshotTool, SyntheticReason,
    };

    fn snapshot() -> ConfigurationSnapshot {
        let zero = crate::base::digest::Digest::zero();
        ConfigurationSnapshot {
            model: "m".into(),
            system_prompt_digest: zero,
            tools: vec![SnapshotTool { name: "read".into(), definition_digest: zero }],
            adapter_identity: "a".into(),
            routing_identity: "r".into(),
            output_options_digest: zero,
        }
    }

    /// What stands when all is taken at once.
    fn anew(journal: &Journal) -> Vec<Message> {
        Conversation::default().take(journal.state()).to_vec()
    }

    #[test]
    fn what_is_taken_piece_by_piece_is_what_is_taken_at_once() {
        let place = tempfile::tempdir().unwrap();
        let header = Header {
            id: Id::new(),
            created_at: 1,
            cwd: "/w".into(),
            provider: "p".into(),
            model: "m".into(),
            environment_identity: "/w".into(),
            extensions: vec![session::EXTENSION.into()],
        };
        let path = place.path().join("journal.jsonl");
        let mut journal = Journal::create(&path, &header, Clock::System).unwrap();
        let mut taken = Conversation::default();
        journal.begin_run("go", None).unwrap();
        for turn in 0..4 {
            assert_eq!(taken.take(journal.state()), anew(&journal), "before answer {turn}");
            journal.step_attempt(&snapshot()).unwrap();
            let call = |name: &str| (format!("c{turn}"), name.to_owned(), "{}".to_owned());
            let places = journal.assistant_settled(NewAnswer {
                content: Some(format!("text {turn}")),
                tool_calls: vec![call("read"), call("other")],
                cut: false,
                thinking: vec![(format!("thought {turn}"), None)],
                usage: Counters::default(),
            });
            let mut places = places.unwrap();
            // Results in another order, and a look at the conversation between the two.
            places.reverse();
            for place in &places {
                let place = std::slice::from_ref(place);
                journal.synthetic(place, SyntheticReason::UnknownTool).unwrap();
                assert_eq!(taken.take(journal.state()), anew(&journal), "in turn {turn}");
            }
        }
        let through = session::compaction_boundaries(journal.state()).remove(0);
        journal.begin_compaction(&through).unwrap();
        journal.step_attempt(&snapshot()).unwrap();
        journal.compaction_settled("so far".to_owned(), Counters::default(), None).unwrap();
        assert_eq!(taken.take(journal.state()), anew(&journal), "after a compaction");
        assert!(format!("{:?}", taken.take(journal.state())).contains("so far"));
    }
}
