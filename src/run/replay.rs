//! The past under other rules: each decision of a log is decided again by a policy that is to be tried,
//! from what the log holds and nothing else. No link is followed, no hook or model asked, nothing run.
//!
//! The policy that is tried takes the place of the policies that were named when the session began; the
//! layers around them (administrator, user, workspace) stay as recorded. Every call is also decided by
//! the recorded policy, as a control: where that no longer gives what was decided then, since a part of
//! the call was redacted or the analysis has changed, nothing is said about the new one.

use super::environment::Environment;
use super::error::RunError;
use super::{policies, recorded};
use crate::audit::record::{
    Body, Decision as DecisionRecord, PathRecord, PolicyRecord, PolicySourceRecord, Reason, Record,
    Session as SessionRecord, StageVerdict, Stages,
};
use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::text::Untrusted;
use crate::call::ToolCall;
use crate::call::effects::Effects;
use crate::call::request::{Request, ToolName};
use crate::call::shell::StandardInput;
use crate::chain::firewall;
use crate::chain::subject::{Setting, Subject};
use crate::policy::{
    BoundPolicy, Decision, Layer, Places, PolicySet, PolicySource, RoleVerdict, RuleMeta,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What the role gate and the rules say to a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The answer. Where nobody could be asked, a question counts as a denial.
    pub decision: Decision,
    /// The rule that decided; `None` for the role gate.
    pub rule: Option<Untrusted>,
    /// `file:line` of the rule.
    pub place: Option<Untrusted>,
    /// The reason in words.
    pub reason: Untrusted,
    /// Every rule that said something about a part of the call, each once. Empty for what is recorded.
    pub rules: Vec<Arc<RuleMeta>>,
}

/// How the two answers compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The same answer.
    Unchanged,
    /// It was asked about or denied and would be allowed.
    NewlyAllowed,
    /// It was allowed or denied and would be asked about.
    NewlyAsked,
    /// It was allowed or asked about and would be denied.
    NewlyDenied,
    /// The log does not hold enough to say.
    Untold,
}

impl Change {
    /// Every kind of change.
    pub const ALL: [Self; 5] =
        [Self::Unchanged, Self::NewlyAllowed, Self::NewlyAsked, Self::NewlyDenied, Self::Untold];

    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::NewlyAllowed => "newly-allowed",
            Self::NewlyAsked => "newly-asked",
            Self::NewlyDenied => "newly-denied",
            Self::Untold => "untold",
        }
    }
}

/// One call of a log, decided again.
#[derive(Debug, Clone, PartialEq)]
pub struct Redecided {
    /// Record of the decision.
    pub sequence: u64,
    /// Session of the call.
    pub session: Option<Id>,
    /// The call.
    pub record: Box<DecisionRecord>,
    /// What was answered then. `None`: an earlier stage ended it, and the recorded policy says nothing.
    pub before: Option<Answer>,
    /// What would be answered, or why that cannot be told.
    pub after: Result<Answer, String>,
}

impl Redecided {
    /// How the answers compare.
    #[must_use]
    pub fn change(&self) -> Change {
        let (Some(before), Ok(after)) = (&self.before, &self.after) else { return Change::Untold };
        match (before.decision, after.decision) {
            (before, after) if before == after => Change::Unchanged,
            (_, Decision::Allow) => Change::NewlyAllowed,
            (_, Decision::Ask) => Change::NewlyAsked,
            (_, Decision::Deny) => Change::NewlyDenied,
        }
    }

    /// Whether the new answer gives more than the old one did.
    #[must_use]
    pub fn is_looser(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Ok(after)) => after.decision < before.decision,
            _ => false,
        }
    }
}

/// Decides the records of one log again, in their order.
#[derive(Debug)]
pub struct Replay {
    tried: Vec<PolicySource>,
    /// Policies whose texts the log has held so far: a resumption may name one by its digest alone.
    texts: BTreeMap<Digest, PolicyRecord>,
    run: Option<RunRules>,
}

/// Under what the calls of one run of the log are decided.
#[derive(Debug)]
struct RunRules {
    session: Id,
    headless: bool,
    workspace: PathBuf,
    home: Option<PathBuf>,
    tried: BoundPolicy,
    /// The control; `Err`: why the recorded policy cannot be had.
    recorded: Result<BoundPolicy, String>,
}

impl Replay {
    /// Tries the policies `named`, by name or file.
    ///
    /// # Errors
    /// [`RunError::PolicySource`] and [`RunError::Policy`] as for a run.
    pub fn of(named: &[String]) -> Result<Self, RunError> {
        let tried =
            named.iter().map(|name| policies::by_name(name)).collect::<Result<Vec<_>, _>>()?;
        // What is wrong with them is said before any log is read.
        policies::load_sources(tried.clone())?;
        Ok(Self { tried, texts: BTreeMap::new(), run: None })
    }

