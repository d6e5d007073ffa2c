//! What is taken out of a record before it is written: secrets, and the middle of very long texts.
//!
//! Patterns are the built-in ones below plus those of the policy. They are applied to every text that
//! came from outside, before the record's bytes exist, so that no link covers a secret. A pattern
//! finds what looks like a secret; it cannot know one that looks like nothing, which docs/
//! audit-format.md says.

use crate::base::digest::Digest;
use crate::base::json::{canonical, parse_strict};
use crate::base::text::{Untrusted, prefix};
use regex::Regex;
use serde_json::Value;
use std::sync::OnceLock;

/// Bytes of one text that a record keeps. The longest script that is analysed fits, so that it can
/// be judged again; file contents are longer and are told by length and digest.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Bytes past the cut that are still searched for secrets, so that none is cut in two and its half
/// left unseen. Longer than any key in use.
const MARGIN_BYTES: usize = 8 * 1024;

/// Words for things whose value is a secret.
macro_rules! secret_words {
    () => {
        "(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|\
         private[_-]?key|credentials?)"
    };
}

/// What every text with one of the secret words holds.
const SECRET_TRIGGERS: &[&str] = &["pass", "secret", "token", "key", "credential"];

/// Name, triggers and pattern. A text that holds none of the triggers, in lower case, cannot match, so
/// that a pattern is compiled only when it may be needed: compiling all takes longer than a launch.
/// What the groups `keep` and `keep2` match stays; the rest becomes `[redacted:NAME]`.
const BUILT_IN: [(&str, &[&str], &str); 13] = [
    (
        "private-key",
        &["private key"],
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("aws-key-id", &["akia", "asia", "abia", "acca"], r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    (
        "github-token",
        &["gh", "github_pat_"],
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    ),
    ("gitlab-token", &["gl"], r"\bgl(?:pat|dt|rt|cbt|ptt|ft|imt|soat|agent)-[A-Za-z0-9_-]{20,}"),
    ("slack-token", &["xox"], r"\bxox[a-z]-[A-Za-z0-9-]{10,}"),
    (
        "api-key",
        &["sk-", "_live_", "_test_"],
        r"\b(?:sk-[A-Za-z0-9_-]{20,}|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,})",
    ),
    ("google-key", &["aiza"], r"\bAIza[0-9A-Za-z_-]{35}"),
    (
        "registry-token",
        &["npm_", "pypi-", "hf_"],
        r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{30,})",
    ),
    ("jwt", &["eyj"], r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"),
    (
        "authorization",
        &["authorization", "bearer"],
        r#"(?i)(?P<keep>authorization\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic|token|digest)\s+)?|\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}"#,
    ),
    (
        "url-password",
        &["://"],
        r"(?P<keep>\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?P<keep2>@)",
    ),
    (
        "assignment",
        SECRET_TRIGGERS,
        concat!(
            r"(?i)(?P<keep>",
            secret_words!(),
            r#"\\?["']?\s*[:=]\s*)"#,
            r#"(?:\\?"(?:[^"\\]|\\[^"])*\\?"|\\?'[^']*'|[^\s"',;&|)}\]]+)"#
        ),
    ),
    (
        "option",
        SECRET_TRIGGERS,
        concat!(
            r"(?i)(?P<keep>(?:^|\s)--?(?:[a-z0-9]+[_-])*",
            secret_words!(),
            r#"\s+)(?:"[^"]*"|'[^']*'|[^\s"'-][^\s"';&|)]*)"#
        ),
    ),
];

/// What every name of a secret holds.
const SECRET_NAME_TRIGGERS: &[&str] =
    &["pass", "secret", "token", "key", "credential", "authorization"];

/// Names after which a value is a secret, whatever it looks like: keys of objects, long options.
const SECRET_NAME: &str =
    concat!(r"(?i)^(?:--?)?(?:[a-z0-9]+[_-])*(?:authorization|", secret_words!(), r")$");

/// A pattern that is compiled when a text may match it.
#[derive(Debug, Clone)]
struct Lazy {
    name: &'static str,
    triggers: &'static [&'static str],
    text: &'static str,
    compiled: OnceLock<Result<Regex, regex::Error>>,
}

impl Lazy {
    const fn new(
        name: &'static str,
        triggers: &'static [&'static str],
        text: &'static str,
    ) -> Self {
        Self { name, triggers, text, compiled: OnceLock::new() }
    }

    /// The pattern, if `lower`, a text in lower case, holds one of its triggers.
    fn wanted_by(&self, lower: &str) -> Option<&Result<Regex, regex::Error>> {
        let holds = self.triggers.iter().any(|trigger| lower.contains(trigger));
        holds.then(|| self.compiled.get_or_init(|| Regex::new(self.text)))
    }
}

