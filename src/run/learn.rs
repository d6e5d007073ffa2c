//! What the calls of a log did that were approved, for `policy learn`. Nothing is decided here.

use super::replay::places;
use crate::audit::record::{Body, Decision, ProgramRecord, Record, Ruling};
use crate::call::effects::Access;
use crate::policy::{Observed, ObservedProgram, Places};

/// Takes the records of logs, in their order.
#[derive(Debug, Default)]
pub struct Learning {
    session: String,
    places: Option<Places>,
    observed: Vec<Observed>,
    /// Approved calls with a part that nobody could tell, and that part: no rule can be learned for it.
    untold: Vec<(String, String)>,
}

impl Learning {
    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        if let Body::Session(session) = &record.body {
            self.session = session.session.to_string().chars().take(8).collect();
            self.places.get_or_insert_with(|| places(session, None));
        }
        if let Body::Decision(decision) = &record.body
            && decision.ruling == Ruling::Approved
        {
            self.approved(record.seq, decision);
        }
    }

    fn approved(&mut self, sequence: u64, decision: &Decision) {
        let record = format!("{}:{sequence}", self.session);
        let resolved = &decision.resolved;
        for part in &resolved.unresolved {
            let text = format!("{}: {}", part.reason, part.text);
            self.untold.push((record.clone(), text));
        }
        if decision.redacted > 0 || decision.cut > 0 {
            self.untold.push((record, "a part of it was redacted or cut".to_owned()));
            return;
        }
        let paths = resolved.paths.iter().filter_map(|path| {
            let access = match path.access.as_str() {
                "read" => Access::Read,
                "write" => Access::Write,
                "execute" => Access::Execute,
                _ => return None,
            };
            let really = path.real.as_ref().unwrap_or(&path.path);
            Some([(access, path.path.raw().into()), (access, really.raw().into())])
        });
        let hosts = resolved.hosts.iter().map(|host| (host.host.raw().to_owned(), host.port));
        self.observed.push(Observed {
            record,
            programs: resolved.programs.iter().map(program).collect(),
            paths: paths.flatten().collect(),
            hosts: hosts.collect(),
        });
    }

    /// The approved calls.
    #[must_use]
    pub fn observed(&self) -> &[Observed] {
        &self.observed
    }

    /// Records with a part that no rule can be learned for, and that part.
    #[must_use]
    pub fn untold(&self) -> &[(String, String)] {
        &self.untold
    }

    /// Places of the first run.
    #[must_use]
    pub fn places(&self) -> Option<&Places> {
        self.places.as_ref()
    }
}

/// A word of a command that is not known as a whole counts as unknown if it is written as one that
/// could be.
fn program(record: &ProgramRecord) -> ObservedProgram {
    let word = |word: &crate::base::text::Untrusted| {
        let is_open =
            !record.known && word.raw().contains(['$', '`', '*', '?', '[', '{', '~', '<', '…']);
        (!is_open).then(|| word.raw().to_owned())
    };
    ObservedProgram {
        program: record.program.raw().to_owned(),
        arguments: record.arguments.iter().map(word).collect(),
        carries_code: record.inline_code.is_some(),
    }
}
