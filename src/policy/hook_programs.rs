//! Whether a hook could be changed by the calls that it judges: its program, or the script that it
//! hands to an interpreter, must not lie where tools may write. A mask would not do, since whoever may
//! write a directory may put another in its place.

use super::bound::{BindError, BoundPolicy};
use super::file::schema::Decision;
use super::judge::Query;
use super::judgement::SubjectKind;
use super::unit::Hook;
use crate::base::paths::is_within;
use crate::call::effects::{Access, Effects, PathUse};
use crate::call::shell::{ShellContext, analyse};
use std::path::Path;

/// Refuses the first hook that tools could rewrite.
pub(super) fn check(policy: &BoundPolicy) -> Result<(), BindError> {
    for hook in policy.hooks() {
        for path in programs(hook, policy) {
            if is_writable(policy, &path) && !is_shown_from_outside(hook, policy, &path.path) {
                let path = crate::base::text::escape(&path.path.to_string_lossy());
                return Err(BindError::Hook { hook: hook.meta.id.clone(), path });
            }
        }
    }
    Ok(())
}

/// The files that the hook runs, as the analysis of scripts finds them. It starts in the workspace.
fn programs(hook: &Hook, policy: &BoundPolicy) -> Vec<PathUse> {
    let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let command = hook.argv.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let context = ShellContext {
        cwd: policy.places().workspace.clone(),
        home: policy.places().home.clone(),
        ..ShellContext::default()
    };
    let paths = analyse(&command, &context).paths;
    paths.into_iter().filter(|path| path.access == Access::Execute).collect()
}

/// The temporary directories of a cell are its session's own. A program of the machine's that a hook
/// names there is put over them, so no call sees it; what an interpreter reads there is the session's.
fn is_shown_from_outside(hook: &Hook, policy: &BoundPolicy, path: &Path) -> bool {
    let places = policy.places();
    let is_temporary = is_within(path, &places.tmp) || is_within(path, Path::new("/var/tmp"));
    let is_program = hook.argv.first().is_some_and(|program| Path::new(program) == path);
    is_program && is_temporary && !is_within(path, &places.workspace)
}

fn is_writable(policy: &BoundPolicy, path: &PathUse) -> bool {
    let write = PathUse { access: Access::Write, ..path.clone() };
    let effects = Effects { paths: vec![write], ..Effects::default() };
    let judgement = policy.judge(&Query {
        tool: "write",
        role: None,
        effects: &effects,
        real_paths: &[],
        arguments: &serde_json::Value::Null,
        headless: false,
    });
    let writes = judgement.findings.iter().filter(|finding| finding.kind == SubjectKind::Write);
    writes.map(|finding| finding.decision).max() == Some(Decision::Allow)
}
