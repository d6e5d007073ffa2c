//! The record of a decision, from what was judged and what each stage said. It decides nothing. The cell
//! of a call that is approved, if it has one, is named by its digest.

use super::Chain;
use super::subject::Subject;
use crate::audit::record::{Decision, Stages};
use crate::base::digest::Digest;
use crate::base::text::Untrusted;

impl Chain {
    pub(super) fn decision_record(
        &self,
        subject: &Subject,
        stages: &Stages,
        cell: Option<Digest>,
    ) -> Decision {
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
            ruling: stages.ruling(),
            stages: stages.clone(),
            sandbox: cell,
            lost: self.lost.clone(),
        }
    }
}
