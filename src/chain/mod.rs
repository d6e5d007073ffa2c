//! The policy chain: six stages in a fixed order, each of which can only subtract.
//!
//! `decide` is the one choke point of every tool call. It is a straight line over six named stages, so
//! that order and completeness are facts of the code. What comes out is either a `Denied`, an ordinary
//! value, or an `Approved`, which holds the proof that its decision is on the disk and can be spent
//! once. How an approved call takes effect is the business of `tools`.

pub mod abort;
pub mod approvals;
pub mod cell;
pub mod firewall;
pub mod guardian;
pub mod hooks;
pub mod permission;
pub mod resolve;
pub mod subject;
pub mod verdict;

use crate::audit::record::{
    Body, Decision, Grant, GrantScope, Reason, Ruling as AuditRuling, Stage, Stages,
};
use crate::audit::{AuditError, AuditWriter, Receipt};
use crate::base::digest::Digest;
use crate::base::text::Untrusted;
use crate::call::ToolCall;
use crate::call::effects::Access;
use crate::policy::{BoundPolicy, HookEvent, RoleVerdict};
use crate::sandbox::SandboxSpec;
use abort::AbortSignal;
use cell::CellBase;
use guardian::Guardian;
use permission::{Granted, Permission, Question};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use subject::{Setting, Subject};
use verdict::{Denied, Trail, Verdict, reason};

/// Turns a call into the cell that it will run in. The paths are those that a person approved.
pub type PlanCell = dyn Fn(&ToolCall, &[PathBuf]) -> SandboxSpec;

/// The six stages and what they share.
#[derive(Debug)]
pub struct Chain {
    /// Stage 1: the wish to stop.
    pub abort: AbortSignal,
    /// Stages 2 to 4: roles, hooks and rules of the policy.
    pub policy: Arc<BoundPolicy>,
    /// Stage 5: the reviewing model, if the policy wants one.
    pub guardian: Option<Guardian>,
    /// Stage 6: who is asked.
    pub permission: Option<Permission>,
    /// The cell in which hooks run.
    pub cell: Arc<CellBase>,
    /// Guarantees that cells do not give on this machine, by their stable ids.
    pub lost: Vec<String>,
    /// Where calls are judged.
    pub setting: Arc<Setting>,
    /// Name of the person at the terminal, for grant records.
    pub person: String,
}

/// What became of a call.
#[derive(Debug)]
pub enum Ruling {
    /// It may run, once.
    Approved(Box<Approved>),
    /// It may not.
    Denied(Box<Denied>),
}

/// A call whose decision is durable. Only the chain makes one; it is neither copied nor made up, and
/// `tools::execute` takes it by value, so that it is spent once.
#[derive(Debug)]
pub struct Approved {
    subject: Subject,
    spec: SandboxSpec,
    receipt: Receipt,
    stages: Stages,
}

impl Approved {
    /// The call and what is known about it.
    #[must_use]
    pub const fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The cell that was decided on.
    #[must_use]
    pub const fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    /// The proof of the decision.
    #[must_use]
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// What each stage said.
    #[must_use]
    pub const fn stages(&self) -> &Stages {
        &self.stages
    }

    /// The parts, for the one execution.
    #[must_use]
    pub fn into_parts(self) -> (Subject, SandboxSpec, Receipt) {
        (self.subject, self.spec, self.receipt)
    }
}

/// The digest under which a cell's specification stands in the records.
#[must_use]
pub fn spec_digest(spec: &SandboxSpec) -> Digest {
    // The types hold nothing that JSON cannot; an empty text would still be a digest that no
    // specification has.
    Digest::of(&serde_json::to_vec(spec).unwrap_or_default())
}

/// What the stages found beside their verdicts.
#[derive(Debug, Default)]
struct Findings {
    trail: Trail,
    notes: Vec<Body>,
    asked_paths: Vec<PathBuf>,
    granted: bool,
}

