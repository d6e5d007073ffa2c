//! Sockets of this machine inside what a policy grants: a cell without the network must not talk with
//! the programs that listen there. They are hidden like the names that a rule denies, once a run.
//!
//! A socket that a tool makes itself is not among them: nothing of a tool runs before the first call,
//! and what a job of the run serves later is for the calls beside it.

use crate::base::text::escape;
use crate::chain::cell::CellBase;
use crate::policy::{MaskPlanKind, NetworkMode, PlannedMask, PlannedPattern};
use crate::sandbox;
use std::io;
use std::path::PathBuf;

/// What stands in place of a rule where a name is hidden for this reason.
const REASON: &str = "host-sockets";
/// Names in one sentence; the rest is counted.
const SHOWN_MAX: usize = 3;

/// Hides the sockets that somebody holds now in every cell of `base`, and gives their names. Without
/// a view nothing can be hidden, and need not be: there the filter refuses such sockets.
///
/// # Errors
/// When the kernel's list of them cannot be read.
pub fn close(base: &mut CellBase, mount_view: bool) -> io::Result<Vec<PathBuf>> {
    if !mount_view || base.plan.network == NetworkMode::Host {
        return Ok(Vec::new());
    }
    let mut names = sandbox::bound_sockets()?;
    names.retain(|name| base.grants_path(name));
    base.plan.masks.extend(names.iter().map(|name| PlannedMask {
        pattern: PlannedPattern::Exact(name.clone()),
        except: Vec::new(),
        kind: MaskPlanKind::Hide,
        rule_id: REASON.to_owned(),
        unless_approved: false,
    }));
    Ok(names)
}

/// What the record says of them, and who asks is told.
#[must_use]
pub fn told(hidden: &[PathBuf]) -> Option<String> {
    let shown: Vec<String> =
        hidden.iter().take(SHOWN_MAX).map(|name| escape(&name.to_string_lossy())).collect();
    let more = hidden.len().saturating_sub(SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!hidden.is_empty()).then(|| {
        format!(
            "hidden, since programs of this machine listen there: `{}`{more}",
            shown.join("`, `")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_bounded_and_escaped() {
        assert_eq!(told(&[]), None);
        let names: Vec<PathBuf> = (0..5).map(|n| format!("/w/a\u{1b}{n}").into()).collect();
        let told = told(&names).unwrap();
        assert!(told.ends_with(r"`/w/a\u{1b}2` and 2 more"), "{told}");
    }
}
