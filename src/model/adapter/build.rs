//! Puts an answer together from the pieces that an adapter reads, in whatever order they come, and
//! decides what a complete answer is. Knows no provider's form.

use crate::model::error::ModelError;
use crate::model::message::{
    Answer, Finish, ModelRequest, ModelToolCall, Replay, StreamEvent, Thinking, Usage,
};
use crate::model::think::{Part, ThinkSplitter};

/// The growing answer.
#[derive(Debug)]
pub(crate) struct AnswerBuilder {
    splitter: ThinkSplitter,
    thinking: Vec<Thinking>,
    thinking_open: bool,
    calls: Vec<ModelToolCall>,
    usage: Option<Usage>,
    finish: Option<(Finish, String)>,
    model: String,
    bytes: usize,
    limit: usize,
    events: Vec<StreamEvent>,
}

impl AnswerBuilder {
    /// An empty answer that may hold `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            splitter: ThinkSplitter::new(),
            thinking: Vec::new(),
            thinking_open: false,
            calls: Vec::new(),
            usage: None,
            finish: None,
            model: String::new(),
            bytes: 0,
            limit,
            events: Vec::new(),
        }
    }

    /// More answer text, think blocks included.
    pub(crate) fn text(&mut self, piece: &str) -> Result<(), ModelError> {
        self.count(piece)?;
        for part in self.splitter.push(piece) {
            self.tell(part);
        }
        Ok(())
    }

    /// More thinking of the current piece.
    pub(crate) fn thinking(&mut self, piece: &str) -> Result<(), ModelError> {
        self.count(piece)?;
        if piece.is_empty() {
            return Ok(());
        }
        match self.thinking.last_mut().filter(|_| self.thinking_open) {
            Some(last) => last.text.push_str(piece),
            None => self.thinking.push(Thinking { text: piece.to_owned(), replay: None }),
        }
        self.thinking_open = true;
        self.events.push(StreamEvent::ThinkingDelta(piece.to_owned()));
        Ok(())
    }

    /// Ends the current piece of thinking; `replay` is the block that goes back to the provider.
    pub(crate) fn end_thinking(&mut self, replay: Option<Replay>) {
        let open = std::mem::take(&mut self.thinking_open);
        match (self.thinking.last_mut().filter(|_| open), replay) {
            (Some(last), replay) => last.replay = replay,
            (None, Some(replay)) => {
                self.thinking.push(Thinking { text: String::new(), replay: Some(replay) });
            }
            (None, None) => {}
        }
    }

    /// Begins a call and gives its place.
    pub(crate) fn begin_call(&mut self, id: &str, name: &str) -> Result<usize, ModelError> {
        self.count(id)?;
        self.count(name)?;
        // Each call costs more than its text, so that calls without text are bounded as well.
        self.count_bytes(64)?;
        self.calls.push(ModelToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
        });
        if !name.is_empty() {
            self.events.push(StreamEvent::CallStarted(name.to_owned()));
        }
        Ok(self.calls.len() - 1)
    }

    /// The identifier of the call at `place`.
    pub(crate) fn call_id(&self, place: usize) -> &str {
        self.calls.get(place).map_or("", |call| call.id.as_str())
    }

    /// The place of the last call.
    pub(crate) fn last_call(&self) -> Option<usize> {
        self.calls.len().checked_sub(1)
    }

    /// Adds what a later piece says of the call at `place`. A name that is repeated is no addition.
    pub(crate) fn extend_call(
        &mut self,
        place: usize,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> Result<(), ModelError> {
        self.count(arguments)?;
        let Some(call) = self.calls.get_mut(place) else { return Ok(()) };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() && !name.is_empty() {
            name.clone_into(&mut call.name);
            self.events.push(StreamEvent::CallStarted(name.to_owned()));
        }
        call.arguments.push_str(arguments);
        Ok(())
    }

    /// Replaces the arguments of the call at `place` by their final form.
    pub(crate) fn set_arguments(
        &mut self,
        place: usize,
        arguments: &str,
    ) -> Result<(), ModelError> {
        self.count(arguments)?;
        if let Some(call) = self.calls.get_mut(place) {
            arguments.clone_into(&mut call.arguments);
        }
        Ok(())
    }

    /// The provider's numbers; the latest count.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// The provider's reason for the end; the first one counts.
    pub(crate) fn set_finish(&mut self, finish: Finish, detail: &str) {
        if self.finish.is_none() {
            self.finish = Some((finish, bounded(detail)));
        }
    }

    /// Whether the provider has said why the answer ends.
    pub(crate) const fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    /// The name of the model that answers.
    pub(crate) fn set_model(&mut self, model: &str) {
        if self.model.is_empty() {
            self.model = bounded(model);
        }
    }

    /// What happened since the last call of this function.
    pub(crate) fn take_events(&mut self) -> Vec<StreamEvent> {
        std::mem::take(&mut self.events)
    }

    /// The whole answer, and the events that its end made certain.
    ///
    /// # Errors
    /// [`ModelError::CutStream`] without a reason for the end, [`ModelError::Empty`] and
    /// [`ModelError::FinishedWithError`] without content.
    pub(crate) fn build(
        mut self,
        request: &ModelRequest,
    ) -> Result<(Answer, Vec<StreamEvent>), ModelError> {
        let Some((finish, finish_detail)) = self.finish.take() else {
            return Err(ModelError::CutStream);
        };
        let splitter = std::mem::replace(&mut self.splitter, ThinkSplitter::new());
        let (parts, content, tagged) = splitter.finish();
        for part in parts {
            self.tell(part);
        }
        if !tagged.is_empty() {
            self.thinking.push(Thinking { text: tagged, replay: None });
        }
        let usage = self.usage.unwrap_or_else(|| estimate(request, self.bytes));
        let finish = agreed_finish(finish, &self.calls);
        match finish {
            // Calls of an answer that broke off are no content: nobody knows what they lack.
            Finish::Error if content.trim().is_empty() => {
                return Err(ModelError::FinishedWithError(finish_detail));
            }
            Finish::Stop | Finish::ToolUse
                if content.trim().is_empty() && self.calls.is_empty() =>
            {
                return Err(ModelError::Empty);
            }
            Finish::Stop | Finish::ToolUse | Finish::Length | Finish::Error => {}
        }
        let answer = Answer {
            content,
            thinking: self.thinking,
            tool_calls: self.calls,
            finish,
            finish_detail,
            usage,
            model: self.model,
        };
        Ok((answer, self.events))
    }

    fn tell(&mut self, part: Part) {
        self.events.push(match part {
            Part::Text(text) => StreamEvent::TextDelta(text),
            Part::Thinking(text) => StreamEvent::ThinkingDelta(text),
        });
    }

    /// How much of an answer there is; grows with every piece of it.
    pub(crate) const fn size(&self) -> usize {
        self.bytes
    }

    fn count(&mut self, piece: &str) -> Result<(), ModelError> {
        self.count_bytes(piece.len())
    }

    fn count_bytes(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit {
            return Err(ModelError::TooLarge { what: "answer", limit: self.limit });
        }
        Ok(())
    }
}

/// Many servers say `stop` beside calls, or `tool_calls` beside none.
fn agreed_finish(finish: Finish, calls: &[ModelToolCall]) -> Finish {
    match finish {
        Finish::Stop if !calls.is_empty() => Finish::ToolUse,
        Finish::ToolUse if calls.is_empty() => Finish::Stop,
        Finish::Stop | Finish::ToolUse | Finish::Length | Finish::Error => finish,
    }
}

/// A provider that reports no numbers must not make a token budget void: four bytes a token is near
/// the truth for English text and code.
fn estimate(request: &ModelRequest, answer_bytes: usize) -> Usage {
    let tokens = |bytes: usize| u64::try_from(bytes / 4).unwrap_or(u64::MAX);
    Usage {
        input: tokens(request.bytes()),
        output: tokens(answer_bytes),
        estimated: true,
        ..Usage::default()
    }
}

/// A short text of a server, safe to store and show.
pub(crate) fn bounded(text: &str) -> String {
    crate::base::text::escape(crate::base::text::prefix(text, 500))
}
