//! Moves the bytes of one attempt: request out, answer in, bounded in size and in silence.
//!
//! Redirects are not followed, environment proxies are ignored unless asked for, plain HTTP goes to
//! this machine only. The key enters one header and is taken out of every text that a server sends
//! back.

use crate::base::clock::Clock;
use crate::base::limits::{
    MODEL_AFTER_FINISH_MAX, MODEL_CONNECT_MAX, MODEL_DRAIN_MAX, MODEL_ERROR_BYTES_MAX,
    MODEL_EVENT_BYTES_MAX, MODEL_HEADER_BYTES_MAX, MODEL_IDLE_CONNECTIONS_MAX,
    MODEL_WHOLE_ANSWER_MAX,
};
use crate::base::secret::Secret;
use crate::model::adapter::build::AnswerBuilder;
use crate::model::adapter::document::Document;
use crate::model::adapter::stream::StreamReader;
use crate::model::adapter::{self, ErrorContext, Reader};
use crate::model::error::ModelError;
use crate::model::message::{Answer, ModelRequest, Shown, StreamEvent};
use crate::model::providers::{Endpoint, Temperature};
use crate::model::retry_after;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Whether a proxy stands between stoplog and the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProxyChoice {
    /// None, whatever the environment says.
    #[default]
    None,
    /// The one that the environment names.
    Environment,
    /// This one.
    Url(String),
}

/// How the network is used, beside what the endpoint says.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// Certificates (PEM) that are trusted beside the machine's.
    pub ca_file: Option<PathBuf>,
    /// The proxy.
    pub proxy: ProxyChoice,
    /// The clock for `retry-after` dates.
    pub clock: Clock,
}

/// [`MODEL_HEADER_BYTES_MAX`] in the type that HTTP/2 settings have.
const HTTP2_HEADER_BYTES_MAX: u32 = 64 * 1024;

type Sink<'a> = &'a mut dyn FnMut(StreamEvent) -> Shown;

/// A client of one endpoint.
#[derive(Debug)]
pub(crate) struct HttpModel {
    client: reqwest::Client,
    endpoint: Endpoint,
    url: reqwest::Url,
    headers: HeaderMap,
    key: Option<Secret>,
    clock: Clock,
    /// Set once the model has refused a temperature.
    without_temperature: AtomicBool,
    /// The last request, which the next one goes on from.
    document: Mutex<Document>,
}

