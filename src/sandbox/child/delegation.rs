//! Version 2 of control groups: makes the group that stoplog was started in hand its controllers on.
//!
//! The kernel lets a group do that only while no process is right in it. Where it holds nobody but the
//! supervisor and what that started (a scope of its own, a container's first process), all of them
//! move one level down, and groups for cells are made beside them. Somebody else's process is never
//! moved: then there is no group, and the limits are resource limits.

use rustix::fs::{AtFlags, CWD, Mode, mkdir, unlinkat};
use rustix::process::Pid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Bytes of one control file that are read: a list of some hundred processes.
const CONTROL_BYTES_MAX: u64 = 16 * 1024;
/// Looks at who is left: whatever starts meanwhile is moved by the next one.
const LOOKS_MAX: u32 = 100;
/// Processes from one to the supervisor that started it.
const ANCESTORS_MAX: u32 = 64;
/// How the group ends that the supervisor moves to.
const OWN_LEAF: &str = "-itself";

/// The group that cells' groups are made in: the one around a group that [`hand_on`] has made.
pub(super) fn holder(own: &Path) -> &Path {
    let name = own.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_leaf = name.starts_with("stoplog-") && name.ends_with(OWN_LEAF);
    own.parent().filter(|_| is_leaf).unwrap_or(own)
}

/// Makes `group` hand `controllers` on, which needs that only `supervisor` and its descendants are in it.
pub(super) fn hand_on(group: &Path, supervisor: Pid, controllers: &[&str]) -> io::Result<()> {
    let available = read(group, "cgroup.controllers")?;
    let has = |wanted: &&str| available.split_whitespace().any(|name| name == *wanted);
    if !controllers.iter().all(has) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let members = members(group)?;
    let is_ours = |pid: &i32| descends(*pid, supervisor);
    if !members.contains(&supervisor.as_raw_pid()) || !members.iter().all(is_ours) {
        return Err(io::Error::other("the group holds processes of others"));
    }
    let leaf = group.join(format!("stoplog-{}{OWN_LEAF}", supervisor.as_raw_pid()));
    match mkdir(&leaf, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let words: Vec<String> = controllers.iter().map(|name| format!("+{name}")).collect();
    let handed = move_all(group, &leaf)
        .and_then(|()| write(group, "cgroup.subtree_control", &words.join(" ")));
    if handed.is_err() {
        // As it was before; what cannot be moved back stays where it is, which harms nobody.
        drop(move_all(&leaf, group));
        unlinkat(CWD, &leaf, AtFlags::REMOVEDIR).ok();
    }
    handed
}

/// Moves every process of one group to another.
fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for _look in 0..LOOKS_MAX {
        let members = members(from)?;
        if members.is_empty() {
            return Ok(());
        }
        for pid in members {
            match write(to, "cgroup.procs", &pid.to_string()) {
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                moved => moved?,
            }
        }
    }
    Err(io::Error::other("processes start faster than they can be moved"))
}

fn members(group: &Path) -> io::Result<Vec<i32>> {
    let text = read(group, "cgroup.procs")?;
    // A process of another namespace is shown as 0, and is somebody else's.
    Ok(text.lines().map(|line| line.trim().parse().unwrap_or(0)).collect())
}

/// Whether a process is `ancestor` or was started by it, in however many steps.
fn descends(pid: i32, ancestor: Pid) -> bool {
    let mut at = pid;
    for _step in 0..ANCESTORS_MAX {
        if at == ancestor.as_raw_pid() {
            return true;
        }
        let Some(parent) = parent(at) else { return false };
        at = parent;
    }
    false
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything.
    let after = stat.rsplit_once(')')?.1;
    after.split_whitespace().nth(1)?.parse().ok()
}

fn read(group: &Path, file: &str) -> io::Result<String> {
    let mut text = String::new();
    let most = CONTROL_BYTES_MAX;
    if File::open(group.join(file))?.take(most).read_to_string(&mut text)? as u64 == most {
        return Err(io::Error::other("a control file is too long"));
    }
    Ok(text)
}

