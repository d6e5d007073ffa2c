//! The record of a decision, from what was judged and what each stage said. It decides nothing.

use super::subject::Subject;
use super::{Chain, spec_digest};
use crate::audit::record::{Decision, Ruling, Stages};
use crate::base::digest::Digest;
use crate::base::text::Untrusted;
use crate::sandbox::SandboxSpec;

impl Chain {
    pub(super) fn decision_record(
        &self,
        subject: &Subject,
        stages: &Stages,
        spec: Option<&SandboxSpec>,
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
            ruling: if spec.is_some() { Ruling::Approved } else { Ruling::Denied },
            stages: stages.clone(),
            sandbox: spec.map(spec_digest),
            lost: self.lost.clone(),
        }
    }
}
