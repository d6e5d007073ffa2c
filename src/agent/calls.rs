//! The calls of one answer: each is read, decided in the model's order, recorded as started, carried
//! out, and recorded with what came of it.

use super::events::{Event, FinishReason};
use super::finish::Ending;
use super::stopping::Watch;
use super::turn::{CallResult, State};
use super::{Agent, Fault, wave};
use crate::audit::record::{
    Body, Exit as RecordedExit, Outcome as OutcomeRecord, Rejected, RejectedBecause, Stages,
};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use crate::call::ToolCall;
use crate::call::request::{InvalidCall, Request};
use crate::chain::verdict::Denied;
use crate::chain::{Approved, Ruling, hooks};
use crate::policy::{Hook, HookEvent};
use crate::session::{
    CallPlace, CallProgress, Counters, DenialReason, Journal, Refusal, Replay, SessionError,
    SyntheticReason, ToolOutcome,
};
use crate::tools::execute::Outcome;
use crate::tools::plan;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinSet;

/// What is told of a call that the end of the run overtook.
const NOT_STARTED: &str = "the run was stopped before the call started";
/// What is told of a call whose answer was cut.
const CUT: &str = "the answer was cut; none of its calls was executed";

/// A call of the latest answer that needs a result.
#[derive(Debug)]
pub(super) struct Item {
    place: CallPlace,
    /// Our identifier.
    id: Id,
    /// The start that an earlier process recorded, of a call that may be repeated.
    started: Option<Id>,
    request: Result<Request, InvalidCall>,
}

/// An approved call that is recorded as about to run.
#[derive(Debug)]
pub(super) struct Ready {
    place: CallPlace,
    started: Id,
    approved: Approved,
}

/// A call that ran.
struct Ran {
    place: CallPlace,
    id: Id,
    started: Id,
    outcome: Outcome,
}

impl Agent {
    /// The calls of the latest answer that need a result, in order, read into requests.
    pub(super) fn open_items(&self) -> VecDeque<Item> {
        let fresh = self.parts.journal.open_calls().into_iter().map(|place| (place, None));
        let mut all: Vec<(CallPlace, Option<Id>)> =
            self.repeatable().into_iter().chain(fresh).collect();
        all.sort_by_key(|(place, _)| place.index);
        all.into_iter()
            .map(|(place, started)| {
                let request = self.parts.settings.read(&place.name, &place.arguments);
                Item { place, id: Id::new(), started, request }
            })
            .collect()
    }

    /// Calls that an earlier process started and that change nothing.
    fn repeatable(&self) -> Vec<(CallPlace, Option<Id>)> {
        let state = self.parts.journal.state();
        let (Some(run), Some((turn, placed))) = (state.run(), state.open_answer()) else {
            return Vec::new();
        };
        let calls = (0_u64..).zip(placed.message.tool_calls()).zip(&turn.calls);
        calls
            .filter_map(|((index, call), progress)| {
                let CallProgress::Started(position) = progress else { return None };
                let tool = run.tool_calls.get(*position)?;
                let place = CallPlace {
                    assistant_entry_id: turn.assistant_entry_id.clone(),
                    step_id: turn.step_id.clone(),
                    index,
                    call_id: call.id.clone(),
                    name: call.function.name.clone(),
                    arguments: call.function.arguments.clone(),
                };
                (tool.replay == Replay::Safe).then(|| (place, Some(tool.tool_started_id.clone())))
            })
            .collect()
    }

    /// Decides the next wave of calls, in order.
    pub(super) async fn decide(&mut self, mut items: VecDeque<Item>) -> Result<State, Fault> {
        if self.parts.chain.abort.is_aborted() {
            return Ok(State::Recording(Vec::new()));
        }
        let requests: Vec<&Request> =
            items.iter().map_while(|item| item.request.as_ref().ok()).collect();
        let mut length = wave::length(&requests, &self.parts.chain.setting.workspace);
        if length == 0 {
            // The first is no valid call, or there is none.
            length = 1.min(items.len());
        }
        let mut ready = Vec::new();
        let rest = items.split_off(length);
        let mut results = Vec::new();
        for item in items {
            match self.decide_one(item).await? {
                Ok(call) => ready.push(call),
                Err(result) => results.push(result),
            }
        }
        self.turn_results.extend(results);
        if !ready.is_empty() {
            return Ok(State::Executing { wave: ready, rest });
        }
        Ok(self.after_wave(rest))
    }

