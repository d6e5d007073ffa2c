//! Text to `Document`, with every error of shape at once. serde stops at the first error; here each
//! section and each rule is read by itself, and a value that is wrong is reported, taken out, and the
//! rest read again. To read again takes a copy of every value, so a file is first read without, which
//! is enough for one that has no error.

use super::diagnostic::{Collector, DIAGNOSTICS_MAX, did_you_mean};
use super::embedded;
use super::schema::Document;
use super::source::{Layer, SourceFile};
use crate::base::limits::POLICY_BYTES_MAX;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The version of the language that this program knows.
pub const LANGUAGE_VERSION: u32 = 1;

/// Reads one file. What could not be read is reported in `collector` and left at its default; the
/// result is to be used only if nothing was reported.
pub fn read(file: &Arc<SourceFile>, collector: &mut Collector) -> Document {
    if !fits(file, collector) {
        return Document::default();
    }
    // A built-in policy of another release, as a log keeps it, is read from its text.
    let embedded = (file.layer == Layer::BuiltIn).then(|| embedded::document(&file.text));
    if let Some(document) = embedded.flatten() {
        return document;
    }
    let (table, errors) = DeTable::parse_recoverable(&file.text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        collector.error(file, &span, ("invalid-toml", error.message().to_owned()), None);
    }
    if !errors.is_empty() {
        return Document::default();
    }
    if let Some(document) = read_once(file, table.into_inner()) {
        return document;
    }
    let (table, _) = DeTable::parse_recoverable(&file.text);
    Reader { file, errors: Errors::Reported(collector) }.document(table.into_inner())
}

/// The document, if nothing in it is wrong.
fn read_once(file: &Arc<SourceFile>, table: DeTable<'_>) -> Option<Document> {
    let mut reader = Reader { file, errors: Errors::Noticed(false) };
    let document = reader.document(table);
    matches!(reader.errors, Errors::Noticed(false)).then_some(document)
}

fn fits(file: &Arc<SourceFile>, collector: &mut Collector) -> bool {
    if file.text.len() > POLICY_BYTES_MAX {
        let message = format!("the file has more than {POLICY_BYTES_MAX} bytes");
        collector.error(file, &(0..0), ("file-too-large", message), None);
        return false;
    }
    if let Some(at) = file.text.find('\0') {
        collector.error(
            file,
            &(at..at + 1),
            ("nul-byte", "the file holds a NUL byte".into()),
            None,
        );
        return false;
    }
    true
}

struct Reader<'r> {
    file: &'r Arc<SourceFile>,
    errors: Errors<'r>,
}

/// What becomes of an error.
enum Errors<'r> {
    /// It is only noticed that there was one: the first reading.
    Noticed(bool),
    /// Each is reported, and what is around it is read: the second.
    Reported(&'r mut Collector),
}

type Value<'t> = Spanned<DeValue<'t>>;

