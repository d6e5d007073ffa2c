//! A scripted HTTP server on the loopback interface, made of raw bytes: what a test asks for is what
//! is sent, however wrong. Each request takes the next reply; one too many gets status 500.
//!
//! ```ignore
//! #[path = "support/scripted_http.rs"]
//! mod scripted_http;
//! let server = Server::start(vec![Reply::chat_stream(&Turn::text("hello"))]);
//! // … point `--base-url` to server.base_url() …
//! assert_eq!(server.requests()[0].body["stream"], true);
//! ```

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// One thing that is done on the connection.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Send these bytes as they are.
    Bytes(Vec<u8>),
    /// Wait.
    Pause(Duration),
    /// Close the connection at once.
    Cut,
}

/// What is answered to one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply(Vec<Step>);

/// What a model says in one turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    /// Answer text.
    pub(crate) text: String,
    /// Calls: identifier, name, argument text.
    pub(crate) calls: Vec<(String, String, String)>,
    /// Finish reason; found from the calls if empty.
    pub(crate) finish: String,
}

impl Turn {
    /// A turn of text alone.
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Adds a call.
    pub(crate) fn call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.calls.push((id.to_owned(), name.to_owned(), arguments.to_owned()));
        self
    }

    /// Sets the finish reason.
    pub(crate) fn finish(mut self, reason: &str) -> Self {
        reason.clone_into(&mut self.finish);
        self
    }

    fn finish_reason(&self) -> &str {
        match self.finish.as_str() {
            "" if self.calls.is_empty() => "stop",
            "" => "tool_calls",
            reason => reason,
        }
    }

    fn call_values(&self) -> Vec<Value> {
        let calls = self.calls.iter().enumerate();
        calls
            .map(|(index, (id, name, arguments))| {
                json!({"index": index, "id": id, "type": "function",
                       "function": {"name": name, "arguments": arguments}})
            })
            .collect()
    }

    /// The turn as a Chat Completions document.
    pub(crate) fn chat_document(&self) -> Value {
        let message =
            json!({"role": "assistant", "content": self.text, "tool_calls": self.call_values()});
        json!({"model": "scripted", "usage": usage(), "choices": [
            {"index": 0, "message": message, "finish_reason": self.finish_reason()}]})
    }

    /// The turn as the bytes of a Chat Completions stream; text in pieces of a few characters.
    pub(crate) fn chat_events(&self) -> String {
        let chunk = |delta: Value, finish: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            format!("data: {}\n\n", json!({"model": "scripted", "choices": [choice]}))
        };
        let mut events = String::from(": ping\n\n");
        let characters: Vec<char> = self.text.chars().collect();
        for piece in characters.chunks(4) {
            let piece: String = piece.iter().collect();
            events += &chunk(json!({"content": piece}), Value::Null);
        }
        for call in self.call_values() {
            events += &chunk(json!({"tool_calls": [call]}), Value::Null);
        }
        events += &chunk(json!({}), json!(self.finish_reason()));
        events += &format!("data: {}\n\n", json!({"choices": [], "usage": usage()}));
        events + "data: [DONE]\n\n"
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}})
}

impl Reply {
    /// Any status with a JSON document and further headers.
    pub(crate) fn status(status: u16, headers: &[(&str, &str)], document: &Value) -> Self {
        Self::document(status, headers, "application/json", document.to_string().as_bytes())
    }

    /// Status 200 with any bytes.
    pub(crate) fn bytes(kind: &str, body: &[u8]) -> Self {
        Self::document(200, &[], kind, body)
    }

    /// A whole Chat Completions answer.
    pub(crate) fn chat(turn: &Turn) -> Self {
        Self::status(200, &[], &turn.chat_document())
    }

    /// A streamed Chat Completions answer.
    pub(crate) fn chat_stream(turn: &Turn) -> Self {
        Self::stream(&[turn.chat_events().as_bytes()])
    }

