//! The edit tool on real files: what stays, what is refused, and files that changed meanwhile.

use crate::rig::Rig;
use serde_json::json;
use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, SystemTime};
use stoplog::base::digest::Digest;
use stoplog::tools::worker::reply::JobError;

#[test]
fn bytes_outside_the_match_stay_whatever_they_are() {
    let rig = Rig::new();
    let path = rig.put("f", b"\xef\xbb\xbfone\r\ntwo\nt\xe9rois\0\r\nfour");
    fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
    let edited = rig.edit("f", &[("two", "$& 2 ${1} \\1"), ("four", "4")]).unwrap();
    assert_eq!(rig.get("f"), b"\xef\xbb\xbfone\r\n$& 2 ${1} \\1\nt\xe9rois\0\r\n4");
    assert_eq!(edited.lines, [2, 4]);
    assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o751);
}

#[test]
fn two_edits_one_after_the_other_are_both_present() {
    let rig = Rig::new();
    let lines: String = (1..=100).map(|line| format!("{line}\n")).collect();
    rig.put("f", &lines);
    rig.edit("f", &[("\n50\n", "\nFIFTY\n")]).unwrap();
    rig.edit("f", &[("\n75\n", "\nSEVENTY-FIVE\n")]).unwrap();
    let expected = lines.replace("\n50\n", "\nFIFTY\n").replace("\n75\n", "\nSEVENTY-FIVE\n");
    assert_eq!(rig.get("f"), expected.as_bytes());
}

#[test]
fn a_refused_edit_changes_nothing_at_all() {
    let rig = Rig::new();
    let path = rig.put("f", "a\nb\na\n");
    let before = fs::metadata(&path).unwrap();
    for edits in [
        [("b", "c"), ("a", "x")].as_slice(),
        &[("b", "c"), ("missing", "x")],
        &[("b", "c"), ("b\na", "x")],
        &[("b", "b")],
        &[("", "x")],
    ] {
        rig.edit("f", edits).unwrap_err();
        let after = fs::metadata(&path).unwrap();
        assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
        assert_eq!(rig.get("f"), b"a\nb\na\n");
    }
    rig.edit("f", &[("b", "c")]).unwrap();
    assert_ne!(before.ino(), fs::metadata(&path).unwrap().ino(), "control");
}

#[test]
fn a_file_that_was_only_touched_is_edited() {
    let mut rig = Rig::new();
    let path = rig.put("f", "old\n");
    rig.job.known_content = rig.read("f").unwrap().digest;
    let later = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(9));
    File::options().write(true).open(path).unwrap().set_times(later).unwrap();
    rig.edit("f", &[("old", "new")]).unwrap();
    assert_eq!(rig.get("f"), b"new\n");
}

#[test]
fn a_file_whose_content_changed_is_refused_even_with_the_same_time() {
    let mut rig = Rig::new();
    let path = rig.put("f", "old 1\n");
    rig.job.known_content = rig.read("f").unwrap().digest;
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    rig.put("f", "old 2\n");
    let times = FileTimes::new().set_modified(time);
    File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    assert!(matches!(rig.edit("f", &[("old", "new")]).unwrap_err(), JobError::Stale { .. }));
    assert_eq!(rig.get("f"), b"old 2\n");
    rig.job.known_content = Some(Digest::of(b"old 2\n"));
    let edited = rig.edit("f", &[("old", "new")]).unwrap();
    assert_eq!(edited.file.digest, Digest::of(b"new 2\n"), "what the next edit must know");
}

#[test]
fn the_model_is_told_what_happened() {
    let rig = Rig::new();
    rig.put("f", "\tx = 1\r\ny = 2\r\n");
    let text = rig.text("edit", json!({"path": "f", "old": "x = 1\ny", "new": "x = 1\nz\ny"}));
    assert!(text.contains("1 replacement at line 1;"), "{text}");
    assert!(text.ends_with("; line ends kept as CR LF"), "{text}");
    let text = rig.text("edit", json!({"path": "f", "old": "    x = 1", "new": ""}));
    assert!(text.contains("occurs 0 times"), "{text}");
    assert!(text.contains("····x·=·1\nNearest:\n  line 1: →x·=·1"), "{text}");
    let text = rig.text("edit", json!({"path": "f", "old": "=", "new": "=="}));
    assert!(text.contains("occurs 2 times") && text.contains("at lines 1, 3;"), "{text}");
    let text = rig.text("edit", json!({"path": "none", "old": "a", "new": "b"}));
    assert!(text.starts_with("error: `") && text.contains("does not exist"), "{text}");
}

#[test]
fn a_file_that_is_too_large_is_refused_by_its_size() {
    let mut rig = Rig::new();
    rig.put("f", "x".repeat(101));
    rig.job.limits.edit_bytes = 100;
    let error = rig.edit("f", &[("x", "y")]).unwrap_err();
    assert!(matches!(error, JobError::TooLarge { bytes: 101, limit: 100, .. }), "{error}");
    rig.job.limits.edit_bytes = 101;
    let error = rig.edit("f", &[("x", "y")]).unwrap_err();
    assert!(matches!(error, JobError::Ambiguous { count: 101, .. }), "control: {error}");
}
