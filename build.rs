//! Reads the built-in policies with the TOML library while the program is built, and writes what it read
//! as bytes that a start takes over without reading again: `src/policy/file/embedded.rs`, which has the
//! format. Decides nothing: a test holds that what is taken over is what the text says.

use std::error::Error;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

#[expect(clippy::disallowed_methods, reason = "cargo names the directories by the environment")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=policies");
    let (root, out) = (std::env::var("CARGO_MANIFEST_DIR")?, std::env::var("OUT_DIR")?);
    for entry in std::fs::read_dir(Path::new(&root).join("policies"))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let table =
            DeTable::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut bytes = Vec::new();
        Writer { text: &text, bytes: &mut bytes }.table(&table.span(), table.get_ref());
        let name = path.with_extension("policy");
        std::fs::write(Path::new(&out).join(name.file_name().unwrap_or_default()), bytes)?;
    }
    Ok(())
}

struct Writer<'w> {
    text: &'w str,
    bytes: &'w mut Vec<u8>,
}

type Span = std::ops::Range<usize>;

impl Writer<'_> {
    fn number(&mut self, mut number: usize) {
        while number > 0x7f {
            self.bytes.push(u8::try_from(number & 0x7f | 0x80).unwrap_or_default());
            number >>= 7;
        }
        self.bytes.push(u8::try_from(number).unwrap_or_default());
    }

    fn head(&mut self, tag: u8, span: &Span) {
        self.bytes.push(tag);
        self.number(span.start);
        self.number(span.len());
    }

    fn table(&mut self, span: &Span, table: &DeTable<'_>) {
        self.head(b'T', span);
        let kept = || table.iter().filter(|(key, _)| !is_example(key.get_ref()));
        self.number(kept().count());
        for (key, value) in kept() {
            self.string(&key.span(), key.get_ref());
            self.value(value);
        }
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>) {
        let span = value.span();
        match value.get_ref() {
            DeValue::Table(table) => self.table(&span, table),
            DeValue::Array(array) => {
                self.head(b'A', &span);
                self.number(array.len());
                array.iter().for_each(|value| self.value(value));
            }
            DeValue::String(string) => self.string(&span, string),
            DeValue::Boolean(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Datetime(_) => self.head(b'V', &span),
        }
    }

    /// Most strings are what stands in the file, some between quotes.
    fn string(&mut self, span: &Span, string: &str) {
        let written = self.text.get(span.clone()).unwrap_or_default();
        let quoted = written.get(1..written.len().saturating_sub(1));
        if written == string {
            self.head(b'W', span);
        } else if quoted == Some(string) {
            self.head(b'Q', span);
        } else {
            self.head(b'S', span);
            self.number(string.len());
            self.bytes.extend_from_slice(string.as_bytes());
        }
    }
}

/// The examples of a rule, which the tests of the program run, not each of its starts.
fn is_example(key: &str) -> bool {
    key == "match" || key == "not_match"
}