    /// Takes the next record; a decision comes back decided again.
    ///
    /// # Errors
    /// The policies cannot be used together with the layers of the log.
    pub fn take(&mut self, record: Record) -> Result<Option<Redecided>, RunError> {
        if let Body::Session(session) = &record.body {
            self.run = Some(self.begin(session)?);
        }
        let Body::Decision(decision) = record.body else { return Ok(None) };
        Ok(Some(self.decide(record.seq, decision)))
    }

    fn begin(&mut self, session: &SessionRecord) -> Result<RunRules, RunError> {
        if !session.policy.sources.is_empty() {
            self.texts.insert(session.policy.digest, session.policy.clone());
        }
        let record = self.texts.get(&session.policy.digest);
        let parts = record.map(recorded::parts).unwrap_or_default();
        let control = record
            .ok_or_else(|| RunError::Blocked("the log does not hold its text".to_owned()))
            .and_then(|record| recorded::policy(record, &parts));
        let places = places(session, control.as_ref().ok());
        let recorded = control
            .map_err(|error| error.to_string())
            .and_then(|set| set.bind(&places).map_err(|error| error.to_string()));
        let tried = self.among_layers(&parts)?.bind(&places)?;
        let (workspace, home) = (places.workspace, places.home);
        let (session, headless) = (session.session.clone(), session.headless);
        Ok(RunRules { session, headless, workspace, home, tried, recorded })
    }

    /// The policies that are tried, between the layers of each start that is recorded.
    fn among_layers(&self, parts: &[Vec<PolicySourceRecord>]) -> Result<PolicySet, RunError> {
        if parts.is_empty() {
            return policies::load_sources(self.tried.clone());
        }
        recorded::together(parts.iter().map(|sources| {
            let (given, extended): (Vec<_>, Vec<_>) =
                sources.iter().cloned().partition(|source| source.given);
            let is_around =
                |source: &PolicySource| !matches!(source.layer, Layer::Explicit | Layer::BuiltIn);
            let around = given.into_iter().filter_map(recorded::source).filter(is_around);
            let extended: Vec<PolicySource> =
                extended.into_iter().filter_map(recorded::source).collect();
            policies::load_among(self.tried.iter().cloned().chain(around).collect(), &extended)
        }))
    }

    fn decide(&self, sequence: u64, record: Box<DecisionRecord>) -> Redecided {
        let Some(run) = &self.run else {
            let after = Err("no record before it says under what it was decided".to_owned());
            return Redecided { sequence, session: None, record, before: None, after };
        };
        let (before, after) = run.answers(&record);
        Redecided { sequence, session: Some(run.session.clone()), record, before, after }
    }
}

impl RunRules {
    /// What was answered then, and what would be answered.
    fn answers(&self, record: &DecisionRecord) -> (Option<Answer>, Result<Answer, String>) {
        let then = recorded_answer(&record.stages, self.headless);
        let tried = match self.answer(&self.tried, record) {
            Ok(answer) => answer,
            Err(problem) => return (then, Err(problem)),
        };
        let control = self.recorded.as_ref().map_err(Clone::clone);
        let control = control.and_then(|policy| self.answer(policy, record));
        let after = match (&then, &control) {
            (Some(then), Ok(control)) if then.decision != control.decision => Err(format!(
                "the recorded policy now answers {} where it answered {}{}",
                control.decision,
                then.decision,
                if record.redacted > 0 { "; a part of the call was redacted" } else { "" }
            )),
            (None, Err(problem)) => Err(format!(
                "an earlier stage ended it, and the recorded policy cannot be had: {problem}"
            )),
            _ => Ok(tried),
        };
        (then.or(control.ok()), after)
    }

    fn setting(&self, record: &DecisionRecord, policy: &BoundPolicy) -> Setting {
        let role = Some(record.role.raw().to_owned()).filter(|role| !role.is_empty());
        Setting {
            workspace: self.workspace.clone(),
            home: self.home.clone(),
            role,
            task: String::new(),
            environment: policy.environment().names(),
            input: StandardInput::Empty,
        }
    }

