//! The policy chain: six stages in a fixed order, each of which can only subtract.
//!
//! `decide` is the one choke point of every tool call. It is a straight line over six named stages, so
//! that order and completeness are facts of the code. What comes out is either a `Denied`, an ordinary
//! value, or an `Approved`, which holds the proof that its decision is on the disk and can be spent
//! once. How an approved call takes effect is the business of `tools`.

pub mod abort;
pub mod approvals;
mod asking;
pub mod cell;
pub mod firewall;
pub mod guardian;
pub mod hooks;
pub mod permission;
mod record;
pub mod resolve;
mod ruling;
pub mod subject;
pub mod verdict;

use crate::audit::record::{Body, Stage};
use crate::audit::{AuditError, AuditWriter};
use crate::call::ToolCall;
use crate::policy::{BoundPolicy, HookEvent, RoleVerdict};
use crate::sandbox::SandboxSpec;
use abort::AbortSignal;
use cell::CellBase;
use guardian::Guardian;
use permission::Permission;
pub use ruling::{Approved, Judged, Ruling};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use subject::{Setting, Subject};
use verdict::{Trail, Verdict, reason};

/// Turns a call into the cell that it will run in; none for a call that acts on what the supervisor holds
/// and starts nothing. The paths are those that a person approved.
pub type PlanCell = dyn Fn(&ToolCall, &[PathBuf]) -> Option<SandboxSpec>;

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

    /// Decides about one call and writes the decision down before anything else can happen. The start of an
    /// approved call stands in the log with its decision: it is about to run.
    ///
    /// # Errors
    /// The record could not be made durable. The call is then refused and the run must stop.
    pub async fn decide(
        &mut self,
        call: ToolCall,
        plan: &PlanCell,
        log: &mut AuditWriter,
    ) -> Result<Ruling, AuditError> {
        self.judge(call, plan).await.record_start(self, log)
    }

    /// The first half of [`Self::decide`]: passes the call through the stages. What comes out is no
    /// permission for anything until it is recorded.
    pub async fn judge(&mut self, call: ToolCall, plan: &PlanCell) -> Judged {
        let subject = Subject::new(call, &self.setting);
        let mut found = Findings::default();
        self.pass_stages(&subject, &mut found).await;
        let Findings { trail, notes, asked_paths, granted } = found;
        let denied = trail.is_denied();
        let approved_paths = if granted { asked_paths } else { Vec::new() };
        let spec = if denied { None } else { plan(&subject.call, &approved_paths) };
        let spec = spec.map(Arc::new);
        Judged { subject, stages: trail.into_stages(), denied, notes, spec }
    }

    /// Whether judging a call of `tool` has no effect: no hook runs and nothing is sent to a model. A
    /// person may be asked.
    #[must_use]
    pub fn judges_without_effect(&self, tool: &str) -> bool {
        let mut hooks = hooks::of(self.policy.hooks(), HookEvent::PreTool, tool);
        self.guardian.is_none() && hooks.next().is_none()
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
}