/// The patterns.
#[derive(Clone)]
pub struct Redactor {
    built_in: Vec<Lazy>,
    policy: Vec<Regex>,
    secret_name: Lazy,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Redactor({} patterns)", self.built_in.len() + self.policy.len())
    }
}

impl Redactor {
    /// The built-in patterns and `more`, whose matches are replaced as a whole.
    #[must_use]
    pub fn new(more: &[Regex]) -> Self {
        let built_in = BUILT_IN.map(|(name, triggers, text)| Lazy::new(name, triggers, text));
        Self {
            built_in: built_in.to_vec(),
            policy: more.to_vec(),
            secret_name: Lazy::new("name", SECRET_NAME_TRIGGERS, SECRET_NAME),
        }
    }

    /// `text` without what looks like a secret; `None` if there is nothing to take out.
    #[must_use]
    pub fn clean(&self, text: &str) -> Option<String> {
        let lower = text.to_ascii_lowercase();
        let mut found: Option<String> = None;
        for pattern in &self.built_in {
            let Some(compiled) = pattern.wanted_by(&lower) else { continue };
            // A pattern that does not compile is a defect, which a test would show; nothing leaks.
            let Ok(compiled) = compiled else { return Some("[redacted:all]".to_owned()) };
            let replacement = format!("${{keep}}[redacted:{}]${{keep2}}", pattern.name);
            replace(&mut found, text, compiled, &replacement);
        }
        for pattern in &self.policy {
            replace(&mut found, text, pattern, "[redacted:policy]");
        }
        found.filter(|cleaned| cleaned != text)
    }

    /// Whether a value of this name is a secret.
    fn is_secret_name(&self, name: &str) -> bool {
        let compiled = self.secret_name.wanted_by(&name.to_ascii_lowercase());
        compiled
            .is_some_and(|compiled| compiled.as_ref().map_or(true, |regex| regex.is_match(name)))
    }
}

fn replace(found: &mut Option<String>, text: &str, pattern: &Regex, replacement: &str) {
    // What an earlier pattern put in is no secret.
    if pattern.is_match(text) {
        let current = found.as_deref().unwrap_or(text);
        *found = Some(pattern.replace_all(current, replacement).into_owned());
    }
}

/// One pass over one record: the patterns, and how often they were needed.
#[derive(Debug)]
pub(crate) struct Redaction<'a> {
    redactor: &'a Redactor,
    redacted: u32,
    cut: u32,
}

/// What can be freed of secrets.
pub(crate) trait Redact {
    /// Takes secrets out of every text from outside.
    fn redact(&mut self, redaction: &mut Redaction<'_>);
}

impl<'a> Redaction<'a> {
    pub(crate) const fn new(redactor: &'a Redactor) -> Self {
        Self { redactor, redacted: 0, cut: 0 }
    }

    /// Texts from which something was taken so far.
    pub(crate) const fn redacted(&self) -> u32 {
        self.redacted
    }

    /// Texts that were cut for length so far.
    pub(crate) const fn cut(&self) -> u32 {
        self.cut
    }

