//! The fold: complete lines to state, or the first damage with its place.
//!
//! A line is one transaction. Each fact is read strictly, checked against what came before, and
//! applied; after a failure the reducer is spent and must be thrown away, so that a transaction is
//! never half applied. Nothing here reads a file, a clock or a configuration.

mod compaction;
pub(crate) mod corruption;
mod entry;
mod extension;
mod index;
mod record;

use crate::base::digest::Digest;
use crate::base::ids::Id;
use crate::base::json::parse_strict;
use crate::session::facts::{Body, Fact, Header, extension::EXTENSION, whole_number};
use crate::session::state::SessionState;
use corruption::{Corruption, CorruptionCode, Fault, require};
use index::{IdUse, Index};
use serde_json::{Map, Value};

/// Folds the bytes of a session file. Bytes after the last line feed are a line whose write did not
/// finish; they are not read.
///
/// # Errors
/// The first damage.
pub fn reduce(bytes: &[u8]) -> Result<SessionState, Corruption> {
    Reducer::from_bytes(bytes).map(Reducer::into_state)
}

/// The fold in progress: takes one line after another.
#[derive(Debug)]
pub struct Reducer {
    state: SessionState,
    index: Index,
    lines: u64,
}

impl Reducer {
    /// Folds all complete lines of `bytes`.
    ///
    /// # Errors
    /// The first damage.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let first = lines.next().and_then(|line| line.strip_suffix(b"\n"));
        let Some(first) = first.filter(|line| !line.is_empty()) else {
            return Err(Corruption {
                code: CorruptionCode::MissingHeader,
                line: 1,
                offset: 0,
                seq: None,
                message: "the file has no complete first line".to_owned(),
            });
        };
        let mut reducer = Self::start(first)?;
        for line in lines {
            let Some(line) = line.strip_suffix(b"\n") else { break };
            reducer.apply(line)?;
        }
        Ok(reducer)
    }

    /// Begins with a header line, given without its line feed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn start(line: &[u8]) -> Result<Self, Corruption> {
        let place = |fault: Fault| at(fault, 1, 0, None);
        let value = parse_line(line).map_err(place)?;
        let header = read_header(value).map_err(place)?;
        let mut state = SessionState::new(header);
        state.repaired_length = length(line);
        Ok(Self { state, index: Index::default(), lines: 1 })
    }

    /// Applies one transaction line, given without its line feed. After an error the reducer must be
    /// thrown away.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn apply(&mut self, line: &[u8]) -> Result<(), Corruption> {
        let (number, offset) = (self.lines + 1, self.state.repaired_length);
        let value = parse_line(line).map_err(|fault| at(fault, number, offset, None))?;
        let facts = if let Value::Array(facts) = value { facts } else { vec![value] };
        if facts.is_empty() {
            let fault = Fault::new(CorruptionCode::EmptyTransaction, "a list without facts");
            return Err(at(fault, number, offset, None));
        }
        for value in facts {
            self.apply_value(value).map_err(|(fault, seq)| at(fault, number, offset, seq))?;
        }
        if let Some(message) = self.index.transcript_fault.take() {
            let seq = Some(self.state.next_seq - 1);
            return Err(at(Fault::transcript(message), number, offset, seq));
        }
        self.lines = number;
        self.state.repaired_length += length(line);
        Ok(())
    }

    /// The state after the lines so far.
    #[must_use]
    pub const fn state(&self) -> &SessionState {
        &self.state
    }

    /// The state, without what only the fold needs.
    #[must_use]
    pub fn into_state(self) -> SessionState {
        self.state
    }

    /// The digest that a compaction of all messages up to `through` must carry.
    pub(crate) fn source_digest(&self, through: &Id) -> Option<Digest> {
        compaction::source_digest(&self.state.transcript, through)
    }

    /// Whether a call of the transcript has no result.
    pub(crate) fn has_unanswered_calls(&self) -> bool {
        !self.index.unanswered.is_empty()
    }

    fn apply_value(&mut self, value: Value) -> Result<(), (Fault, Option<u64>)> {
        let Value::Object(mut map) = value else {
            return Err((Fault::fact("a fact is an object"), None));
        };
        let seq = map.remove("seq").as_ref().and_then(whole_number).filter(|seq| *seq > 0);
        let Some(seq) = seq else {
            return Err((Fault::fact("`seq` is not a positive whole number"), None));
        };
        self.apply_numbered(seq, map).map_err(|fault| (fault, Some(seq)))
    }

    fn apply_numbered(&mut self, seq: u64, map: Map<String, Value>) -> Result<(), Fault> {
        let expected = self.state.next_seq;
        require(seq == expected, || {
            Fault::new(CorruptionCode::SeqMismatch, format!("expected `seq` {expected}, got {seq}"))
        })?;
        let fact = read_fact(seq, map)?;
        let used = self.index.ids.get(&fact.id);
        require(used.is_none_or(IdUse::is_reserved), || duplicate(&fact.id))?;
        let usage = self.apply_body(&fact)?;
        require(!self.index.ids.contains_key(&fact.id), || duplicate(&fact.id))?;
        self.index.ids.insert(fact.id, usage);
        self.state.next_seq = seq + 1;
        Ok(())
    }

    /// Applies what a fact says and tells what its identity stands for from now on.
    fn apply_body(&mut self, fact: &Fact) -> Result<IdUse, Fault> {
        match &fact.body {
            Body::Entry(entry) => self.apply_entry(&fact.id, entry),
            Body::Record(record) => self.apply_record(&fact.id, record),
            Body::Usage(usage) => self.apply_usage(usage),
            Body::Extension(extension) => self.apply_extension(extension),
        }
    }
}

