//! Control groups: limits of the whole tree, where this machine lets us make one.
//!
//! Version 2 where the supervisor's own group hands its controllers on or can be made to (`delegation`),
//! version 1 as root. Where
//! neither can be had the limits are resource limits alone, and `Enforced` says so. The monitor
//! makes the groups, the cell's first process joins them, the monitor removes them at the end.

use super::super::enforced::LimitsHeld;
use super::super::spec::Limits;
use super::super::wire::Cleaned;
use super::delegation::{hand_on, holder};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdir, openat, unlinkat};
use rustix::process::{Pid, getpid, getppid};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of one control file; the longest that is read is a page.
const CONTROL_BYTES_MAX: u64 = 4096;
/// Tries to remove a group whose last process may still be leaving it.
const REMOVE_TRIES: u32 = 100;
/// Where control groups are mounted by every distribution.
const MOUNT: &str = "/sys/fs/cgroup";

/// The control groups of one cell.
#[derive(Debug)]
pub(super) struct ControlGroup {
    held: LimitsHeld,
    groups: Vec<Group>,
}

/// One directory of a control group file system.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    directory: OwnedFd,
    /// Opened by the monitor, whose rights decide when the cell joins.
    members: OwnedFd,
}

impl ControlGroup {
    /// Whether there is anything for a control group to hold.
    pub(super) fn is_wanted(limits: &Limits) -> bool {
        limits.memory_bytes.is_some() || limits.processes.is_some()
    }

    /// Makes what can be made for these limits.
    pub(super) fn create(limits: &Limits) -> Self {
        let none = Self { held: LimitsHeld::Rlimit, groups: Vec::new() };
        if !Self::is_wanted(limits) {
            return none;
        }
        let Ok(own) = std::fs::read_to_string("/proc/self/cgroup") else { return none };
        if let Ok(group) = version_2(Path::new(MOUNT), &own, limits, |_group| {}) {
            return Self { held: LimitsHeld::CgroupV2, groups: vec![group] };
        }
        match version_1(&own, limits) {
            Ok(groups) => Self { held: LimitsHeld::CgroupV1, groups },
            Err(_) => none,
        }
    }

    /// Whether there is no group at all.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// What bounds the cell.
    pub(super) fn held(&self) -> LimitsHeld {
        self.held
    }

    /// Moves this process into the groups.
    pub(super) fn join(&self) -> io::Result<()> {
        self.add("0")
    }

    /// Moves a process into the groups that waits for it, so that it has started nothing yet.
    pub(super) fn take_in(&self, process: Pid) -> io::Result<()> {
        self.add(&process.as_raw_pid().to_string())
    }

    fn add(&self, process: &str) -> io::Result<()> {
        for group in &self.groups {
            rustix::io::write(&group.members, process.as_bytes())?;
        }
        Ok(())
    }

    /// Reads what the groups counted and removes them. Called when no process of the cell lives.
    pub(super) fn finish(self, cleaned: &mut Cleaned) {
        for group in &self.groups {
            let killed = ["memory.events", "memory.oom_control"]
                .iter()
                .find_map(|file| number_after(&group.read(file).ok()?, "oom_kill "));
            cleaned.killed_for_memory += killed.unwrap_or(0);
            let peak = ["memory.peak", "memory.max_usage_in_bytes"]
                .iter()
                .find_map(|file| group.read(file).ok()?.trim().parse().ok());
            cleaned.tree_memory_bytes = cleaned.tree_memory_bytes.or(peak);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVE_TRIES {
            match unlinkat(CWD, &self.path, AtFlags::REMOVEDIR) {
                Err(rustix::io::Errno::BUSY) => std::thread::sleep(Duration::from_millis(1)),
                Ok(()) | Err(_) => return,
            }
        }
    }
}

impl Group {
    /// Makes a group below `parent`. The kernel fills it; `made` is for a directory that is none of the
    /// kernel's.
    fn create(parent: &Path, made: impl FnOnce(&Path)) -> io::Result<Self> {
        let path = parent.join(format!("stoplog-{}", getpid().as_raw_pid()));
        mkdir(&path, Mode::from_raw_mode(0o755))?;
        made(&path);
        let open = || {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = openat(CWD, &path, flags, Mode::empty())?;
            let flags = OFlags::WRONLY | OFlags::CLOEXEC;
            let members = openat(&directory, "cgroup.procs", flags, Mode::empty())?;
            Ok::<_, rustix::io::Errno>((directory, members))
        };
        match open() {
            Ok((directory, members)) => Ok(Self { path, directory, members }),
            Err(error) => {
                unlinkat(CWD, &path, AtFlags::REMOVEDIR).ok();
                Err(error.into())
            }
        }
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&self.directory, file, flags, Mode::empty())?;
        File::from(file).write_all(value.as_bytes())
    }

    fn read(&self, file: &str) -> io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.directory, file, flags, Mode::empty())?;
        let mut text = String::new();
        File::from(file).take(CONTROL_BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    }
}

fn version_2(mount: &Path, own: &str, limits: &Limits, made: impl Fn(&Path)) -> io::Result<Group> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = mount.join(path.ok_or(io::ErrorKind::NotFound)?);
    let parent = holder(&own);
    limited_group(parent, limits, &made).or_else(|_handed_nothing_on| {
        let wanted =
            [("memory", limits.memory_bytes.is_some()), ("pids", limits.processes.is_some())];
        let wanted = wanted.into_iter().filter_map(|(name, is_wanted)| is_wanted.then_some(name));
        let supervisor = getppid().ok_or(io::ErrorKind::NotFound)?;
        hand_on(parent, supervisor, &wanted.collect::<Vec<_>>())?;
        limited_group(parent, limits, &made)
    })
}

