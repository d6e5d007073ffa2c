//! Stage 6: one question to a person about everything that earlier stages required, and the record of
//! what the person said. How a question looks and is answered is the business of `permission`.

use super::permission::{self, Granted, Question};
use super::subject::Subject;
use super::verdict::{Verdict, reason};
use super::{Chain, Findings};
use crate::audit::record::{Body, Grant, GrantScope, Reason, Stage};
use crate::base::text::Untrusted;
use crate::call::effects::Access;
use std::time::Instant;

impl Chain {
    /// Asks once about everything that earlier stages required.
    pub(super) async fn ask_person(&mut self, subject: &Subject, found: &mut Findings) {
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
