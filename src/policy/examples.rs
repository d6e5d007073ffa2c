//! Runs the `match` and `not_match` examples of the rules of a unit: a rule that does not do what
//! its own file says it does is an error.

use super::file::diagnostic::Collector;
use super::file::located::Located;
use super::file::source::Layer;
use super::paths::PathIndex;
use super::rules::RuleMeta;
use super::rules::commands::CommandFit;
use super::rules::globs::{Places, Shape, expand};
use super::rules::path_names::PathNames;
use super::unit::{Loaded, Unit};
use crate::call::effects::{Assignment, CommandUse, HostUse, Span, Word};
use crate::call::shell::{ShellContext, analyse};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs every example of the rules that could be compiled; each one that fails is an error at its
/// place. What is wrong with the others is told already.
pub(super) fn run(unit: &Unit, files: &[Loaded], collector: &mut Collector) {
    let places = Places::example();
    if files.iter().all(|(file, _)| file.layer == Layer::BuiltIn) {
        return;
    }
    let runner = Runner { unit, places: &places };
    let paths = PathIndex::new(&unit.paths, &places);
    let compiled = compiled_rules(unit);
    // Those of the built-in policies are run by the program's tests, not at each of its starts.
    for (file, document) in files.iter().filter(|(file, _)| file.layer != Layer::BuiltIn) {
        let mut report =
            |id: &str, (matches, not_match): Examples<'_>, fits: &dyn Fn(&str) -> Option<bool>| {
                if !compiled.contains(id) {
                    return;
                }
                let wanted =
                    matches.iter().map(|e| (e, true)).chain(not_match.iter().map(|e| (e, false)));
                for (example, expected) in wanted {
                    let problem = match fits(&example.value) {
                        None => "the example cannot be read",
                        Some(found) if found == expected => continue,
                        Some(true) => "the rule matches this, and should not",
                        Some(false) => "the rule does not match this, and should",
                    };
                    let what = ("failing-example", problem.to_owned());
                    collector.error(file, &example.span, what, None);
                }
            };
        for rule in &document.command.rule {
            report(&rule.id.value, (&rule.matches, &rule.not_match), &|text| {
                runner.command(&rule.id.value, text)
            });
        }
        for rule in &document.command.assignment {
            report(&rule.id.value, (&rule.matches, &rule.not_match), &|text| {
                runner.assignment(&rule.id.value, text)
            });
        }
        for rule in &document.tool.rule {
            report(&rule.id.value, (&rule.matches, &rule.not_match), &|text| {
                runner.tool(&rule.id.value, text)
            });
        }
        for rule in &document.network.rule {
            report(&rule.id.value, (&rule.matches, &rule.not_match), &|text| {
                runner.host(&rule.id.value, text)
            });
        }
        if let Ok(index) = &paths {
            for rule in &document.path.rule {
                let fits = |text: &str| runner.path(index, &rule.id.value, text);
                report(&rule.id.value, (&rule.matches, &rule.not_match), &fits);
            }
        }
    }
}

/// The rules of the unit by name; one with an error is not among them.
fn compiled_rules(unit: &Unit) -> BTreeSet<&str> {
    let commands = unit.commands.rules.iter().map(|rule| &rule.meta);
    let assignments = unit.assignments.iter().map(|rule| &rule.meta);
    let (tools, hosts) =
        (unit.tools.iter().map(|rule| &rule.meta), unit.hosts.iter().map(|rule| &rule.meta));
    let paths = unit.paths.iter().map(|rule| &rule.meta);
    let all = commands.chain(assignments).chain(tools).chain(hosts).chain(paths);
    all.map(|meta| meta.id.as_str()).collect()
}

type Examples<'e> = (&'e [Located<String>], &'e [Located<String>]);

struct Runner<'r> {
    unit: &'r Unit,
    places: &'r Places,
}

impl Runner<'_> {
    fn is_rule(meta: &Arc<RuleMeta>, id: &str) -> bool {
        meta.id == id
    }

    fn command(&self, id: &str, text: &str) -> Option<bool> {
        let commands = example_commands(text, self.places)?;
        let expand = |pattern: &str| match expand(pattern, self.places)? {
            Shape::Exact(path) => path.to_str().map(str::to_owned),
            Shape::Tree(_) | Shape::Glob(_) => None,
        };
        Some(commands.iter().any(|command| {
            self.unit.commands.fits(command, &expand).any(|(rule, fit)| {
                Self::is_rule(&rule.meta, id) && matches!(fit, CommandFit::Yes | CommandFit::Maybe)
            })
        }))
    }

    fn assignment(&self, id: &str, text: &str) -> Option<bool> {
        let (name, value) = text.split_once('=')?;
        let assignment = Assignment {
            name: name.to_owned(),
            value: Word::Known(value.to_owned()),
            span: Span::default(),
        };
        let mut rules = self.unit.assignments.iter();
        Some(rules.any(|rule| Self::is_rule(&rule.meta, id) && rule.fits(&assignment)))
    }

    fn tool(&self, id: &str, text: &str) -> Option<bool> {
        let (tool, arguments) = text.split_once(' ').unwrap_or((text, "{}"));
        let arguments = serde_json::from_str(arguments).ok()?;
        let mut rules = self.unit.tools.iter();
        Some(rules.any(|rule| Self::is_rule(&rule.meta, id) && rule.fits(tool, &arguments)))
    }

    fn host(&self, id: &str, text: &str) -> Option<bool> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text, None),
        };
        let host = HostUse { host: host.to_owned(), port, span: Span::default() };
        let mut rules = self.unit.hosts.iter();
        Some(rules.any(|rule| Self::is_rule(&rule.meta, id) && rule.fits(&host)))
    }

    fn path(&self, index: &PathIndex, id: &str, text: &str) -> Option<bool> {
        let path = match expand(text, self.places)? {
            Shape::Exact(path) => path,
            Shape::Tree(_) | Shape::Glob(_) => PathBuf::from(text),
        };
        let accesses = [
            crate::call::effects::Access::Read,
            crate::call::effects::Access::Write,
            crate::call::effects::Access::Execute,
        ];
        Some(accesses.into_iter().any(|access| {
            let rules = index.fits(&self.unit.paths, &PathNames::new(&path), access);
            rules.iter().any(|matcher| Self::is_rule(&matcher.meta, id))
        }))
    }
}

/// The commands of an example, as the analysis of scripts finds them.
fn example_commands(text: &str, places: &Places) -> Option<Vec<CommandUse>> {
    let context = ShellContext {
        cwd: places.workspace.clone(),
        home: places.home.clone(),
        ..ShellContext::default()
    };
    let commands = analyse(text, &context).commands;
    (!commands.is_empty()).then_some(commands)
}
