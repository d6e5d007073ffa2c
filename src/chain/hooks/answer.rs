//! What a hook's way of ending and its words mean.
//!
//! A hook gates a call, so everything that is not a clear answer denies: a crash, a time-out, an
//! interpreter that is missing, output that is not exactly one answer. A hook can pass, ask or deny;
//! it cannot allow what another stage takes.

use crate::audit::record::Reason;
use crate::base::json::parse_strict;
use crate::base::limits::HOOK_OUTPUT_BYTES_MAX;
use crate::base::text::{Untrusted, prefix};
use crate::chain::verdict::{Verdict, reason};
use crate::sandbox::Exit;
use serde::Deserialize;

/// The exit code with which a hook blocks a call, whatever else it prints.
const BLOCK_EXIT_CODE: i32 = 2;

/// Bytes of a hook's words that are kept.
const WORDS_BYTES_MAX: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    decision: Said,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Pass,
    Ask,
    Deny,
}

/// The verdict of one hook.
#[must_use]
pub fn verdict(hook: &str, exit: &Exit, stdout: &[u8], stderr: &[u8]) -> Verdict {
    match exit {
        Exit::Code(0) => said(hook, stdout),
        Exit::Code(code) if *code == BLOCK_EXIT_CODE => {
            deny(hook, "hook-denied", &words(if stderr.is_empty() { stdout } else { stderr }))
        }
        Exit::TimedOut => deny(hook, "hook-timeout", "it did not answer in time"),
        Exit::Code(code) => failed(hook, &format!("exit code {code}"), stderr),
        Exit::Signal(signal) => failed(hook, &format!("signal {signal}"), stderr),
        Exit::OutOfMemory => failed(hook, "out of memory", stderr),
        Exit::OutputCapped => failed(hook, "too much output", stderr),
        Exit::DiskFull => failed(hook, "its temporary directory was full", stderr),
        Exit::Cancelled => failed(hook, "the run was stopped", stderr),
    }
}

/// A hook that could not even be started.
#[must_use]
pub fn not_started(hook: &str, why: &str) -> Verdict {
    deny(hook, "hook-failed", &format!("it could not be started: {why}"))
}

fn said(hook: &str, stdout: &[u8]) -> Verdict {
    if stdout.len() > HOOK_OUTPUT_BYTES_MAX {
        return deny(hook, "hook-garbage", "it printed more than an answer");
    }
    if stdout.trim_ascii().is_empty() {
        return Verdict::Pass(Vec::new());
    }
    let answer = parse_strict(stdout).and_then(serde_json::from_value::<Answer>);
    match answer {
        Ok(Answer { decision: Said::Pass, .. }) => Verdict::Pass(Vec::new()),
        Ok(Answer { decision: Said::Ask, reason }) => {
            Verdict::Require(vec![by_hook(hook, "hook-ask", prefix(&reason, WORDS_BYTES_MAX))])
        }
        Ok(Answer { decision: Said::Deny, reason }) => {
            deny(hook, "hook-denied", prefix(&reason, WORDS_BYTES_MAX))
        }
        Err(error) => deny(hook, "hook-garbage", &format!("its answer is not understood: {error}")),
    }
}

fn failed(hook: &str, how: &str, stderr: &[u8]) -> Verdict {
    deny(hook, "hook-failed", &format!("it failed ({how}): {}", words(stderr)))
}

fn deny(hook: &str, code: &str, sentence: &str) -> Verdict {
    Verdict::deny(by_hook(hook, code, sentence))
}

fn by_hook(hook: &str, code: &str, sentence: &str) -> Reason {
    let sentence = if sentence.is_empty() { "it gave no reason" } else { sentence };
    let told = format!("hook `{hook}`: {sentence}");
    Reason { rule: Some(Untrusted::new(hook)), ..reason(code, told) }
}

fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    prefix(text.trim(), WORDS_BYTES_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(verdict: &Verdict) -> String {
        match verdict {
            Verdict::Pass(_) => "pass".to_owned(),
            Verdict::Require(reasons) | Verdict::Deny(reasons) => reasons[0].code.raw().to_owned(),
            Verdict::Skipped(why) => (*why).to_owned(),
        }
    }

    #[test]
    fn everything_that_is_no_clear_answer_denies() {
        let deny = br#"{"decision":"deny","reason":"no"}"#.as_slice();
        for (exit, stdout, expected) in [
            (Exit::Code(0), b"".as_slice(), "pass"),
            (Exit::Code(0), b" \n", "pass"),
            (Exit::Code(0), br#"{"decision":"pass"}"#, "pass"),
            (Exit::Code(0), br#"{"decision":"ask","reason":"sure?"}"#, "hook-ask"),
            (Exit::Code(0), deny, "hook-denied"),
            (Exit::Code(0), br#"{"permissionDecision":"#, "hook-garbage"),
            (Exit::Code(0), br#"{"decision":"allow"}"#, "hook-garbage"),
            (Exit::Code(0), br#"{"decision":"pass","decision":"deny"}"#, "hook-garbage"),
            (Exit::Code(0), br#"{"decision":"pass","more":1}"#, "hook-garbage"),
            (Exit::Code(0), b"ok", "hook-garbage"),
            (Exit::Code(2), b"", "hook-denied"),
            (Exit::Code(2), br#"{"decision":"pass"}"#, "hook-denied"),
            (Exit::Code(2), b"{", "hook-denied"),
            (Exit::Code(1), br#"{"decision":"pass"}"#, "hook-failed"),
            (Exit::Code(127), b"", "hook-failed"),
            (Exit::Signal(9), b"", "hook-failed"),
            (Exit::TimedOut, br#"{"decision":"pass"}"#, "hook-timeout"),
            (Exit::Cancelled, b"", "hook-failed"),
        ] {
            let verdict = verdict("h", &exit, stdout, b"");
            assert_eq!(code(&verdict), expected, "{exit:?} {}", String::from_utf8_lossy(stdout));
        }
    }
}
