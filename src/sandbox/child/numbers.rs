//! A bound on the processes of a cell that binds root, too: the numbers that its process namespace
//! may give.
//!
//! `RLIMIT_NPROC` is none for root. Since Linux 6.14 each process namespace has a largest process
//! number of its own, and every process and thread takes one. On older kernels the same file is the
//! whole machine's; there it is left alone.

use super::super::spec::Limits;
use crate::base::limits::PROCESSES_MAX;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, Write as _};

/// First release in which the largest number is the namespace's own.
const OWN_SINCE: (u32, u32) = (6, 14);
/// Numbers that are not given again once all have been given; the kernel's `RESERVED_PIDS`. The bound
/// is above the limit by as many, so that it never refuses what the limit allows.
const RESERVED: u64 = 300;

/// Bounds the numbers of this process's namespace, whose `proc` file system is given, still writable.
pub(super) fn bound(processes: &OwnedFd, limits: &Limits) -> io::Result<()> {
    if !is_own(rustix::system::uname().release().to_str().unwrap_or_default()) {
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(processes, "sys/kernel/pid_max", flags, Mode::empty())?;
    let most = limits.processes.unwrap_or(PROCESSES_MAX).saturating_add(RESERVED + 1);
    File::from(file).write_all(most.min(NUMBERS_MAX).to_string().as_bytes())
}

/// The kernel's own bound (`PID_MAX_LIMIT` of a 64-bit machine).
const NUMBERS_MAX: u64 = 4 << 20;

/// Whether a kernel of this release has a largest number for each namespace.
fn is_own(release: &str) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OWN_SINCE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kernel_that_keeps_the_number_for_each_namespace_is_told_one() {
        for (release, own) in [
            ("6.14.0", true),
            ("6.18.44-fc-v857", true),
            ("7.0", true),
            ("6.14-rc1", true),
            ("6.13.99", false),
            ("5.15.0-1-generic", false),
            ("6", false),
            ("", false),
            ("x.y", false),
        ] {
            assert_eq!(is_own(release), own, "{release}");
        }
    }
}