fn limited_group(parent: &Path, limits: &Limits, made: impl Fn(&Path)) -> io::Result<Group> {
    let group = Group::create(parent, made)?;
    if let Some(bytes) = limits.memory_bytes {
        group.write("memory.max", &bytes.to_string())?;
        // Where swap is not accounted there is no such file, and no swap beyond the limit either.
        group.write("memory.swap.max", "0").ok();
        group.write("memory.oom.group", "1").ok();
    }
    if let Some(processes) = limits.processes {
        group.write("pids.max", &processes.to_string())?;
    }
    Ok(group)
}

fn version_1(own: &str, limits: &Limits) -> io::Result<Vec<Group>> {
    let mut groups = Vec::new();
    if let Some(bytes) = limits.memory_bytes {
        let group = Group::create(&version_1_parent(own, "memory")?, |_group| {})?;
        group.write("memory.limit_in_bytes", &bytes.to_string())?;
        // Where swap is not accounted there is no such file.
        group.write("memory.memsw.limit_in_bytes", &bytes.to_string()).ok();
        groups.push(group);
    }
    if let Some(processes) = limits.processes {
        let group = Group::create(&version_1_parent(own, "pids")?, |_group| {})?;
        group.write("pids.max", &processes.to_string())?;
        groups.push(group);
    }
    Ok(groups)
}

/// The supervisor's own group of a controller, from lines such as `4:memory:/user`.
fn version_1_parent(own: &str, controller: &str) -> io::Result<PathBuf> {
    let path = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    });
    let path = path.ok_or(io::ErrorKind::NotFound)?;
    Ok(Path::new(MOUNT).join(controller).join(path.trim_start_matches('/')))
}

fn number_after(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_controller_is_found_in_either_form() {
        let own = "8:pids,cpu:/a/b\n4:memory:/\n0::/user.slice\n";
        assert_eq!(version_1_parent(own, "cpu").unwrap(), Path::new("/sys/fs/cgroup/cpu/a/b"));
        assert_eq!(version_1_parent(own, "memory").unwrap(), Path::new("/sys/fs/cgroup/memory"));
        assert!(version_1_parent(own, "freezer").is_err());
    }

    const OWN: &str = "4:memory:/v1\n0::/user.slice/own\n";

    fn limits() -> Limits {
        Limits { memory_bytes: Some(1 << 20), processes: Some(7), ..Limits::default() }
    }

    /// A directory with the files that a kernel makes in a group; `controllers` are handed on to it.
    fn filled(group: &Path, controllers: &[&str]) {
        for file in ["cgroup.procs"].iter().chain(controllers) {
            File::create(group.join(file)).unwrap();
        }
    }

    #[test]
    fn a_group_of_version_2_takes_the_limits_and_tells_what_it_counted() {
        let mount = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(mount.path().join("user.slice/own")).unwrap();
        let files = ["memory.max", "memory.swap.max", "memory.oom.group", "pids.max"];
        let group = version_2(mount.path(), OWN, &limits(), |group| filled(group, &files)).unwrap();
        assert_eq!(group.path.parent().unwrap(), mount.path().join("user.slice/own"));
        let text = |group: &Group, file: &str| group.read(file).unwrap();
        let written = files.map(|file| text(&group, file));
        assert_eq!(written, ["1048576", "0", "1", "7"]);
        for (file, content) in
            [("memory.events", "oom 4\noom_kill 3\n"), ("memory.peak", "12345\n")]
        {
            File::create(group.path.join(file)).unwrap().write_all(content.as_bytes()).unwrap();
        }
        let members = group.path.join("cgroup.procs");
        let group = ControlGroup { held: LimitsHeld::CgroupV2, groups: vec![group] };
        group.join().unwrap();
        assert_eq!(std::fs::read_to_string(members).unwrap(), "0", "0 is whoever writes it");
        let mut cleaned = Cleaned::default();
        group.finish(&mut cleaned);
        assert_eq!((cleaned.killed_for_memory, cleaned.tree_memory_bytes), (3, Some(12_345)));
    }

    #[test]
    fn a_tree_of_version_2_that_hands_on_no_controller_gives_no_group_and_keeps_none() {
        let tree = || {
            let mount = tempfile::tempdir().unwrap();
            let own = mount.path().join("user.slice/own");
            std::fs::create_dir_all(&own).unwrap();
            (mount, own)
        };
        let (mount, _own) = tree();
        let only_pids = |group: &Path| filled(group, &["pids.max"]);
        assert!(version_2(mount.path(), OWN, &limits(), only_pids).is_err());
        let (mount, own) = tree();
        // A directory that is no group at all, as the top of version 1 is.
        assert!(version_2(mount.path(), OWN, &limits(), |_group| {}).is_err());
        assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0, "nothing is left");
        assert!(version_2(mount.path(), "4:memory:/v1\n", &limits(), |_group| {}).is_err());
    }

    #[test]
    fn kills_for_memory_are_counted_from_either_file() {
        assert_eq!(number_after("low 0\noom 3\noom_kill 2\n", "oom_kill "), Some(2));
        assert_eq!(
            number_after("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "oom_kill "),
            Some(1)
        );
    }
}
