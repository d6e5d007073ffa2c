//! The bytes of a request, kept from one turn to the next: a conversation only grows, so a turn writes
//! what is new in it behind what was sent before, and not megabytes again.
//!
//! What is kept is used only if the next request begins with exactly what was written; otherwise all
//! is written anew. So the bytes are at every time those that a new document would have.

use super::{AdapterKind, anthropic, chat, responses};
use crate::model::message::{Message, ModelRequest};
use crate::model::providers::Endpoint;
use bytes::{Bytes, BytesMut};

/// The requests of one conversation, the last of which is kept.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Whose conversation it is.
    agent: String,
    bytes: Bytes,
    /// Bytes before the first message.
    head: usize,
    /// Bytes up to the end of the last of `messages`.
    settled: usize,
    /// The messages that stand in `bytes` in the form that they keep.
    messages: Vec<Message>,
}

impl Document {
    /// The document of `request`. Another agent's is written beside the one that is kept.
    ///
    /// # Errors
    /// A value that JSON cannot hold.
    pub(crate) fn write(
        &mut self,
        endpoint: &Endpoint,
        request: &ModelRequest,
    ) -> serde_json::Result<Bytes> {
        if self.bytes.is_empty() {
            self.agent.clone_from(&request.agent);
        } else if self.agent != request.agent {
            return Self::default().write(endpoint, request);
        }
        let head = head(endpoint, request)?;
        let mut bytes = self.kept(&head, &request.messages);
        let (known, settled) = (self.messages.len(), settled(endpoint, &request.messages));
        let new = request.messages.get(known..settled).unwrap_or_default();
        write_messages(endpoint, request, new, Part::Settled, &mut bytes)?;
        self.messages.extend_from_slice(new);
        self.settled = bytes.len();
        let open = request.messages.get(self.messages.len()..).unwrap_or_default();
        write_messages(endpoint, request, open, Part::End, &mut bytes)?;
        bytes.extend_from_slice(b"]}");
        self.bytes = bytes.freeze();
        Ok(self.bytes.clone())
    }

    /// What the new document begins with: the earlier one up to where it still holds, or `head` alone.
    fn kept(&mut self, head: &[u8], messages: &[Message]) -> BytesMut {
        let earlier = std::mem::take(&mut self.bytes);
        let holds = earlier.get(..self.head) == Some(head) && messages.starts_with(&self.messages);
        if holds {
            // Nobody else has the bytes once the request has been answered, so that none is copied.
            let mut bytes =
                earlier.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&*shared));
            bytes.truncate(self.settled);
            return bytes;
        }
        self.messages.clear();
        self.head = head.len();
        BytesMut::from(head)
    }
}

/// Whether more messages may follow those that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// They stand in the form that they keep.
    Settled,
    /// They are the end of this request.
    End,
}

/// Everything up to the first message, the bracket of their list included.
fn head(endpoint: &Endpoint, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
    let (settings, list) = match endpoint.adapter {
        AdapterKind::Chat => (chat::settings(endpoint, request), "messages"),
        AdapterKind::Anthropic => (anthropic::settings(endpoint, request), "messages"),
        AdapterKind::Responses => (responses::settings(endpoint, request), "input"),
    };
    let mut head = serde_json::to_vec(&settings)?;
    // The settings are an object that is not empty.
    head.pop();
    head.extend_from_slice(format!(",\"{list}\":[").as_bytes());
    if endpoint.adapter == AdapterKind::Chat && !request.system.is_empty() {
        serde_json::to_writer(&mut head, &chat::system(&request.system))?;
    }
    Ok(head)
}

/// How many of `messages`, from the first, stand in the form that they keep whatever follows them.
fn settled(endpoint: &Endpoint, messages: &[Message]) -> usize {
    match endpoint.adapter {
        AdapterKind::Chat | AdapterKind::Responses => messages.len(),
        AdapterKind::Anthropic => anthropic::settled(messages),
    }
}

/// Writes `messages` as elements of the list.
fn write_messages(
    endpoint: &Endpoint,
    request: &ModelRequest,
    messages: &[Message],
    part: Part,
    bytes: &mut BytesMut,
) -> serde_json::Result<()> {
    match endpoint.adapter {
        AdapterKind::Chat => messages
            .iter()
            .try_for_each(|message| element(&chat::message(endpoint, message), bytes)),
        AdapterKind::Responses => messages
            .iter()
            .flat_map(|message| responses::items(endpoint, message))
            .try_for_each(|item| element(&item, bytes)),
        AdapterKind::Anthropic => anthropic::messages(endpoint, request, messages, part)
            .iter()
            .try_for_each(|message| element(message, bytes)),
    }
}

