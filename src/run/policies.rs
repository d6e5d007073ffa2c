//! Which policy files count for a run, and whether they may be trusted. Reads files; what is in them
//! is the business of `policy`.

use super::environment::Environment;
use super::error::RunError;
use crate::base::limits::POLICY_BYTES_MAX;
use crate::policy::{self, Layer, PolicySet, PolicySource, built_in_source};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The administrator's policy of this machine.
const ADMINISTRATOR_FILE: &str = "/etc/stoplog/policy.toml";
/// The policy of a workspace, which may only ask and deny.
const WORKSPACE_FILE: &str = ".stoplog/policy.toml";
/// The policy of a run that names none.
const DEFAULT_POLICY: &str = "workspace";

/// Loads every layer: administrator, user, what the command line names, workspace.
///
/// # Errors
/// [`RunError::PolicySource`] for a file that may not be trusted or is missing,
/// [`RunError::Policy`] for what is wrong in any of them.
pub fn load(
    named: &[String],
    workspace: Option<&Path>,
    environment: &Environment,
) -> Result<PolicySet, RunError> {
    let default = [DEFAULT_POLICY.to_owned()];
    let named = if named.is_empty() { &default } else { named };
    let named = named.iter().map(|name| by_name(name)).collect::<Result<Vec<_>, _>>()?;
    load_sources(layers(named, workspace, environment)?)
}

/// Loads the policies that an earlier run was given, as its log holds them, with the administrator's,
/// the user's and the workspace's as they are now.
///
/// # Errors
/// As [`load`].
pub fn load_again(
    named: Vec<PolicySource>,
    extended: &[PolicySource],
    workspace: &Path,
    environment: &Environment,
) -> Result<PolicySet, RunError> {
    let known: Vec<PolicySource> = named.iter().chain(extended).cloned().collect();
    let resolve = |name: &str| {
        let recorded = known.iter().find(|source| source.name == name).cloned();
        recorded.or_else(|| read_file(Path::new(name), Layer::Explicit).ok())
    };
    let sources = layers(named, Some(workspace), environment)?;
    policy::load(sources, &resolve).map_err(RunError::Policy)
}

/// `named` between the layers around it.
fn layers(
    named: Vec<PolicySource>,
    workspace: Option<&Path>,
    environment: &Environment,
) -> Result<Vec<PolicySource>, RunError> {
    let mut sources = Vec::new();
    sources.extend(administrator(Path::new(ADMINISTRATOR_FILE))?);
    if let Some(directory) = environment.config_directory() {
        sources.extend(optional(&directory.join("policy.toml"), Layer::User)?);
    }
    sources.extend(named);
    if let Some(workspace) = workspace {
        sources.extend(optional(&workspace.join(WORKSPACE_FILE), Layer::Workspace)?);
    }
    Ok(sources)
}

/// Loads exactly `sources`; what they extend is a built-in name or a file.
///
/// # Errors
/// [`RunError::Policy`].
pub fn load_sources(sources: Vec<PolicySource>) -> Result<PolicySet, RunError> {
    let resolve = |name: &str| read_file(Path::new(name), Layer::Explicit).ok();
    policy::load(sources, &resolve).map_err(RunError::Policy)
}

/// Loads policies whose texts a log holds: what they extend is among them, whatever the disk has now.
///
/// # Errors
/// [`RunError::Policy`].
pub fn load_recorded(
    given: Vec<PolicySource>,
    extended: &[PolicySource],
) -> Result<PolicySet, RunError> {
    let known: Vec<PolicySource> = given.iter().chain(extended).cloned().collect();
    let resolve = |name: &str| known.iter().find(|source| source.name == name).cloned();
    policy::load(given, &resolve).map_err(RunError::Policy)
}

