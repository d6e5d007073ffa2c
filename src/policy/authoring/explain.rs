//! Which words of a call resolved to what: the part of an explanation that comes before any rule.

use crate::base::text::{escape, prefix};
use crate::call::effects::{Access, CommandUse, Effects};
use crate::policy::file::schema::unresolved_name;
use crate::policy::judgement::SubjectKind;
use serde::Serialize;
use std::path::PathBuf;

/// Bytes of one part that are shown.
const SHOWN_BYTES_MAX: usize = 400;

/// One thing that was found in a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// What it is.
    pub kind: SubjectKind,
    /// The thing, escaped: words that are not known stand as they are written.
    pub shown: String,
    /// What a path really is, if links lead elsewhere, escaped.
    pub real: Option<String>,
    /// The wrappers around a command, outermost first.
    pub via: Vec<String>,
}

/// Everything that was found in a call, in its order.
#[must_use]
pub fn resolved(effects: &Effects, real_paths: &[(usize, PathBuf)]) -> Vec<Resolved> {
    let part = |kind, text: &str| Resolved {
        kind,
        shown: escape(prefix(text, SHOWN_BYTES_MAX)),
        real: None,
        via: Vec::new(),
    };
    let mut parts = Vec::new();
    for command in &effects.commands {
        let via = command.via.iter().map(|wrapper| escape(wrapper)).collect();
        parts.push(Resolved { via, ..part(SubjectKind::Command, &words(command)) });
        for assignment in &command.assignments {
            let text = format!("{}={}", assignment.name, assignment.value.shown());
            parts.push(part(SubjectKind::Assignment, &text));
        }
    }
    for assignment in &effects.assignments {
        let text = format!("{}={}", assignment.name, assignment.value.shown());
        parts.push(part(SubjectKind::Assignment, &text));
    }
    for (index, path) in effects.paths.iter().enumerate() {
        let kind = match path.access {
            Access::Read => SubjectKind::Read,
            Access::Write => SubjectKind::Write,
            Access::Execute => SubjectKind::Execute,
        };
        let pattern = if path.is_pattern { "/**" } else { "" };
        let text = format!("{}{pattern}", path.path.display());
        let real = real_paths.iter().find(|(at, real)| *at == index && *real != path.path);
        let real = real.map(|(_, real)| escape(&real.to_string_lossy()));
        parts.push(Resolved { real, ..part(kind, &text) });
    }
    for host in &effects.hosts {
        let port = host.port.map_or(String::new(), |port| format!(":{port}"));
        parts.push(part(SubjectKind::Host, &format!("{}{port}", host.host)));
    }
    for unknown in &effects.unresolved {
        let text = format!("{}: {}", unresolved_name(unknown.reason), unknown.text);
        parts.push(part(SubjectKind::Unresolved, &text));
    }
    parts
}

fn words(command: &CommandUse) -> String {
    let words = std::iter::once(&command.program).chain(&command.arguments);
    words.map(crate::call::effects::Word::shown).collect::<Vec<_>>().join(" ")
}

/// The parts as lines for a person.
#[must_use]
pub fn resolved_text(parts: &[Resolved]) -> String {
    let line = |part: &Resolved| {
        let mut line = format!("  {} `{}`", part.kind.as_str(), part.shown);
        if let Some(real) = &part.real {
            line.push_str(&format!(", really `{real}`"));
        }
        if !part.via.is_empty() {
            line.push_str(&format!(", run by {}", part.via.join(" by ")));
        }
        line
    };
    parts.iter().map(line).collect::<Vec<_>>().join("\n")
}
