//! The cell of a run: the policy's plan with this machine's environment, identity and directories.

use super::environment::Environment;
use super::error::RunError;
use super::git_identity;
use crate::chain::cell::CellBase;
use crate::policy::{BoundPolicy, IdentitySetting};
use crate::sandbox::probe::{self, ProbeFault, Unproven};
use crate::sandbox::{
    self, Cancel, Enforced, Identity, Launcher, Namespaces, Program, SandboxSpec, ScratchFile,
};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Where programs are looked for if the caller's environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The directory below the temporary one that TMPDIR names. `/tmp` itself cannot be removed in a cell,
/// and a command that puts its temporary directory away must not fail for that.
const OWN_TMP: &str = "cell";

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
    /// Whether nobody is there to be told what is lost.
    pub unwatched: bool,
}

/// The base of every cell of the run.
///
/// # Errors
/// If the temporary directory cannot be given to the user that tools run as.
pub fn base(policy: &BoundPolicy, inputs: CellInputs<'_>) -> Result<CellBase, RunError> {
    let plan = policy.cell();
    let identity = identity(plan.identity, inputs.workspace)?;
    let mut base = CellBase {
        environment: environment(policy, inputs.environment),
        workspace: inputs.workspace.to_owned(),
        private_tmp: None,
        scratch: Vec::new(),
        scratch_files: Vec::new(),
        quarantine: inputs.quarantine,
        identity,
        namespaces: inputs.namespaces,
        unwatched: inputs.unwatched,
        plan,
    };
    // A home directory that is not granted exists, empty: tools look for their files there and go on.
    if let Some(home) = policy.places().home.clone().filter(|home| !base.grants_path(home)) {
        if policy.environment().passes(git_identity::PASSED_AS) {
            let content = git_identity::settings(inputs.environment);
            let path = home.join(".gitconfig");
            base.scratch_files.extend(content.map(|content| ScratchFile { path, content }));
        }
        base.scratch.push(home);
    }
    if let Some(tmp) = inputs.private_tmp {
        give_tmp(&mut base, tmp)?;
    }
    Ok(base)
}

/// Gives the cells a directory of this machine as their temporary one.
///
/// # Errors
/// If it cannot be given to the user that tools run as.
pub fn give_tmp(base: &mut CellBase, tmp: PathBuf) -> Result<(), RunError> {
    if let Identity::User { uid, gid } = base.identity {
        std::os::unix::fs::lchown(&tmp, Some(uid), Some(gid))?;
    }
    base.private_tmp = Some(tmp);
    Ok(())
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
    let tmp = variables.entry("TMPDIR".into()).or_default();
    if tmp.is_empty() || Path::new(tmp.as_os_str()) == rules.tmp {
        *tmp = rules.tmp.join(OWN_TMP).into();
    }
    if let Some(home) = &policy.places().home {
        variables.insert("HOME".into(), home.into());
    }
    variables.into_iter().collect()
}

/// Makes one cell as the policy describes it, tries one act for each layer in it, and reports what the
/// kernel enforces: the cheap part of the self-test, done before anything else of a run happens.
/// `canary` is a file that the probe made and no cell of the run sees.
///
/// # Errors
/// [`RunError::Sandbox`] if no cell can be made, or one that lacks what the policy requires;
/// [`RunError::Unproven`] if an act works that must not.
pub fn prove(base: &CellBase, canary: &Path) -> Result<Enforced, RunError> {
    let spec = base.spec(Program::FileJob { job: Vec::new() }, &[]);
    // A policy may grant the place; then nothing is there to prove with, and reading it is no fault.
    if base.grants_path(canary) {
        return enforced(&spec);
    }
    match probe::prove(&Launcher::default(), &spec, canary) {
        Ok(enforced) => Ok(enforced),
        Err(Unproven::Fault(ProbeFault::Setup(failed))) => Err(failed.into()),
        Err(unproven) => Err(unproven.into()),
    }
}

/// What the kernel enforces in a cell of `spec`, which is started and ended.
///
/// # Errors
/// [`RunError::Sandbox`] if it does not start.
pub fn enforced(spec: &SandboxSpec) -> Result<Enforced, RunError> {
    let running = sandbox::launch(spec)?;
    let enforced = running.enforced().clone();
    drop(running.wait(&Cancel::new()));
    Ok(enforced)
}
