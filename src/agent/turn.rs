//! The states of the loop and the steps between them that concern the model.
//!
//! One turn: a request is recorded and sent; the answer is recorded; its calls are decided and carried
//! out (`calls`); when all of them have results the turn is over. An answer without calls ends the run,
//! unless background results wait.

use super::background::{Producer, message};
use super::calls::{Item, Ready};
use super::conversation::recorded_thinking;
use super::cycles::{Circling, NUDGE};
use super::events::{Event, FinishReason};
use super::finish::Ending;
use super::tally::counters;
use super::{Agent, Fault};
use crate::audit::record::{Body, Repair as RepairRecord, Retry as RetryRecord};
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use crate::model::{
    self, Answer, AttemptFailure, Finish, ModelError, ModelRequest, Shown, StreamEvent,
};
use crate::session::{FactError, InjectionSource, NewAnswer, Operation};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Where the loop is.
#[derive(Debug)]
pub(super) enum State {
    /// A model request is next.
    AwaitingModel,
    /// A summary is to take the place of older messages.
    Compacting,
    /// These calls of the latest answer have no decision yet.
    Deciding(VecDeque<Item>),
    /// These calls are decided and recorded as about to run; the others wait.
    Executing { wave: Vec<Ready>, rest: VecDeque<Item> },
    /// Every call of the answer has its result; what follows from them.
    Recording(Vec<CallResult>),
    /// The model answered in text; background results may still wait.
    Draining { answer: String },
    /// The run is over.
    Ended(Ending),
}

/// Whether the pieces of an answer are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Yes,
    No,
}

/// One finished call, for the watch over repetitions.
#[derive(Debug)]
pub(super) struct CallResult {
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) text: String,
    /// The tool asks for the end of the run, once all calls of the answer have results.
    pub(super) yields: bool,
}

impl Agent {
    /// Where an interrupted run goes on.
    pub(super) fn state_after_recovery(&self) -> State {
        if matches!(self.parts.journal.state().operation, Operation::Compaction(_)) {
            return State::Compacting;
        }
        let items = self.open_items();
        if items.is_empty() { State::AwaitingModel } else { State::Deciding(items) }
    }

    /// Sends one request, as often as the retry rule allows, and records what came of it.
    pub(super) async fn await_model(&mut self) -> Result<State, Fault> {
        self.end_iteration();
        if let Some(ending) = self.spent() {
            return Ok(State::Ended(ending));
        }
        let began = Instant::now();
        let request = self.request()?;
        if self.is_near_window(&request) {
            return Ok(State::Compacting);
        }
        self.parts.journal.step_attempt(&self.parts.settings.snapshot)?;
        match self.call_model(&request, Heard::Yes).await? {
            Ok(answer) => {
                self.compactions = 0;
                self.gauge.learn(&request, answer.usage);
                self.take_answer(answer, began)
            }
            Err(error) if error.is_context_overflow() && self.can_compact() => {
                self.overflowed(&error)
            }
            Err(ModelError::Aborted) => Ok(State::Ended(self.stopped())),
            Err(error) => {
                let fact = FactError::new(error.code(), &error.to_string());
                self.parts.journal.step_failed(&fact, crate::session::Counters::default())?;
                Ok(State::Ended(Ending::of_model(&error)))
            }
        }
    }

    fn request(&mut self) -> Result<ModelRequest, Fault> {
        let settings = &self.parts.settings;
        let state = self.parts.journal.state();
        let (history, repairs) = self.conversation.history(state, settings.budget.history);
        let request = ModelRequest {
            tools: settings.definitions.clone(),
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
            thinking: settings.thinking,
            tool_calls: settings.tool_calls,
            native_search: settings.native_search,
            ..ModelRequest::new(settings.system.as_str(), history)
        };
        for repair in repairs {
            self.note_once("history", repair.to_string())?;
        }
        self.note_native_search()?;
        Ok(request)
    }

