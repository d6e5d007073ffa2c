//! Rules over tools by name and arguments.

use super::{NamePattern, RuleMeta};
use regex::Regex;
use serde_json::Value;
use std::sync::Arc;

/// One condition on an argument.
#[derive(Debug)]
pub enum Condition {
    /// It is exactly this.
    Equals(Value),
    /// It is a string in which this is found.
    Matches(Regex),
    /// It is there, or is not.
    Present(bool),
}

/// A compiled rule over tools.
#[derive(Debug)]
pub struct ToolMatcher {
    /// Who says it.
    pub meta: Arc<RuleMeta>,
    /// The tools.
    pub tools: Vec<NamePattern>,
    /// JSON pointers with what must hold there.
    pub conditions: Vec<(String, Condition)>,
}

impl ToolMatcher {
    /// Whether the rule means this call.
    #[must_use]
    pub fn fits(&self, tool: &str, arguments: &Value) -> bool {
        self.tools.iter().any(|name| name.fits(tool))
            && self.conditions.iter().all(|(pointer, condition)| {
                let found = arguments.pointer(pointer);
                match condition {
                    Condition::Equals(value) => found == Some(value),
                    Condition::Matches(regex) => {
                        found.and_then(Value::as_str).is_some_and(|text| regex.is_match(text))
                    }
                    Condition::Present(present) => found.is_some() == *present,
                }
            })
    }
}

/// The JSON pointer that `key` means: a pointer as it stands, or the name of one argument.
#[must_use]
pub fn pointer(key: &str) -> String {
    if key.starts_with('/') {
        key.to_owned()
    } else {
        format!("/{}", key.replace('~', "~0").replace('/', "~1"))
    }
}
