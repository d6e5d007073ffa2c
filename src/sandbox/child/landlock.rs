//! Landlock: the second wall for files, and the only one where there is no mount view.
//!
//! Every right and both scopes that the kernel's version knows are in one rule set. Nothing is best
//! effort: an error fails the launch, and the version is reported.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::spec::{GrantAccess, LandlockVersions};
use super::super::sys;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fd::OwnedFd;
use std::io;

/// Rights below one open path.
#[derive(Debug)]
pub(super) struct Rule {
    /// The path, opened as a path.
    pub(super) node: OwnedFd,
    /// Whether it is a directory; a file takes file rights alone.
    pub(super) directory: bool,
    /// What may be done below it.
    pub(super) rights: Rights,
}

/// The version that scopes signals and abstract sockets.
pub(super) const SCOPES_SINCE: u32 = 6;
/// The version that handles the cutting of files.
const TRUNCATE_SINCE: u32 = 3;
/// The version that handles TCP.
const NETWORK_SINCE: u32 = 4;

/// Sets of rights that a cell needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    /// Those of a grant.
    Grant(GrantAccess),
    /// Names of a directory of the view's own, no content.
    List,
    /// Devices: read, write, control.
    Devices,
}

impl Rights {
    fn access(self, abi: ABI) -> BitFlags<AccessFs> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        match self {
            Self::List => AccessFs::ReadDir.into(),
            Self::Devices => {
                (read | AccessFs::WriteFile | AccessFs::IoctlDev) & AccessFs::from_all(abi)
            }
            Self::Grant(access) => {
                let mut rights = read;
                if access.executes() {
                    rights |= AccessFs::Execute;
                }
                if access.writes() {
                    // REFER with them: without it a rename between two directories fails.
                    rights |= AccessFs::from_write(abi)
                        & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
                }
                rights & AccessFs::from_all(abi)
            }
        }
    }
}

/// What Landlock does about TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tcp {
    /// No port can be bound or connected to.
    Denied,
    /// Left alone: the network is granted, or it is an empty one of the cell's own, in which a test
    /// suite may serve itself.
    Free,
}

/// What is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InForce {
    /// The version of the interface.
    pub(super) version: u32,
    /// The kernel's version, where the spec asked for an older one.
    pub(super) capped_from: Option<u32>,
}

/// The version to use on a kernel that has `kernel`.
fn chosen(wanted: LandlockVersions, kernel: u32) -> Result<InForce, SetupFailed> {
    let version = wanted.at_most.map_or(kernel, |most| most.min(kernel));
    if version < wanted.at_least.max(1) {
        let subject = format!("version {version} is there and {} is needed", wanted.at_least);
        return Err(SetupFailed::because(Step::Landlock, subject));
    }
    Ok(InForce { version, capped_from: (version < kernel).then_some(kernel) })
}

/// Restricts this process for good.
pub(super) fn restrict(
    rules: &[Rule],
    tcp: Tcp,
    wanted: LandlockVersions,
) -> Result<InForce, SetupFailed> {
    let kernel = sys::landlock_abi().at(Step::Landlock)?;
    let kernel = u32::try_from(kernel).map_err(io::Error::other).at(Step::Landlock)?;
    let in_force = chosen(wanted, kernel)?;
    let version = in_force.version;
    let abi = ABI::from(i32::try_from(version).map_err(io::Error::other).at(Step::Landlock)?);
    let enforce = || -> Result<RulesetStatus, landlock::RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))?;
        if tcp == Tcp::Denied && version >= NETWORK_SINCE {
            ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
        }
        if version >= SCOPES_SINCE {
            ruleset = ruleset.scope(Scope::from_all(abi))?;
        }
        let mut created = ruleset.create()?;
        for rule in rules {
            let mut access = rule.rights.access(abi);
            if !rule.directory {
                access &= AccessFs::from_file(abi);
            }
            created = created.add_rule(PathBeneath::new(&rule.node, access))?;
        }
        Ok(created.restrict_self()?.ruleset)
    };
    match enforce() {
        Ok(RulesetStatus::FullyEnforced) => Ok(in_force),
        Ok(RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced) => {
            Err(SetupFailed::because(Step::Landlock, "the kernel enforces only a part of it"))
        }
        Err(error) => Err(SetupFailed::because(Step::Landlock, error.to_string())),
    }
}

/// Refuses a kernel on which content outside the grants could be destroyed: below version 3 only a
/// view of its own keeps a cell from cutting a file that its user may write.
pub(super) fn must_hold_content(mount_view: bool, version: u32) -> Result<(), SetupFailed> {
    if mount_view || version >= TRUNCATE_SINCE {
        return Ok(());
    }
    let subject = format!(
        "version {version} does not hold the cutting of files, and there is no view that does; a \
         kernel from 6.2 on, or one that gives namespaces, is needed"
    );
    Err(SetupFailed::because(Step::Landlock, subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_only_ever_lowered_and_never_below_what_is_needed() {
        let wanted = |at_least, at_most| LandlockVersions { at_least, at_most };
        let in_force = |version, capped_from| Some(InForce { version, capped_from });
        for (wanted, kernel, expected) in [
            (wanted(1, None), 7, in_force(7, None)),
            (wanted(1, Some(3)), 7, in_force(3, Some(7))),
            (wanted(1, Some(9)), 7, in_force(7, None)),
            (wanted(6, None), 5, None),
            (wanted(6, Some(5)), 7, None),
            (wanted(0, Some(0)), 7, None),
            (wanted(1, None), 0, None),
        ] {
            assert_eq!(chosen(wanted, kernel).ok(), expected, "{wanted:?} {kernel}");
        }
    }

    #[test]
    fn without_a_view_a_kernel_that_lets_files_be_cut_is_refused() {
        for (mount_view, version, held) in [
            (true, 1, true),
            (false, 1, false),
            (false, 2, false),
            (false, 3, true),
            (true, 7, true),
        ] {
            assert_eq!(
                must_hold_content(mount_view, version).is_ok(),
                held,
                "{mount_view} {version}"
            );
        }
    }
}
