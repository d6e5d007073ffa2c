//! Damage is loud, named by line and byte, and leaves the file as it is.

use crate::rig::{Rig, rig, scratch, write};
use proptest::prelude::*;
use serde_json::{Value, json};
use stoplog::base::clock::Clock;
use stoplog::session::{CorruptionCode, Journal, SessionError, reduce, reduced_json};

/// The lines of a session with one whole run: the header first.
struct Good(Vec<String>);

/// What is wrong, the file, its code and its line.
type Case = (&'static str, Vec<u8>, CorruptionCode, u64);

impl Good {
    fn new() -> Self {
        let mut rig = rig();
        rig.whole_run("Look.");
        Self(String::from_utf8(rig.bytes()).unwrap().lines().map(str::to_owned).collect())
    }

    /// The first `count` lines.
    fn first(&self, count: usize) -> Vec<u8> {
        file(&self.0[..count])
    }

    /// The file with these bytes as a line.
    fn raw(&self, line: usize, bytes: &[u8]) -> Vec<u8> {
        [&self.first(line - 1), bytes, b"\n", &file(&self.0[line..])].concat()
    }

    /// The file with the first fact of a line, or the header, changed.
    fn with(&self, line: usize, change: impl Fn(&mut Value)) -> Vec<u8> {
        let mut value: Value = serde_json::from_str(&self.0[line - 1]).unwrap();
        change(if value.is_array() { &mut value[0] } else { &mut value });
        self.raw(line, value.to_string().as_bytes())
    }

    /// The identity of the first fact of a line.
    fn id(&self, line: usize) -> Value {
        let value: Value = serde_json::from_str(&self.0[line - 1]).unwrap();
        if value.is_array() { value[0]["id"].clone() } else { value["id"].clone() }
    }
}

fn file(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

#[test]
fn three_hundred_zero_bytes_in_a_middle_line_are_named_and_kept() {
    let lines = Good::new().0;
    assert!(lines.len() >= 8);
    let mut bytes = Vec::new();
    let mut offset = 0;
    for (index, line) in lines.iter().enumerate() {
        if index == 4 {
            offset = bytes.len();
            bytes.extend([0; 300]);
        } else {
            bytes.extend(line.as_bytes());
        }
        bytes.push(b'\n');
    }
    let damage = reduce(&bytes).unwrap_err();
    assert_eq!(damage.code, CorruptionCode::MalformedJson);
    assert_eq!((damage.line, damage.offset), (5, u64::try_from(offset).unwrap()));
    for torn in [&b""[..], b"{\"half\":"] {
        let bytes = [&bytes, torn].concat();
        let directory = scratch();
        let path = directory.path().join("journal.jsonl");
        write(&path, &bytes);
        let error = Journal::open(&path, Clock::default()).unwrap_err();
        let expected = format!("MALFORMED_JSON in line 5 (byte {offset})");
        assert!(error.to_string().contains(&expected), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

fn damaged_lines(good: &Good) -> Vec<Case> {
    use CorruptionCode::{
        BlankLine, CrlfNotAllowed, EmptyTransaction, InvalidFact, InvalidUtf8, MalformedJson,
        MissingHeader,
    };
    let no_line_feed = good.0[0].clone().into_bytes();
    let carriage_return = good.raw(3, format!("{}\r", good.0[2]).as_bytes());
    vec![
        ("an empty file", Vec::new(), MissingHeader, 1),
        ("no line feed", no_line_feed, MissingHeader, 1),
        ("an empty first line", good.raw(1, b""), MissingHeader, 1),
        ("a blank line", good.raw(3, b""), BlankLine, 3),
        ("a carriage return", carriage_return, CrlfNotAllowed, 3),
        ("a space", good.raw(3, b" "), MalformedJson, 3),
        ("two values", good.raw(3, b"{}{}"), MalformedJson, 3),
        ("a repeated key", good.raw(3, br#"{"seq":3,"seq":3}"#), MalformedJson, 3),
        ("a lone surrogate", good.raw(3, br#"{"x":"\udc00"}"#), MalformedJson, 3),
        ("a raw surrogate", good.raw(3, b"{\"x\":\"\xed\xa0\x80\"}"), MalformedJson, 3),
        ("not UTF-8", good.raw(3, b"{\"x\":\"\xff\"}"), InvalidUtf8, 3),
        ("no fact", good.raw(3, b"[]"), EmptyTransaction, 3),
        ("not an object", good.raw(3, b"7"), InvalidFact, 3),
    ]
}

fn damaged_headers(good: &Good) -> Vec<Case> {
    use CorruptionCode::{InvalidHeader, UnsupportedVersion};
    let with = |key: &str, value: Value| good.with(1, |header| header[key] = value.clone());
    vec![
        ("not a header", good.raw(1, good.0[1].as_bytes()), InvalidHeader, 1),
        ("an unknown header field", with("color", json!("red")), InvalidHeader, 1),
        ("an empty model", with("model", json!("")), InvalidHeader, 1),
        ("no extension in the list", with("extensions", json!([])), InvalidHeader, 1),
        ("another version", with("version", json!(3)), UnsupportedVersion, 1),
        ("another extension", with("extensions", json!(["x/9"])), UnsupportedVersion, 1),
    ]
}

fn damaged_envelopes(good: &Good) -> Vec<Case> {
    use CorruptionCode::{DuplicateId, InvalidFact, SeqMismatch};
    let with = |key: &str, value: Value| good.with(3, |fact| fact[key] = value.clone());
    let old_id = json!("7f1a4bfa-0000-4000-8000-000000000000");
    let huge = json!(9_007_199_254_740_992_u64);
    vec![
        ("an unknown kind", with("kind", json!("memo")), InvalidFact, 3),
        ("an unknown field", with("note", json!(1)), InvalidFact, 3),
        ("a time that is null", with("timestamp", Value::Null), InvalidFact, 3),
        ("a huge number", with("timestamp", huge), InvalidFact, 3),
        ("an old kind of id", with("id", old_id), InvalidFact, 3),
        ("a skipped number", with("seq", json!(9)), SeqMismatch, 3),
        ("a used id", with("id", good.id(2)), DuplicateId, 3),
    ]
}

/// Line 3 is an attempt, 4 its answer with two calls, 5 the start of the first, 6 its result.
fn damaged_facts(good: &Good) -> Vec<Case> {
    use CorruptionCode::{InvalidFact, InvalidReference, InvalidTranscript, InvalidTransition};
    let attempt =
        |key: &str, value: Value| good.with(3, |fact| fact["record"][key] = value.clone());
    let answer = |key: &str, value: Value| good.with(4, |fact| fact["entry"][key] = value.clone());
    let start = |key: &str, value: Value| good.with(5, |fact| fact["record"][key] = value.clone());
    let result = |reason: &str| {
        let result = json!({"type": "synthetic", "reason": reason});
        good.with(6, |fact| fact["entry"]["result"] = result.clone())
    };
    let snapshot =
        good.with(3, |fact| fact["record"]["configurationSnapshot"]["model"] = json!("other"));
    let twice = good.with(4, |fact| fact["entry"]["message"]["tool_calls"][1]["id"] = json!("a"));
    let elsewhere = good.with(6, |fact| fact["id"] = good.id(1));
    vec![
        ("a null where a key may be absent", answer("stepId", Value::Null), InvalidFact, 4),
        ("a third attempt", attempt("attempt", json!(3)), InvalidFact, 3),
        ("no such operation", attempt("operationId", good.id(4)), InvalidReference, 3),
        ("no such context", attempt("contextThroughEntryId", good.id(6)), InvalidReference, 3),
        ("another snapshot", snapshot, InvalidFact, 3),
        ("a second attempt first", attempt("attempt", json!(2)), InvalidTransition, 3),
        ("calls, but no want of them", answer("stopReason", json!("stop")), InvalidTranscript, 4),
        ("one identifier twice", twice, InvalidTranscript, 4),
        ("another call's start", start("toolIndex", json!(1)), InvalidReference, 5),
        ("a result without a place", elsewhere, InvalidReference, 6),
        ("a result of a wrong kind", result("aborted"), InvalidFact, 6),
        ("a changed fixed text", result("interrupted"), InvalidTranscript, 6),
    ]
}

#[test]
fn each_kind_of_damage_has_its_code_and_line() {
    let good = Good::new();
    reduce(&file(&good.0)).unwrap();
    let tables = [damaged_lines, damaged_headers, damaged_envelopes, damaged_facts];
    for (what, bytes, code, line) in tables.into_iter().flat_map(|table| table(&good)) {
        let damage = reduce(&bytes).expect_err(what);
        assert_eq!((damage.code, damage.line), (code, line), "{what}: {damage}");
        let lengths = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len);
        let start: usize = lengths.take(usize::try_from(line).unwrap() - 1).sum();
        assert_eq!(damage.offset, u64::try_from(start).unwrap(), "{what}");
        let (printed, _) = reduced_json(&bytes).unwrap();
        let printed: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(printed["error"]["code"], code.as_str(), "{what}");
    }
}

#[test]
fn our_facts_need_the_declaration_in_the_header() {
    let mut rig = rig();
    rig.journal
        .begin_run("By the host.", Some((stoplog::session::InjectionSource::Session, Vec::new())))
        .unwrap();
    let text = String::from_utf8(rig.bytes()).unwrap();
    let plain = text.replacen(r#","extensions":["stoplog/1"]"#, "", 1);
    assert_ne!(plain, text);
    let damage = reduce(plain.as_bytes()).unwrap_err();
    assert_eq!((damage.code, damage.line), (CorruptionCode::InvalidFact, 2));
}

#[test]
fn a_damaged_session_is_not_opened() {
    let lines = Good::new().0;
    let bytes = file(&[&lines[..2], &lines[3..]].concat());
    let Err(SessionError::Corrupt { corruption, .. }) = Rig::copy(&bytes).map(drop) else {
        panic!("a session with a missing line was opened");
    };
    assert_eq!(corruption.code, CorruptionCode::SeqMismatch);
}

proptest! {
    /// No bytes make the reader panic, and it never reads behind the last line feed.
    #[test]
    fn any_bytes_give_a_state_or_a_named_place(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        keep in 0_usize..12,
    ) {
        let good = Good::new();
        let keep = keep.min(good.0.len());
        let mut all = good.first(keep);
        let sound = reduce(&all).is_ok();
        all.extend(bytes.iter().filter(|byte| **byte != b'\n'));
        prop_assert_eq!(reduce(&all).is_ok(), sound, "a torn line changes nothing");
        all.push(b'\n');
        if let Err(damage) = reduce(&all) {
            prop_assert!(damage.line <= u64::try_from(keep + 1).unwrap());
        }
    }

    /// One flipped bit gives the same session with another text, or damage; never a panic.
    #[test]
    fn a_flipped_bit_is_survived(position in 0_usize..100_000, bit in 0_u8..8) {
        let mut bytes = file(&Good::new().0);
        let position = position % bytes.len();
        bytes[position] ^= 1 << bit;
        if let Err(damage) = reduce(&bytes) {
            prop_assert!(usize::try_from(damage.offset).unwrap() <= bytes.len());
        }
    }
}