    fn text(&mut self, text: &str) -> Option<String> {
        let is_long = text.len() > TEXT_BYTES_MAX + MARGIN_BYTES;
        let window = if is_long { prefix(text, TEXT_BYTES_MAX + MARGIN_BYTES) } else { text };
        let cleaned = self.redactor.clean(window);
        self.redacted += u32::from(cleaned.is_some());
        if !is_long {
            return cleaned;
        }
        self.cut += 1;
        let cleaned = cleaned.as_deref().unwrap_or(window);
        // The last of the window was searched only up to its edge, so all of the margin goes.
        let kept = prefix(cleaned, cleaned.len().saturating_sub(MARGIN_BYTES));
        Some(format!("{kept}[cut: {} bytes in all, {}]", text.len(), Digest::of(text.as_bytes())))
    }

    fn secret(&mut self) -> String {
        self.redacted += 1;
        "[redacted:named]".to_owned()
    }

    /// Words of one command: the word after `--password` is a secret whatever it looks like.
    pub(crate) fn words(&mut self, words: &mut [Untrusted]) {
        let mut after_secret_name = false;
        for word in words {
            if after_secret_name && !word.raw().starts_with('-') {
                *word = Untrusted::new(self.secret());
                after_secret_name = false;
            } else {
                let is_option = word.raw().starts_with('-');
                after_secret_name = is_option && self.redactor.is_secret_name(word.raw());
                word.redact(self);
            }
        }
    }

    /// Text that may be JSON: its escapes are undone before the search, as `\u0067hp_…` is a token.
    pub(crate) fn json_text(&mut self, text: &mut Untrusted) {
        match parse_strict(text.raw().as_bytes()) {
            Ok(mut value) => {
                value.redact(self);
                *text = Untrusted::new(canonical(&value));
            }
            Err(_) => text.redact(self),
        }
    }
}

impl Redact for Untrusted {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        if let Some(cleaned) = redaction.text(self.raw()) {
            *self = Self::new(cleaned);
        }
    }
}

impl<T: Redact> Redact for Option<T> {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        if let Some(inner) = self {
            inner.redact(redaction);
        }
    }
}

impl<T: Redact> Redact for Vec<T> {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        self.iter_mut().for_each(|item| item.redact(redaction));
    }
}

impl Redact for Value {
    fn redact(&mut self, redaction: &mut Redaction<'_>) {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => {}
            Self::String(text) => {
                if let Some(cleaned) = redaction.text(text) {
                    *text = cleaned;
                }
            }
            Self::Array(items) => items.iter_mut().for_each(|item| item.redact(redaction)),
            Self::Object(map) => {
                for (key, item) in std::mem::take(map) {
                    let (key, item) = redact_entry(key, item, redaction);
                    map.insert(key, item);
                }
            }
        }
    }
}