fn element(value: &impl serde::Serialize, bytes: &mut BytesMut) -> serde_json::Result<()> {
    if bytes.last() != Some(&b'[') {
        bytes.extend_from_slice(b",");
    }
    serde_json::to_writer(bytes::BufMut::writer(bytes), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::{ModelToolCall, Replay, Thinking, ThinkingLevel};
    use crate::model::providers::{ModelChoice, ProviderTable};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    const MODELS: [&str; 3] =
        ["openai/m", "anthropic/claude-sonnet-4-5", "openai-responses/gpt-5.1"];

    fn endpoint(model: &str) -> Endpoint {
        let choice = ModelChoice::parse(model).unwrap();
        ProviderTable::built_in().unwrap().resolve(&choice, None).unwrap()
    }

    fn request(agent: &str, messages: &[Message], thinking: ThinkingLevel) -> ModelRequest {
        let request = ModelRequest::new("be careful", messages.to_vec());
        ModelRequest { agent: agent.to_owned(), thinking, ..request }
    }

    fn anew(endpoint: &Endpoint, request: &ModelRequest) -> Bytes {
        Document::default().write(endpoint, request).unwrap()
    }

    fn any_message() -> impl Strategy<Value = Message> {
        prop_oneof![
            "[a\"\n漢]{0,9}".prop_map(Message::user),
            ("[a-c]{1,3}", any::<bool>(), any::<bool>()).prop_map(|(text, calls, thinks)| {
                let origin = "anthropic:claude-sonnet-4-5".to_owned();
                let block = json!({"type": "thinking", "thinking": text, "signature": "s"});
                let replay = Some(Replay { origin, block });
                let call = |id: &str| ModelToolCall {
                    id: id.to_owned(),
                    name: "read".to_owned(),
                    arguments: r#"{"path":"a"}"#.to_owned(),
                };
                Message::Assistant {
                    content: Some(text.as_str().into()),
                    thinking: thinks.then_some(Thinking { text, replay }).into_iter().collect(),
                    tool_calls: calls
                        .then(|| [call("1"), call("2")])
                        .into_iter()
                        .flatten()
                        .collect(),
                }
            }),
            ("[a-z\"]{0,9}", any::<bool>()).prop_map(|(content, is_error)| Message::Tool {
                call_id: "1".to_owned(),
                name: "read".to_owned(),
                content: content.into(),
                is_error,
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_document_that_is_written_on_is_what_a_new_one_would_be(
            which in 0_usize..3,
            messages in proptest::collection::vec(any_message(), 1..20),
            steps in proptest::collection::vec((0_usize..4, any::<bool>(), 0_usize..8), 1..12),
        ) {
            let endpoint = endpoint(MODELS[which]);
            let (mut document, mut end, mut held) = (Document::default(), 1, Vec::new());
            for (step, thinks, other) in steps {
                end = (end + step).min(messages.len());
                let thinking = if thinks { ThinkingLevel::Low } else { ThinkingLevel::None };
                // Now and then another agent asks, or the conversation is another one.
                let agent = if other == 0 { "guardian" } else { "main" };
                let mut said = messages[..end].to_vec();
                if other == 1 {
                    said[0] = Message::user("another");
                }
                let request = request(agent, &said, thinking);
                let written = document.write(&endpoint, &request).unwrap();
                prop_assert_eq!(&written, &anew(&endpoint, &request));
                prop_assert!(serde_json::from_slice::<Value>(&written).is_ok());
                if other == 2 {
                    held.push((written.clone(), written.to_vec()));
                }
            }
            // What somebody still sends does not change under their hands.
            for (bytes, copy) in held {
                prop_assert_eq!(&bytes, &copy);
            }
        }
    }

    #[test]
    fn nothing_that_was_written_is_written_or_copied_again() {
        for model in MODELS {
            let endpoint = endpoint(model);
            let text: Arc<str> = "x".repeat(100_000).into();
            let mut messages = vec![Message::User { content: Arc::clone(&text) }];
            messages.push(Message::Assistant {
                content: Some("y".into()),
                thinking: Vec::new(),
                tool_calls: Vec::new(),
            });
            let mut document = Document::default();
            drop(document.write(&endpoint, &request("main", &messages, ThinkingLevel::None)));
            // Room for what follows, so that no growth moves the bytes.
            let mut grown = std::mem::take(&mut document.bytes).try_into_mut().unwrap();
            grown.reserve(1_000);
            document.bytes = grown.freeze();
            let place = document.bytes.as_ptr();
            messages.push(Message::user("and now?"));
            let next = document.write(&endpoint, &request("main", &messages, ThinkingLevel::None));
            assert_eq!(next.unwrap().as_ptr(), place, "{model}");
        }
    }
}