    fn after_wave(&mut self, rest: VecDeque<Item>) -> State {
        if rest.is_empty() {
            State::Recording(std::mem::take(&mut self.turn_results))
        } else {
            State::Deciding(rest)
        }
    }

    /// Sends one call through the chain. What is not approved has its result at once.
    async fn decide_one(&mut self, item: Item) -> Result<Result<Ready, CallResult>, Fault> {
        let Item { place, id, started, request } = item;
        self.tell_call(&id, &place);
        let request = match request {
            Ok(request) => request,
            Err(invalid) => return self.reject(place, &id, &invalid).map(Err),
        };
        match self.rule(&place, id, request).await? {
            Ruling::Approved(approved) => self.start(place, started, *approved).map(Ok),
            Ruling::Denied(denied) => self.refuse(place, started, &denied).map(Err),
        }
    }

    /// What the chain says about a call; its decision is durable, and its start with it if it is approved.
    async fn rule(&mut self, place: &CallPlace, id: Id, request: Request) -> Result<Ruling, Fault> {
        let call = ToolCall {
            id,
            provider_id: place.call_id.clone(),
            origin: "main".to_owned(),
            request,
            raw_arguments: place.arguments.clone(),
        };
        let chain = &self.parts.chain;
        if !chain.is_headless() || !chain.judges_without_effect(&place.name) {
            // A person, a hook or a model acts on the answer.
            self.parts.journal.flush()?;
        }
        let toolbox = Arc::clone(&self.parts.toolbox);
        let plan = move |call: &ToolCall, approved: &[std::path::PathBuf]| {
            plan::cell(call, &toolbox, approved)
        };
        let (abort, left) = (self.parts.chain.abort.clone(), self.time_left());
        let watch = Watch::new(&mut self.parts.journal, abort, left);
        let decided = self.parts.chain.decide(call, &plan, &mut self.parts.log);
        let (ruling, stopped) = watch.over(decided).await;
        stopped?;
        self.spend_on_reviews();
        Ok(ruling?)
    }

    /// The calls that had not started when the run was stopped: the abort check refuses each on the
    /// record. The journal closes them with the abort itself.
    pub(super) async fn refuse_open(&mut self) -> Result<(), Fault> {
        for Item { place, id, started, request } in self.open_items() {
            if started.is_some() {
                continue;
            }
            self.tell_call(&id, &place);
            let request = match request {
                Ok(request) => request,
                Err(invalid) => {
                    self.record_rejected(
                        &place,
                        &id,
                        RejectedBecause::Aborted,
                        &invalid.to_string(),
                    )?;
                    self.tell_result(&id, &place, ("aborted", NOT_STARTED), 0);
                    continue;
                }
            };
            if let Ruling::Denied(denied) = self.rule(&place, id.clone(), request).await? {
                self.tell_stages(&id, &denied.stages);
                self.tally.refuse(&denied);
            }
            self.tell_result(&id, &place, ("aborted", NOT_STARTED), 0);
        }
        Ok(())
    }

    /// Intent before effect: the start, which is durable in the log, is so in the journal before the call
    /// runs.
    fn start(
        &mut self,
        place: CallPlace,
        started: Option<Id>,
        approved: Approved,
    ) -> Result<Ready, Fault> {
        let call = &approved.subject().call;
        let (id, tool) = (call.id.clone(), call.request.tool());
        self.tell_stages(&id, approved.stages());
        let started = match (started, self.parts.settings.contract(tool)) {
            (Some(started), _) => started,
            (None, Some(contract)) => {
                let arguments = object(&place.arguments);
                match self.parts.journal.tool_started(&place, arguments, contract) {
                    Ok(started) => started,
                    Err(error) => return Err(self.nothing_ran(&id, error)),
                }
            }
            (None, None) => return Err(Fault::LostCall),
        };
        Ok(Ready { place, started, approved })
    }

