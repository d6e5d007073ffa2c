//! Sockets of this machine that have a name in the file system: whoever can reach the name talks with
//! the program that listens there, whatever network the caller is in.
//!
//! What a namespace of its own keeps from a cell is the list of them, not their names. So the list is
//! read before the first call, by a process that sees it. It holds what the kernel was told: a name
//! that was bound relative to a directory or through a link stays unknown, and so does one of another
//! network namespace and one that is bound later.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// The kernel's list for this process's network namespace.
const LIST: &str = "/proc/self/net/unix";
/// Bytes of it that are read: more than a hundred thousand sockets. A longer list is an error: a name
/// that was not seen would not be hidden.
const LIST_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Words of a line before the name: number, references, protocol, flags, type, state, inode.
const WORDS_BEFORE_NAME: usize = 7;

/// The names of all sockets that are bound to an absolute path, sorted.
///
/// # Errors
/// When the list cannot be read, or not to its end.
pub fn bound_sockets() -> io::Result<Vec<PathBuf>> {
    let list = whole(File::open(LIST)?, LIST_BYTES_MAX)?;
    let mut names: Vec<PathBuf> = list.split(|byte| *byte == b'\n').filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn whole(list: impl io::Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = list.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if read as u64 > bytes_max {
        return Err(io::Error::other("the machine has more sockets than can be looked at"));
    }
    Ok(bytes)
}

/// The path of one line; `None` where there is none, or an abstract name.
fn name(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..WORDS_BEFORE_NAME {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let word = rest.get(start..)?;
        rest = word.get(word.iter().position(|byte| *byte == b' ')?..)?;
    }
    let name = rest.strip_prefix(b" ")?;
    name.starts_with(b"/").then(|| OsString::from_vec(name.to_vec()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn a_line_gives_the_whole_name_and_only_absolute_ones() {
        let line = |name: &str| format!("ffff8880: 00000002 00000000 00010000 0001 01 12345{name}");
        let read = |text: &str| name(line(text).as_bytes());
        assert_eq!(read(" /w/a b/x.sock"), Some("/w/a b/x.sock".into()));
        assert_eq!(read(" @/w/abstract"), None);
        assert_eq!(read(" relative"), None);
        assert_eq!(read(""), None);
        assert_eq!(name(b"Num       RefCount Protocol Flags    Type St Inode Path"), None);
        let mut odd = line(" /w/").into_bytes();
        odd.push(0xff);
        assert_eq!(name(&odd).unwrap().as_os_str().as_bytes(), b"/w/\xff");
    }

    #[test]
    fn a_list_is_read_as_a_whole_or_not_at_all() {
        assert_eq!(whole(&b"12345"[..], 5).unwrap(), b"12345");
        whole(&b"123456"[..], 5).unwrap_err();
    }

    #[test]
    fn a_socket_is_listed_while_somebody_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listed = || bound_sockets().unwrap().contains(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(listed());
        drop(listener);
        assert!(!listed() && path.exists(), "the name alone leads to nobody");
    }
}
