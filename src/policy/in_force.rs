//! Settings that this release reads and cannot hold. One whose absence would leave open what its
//! author meant to close is an error; one that is held more strictly than it is written is told when a
//! run starts, by `policy check` and by `policy lint`.

use super::file::diagnostic::{Collector, Diagnostic};
use super::file::schema::{Document, NetworkMode, Remember};
use super::file::source::SourceFile;
use super::unit::Loaded;
use std::ops::Range;
use std::sync::Arc;

/// The code of both.
const CODE: &str = "not-in-force";

/// Refuses what would be missed.
pub(super) fn check(files: &[Loaded], collector: &mut Collector) {
    let mode = files.iter().rev().find_map(|(_, document)| document.network.mode.as_ref());
    let is_open = mode.is_some_and(|mode| mode.value == NetworkMode::Host);
    for (file, document) in files {
        if let Some(sign) = document.audit.sign.as_ref().filter(|sign| sign.value) {
            let message = "nothing signs checkpoints yet".to_owned();
            let help =
                "leave the key out; the chain of records and the ledger of heads hold".into();
            collector.error(file, &sign.span, (CODE, message), Some(help));
        }
        for rule in document.network.rule.iter().filter(|rule| is_open && !rule.methods.is_empty())
        {
            let id = &rule.id.value;
            let message =
                format!("`{id}` names methods, and with the host's network nobody sees them");
            let help = "leave `methods` out, or set `mode = \"off\"`".to_owned();
            collector.error(file, &rule.id.span, (CODE, message), Some(help));
        }
    }
}

/// What is held more strictly than it is written.
pub(super) fn notices(files: &[Loaded]) -> Vec<Diagnostic> {
    files.iter().flat_map(|(file, document)| of_file(file, document)).collect()
}

fn of_file(file: &Arc<SourceFile>, document: &Document) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut notice = |span: &Range<usize>, message: &str, help: &str| {
        found.push(Diagnostic {
            code: CODE,
            message: message.to_owned(),
            help: Some(help.to_owned()),
            file: Arc::clone(file),
            span: span.clone(),
        });
    };
    if let Some(mode) = document.network.mode.as_ref().filter(|m| m.value == NetworkMode::Proxy) {
        let message = "`mode = \"proxy\"` gives no network at all: there is no proxy yet";
        notice(&mode.span, message, "`mode = \"off\"` says the same");
    }
    if let Some(remember) =
        document.permission.remember.as_ref().filter(|r| r.value == Remember::Always)
    {
        let message = "`remember = \"always\"` keeps an answer no longer than the run";
        notice(&remember.span, message, "`remember = \"session\"` says the same");
    }
    found
}
