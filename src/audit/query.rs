//! Questions to a log: a filter over its records, answered line by line in bounded memory.
//!
//! All conditions of a filter must hold. A record that has no such property (an `outcome` has no
//! tool) does not match a condition on it. Nothing here verifies; `verify` does.

use crate::audit::read::Lines;
use crate::audit::record::{
    Body, Decision, Hook, Network, NetworkVerdict, Reason, Record, Ruling, Stage, StageRecord,
    StageVerdict,
};
use crate::base::ids::Id;
use crate::base::json::visible_line;
use crate::base::text::Untrusted;
use globset::GlobMatcher;
use std::io::BufRead;

/// Which records are wanted. The default wants all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Kinds of record, as they are spelled in the log; empty = all.
    pub kinds: Vec<String>,
    /// How a call was decided.
    pub ruling: Option<Ruling>,
    /// A stage that said `require` or `deny`.
    pub stage: Option<Stage>,
    /// A reason code.
    pub code: Option<String>,
    /// A rule.
    pub rule: Option<String>,
    /// A tool.
    pub tool: Option<String>,
    /// A program: the whole word, or its last path component.
    pub program: Option<String>,
    /// A path that would be, or was, touched.
    pub path: Option<GlobMatcher>,
    /// A host: the name itself, or with a leading `*.` everything below it.
    pub host: Option<String>,
    /// A role.
    pub role: Option<String>,
    /// A login name or user id of whoever ran the session.
    pub user: Option<String>,
    /// A session.
    pub session: Option<Id>,
    /// A call.
    pub call: Option<Id>,
    /// Not before, in milliseconds since the Unix epoch.
    pub since_ms: Option<u64>,
    /// Before, in milliseconds since the Unix epoch.
    pub until_ms: Option<u64>,
}

/// Who ran the part of the log that a record is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The session.
    pub session: Id,
    /// User id.
    pub uid: u32,
    /// Login name.
    pub login: Option<Untrusted>,
    /// Role of the main agent.
    pub role: Untrusted,
}

/// A record that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Line in the file.
    pub line: u64,
    /// Who ran it; `None` before the first `session` record.
    pub run: Option<Run>,
    /// The record.
    pub record: Record,
}

impl Row {
    /// The row as one line of JSON that is safe to show: the record, and `session` with it.
    ///
    /// # Errors
    /// The serialiser's.
    pub fn to_json_line(&self) -> Result<String, serde_json::Error> {
        let mut value = serde_json::to_value(&self.record)?;
        if let (Some(map), Some(run)) = (value.as_object_mut(), &self.run) {
            map.insert("session".to_owned(), run.session.as_str().into());
        }
        visible_line(&value)
    }
}

/// A line that cannot be read as a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Unreadable {
    /// The line.
    pub line: u64,
    /// What is wrong with it.
    pub problem: String,
}

/// The rows of one log that a filter wants, in the order of the file.
#[derive(Debug)]
pub struct Rows<'a, R> {
    lines: Lines<R>,
    filter: &'a Filter,
    run: Option<Run>,
}

impl<'a, R: BufRead> Rows<'a, R> {
    /// Asks `lines` for what `filter` wants.
    pub const fn new(lines: Lines<R>, filter: &'a Filter) -> Self {
        Self { lines, filter, run: None }
    }

    fn read_row(&mut self, bytes: &[u8], line: u64) -> Result<Option<Row>, Unreadable> {
        let record = Record::from_line(bytes).map_err(|problem| Unreadable { line, problem })?;
        if let Body::Session(session) = &record.body {
            self.run = Some(Run {
                session: session.session.clone(),
                uid: session.uid,
                login: session.login.clone(),
                role: session.role.clone(),
            });
        }
        let is_wanted = self.filter.wants(&record, self.run.as_ref());
        Ok(is_wanted.then(|| Row { line, run: self.run.clone(), record }))
    }
}

impl<R: BufRead> Iterator for Rows<'_, R> {
    type Item = Result<Row, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let raw = match self.lines.next()? {
                // A torn last line is a record in the making.
                Ok(raw) if !raw.is_complete => return None,
                Ok(raw) => raw,
                Err(error) => {
                    return Some(Err(Unreadable { line: 0, problem: error.to_string() }));
                }
            };
            match self.read_row(&raw.bytes, raw.number) {
                Ok(Some(row)) => return Some(Ok(row)),
                Ok(None) => {}
                Err(unreadable) => return Some(Err(unreadable)),
            }
        }
    }
}

impl Filter {
    /// Whether `record`, of the run `run`, is wanted.
    #[must_use]
    pub fn wants(&self, record: &Record, run: Option<&Run>) -> bool {
        let body = &record.body;
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == body.kind()))
            && holds(self.ruling.as_ref(), |ruling| ruling_of(body) == Some(*ruling))
            && holds(self.stage.as_ref(), |stage| objects(body, *stage))
            && holds(self.code.as_deref(), |code| codes(body).contains(&code))
            && holds(self.rule.as_deref(), |rule| rules(body).contains(&rule))
            && holds(self.tool.as_deref(), |tool| tool_of(body) == Some(tool))
            && holds(self.program.as_deref(), |program| runs(body, program))
            && holds(self.path.as_ref(), |glob| touches(body, glob))
            && holds(self.host.as_deref(), |host| reaches(body, host))
            && holds(self.role.as_deref(), |role| role_of(body, run) == Some(role))
            && holds(self.user.as_deref(), |user| run.is_some_and(|run| is_user(run, user)))
            && holds(self.session.as_ref(), |id| run.is_some_and(|run| &run.session == id))
            && holds(self.call.as_ref(), |call| body.call() == Some(call))
            && self.is_in_time(&record.time)
    }

    fn is_in_time(&self, time: &str) -> bool {
        if self.since_ms.is_none() && self.until_ms.is_none() {
            return true;
        }
        let Some(time) = parse_time(time) else { return false };
        self.since_ms.is_none_or(|since| time >= since)
            && self.until_ms.is_none_or(|until| time < until)
    }
}

