//! The cell of a run: the policy's plan with this machine's environment, identity and directories.

use super::environment::Environment;
use super::error::RunError;
use crate::chain::cell::CellBase;
use crate::policy::{BoundPolicy, CellLayer, IdentitySetting};
use crate::sandbox::{self, Cancel, Enforced, Identity, Namespaces, Program};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Where programs are looked for if the caller's environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a run brings to its cells.
#[derive(Debug, Clone)]
pub struct CellInputs<'a> {
    /// The caller's environment.
    pub environment: &'a Environment,
    /// The workspace, resolved.
    pub workspace: &'a Path,
    /// The session's temporary directory.
    pub private_tmp: Option<PathBuf>,
    /// Where protected names that a call creates are moved to.
    pub quarantine: Option<PathBuf>,
    /// Whether namespaces may be used.
    pub namespaces: Namespaces,
}

/// The base of every cell of the run.
///
/// # Errors
/// If the temporary directory cannot be given to the user that tools run as.
pub fn base(policy: &BoundPolicy, inputs: CellInputs<'_>) -> Result<CellBase, RunError> {
    let plan = policy.cell();
    let identity = identity(plan.identity, inputs.workspace)?;
    if let (Identity::User { uid, gid }, Some(tmp)) = (identity, &inputs.private_tmp) {
        std::os::unix::fs::lchown(tmp, Some(uid), Some(gid))?;
    }
    let mut base = CellBase {
        environment: environment(policy, inputs.environment),
        workspace: inputs.workspace.to_owned(),
        private_tmp: inputs.private_tmp,
        scratch: Vec::new(),
        quarantine: inputs.quarantine,
        identity,
        namespaces: inputs.namespaces,
        plan,
    };
    // A home directory that is not granted exists, empty: tools look for their files there and go on.
    base.scratch.extend(policy.places().home.clone().filter(|home| !base.grants_path(home)));
    Ok(base)
}

/// Tools of a supervisor that root started run as the workspace's owner, so that its files look the
/// same inside and outside.
fn identity(setting: Option<IdentitySetting>, workspace: &Path) -> Result<Identity, RunError> {
    let root = rustix::process::geteuid().is_root();
    Ok(match setting {
        Some(IdentitySetting::Caller) => Identity::Caller,
        Some(IdentitySetting::User { uid, gid }) => Identity::User { uid, gid },
        Some(IdentitySetting::WorkspaceOwner) | None if root => {
            let owner = std::fs::metadata(workspace)?;
            match owner.uid() {
                0 => Identity::Caller,
                uid => Identity::User { uid, gid: owner.gid() },
            }
        }
        Some(IdentitySetting::WorkspaceOwner) | None => Identity::Caller,
    })
}

/// What the policy passes on, what it sets, and what every program needs.
fn environment(policy: &BoundPolicy, caller: &Environment) -> Vec<(OsString, OsString)> {
    let rules = policy.environment();
    let mut variables: std::collections::BTreeMap<OsString, OsString> = caller
        .iter()
        .filter(|(name, _)| name.to_str().is_some_and(|name| rules.passes(name)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    variables.extend(rules.set.iter().map(|(name, value)| (name.into(), value.into())));
    variables.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    variables.entry("LANG".into()).or_insert_with(|| "C.UTF-8".into());
    variables.insert("TERM".into(), "dumb".into());
    variables.insert("TMPDIR".into(), rules.tmp.into());
    if let Some(home) = &policy.places().home {
        variables.insert("HOME".into(), home.into());
    }
    variables.into_iter().collect()
}

/// Makes one cell and reports what the kernel enforces in it: the cheap part of the self-test, done
/// before anything else of a run happens.
///
/// # Errors
/// [`RunError::Sandbox`] if no cell can be made, [`RunError::Guarantee`] if a layer that the policy
/// requires is missing.
pub fn probe(base: &CellBase) -> Result<Enforced, RunError> {
    let spec = base.spec(Program::FileJob { job: Vec::new() }, &[]);
    let running = sandbox::launch(&spec)?;
    let enforced = running.enforced().clone();
    drop(running.wait(&Cancel::new()));
    for layer in &base.plan.require {
        // Without a limit over the whole tree there is nothing for a control group to hold.
        let moot = *layer == CellLayer::Cgroup
            && base.plan.limits.memory_bytes.is_none()
            && base.plan.limits.processes.is_none();
        if !moot && !has(&enforced, *layer) {
            let word = serde_json::to_value(layer).unwrap_or_default();
            let word = word.as_str().unwrap_or("a layer").to_owned();
            return Err(RunError::Guarantee(format!(
                "the policy requires `{word}`, and this machine gives {enforced}; see `stoplog doctor`"
            )));
        }
    }
    Ok(enforced)
}

fn has(enforced: &Enforced, layer: CellLayer) -> bool {
    let namespace = |name: &str| enforced.namespaces.iter().any(|known| known == name);
    match layer {
        CellLayer::MountView => enforced.mount_view,
        CellLayer::Landlock => enforced.landlock_abi > 0,
        CellLayer::Seccomp => enforced.seccomp,
        CellLayer::NetworkNamespace => namespace("net"),
        CellLayer::PidNamespace => namespace("pid"),
        CellLayer::Cgroup => enforced.limits != sandbox::LimitsHeld::Rlimit,
    }
}