    /// The log has the start of a call that the journal could not take: it also gets that nothing ran, if
    /// it can. The journal's error is the one that ends the run.
    fn nothing_ran(&mut self, id: &Id, error: SessionError) -> Fault {
        let cause = Untrusted::new("the session could not record its start");
        let outcome = Outcome::failed(RecordedExit::SetupFailed { cause });
        let record = outcome_record(id, &outcome);
        self.parts.log.append(&Body::Outcome(Box::new(record))).ok();
        error.into()
    }

    fn refuse(
        &mut self,
        place: CallPlace,
        started: Option<Id>,
        denied: &Denied,
    ) -> Result<CallResult, Fault> {
        self.tell_stages(&denied.call, &denied.stages);
        self.tally.refuse(denied);
        let text = denied.for_model();
        match started {
            Some(started) => self.settle(&started, ToolOutcome::Error, text.clone())?,
            None => self.refuse_in_journal(&place, denied, text.clone())?,
        }
        self.tell_result(&denied.call, &place, ("denied", &text), 0);
        Ok(result_of(place, text, false))
    }

    fn refuse_in_journal(
        &mut self,
        place: &CallPlace,
        denied: &Denied,
        content: String,
    ) -> Result<(), Fault> {
        let tool = crate::call::request::ToolName::parse(&place.name);
        let Some(contract) = tool.and_then(|tool| self.parts.settings.contract(tool)) else {
            // It was not offered, so for the conversation it does not exist.
            let place = std::slice::from_ref(place);
            return Ok(self.parts.journal.synthetic(place, SyntheticReason::UnknownTool)?);
        };
        let denial = DenialReason {
            stage: denied.stage.as_str().to_owned(),
            code: denied.reason.code.raw().to_owned(),
            rule: denied.reason.rule.as_ref().map(|rule| rule.raw().to_owned()),
            audit_sequence: Some(denied.sequence),
        };
        let refusal = Refusal { content, denial: Some(denial) };
        self.parts.journal.tool_refused(place, object(&place.arguments), contract, refusal)?;
        Ok(())
    }

    /// A request that is no call at all: told to the model, recorded, never decided.
    fn reject(
        &mut self,
        place: CallPlace,
        id: &Id,
        invalid: &InvalidCall,
    ) -> Result<CallResult, Fault> {
        let (because, fixed) = match invalid {
            InvalidCall::UnknownTool { .. } => {
                (RejectedBecause::UnknownTool, SyntheticReason::UnknownTool)
            }
            InvalidCall::InvalidArguments { .. } => {
                (RejectedBecause::InvalidArguments, SyntheticReason::InvalidArguments)
            }
        };
        let told = invalid.to_string();
        self.record_rejected(&place, id, because, &told)?;
        let contract = match invalid {
            InvalidCall::UnknownTool { .. } => None,
            InvalidCall::InvalidArguments { tool, .. } => self.parts.settings.contract(*tool),
        };
        // Arguments that are no JSON object cannot stand in a start; those get the fixed text.
        match (contract, serde_json::from_str::<Map<String, Value>>(&place.arguments)) {
            (Some(contract), Ok(arguments)) => {
                let refusal = Refusal { content: format!("error: {told}"), denial: None };
                self.parts.journal.tool_refused(&place, arguments, contract, refusal)?;
            }
            (_, _) => self.parts.journal.synthetic(std::slice::from_ref(&place), fixed)?,
        }
        self.tell_result(id, &place, ("rejected", &told), 0);
        Ok(result_of(place, told, false))
    }

