//! Rules in their compiled form: what a pattern over paths, commands, assignments, hosts or tools
//! matches. Each file knows one kind; none knows files, layers or settings.

pub mod arguments;
pub mod assignments;
pub mod commands;
pub mod globs;
pub mod hosts;
pub mod path_names;
pub mod tokens;

use super::file::located::Located;
use super::file::schema::Decision;
use super::file::source::{Layer, SourceFile};
use std::ops::Range;
use std::sync::Arc;

/// What every rule has: who says it, where it is written, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleMeta {
    /// Name of the rule.
    pub id: String,
    /// Its answer.
    pub decision: Decision,
    /// Why, in a sentence.
    pub reason: String,
    /// The file it is written in; absent for what is part of the program.
    pub file: Option<Arc<SourceFile>>,
    /// Where its id stands in the file.
    pub span: Range<usize>,
    /// Line of the id, counted from 1.
    pub line: usize,
}

impl RuleMeta {
    /// The meta part of a rule in a file.
    #[must_use]
    pub fn new(
        file: &Arc<SourceFile>,
        id: &Located<String>,
        decision: Decision,
        reason: &str,
    ) -> Arc<Self> {
        let (line, _) = file.place(id.span.start);
        Arc::new(Self {
            id: id.value.clone(),
            decision,
            reason: reason.to_owned(),
            file: Some(Arc::clone(file)),
            span: id.span.clone(),
            line,
        })
    }

    /// A rule that is part of the program.
    #[must_use]
    pub fn built_in(id: &str, decision: Decision, reason: &str) -> Arc<Self> {
        Arc::new(Self {
            id: id.to_owned(),
            decision,
            reason: reason.to_owned(),
            file: None,
            span: 0..0,
            line: 0,
        })
    }

    /// The file's name, if there is one.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.file.as_ref().map(|file| file.name.as_str())
    }

    /// Whose rule it is.
    #[must_use]
    pub fn layer(&self) -> Layer {
        self.file.as_ref().map_or(Layer::BuiltIn, |file| file.layer)
    }
}

/// How far a pattern fits: an unknown word may make it neither yes nor no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It does not.
    No,
    /// It does for some value of an unknown word.
    Maybe,
    /// It does.
    Yes,
}

/// Why a pattern is refused: code, sentence, and what to do.
pub type PatternError = (&'static str, String, Option<String>);

/// Bytes that a compiled regular expression of a policy may take: patterns that need more are
/// repetition bombs.
pub const REGEX_BYTES_MAX: usize = 256 * 1024;

/// A regular expression over a whole text.
///
/// # Errors
/// What is wrong with it.
pub fn whole_regex(text: &str) -> Result<regex::Regex, PatternError> {
    if text.is_empty() {
        return Err(("empty-pattern", "the regular expression is empty".into(), None));
    }
    build_regex(&format!("^(?s:{text})$"))
}

/// A regular expression that is searched for.
///
/// # Errors
/// What is wrong with it.
pub fn search_regex(text: &str) -> Result<regex::Regex, PatternError> {
    if text.is_empty() {
        return Err(("empty-pattern", "the regular expression is empty".into(), None));
    }
    build_regex(text)
}

fn build_regex(text: &str) -> Result<regex::Regex, PatternError> {
    regex::RegexBuilder::new(text).size_limit(REGEX_BYTES_MAX).nest_limit(50).build().map_err(
        |error| {
            let help = matches!(error, regex::Error::CompiledTooBig(_))
                .then(|| "use smaller repetition counts".to_owned());
            let last = error.to_string().lines().last().unwrap_or_default().to_owned();
            ("invalid-regex", format!("not a usable regular expression: {last}"), help)
        },
    )
}

/// A regular expression over a whole text that is compiled when it is first needed: the expressions of
/// the built-in policies are known to compile, and most are never asked.
#[derive(Debug, Clone)]
pub struct LazyRegex {
    text: String,
    compiled: std::sync::OnceLock<Option<regex::Regex>>,
}

impl LazyRegex {
    /// The expression as it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes an expression that is known to compile.
    #[must_use]
    pub fn trusted(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: std::sync::OnceLock::new() }
    }

    /// Takes an expression and compiles it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn checked(text: &str) -> Result<Self, PatternError> {
        let compiled = std::sync::OnceLock::from(Some(whole_regex(text)?));
        Ok(Self { text: text.to_owned(), compiled })
    }

    /// Whether the whole of `text` matches. `otherwise` answers for an expression that does not
    /// compile after all.
    #[must_use]
    pub fn is_match(&self, text: &str, otherwise: bool) -> bool {
        let compiled = self.compiled.get_or_init(|| whole_regex(&self.text).ok());
        compiled.as_ref().map_or(otherwise, |regex| regex.is_match(text))
    }
}

/// A name, or the beginning of a name if it ends with `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamePattern {
    /// Exactly this name.
    Exact(String),
    /// Every name that begins so.
    Prefix(String),
}

impl NamePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(("empty-pattern", "the name is empty".into(), None));
        }
        let (name, is_prefix) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        if name.contains('*') {
            let help = "write one pattern for each name".to_owned();
            return Err((
                "bad-pattern",
                "`*` may stand only at the end of a name".into(),
                Some(help),
            ));
        }
        if name.contains(char::is_whitespace) {
            return Err((
                "space-in-token",
                format!("`{name}` holds a space and can never match"),
                None,
            ));
        }
        let name = name.to_owned();
        Ok(if is_prefix { Self::Prefix(name) } else { Self::Exact(name) })
    }

    /// Whether `name` is meant.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}