    /// What `policy` answers, about the call as it would have been analysed under it.
    fn answer(&self, policy: &BoundPolicy, record: &DecisionRecord) -> Result<Answer, String> {
        let setting = self.setting(record, policy);
        let subject = subject(record, &setting)?;
        if let RoleVerdict::Deny { reason } =
            policy.role_gate(setting.role.as_deref(), subject.tool())
        {
            let reason = Untrusted::new(reason);
            let (decision, rules) = (Decision::Deny, Vec::new());
            return Ok(Answer { decision, rule: None, place: None, reason, rules });
        }
        let judgement = firewall::judge(policy, &subject, &setting, self.headless);
        let decision = effective(judgement.decision, self.headless);
        let deciding = judgement.deciding().next();
        let mut rules: Vec<_> =
            judgement.findings.iter().map(|found| Arc::clone(&found.rule)).collect();
        rules.sort_by_key(Arc::as_ptr);
        rules.dedup_by_key(|rule| Arc::as_ptr(rule));
        Ok(Answer {
            decision,
            rule: deciding.map(|finding| Untrusted::new(finding.rule.id.as_str())),
            place: deciding.map(|finding| Untrusted::new(finding.place())),
            reason: Untrusted::new(deciding.map_or("", |finding| finding.reason())),
            rules,
        })
    }
}

/// A question that nobody is there to answer is a denial.
const fn effective(decision: Decision, headless: bool) -> Decision {
    match decision {
        Decision::Ask if headless => Decision::Deny,
        Decision::Allow | Decision::Ask | Decision::Deny => decision,
    }
}

/// The places of a run, as its record names them.
pub(super) fn places(session: &SessionRecord, set: Option<&PolicySet>) -> Places {
    let place = |name: &str| session.places.get(name).map(|place| PathBuf::from(place.raw()));
    let workspace = place("workspace").unwrap_or_else(|| PathBuf::from("/"));
    let home = place("home");
    // Where configuration lay follows from the home directory, as far as the log knows.
    let caller = home.iter().map(|home| ("HOME".into(), home.clone().into_os_string()));
    let environment = Environment::of(caller);
    let mut protected = match (place("state"), set) {
        (Some(state), Some(set)) => policies::protected(&state, &workspace, set, &environment),
        (state, _) => state.into_iter().collect(),
    };
    // Policy files that are no longer there were protected then.
    let files = set.map(PolicySet::files).unwrap_or_default().into_iter();
    let files = files.filter(|file| file.layer == Layer::Explicit).map(|file| (&file.name).into());
    protected.extend(files.filter(|file: &PathBuf| file.is_absolute()));
    let tmp = place("tmp").unwrap_or_else(|| PathBuf::from("/tmp"));
    Places { workspace, home, tmp, protected }
}

/// The recorded answer of the role gate and the rules; `None` if they were not asked.
fn recorded_answer(stages: &Stages, headless: bool) -> Option<Answer> {
    let (decision, reasons) = match (stages.role.verdict, stages.firewall.verdict) {
        (StageVerdict::Deny, _) => (Decision::Deny, &stages.role.reasons),
        (_, StageVerdict::Pass) => (Decision::Allow, &stages.firewall.reasons),
        (_, StageVerdict::Require) => (Decision::Ask, &stages.firewall.reasons),
        (_, StageVerdict::Deny) => (Decision::Deny, &stages.firewall.reasons),
        (_, StageVerdict::Skipped | StageVerdict::NotReached) => return None,
    };
    let first = reasons.first();
    let place = |reason: &Reason| {
        let file = reason.file.as_ref()?;
        Some(Untrusted::new(format!("{}:{}", file.raw(), reason.line.unwrap_or(0))))
    };
    Some(Answer {
        decision: effective(decision, headless),
        rule: first.and_then(|reason| reason.rule.clone()),
        place: first.and_then(place),
        reason: first.map_or_else(|| Untrusted::new(""), |reason| reason.sentence.clone()),
        rules: Vec::new(),
    })
}

/// The call as far as the log holds it.
fn subject(record: &DecisionRecord, setting: &Setting) -> Result<Subject, String> {
    let all = ToolName::ALL.into_iter().collect();
    let raw_arguments = record.arguments.to_string();
    let request = Request::parse(record.tool.raw(), &raw_arguments, &all)
        .map_err(|invalid| format!("what the log holds is no call: {invalid}"))?;
    if record.cut > 0 && request.tool() == ToolName::Bash {
        return Err("the command is longer than a log keeps".to_owned());
    }
    let call = ToolCall {
        id: record.call.clone(),
        provider_id: String::new(),
        origin: record.origin.raw().to_owned(),
        request,
        raw_arguments,
    };
    Ok(Subject::with_links(call, setting, |effects| {
        recorded_links(effects, &record.resolved.paths)
    }))
}

/// Where each path of `effects` led then; one that the log does not know leads to itself.
fn recorded_links(effects: &Effects, recorded: &[PathRecord]) -> Vec<PathBuf> {
    let real = |path: &PathBuf| {
        let text = path.to_string_lossy();
        let known = recorded.iter().find(|record| record.path.raw() == text)?;
        known.real.as_ref().map(|real| PathBuf::from(real.raw()))
    };
    effects.paths.iter().map(|used| real(&used.path).unwrap_or_else(|| used.path.clone())).collect()
}
