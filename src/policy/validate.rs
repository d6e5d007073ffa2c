//! Checks over whole files that no single rule can make: ids, reasons, and what a workspace file may
//! not say.

use super::file::diagnostic::Collector;
use super::file::located::Located;
use super::file::schema::{Decision, Degraded, Document, NetworkMode};
use super::file::source::{Layer, SourceFile};
use super::rules::globs;
use super::unit::Loaded;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Checks the files of one unit.
pub(super) fn files(layer: Layer, files: &[Loaded], collector: &mut Collector) {
    let mut ids: BTreeMap<String, Arc<SourceFile>> = BTreeMap::new();
    for (file, document) in files {
        for (id, reason) in rules(document) {
            check_id(file, id, collector);
            if reason.value.trim().is_empty() {
                let what = ("empty-reason", format!("rule `{}` gives no reason", id.value));
                let help = "say in a sentence why the rule exists".to_owned();
                collector.error(file, &reason.span, what, Some(help));
            }
            if let Some(first) = ids.insert(id.value.clone(), Arc::clone(file)) {
                let message = format!("the id `{}` is taken", id.value);
                let help = format!("the other rule is in {}", first.name);
                collector.error(file, &id.span, ("duplicate-id", message), Some(help));
            }
        }
        environment(file, document, collector);
        if layer == Layer::Workspace {
            for (span, what) in widening(document) {
                let message = format!("a workspace file may only ask and deny, but this {what}");
                let help = "put it into a user policy, or name the file with --policy".to_owned();
                collector.error(file, &span, ("workspace-allows", message), Some(help));
            }
        }
    }
}

fn check_id(file: &Arc<SourceFile>, id: &Located<String>, collector: &mut Collector) {
    let fine =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '_');
    if id.value.is_empty() || !id.value.chars().all(fine) {
        let message = format!("`{}` is no id", crate::base::text::escape(&id.value));
        let help = "an id is of lower-case letters, digits, `-`, `_` and `.`".to_owned();
        collector.error(file, &id.span, ("bad-id", message), Some(help));
    }
}

/// Id and reason of every rule of a file.
fn rules(document: &Document) -> Vec<(&Located<String>, &Located<String>)> {
    let mut rules: Vec<_> =
        document.path.rule.iter().map(|rule| (&rule.id, &rule.reason)).collect();
    rules.extend(document.command.rule.iter().map(|rule| (&rule.id, &rule.reason)));
    rules.extend(document.command.assignment.iter().map(|rule| (&rule.id, &rule.reason)));
    rules.extend(document.tool.rule.iter().map(|rule| (&rule.id, &rule.reason)));
    rules.extend(document.network.rule.iter().map(|rule| (&rule.id, &rule.reason)));
    rules.extend(document.hooks.rule.iter().map(|rule| (&rule.id, &rule.reason)));
    rules
}

fn environment(file: &Arc<SourceFile>, document: &Document, collector: &mut Collector) {
    for (name, value) in &document.env.set {
        let bad_name = name.is_empty() || name.contains(['=', '\0', ' ']);
        if bad_name || value.value.contains('\0') {
            let message = format!("`{}` cannot be a variable", crate::base::text::escape(name));
            collector.error(file, &value.span, ("bad-variable", message), None);
        }
        if super::settings::is_code_variable(name) {
            let message = format!("`{name}` changes which code programs load and is never set");
            collector.error(file, &value.span, ("code-variable", message), None);
        }
        if value.value.starts_with('{')
            && let Err((code, message, help)) = globs::check(&value.value)
        {
            collector.error(file, &value.span, (code, message), help);
        }
    }
}

/// What a file says that could widen another layer's policy.
fn widening(document: &Document) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    let mut decision = |decision: Option<&Located<Decision>>| {
        if let Some(located) = decision.filter(|located| located.value == Decision::Allow) {
            found.push((located.span.clone(), "allows"));
        }
    };
    decision(document.path.default.as_ref());
    decision(document.command.default.as_ref());
    decision(document.command.assignment_default.as_ref());
    decision(document.tool.default.as_ref());
    decision(document.network.default.as_ref());
    document.path.rule.iter().for_each(|rule| decision(Some(&rule.decision)));
    document.command.rule.iter().for_each(|rule| decision(Some(&rule.decision)));
    document.command.assignment.iter().for_each(|rule| decision(Some(&rule.decision)));
    document.tool.rule.iter().for_each(|rule| decision(Some(&rule.decision)));
    document.network.rule.iter().for_each(|rule| decision(Some(&rule.decision)));
    found.extend(widening_paths(document));
    found.extend(widening_settings(document));
    found
}

fn widening_paths(document: &Document) -> Vec<(Range<usize>, &'static str)> {
    let path = &document.path;
    let lists = path.read.iter().chain(&path.write).chain(path.execute.iter().flatten());
    let mut found: Vec<_> = lists.map(|pattern| (pattern.span.clone(), "grants a path")).collect();
    let caches = path.caches.iter().chain(&path.caches_write);
    found.extend(caches.map(|name| (name.span.clone(), "grants a cache")));
    if let Some(system) = path.system.as_ref().filter(|system| system.value) {
        found.push((system.span.clone(), "grants the system's paths"));
    }
    let setting = document.command.unresolved.as_ref();
    let allows = |d: &Decision| *d == Decision::Allow;
    if let Some(located) = setting.filter(|located| {
        located.value.default.iter().any(allows) || located.value.by_reason.values().any(allows)
    }) {
        found.push((located.span.clone(), "allows what cannot be told"));
    }
    found
}

fn widening_settings(document: &Document) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    if let Some(mode) = document.network.mode.as_ref().filter(|mode| mode.value != NetworkMode::Off)
    {
        found.push((mode.span.clone(), "opens the network"));
    }
    for hook in &document.hooks.rule {
        found.push((hook.id.span.clone(), "starts a program"));
    }
    for name in document.env.pass.iter().flatten() {
        found.push((name.span.clone(), "passes a variable"));
    }
    for value in document.env.set.values() {
        found.push((value.span.clone(), "sets a variable"));
    }
    for redact in &document.audit.redact {
        found.push((redact.span.clone(), "hides text from the audit log"));
    }
    let sandbox = &document.sandbox;
    if let Some(degraded) = sandbox.degraded.as_ref().filter(|d| d.value == Degraded::Allow) {
        found.push((degraded.span.clone(), "gives up guarantees of the cell"));
    }
    if let Some(identity) = &sandbox.identity {
        found.push((identity.span.clone(), "chooses a user"));
    }
    found
}
