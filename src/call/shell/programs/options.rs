//! Reading of command-line options in the manner of `getopt_long`, driven by a short description.
//!
//! A description is `short` in getopt's own notation (`a` flag, `b:` value, `c::` attached value only)
//! and a list of long names (`name` flag, `name=` value, `name?` value only behind `=`). Long names may
//! be abbreviated by the caller of the program, as glibc allows.

use crate::call::shell::meaning::fields::Field;

/// The options of one program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) short: &'static str,
    pub(crate) long: &'static [&'static str],
    /// Long options start with one dash (`find`, `java`).
    pub(crate) single_dash: bool,
}

/// One option as it was given.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// `-x` or the full `--name`, as in the description; an option that is not described is given
    /// as written.
    pub(crate) name: String,
    /// Its value, a field or the rest of one.
    pub(crate) value: Option<Field>,
    pub(crate) described: bool,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) given: Vec<Given>,
    /// Indices of the operands.
    pub(crate) operands: Vec<usize>,
    /// An option that is not described, or a word that is not known, stood where it could change
    /// what the words behind it mean.
    pub(crate) unclear: bool,
}

/// Reads `fields`. With `stop`, the first operand ends the options, as for programs that run others.
pub(crate) fn read(fields: &[Field], options: &Options, stop: bool) -> Read {
    let mut read = Read::default();
    let mut index = 0;
    while let Some(field) = fields.get(index) {
        index += 1;
        let text = field.prefix();
        if text == "--" && field.exact().is_some() {
            read.operands.extend(index..fields.len());
            return read;
        }
        if !text.starts_with('-') || field.exact() == Some("-") {
            // An unknown word could be an option, or no word at all.
            read.unclear |= field.exact().is_none() && (text.is_empty() || field.many);
            read.operands.push(index - 1);
            if stop {
                read.operands.extend(index..fields.len());
                return read;
            }
            continue;
        }
        let next = fields.get(index);
        index += usize::from(read.option(field, next, options));
    }
    read
}

impl Read {
    /// Reads one option; true if it took the next field as its value.
    fn option(&mut self, field: &Field, next: Option<&Field>, options: &Options) -> bool {
        if field.value.starts_with("--") || options.single_dash {
            return self.long(field, next, options);
        }
        self.cluster(field, next, options)
    }

    fn long(&mut self, field: &Field, next: Option<&Field>, options: &Options) -> bool {
        let dashes = if field.value.starts_with("--") { 2 } else { 1 };
        let text = field.value.get(dashes..).unwrap_or("");
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        // The name itself is not known unless the equals sign was reached.
        self.unclear |= field.unknown && attached.is_none();
        let Some((full, kind)) = find_long(name, options) else {
            self.unclear = true;
            self.push(
                &format!("{}{name}", if dashes == 2 { "--" } else { "-" }),
                attached.map(|value| part(field, value)),
                false,
            );
            return false;
        };
        let full = format!("--{full}");
        if let Some(value) = attached {
            self.push(&full, Some(part(field, value)), true);
            return false;
        }
        let takes_next = kind == Kind::Value;
        self.unclear |= takes_next && next.is_none_or(|next| next.unknown && next.many);
        self.push(&full, if takes_next { next.cloned() } else { None }, true);
        takes_next
    }

    fn cluster(&mut self, field: &Field, next: Option<&Field>, options: &Options) -> bool {
        let text = field.value.get(1..).unwrap_or("");
        for (index, letter) in text.char_indices() {
            let name = format!("-{letter}");
            let after = text.get(index + letter.len_utf8()..).unwrap_or("");
            match find_short(letter, options.short) {
                Some(Kind::Flag) => self.push(&name, None, true),
                Some(Kind::Attached) => {
                    self.push(&name, Some(part(field, after)), true);
                    return false;
                }
                Some(Kind::Value) if after.is_empty() && !field.unknown => {
                    self.unclear |= next.is_none_or(|next| next.unknown && next.many);
                    self.push(&name, next.cloned(), true);
                    return true;
                }
                Some(Kind::Value) => {
                    self.push(&name, Some(part(field, after)), true);
                    return false;
                }
                None => {
                    self.unclear = true;
                    self.push(&name, None, false);
                }
            }
        }
        self.unclear |= field.unknown || field.pattern.is_some();
        false
    }

    fn push(&mut self, name: &str, value: Option<Field>, described: bool) {
        self.given.push(Given { name: name.to_owned(), value, described });
    }
}

/// The end of a field, as a value of its own.
fn part(field: &Field, value: &str) -> Field {
    let offset = field.value.len() - value.len();
    Field {
        value: value.to_owned(),
        pattern: field.pattern.map(|pattern| pattern.saturating_sub(offset)),
        ..field.clone()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag,
    Value,
    Attached,
}

fn find_short(letter: char, short: &str) -> Option<Kind> {
    let index = short.find(letter).filter(|_| letter != ':')?;
    let after = short.get(index + letter.len_utf8()..)?;
    Some(if after.starts_with("::") {
        Kind::Attached
    } else if after.starts_with(':') {
        Kind::Value
    } else {
        Kind::Flag
    })
}

/// The option that `name` is or abbreviates; where several match, the one that stands first, which is
/// why tables begin with options that carry code.
fn find_long(name: &str, options: &Options) -> Option<(&'static str, Kind)> {
    let parsed = |entry: &'static str| match (entry.strip_suffix('='), entry.strip_suffix('?')) {
        (Some(bare), _) => (bare, Kind::Value),
        (None, Some(bare)) => (bare, Kind::Attached),
        (None, None) => (entry, Kind::Flag),
    };
    let mut abbreviated = None;
    for entry in options.long {
        let (bare, kind) = parsed(entry);
        if bare == name {
            return Some((bare, kind));
        }
        if !options.single_dash
            && !name.is_empty()
            && bare.starts_with(name)
            && abbreviated.is_none()
        {
            abbreviated = Some((bare, kind));
        }
    }
    abbreviated
}
