//! The first records and the first event of a run: who runs what, where, under which policy, in what
//! cell; and what is written of calls that a killed supervisor left behind.

use super::RunConfig;
use super::setup::Grounds;
use crate::agent::events::Event;
use crate::audit::record::{
    Exit as RecordedExit, Outcome as OutcomeRecord, PolicyRecord, PolicySourceRecord,
    Session as SessionRecord,
};
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use crate::policy::{BoundPolicy, Diagnostic, PolicySet};
use crate::sandbox::Enforced;
use crate::session::{PolicyPin, RunContext};
use std::collections::BTreeMap;
use std::path::Path;

/// The role that counts, by name.
pub(super) fn role(config: &RunConfig, policy: &BoundPolicy) -> String {
    config.role.as_deref().or_else(|| policy.default_role()).unwrap_or("none").to_owned()
}

/// What differs between the runs of one configuration.
pub(super) struct RunFacts {
    pub(super) resumed: bool,
    pub(super) role: String,
    pub(super) tools: Vec<String>,
    pub(super) model: String,
    pub(super) enforced: serde_json::Value,
    /// What a person has to know of the workspace.
    pub(super) warnings: Vec<String>,
}

/// The first record of a run.
pub(super) fn session_record(
    config: &RunConfig,
    grounds: &Grounds,
    session: &Id,
    facts: &RunFacts,
) -> SessionRecord {
    let places = grounds.policy.places();
    let mut shown = BTreeMap::from([
        ("workspace".to_owned(), Untrusted::new(places.workspace.to_string_lossy())),
        ("tmp".to_owned(), Untrusted::new(places.tmp.to_string_lossy())),
        ("state".to_owned(), Untrusted::new(grounds.state.to_string_lossy())),
    ]);
    if let Some(home) = &places.home {
        shown.insert("home".to_owned(), Untrusted::new(home.to_string_lossy()));
    }
    SessionRecord {
        session: session.clone(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        resumed: facts.resumed,
        uid: rustix::process::getuid().as_raw(),
        login: config.environment.text("USER").map(Untrusted::new),
        host: Untrusted::new(rustix::system::uname().nodename().to_string_lossy()),
        pid: std::process::id(),
        role: Untrusted::new(facts.role.as_str()),
        headless: config.headless,
        places: shown,
        policy: policy_record(grounds.policy.set()),
        tools: facts.tools.iter().map(Untrusted::new).collect(),
        model: Untrusted::new(facts.model.as_str()),
        enforced: facts.enforced.clone(),
        warnings: facts.warnings.iter().map(Untrusted::new).collect(),
    }
}

pub(super) fn run_context(
    policy: &PolicySet,
    facts: &RunFacts,
    cell: String,
    audit_sequence: u64,
) -> RunContext {
    RunContext {
        operation_id: Id::new(),
        policy: PolicyPin { digest: policy.digest(), audit_sequence: Some(audit_sequence) },
        role: facts.role.clone(),
        tools: facts.tools.clone(),
        sandbox: cell,
        parent: None,
    }
}

pub(super) fn init(
    session: &Id,
    workspace: &Path,
    policy: &PolicySet,
    facts: &RunFacts,
    cell: &Enforced,
) -> Event {
    let mut shown = facts.enforced.clone();
    if let Some(object) = shown.as_object_mut() {
        object.insert("summary".to_owned(), cell.to_string().into());
    }
    Event::Init {
        session: session.clone(),
        model: facts.model.clone(),
        policy: policy.digest().to_string(),
        tools: facts.tools.clone(),
        workspace: workspace.to_string_lossy().into_owned(),
        role: facts.role.clone(),
        cell: shown,
        warnings: facts.warnings.clone(),
        notices: policy.not_in_force().iter().map(Diagnostic::line).collect(),
    }
}

fn policy_record(set: &PolicySet) -> PolicyRecord {
    let parts = (0..).zip(set.parts());
    let sources = parts.flat_map(|(number, part)| {
        let roots = part.roots();
        part.files().into_iter().map(move |file| PolicySourceRecord {
            given: roots.iter().any(|root| root.name == file.name && root.digest == file.digest),
            part: number,
            name: Untrusted::new(file.name.as_str()),
            layer: file.layer.as_str().to_owned(),
            text: Untrusted::new(file.text.as_str()),
        })
    });
    PolicyRecord { digest: set.digest(), sources: sources.collect() }
}

/// The supervisor died while the call ran: what it did is not known, and the log says so.
pub(super) fn unknown_outcome(call: Id) -> OutcomeRecord {
    OutcomeRecord {
        call,
        exit: RecordedExit::Interrupted,
        stdout_bytes: 0,
        stderr_bytes: 0,
        truncated: false,
        result: None,
        files_written: Vec::new(),
        limits_hit: Vec::new(),
        enforced: None,
        duration_ms: 0,
    }
}
