//! Typed appends for a compaction: its start, and its summary with what is kept whole.

use super::steps::{attempt_usage, unfit};
use super::{Draft, Journal, SessionError};
use crate::base::ids::Id;
use crate::session::facts::extension::{Extension, FinalStatistics};
use crate::session::facts::{
    Body, CompactionEntry, CompactionStarted, Counters, Entry, OperationFinished, OperationKind,
    Outcome, Record, RetainedMessage,
};
use crate::session::state::{CompactionOperation, Operation, Placed, SessionState};
use std::collections::HashSet;

const WANTED: &str = "compact the history";

/// The entries behind which a compaction may cut: no call is separated from its result. The last
/// message is not among them, since something must be kept.
#[must_use]
pub fn compaction_boundaries(state: &SessionState) -> Vec<Id> {
    let mut open: HashSet<&str> = HashSet::new();
    let mut boundaries = Vec::new();
    for placed in &state.transcript {
        open.extend(placed.message.tool_calls().iter().map(|call| call.id.as_str()));
        if let crate::session::facts::message::Message::Tool(tool) = &*placed.message {
            open.remove(tool.tool_call_id.as_str());
        }
        if open.is_empty() {
            boundaries.push(placed.entry_id.clone());
        }
    }
    let last = state.transcript.last().map(|placed| &placed.entry_id);
    boundaries.retain(|boundary| Some(boundary) != last);
    boundaries
}

impl Journal {
    /// Records that the messages up to and including `through` are to be summarised. The session must
    /// be idle, or its run between two steps. The request for the summary follows as
    /// [`Journal::step_attempt`].
    ///
    /// # Errors
    /// As [`Journal::append`]; `through` must be a message that is not the last.
    pub fn begin_compaction(&mut self, through: &Id) -> Result<Id, SessionError> {
        let transcript = &self.state().transcript;
        let (Some(last), Some(cut)) = (
            transcript.last().map(|placed| placed.entry_id.clone()),
            transcript.iter().rposition(|placed| placed.entry_id == *through),
        ) else {
            return Err(unfit(WANTED, "there is no such message"));
        };
        let ids: Vec<Id> = transcript.iter().map(|placed| placed.entry_id.clone()).collect();
        let (compacted, retained) = ids.split_at(cut + 1);
        let source_digest = self.reducer.source_digest(&last);
        let operation_id = Id::new();
        let record = Record::CompactionStarted(CompactionStarted {
            operation_id: operation_id.clone(),
            operation_kind: OperationKind::Compaction,
            input_through_entry_id: last,
            result_entry_id: Id::new(),
            compacted_entry_ids: compacted.to_vec(),
            retained_entry_ids: retained.to_vec(),
            source_digest: source_digest.ok_or_else(|| unfit(WANTED, "there is no message"))?,
        });
        self.append(vec![Draft::new(Body::Record(record))])?;
        Ok(operation_id)
    }

    /// Settles the open attempt with a summary, records its usage and ends the compaction.
    ///
    /// # Errors
    /// As [`Journal::append`]; an attempt of a compaction must be open.
    pub fn compaction_settled(
        &mut self,
        summary: String,
        usage: Counters,
        statistics: Option<FinalStatistics>,
    ) -> Result<(), SessionError> {
        let step = self.open_step(WANTED)?;
        let state = self.state();
        let Operation::Compaction(compaction) = &state.operation else {
            return Err(unfit(WANTED, "none has been begun"));
        };
        let (through, retained_tail) = kept(state, compaction)?;
        let entry = Draft {
            id: compaction.result_entry_id.clone(),
            body: Body::Entry(Entry::Compaction(CompactionEntry {
                operation_id: compaction.operation_id.clone(),
                summary,
                compacted_through_entry_id: through,
                retained_tail,
            })),
        };
        let finished = Record::OperationFinished(OperationFinished {
            operation_id: compaction.operation_id.clone(),
            operation_kind: OperationKind::Compaction,
            outcome: Outcome::Completed,
            completion: None,
            final_entry_id: Some(compaction.result_entry_id.clone()),
            error: None,
        });
        let mut drafts =
            vec![entry, attempt_usage(&step, usage), Draft::new(Body::Record(finished))];
        let statistics = statistics.map(Extension::FinalStatistics).map(Body::Extension);
        drafts.extend(statistics.map(Draft::new));
        self.append(drafts).map(drop)
    }
}

/// The boundary of the summary and the messages behind it.
fn kept(
    state: &SessionState,
    compaction: &CompactionOperation,
) -> Result<(Id, Vec<RetainedMessage>), SessionError> {
    let gone = || unfit(WANTED, "its messages are not there");
    let through = compaction.compacted_through_entry_id.clone().ok_or_else(gone)?;
    let position = |id: &Id| state.transcript.iter().rposition(|placed| placed.entry_id == *id);
    let start = position(&through).ok_or_else(gone)?;
    let end = position(&compaction.input_through_entry_id).ok_or_else(gone)?;
    let source = state.transcript.get(start + 1..=end).ok_or_else(gone)?;
    let keep = |placed: &Placed| RetainedMessage {
        source_entry_id: placed.entry_id.clone(),
        message: (*placed.message).clone(),
    };
    Ok((through, source.iter().map(keep).collect()))
}
