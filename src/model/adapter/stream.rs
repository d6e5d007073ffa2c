//! Reads a stream of any provider from its bytes: pure, so that every cut of the bytes can be tried.

use super::build::AnswerBuilder;
use super::{Progress, Reader};
use crate::model::error::ModelError;
use crate::model::message::{Answer, ModelRequest, StreamEvent};
use crate::model::providers::Endpoint;
use crate::model::sse::SseDecoder;

/// A stream that is being read.
#[derive(Debug)]
pub(crate) struct StreamReader {
    decoder: SseDecoder,
    reader: Reader,
    answer: AnswerBuilder,
    limit: usize,
    progress: Progress,
}

impl StreamReader {
    /// At the start; no event and no answer may be longer than `limit` bytes.
    pub(crate) fn new(endpoint: &Endpoint, limit: usize) -> Self {
        Self {
            decoder: SseDecoder::new(limit),
            reader: Reader::new(endpoint),
            answer: AnswerBuilder::new(limit),
            limit,
            progress: Progress::Open,
        }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<StreamEvent>, ModelError> {
        let too_long = |_| ModelError::TooLarge { what: "event", limit: self.limit };
        for event in self.decoder.push(bytes).map_err(too_long)? {
            if self.progress == Progress::Open {
                self.progress = self.reader.event(&event, &mut self.answer)?;
            }
        }
        Ok(self.answer.take_events())
    }

    /// Whether the provider has said that this was all.
    pub(crate) fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }

    /// How far the answer is: this changes with every piece of it and with the reason for its end.
    pub(crate) const fn state(&self) -> (usize, bool) {
        (self.answer.size(), self.answer.has_finish())
    }

    /// Whether the provider has said why the answer ends.
    pub(crate) const fn has_finish(&self) -> bool {
        self.answer.has_finish()
    }

    /// Ends the stream, by its end or because it broke with `broken`. Once the reason for the
    /// answer's end was seen, what is missing is no part of the answer.
    pub(crate) fn finish(
        mut self,
        request: &ModelRequest,
        broken: Option<ModelError>,
    ) -> Result<(Answer, Vec<StreamEvent>), ModelError> {
        if self.progress == Progress::Open {
            self.take_open_event();
        }
        match broken {
            Some(error) if !self.answer.has_finish() => return Err(error),
            Some(_) | None => {}
        }
        self.reader.end(&mut self.answer);
        self.answer.build(request)
    }

    /// The end of the stream left an event open. It counts only if it is whole, which a JSON
    /// document shows by itself.
    fn take_open_event(&mut self) {
        let decoder = std::mem::replace(&mut self.decoder, SseDecoder::new(0));
        let Some(event) = decoder.finish() else { return };
        if serde_json::from_slice::<serde::de::IgnoredAny>(&event.data).is_ok() {
            // An event that does not fit leaves the answer without its end, which is found later.
            drop(self.reader.event(&event, &mut self.answer));
        }
    }
}
