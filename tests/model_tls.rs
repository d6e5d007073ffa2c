//! The model client over TLS: what it trusts, and that it keeps its connection.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use stoplog::base::secret::Secret;
use stoplog::model::{
    Abort, Answer, HttpOptions, Message, Model, ModelChoice, ModelConfig, ModelError, ModelRequest,
    ProviderTable, Shown,
};

const DOCUMENT: &str =
    r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{}}"#;

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/tls").join(name)
}

/// Serves the same answer for ever; gives its port and the number of its connections.
fn serve() -> (u16, Arc<AtomicUsize>) {
    let certificate = CertificateDer::from_pem_file(pem("certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(pem("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let (config, connections) = (Arc::new(config), Arc::new(AtomicUsize::new(0)));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::clone(&connections);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || answer_all(rustls::StreamOwned::new(tls, connection)));
        }
    });
    (port, connections)
}

fn answer_all(stream: rustls::StreamOwned<rustls::ServerConnection, std::net::TcpStream>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                let lower = line.to_ascii_lowercase();
                let value = lower.trim().strip_prefix("content-length: ").map(str::parse);
                length = value.map_or(length, Result::unwrap);
            } else if line.is_empty() {
                return;
            } else {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
        let answer = format!("{head}: {}\r\n\r\n{DOCUMENT}", DOCUMENT.len());
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
        reader.get_mut().flush().unwrap();
    }
}

fn connect(base_url: &str, ca_file: Option<PathBuf>) -> Result<Model, ModelError> {
    let table = ProviderTable::built_in().unwrap();
    let choice = ModelChoice::parse("openai/scripted").unwrap();
    let endpoint = Box::new(table.resolve(&choice, Some(base_url)).unwrap());
    let options = HttpOptions { ca_file, ..HttpOptions::default() };
    Model::connect(ModelConfig::Http { endpoint, key: Some(Secret::new("sk-1")), options })
}

fn call(model: &Model, times: usize) -> Vec<Result<Answer, ModelError>> {
    let request = ModelRequest::new("", vec![Message::user("hello")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut answers = Vec::new();
        for _ in 0..times {
            answers.push(model.call(&request, &mut |_| Shown::No, &Abort::new()).await);
        }
        answers
    })
}

#[test]
fn a_certificate_of_ones_own_is_trusted_only_if_it_is_given() {
    let (port, connections) = serve();
    let base_url = format!("https://127.0.0.1:{port}/v1");
    let stranger = connect(&base_url, None).unwrap();
    let error = call(&stranger, 1).remove(0).unwrap_err();
    assert!(matches!(error, ModelError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    let friend = connect(&base_url, Some(pem("certificate.pem"))).unwrap();
    let before = connections.load(Ordering::SeqCst);
    for answer in call(&friend, 3) {
        assert_eq!(answer.unwrap().content, "hello");
    }
    assert_eq!(connections.load(Ordering::SeqCst) - before, 1, "one connection serves all calls");
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let (port, _) = serve();
    let base_url = format!("https://[::ffff:127.0.0.1]:{port}/v1");
    let model = connect(&base_url, Some(pem("certificate.pem"))).unwrap();
    let error = call(&model, 1).remove(0).unwrap_err();
    assert!(matches!(error, ModelError::Connect { .. }), "{error}");
}

#[test]
fn a_certificate_file_that_is_none_is_named() {
    for (file, told) in [("README.md", "no certificate"), ("absent.pem", "No such file")] {
        let error = connect("https://127.0.0.1:1/v1", Some(pem(file))).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains(file), "{error}");
    }
}