    /// Records and tells something that was done to a request. What is needed for every later request
    /// as well is told once.
    pub(super) fn note_once(&mut self, code: &'static str, detail: String) -> Result<(), Fault> {
        if self.repairs_told.insert(detail.clone()) {
            let record = RepairRecord {
                code: Untrusted::new(code),
                sentence: Untrusted::new(detail.as_str()),
            };
            self.parts.log.append(&Body::Repair(record)).map(drop)?;
            self.tell(Event::Repair { code, detail });
        }
        Ok(())
    }

    /// A search by the provider would reach hosts that no rule has judged, so it is left out of every
    /// request; that decision is recorded.
    fn note_native_search(&mut self) -> Result<(), Fault> {
        let endpoint = self.parts.model.endpoint();
        let named = endpoint.is_some_and(crate::model::Endpoint::names_native_search);
        if !named || self.parts.settings.native_search {
            return Ok(());
        }
        let why = "the model's name asks the provider to search the web; the search is left out of \
                   every request, since its hosts would not be judged by the policy";
        self.note_once("native-search-off", why.to_owned())
    }

    /// The outer error is a fault of ours, the inner one the model's. A call that outlives the run's time
    /// is given up as if somebody had stopped it: a server may keep a stream alive for ever.
    pub(super) async fn call_model(
        &mut self,
        request: &ModelRequest,
        heard: Heard,
    ) -> Result<Result<Answer, ModelError>, Fault> {
        let identity = self.parts.model.identity();
        let left = self.time_left();
        let shown = if self.parts.settings.shows_pieces { Shown::Yes } else { Shown::No };
        let listener = RefCell::new(&mut self.parts.listener);
        let (log, mut fault) = (&mut self.parts.log, None);
        let recording = self.parts.recording.as_deref();
        let record = |result: &Result<Answer, ModelError>| -> Result<(), Fault> {
            recording.map_or(Ok(()), |recording| Ok(recording.note(&request.agent, result)?))
        };
        let mut on_event = |event: StreamEvent| {
            let (told, shown) = match event {
                StreamEvent::TextDelta(content) => (Event::TextDelta { content }, shown),
                // Thinking is no part of the answer: nobody is told two answers if it comes twice.
                StreamEvent::ThinkingDelta(content) => (Event::Thinking { content }, Shown::No),
                StreamEvent::CallStarted(_) => return Shown::No,
            };
            if heard == Heard::No {
                return Shown::No;
            }
            (listener.borrow_mut())(&told);
            shown
        };
        let mut on_failure = |failure: &AttemptFailure<'_>| {
            let appended = log.append(&Body::Retry(retry_record(&identity, failure)));
            let appended = appended.map(drop).map_err(Fault::from);
            if let Err(error) = appended.and_then(|()| record(&Err(failure.error.clone()))) {
                fault = Some(error);
            }
            if let Some(delay) = failure.retry_in {
                (listener.borrow_mut())(&Event::Retry {
                    attempt: failure.attempt,
                    code: failure.error.code(),
                    cause: failure.error.to_string(),
                    delay_ms: milliseconds(delay),
                });
            }
        };
        let listener = model::Listener { on_event: &mut on_event, on_failure: &mut on_failure };
        let retry = &self.parts.settings.retry;
        let abort = self.parts.chain.abort.for_model();
        let call = model::call_with_retry(&self.parts.model, request, retry, listener, abort);
        let result = match left {
            None => call.await,
            Some(left) => {
                let in_time = tokio::time::timeout(left, call).await;
                in_time.unwrap_or(Err(ModelError::Aborted))
            }
        };
        match fault {
            Some(error) => return Err(error),
            None if result.is_ok() => record(&result)?,
            None => {}
        }
        Ok(result)
    }

    fn take_answer(&mut self, answer: Answer, began: Instant) -> Result<State, Fault> {
        self.tally.turns += 1;
        self.spend(answer.usage);
        let cut = answer.finish == Finish::Length;
        let may_run = answer.may_run_calls();
        let calls = answer.tool_calls.iter();
        let calls = calls.map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone()));
        let new = NewAnswer {
            content: (!answer.content.is_empty()).then(|| answer.content.clone()),
            tool_calls: calls.collect(),
            cut,
            thinking: recorded_thinking(&answer.thinking),
            usage: counters(answer.usage),
        };
        let journal = &mut self.parts.journal;
        // The start of its first call flushes it, and whatever judges that call with an effect.
        let places = if may_run && !new.tool_calls.is_empty() {
            journal.unflushed(|journal| journal.assistant_settled(new))?
        } else {
            journal.assistant_settled(new)?
        };
        self.begin_iteration(began);
        self.tell(Event::AssistantMessage { content: answer.content.clone(), calls: places.len() });
        self.tell(Event::Usage {
            usage: self.tally.usage,
            turn: self.tally.turns,
            cost_dollars: self.cost_dollars(),
        });
        if cut {
            return self.drop_cut_calls(answer.content);
        }
        if !places.is_empty() && !may_run {
            self.reject_cut()?;
        } else if !places.is_empty() {
            self.drains.reset();
            return Ok(State::Deciding(self.open_items()));
        }
        if answer.finish == Finish::Error {
            let why = format!("the provider broke the answer off ({})", answer.finish_detail);
            return Ok(State::Ended(Ending::failed(FinishReason::Error, why).with(answer.content)));
        }
        Ok(State::Draining { answer: answer.content })
    }

    /// A cut answer never runs its calls: what was cut may be the part that matters.
    fn drop_cut_calls(&mut self, content: String) -> Result<State, Fault> {
        self.reject_cut()?;
        let why = "the answer was cut at the token limit; raise --max-tokens or ask for less";
        Ok(State::Ended(Ending::failed(FinishReason::Truncated, why.to_owned()).with(content)))
    }

    /// After all results of an answer: circles, yields, background results, the next turn.
    pub(super) fn record_turn(&mut self, results: &[CallResult]) -> Result<State, Fault> {
        self.take_post_hooks()?;
        if self.parts.chain.abort.is_aborted() {
            return Ok(State::Ended(self.stopped()));
        }
        if results.iter().any(|result| result.yields) {
            return Ok(State::Ended(Ending::stop(String::new())));
        }
        let mut circling = Circling::No;
        for result in results {
            let seen = self.cycles.observe(&result.tool, &result.arguments, &result.text);
            circling = if seen == Circling::No { circling } else { seen };
        }
        match circling {
            Circling::No => {}
            Circling::Nudge => self.parts.journal.inject(NUDGE, InjectionSource::Nudge, vec![])?,
            Circling::Stop => {
                let why = "the agent repeats the same calls with the same results".to_owned();
                return Ok(State::Ended(Ending::failed(FinishReason::Loop, why)));
            }
        }
        self.inject_background()?;
        Ok(State::AwaitingModel)
    }

    /// A text answer is final unless results wait; those keep the run going for a few rounds, which
    /// cost no iteration.
    pub(super) fn drain(&mut self, answer: String) -> Result<State, Fault> {
        if self.drains.another() && self.inject_background()? {
            self.tally.turns = self.tally.turns.saturating_sub(1);
            return Ok(State::AwaitingModel);
        }
        Ok(State::Ended(Ending::stop(answer)))
    }

    /// Puts everything that has ended in the background before the model, in one message.
    pub(super) fn inject_background(&mut self) -> Result<bool, Fault> {
        self.settle_jobs()?;
        let results = self.parts.background.take();
        if results.is_empty() {
            return Ok(false);
        }
        // Delivery is recorded for producers that the journal knows as sub-agents.
        let waiting = self.parts.journal.state().undelivered();
        let waiting = waiting.iter().map(|agent| agent.started.run_id.clone());
        let gave = |run: &Id| {
            let producer = Producer::Agent { run: run.clone() };
            results.iter().any(|result| result.producer == producer)
        };
        let runs = waiting.filter(gave).collect();
        self.parts.journal.inject(&message(&results), InjectionSource::Background, runs)?;
        self.tell(Event::Background { results: results.len() });
        Ok(true)
    }
}

fn retry_record(identity: &str, failure: &AttemptFailure<'_>) -> RetryRecord {
    RetryRecord {
        model: Untrusted::new(identity),
        attempt: failure.attempt,
        cause: Untrusted::new(failure.error.to_string()),
        delay_ms: failure.retry_in.map_or(0, milliseconds),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
