//! What a decision record says that its call would do: programs, paths, hosts, and what cannot be told.
//!
//! Written from the effects that the rules judged, so that the record and the judgement cannot differ.
//! Nothing is looked up here.

use crate::audit::redact::{Redact, Redaction};
use crate::base::text::Untrusted;
use crate::call::effects::{Access, CommandUse, Effects, HostUse, PathUse, Unresolved};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a call would do, as far as its text tells.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Resolved {
    /// Programs, in the order in which they stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramRecord>,
    /// Paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathRecord>,
    /// Hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRecord>,
    /// What cannot be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<UnresolvedRecord>,
}

/// One program that would run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// As the shell would look it up, or the word as written.
    pub program: Untrusted,
    /// Its arguments, each as the program receives it or as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Untrusted>,
    /// Whether the program and every argument are known exactly.
    pub known: bool,
    /// The wrappers around it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<Untrusted>,
    /// The option or operand that hands it code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline_code: Option<Untrusted>,
}

/// One path that would be touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathRecord {
    /// Absolute and normalised; links not followed.
    pub path: Untrusted,
    /// Where its links lead, if that was looked up and differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<Untrusted>,
    /// `read`, `write` or `execute`.
    pub access: String,
    /// Whether everything below is meant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pattern: bool,
}

/// One host that is named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Name or address.
    pub host: Untrusted,
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// A part of the call that cannot be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnresolvedRecord {
    /// Why.
    pub reason: Untrusted,
    /// The part as written.
    pub text: Untrusted,
}

impl From<&Effects> for Resolved {
    fn from(effects: &Effects) -> Self {
        Self {
            programs: effects.commands.iter().map(program_record).collect(),
            paths: effects.paths.iter().map(path_record).collect(),
            hosts: effects.hosts.iter().map(host_record).collect(),
            unresolved: effects.unresolved.iter().map(unresolved_record).collect(),
        }
    }
}

fn program_record(command: &CommandUse) -> ProgramRecord {
    let CommandUse { program, arguments, assignments: _, via, inline_code, stays_here: _, span: _ } =
        command;
    ProgramRecord {
        program: Untrusted::new(program.shown()),
        arguments: arguments.iter().map(|word| Untrusted::new(word.shown())).collect(),
        known: program.known().is_some() && arguments.iter().all(|word| word.known().is_some()),
        via: via.iter().map(Untrusted::new).collect(),
        inline_code: inline_code.as_ref().map(Untrusted::new),
    }
}

fn path_record(path: &PathUse) -> PathRecord {
    PathRecord {
        path: Untrusted::new(path.path.to_string_lossy()),
        real: None,
        access: match path.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Execute => "execute",
        }
        .to_owned(),
        is_pattern: path.is_pattern,
    }
}

fn host_record(host: &HostUse) -> HostRecord {
    HostRecord { host: Untrusted::new(&host.host), port: host.port }
}

fn unresolved_record(unresolved: &Unresolved) -> UnresolvedRecord {
    let reason = serde_json::to_value(unresolved.reason).ok();
    let reason = reason.as_ref().and_then(Value::as_str).unwrap_or("unresolved");
    UnresolvedRecord { reason: Untrusted::new(reason), text: Untrusted::new(&unresolved.text) }
}

impl Redact for Resolved {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        let Self { programs, paths, hosts, unresolved } = self;
        for program in programs {
            program.program.redact(redaction);
            redaction.words(&mut program.arguments);
            program.via.redact(redaction);
            program.inline_code.redact(redaction);
        }
        for path in paths {
            path.path.redact(redaction);
            path.real.redact(redaction);
        }
        hosts.iter_mut().for_each(|host| host.host.redact(redaction));
        unresolved.iter_mut().for_each(|part| part.text.redact(redaction));
    }
}
