//! Server-sent events: bytes in, events out.
//!
//! Lines end with LF, CRLF or CR; the bytes may be cut anywhere, inside a character or between CR and
//! LF, and the events are the same. Nothing is decoded as text here, so no cut can damage a
//! character. Comments (pings) make no event; that their bytes arrived is what the caller's idle
//! watchdog sees. Lines and events are bounded.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SseEvent {
    /// The `event` field; empty if there was none.
    pub name: String,
    /// The `data` fields, joined by line feeds.
    pub data: Vec<u8>,
}

/// A line or an event is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventTooLong;

/// The state between two pieces of the stream.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    after_cr: bool,
    first_line: bool,
}

impl SseDecoder {
    /// A decoder at the start of a stream; no line and no event may be longer than `limit` bytes.
    #[must_use]
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: SseEvent::default(),
            has_data: false,
            after_cr: false,
            first_line: true,
        }
    }

    /// Takes the next bytes and gives the events that they complete.
    ///
    /// # Errors
    /// [`EventTooLong`]; the stream cannot be followed after it.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (head, rest) = bytes.split_at(end);
            self.extend_line(head)?;
            bytes = match rest {
                [b'\r', b'\n', after @ ..] | [b'\n' | b'\r', after @ ..] => after,
                _ => rest,
            };
            self.after_cr = rest == b"\r";
            events.extend(self.end_line()?);
        }
        self.extend_line(bytes)?;
        Ok(events)
    }

    /// The event that the end of the stream left open, if any. Whoever takes it must be able to tell
    /// whether it is whole.
    #[must_use]
    pub(crate) fn finish(mut self) -> Option<SseEvent> {
        if !self.line.is_empty() {
            self.end_line().ok()?;
        }
        self.has_data.then_some(self.event)
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + bytes.len() > self.limit {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, EventTooLong> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return Ok(std::mem::take(&mut self.has_data).then_some(event));
        }
        self.take_field(&line)?;
        line.clear();
        self.line = line;
        Ok(None)
    }

    fn take_field(&mut self, line: &[u8]) -> Result<(), EventTooLong> {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, rest) = line.split_at(colon);
        let value = rest.strip_prefix(b":").unwrap_or(rest);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if name == b"event" {
            self.event.name = String::from_utf8_lossy(value).into_owned();
        } else if name == b"data" {
            if self.event.data.len() + value.len() >= self.limit {
                return Err(EventTooLong);
            }
            if std::mem::replace(&mut self.has_data, true) {
                self.event.data.push(b'\n');
            }
            self.event.data.extend_from_slice(value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: ping\n\nevent: a\ndata: {\"t\":\"漢🙂\"}\n\ndata:x\ndata: y\nid: 7\n\n\
                          data\n\nretry: 5\n: c\n\nevent: none\n\ndata: [DONE]\n\n";

    fn expected() -> Vec<SseEvent> {
        [("a", "{\"t\":\"漢🙂\"}"), ("", "x\ny"), ("", ""), ("", "[DONE]")]
            .map(|(name, data)| SseEvent { name: name.into(), data: data.into() })
            .to_vec()
    }

    fn decode(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut decoder = SseDecoder::new(1_000);
        pieces.iter().flat_map(|piece| decoder.push(piece).unwrap()).collect()
    }

    #[test]
    fn every_cut_and_every_line_end_give_the_same_events() {
        for line_end in ["\n", "\r\n", "\r"] {
            let bytes = STREAM.replace('\n', line_end).into_bytes();
            for first in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(first);
                assert_eq!(decode(&[head, tail]), expected(), "{line_end:?} cut at {first}");
            }
            let single: Vec<_> = bytes.chunks(1).collect();
            assert_eq!(decode(&single), expected(), "{line_end:?} byte by byte");
        }
    }

    #[test]
    fn an_event_left_open_by_the_end_is_offered() {
        for (bytes, left) in
            [("data: a", Some("a")), ("data: a\n", Some("a")), ("data: a\n\n", None)]
        {
            let mut decoder = SseDecoder::new(100);
            decoder.push(bytes.as_bytes()).unwrap();
            let rest = decoder.finish().map(|event| String::from_utf8(event.data).unwrap());
            assert_eq!(rest.as_deref(), left);
        }
    }

    #[test]
    fn endless_lines_and_endless_events_are_refused() {
        let mut line = SseDecoder::new(64);
        assert!((0..100).any(|_| line.push(b"data: aaaaaaaa").is_err()));
        let mut event = SseDecoder::new(64);
        assert!((0..100).any(|_| event.push(b"data: aaaaaaaa\n").is_err()));
        let mut pings = SseDecoder::new(64);
        assert!((0..1_000).all(|_| pings.push(b": ping\n\n").is_ok()));
    }
}
