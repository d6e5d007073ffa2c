//! Records about what happened around calls: grants, connections, hooks, the guardian, sub-agents,
//! retries and repairs.

use super::decision::StageVerdict;
use crate::audit::redact::{Redact, Redaction};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What a person answered to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// The call that was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Id>,
    /// The question in the words shown.
    pub shown: Untrusted,
    /// Whether it was approved.
    pub approved: bool,
    /// How far the answer reaches.
    pub scope: GrantScope,
    /// Who answered: a login, or the file that held the answer.
    pub by: Untrusted,
    /// Digest of what the grant is bound to (script or tool definition), if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_to: Option<Digest>,
}

/// How far an answer reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantScope {
    /// This call.
    Once,
    /// This session.
    Session,
    /// Later sessions in this workspace.
    Workspace,
}

/// One connection through the proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The call whose cell asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Id>,
    /// The name as asked for.
    pub host: Untrusted,
    /// The port.
    pub port: u16,
    /// The address that was checked and dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Whether it was let through.
    pub verdict: NetworkVerdict,
    /// Stable code of the reason.
    pub code: Untrusted,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Untrusted>,
    /// Bytes from the cell.
    pub bytes_sent: u64,
    /// Bytes to the cell.
    pub bytes_received: u64,
}

/// Whether a connection was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkVerdict {
    /// Connected.
    Passed,
    /// Refused.
    Denied,
    /// Let through, but the other side could not be reached.
    Failed,
}

/// One hook ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    /// The call; of a session's hook, the session.
    pub call: Id,
    /// Identifier of the hook in the policy.
    pub hook: Untrusted,
    /// `pre-tool`, `post-tool`, `session-start` or `session-end`.
    pub event: Untrusted,
    /// What it said; `deny` also when it failed.
    pub verdict: StageVerdict,
    /// Stable code: its decision, or how it failed.
    pub code: Untrusted,
    /// Its words, or the failure in words.
    pub sentence: Untrusted,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// The guardian was asked. What it was shown is in the decision; here only its digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guardian {
    /// The call.
    pub call: Id,
    /// The reviewing model.
    pub model: Untrusted,
    /// Digest of the argument text.
    pub arguments_hash: Digest,
    /// Its estimate of the risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Untrusted>,
    /// What it said; `deny` also when it failed.
    pub verdict: StageVerdict,
    /// Stable code: its decision, or how it failed.
    pub code: Untrusted,
    /// Its words.
    pub sentence: Untrusted,
    /// Input and output tokens.
    pub tokens: (u64, u64),
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// A sub-agent began or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// The call that spawned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Id>,
    /// Run id of the sub-agent.
    pub agent: Id,
    /// Path of agents, the sub-agent included.
    pub origin: Untrusted,
    /// Its role.
    pub role: Untrusted,
    /// What happened.
    #[serde(flatten)]
    pub event: AgentEvent,
}

/// What happened to a sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum AgentEvent {
    /// It began.
    Spawned {
        /// Tools it may use: at most its parent's.
        tools: Vec<Untrusted>,
        /// Whether the parent goes on meanwhile.
        background: bool,
        /// Digest of its task text.
        task: Digest,
    },
    /// It ended.
    Ended {
        /// How: `completed`, `error`, …
        finish: Untrusted,
        /// Digest of its final message.
        answer: Digest,
    },
}

/// A model call is tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Provider and model.
    pub model: Untrusted,
    /// Number of the attempt that failed, from 1.
    pub attempt: u32,
    /// Why it failed.
    pub cause: Untrusted,
    /// Wait before the next, in milliseconds.
    pub delay_ms: u64,
}

/// The conversation sent to the model was mended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repair {
    /// Stable code of what was wrong.
    pub code: Untrusted,
    /// What was done.
    pub sentence: Untrusted,
}

impl Redact for Grant {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.shown.redact(redaction);
        self.by.redact(redaction);
    }
}

impl Redact for Network {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.host.redact(redaction);
        self.code.redact(redaction);
        self.rule.redact(redaction);
    }
}

impl Redact for Hook {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.hook.redact(redaction);
        self.event.redact(redaction);
        self.code.redact(redaction);
        self.sentence.redact(redaction);
    }
}

impl Redact for Guardian {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.model.redact(redaction);
        self.risk.redact(redaction);
        self.code.redact(redaction);
        self.sentence.redact(redaction);
    }
}

impl Redact for Agent {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.origin.redact(redaction);
        self.role.redact(redaction);
        match &mut self.event {
            AgentEvent::Spawned { tools, .. } => tools.redact(redaction),
            AgentEvent::Ended { finish, .. } => finish.redact(redaction),
        }
    }
}

impl Redact for Retry {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.model.redact(redaction);
        self.cause.redact(redaction);
    }
}

impl Redact for Repair {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.code.redact(redaction);
        self.sentence.redact(redaction);
    }
}
