//! The write tool: content, modes, parents, links in the workspace.

use crate::rig::{Rig, digest_of, names};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use stoplog::tools::worker::job::Root;
use stoplog::tools::worker::reply::{FileKind, JobError};

#[test]
fn a_file_is_created_with_its_parents_and_then_replaced() {
    let rig = Rig::new();
    let written = rig.write("a/b/c", "one").unwrap();
    assert_eq!((written.bytes, written.replaced_bytes), (3, None));
    assert_eq!(rig.get("a/b/c"), b"one");
    let written = rig.write("a/b/c", "two!").unwrap();
    assert_eq!((written.bytes, written.replaced_bytes), (4, Some(3)));
    assert_eq!(Some(written.digest), digest_of(b"two!"));
    assert_eq!(rig.get("a/b/c"), b"two!");
    assert_eq!(names(&rig.inside.join("a/b")), ["c"], "no draft is left");
    let text = rig.text("write", json!({"path": "a/b/c", "content": ""}));
    assert!(text.starts_with("replaced `") && text.ends_with("0 bytes now, 4 before"), "{text}");
    let text = rig.text("write", json!({"path": "new", "content": "x"}));
    assert!(text.starts_with("created `") && text.ends_with("1 bytes"), "{text}");
}

#[test]
fn content_is_written_byte_for_byte() {
    let rig = Rig::new();
    for content in ["", "no end", "a\r\nb\n\r", "\u{feff}bom", "nul\0 $& 漢🙂"] {
        rig.write("f", content).unwrap();
        assert_eq!(rig.get("f"), content.as_bytes());
    }
}

#[test]
fn the_mode_is_kept_and_a_new_file_follows_the_umask() {
    let rig = Rig::new();
    let path = rig.put("script", "old");
    for mode in [0o755, 0o640, 0o600] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        rig.write("script", "new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
    }
    rig.write("fresh", "").unwrap();
    let by_the_system = rig.put("plain", "");
    assert_eq!(
        fs::metadata(rig.inside.join("fresh")).unwrap().mode(),
        fs::metadata(by_the_system).unwrap().mode()
    );
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced_either() {
    let rig = Rig::new();
    let path = rig.put("f", "old");
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let result = rig.write("f", "new");
    if rustix::process::geteuid().is_root() {
        println!("run by root, who may write every file: the refusal was not tested");
        return;
    }
    assert!(matches!(result.unwrap_err(), JobError::Io { .. }));
    assert_eq!(rig.get("f"), b"old");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    rig.write("f", "control").unwrap();
}

#[test]
fn a_link_in_the_workspace_stays_a_link() {
    let rig = Rig::new();
    rig.put("real/f", "old");
    symlink("real", rig.inside.join("directory")).unwrap();
    symlink("../inside/real/f", rig.inside.join("file")).unwrap();
    symlink(rig.inside.join("real/f"), rig.inside.join("absolute")).unwrap();
    symlink("real/later", rig.inside.join("dangling")).unwrap();
    for (path, real) in [
        ("directory/f", "real/f"),
        ("file", "real/f"),
        ("absolute", "real/f"),
        ("dangling", "real/later"),
        ("directory/deep/er", "real/deep/er"),
    ] {
        let written = rig.write(path, path).unwrap();
        assert_eq!(written.path, rig.inside.join(real), "{path}");
        assert_eq!(rig.get(real), path.as_bytes());
    }
    for link in ["directory", "file", "absolute", "dangling"] {
        assert!(fs::symlink_metadata(rig.inside.join(link)).unwrap().is_symlink(), "{link}");
    }
}

#[test]
fn a_link_may_lead_from_one_root_to_another() {
    let mut rig = Rig::new();
    symlink("../outside/secret", rig.inside.join("link")).unwrap();
    assert!(matches!(rig.read("link").unwrap_err(), JobError::Outside { .. }), "control");
    rig.job.roots.push(Root { path: rig.outside.clone(), writable: false });
    assert_eq!(rig.read("link").unwrap().path, rig.outside.join("secret"));
    let error = rig.write("link", "x").unwrap_err();
    assert!(matches!(error, JobError::ReadOnly { .. }), "{error}");
    rig.assert_outside_untouched();
}

#[test]
fn the_deepest_root_decides() {
    let mut rig = Rig::new();
    rig.put("closed/f", "old");
    rig.write("closed/f", "control").unwrap();
    rig.job.roots.push(Root { path: rig.inside.join("closed"), writable: false });
    assert!(matches!(rig.write("closed/f", "x").unwrap_err(), JobError::ReadOnly { .. }));
    assert!(matches!(rig.write("closed/new", "x").unwrap_err(), JobError::ReadOnly { .. }));
    symlink("closed", rig.inside.join("way")).unwrap();
    assert!(matches!(rig.write("way/f", "x").unwrap_err(), JobError::ReadOnly { .. }));
    assert_eq!(rig.get("closed/f"), b"control");
    rig.write("open", "x").unwrap();
}

#[test]
fn a_single_file_may_be_a_root() {
    let mut rig = Rig::new();
    rig.job.roots = vec![Root { path: rig.outside.join("secret"), writable: false }];
    let path = rig.outside.join("secret");
    assert!(rig.read(path.to_str().unwrap()).is_ok());
    for other in ["../outside/other", "../outside", "f"] {
        assert!(matches!(rig.read(other).unwrap_err(), JobError::Outside { .. }), "{other}");
    }
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let rig = Rig::new();
    rig.put("d/f", "x");
    let error = rig.write("d", "x").unwrap_err();
    assert!(matches!(error, JobError::NotRegularFile { kind: FileKind::Directory, .. }), "{error}");
    assert!(matches!(rig.write("d/f/x", "x").unwrap_err(), JobError::NotDirectory { .. }));
    let error = rig.write(".", "x").unwrap_err();
    assert!(matches!(error, JobError::NotRegularFile { kind: FileKind::Directory, .. }), "{error}");
    rig.assert_no_drafts();
}
