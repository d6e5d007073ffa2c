//! The read tool: pages, notes, and what is not text.

use crate::rig::{Rig, digest_of};
use serde_json::json;
use stoplog::tools::worker::reply::{FileKind, JobError};

fn numbered(lines: std::ops::RangeInclusive<u32>) -> String {
    lines.map(|line| format!("line {line}\n")).collect()
}

#[test]
fn a_small_file_is_returned_as_it_is() {
    let rig = Rig::new();
    for content in ["one\n", "one", "one\ntwo", "\n", "\n\n", "\t a \r\n", "grüße 漢字 🙂\n"]
    {
        rig.put("f", content);
        let page = rig.read("f").unwrap();
        assert_eq!(page.text, content);
        assert_eq!((page.next_offset, page.replaced_bytes), (None, 0));
        assert_eq!(page.total_lines, Some(content.lines().count() as u64), "{content:?}");
        assert_eq!(page.digest, digest_of(content.as_bytes()));
    }
    rig.put("f", "one\ntwo\n");
    assert_eq!(rig.text("read", json!({"path": "f"})), "one\ntwo\n");
}

#[test]
fn absolute_and_relative_paths_name_the_same_file() {
    let rig = Rig::new();
    let path = rig.put("a/b", "x");
    for name in ["a/b", "./a/../a//b", path.to_str().unwrap()] {
        assert_eq!(rig.read(name).unwrap().path, path, "{name}");
    }
}

#[test]
fn pages_follow_each_other_without_gap() {
    let rig = Rig::new();
    let content = numbered(1..=4_500);
    rig.put("f", &content);
    let mut joined = String::new();
    let mut offset = Some(1);
    let mut pages = 0;
    while let Some(next) = offset {
        let page = rig.read_page(json!({"path": "f", "offset": next})).unwrap();
        assert!(page.lines <= 2_000 && page.text.len() <= 51_200);
        assert_eq!(page.digest, digest_of(content.as_bytes()), "of the whole file");
        joined.push_str(&page.text);
        offset = page.next_offset;
        pages += 1;
    }
    assert_eq!((joined == content, pages), (true, 3));
    let text = rig.text("read", json!({"path": "f"}));
    assert!(text.ends_with("[lines 1-2000 of 4500; the next page has offset 2001]"));
    let text = rig.text("read", json!({"path": "f", "offset": 4_400, "limit": 5}));
    assert!(text.starts_with("line 4400\n") && text.ends_with("has offset 4405]"), "{text}");
}

#[test]
fn a_page_holds_whole_lines_within_its_bytes() {
    let rig = Rig::new();
    let line = "x".repeat(999) + "\n";
    rig.put("f", line.repeat(100));
    let page = rig.read("f").unwrap();
    assert!(page.text.ends_with('\n') && page.text.len() <= 51_200);
    assert_eq!(page.next_offset, Some(page.lines + 1));
    assert!(page.lines >= 45, "{} lines", page.lines);
}

#[test]
fn an_offset_past_the_end_is_an_error_that_names_the_end() {
    let rig = Rig::new();
    rig.put("f", "a\nb\n");
    assert_eq!(rig.read_page(json!({"path": "f", "offset": 2})).unwrap().text, "b\n");
    let error = rig.read_page(json!({"path": "f", "offset": 3})).unwrap_err();
    assert!(matches!(error, JobError::OffsetPastEnd { offset: 3, lines: 2, .. }), "{error}");
    rig.put("empty", "");
    let error = rig.read_page(json!({"path": "empty", "offset": 2})).unwrap_err();
    assert!(matches!(error, JobError::OffsetPastEnd { lines: 0, .. }), "{error}");
}

#[test]
fn an_empty_file_is_named_as_empty() {
    let rig = Rig::new();
    rig.put("f", "");
    assert_eq!(rig.text("read", json!({"path": "f"})), "(the file is empty)");
    assert_eq!(rig.read("f").unwrap().digest, digest_of(b""));
}

#[test]
fn an_overlong_line_is_cut_on_a_character_boundary_with_a_note() {
    let rig = Rig::new();
    rig.put("f", "中".repeat(40_000) + "\nnext\n");
    let page = rig.read("f").unwrap();
    assert_eq!(page.cut_line_bytes, Some(120_001));
    assert!(page.text.chars().all(|character| character == '中'));
    assert_eq!((page.lines, page.next_offset, page.replaced_bytes), (1, Some(2), 0));
    let text = rig.text("read", json!({"path": "f"}));
    assert!(text.contains("line 1 is too long") && text.contains("offset 2"));
    assert_eq!(rig.read_page(json!({"path": "f", "offset": 2})).unwrap().text, "next\n");
    // After a line that fits, the long one starts a page of its own.
    rig.put("g", "short\n".to_owned() + &"🙂".repeat(40_000));
    let page = rig.read("g").unwrap();
    assert_eq!(
        (page.text.as_str(), page.next_offset, page.cut_line_bytes),
        ("short\n", Some(2), None)
    );
}

#[test]
fn line_ends_and_byte_order_mark_are_named() {
    let rig = Rig::new();
    rig.put("f", "\u{feff}a\r\nb\r\n");
    let page = rig.read("f").unwrap();
    assert_eq!((page.text.as_str(), page.byte_order_mark, page.crlf), ("a\r\nb\r\n", true, true));
    let text = rig.text("read", json!({"path": "f"}));
    assert!(text.contains("byte order mark") && text.contains("CR LF"), "{text}");
    rig.put("plain", "a\n");
    assert_eq!(rig.text("read", json!({"path": "plain"})), "a\n");
}

#[test]
fn a_few_bad_bytes_are_shown_and_counted_and_binary_is_refused() {
    let rig = Rig::new();
    rig.put("latin", b"caf\xe9 und gr\xfc\xdfe\n".repeat(20));
    let page = rig.read("latin").unwrap();
    assert_eq!(page.replaced_bytes, 60);
    assert!(page.text.starts_with("caf\u{fffd} und"));
    for (name, content) in
        [("nul", b"text\0text".to_vec()), ("noise", (128..=255).collect()), ("one", vec![0xff])]
    {
        rig.put(name, content);
        assert!(matches!(rig.read(name).unwrap_err(), JobError::Binary { .. }), "{name}");
    }
    rig.put("utf16", b"\xff\xfea\0b\0");
    let error = rig.read("utf16").unwrap_err().to_string();
    assert!(error.contains("UTF-16 little-endian"), "{error}");
}

#[test]
fn what_is_no_file_is_named() {
    let rig = Rig::new();
    rig.put("d/f", "x");
    let error = rig.read("d").unwrap_err();
    assert!(matches!(error, JobError::NotRegularFile { kind: FileKind::Directory, .. }), "{error}");
    assert!(error.to_string().contains("use `list`"), "{error}");
    assert!(matches!(rig.read("d/f/x").unwrap_err(), JobError::NotDirectory { .. }));
    assert!(matches!(rig.read("missing/x").unwrap_err(), JobError::NotFound { .. }));
    assert!(matches!(rig.read("~/x").unwrap_err(), JobError::BadArguments { .. }));
}
