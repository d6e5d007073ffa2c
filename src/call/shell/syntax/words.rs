//! Words: quoting, and what stands unquoted. Removes quotes exactly as bash does, and keeps for each
//! piece whether it was quoted, since that decides what is expanded later.

use super::ast::{AssignedValue, AssignmentNode, Piece, Pieces, WordNode};
use super::cursor::{Parsed, Parser, is_metacharacter, is_name_byte, is_name_start};

/// Adds literal text, joined to the piece before it where both are quoted alike.
pub(super) fn push_text(pieces: &mut Pieces, text: &str, quoted: bool) {
    if let Some(Piece::Text { text: last, quoted: before }) = pieces.last_mut()
        && *before == quoted
    {
        last.push_str(text);
        return;
    }
    pieces.push(Piece::Text { text: text.to_owned(), quoted });
}

/// A byte that may mean something else than itself in an unquoted word.
const fn is_special(byte: u8) -> bool {
    is_metacharacter(byte)
        || matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`' | b'?' | b'*' | b'+' | b'@' | b'!')
}

impl Parser<'_, '_> {
    /// Reads a word; the caller has made sure that one starts here.
    pub(super) fn word(&mut self) -> Parsed<WordNode> {
        let start = self.position;
        let mut pieces = Pieces::new();
        self.word_pieces(&mut pieces)?;
        Ok(self.finish_word(start, pieces))
    }

    pub(super) fn finish_word(&self, start: usize, pieces: Pieces) -> WordNode {
        let text = self.slice(start, self.position).into();
        WordNode { pieces, text, span: self.span_from(start), assignment: None }
    }

    pub(super) fn word_pieces(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.peek_second() == Some(b'(') => self.process(pieces)?,
                _ if is_metacharacter(byte) => return Ok(()),
                b'?' | b'*' | b'+' | b'@' | b'!' if self.peek_second() == Some(b'(') => {
                    self.extended_pattern(pieces)?;
                }
                _ => self.unquoted(byte, pieces)?,
            }
        }
        Ok(())
    }

    /// Reads one unquoted thing that starts with `byte`: a quoted string, an expansion, an escape or
    /// a run of ordinary text.
    pub(super) fn unquoted(&mut self, byte: u8, pieces: &mut Pieces) -> Parsed<()> {
        match byte {
            b'\\' => self.escape(pieces),
            b'\'' => self.single_quoted(pieces),
            b'"' => self.double_quoted(pieces),
            b'$' => self.dollar(false, pieces),
            b'`' => self.backquoted(false, pieces),
            _ => {
                let start = self.position;
                self.bump();
                self.run(|byte| !is_special(byte));
                push_text(pieces, self.slice(start, self.position), false);
                Ok(())
            }
        }
    }

    /// A backslash that does not stand before a line end: the next character is literal. One at the
    /// end of the text stays.
    fn escape(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        self.bump();
        let rest = self.slice(self.position, self.text.len());
        let length = rest.chars().next().map_or(0, char::len_utf8);
        let escaped = rest.get(..length).filter(|text| !text.is_empty()).unwrap_or("\\");
        push_text(pieces, escaped, true);
        self.position += length;
        Ok(())
    }

    pub(super) fn single_quoted(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        self.bump();
        let text = self.run(|byte| byte != b'\'');
        if self.raw().is_none() {
            return self.syntax();
        }
        self.bump();
        push_text(pieces, text, true);
        Ok(())
    }

    pub(super) fn double_quoted(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        self.bump();
        push_text(pieces, "", true);
        loop {
            match self.peek() {
                None => return self.syntax(),
                Some(b'"') => {
                    self.bump();
                    return Ok(());
                }
                Some(byte) => self.quoted(byte, b"\"", pieces)?,
            }
        }
    }

    /// Reads one thing inside double quotes or a here-document. `escapable` are the bytes, besides
    /// `$`, backquote and backslash, from which a backslash takes the meaning.
    pub(super) fn quoted(&mut self, byte: u8, escapable: &[u8], pieces: &mut Pieces) -> Parsed<()> {
        match byte {
            b'$' => self.dollar(true, pieces),
            b'`' => self.backquoted(!escapable.is_empty(), pieces),
            b'\\' => {
                let next = self.byte(self.position + 1);
                let taken = next.is_some_and(|next| {
                    matches!(next, b'$' | b'`' | b'\\') || escapable.contains(&next)
                });
                let start = if taken { self.position + 1 } else { self.position };
                push_text(pieces, self.slice(start, start + 1), true);
                self.position = start + 1;
                Ok(())
            }
            _ => {
                let start = self.position;
                self.bump();
                self.run(|byte| !matches!(byte, b'"' | b'$' | b'`' | b'\\' | b'\'' | b'}'));
                push_text(pieces, self.slice(start, self.position), true);
                Ok(())
            }
        }
    }

    /// `@(a|b)` and its kin, anywhere in a word. Without `extglob` bash refuses the script, so that
    /// reading it as a pattern can only show more than would run.
    fn extended_pattern(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        self.bump();
        self.expect(b'(')?;
        let inside = self.nested(|parser| {
            let mut inside = Pieces::new();
            parser.pattern_until_parenthesis(&mut inside)?;
            Ok(inside)
        })?;
        pieces.push(Piece::Opaque { inside });
        Ok(())
    }

    /// Reads to the `)` that closes what was opened, over blanks and nested parentheses.
    pub(super) fn pattern_until_parenthesis(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        let mut open = 1_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => open += 1,
                b')' => open -= 1,
                b'<' | b'>' if self.peek_second() == Some(b'(') => {
                    self.process(pieces)?;
                    continue;
                }
                _ => {}
            }
            if open == 0 {
                self.bump();
                return Ok(());
            }
            self.unquoted(byte, pieces)?;
        }
        self.syntax()
    }

    /// Reads an assignment if one starts here. Gives the position back if not.
    pub(super) fn assignment(&mut self) -> Parsed<Option<AssignmentNode>> {
        let start = self.position;
        if !self.peek().is_some_and(is_name_start) {
            return Ok(None);
        }
        let mut name = String::new();
        while let Some(byte) = self.peek().filter(|byte| is_name_byte(*byte)) {
            name.push(char::from(byte));
            self.bump();
        }
        let subscript = if self.peek() == Some(b'[') { Some(self.subscript()?) } else { None };
        let append = self.eat_pair(b'+', b'=');
        if !append && !self.eat(b'=') {
            self.budget.rescan(self.position - start)?;
            self.position = start;
            return Ok(None);
        }
        let value = if self.peek() == Some(b'(') && subscript.is_none() {
            AssignedValue::Array(self.nested(Self::array)?)
        } else {
            AssignedValue::Scalar(self.word()?)
        };
        let span = self.span_from(start);
        Ok(Some(AssignmentNode { name, subscript, append, value, span }))
    }

    fn array(&mut self) -> Parsed<Vec<(Option<Pieces>, WordNode)>> {
        self.expect(b'(')?;
        let mut elements = Vec::new();
        loop {
            self.linebreak()?;
            match self.peek() {
                None => return self.syntax(),
                Some(b')') => {
                    self.bump();
                    return Ok(elements);
                }
                Some(_) => elements.push(self.element()?),
            }
        }
    }

    fn element(&mut self) -> Parsed<(Option<Pieces>, WordNode)> {
        let start = self.position;
        let subscript = if self.peek() == Some(b'[') { Some(self.subscript()?) } else { None };
        if subscript.is_some() && !self.eat_pair(b'+', b'=') && !self.eat(b'=') {
            self.budget.rescan(self.position - start)?;
            self.position = start;
        } else if subscript.is_some() {
            return Ok((subscript, self.word()?));
        }
        let word = self.word()?;
        if self.position == start { self.syntax() } else { Ok((None, word)) }
    }

    /// `[…]` behind a variable's name.
    pub(super) fn subscript(&mut self) -> Parsed<Pieces> {
        self.expect(b'[')?;
        let mut pieces = Pieces::new();
        let mut open = 1_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => return self.syntax(),
                b'[' => open += 1,
                b']' => open -= 1,
                _ => {}
            }
            if open == 0 {
                self.bump();
                return Ok(pieces);
            }
            if matches!(byte, b'[' | b']') {
                self.bump();
                push_text(&mut pieces, if byte == b'[' { "[" } else { "]" }, false);
            } else {
                self.subscript_piece(byte, &mut pieces)?;
            }
        }
        self.syntax()
    }

    fn subscript_piece(&mut self, byte: u8, pieces: &mut Pieces) -> Parsed<()> {
        if matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`') {
            return self.unquoted(byte, pieces);
        }
        let start = self.position;
        self.run(|byte| !matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`' | b'[' | b']' | b'\n'));
        push_text(pieces, self.slice(start, self.position), false);
        Ok(())
    }
}