impl HttpModel {
    /// Checks the configuration and makes the client; connects to nothing.
    pub(crate) fn new(
        endpoint: Endpoint,
        key: Option<Secret>,
        options: HttpOptions,
    ) -> Result<Self, ModelError> {
        let url = request_url(&endpoint)?;
        let key = key.filter(|key| !key.expose().is_empty());
        if key.is_none() && endpoint.key_required && !is_loopback(&url) {
            return Err(ModelError::NoKey {
                provider: endpoint.provider,
                variable: endpoint.key_variable.unwrap_or_else(|| "of its key".to_owned()),
            });
        }
        let headers = headers(&endpoint, key.as_ref())?;
        let client = client(&url, &options)?;
        let without_temperature = AtomicBool::new(!endpoint.sends_temperature());
        let (clock, document) = (options.clock, Mutex::default());
        Ok(Self { client, endpoint, url, headers, key, clock, without_temperature, document })
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// One attempt. A model that turns out to refuse a temperature is asked again without: not the
    /// same request, so no retry.
    pub(crate) async fn attempt(
        &self,
        request: &ModelRequest,
        on_event: Sink<'_>,
    ) -> Result<Answer, ModelError> {
        let result = self.exchange(request, &mut *on_event).await;
        match result {
            Err(error) if self.learns_without_temperature(&error) => {
                self.exchange(request, on_event).await
            }
            Ok(_) | Err(_) => result,
        }
    }

    fn learns_without_temperature(&self, error: &ModelError) -> bool {
        let refused = matches!(error, ModelError::Status(status)
            if matches!(status.status, 400 | 422) && status.message.contains("temperature"));
        refused && !self.without_temperature.swap(true, Ordering::Relaxed)
    }

    fn body(&self, request: &ModelRequest) -> Result<Bytes, ModelError> {
        let mut document = self.document.lock().unwrap_or_else(PoisonError::into_inner);
        let body = if self.without_temperature.load(Ordering::Relaxed) {
            let temperature = Temperature::Omit;
            let endpoint = Endpoint { temperature, ..self.endpoint.clone() };
            document.write(&endpoint, request)
        } else {
            document.write(&self.endpoint, request)
        };
        body.map_err(|error| adapter::invalid(format!("the request cannot be written: {error}")))
    }

    async fn exchange(
        &self,
        request: &ModelRequest,
        on_event: Sink<'_>,
    ) -> Result<Answer, ModelError> {
        let body = self.body(request)?;
        let sending =
            self.client.post(self.url.clone()).headers(self.headers.clone()).body(body).send();
        // A whole answer comes only when the model has finished.
        let patience = if self.endpoint.streaming {
            self.endpoint.idle
        } else {
            self.endpoint.idle.max(MODEL_WHOLE_ANSWER_MAX)
        };
        let response = tokio::time::timeout(patience, sending)
            .await
            .map_err(|_elapsed| ModelError::Idle(patience))?
            .map_err(|error| self.transport(&error))?;
        check_headers(response.headers())?;
        if !response.status().is_success() {
            return Err(self.status_error(response).await);
        }
        if self.is_event_stream(response.headers()) {
            self.read_stream(response, request, on_event).await
        } else {
            self.read_whole(response, request, on_event).await
        }
    }

    async fn read_stream(
        &self,
        mut response: reqwest::Response,
        request: &ModelRequest,
        on_event: Sink<'_>,
    ) -> Result<Answer, ModelError> {
        let mut stream = StreamReader::new(&self.endpoint, MODEL_EVENT_BYTES_MAX);
        let mut broken = None;
        let mut moved = Instant::now();
        while !stream.is_done() && broken.is_none() {
            let (idle, most) = if stream.has_finish() {
                (MODEL_AFTER_FINISH_MAX, MODEL_AFTER_FINISH_MAX)
            } else {
                (self.endpoint.idle, self.endpoint.stalled)
            };
            match self.bytes_within(&mut response, idle, (moved, most)).await {
                Ok(Some(bytes)) => {
                    let before = stream.state();
                    let events = stream.push(&bytes).map_err(|error| self.without_key(error))?;
                    if stream.state() != before {
                        moved = Instant::now();
                    }
                    tell(events, on_event);
                }
                Ok(None) => break,
                Err(error) => broken = Some(error),
            }
        }
        if stream.is_done() && self.url.scheme() == "https" {
            // The connection will be used again. Errors do not matter: the answer is complete.
            drop(tokio::time::timeout(MODEL_DRAIN_MAX, drain(response)).await);
        }
        let (answer, events) = stream.finish(request, broken)?;
        tell(events, on_event);
        Ok(answer)
    }

    async fn read_whole(
        &self,
        response: reqwest::Response,
        request: &ModelRequest,
        on_event: Sink<'_>,
    ) -> Result<Answer, ModelError> {
        let body = self.read_body(response, MODEL_EVENT_BYTES_MAX).await?;
        let mut reader = Reader::new(&self.endpoint);
        let mut answer = AnswerBuilder::new(MODEL_EVENT_BYTES_MAX);
        reader.whole(&body, &mut answer).map_err(|error| self.without_key(error))?;
        reader.end(&mut answer);
        if !answer.has_finish() {
            return Err(adapter::invalid("the document holds no finish reason"));
        }
        tell(answer.take_events(), on_event);
        let (answer, events) = answer.build(request)?;
        tell(events, on_event);
        Ok(answer)
    }

    async fn read_body(
        &self,
        mut response: reqwest::Response,
        limit: usize,
    ) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        let within = (Instant::now(), MODEL_WHOLE_ANSWER_MAX);
        while let Some(bytes) = self.bytes_within(&mut response, self.endpoint.idle, within).await?
        {
            if body.len() + bytes.len() > limit {
                return Err(ModelError::TooLarge { what: "answer", limit });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// The next bytes, if they come within `idle` and before so much time has passed since a moment: a
    /// server that keeps a connection alive must not hold a run for ever.
    async fn bytes_within(
        &self,
        response: &mut reqwest::Response,
        idle: Duration,
        (since, most): (Instant, Duration),
    ) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]> + use<>>, ModelError> {
        let left = most.saturating_sub(since.elapsed());
        if left.is_zero() {
            return Err(ModelError::Stalled(most));
        }
        match self.next_bytes(response, idle.min(left)).await {
            Err(ModelError::Idle(_)) if left < idle => Err(ModelError::Stalled(most)),
            other => other,
        }
    }

    /// The next bytes, whatever they are: a ping is life as well.
    async fn next_bytes(
        &self,
        response: &mut reqwest::Response,
        idle: Duration,
    ) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]> + use<>>, ModelError> {
        let next = tokio::time::timeout(idle, response.chunk()).await;
        next.map_err(|_elapsed| ModelError::Idle(idle))?.map_err(|error| {
            if self.endpoint.streaming { ModelError::CutStream } else { self.transport(&error) }
        })
    }

    /// Whether the answer is a stream. Some servers do not name its type.
    fn is_event_stream(&self, headers: &HeaderMap) -> bool {
        let kind = headers.get(reqwest::header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        let is = |name: &[u8]| kind.starts_with(name);
        let unnamed = kind.is_empty() || is(b"text/plain") || is(b"application/octet-stream");
        is(b"text/event-stream") || (unnamed && self.endpoint.streaming)
    }

    async fn status_error(&self, response: reqwest::Response) -> ModelError {
        let status = response.status().as_u16();
        let retry_after = retry_after::delay(response.headers(), self.clock.now_ms());
        let body = self.read_error_body(response).await;
        let (message, class) = serde_json::from_slice(&body).map_or_else(
            |_| (plain_words(&body), String::new()),
            |document| adapter::error_words(&document),
        );
        let context = ErrorContext::of(&self.endpoint);
        context.status_error(status, &self.hide_key(&message), &class, retry_after)
    }

    /// The beginning of an error document; its end, and errors on the way, do not matter.
    async fn read_error_body(&self, mut response: reqwest::Response) -> Vec<u8> {
        let mut body = Vec::new();
        let (idle, since) = (MODEL_AFTER_FINISH_MAX, Instant::now());
        while let Ok(Some(bytes)) = self.bytes_within(&mut response, idle, (since, idle)).await {
            body.extend_from_slice(&bytes);
            if body.len() > MODEL_ERROR_BYTES_MAX {
                body.truncate(MODEL_ERROR_BYTES_MAX);
                break;
            }
        }
        body
    }

    fn transport(&self, error: &reqwest::Error) -> ModelError {
        let address = self.url.origin().ascii_serialization();
        let problem = self.hide_key(&crate::base::text::escape(&innermost(error)));
        if error.is_connect() || error.is_timeout() {
            ModelError::Connect { address, problem }
        } else {
            ModelError::Transport { address, problem }
        }
    }

    fn hide_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key.expose(), "[key]"),
            None => text.to_owned(),
        }
    }

    fn without_key(&self, error: ModelError) -> ModelError {
        if let ModelError::Status(mut status) = error {
            status.message = self.hide_key(&status.message);
            ModelError::Status(status)
        } else {
            error
        }
    }
}

