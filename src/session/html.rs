//! A session as one HTML page: nothing is loaded, nothing can run, every text is escaped and passed
//! through the redaction.

use super::export::Redact;
use crate::base::clock::rfc3339;
use crate::base::digest::Digest;
use crate::base::text::escape_keeping_lines;
use crate::session::facts::message::{Message, ToolCall};
use crate::session::state::{Placed, SessionState};
use crate::session::view::in_call_order;
use std::collections::{HashMap, HashSet};

/// The only style of the page; its digest stands in the page's policy.
const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1b1b1b;background:#fff}\
h1{font-size:1.3rem}h2{font-size:1rem;margin:1.5rem 0 .3rem}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f4f4;padding:.6rem;border-radius:4px;\
font:14px/1.45 ui-monospace,monospace;margin:.3rem 0}\
dt{font-weight:600;float:left;clear:left;width:7rem}dd{margin:0 0 0 7rem;overflow-wrap:anywhere}\
section{border-left:4px solid #bbb;padding-left:.8rem}\
.user{border-color:#2a6}.assistant{border-color:#36c}.host,.result{border-color:#999}\
summary{cursor:pointer;color:#555}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#161616}pre{background:#242424}\
summary{color:#aaa}}";

/// The whole conversation as a page. Every text passes through `redact`.
#[must_use]
pub fn html(state: &SessionState, redact: Redact<'_>) -> String {
    let page = Page { redact };
    let style = base64(Digest::of(STYLE.as_bytes()).as_bytes());
    let title = format!("Session {}", page.text(state.header.id.as_str()));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'sha256-{style}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    out.push_str(&page.facts(state));
    out.push_str(&page.messages(state));
    out.push_str("</body>\n</html>\n");
    out
}

struct Page<'redact> {
    redact: Redact<'redact>,
}

impl Page<'_> {
    /// The one way by which text gets into the page.
    fn text(&self, text: &str) -> String {
        let visible = escape_keeping_lines(&(self.redact)(text));
        let mut out = String::with_capacity(visible.len());
        for character in visible.chars() {
            match character {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                other => out.push(other),
            }
        }
        out
    }

    fn pre(&self, text: &str) -> String {
        // The first line feed behind the tag would be dropped.
        format!("<pre>\n{}</pre>\n", self.text(text))
    }

    fn folded(&self, title: &str, text: &str) -> String {
        let title = self.text(title);
        format!("<details><summary>{title}</summary>\n{}</details>\n", self.pre(text))
    }

    fn facts(&self, state: &SessionState) -> String {
        let header = &state.header;
        let rows = [
            ("created", rfc3339(header.created_at)),
            ("workspace", header.cwd.clone()),
            ("model", format!("{}/{}", header.provider, header.model)),
            ("tokens", format!("{} in, {} out", state.usage.input, state.usage.output)),
        ];
        let rows = rows
            .iter()
            .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", self.text(value)));
        format!("<dl>\n{}</dl>\n", rows.collect::<String>())
    }

    fn messages(&self, state: &SessionState) -> String {
        let injected: HashSet<&str> =
            state.extension.injected.iter().map(|item| item.entry_id.as_str()).collect();
        let mut thinking: HashMap<&str, Vec<&str>> = HashMap::new();
        for item in &state.extension.thinking {
            thinking.entry(item.assistant_entry_id.as_str()).or_default().push(&item.text);
        }
        let mut names = HashMap::new();
        in_call_order(&state.transcript)
            .into_iter()
            .map(|placed| {
                let thoughts = thinking.remove(placed.entry_id.as_str()).unwrap_or_default();
                let by_host = injected.contains(placed.entry_id.as_str());
                self.message(placed, by_host, &thoughts, &mut names)
            })
            .collect()
    }

    fn message<'state>(
        &self,
        placed: &'state Placed,
        by_host: bool,
        thoughts: &[&str],
        names: &mut HashMap<&'state str, &'state str>,
    ) -> String {
        let (class, title, body) = match &*placed.message {
            Message::User(user) if by_host => ("host", "Host", self.pre(&user.content)),
            Message::User(user) => ("user", "User", self.pre(&user.content)),
            Message::Assistant(answer) => {
                let thoughts = thoughts.iter().map(|text| self.folded("thinking", text));
                let mut body: String = thoughts.collect();
                if let Some(text) = answer.content.as_deref().filter(|text| !text.is_empty()) {
                    body.push_str(&self.pre(text));
                }
                for call in &answer.tool_calls {
                    names.insert(&call.id, &call.function.name);
                    body.push_str(&self.call(call));
                }
                ("assistant", "Assistant", body)
            }
            Message::Tool(tool) => {
                let name = names.get(tool.tool_call_id.as_str()).copied().unwrap_or("a call");
                let title = format!("result of {name}, {} bytes", tool.content.len());
                ("result", "Result", self.folded(&title, &tool.content))
            }
        };
        format!("<section class=\"{class}\">\n<h2>{title}</h2>\n{body}</section>\n")
    }

    fn call(&self, call: &ToolCall) -> String {
        let name = self.text(&call.function.name);
        format!("<p>calls <code>{name}</code></p>\n{}", self.pre(&call.function.arguments))
    }
}

/// Base64 as a page's policy has it for digests.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |value: u32| {
        let index = usize::try_from(value & 63).unwrap_or(0);
        DIGITS.get(index).map_or('=', |digit| char::from(*digit))
    };
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let value = (0..3).fold(0_u32, |value, place| {
            (value << 8) | u32::from(group.get(place).copied().unwrap_or(0))
        });
        let digits = [digit(value >> 18), digit(value >> 12), digit(value >> 6), digit(value)];
        out.extend(digits.into_iter().take(group.len() + 1));
        out.extend(std::iter::repeat_n('=', 3 - group.len()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_the_usual_one() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        let digest = base64(Digest::of(b"").as_bytes());
        assert_eq!(digest, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
