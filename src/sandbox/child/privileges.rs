//! Who the program is, and what it may no longer do whoever it is.

use super::super::enforced::{AtStep, SetupFailed, Step};
use super::super::spec::Identity;
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities_secure_bits,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_no_new_privs,
};
use std::fs::OpenOptions;
use std::io::{self, Write};

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ids {
    uid: u32,
    gid: u32,
}

impl Ids {
    /// This process's own.
    pub(super) fn own() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }

    /// Those a spec asks to change to.
    pub(super) fn wanted(identity: Identity) -> Option<Self> {
        match identity {
            Identity::Caller => None,
            Identity::User { uid, gid } => Some(Self { uid, gid }),
        }
    }

    /// For `chown`.
    pub(super) fn owner(self) -> (rustix::process::Uid, rustix::process::Gid) {
        (rustix::process::Uid::from_raw(self.uid), rustix::process::Gid::from_raw(self.gid))
    }
}

/// Keeps the caller's own ids inside the new user namespace, and denies `setgroups`.
pub(super) fn map_identity(Ids { uid, gid }: Ids) -> io::Result<()> {
    let write = |file: &str, text: String| {
        OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
    };
    // The maps of a process that cannot be dumped belong to root.
    nix::sys::prctl::set_dumpable(true)?;
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    Ok(nix::sys::prctl::set_dumpable(false)?)
}

/// Takes the wanted ids and gives up every capability, for this process and all it will start.
pub(super) fn give_up(ids: Option<Ids>) -> Result<(), SetupFailed> {
    let root = rustix::thread::capabilities(None).at(Step::Capabilities)?;
    if root.permitted.contains(CapabilitySet::SETPCAP) {
        empty_bounding_set().at(Step::Capabilities)?;
        // Locked: not even a program that is root again by its file gets a capability from it.
        let bits = capabilities_secure_bits().at(Step::Capabilities)?
            | CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
        set_capabilities_secure_bits(bits).at(Step::Capabilities)?;
    }
    if let Some(Ids { uid, gid }) = ids {
        change_ids(Uid::from_raw(uid), Gid::from_raw(gid)).at(Step::Identity)?;
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).at(Step::Capabilities)?;
    // A change of ids may have reset it.
    nix::sys::prctl::set_dumpable(false).map_err(io::Error::from).at(Step::Undumpable)?;
    set_no_new_privs(true).at(Step::NoNewPrivileges)
}

fn change_ids(uid: Uid, gid: Gid) -> io::Result<()> {
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    Ok(setresuid(uid, uid, uid)?)
}

/// Removes every capability this kernel knows; the first unknown number ends the list.
fn empty_bounding_set() -> io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
