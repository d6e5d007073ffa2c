//! The fifth stage: a second model looks at the call. It is advice that can only subtract: its
//! "pass" gives nothing back, and its silence, its errors and its garbage refuse the call (or, where
//! the policy says so and a person is there, ask).

pub mod review;

use crate::audit::record::{Guardian as GuardianRecord, Reason, StageVerdict};
use crate::base::digest::Digest;
use crate::base::limits::GUARDIAN_TIME_MAX;
use crate::base::text::Untrusted;
use crate::call::ToolCall;
use crate::chain::verdict::{Verdict, reason};
use crate::model::{Abort, Model, ModelError, Shown, Usage};
use review::{Opinion, Review};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The reviewing model and its settings.
#[derive(Debug, Clone)]
pub struct Guardian {
    /// The model.
    pub model: Arc<Model>,
    /// Time to answer; default [`GUARDIAN_TIME_MAX`].
    pub time_max: Option<Duration>,
    /// Whether a failed review asks a person instead of refusing. Nobody there = refused.
    pub ask_on_failure: bool,
    /// What reviews have used.
    used: Arc<Mutex<Usage>>,
}

/// Why there is no review. The code is stable.
struct Failure {
    code: &'static str,
    sentence: String,
}

impl Guardian {
    /// A guardian that refuses where its model fails.
    #[must_use]
    pub fn new(model: Arc<Model>, time_max: Option<Duration>) -> Self {
        Self { model, time_max, ask_on_failure: false, used: Arc::default() }
    }

    /// What reviews have used since this was last asked, as far as the answers told.
    #[must_use]
    pub fn take_used(&self) -> Usage {
        std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks for a review of `call`; `task` is what the user wrote.
    pub async fn review(
        &self,
        task: &str,
        call: &ToolCall,
        arguments: &serde_json::Value,
        abort: &Abort,
    ) -> (Verdict, GuardianRecord) {
        let start = Instant::now();
        let request = review::request(task, call.request.tool().as_str(), arguments);
        let time_max = self.time_max.unwrap_or(GUARDIAN_TIME_MAX);
        let mut unshown = |_event| Shown::No;
        let answer = self.model.call(&request, &mut unshown, abort);
        let (result, usage) = match tokio::time::timeout(time_max, answer).await {
            Ok(Ok(answer)) => (read(&answer.content), answer.usage),
            Ok(Err(error)) => (Err(model_failure(&error)), Usage::default()),
            Err(_elapsed) => (Err(too_late(time_max)), Usage::default()),
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.plus(usage);
        drop(used);
        let verdict = self.verdict(&result);
        let record = self.record(call, (&result, &verdict), usage, start.elapsed());
        (verdict, record)
    }

    fn verdict(&self, result: &Result<Review, Failure>) -> Verdict {
        match result {
            Ok(Review { verdict: Opinion::Pass, .. }) => Verdict::Pass(Vec::new()),
            Ok(Review { verdict: Opinion::Deny, reason: why, risk }) => {
                let sentence =
                    format!("the reviewing model refused ({} risk): {why}", risk.as_str());
                Verdict::deny(reason("guardian-denied", sentence))
            }
            Err(failure) if self.ask_on_failure => Verdict::Require(vec![reason_of(failure)]),
            Err(failure) => Verdict::deny(reason_of(failure)),
        }
    }

    fn record(
        &self,
        call: &ToolCall,
        (result, verdict): (&Result<Review, Failure>, &Verdict),
        usage: Usage,
        took: Duration,
    ) -> GuardianRecord {
        let (code, sentence, risk) = match result {
            Ok(review) => ("review", review.reason.clone(), Some(review.risk)),
            Err(failure) => (failure.code, failure.sentence.clone(), None),
        };
        GuardianRecord {
            call: call.id.clone(),
            model: Untrusted::new(self.model.identity()),
            arguments_hash: Digest::of(call.raw_arguments.as_bytes()),
            risk: risk.map(|risk| Untrusted::new(risk.as_str())),
            verdict: match verdict {
                Verdict::Pass(_) | Verdict::Skipped(_) => StageVerdict::Pass,
                Verdict::Require(_) => StageVerdict::Require,
                Verdict::Deny(_) => StageVerdict::Deny,
            },
            code: Untrusted::new(code),
            sentence: Untrusted::new(sentence),
            tokens: (usage.input, usage.output),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

fn read(content: &str) -> Result<Review, Failure> {
    review::parse(content).map_err(|problem| Failure {
        code: "guardian-malformed",
        sentence: format!("the reviewing model's answer is not understood: {problem}"),
    })
}

fn model_failure(error: &ModelError) -> Failure {
    Failure {
        code: "guardian-error",
        sentence: format!("the reviewing model could not be asked: {error}"),
    }
}

fn too_late(time_max: Duration) -> Failure {
    Failure {
        code: "guardian-timeout",
        sentence: format!("the reviewing model did not answer within {} s", time_max.as_secs_f64()),
    }
}

fn reason_of(failure: &Failure) -> Reason {
    reason(failure.code, failure.sentence.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::request::{BashArguments, Request};
    use crate::model::ModelConfig;

    fn review_with(script: &str, ask_on_failure: bool) -> (Verdict, GuardianRecord) {
        let config = ModelConfig::Script { name: "test".into(), text: script.into() };
        let model = Arc::new(Model::connect(config).unwrap());
        let time_max = Some(Duration::from_millis(50));
        let guardian = Guardian { ask_on_failure, ..Guardian::new(model, time_max) };
        let arguments =
            BashArguments { command: "ls".into(), cwd: None, timeout_ms: None, background: None };
        let call = ToolCall {
            id: crate::base::ids::Id::new(),
            provider_id: String::new(),
            origin: "main".into(),
            request: Request::Bash(arguments),
            raw_arguments: "{\"command\":\"ls\"}".into(),
        };
        let arguments = serde_json::json!({"command": "ls"});
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(guardian.review("look", &call, &arguments, &Abort::new()))
    }

    #[test]
    fn failures_refuse_or_ask_and_never_pass() {
        let text = |answer: &str| serde_json::json!({"text": answer}).to_string();
        let good = r#"{"risk":"low","verdict":"pass","reason":"fine"}"#;
        let bad = r#"{"risk":"high","verdict":"deny","reason":"no"}"#;
        for (script, code, verdict) in [
            (text(good), "review", StageVerdict::Pass),
            (text(bad), "review", StageVerdict::Deny),
            (text("it is fine"), "guardian-malformed", StageVerdict::Deny),
            (r#"{"error":{"status":500}}"#.to_owned(), "guardian-error", StageVerdict::Deny),
            (r#"{"delay_ms":5000,"text":"x"}"#.to_owned(), "guardian-timeout", StageVerdict::Deny),
        ] {
            let (_, record) = review_with(&script, false);
            assert_eq!((record.code.raw(), record.verdict), (code, verdict), "{script}");
            let (_, asked) = review_with(&script, true);
            let failed = code != "review";
            let expected = if failed { StageVerdict::Require } else { verdict };
            assert_eq!(asked.verdict, expected, "{script}");
        }
    }
}
