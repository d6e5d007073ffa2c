//! The rules of a set, as a list: for tools that count how often each of them has answered.

use crate::policy::PolicySet;
use crate::policy::rules::RuleMeta;
use std::sync::Arc;

/// Every rule that is written in a file, each once, in the order of files and lines. Settings that
/// answer where no rule does, and what is part of the program, are not among them.
#[must_use]
pub fn rules(set: &PolicySet) -> Vec<Arc<RuleMeta>> {
    let mut found: Vec<Arc<RuleMeta>> = Vec::new();
    for unit in set.units() {
        found.extend(unit.paths.iter().map(|rule| Arc::clone(&rule.meta)));
        found.extend(unit.commands.rules.iter().map(|rule| Arc::clone(&rule.meta)));
        found.extend(unit.assignments.iter().map(|rule| Arc::clone(&rule.meta)));
        found.extend(unit.tools.iter().map(|rule| Arc::clone(&rule.meta)));
        found.extend(unit.hosts.iter().map(|rule| Arc::clone(&rule.meta)));
    }
    found.retain(|rule| rule.file.is_some());
    let place = |rule: &Arc<RuleMeta>| {
        (rule.file_name().map(str::to_owned), rule.span.start, rule.id.clone())
    };
    found.sort_by_cached_key(place);
    found.dedup_by_key(|rule| place(rule));
    found
}
