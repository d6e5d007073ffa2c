//! Hard links that were there before the run: second names of what the policy closes are closed, too,
//! and what cannot be closed is said. Looked for once a run, before its first call.

use crate::chain::cell::CellBase;
use crate::policy::{MaskPlanKind, PlannedMask, PlannedPattern};
use crate::sandbox::{self, HardLinks, MaskKind, Program};
use std::io;
use std::path::{Path, PathBuf};

/// Names that are looked at before a run: some seconds of a cold disk, and more than a workspace with
/// the dependencies of a large project has.
pub const RUN_ENTRIES_MAX: u64 = 500_000;
/// Names that are looked at before the one command of `exec`, which should start at once.
pub const EXEC_ENTRIES_MAX: u64 = 20_000;
/// Names in one sentence; the rest is counted.
const SHOWN_MAX: usize = 5;

/// Looks below what the policy grants, and closes second names of what it closes in every cell of
/// `base`. System directories and named caches hold no secret of a person and are left out.
///
/// # Errors
/// If a pattern of the policy cannot be compiled.
pub fn close(base: &mut CellBase, entries_max: u64) -> io::Result<HardLinks> {
    let granted = base.plan.grants.iter().filter(|grant| !grant.well_known);
    let roots: Vec<PathBuf> = granted
        .map(|grant| grant.path.clone())
        .filter(|path| path != Path::new("/tmp") && path != Path::new("/var/tmp"))
        .collect();
    let masks = base.spec(Program::FileJob { job: Vec::new() }, &[]).masks;
    let found = sandbox::hard_links(&roots, &masks, entries_max)?;
    base.plan.masks.extend(found.second_names.iter().map(|second| PlannedMask {
        pattern: PlannedPattern::Exact(second.name.clone()),
        except: Vec::new(),
        kind: match second.kind {
            MaskKind::Hide => MaskPlanKind::Hide,
            MaskKind::ReadOnly => MaskPlanKind::ReadOnly,
        },
        rule_id: second.reason_id.clone(),
        unless_approved: false,
    }));
    Ok(found)
}

/// What a person has to know of it. That a look was cut is not among it (see [`unseen`]).
#[must_use]
pub fn warnings(found: &HardLinks, mount_view: bool) -> Vec<String> {
    let shown = |path: &Path| crate::base::text::escape(&path.to_string_lossy());
    let mut warnings: Vec<String> = found
        .second_names
        .iter()
        .take(SHOWN_MAX)
        .map(|second| {
            let held = if mount_view {
                "it is closed, too"
            } else {
                "file tools refuse it; without a mount view bash does not"
            };
            format!(
                "`{}` is a hard link to `{}`, which rule `{}` closes; {held}",
                shown(&second.name),
                shown(&second.covered),
                second.reason_id
            )
        })
        .collect();
    let more = found.second_names.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        warnings.push(format!("{more} more names are hard links to what the policy closes"));
    }
    if found.elsewhere > 0 {
        let examples: Vec<String> = found.examples.iter().map(|path| shown(path)).collect();
        warnings.push(format!(
            "{} files have further names elsewhere (hard links), such as `{}`: through them bash reads \
             and changes what lies there (limit L3)",
            found.elsewhere,
            examples.join("`, `")
        ));
    }
    warnings
}

/// That not every name was looked at. It says something of the look alone, and would be said of each
/// command in a large workspace: it belongs into the record, and before the eyes of a person only
/// where he waits for a whole run or asks.
#[must_use]
pub fn unseen(found: &HardLinks) -> Option<String> {
    (!found.complete).then(|| {
        format!(
            "the look for hard links saw {} names and not all: links among the rest are not known \
             (limit L3)",
            found.entries
        )
    })
}

/// All of it, as a log has it.
#[must_use]
pub fn recorded(found: &HardLinks, mount_view: bool) -> Vec<String> {
    warnings(found, mount_view).into_iter().chain(unseen(found)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::SecondName;

    #[test]
    fn what_is_told_is_bounded_and_escaped() {
        let second = SecondName {
            name: "/w/a\u{1b}b".into(),
            covered: "/w/.env".into(),
            kind: MaskKind::Hide,
            reason_id: "secrets".into(),
        };
        let found = HardLinks {
            second_names: vec![second; 9],
            elsewhere: 2,
            examples: vec!["/w/x".into()],
            entries: 7,
            complete: false,
        };
        let told = warnings(&found, true);
        assert_eq!(told.len(), 7, "{told:#?}");
        assert!(unseen(&found).unwrap().contains("saw 7 names and not all"));
        assert!(told[0].contains(r"/w/a\u{1b}b") && told[0].contains("closed, too"), "{}", told[0]);
        assert!(told[5].starts_with("4 more") && told[6].starts_with("2 files"), "{told:#?}");
        assert!(warnings(&found, false)[0].contains("bash does not"));
        let clean = HardLinks { complete: true, ..HardLinks::default() };
        assert_eq!((warnings(&clean, true), unseen(&clean)), (Vec::new(), None));
    }
}