impl Reader<'_> {
    fn document(&mut self, mut table: DeTable<'_>) -> Document {
        if !self.knows_version(&table) {
            return Document::default();
        }
        let mut document = Document {
            path: self.section(&mut table, "path"),
            command: self.section(&mut table, "command"),
            tool: self.section(&mut table, "tool"),
            network: self.section(&mut table, "network"),
            roles: self.section(&mut table, "roles"),
            hooks: self.section(&mut table, "hooks"),
            guardian: self.section(&mut table, "guardian"),
            permission: self.section(&mut table, "permission"),
            env: self.section(&mut table, "env"),
            limits: self.section(&mut table, "limits"),
            sandbox: self.section(&mut table, "sandbox"),
            audit: self.section(&mut table, "audit"),
            ..Document::default()
        };
        let head = Spanned::new(0..self.file.text.len(), DeValue::Table(table));
        if let Some(head) = self.value::<Document>(head) {
            document.version = head.version;
            document.description = head.description;
            document.extends = head.extends;
        }
        document
    }

    /// A file for a newer program must say that, not that its keys are unknown.
    fn knows_version(&mut self, table: &DeTable<'_>) -> bool {
        let Some(value) = table.get("version") else { return true };
        let written = value.get_ref().as_integer().and_then(|number| {
            let digits: String = number.as_str().chars().filter(|c| *c != '_').collect();
            u32::from_str_radix(&digits, number.radix()).ok()
        });
        match written {
            None | Some(LANGUAGE_VERSION) => true,
            Some(other) => {
                let message = format!("version {other} of the policy language is not known");
                let help = format!("this program knows version {LANGUAGE_VERSION}");
                self.report(&value.span(), ("unknown-version", message), Some(help));
                false
            }
        }
    }

    fn report(&mut self, span: &Range<usize>, what: (&'static str, String), help: Option<String>) {
        match &mut self.errors {
            Errors::Noticed(noticed) => *noticed = true,
            Errors::Reported(collector) => collector.error(self.file, span, what, help),
        }
    }

    /// Takes a section out of the table and reads it; lists of rules in it are read rule by rule.
    fn section<T: DeserializeOwned + Default + TakesRules>(
        &mut self,
        table: &mut DeTable<'_>,
        name: &str,
    ) -> T {
        let Some(mut value) = table.remove(name) else { return T::default() };
        let mut lists = Vec::new();
        if let DeValue::Table(section) = value.get_mut() {
            for key in ["rule", "assignment"] {
                if section.get(key).is_some_and(|list| list.get_ref().is_array()) {
                    lists.extend(section.remove(key).map(|list| (key, list)));
                }
            }
        }
        let mut section: T = self.value(value).unwrap_or_default();
        for (key, list) in lists {
            section.take_rules(key, list, self);
        }
        section
    }

    fn list<T: DeserializeOwned>(&mut self, list: Value<'_>) -> Vec<T> {
        let DeValue::Array(items) = list.into_inner() else { return Vec::new() };
        items.into_iter().filter_map(|item| self.value(item)).collect()
    }

    /// Reads a value; in the second reading each wrong part is reported and taken out until the rest
    /// can be read.
    fn value<T: DeserializeOwned>(&mut self, value: Value<'_>) -> Option<T> {
        match &mut self.errors {
            Errors::Reported(_) => self.value_by_parts(value),
            Errors::Noticed(noticed) => {
                let read = T::deserialize(ValueDeserializer::from(value));
                *noticed |= read.is_err();
                read.ok()
            }
        }
    }

    fn value_by_parts<T: DeserializeOwned>(&mut self, mut value: Value<'_>) -> Option<T> {
        let mut removed = false;
        loop {
            let error = match T::deserialize(ValueDeserializer::from(value.clone())) {
                Ok(result) => return Some(result),
                Err(error) => error,
            };
            let span = error.span().unwrap_or_else(|| value.span());
            let missing = error.message().starts_with("missing field");
            if !(missing && removed) {
                self.shape_error(&span, error.message());
            }
            if missing || self.is_full() || !remove_at(value.get_mut(), &span) {
                return None;
            }
            removed = true;
        }
    }

    /// Whether no further error would be shown.
    fn is_full(&self) -> bool {
        match &self.errors {
            Errors::Noticed(noticed) => *noticed,
            Errors::Reported(collector) => collector.found.len() >= DIAGNOSTICS_MAX,
        }
    }

    fn shape_error(&mut self, span: &Range<usize>, message: &str) {
        let code = if message.starts_with("unknown field") {
            "unknown-key"
        } else if message.starts_with("unknown variant") {
            "unknown-value"
        } else if message.starts_with("missing field") {
            "missing-key"
        } else {
            "wrong-type"
        };
        let mut quoted = message.split('`').skip(1).step_by(2);
        let word = quoted.next().unwrap_or("");
        let help = did_you_mean(word, quoted).map(|near| format!("did you mean `{near}`?"));
        let message = message
            .replace("unknown field", "unknown key")
            .replace("unknown variant", "unknown value")
            .replace("missing field", "missing key");
        self.report(span, (code, message), help);
    }
}

/// Takes the innermost key or element that lies at `span` out of `value`.
fn remove_at<'t>(value: &mut DeValue<'t>, span: &Range<usize>) -> bool {
    let holds = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
    match value {
        DeValue::Table(table) => {
            let key = table
                .iter()
                .find(|(key, value)| holds(&key.span()) || holds(&value.span()))
                .map(|(key, _)| key.clone());
            let Some(key) = key else { return false };
            let inner = table.get_mut(&key);
            let done = inner
                .is_some_and(|inner| inner.span() != *span && remove_at(inner.get_mut(), span));
            done || table.remove(&key).is_some()
        }
        DeValue::Array(array) => {
            let mut index = None;
            for (at, item) in array.iter().enumerate() {
                if holds(&item.span()) {
                    index = Some(at);
                }
            }
            index.is_some_and(|at| {
                let whole = std::mem::replace(array, std::iter::empty().collect());
                let mut items: Vec<_> = whole.into_iter().collect();
                items.remove(at);
                *array = items.into_iter().collect();
                true
            })
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => false,
    }
}

/// A section that may hold lists of rules.
trait TakesRules {
    fn take_rules(&mut self, key: &str, list: Value<'_>, reader: &mut Reader<'_>);
}

macro_rules! takes_rules {
    ($($section:ident),*) => {$(
        impl TakesRules for super::schema::$section {
            fn take_rules(&mut self, key: &str, list: Value<'_>, reader: &mut Reader<'_>) {
                if key == "rule" {
                    self.rule = reader.list(list);
                } else {
                    reader.shape_error(&list.span(), &format!("unknown field `{key}`, expected `rule`"));
                }
            }
        }
    )*};
}
takes_rules!(PathSection, ToolSection, NetworkSection, HooksSection);

macro_rules! takes_no_rules {
    ($($section:ident),*) => {$(
        impl TakesRules for super::schema::$section {
            fn take_rules(&mut self, key: &str, list: Value<'_>, reader: &mut Reader<'_>) {
                reader.shape_error(&list.span(), &format!("unknown field `{key}`: this section has no rules"));
            }
        }
    )*};
}
takes_no_rules!(
    RolesSection,
    GuardianSection,
    PermissionSection,
    EnvSection,
    LimitsSection,
    SandboxSection,
    AuditSection
);

impl TakesRules for super::schema::CommandSection {
    fn take_rules(&mut self, key: &str, list: Value<'_>, reader: &mut Reader<'_>) {
        if key == "assignment" {
            self.assignment = reader.list(list);
        } else {
            self.rule = reader.list(list);
        }
    }
}
