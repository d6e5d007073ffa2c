//! Lexical work on paths. Nothing here touches the disk, follows a link or knows a policy.

use std::path::{Component, Path, PathBuf};

/// `path` made absolute against `base` and rid of `.`, `..` and repeated slashes, by its text alone.
/// A `..` at the root stays at the root, as the kernel does it. `base` must be absolute.
#[must_use]
pub fn normalise(base: &Path, path: &Path) -> PathBuf {
    let mut result = PathBuf::from("/");
    for component in base.join(path).components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::Normal(name) => result.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    result
}

/// Whether `path` is `root` or lies below it, by whole components. Both must be normalised.
#[must_use]
pub fn is_within(path: &Path, root: &Path) -> bool {
    path.starts_with(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_by_their_text() {
        for (path, expected) in [
            ("a/./b//c", "/w/a/b/c"),
            ("../../../etc", "/etc"),
            ("/a/../../b", "/b"),
            ("", "/w"),
            (".", "/w"),
            ("/", "/"),
        ] {
            assert_eq!(normalise(Path::new("/w"), Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn a_sibling_with_the_same_prefix_is_outside() {
        assert!(is_within(Path::new("/w/a"), Path::new("/w")));
        assert!(is_within(Path::new("/w"), Path::new("/w")));
        assert!(!is_within(Path::new("/w2/a"), Path::new("/w")));
    }
}