fn duplicate(id: &Id) -> Fault {
    Fault::new(CorruptionCode::DuplicateId, format!("`{id}` is used already"))
}

fn at(fault: Fault, line: u64, offset: u64, seq: Option<u64>) -> Corruption {
    let Fault { code, message } = fault;
    Corruption { code, line, offset, seq, message }
}

/// Bytes of a line with its line feed.
fn length(line: &[u8]) -> u64 {
    u64::try_from(line.len()).unwrap_or(u64::MAX).saturating_add(1)
}

fn parse_line(line: &[u8]) -> Result<Value, Fault> {
    use CorruptionCode::{BlankLine, CrlfNotAllowed, InvalidUtf8, MalformedJson};
    require(!line.is_empty(), || Fault::new(BlankLine, "an empty line"))?;
    require(line.last() != Some(&b'\r'), || {
        Fault::new(CrlfNotAllowed, "the line ends in a carriage return")
    })?;
    if let Err(error) = std::str::from_utf8(line) {
        let at = error.valid_up_to();
        let code = if is_surrogate(line, at) { MalformedJson } else { InvalidUtf8 };
        return Err(Fault::new(code, format!("bytes that are not text at byte {at} of the line")));
    }
    parse_strict(line).map_err(|error| Fault::new(MalformedJson, error.to_string()))
}

/// Whether a lone surrogate was written as if it were a character.
fn is_surrogate(line: &[u8], at: usize) -> bool {
    matches!(line.get(at..), Some([0xed, 0xa0..=0xbf, 0x80..=0xbf, ..]))
}

fn read_header(value: Value) -> Result<Header, Fault> {
    const KEYS: [&str; 9] = [
        "kind",
        "version",
        "id",
        "createdAt",
        "cwd",
        "provider",
        "model",
        "environmentIdentity",
        "extensions",
    ];
    let invalid = |message: String| Fault::new(CorruptionCode::InvalidHeader, message);
    let Value::Object(mut map) = value else {
        return Err(invalid("a header is an object".to_owned()));
    };
    if let Some(key) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(invalid(format!("unknown field `{}`", key.escape_debug())));
    }
    if map.remove("kind").as_ref().and_then(Value::as_str) != Some("header") {
        return Err(invalid("`kind` is not `header`".to_owned()));
    }
    if map.remove("version").as_ref().and_then(whole_number) != Some(2) {
        return Err(Fault::new(CorruptionCode::UnsupportedVersion, "`version` is not 2"));
    }
    let header: Header =
        serde_json::from_value(Value::Object(map)).map_err(|error| invalid(error.to_string()))?;
    match header.extensions.iter().find(|name| *name != EXTENSION) {
        Some(name) => Err(Fault::new(
            CorruptionCode::UnsupportedVersion,
            format!("unknown extension `{}`", name.escape_debug()),
        )),
        None => Ok(header),
    }
}

fn read_fact(seq: u64, mut map: Map<String, Value>) -> Result<Fact, Fault> {
    let id = map.remove("id");
    let id = id.as_ref().and_then(Value::as_str).and_then(Id::parse);
    let id = id.ok_or_else(|| Fault::fact("`id` is not a version 7 UUID"))?;
    let timestamp = map.remove("timestamp").as_ref().and_then(whole_number);
    let timestamp = timestamp.ok_or_else(|| Fault::fact("`timestamp` is not a whole number"))?;
    let kind = map.remove("kind");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    let body = Body::from_rest(kind, map).map_err(Fault::fact)?;
    Ok(Fact { seq, id, timestamp, body })
}