fn write(group: &Path, file: &str, value: &str) -> io::Result<()> {
    let path: PathBuf = group.join(file);
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test has processes to move")]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn pid(child: &Child) -> Pid {
        Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
    }

    /// A group of this kernel, in a tree of version 2 that has `controller` to hand on. It and what is
    /// below it are removed, and what the tree handed on before is what it hands on again.
    struct Live(PathBuf, Option<(PathBuf, String)>);

    impl Live {
        fn make(name: &str, controller: &str) -> Option<Self> {
            let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
            let mount = mounts.lines().find_map(|line| {
                let mut words = line.split(' ').skip(1);
                let place = words.next()?;
                (words.next()? == "cgroup2").then(|| PathBuf::from(place))
            })?;
            let has = |file| read(&mount, file).is_ok_and(|text| text.contains(controller));
            if !has("cgroup.controllers") {
                return None;
            }
            // The top group may hand on beside its processes.
            let mut undo = None;
            if !has("cgroup.subtree_control") {
                write(&mount, "cgroup.subtree_control", &format!("+{controller}")).ok()?;
                undo = Some((mount.clone(), format!("-{controller}")));
            }
            let group = mount.join(format!("stoplog-test-{name}-{}", std::process::id()));
            fs::create_dir(&group).ok()?;
            Some(Self(group, undo))
        }

        fn join(&self, child: &Child) {
            write(&self.0, "cgroup.procs", &child.id().to_string()).unwrap();
        }

        fn below(&self) -> Vec<PathBuf> {
            let entries = fs::read_dir(&self.0).unwrap().flatten();
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
        }
    }

    impl Drop for Live {
        fn drop(&mut self) {
            for path in self.below().into_iter().chain([self.0.clone()]) {
                drop(fs::remove_dir(path));
            }
            if let Some((mount, undo)) = &self.1 {
                drop(write(mount, "cgroup.subtree_control", undo));
            }
        }
    }

    fn end(children: impl IntoIterator<Item = Child>) {
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The kernel's own rule, with a controller that no limit of ours needs: machines on which version 1
    /// has memory and pids often have it left.
    const CONTROLLER: &str = "hugetlb";

    #[test]
    fn a_group_with_the_supervisor_alone_hands_on_and_one_with_others_is_left() {
        let Some(live) = Live::make("alone", CONTROLLER) else {
            eprintln!("NOT RUN: no writable tree of version 2 has `{CONTROLLER}` to hand on");
            return;
        };
        let (supervisor, other) = (sleeper(), sleeper());
        live.join(&supervisor);
        live.join(&other);
        let refused = write(&live.0, "cgroup.subtree_control", &format!("+{CONTROLLER}"));
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EBUSY), "the control");
        assert!(hand_on(&live.0, pid(&supervisor), &[CONTROLLER]).is_err());
        assert_eq!(
            (members(&live.0).unwrap().len(), live.below().len()),
            (2, 0),
            "nobody was moved"
        );
        end([other]);
        assert!(hand_on(&live.0, pid(&supervisor), &["no-such-controller"]).is_err());
        assert_eq!((members(&live.0).unwrap().len(), live.below().len()), (1, 0));
        hand_on(&live.0, pid(&supervisor), &[CONTROLLER]).unwrap();
        assert_eq!(read(&live.0, "cgroup.subtree_control").unwrap().trim(), CONTROLLER);
        let own = live.below().pop().unwrap();
        assert_eq!(members(&own).unwrap(), [pid(&supervisor).as_raw_pid()]);
        assert_eq!(holder(&own), live.0);
        // What was made possible: a group beside it that has the controller.
        fs::create_dir(live.0.join("cell")).unwrap();
        let has = |path: &Path| read(path, "cgroup.controllers").unwrap().contains(CONTROLLER);
        assert!(has(&live.0.join("cell")));
        // A second time nothing is left to do.
        assert!(hand_on(&live.0, pid(&supervisor), &[CONTROLLER]).is_err());
        end([supervisor]);
    }

    #[test]
    fn descent_is_told_by_the_chain_of_parents() {
        let child = sleeper();
        let own = Pid::from_raw(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(descends(pid(&child).as_raw_pid(), own) && descends(own.as_raw_pid(), own));
        assert!(!descends(own.as_raw_pid(), pid(&child)) && !descends(0, own));
        end([child]);
    }

    #[test]
    fn only_a_group_of_our_own_making_is_left_upwards() {
        for (own, expected) in [
            ("/c/a.scope/stoplog-7-itself", "/c/a.scope"),
            ("/c/a.scope", "/c/a.scope"),
            ("/c/stoplog-7", "/c/stoplog-7"),
            ("/c/x-itself", "/c/x-itself"),
            ("/", "/"),
        ] {
            assert_eq!(holder(Path::new(own)), Path::new(expected));
        }
    }
}