    /// A stream whose body is sent in these pieces.
    pub(crate) fn stream(pieces: &[&[u8]]) -> Self {
        let mut reply = Self::open_stream();
        for piece in pieces {
            reply = reply.then_chunk(piece);
        }
        reply.then_bytes(b"0\r\n\r\n")
    }

    /// The head of a stream; what follows is added by the `then_` functions.
    pub(crate) fn open_stream() -> Self {
        Self::default().then_bytes(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )
    }

    /// One chunk of a stream.
    pub(crate) fn then_chunk(self, bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return self;
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.then_bytes(&chunk)
    }

    /// Any bytes.
    pub(crate) fn then_bytes(mut self, bytes: &[u8]) -> Self {
        self.0.push(Step::Bytes(bytes.to_vec()));
        self
    }

    /// A wait.
    pub(crate) fn then_pause(mut self, duration: Duration) -> Self {
        self.0.push(Step::Pause(duration));
        self
    }

    /// The end of the connection.
    pub(crate) fn then_cut(mut self) -> Self {
        self.0.push(Step::Cut);
        self
    }

    /// A wait before the rest.
    pub(crate) fn after(mut self, duration: Duration) -> Self {
        self.0.insert(0, Step::Pause(duration));
        self
    }

    fn document(status: u16, headers: &[(&str, &str)], kind: &str, body: &[u8]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-length: {}\r\n\r\n", body.len());
        Self::default().then_bytes(head.as_bytes()).then_bytes(body)
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Number of the connection, counted from 0.
    pub(crate) connection: usize,
    /// Method and path.
    pub(crate) line: String,
    /// Headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body; null if it is no JSON.
    pub(crate) body: Value,
}

impl Request {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
struct Shared {
    replies: Vec<Reply>,
    requests: Vec<Request>,
    connections: usize,
}

/// The server. Its threads end with the test.
#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

impl Server {
    /// Starts to listen; the replies are used in order.
    pub(crate) fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Mutex::new(Shared { replies, ..Shared::default() }));
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&for_thread);
                thread::spawn(move || serve(connection, &shared));
            }
        });
        Self { port, shared }
    }

    /// The base URL of the Chat Completions and Responses adapters.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.lock().unwrap().requests.clone()
    }
}

fn serve(mut connection: TcpStream, shared: &Mutex<Shared>) {
    let number = {
        let mut shared = shared.lock().unwrap();
        shared.connections += 1;
        shared.connections - 1
    };
    connection.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    while let Some(request) = read_request(&mut reader, number) {
        let reply = {
            let mut shared = shared.lock().unwrap();
            shared.requests.push(request);
            if shared.replies.is_empty() {
                Reply::status(500, &[], &json!({"error": {"message": "no reply is scripted"}}))
            } else {
                shared.replies.remove(0)
            }
        };
        if !answer(&mut connection, &reply) {
            return;
        }
    }
}

/// Does the steps; `false` when the connection has ended.
fn answer(connection: &mut TcpStream, reply: &Reply) -> bool {
    for step in &reply.0 {
        let open = match step {
            Step::Bytes(bytes) => connection.write_all(bytes).is_ok(),
            Step::Pause(duration) => {
                thread::sleep(*duration);
                true
            }
            Step::Cut => connection.shutdown(Shutdown::Both).is_err(),
        };
        if !open {
            return false;
        }
    }
    true
}

fn read_request(reader: &mut BufReader<TcpStream>, connection: usize) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|bytes| *bytes > 0)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Request { connection, line: line.trim_end().to_owned(), headers, body })
}

/// Each test uses a part of this file; what it leaves out is no dead code.
const _: fn() = || {
    let _: [fn(&Turn) -> Reply; 2] = [Reply::chat, Reply::chat_stream];
    let _ = (Reply::status, Reply::bytes, Reply::stream, Reply::open_stream, Turn::text);
    let _ = (Reply::then_chunk, Reply::then_bytes, Reply::then_pause, Reply::then_cut);
    let _ = (Reply::after, Turn::call, Turn::finish, Server::start, Server::base_url);
    let _ = (Server::requests, Request::header, |request: &Request| request.connection);
};
