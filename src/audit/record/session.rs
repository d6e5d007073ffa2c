//! Records about the log and the run as a whole: `session`, `end`, `checkpoint`, `recovered`.

use crate::audit::redact::{Redact, Redaction};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Who runs what under which policy. The first record of a log, and again at every resumption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The session; also the name of the log.
    pub session: Id,
    /// Version of stoplog.
    pub program: String,
    /// Whether an earlier run of this session is continued.
    pub resumed: bool,
    /// User id of the supervisor.
    pub uid: u32,
    /// Login name, if there is one for that id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Untrusted>,
    /// Machine.
    pub host: Untrusted,
    /// Process id of the supervisor.
    pub pid: u32,
    /// Role of the main agent.
    pub role: Untrusted,
    /// Whether nobody can be asked.
    pub headless: bool,
    /// What the placeholders of the policy stand for: `workspace`, `home`, `tmp`, …
    pub places: BTreeMap<String, Untrusted>,
    /// The policy.
    pub policy: PolicyRecord,
    /// Tools whose definitions went to the model.
    pub tools: Vec<Untrusted>,
    /// Provider and model.
    pub model: Untrusted,
    /// What the kernel of this machine enforces, as the sandbox reports it.
    pub enforced: Value,
    /// What had to be said of the workspace before the first call: hard links that go past the policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Untrusted>,
}

/// The policy of a run. Its text is never redacted, since the digest must be computable from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyRecord {
    /// Digest of the compiled set; every decision carries it.
    pub digest: Digest,
    /// The files, in the order in which they were given. Empty in the record of a resumption under a
    /// policy whose text an earlier record of this log holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<PolicySourceRecord>,
}

/// One policy file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicySourceRecord {
    /// Name or path.
    pub name: Untrusted,
    /// Where it stands among the layers.
    pub layer: String,
    /// Whether it was given itself, and not only extended by another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// For a resumption that was narrowed: which of the sets it belongs to, of which each one must
    /// allow a call. 0 otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub part: u64,
    /// Its whole text.
    pub text: Untrusted,
}

/// A run is over. The last record of every run that ended by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Why it ended, as in the result of the run: `completed`, `error`, `iteration-limit`, …
    pub finish: Untrusted,
    /// Exit code of the process.
    pub exit_code: u8,
    /// Calls that the chain approved.
    pub approved: u64,
    /// Calls that it denied.
    pub denied: u64,
    /// Requests that never became a decision.
    pub rejected: u64,
    /// Input and output tokens.
    pub tokens: (u64, u64),
    /// What they cost in millionths of a dollar, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_millionths: Option<u64>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Untrusted>,
}

/// Count and link before this record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Records before this one.
    pub records: u64,
    /// Link of the last of them; equal to this record's `prev`.
    pub head: Digest,
    /// Signature over both, if signing is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// A signature of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// `ed25519`.
    pub algorithm: String,
    /// Digest of the public key.
    pub key: Digest,
    /// The signature in lower-case hex.
    pub value: String,
}

/// A torn line was moved aside when the log was opened again after a crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recovered {
    /// Byte offset at which the torn line began.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Digest of its bytes.
    pub digest: Digest,
    /// Name of the file that keeps them, in the directory of the log.
    pub aside: Untrusted,
}

impl Redact for Session {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.login.redact(redaction);
        self.host.redact(redaction);
        self.role.redact(redaction);
        self.places.values_mut().for_each(|place| place.redact(redaction));
        self.tools.redact(redaction);
        self.model.redact(redaction);
        self.warnings.redact(redaction);
    }
}

impl Redact for End {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.finish.redact(redaction);
        self.cause.redact(redaction);
    }
}

impl Redact for Recovered {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.aside.redact(redaction);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}
