//! Survivors without a PID namespace: everything that descends from the monitor.
//!
//! The monitor is a subreaper, so a process whose parent ends becomes the monitor's child and never
//! leaves the tree, whatever session or group it moves to.

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use std::collections::{HashMap, HashSet};
use std::io;

/// Makes this process the parent of every descendant whose own parent ends.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

/// Signals every descendant that is not a zombie; how many there were.
pub(super) fn signal_descendants(signal: Signal) -> usize {
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
    descendants.into_iter().filter(|pid| signal_one(*pid, &parents, signal)).count()
}

/// Signals through a handle, so that a number that was given to another process meanwhile is safe:
/// the parent is read again after the handle is held.
fn signal_one(pid: i32, parents: &HashMap<i32, i32>, signal: Signal) -> bool {
    let Some(handle) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
    else {
        return false;
    };
    let known = parents.get(&pid).copied();
    let now = parent(pid);
    let same = now.is_some() && (now == known || now == Some(getpid().as_raw_pid()));
    same && pidfd_send_signal(handle, signal).is_ok()
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
