//! The messages that the model is sent, from the state.
//!
//! After a compaction these are its summary and what follows. Results stand in the order of their
//! calls whatever order they were recorded in. How much history is sent is the caller's business.

use crate::base::ids::Id;
use crate::session::facts::extension::Thinking;
use crate::session::facts::message::Message;
use crate::session::state::{Placed, SessionState};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A message with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewMessage {
    /// The entry that it comes from.
    pub entry_id: Id,
    /// The message.
    pub message: Arc<Message>,
    /// The reasoning before an answer.
    pub thinking: Vec<Thinking>,
}

/// The messages that the model is sent.
#[must_use]
pub fn view(state: &SessionState) -> Vec<ViewMessage> {
    view_from(state, 0)
}

/// Those of them that come after the first `start` of the context. No result may be cut from its call.
#[must_use]
pub fn view_from(state: &SessionState, start: usize) -> Vec<ViewMessage> {
    let context = state.active_context.get(start..).unwrap_or_default();
    let shown: HashSet<&Id> = context.iter().map(|placed| &placed.entry_id).collect();
    let mut thinking: HashMap<&Id, Vec<Thinking>> = HashMap::new();
    for item in &state.extension.thinking {
        if shown.contains(&item.assistant_entry_id) {
            thinking.entry(&item.assistant_entry_id).or_default().push(item.clone());
        }
    }
    in_call_order(context)
        .into_iter()
        .map(|placed| ViewMessage {
            entry_id: placed.entry_id.clone(),
            message: Arc::clone(&placed.message),
            thinking: thinking.remove(&placed.entry_id).unwrap_or_default(),
        })
        .collect()
}

/// Sorts the results behind each answer by the position of their call.
pub(crate) fn in_call_order(messages: &[Placed]) -> Vec<&Placed> {
    let mut ordered: Vec<&Placed> = messages.iter().collect();
    let groups = ordered.chunk_by_mut(|_, next| matches!(*next.message, Message::Tool(_)));
    for group in groups {
        let Some((first, results)) = group.split_first_mut() else { continue };
        let calls = first.message.tool_calls();
        results.sort_by_key(|result| match &*result.message {
            Message::Tool(tool) => calls.iter().position(|call| call.id == tool.tool_call_id),
            Message::User(_) | Message::Assistant(_) => None,
        });
    }
    ordered
}
