//! `cd`, `pushd` and `popd`: where a shell goes, as far as it is certain.

use super::Invoked;
use crate::call::effects::UnresolvedReason;
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::state::{Directories, Value};
use crate::call::shell::meaning::walk::Analysis;

pub(super) fn change_directory(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let target = invoked
        .arguments
        .iter()
        .find(|field| !matches!(field.exact(), Some("--" | "-P" | "-L" | "-e" | "-@")));
    let next = match target.map(Field::exact) {
        None => directory_of(analysis, "HOME"),
        Some(Some("-")) => analysis.shell.previous.clone(),
        Some(Some("")) => analysis.shell.directories.clone(),
        Some(Some(path)) => followed(analysis, invoked, path),
        Some(None) => Directories::unknown(),
    };
    enter(analysis, next);
}

/// Where a known word leads. Where it leads too far to be followed, what is named relative to it
/// from here on is not judged, and this part says so.
fn followed(analysis: &mut Analysis, invoked: &Invoked<'_>, path: &str) -> Directories {
    let next = relative_target(analysis, invoked, path);
    let is_followed = path.starts_with('/') || !analysis.shell.directories.is_unknown();
    if is_followed && next.is_unknown() {
        analysis.unresolved(UnresolvedReason::PathWord, invoked.name, invoked.call.span);
    }
    next
}

/// With `CDPATH` a relative name is looked up in other directories first.
fn relative_target(analysis: &Analysis, invoked: &Invoked<'_>, path: &str) -> Directories {
    let here = analysis.shell.directories.entered(path);
    if path.starts_with(['/', '.']) {
        return here;
    }
    let in_front = invoked.call.assignments.iter().find(|assignment| assignment.name == "CDPATH");
    let searched = match in_front {
        Some(assignment) => assignment.value.known().map(ToOwned::to_owned),
        None => match analysis.shell.value("CDPATH") {
            Value::Known(value) => Some(value),
            // The environment of a cell is ours, and holds no `CDPATH` that is not known.
            Value::Environment | Value::Unset => return here,
            Value::Number | Value::Unknown => None,
        },
    };
    let Some(searched) = searched else { return Directories::unknown() };
    searched.split(':').fold(here, |found, directory| {
        let directory = if directory.is_empty() { "." } else { directory };
        found.or(&analysis.shell.directories.entered(&format!("{directory}/{path}")))
    })
}

fn directory_of(analysis: &Analysis, name: &str) -> Directories {
    match analysis.shell.value(name) {
        Value::Known(path) => analysis.shell.directories.entered(&path),
        Value::Number | Value::Environment | Value::Unset | Value::Unknown => {
            Directories::unknown()
        }
    }
}

fn enter(analysis: &mut Analysis, next: Directories) {
    analysis.shell.previous = std::mem::replace(&mut analysis.shell.directories, next);
}

pub(super) fn push_directory(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    analysis.shell.stack.push(analysis.shell.directories.clone());
    let target =
        invoked.arguments.iter().find_map(|field| field.exact().filter(|word| *word != "--"));
    let next = match target {
        Some(path) if !path.starts_with(['-', '+']) => followed(analysis, invoked, path),
        Some(_) | None => Directories::unknown(),
    };
    enter(analysis, next);
}

pub(super) fn pop_directory(analysis: &mut Analysis) {
    let next = analysis.shell.stack.pop().unwrap_or_else(Directories::unknown);
    enter(analysis, next);
}
