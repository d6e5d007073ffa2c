//! The history that is sent, as it grows: what is new in the conversation is taken, and where it is too
//! long its beginning is left out. It is at every time what it would be if all were taken at once.

use super::{Normaliser, Repair, START, is_assistant};
use crate::model::message::Message;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The history of one conversation.
#[derive(Debug, Default)]
pub struct History {
    messages: Arc<Vec<Message>>,
    used_ids: BTreeSet<String>,
    /// Messages of the view that were taken.
    taken: usize,
    /// Messages that are no longer sent. A conversation only grows, so that none of them comes back.
    cut: usize,
    start_added: bool,
}

impl History {
    /// The history to send for `view`, with at most `messages_max` messages as far as a cut at a user
    /// message allows, and what had to be changed in the new part. `view` must begin with what it
    /// began with before; another conversation needs another history.
    #[must_use]
    pub fn of(
        &mut self,
        view: &[Message],
        messages_max: usize,
    ) -> (Arc<Vec<Message>>, Vec<Repair>) {
        if !self.goes_on(view) {
            *self = Self::default();
        }
        // No copy is made: the request that had it has been answered.
        let messages = Arc::make_mut(&mut self.messages);
        let used_ids = &mut self.used_ids;
        let mut normaliser = Normaliser { messages, used_ids, repairs: Vec::new() };
        normaliser.take(view, self.taken);
        let mut repairs = normaliser.repairs;
        self.taken = view.len();
        self.start_with_a_user();
        self.cut_to(messages_max);
        if self.cut > 0 {
            let messages = self.cut - usize::from(self.start_added);
            repairs.push(Repair::HistoryCut { messages });
        } else if self.start_added {
            repairs.push(Repair::StartAdded);
        }
        (Arc::clone(&self.messages), repairs)
    }

    /// Whether what is new begins behind whole groups of an assistant's message and all up to the next.
    /// Where nothing but the added start stands, what is new may make it needless.
    fn goes_on(&self, view: &[Message]) -> bool {
        self.taken > 0
            && self.messages.len() > usize::from(self.start_added)
            && (self.taken == view.len() || is_assistant(view, self.taken))
    }

    fn start_with_a_user(&mut self) {
        if !matches!(self.messages.first(), Some(Message::User { .. })) {
            Arc::make_mut(&mut self.messages).insert(0, Message::user(START));
            self.start_added = true;
        }
    }

    fn cut_to(&mut self, messages_max: usize) {
        let cut = cut_place(&self.messages, messages_max);
        if cut > 0 {
            Arc::make_mut(&mut self.messages).drain(..cut);
            self.cut += cut;
        }
    }
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
