//! Survivors without a PID namespace: everything that descends from the monitor.
//!
//! The monitor is a subreaper, so a process whose parent ends becomes the monitor's child and never
//! leaves the tree, whatever session or group it moves to.

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::collections::{HashMap, HashSet};
use std::io;

/// Makes this process the parent of every descendant whose own parent ends.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

/// Signals every descendant that is seen now and is not a zombie. The look takes time, so a process
/// may be missed whose parent ends during it; who wants to end the tree looks until it has no child.
/// Each signal goes to all before the next one goes to any.
pub(super) fn signal_descendants(signals: &[Signal]) {
    let parents = parents();
    let mut descendants = HashSet::from([getpid().as_raw_pid()]);
    // Children may be listed before their parents: until nothing new is found.
    loop {
        let more: Vec<i32> = parents
            .iter()
            .filter(|(pid, parent)| descendants.contains(parent) && !descendants.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            break;
        }
        descendants.extend(more);
    }
    descendants.remove(&getpid().as_raw_pid());
    let handles: Vec<OwnedFd> =
        descendants.into_iter().filter_map(|pid| handle(pid, &parents)).collect();
    for signal in signals {
        for handle in &handles {
            pidfd_send_signal(handle, *signal).ok();
        }
    }
}

/// A handle on a process that is still the one that was seen: its number may have been given to
/// another meanwhile, so the parent is read again after the handle is held.
fn handle(pid: i32, parents: &HashMap<i32, i32>) -> Option<OwnedFd> {
    let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let now = parent(pid);
    let same = now == parents.get(&pid).copied() || now == Some(getpid().as_raw_pid());
    (now.is_some() && same).then_some(handle)
}

/// Parents of all processes that are not zombies.
fn parents() -> HashMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| Some((pid, parent(pid)?))).collect()
}

/// The parent of a process; `None` when it is gone or a zombie.
fn parent(pid: i32) -> Option<i32> {
    let status = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command stands in parentheses and may hold anything, so fields start after the last one.
    let end = status.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(status.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}