    fn record_rejected(
        &mut self,
        place: &CallPlace,
        id: &Id,
        because: RejectedBecause,
        told: &str,
    ) -> Result<(), Fault> {
        self.tally.rejected += 1;
        let record = Rejected {
            call: id.clone(),
            provider_id: Untrusted::new(place.call_id.as_str()),
            origin: Untrusted::new("main"),
            tool: Untrusted::new(place.name.as_str()),
            because,
            told: Untrusted::new(told),
            arguments: Untrusted::new(place.arguments.as_str()),
            arguments_hash: Digest::of(place.arguments.as_bytes()),
        };
        self.parts.log.append(&Body::Rejected(Box::new(record))).map(drop)?;
        Ok(())
    }

    /// The calls of a cut answer never run: each gets the fixed result, in both files.
    pub(super) fn reject_cut(&mut self) -> Result<(), Fault> {
        let places = self.parts.journal.open_calls();
        let because = RejectedBecause::Truncated;
        for place in &places {
            let id = Id::new();
            self.tell_call(&id, place);
            self.record_rejected(place, &id, because, because.as_str())?;
            self.tell_result(&id, place, ("rejected", CUT), 0);
        }
        if !places.is_empty() {
            self.parts.journal.synthetic(&places, SyntheticReason::Truncated)?;
        }
        Ok(())
    }

    /// Carries out a wave; each result is recorded as soon as it is there.
    pub(super) async fn execute(
        &mut self,
        wave: Vec<Ready>,
        rest: VecDeque<Item>,
    ) -> Result<State, Fault> {
        let mut running = JoinSet::new();
        let count = wave.len();
        for Ready { place, started, approved } in wave {
            let toolbox = Arc::clone(&self.parts.toolbox);
            let (abort, executor) = (self.parts.chain.abort.clone(), self.parts.executor.clone());
            let id = approved.subject().call.id.clone();
            running.spawn_blocking(move || {
                let outcome = executor.carry_out(approved, &toolbox, &abort);
                Ran { place, id, started, outcome }
            });
        }
        let mut results = Vec::with_capacity(count);
        let mut unmet = None;
        let mut recorded = Ok(());
        loop {
            let (joined, stopped) = self.watch().over(running.join_next()).await;
            recorded = recorded.and(stopped);
            let Some(joined) = joined else { break };
            let mut ran = joined.map_err(|_panicked| Fault::LostCall)?;
            unmet = unmet.or(ran.outcome.setup_failed.take());
            let is_last = running.is_empty();
            results.push((ran.place.index, self.finish_call(ran, is_last)?));
        }
        // What the calls came to is on record all the same.
        recorded?;
        results.sort_by_key(|(index, _)| *index);
        self.turn_results.extend(results.into_iter().map(|(_, result)| result));
        Ok(match unmet {
            // A machine that no longer gives a cell gives none to the next call either.
            Some(why) => State::Ended(Ending::failed(FinishReason::SandboxFailure, why)),
            None => self.after_wave(rest),
        })
    }

    /// Writes down what came of a call. The result of the last one of a wave is flushed by what comes next,
    /// unless a hook acts on it: another call's start, the next request, or the end of the run.
    fn finish_call(&mut self, ran: Ran, is_last: bool) -> Result<CallResult, Fault> {
        let Ran { place, id, started, mut outcome } = ran;
        self.tally.executed += 1;
        let record = outcome_record(&id, &outcome);
        let duration_ms = record.duration_ms;
        match outcome.began.take() {
            // Its outcome follows when it ends.
            Some(job) => self.note_job(&started, job),
            None => self.parts.log.append(&Body::Outcome(Box::new(record))).map(drop)?,
        }
        let kind = if outcome.success { ToolOutcome::Success } else { ToolOutcome::Error };
        let text = outcome.text.clone();
        let is_acted_on = self.post_hooks_of(&place).next().is_some();
        if is_last && !is_acted_on {
            let usage = Counters::default();
            let result = |journal: &mut Journal| journal.tool_result(&started, kind, text, usage);
            self.parts.journal.unflushed(result)?;
        } else {
            self.settle(&started, kind, text)?;
        }
        let status = status_of(&outcome);
        self.tell_result(&id, &place, (status, &outcome.text), duration_ms);
        self.start_post_hooks(&place, id, status);
        Ok(result_of(place, outcome.text, outcome.yields))
    }