fn tell(events: Vec<StreamEvent>, on_event: Sink<'_>) {
    for event in events {
        on_event(event);
    }
}

/// The words of an error document that is no JSON. A page for browsers says nothing here.
fn plain_words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with('<') { "an HTML page".to_owned() } else { text.into_owned() }
}

async fn drain(mut response: reqwest::Response) {
    while let Ok(Some(_)) = response.chunk().await {}
}

fn check_headers(headers: &HeaderMap) -> Result<(), ModelError> {
    let bytes: usize =
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > MODEL_HEADER_BYTES_MAX {
        return Err(ModelError::TooLarge { what: "header", limit: MODEL_HEADER_BYTES_MAX });
    }
    Ok(())
}

/// The most telling text of an error chain: its innermost.
fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

fn request_url(endpoint: &Endpoint) -> Result<reqwest::Url, ModelError> {
    let path = adapter::path(endpoint.adapter);
    let text = format!("{}/{path}", endpoint.base_url.trim_end_matches('/'));
    let wrong = |problem: &str| {
        let shown = crate::base::text::escape(&endpoint.base_url);
        ModelError::Configuration(format!("base URL `{shown}` {problem}"))
    };
    let url = reqwest::Url::parse(&text).map_err(|error| wrong(&format!("is no URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ModelError::Configuration(
            "the base URL holds a user name or password; give the key by its environment variable"
                .to_owned(),
        ));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => {
            Err(wrong("is plain http to another machine, which would show the key; use https"))
        }
        _ => Err(wrong("must begin with https://")),
    }
}

