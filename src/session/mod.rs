//! The session journal: durable facts, the fold over them, and the plan for recovery.
//!
//! A session is a file of lines; each line is one transaction of facts. [`reduce()`] folds the bytes to
//! a [`SessionState`], [`plan()`] says from that state alone what must happen next, and [`Journal`]
//! appends: a candidate is reduced first and flushed to the disk before the call returns. The module
//! knows no model, no tool and no policy; `docs/session-format.md` describes the file.

mod export;
mod facts;
mod fork;
mod html;
mod journal;
mod plan;
mod reduce;
mod scratch;
mod state;
mod store;
mod view;

pub use export::{Redact, markdown, plan_json, reduced_json, show_json};
pub use facts::configuration::{
    ConfigurationSnapshot, CurrentConfiguration, CurrentTool, SnapshotTool, ToolContract,
};
pub use facts::extension::{
    Cost, Denial, EXTENSION, Extension, FinalStatistics, Injected, InjectionSource,
    IterationStatistics, JobEnded, JobStarted, Parent, PolicyPin, RunContext, SubAgentFinished,
    SubAgentStarted, Thinking,
};
pub use facts::message::{
    AssistantMessage, FunctionCall, Message, StopReason, SyntheticReason, ToolCall, ToolMessage,
    UserMessage,
};
pub use facts::{
    AbortPhase, AbortReason, AbortRequested, AssistantEntry, Body, CompactionEntry,
    CompactionStarted, Completion, Counters, Entry, Fact, FactError, Header, OperationFinished,
    OperationKind, Outcome, Record, Replay, RetainedMessage, RunStarted, StartedResult,
    StepAttempt, StepFailed, StepKind, SyntheticEntry, ToolResultEntry, ToolStarted, Usage,
};
pub use fork::ForkError;
pub use html::html;
pub use journal::calls::{DenialReason, Refusal, ToolOutcome};
pub use journal::compact::compaction_boundaries;
pub use journal::recover::{NextAction, RecoverMode, Recovery, what_was_in_flight};
pub use journal::steps::{CallPlace, NewAnswer, StepPlan};
pub use journal::{Draft, Journal, SessionError};
pub use plan::{BlockReason, Plan, SyntheticResult, ToolMode, plan};
pub use reduce::corruption::{Corruption, CorruptionCode};
pub use reduce::{Reducer, reduce};
pub use scratch::Scratch;
pub use state::{
    CallProgress, CompactionOperation, ExtensionState, Job, OpenTurn, Operation, Placed,
    RunOperation, SessionState, Spent, Step, StepStatus, SubAgent, ToolState, ToolStatus,
};
pub use store::{
    PruneRule, SessionContent, SessionDirectory, SessionStatus, SessionSummary, Store, StoreError,
};
pub use view::{ViewMessage, view, view_from};