/// Loads `sources`; what they extend is a built-in name, a file, or one of `recorded` where there is no
/// such file any more.
///
/// # Errors
/// [`RunError::Policy`].
pub fn load_among(
    sources: Vec<PolicySource>,
    recorded: &[PolicySource],
) -> Result<PolicySet, RunError> {
    let resolve = |name: &str| {
        let file = read_file(Path::new(name), Layer::Explicit).ok();
        file.or_else(|| recorded.iter().find(|source| source.name == name).cloned())
    };
    policy::load(sources, &resolve).map_err(RunError::Policy)
}

/// A built-in policy, or a file.
///
/// # Errors
/// [`RunError::PolicySource`] if it is neither.
pub fn by_name(name: &str) -> Result<PolicySource, RunError> {
    if let Some(source) = built_in_source(name) {
        return Ok(source);
    }
    let path = Path::new(name);
    read_file(path, Layer::Explicit).map_err(|problem| {
        let names = policy::BUILT_IN_NAMES.join(", ");
        let shown = crate::base::text::escape(name);
        RunError::PolicySource(format!(
            "policy `{shown}`: {problem}; give a file, or one of the built-in policies {names}"
        ))
    })
}

/// The administrator's file must belong to root and be writable by nobody else.
fn administrator(path: &Path) -> Result<Option<PolicySource>, RunError> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(None) };
    if metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
        return Err(RunError::PolicySource(format!(
            "administrator policy `{}` must belong to root and be writable by root alone \
             (chown root, chmod go-w); the run stops",
            path.display()
        )));
    }
    optional(path, Layer::Administrator)
}

/// A file that need not exist; one that exists must be readable.
fn optional(path: &Path, layer: Layer) -> Result<Option<PolicySource>, RunError> {
    if std::fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    let unusable = |problem| {
        let layer = layer.as_str();
        RunError::PolicySource(format!("{layer} policy `{}`: {problem}", path.display()))
    };
    read_file(path, layer).map(Some).map_err(unusable)
}

fn read_file(path: &Path, layer: Layer) -> Result<PolicySource, String> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, rustix::fs::Mode::empty());
    let file = File::from(file.map_err(|errno| std::io::Error::from(errno).to_string())?);
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(POLICY_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line} is not UTF-8 text")
    })?;
    Ok(PolicySource { name: path.display().to_string(), layer, text })
}

/// What of stoplog itself no tool may touch: its directories, and every policy file in force.
#[must_use]
pub fn protected(
    state: &Path,
    workspace: &Path,
    set: &PolicySet,
    environment: &Environment,
) -> Vec<PathBuf> {
    let mut protected = vec![state.to_owned(), PathBuf::from("/etc/stoplog")];
    protected.extend(environment.config_directory());
    protected.push(workspace.join(WORKSPACE_FILE));
    let files = set.files().into_iter().filter(|file| file.layer == Layer::Explicit);
    protected.extend(files.filter_map(|file| std::fs::canonicalize(&file.name).ok()));
    protected
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_that_others_may_write_is_no_administrator_policy() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy.toml");
        std::fs::File::create(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
        let error = administrator(&path).unwrap_err();
        assert!(error.to_string().contains("chmod go-w"), "{error}");
        assert!(administrator(&directory.path().join("absent")).unwrap().is_none());
    }

    #[test]
    fn unreadable_policies_say_what_to_give_instead() {
        let directory = tempfile::tempdir().unwrap();
        let binary = directory.path().join("binary.toml");
        std::io::Write::write_all(&mut std::fs::File::create(&binary).unwrap(), b"a = 1\n\xff")
            .unwrap();
        for (name, told) in [
            ("no-such-policy", "built-in policies base"),
            (directory.path().to_str().unwrap(), "not a regular file"),
            (binary.to_str().unwrap(), "line 2 is not UTF-8"),
            ("/dev/zero", "not a regular file"),
        ] {
            let error = by_name(name).unwrap_err().to_string();
            assert!(error.contains(told), "{name}: {error}");
        }
    }
}