/// Whether the address is this machine by its spelling. `localhost` is pinned to the loopback
/// addresses by [`client`], so that no name service can say otherwise.
fn is_loopback(url: &reqwest::Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn headers(endpoint: &Endpoint, key: Option<&Secret>) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let wrong = || {
            ModelError::Configuration(format!(
                "header `{name}` of `{}` is invalid",
                endpoint.provider
            ))
        };
        let name = HeaderName::try_from(name).map_err(|_invalid| wrong())?;
        let mut value = HeaderValue::try_from(value).map_err(|_invalid| wrong())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if let Some((name, value)) = adapter::fixed_header(endpoint.adapter) {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let accepted = if endpoint.streaming { "text/event-stream" } else { "application/json" };
    headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static(accepted));
    if let Some(key) = key {
        let (name, value) = adapter::key_header(endpoint.adapter, key);
        let mut value = HeaderValue::try_from(value).map_err(|_invalid| {
            let variable = endpoint.key_variable.as_deref().unwrap_or("the key");
            ModelError::Configuration(format!("{variable} holds characters that no key has"))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn client(url: &reqwest::Url, options: &HttpOptions) -> Result<reqwest::Client, ModelError> {
    // Fails only if a provider is installed already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let wrong = |error: &reqwest::Error| {
        ModelError::Configuration(format!("HTTP client: {}", innermost(error)))
    };
    let plain = url.scheme() == "http";
    let builder = reqwest::Client::builder()
        .user_agent(concat!("stoplog/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(MODEL_CONNECT_MAX)
        .pool_max_idle_per_host(if plain { 0 } else { MODEL_IDLE_CONNECTIONS_MAX })
        .http2_max_header_list_size(HTTP2_HEADER_BYTES_MAX);
    let builder = if is_loopback(url) {
        let port = url.port_or_known_default().unwrap_or(0);
        let (v4, v6) = (std::net::Ipv4Addr::LOCALHOST, std::net::Ipv6Addr::LOCALHOST);
        let addresses = [std::net::SocketAddr::from((v4, port)), (v6, port).into()];
        builder.no_proxy().resolve_to_addrs("localhost", &addresses)
    } else {
        match &options.proxy {
            ProxyChoice::Environment => builder,
            ProxyChoice::None => builder.no_proxy(),
            ProxyChoice::Url(proxy) => {
                let proxy = reqwest::Proxy::all(proxy).map_err(|error| wrong(&error))?;
                builder.no_proxy().proxy(proxy)
            }
        }
    };
    let certificates = read_certificates(options)?;
    let builder = if plain {
        // No TLS will be spoken: the machine's certificates need not be read.
        builder.tls_certs_only(certificates)
    } else if certificates.is_empty() {
        builder
    } else {
        builder.tls_certs_merge(certificates)
    };
    builder.build().map_err(|error| wrong(&error))
}

fn read_certificates(options: &HttpOptions) -> Result<Vec<reqwest::Certificate>, ModelError> {
    let Some(path) = &options.ca_file else { return Ok(Vec::new()) };
    let wrong = |problem: String| {
        ModelError::Configuration(format!("certificate file `{}`: {problem}", path.display()))
    };
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let certificates =
        reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| wrong(innermost(&error)))?;
    if certificates.is_empty() {
        return Err(wrong("holds no certificate".to_owned()));
    }
    Ok(certificates)
}