/// An RFC 3339 time, or a date (its beginning in UTC), in milliseconds since the Unix epoch.
#[must_use]
pub fn parse_time(text: &str) -> Option<u64> {
    let instant = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let date = text.parse::<jiff::civil::Date>().ok().filter(|_| text.len() == 10)?;
        date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })?;
    u64::try_from(instant.as_millisecond()).ok()
}

fn holds<T: ?Sized>(condition: Option<&T>, test: impl FnOnce(&T) -> bool) -> bool {
    condition.is_none_or(test)
}

fn decision_of(body: &Body) -> Option<&Decision> {
    if let Body::Decision(decision) = body { Some(decision) } else { None }
}

fn network_of(body: &Body) -> Option<&Network> {
    if let Body::Network(network) = body { Some(network) } else { None }
}

fn hook_of(body: &Body) -> Option<&Hook> {
    if let Body::Hook(hook) = body { Some(hook) } else { None }
}

/// A rejected request and a refused connection count as denied: every refusal is found by `denied`.
fn ruling_of(body: &Body) -> Option<Ruling> {
    if matches!(body, Body::Rejected(_)) {
        return Some(Ruling::Denied);
    }
    let network = network_of(body).map(|network| match network.verdict {
        NetworkVerdict::Denied => Ruling::Denied,
        NetworkVerdict::Passed | NetworkVerdict::Failed => Ruling::Approved,
    });
    decision_of(body).map(|decision| decision.ruling).or(network)
}

fn objects(body: &Body, wanted: Stage) -> bool {
    let objection = |(stage, record): (Stage, &StageRecord)| {
        stage == wanted && matches!(record.verdict, StageVerdict::Require | StageVerdict::Deny)
    };
    decision_of(body).is_some_and(|decision| decision.stages.in_order().into_iter().any(objection))
}

/// Codes of reasons; a rejected request has the word that says why.
fn codes(body: &Body) -> Vec<&str> {
    if let Body::Rejected(rejected) = body {
        return vec![rejected.because.as_str()];
    }
    let mut found: Vec<_> =
        decision_of(body).into_iter().flat_map(reasons).map(|reason| reason.code.raw()).collect();
    found.extend(network_of(body).map(|network| network.code.raw()));
    found.extend(hook_of(body).map(|hook| hook.code.raw()));
    if let Body::Guardian(guardian) = body {
        found.push(guardian.code.raw());
    }
    if let Body::Repair(repair) = body {
        found.push(repair.code.raw());
    }
    found
}

fn rules(body: &Body) -> Vec<&str> {
    let mut found: Vec<_> = decision_of(body)
        .into_iter()
        .flat_map(reasons)
        .filter_map(|reason| reason.rule.as_ref().map(Untrusted::raw))
        .collect();
    found.extend(network_of(body).and_then(|network| network.rule.as_ref()).map(Untrusted::raw));
    found.extend(hook_of(body).map(|hook| hook.hook.raw()));
    found
}

fn reasons(decision: &Decision) -> impl Iterator<Item = &Reason> {
    decision.stages.in_order().into_iter().flat_map(|(_, stage)| &stage.reasons)
}

fn tool_of(body: &Body) -> Option<&str> {
    if let Body::Rejected(rejected) = body {
        return Some(rejected.tool.raw());
    }
    decision_of(body).map(|decision| decision.tool.raw())
}

fn runs(body: &Body, wanted: &str) -> bool {
    let is_wanted = |program: &str| {
        program == wanted || program.rsplit('/').next().is_some_and(|name| name == wanted)
    };
    decision_of(body).is_some_and(|decision| {
        let programs = &decision.resolved.programs;
        programs.iter().any(|program| {
            is_wanted(program.program.raw()) || program.via.iter().any(|via| is_wanted(via.raw()))
        })
    })
}

fn touches(body: &Body, glob: &GlobMatcher) -> bool {
    let is_wanted = |path: &Untrusted| glob.is_match(path.raw());
    if let Body::Outcome(outcome) = body {
        return outcome.files_written.iter().any(is_wanted);
    }
    decision_of(body).is_some_and(|decision| {
        let paths = &decision.resolved.paths;
        paths.iter().any(|path| is_wanted(&path.path) || path.real.as_ref().is_some_and(is_wanted))
    })
}

fn reaches(body: &Body, wanted: &str) -> bool {
    let is_wanted = |host: &str| match wanted.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|name| name.ends_with('.')),
        None => host == wanted,
    };
    network_of(body).is_some_and(|network| is_wanted(network.host.raw()))
        || decision_of(body).is_some_and(|decision| {
            decision.resolved.hosts.iter().any(|host| is_wanted(host.host.raw()))
        })
}

fn role_of<'a>(body: &'a Body, run: Option<&'a Run>) -> Option<&'a str> {
    if let Body::Agent(agent) = body {
        return Some(agent.role.raw());
    }
    let own = decision_of(body).map(|decision| decision.role.raw());
    own.or_else(|| run.map(|run| run.role.raw()))
}

fn is_user(run: &Run, wanted: &str) -> bool {
    run.uid.to_string() == wanted || run.login.as_ref().is_some_and(|login| login.raw() == wanted)
}