    fn settle(&mut self, started: &Id, kind: ToolOutcome, text: String) -> Result<(), Fault> {
        Ok(self.parts.journal.tool_result(started, kind, text, Counters::default())?)
    }

    fn tell_call(&mut self, id: &Id, place: &CallPlace) {
        self.tell(Event::ToolCall {
            call: id.clone(),
            tool: place.name.clone(),
            arguments: place.arguments.clone(),
        });
    }

    fn tell_stages(&mut self, call: &Id, stages: &Stages) {
        for (stage, record) in stages.in_order() {
            self.tell(Event::Decision {
                call: call.clone(),
                stage: stage.as_str(),
                verdict: record.verdict,
                reasons: record.reasons.clone(),
            });
        }
    }

    fn tell_result(
        &mut self,
        call: &Id,
        place: &CallPlace,
        (status, text): (&'static str, &str),
        duration_ms: u64,
    ) {
        self.tell(Event::ToolResult {
            call: call.clone(),
            tool: place.name.clone(),
            status,
            content: text.to_owned(),
            duration_ms,
        });
    }

    /// Post-tool hooks are told and not waited for; their records follow when they end.
    fn start_post_hooks(&mut self, place: &CallPlace, id: Id, status: &'static str) {
        let told: Vec<_> = self.post_hooks_of(place).cloned().collect();
        let chain = &self.parts.chain;
        for hook in told {
            let stdin = hooks::outcome_input(&id, place.name.as_str(), &place.arguments, status);
            let (cell, abort, call) = (Arc::clone(&chain.cell), chain.abort.clone(), id.clone());
            self.post_hooks
                .spawn_blocking(move || hooks::run(&hook, &call, stdin, &cell, &abort).1);
        }
    }

    fn post_hooks_of<'a>(&'a self, place: &'a CallPlace) -> impl Iterator<Item = &'a Hook> {
        hooks::of(self.parts.chain.policy.hooks(), HookEvent::PostTool, &place.name)
    }

    pub(super) fn take_post_hooks(&mut self) -> Result<(), Fault> {
        while let Some(finished) = self.post_hooks.try_join_next() {
            let Ok(record) = finished else { continue };
            self.parts.log.append(&Body::Hook(Box::new(record))).map(drop)?;
        }
        Ok(())
    }
}

/// How a call that ran went, in one word.
fn status_of(outcome: &Outcome) -> &'static str {
    if outcome.success {
        "ok"
    } else if outcome.exit == RecordedExit::Cancelled {
        "interrupted"
    } else {
        "failed"
    }
}

/// What the log keeps of an outcome.
pub(super) fn outcome_record(id: &Id, outcome: &Outcome) -> OutcomeRecord {
    let paths = outcome.files_written.iter();
    OutcomeRecord {
        call: id.clone(),
        exit: outcome.exit.clone(),
        stdout_bytes: outcome.stdout_bytes,
        stderr_bytes: outcome.stderr_bytes,
        truncated: outcome.truncated,
        result: Some(Digest::of(outcome.text.as_bytes())),
        files_written: paths.map(|path| Untrusted::new(path.to_string_lossy())).collect(),
        limits_hit: outcome.limits_hit.iter().map(|limit| Untrusted::new(*limit)).collect(),
        enforced: outcome.enforced.clone(),
        duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
    }
}

fn result_of(place: CallPlace, text: String, yields: bool) -> CallResult {
    CallResult { tool: place.name, arguments: place.arguments, text, yields }
}

/// The arguments as an object; the request was read from the same text.
fn object(arguments: &str) -> Map<String, Value> {
    serde_json::from_str(arguments).unwrap_or_default()
}
