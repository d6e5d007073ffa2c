//! The reading position in a script, its bounds, and how a place becomes a span.
//!
//! Bash removes a backslash before a line end almost everywhere, before it looks at the text; `peek`
//! does the same, so that no other file has to think of it. Only single quotes, comments and quoted
//! here-documents read raw bytes.

use super::ast::HereDocument;
use crate::base::limits::{SHELL_BYTES_MAX, SHELL_DEPTH_MAX, SHELL_NODES_MAX, SHELL_WORDS_MAX};
use crate::call::effects::Span;
use std::cell::OnceCell;
use std::rc::Rc;

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not in the grammar, from this byte on.
    Syntax(usize),
    /// Over a bound: nothing of the script is used.
    TooLarge,
}

pub(crate) type Parsed<T> = Result<T, Fault>;

/// Bytes that may be read a second time in one analysis (ambiguous `((`, backquotes): keeps the time
/// linear, and is ample for one level of each over a script of full size.
const RESCAN_BYTES_MAX: usize = 8 * SHELL_BYTES_MAX;

/// What one analysis may still use, across all scripts nested in it.
#[derive(Debug)]
pub(crate) struct Budget {
    nodes: usize,
    rescan: usize,
    words: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { nodes: SHELL_NODES_MAX, rescan: RESCAN_BYTES_MAX, words: SHELL_WORDS_MAX }
    }

    /// Takes one syntax node.
    pub(crate) fn node(&mut self) -> Parsed<()> {
        self.nodes = self.nodes.checked_sub(1).ok_or(Fault::TooLarge)?;
        Ok(())
    }

    /// Takes `count` words of a command.
    pub(crate) fn words(&mut self, count: usize) -> Parsed<()> {
        self.words = self.words.checked_sub(count).ok_or(Fault::TooLarge)?;
        Ok(())
    }

    /// Takes `bytes` that are read again.
    pub(crate) fn rescan(&mut self, bytes: usize) -> Parsed<()> {
        self.rescan = self.rescan.checked_sub(bytes).ok_or(Fault::TooLarge)?;
        Ok(())
    }
}

/// How a byte position in the text at hand becomes a place in the script that was given.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin {
    /// The text is a part of the script that starts at this byte.
    Offset(usize),
    /// The text was derived; everything in it stands here.
    Fixed(Span),
}

/// A here-document whose body has not been reached yet.
#[derive(Debug)]
pub(super) struct PendingDocument {
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strip_tabs: bool,
    pub(super) body: Rc<OnceCell<HereDocument>>,
}

/// What the text at hand is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Script,
    /// `$(…)` or a process substitution.
    Substitution,
    /// The body of a here-document, where quotes in an expansion differ between versions.
    Document,
}

/// The reader of one text.
#[derive(Debug)]
pub(crate) struct Parser<'text, 'budget> {
    pub(super) text: &'text str,
    pub(super) position: usize,
    pub(super) origin: Origin,
    pub(super) depth: usize,
    pub(super) budget: &'budget mut Budget,
    pub(super) pending: Vec<PendingDocument>,
    /// A here-document of an enclosing command waits for its body: a line end here is ambiguous.
    pub(super) outer_pending: bool,
    pub(super) place: Place,
    /// The text mentions `extglob`, so `!(` where a command starts could be a pattern.
    pub(super) extended_patterns: bool,
}

impl<'text, 'budget> Parser<'text, 'budget> {
    pub(crate) fn new(
        text: &'text str,
        origin: Origin,
        depth: usize,
        budget: &'budget mut Budget,
    ) -> Self {
        Self {
            text,
            position: 0,
            origin,
            depth,
            budget,
            pending: Vec::new(),
            outer_pending: false,
            place: Place::Script,
            extended_patterns: text.contains("extglob"),
        }
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        match self.origin {
            Origin::Offset(offset) => Span { start: offset + start, end: offset + end },
            Origin::Fixed(span) => span,
        }
    }

    pub(super) fn span_from(&self, start: usize) -> Span {
        self.span(start, self.position)
    }

    pub(super) fn syntax<T>(&self) -> Parsed<T> {
        Err(Fault::Syntax(self.position))
    }

    /// Goes one level deeper for the time of `inner`.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= SHELL_DEPTH_MAX {
            return Err(Fault::TooLarge);
        }
        self.budget.node()?;
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn byte(&self, position: usize) -> Option<u8> {
        self.text.as_bytes().get(position).copied()
    }

    /// The byte here, without removing continuations.
    pub(super) fn raw(&self) -> Option<u8> {
        self.byte(self.position)
    }

    fn after_continuations(&self, mut position: usize) -> usize {
        while self.byte(position) == Some(b'\\') && self.byte(position + 1) == Some(b'\n') {
            position += 2;
        }
        position
    }

    /// The next byte as bash sees it.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.position = self.after_continuations(self.position);
        self.raw()
    }

    /// The byte after the next one.
    pub(super) fn peek_second(&mut self) -> Option<u8> {
        self.peek()?;
        self.byte(self.after_continuations(self.position + 1))
    }

    /// Steps over the ASCII byte that `peek` returned.
    pub(super) fn bump(&mut self) {
        self.position += 1;
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn eat_pair(&mut self, first: u8, second: u8) -> bool {
        let found = self.peek() == Some(first) && self.peek_second() == Some(second);
        if found {
            self.bump();
            self.eat(second);
        }
        found
    }

    pub(super) fn expect(&mut self, byte: u8) -> Parsed<()> {
        if self.eat(byte) { Ok(()) } else { self.syntax() }
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'text str {
        self.text.get(start..end).unwrap_or("")
    }

    /// Reads on while `wanted` holds, and gives what was read.
    pub(super) fn run(&mut self, wanted: impl Fn(u8) -> bool) -> &'text str {
        let start = self.position;
        while self.raw().is_some_and(&wanted) {
            self.position += 1;
        }
        self.slice(start, self.position)
    }

    /// Skips blanks and a comment; stops before a line end.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.bump(),
                Some(b'#') => {
                    self.run(|byte| byte != b'\n');
                    return;
                }
                _ => return,
            }
        }
    }

    /// Skips blanks, comments and line ends.
    pub(super) fn linebreak(&mut self) -> Parsed<()> {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }
}

/// A byte that ends a word unless it is quoted.
pub(super) const fn is_metacharacter(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}

pub(super) const fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
