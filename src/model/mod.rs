//! The language model as a service: one message form, several providers, a scripted one.
//!
//! [`Model::call`] makes one attempt and keeps no memory of the conversation;
//! [`retry::call_with_retry`] makes up to three. What the model says is data: nothing here runs a
//! call, decides about one, or trusts a server's text.

pub mod abort;
mod adapter;
pub mod error;
mod http;
mod json_calls;
pub mod message;
pub mod normalise;
pub mod providers;
pub mod retry;
mod retry_after;
pub mod script;
mod sse;
mod think;

pub use abort::Abort;
pub use error::{ModelError, StatusError, StatusKind};
pub use http::{HttpOptions, ProxyChoice};
pub use message::{
    Answer, Finish, Message, ModelRequest, ModelToolCall, Replay, Shown, StreamEvent, Thinking,
    ThinkingLevel, ToolCallStyle, ToolDefinition, Usage,
};
pub use normalise::{Repair, normalise};
pub use providers::{Endpoint, ModelChoice, Price, ProviderTable};
pub use retry::{AttemptFailure, Listener, RetryPolicy, Timer, call_with_retry};
pub use script::record::script_line;
pub use script::recording::{Recording, RecordingError};

use crate::base::secret::Secret;
use http::HttpModel;
use script::Script;

/// What a model is made from.
#[derive(Debug, Clone)]
pub enum ModelConfig {
    /// A provider on the network.
    Http {
        /// Which, and how it is spoken to.
        endpoint: Box<Endpoint>,
        /// The key that the caller found in the environment or a key file.
        key: Option<Secret>,
        /// How the network is used.
        options: HttpOptions,
    },
    /// Turns from a script.
    Script {
        /// The file's name, for messages.
        name: String,
        /// Its text.
        text: String,
    },
}

/// A model that can be called. Calls of several agents may be under way at once.
#[derive(Debug)]
pub struct Model(Kind);

#[derive(Debug)]
enum Kind {
    Http(Box<HttpModel>),
    Script(Script),
}

impl Model {
    /// Checks the configuration and makes the model ready; connects to nothing.
    ///
    /// # Errors
    /// [`ModelError::Configuration`], [`ModelError::NoKey`], [`ModelError::Script`].
    pub fn connect(config: ModelConfig) -> Result<Self, ModelError> {
        Ok(Self(match config {
            ModelConfig::Http { endpoint, key, options } => {
                Kind::Http(Box::new(HttpModel::new(*endpoint, key, options)?))
            }
            ModelConfig::Script { name, text } => Kind::Script(Script::parse(&name, &text)?),
        }))
    }

    /// One attempt. `on_event` is told the pieces as they arrive.
    ///
    /// # Errors
    /// Why there is no answer; [`ModelError::Aborted`] as soon as `abort` is set.
    pub async fn call(
        &self,
        request: &ModelRequest,
        on_event: &mut dyn FnMut(StreamEvent) -> Shown,
        abort: &Abort,
    ) -> Result<Answer, ModelError> {
        let attempt = async {
            match request.tool_calls {
                ToolCallStyle::Native => self.attempt(request, on_event).await,
                ToolCallStyle::Json => {
                    // The text is a document until it is whole: only thinking can be told before.
                    let mut thinking = |event| match event {
                        StreamEvent::ThinkingDelta(_) => on_event(event),
                        StreamEvent::TextDelta(_) | StreamEvent::CallStarted(_) => Shown::No,
                    };
                    let request = json_calls::encode(request);
                    let answer = self.attempt(&request, &mut thinking).await?;
                    let answer = json_calls::decode(answer)?;
                    if !answer.content.is_empty() {
                        on_event(StreamEvent::TextDelta(answer.content.clone()));
                    }
                    Ok(answer)
                }
            }
        };
        tokio::select! {
            biased;
            () = abort.aborted() => Err(ModelError::Aborted),
            answer = attempt => answer,
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        on_event: &mut dyn FnMut(StreamEvent) -> Shown,
    ) -> Result<Answer, ModelError> {
        match &self.0 {
            Kind::Http(model) => model.attempt(request, on_event).await,
            Kind::Script(script) => script.attempt(request, on_event).await,
        }
    }

    /// The endpoint of a model on the network.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.0 {
            Kind::Http(model) => Some(model.endpoint()),
            Kind::Script(_) => None,
        }
    }

    /// The price, if it is known; a script has none.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.endpoint().and_then(|endpoint| endpoint.price)
    }

    /// `ADAPTER:PROVIDER/MODEL`, or `script:NAME`: what a session is bound to.
    #[must_use]
    pub fn identity(&self) -> String {
        match &self.0 {
            Kind::Http(model) => model.endpoint().origin(),
            Kind::Script(script) => format!("script:{}", script.name()),
        }
    }
}