impl Chain {
    /// Whether nobody can be asked.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        self.permission.as_ref().is_none_or(Permission::is_headless)
    }

    /// Decides about one call and writes the decision down before anything else can happen.
    ///
    /// # Errors
    /// The record could not be made durable. The call is then refused and the run must stop.
    pub async fn decide(
        &mut self,
        call: ToolCall,
        plan: &PlanCell,
        log: &mut AuditWriter,
    ) -> Result<Ruling, AuditError> {
        let subject = Subject::new(call, &self.setting);
        let mut found = Findings::default();
        self.pass_stages(&subject, &mut found).await;
        let Findings { trail, notes, asked_paths, granted } = found;
        let denied = trail.is_denied();
        let approved_paths = if granted { asked_paths } else { Vec::new() };
        let spec = (!denied).then(|| plan(&subject.call, &approved_paths));
        let stages = trail.into_stages();
        for note in &notes {
            log.append(note).map(drop)?;
        }
        let record = self.record(&subject, &stages, spec.as_ref());
        let receipt = log.append(&Body::Decision(Box::new(record)))?;
        Ok(match spec {
            Some(spec) => Ruling::Approved(Box::new(Approved { subject, spec, receipt, stages })),
            None => Ruling::Denied(Box::new(denied_value(&subject, stages, receipt.sequence()))),
        })
    }

    /// The straight line. A denial ends it; what follows stays "not reached".
    async fn pass_stages(&mut self, subject: &Subject, found: &mut Findings) {
        self.timed(Stage::Abort, found, |chain, _| chain.abort_check());
        if found.trail.is_denied() {
            return;
        }
        self.timed(Stage::Role, found, |chain, _| chain.role_gate(subject));
        if found.trail.is_denied() {
            return;
        }
        self.ask_hooks(subject, found).await;
        if found.trail.is_denied() {
            return;
        }
        self.timed(Stage::Firewall, found, |chain, found| chain.firewall(subject, found));
        if found.trail.is_denied() {
            return;
        }
        self.ask_guardian(subject, found).await;
        if found.trail.is_denied() {
            return;
        }
        self.ask_person(subject, found).await;
    }

    fn timed(
        &self,
        stage: Stage,
        found: &mut Findings,
        judge: impl FnOnce(&Self, &mut Findings) -> Verdict,
    ) {
        let start = Instant::now();
        let verdict = judge(self, found);
        found.trail.put(stage, verdict, start.elapsed());
    }

    fn abort_check(&self) -> Verdict {
        if self.abort.is_aborted() {
            return Verdict::deny(reason("aborted", "the run is being stopped"));
        }
        Verdict::Pass(Vec::new())
    }

    fn role_gate(&self, subject: &Subject) -> Verdict {
        match self.policy.role_gate(self.setting.role.as_deref(), subject.tool()) {
            RoleVerdict::Pass => Verdict::Pass(Vec::new()),
            RoleVerdict::Deny { reason: sentence } => {
                Verdict::deny(reason("role-denied", sentence))
            }
        }
    }

    fn firewall(&self, subject: &Subject, found: &mut Findings) -> Verdict {
        let judgement = firewall::judge(&self.policy, subject, &self.setting, self.is_headless());
        found.asked_paths = firewall::asked_paths(&judgement);
        firewall::verdict(&judgement)
    }

    /// Each hook for the tool, in order, until one denies.
    async fn ask_hooks(&self, subject: &Subject, found: &mut Findings) {
        let start = Instant::now();
        let mut verdict = Verdict::Skipped("the policy has no hook for this tool");
        let mut required = Vec::new();
        for hook in hooks::of(self.policy.hooks(), HookEvent::PreTool, subject.tool()) {
            let (one, record) = self.ask_hook(hook.clone(), subject).await;
            found.notes.push(Body::Hook(Box::new(record)));
            verdict = match one {
                Verdict::Require(reasons) => {
                    required.extend(reasons);
                    Verdict::Pass(Vec::new())
                }
                other @ (Verdict::Pass(_) | Verdict::Deny(_) | Verdict::Skipped(_)) => other,
            };
            if matches!(verdict, Verdict::Deny(_)) {
                break;
            }
        }
        if !required.is_empty() && !matches!(verdict, Verdict::Deny(_)) {
            verdict = Verdict::Require(required);
        }
        found.trail.put(Stage::Hooks, verdict, start.elapsed());
    }

    async fn ask_hook(
        &self,
        hook: crate::policy::Hook,
        subject: &Subject,
    ) -> (Verdict, crate::audit::record::Hook) {
        let stdin = hooks::input(subject, &self.setting);
        let (cell, abort) = (Arc::clone(&self.cell), self.abort.clone());
        let call = subject.call.id.clone();
        let failed = hooks::failed(&hook, &call);
        let run = move || hooks::run(&hook, &call, stdin, &cell, &abort);
        tokio::task::spawn_blocking(run).await.unwrap_or(failed)
    }

    async fn ask_guardian(&self, subject: &Subject, found: &mut Findings) {
        let start = Instant::now();
        let tool = subject.call.request.tool();
        let Some(guardian) = &self.guardian else {
            let verdict = Verdict::Skipped("the policy wants no reviewing model");
            return found.trail.put(Stage::Guardian, verdict, start.elapsed());
        };
        if !self.policy.guardian().reviews(tool.as_str(), tool.is_read_only()) {
            let verdict = Verdict::Skipped("the policy wants no review of this tool");
            return found.trail.put(Stage::Guardian, verdict, start.elapsed());
        }
        let (task, abort) = (&self.setting.task, self.abort.for_model());
        let (verdict, record) =
            guardian.review(task, &subject.call, &subject.arguments, abort).await;
        found.notes.push(Body::Guardian(Box::new(record)));
        found.trail.put(Stage::Guardian, verdict, start.elapsed());
    }

    /// Asks once about everything that earlier stages required.
    async fn ask_person(&mut self, subject: &Subject, found: &mut Findings) {
        let start = Instant::now();
        if found.trail.required().is_empty() {
            let verdict = Verdict::Skipped("no stage requires a person's approval");
            return found.trail.put(Stage::Permission, verdict, start.elapsed());
        }
        let question = self.question(subject, found.trail.required());
        let (verdict, granted) = self.ask(question.clone()).await;
        found.granted = granted.is_some();
        if answered(&verdict) {
            found.notes.push(self.grant_record(subject, &question, granted));
        }
        found.trail.put(Stage::Permission, verdict, start.elapsed());
    }

    /// The question blocks a thread of its own; the stage comes back with what it remembers.
    async fn ask(&mut self, question: Question) -> (Verdict, Option<Granted>) {
        let nobody =
            || (Verdict::deny(reason("ask-failed", "the question could not be asked")), None);
        let Some(mut permission) = self.permission.take() else { return nobody() };
        let abort = self.abort.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let answer = permission.ask(&question, abort.for_cell());
            (permission, answer)
        });
        let Ok((permission, answer)) = asked.await else { return nobody() };
        self.permission = Some(permission);
        answer
    }

    fn question(&self, subject: &Subject, required: &[Reason]) -> Question {
        let role = self.setting.role.as_deref().unwrap_or_default();
        Question {
            tool: subject.tool(),
            arguments: Untrusted::new(subject.call.raw_arguments.as_str()),
            programs: subject.programs_shown(),
            paths: subject.paths_shown(),
            reasons: required.to_vec(),
            identity: subject.identity(&self.setting.workspace, role),
            changeable: self.changeable(subject),
        }
    }

    /// The first file that the call runs and that a tool could change before it runs again.
    fn changeable(&self, subject: &Subject) -> Option<Untrusted> {
        let paths = subject.effects.paths.iter().zip(&subject.real_paths);
        let mut run = paths.filter(|(path, _)| path.access == Access::Execute);
        let (_, real) = run.find(|(_, real)| self.cell.may_write(real))?;
        Some(Untrusted::new(real.to_string_lossy()))
    }

    fn grant_record(
        &self,
        subject: &Subject,
        question: &Question,
        granted: Option<Granted>,
    ) -> Body {
        let scope = match granted {
            Some(Granted::Lasting | Granted::Remembered) => GrantScope::Session,
            Some(Granted::Once) | None => GrantScope::Once,
        };
        Body::Grant(Box::new(Grant {
            call: Some(subject.call.id.clone()),
            shown: Untrusted::new(permission::shown(question)),
            approved: granted.is_some(),
            scope,
            by: Untrusted::new(self.person.as_str()),
            bound_to: Some(question.identity),
        }))
    }

    fn record(&self, subject: &Subject, stages: &Stages, spec: Option<&SandboxSpec>) -> Decision {
        let call = &subject.call;
        let role = self.setting.role.as_deref().or_else(|| self.policy.default_role());
        Decision {
            call: call.id.clone(),
            provider_id: Untrusted::new(call.provider_id.as_str()),
            origin: Untrusted::new(call.origin.as_str()),
            role: Untrusted::new(role.unwrap_or_default()),
            tool: Untrusted::new(subject.tool()),
            arguments: subject.arguments.clone(),
            arguments_hash: Digest::of(call.raw_arguments.as_bytes()),
            redacted: 0,
            cut: 0,
            resolved: subject.resolved(),
            policy: self.policy.set().digest(),
            ruling: if spec.is_some() { AuditRuling::Approved } else { AuditRuling::Denied },
            stages: stages.clone(),
            sandbox: spec.map(spec_digest),
            lost: self.lost.clone(),
        }
    }
}

/// Whether a person said anything; nobody's silence is no grant and no refusal.
fn answered(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Pass(_) => true,
        Verdict::Deny(reasons) => {
            reasons.first().is_some_and(|reason| reason.code.raw() == permission::USER_DENIED)
        }
        Verdict::Require(_) | Verdict::Skipped(_) => false,
    }
}

fn denied_value(subject: &Subject, stages: Stages, sequence: u64) -> Denied {
    let decisive = stages.denial().map(|(stage, record)| (stage, record.reasons.first().cloned()));
    let (stage, first) = decisive.unwrap_or((Stage::Abort, None));
    Denied {
        call: subject.call.id.clone(),
        tool: subject.tool().to_owned(),
        stage,
        reason: first.unwrap_or_else(|| reason("denied", "a stage denied without a reason")),
        stages,
        sequence,
    }
}
