//! Hooks of the session: programs of the policy that run before the first model request of a run, and when
//! it is over. The former can refuse the run; the latter are told and change nothing.

use super::events::FinishReason;
use super::finish::{Ending, POST_HOOK_TIME};
use super::{Agent, Fault};
use crate::audit::record::{Body, Hook as HookRecord};
use crate::chain::abort::AbortSignal;
use crate::chain::hooks;
use crate::chain::verdict::Verdict;
use crate::policy::{Hook, HookEvent};
use std::future::Future;
use std::sync::Arc;

impl Agent {
    /// Asks each hook in the policy's order. Everything but a clear pass ends the run: nobody is asked
    /// about a run as a whole.
    pub(super) async fn start_hooks(&mut self) -> Result<Option<Ending>, Fault> {
        let abort = self.parts.chain.abort.clone();
        for hook in self.session_hooks(HookEvent::SessionStart) {
            let asked = self.session_hook(hook, "", &abort);
            let ((verdict, record), stopped) = self.watch().over(asked).await;
            let (id, sentence) = (record.hook.to_string(), record.sentence.to_string());
            self.parts.log.append(&Body::Hook(Box::new(record))).map(drop)?;
            stopped?;
            match verdict {
                Verdict::Pass(_) | Verdict::Skipped(_) => {}
                Verdict::Require(_) | Verdict::Deny(_) if abort.is_aborted() => {
                    return Ok(Some(self.stopped()));
                }
                Verdict::Require(_) | Verdict::Deny(_) => {
                    let why = format!("the hook `{id}` refused the run: {sentence}");
                    return Ok(Some(Ending::failed(FinishReason::HookDenied, why)));
                }
            }
        }
        Ok(None)
    }

    /// Tells each hook how the run ended. They run also if somebody stopped it, and not for long.
    pub(super) async fn end_hooks(&mut self, finish: FinishReason) -> Result<(), Fault> {
        let most = u64::try_from(POST_HOOK_TIME.as_millis()).unwrap_or(u64::MAX);
        for mut hook in self.session_hooks(HookEvent::SessionEnd) {
            hook.timeout_ms = Some(hook.timeout_ms.map_or(most, |given| given.min(most)));
            let never = AbortSignal::new();
            let (_, record) = self.session_hook(hook, finish.as_str(), &never).await;
            self.parts.log.append(&Body::Hook(Box::new(record))).map(drop)?;
        }
        Ok(())
    }

    fn session_hooks(&self, event: HookEvent) -> Vec<Hook> {
        let all = self.parts.chain.policy.hooks().iter();
        all.filter(|hook| hook.event == event).cloned().collect()
    }

    fn session_hook(
        &self,
        hook: Hook,
        finish: &str,
        abort: &AbortSignal,
    ) -> impl Future<Output = (Verdict, HookRecord)> + use<> {
        let chain = &self.parts.chain;
        let session = self.parts.session.clone();
        let stdin = hooks::session_input(hook.event, &session, &chain.setting, finish);
        let (cell, abort) = (Arc::clone(&chain.cell), abort.clone());
        let failed = hooks::failed(&hook, &session);
        let run = move || hooks::run(&hook, &session, stdin, &cell, &abort);
        async move { tokio::task::spawn_blocking(run).await.unwrap_or(failed) }
    }
}
