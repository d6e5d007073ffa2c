//! Where a path really leads, so that a link and its target get the same answer.
//!
//! Reads links and nothing else: no file that a model named is ever opened here. The answer can be
//! out of date by the time of the effect; rules explain, the cell holds.

use crate::call::effects::Effects;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links that are followed before a path is called endless. Source: Linux `MAXSYMLINKS`.
const LINKS_MAX: u32 = 40;

/// For each path of `effects`, in order, the path after all links that can be read are followed. What
/// does not exist yet, or may not be looked at, keeps its text from there on.
#[must_use]
pub fn real_paths(effects: &Effects) -> Vec<PathBuf> {
    effects.paths.iter().map(|path| real_path(&path.path)).collect()
}

/// `path`, which must be absolute, with all links followed.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    let mut pending: Vec<OsString> = names(path);
    pending.reverse();
    let mut resolved = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = pending.pop() {
        if name == ".." {
            resolved.pop();
            continue;
        }
        let candidate = resolved.join(&name);
        if is_of_the_reader(&candidate) || (pending.is_empty() && is_descriptor(&candidate)) {
            resolved = candidate;
            continue;
        }
        match std::fs::read_link(&candidate) {
            Ok(target) if links < LINKS_MAX => {
                links += 1;
                if target.is_absolute() {
                    resolved = PathBuf::from("/");
                }
                pending.extend(names(&target).into_iter().rev());
            }
            Ok(_) | Err(_) => resolved = candidate,
        }
    }
    resolved
}

/// Names that mean the process that reads them: ours here, the tool's in the cell.
fn is_of_the_reader(path: &Path) -> bool {
    path == Path::new("/proc/self") || path == Path::new("/proc/thread-self")
}

/// A descriptor of the process that reads the name, as `/dev/stdout` leads to. What it is open on was
/// judged when it was opened.
fn is_descriptor(path: &Path) -> bool {
    path.parent().is_some_and(|parent| {
        parent == Path::new("/proc/self/fd") || parent == Path::new("/proc/thread-self/fd")
    })
}

fn names(path: &Path) -> Vec<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_descriptor_stays_a_name_and_what_lies_behind_a_process_does_not() {
        for (path, expected) in [
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/fd/7", "/proc/self/fd/7"),
            ("/proc/self/fd/0", "/proc/self/fd/0"),
            ("/proc/self/status", "/proc/self/status"),
            ("/proc/self/root/etc/shadow", "/etc/shadow"),
        ] {
            assert_eq!(real_path(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn links_in_every_place_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let root = real_path(directory.path());
        std::fs::create_dir_all(root.join("outside/deep")).unwrap();
        std::fs::create_dir(root.join("work")).unwrap();
        symlink("../outside", root.join("work/relative")).unwrap();
        symlink(root.join("outside/deep"), root.join("work/absolute")).unwrap();
        symlink("relative/new", root.join("work/dangling")).unwrap();
        symlink("circle", root.join("work/circle")).unwrap();
        for (path, expected) in [
            ("work/relative/new/file", "outside/new/file"),
            ("work/absolute/../x", "outside/x"),
            ("work/dangling", "outside/new"),
            ("work/plain", "work/plain"),
            ("work/circle", "work/circle"),
        ] {
            assert_eq!(real_path(&root.join(path)), root.join(expected), "{path}");
        }
    }
}