fn redact_entry(key: String, mut item: Value, redaction: &mut Redaction<'_>) -> (String, Value) {
    let is_secret = item.is_string() && redaction.redactor.is_secret_name(&key);
    if is_secret {
        item = Value::String(redaction.secret());
    } else {
        item.redact(redaction);
    }
    let key = redaction.text(&key).unwrap_or(key);
    (key, item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redactor() -> Redactor {
        Redactor::new(&[Regex::new("ACME-[0-9]+").unwrap()])
    }

    /// Put together at run time, so that no scanner takes this file for a leak.
    fn token(prefix: &str, length: usize) -> String {
        format!("{prefix}{}", "A1b2C3d4E5".repeat(6).get(..length).unwrap())
    }

    #[test]
    fn secrets_are_taken_out_and_their_neighbourhood_stays() {
        let github = token("ghp_", 36);
        let aws = "AKIAIOSFODNN7EXAMPLE";
        let cases = [
            (format!("git clone https://x:{github}@host/r"), "git clone https://x:", "@host/r"),
            (format!("echo {aws} > f"), "echo [redacted:aws-key-id] > f", ""),
            (format!("curl -H 'Authorization: Bearer {}' u", token("", 20)), "Bearer [", "' u"),
            ("curl -H \"authorization: Basic dXNlcjpwYXNz\" u".into(), "Basic [", "\" u"),
            ("mysql --password=hunter2 db".into(), "--password=[redacted:assignment] db", ""),
            ("DB_PASSWORD='two words' run".into(), "DB_PASSWORD=[redacted:assignment] run", ""),
            ("{\\\"api_key\\\": \\\"abc\\\"}".into(), "api_key\\\": [redacted", "}"),
            (
                "x --api-key 'a b' --db-password hunter2 y".into(),
                "--api-key [redacted:option] -",
                "y",
            ),
            ("postgres://me:pw@db/x".into(), "postgres://me:[redacted:url-password]@db/x", ""),
            (token("sk-proj-", 40), "[redacted:api-key]", ""),
            (token("xoxb-", 20), "[redacted:slack-token]", ""),
            ("see ACME-42 now".into(), "see [redacted:policy] now", ""),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb".into(),
                "a\n[redacted:private-key]\nb",
                "",
            ),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl".into(), "[redacted:private-key]", ""),
        ];
        for (text, expected, rest) in cases {
            let cleaned = redactor().clean(&text).unwrap_or_else(|| panic!("kept: {text}"));
            assert!(cleaned.contains(expected), "{text}\n-> {cleaned}");
            assert!(cleaned.contains(rest), "{text}\n-> {cleaned}");
            for secret in ["hunter2", "dXNlcjpwYXNz", "two words", "abc", ":pw@", "MIIE", &github] {
                assert!(!cleaned.contains(secret), "{secret} in {cleaned}");
            }
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "ls -la | wc -l",
            "git log --format='%h; %s'",
            "cargo test token_count_is_right",
            "the password is asked for on the terminal",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "018f0000-0000-7000-8000-000000000001",
            "https://example.org/a?b=c@d",
            "max_tokens",
            "grep -r secret 'src dir'",
            "PWD=/w OLDPWD=/ ls",
            "alter table t add constraint pk_customer_order_items_index",
            "glob-pattern-matching-library-of-rust",
        ] {
            assert_eq!(redactor().clean(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_is_a_secret_by_its_name() {
        let redactor = redactor();
        let mut redaction = Redaction::new(&redactor);
        let mut value =
            json!({"a": {"password": "x", "Api-Key": "y", "max_tokens": 5, "n": ["z"]}});
        value.redact(&mut redaction);
        let named = "[redacted:named]";
        assert_eq!(
            value,
            json!({"a": {"password": named, "Api-Key": named, "max_tokens": 5, "n": ["z"]}})
        );
        let mut words = ["--user", "me", "--token", "t0", "--password", "--verbose", "x"]
            .map(Untrusted::new)
            .to_vec();
        redaction.words(&mut words);
        let shown: Vec<_> = words.iter().map(Untrusted::raw).collect();
        assert_eq!(shown, ["--user", "me", "--token", named, "--password", "--verbose", "x"]);
        assert_eq!(redaction.redacted(), 3);
    }

    #[test]
    fn escapes_in_argument_text_hide_nothing() {
        let redactor = redactor();
        let mut text = Untrusted::new(format!(r#"{{"a":"\u0067hp_{}"}}"#, token("", 36)));
        Redaction::new(&redactor).json_text(&mut text);
        assert_eq!(text.raw(), r#"{"a":"[redacted:github-token]"}"#);
    }

    #[test]
    fn a_long_text_is_cut_and_no_half_of_a_secret_is_left() {
        let redactor = redactor();
        let secret = token("ghp_", 36);
        for start in [TEXT_BYTES_MAX - 20, TEXT_BYTES_MAX + MARGIN_BYTES - 20] {
            let text = format!("{}{secret}{}", " ".repeat(start), " ".repeat(20_000));
            let mut cut = Untrusted::new(text.clone());
            let mut redaction = Redaction::new(&redactor);
            cut.redact(&mut redaction);
            assert!(!cut.raw().contains("ghp_"), "at {start}");
            assert!(cut.raw().contains(&format!("[cut: {} bytes in all, sha256:", text.len())));
            assert_eq!(redaction.cut(), 1);
        }
    }
}
