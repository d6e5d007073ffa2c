//! Simple commands, redirections, here-documents and `[[ ]]`.

use super::ast::{
    Command, CommandKind, HereDocument, Operand, OperandRole, Piece, Pieces, Redirect,
    RedirectOperator, RedirectTarget, Simple, WordNode,
};
use super::cursor::{
    Fault, Origin, Parsed, Parser, PendingDocument, Place, is_metacharacter, is_name_byte,
    is_name_start,
};
use super::parser::is_reserved;
use super::words::push_text;
use std::cell::OnceCell;
use std::rc::Rc;

/// Builtins whose arguments are read as assignments, arrays included.
const DECLARATIONS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

/// The word, if it is one piece of unquoted text.
fn plain_text(word: &WordNode) -> Option<&str> {
    match word.pieces.as_slice() {
        [Piece::Text { text, quoted: false }] => Some(text),
        _ => None,
    }
}

impl<'text> Parser<'text, '_> {
    pub(super) fn simple(&mut self) -> Parsed<Command> {
        let start = self.position;
        let mut end = start;
        let mut simple = Simple::default();
        let mut redirects = Vec::new();
        let mut declares = false;
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
            } else if self.at_word_end() {
                break;
            } else if simple.words.is_empty() {
                if let Some(assignment) = self.assignment()? {
                    simple.assignments.push(assignment);
                } else {
                    let word = self.program_word()?;
                    if self.at_function(&simple, &redirects) {
                        return self.function(start, word);
                    }
                    simple.words.push(word);
                }
            } else {
                let word = self.argument(declares)?;
                simple.words.push(word);
            }
            let newest = simple.words.last().and_then(plain_text);
            declares |= newest.is_some_and(|text| DECLARATIONS.contains(&text));
            end = self.position;
        }
        if end == start {
            return self.syntax();
        }
        let span = self.span(start, end);
        Ok(Command { kind: CommandKind::Simple(simple), redirects, span })
    }

    fn at_word_end(&mut self) -> bool {
        match self.peek() {
            None => true,
            Some(b'<' | b'>') => self.peek_second() != Some(b'('),
            Some(byte) => is_metacharacter(byte),
        }
    }

    fn program_word(&mut self) -> Parsed<WordNode> {
        let word = self.nonempty_word()?;
        // A reserved word in a place where it was not recognised (split by a continuation, or where
        // none may stand): nothing is guessed.
        if plain_text(&word).is_some_and(is_reserved) {
            return self.syntax();
        }
        Ok(word)
    }

    fn at_function(&mut self, simple: &Simple, redirects: &[Redirect]) -> bool {
        self.blanks();
        self.peek() == Some(b'(') && simple.assignments.is_empty() && redirects.is_empty()
    }

    fn function(&mut self, start: usize, name: WordNode) -> Parsed<Command> {
        self.expect(b'(')?;
        self.blanks();
        self.expect(b')')?;
        let kind = self.nested(|parser| parser.function_body(name))?;
        Ok(Command { kind, redirects: Vec::new(), span: self.span_from(start) })
    }

    fn argument(&mut self, declares: bool) -> Parsed<WordNode> {
        let start = self.position;
        if declares && let Some(assignment) = self.assignment()? {
            let mut word = self.finish_word(start, Pieces::new());
            word.assignment = Some(Box::new(assignment));
            return Ok(word);
        }
        self.nonempty_word()
    }

    /// Reads a redirection if one starts here.
    pub(super) fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let start = self.position;
        let mut descriptor = None;
        let mut variable = None;
        match self.peek() {
            Some(byte) if byte.is_ascii_digit() => {
                descriptor =
                    Some(self.run(|byte| byte.is_ascii_digit()).parse().unwrap_or(u32::MAX));
            }
            Some(b'{') => variable = self.descriptor_variable(),
            Some(b'<' | b'>' | b'&') => {}
            _ => return Ok(None),
        }
        let prefixed = descriptor.is_some() || variable.is_some();
        if self.peek_second() == Some(b'(') {
            self.position = start;
            return Ok(None);
        }
        let Some((operator, strip_tabs)) = self.redirect_operator(prefixed) else {
            self.position = start;
            return Ok(None);
        };
        self.budget.node()?;
        self.blanks();
        let target = if operator == RedirectOperator::HereDocument {
            RedirectTarget::HereDocument(self.document_delimiter(strip_tabs)?)
        } else {
            RedirectTarget::Word(self.nonempty_word()?)
        };
        let span = self.span_from(start);
        Ok(Some(Redirect { operator, target, variable, descriptor, span }))
    }

    /// `{name}` directly before `<` or `>`.
    fn descriptor_variable(&mut self) -> Option<String> {
        let rest = self.slice(self.position + 1, self.text.len());
        let length = rest.bytes().take_while(|byte| is_name_byte(*byte)).count();
        let name =
            rest.get(..length).filter(|name| name.bytes().next().is_some_and(is_name_start))?;
        let after = rest.as_bytes();
        if after.get(length) == Some(&b'}') && matches!(after.get(length + 1), Some(b'<' | b'>')) {
            self.position += length + 2;
            return Some(name.to_owned());
        }
        None
    }

    /// The operator, and whether a here-document strips tabs.
    fn redirect_operator(&mut self, prefixed: bool) -> Option<(RedirectOperator, bool)> {
        let operator = match self.peek()? {
            b'&' if !prefixed && self.eat_pair(b'&', b'>') => {
                self.eat(b'>');
                RedirectOperator::WriteBoth
            }
            b'<' => {
                self.bump();
                return Some(self.input_operator());
            }
            b'>' => {
                self.bump();
                self.output_operator()
            }
            _ => return None,
        };
        Some((operator, false))
    }

    fn input_operator(&mut self) -> (RedirectOperator, bool) {
        if self.eat(b'<') {
            if self.eat(b'<') {
                return (RedirectOperator::HereString, false);
            }
            return (RedirectOperator::HereDocument, self.eat(b'-'));
        }
        let operator = if self.eat(b'&') {
            RedirectOperator::DuplicateIn
        } else if self.eat(b'>') {
            RedirectOperator::ReadWrite
        } else {
            RedirectOperator::Read
        };
        (operator, false)
    }

    fn output_operator(&mut self) -> RedirectOperator {
        if self.eat(b'>') {
            RedirectOperator::Append
        } else if self.eat(b'&') {
            RedirectOperator::DuplicateOut
        } else {
            self.eat(b'|');
            RedirectOperator::Write
        }
    }

    /// The delimiter's word: quotes are removed, nothing is expanded. A word with an expansion in it
    /// is refused, since its raw text would be the delimiter.
    fn document_delimiter(&mut self, strip_tabs: bool) -> Parsed<Rc<OnceCell<HereDocument>>> {
        let word = self.nonempty_word()?;
        let mut delimiter = String::new();
        let mut quoted = word.text.contains(['\'', '"', '\\']);
        for piece in &word.pieces {
            let Piece::Text { text, quoted: piece_quoted } = piece else { return self.syntax() };
            quoted |= *piece_quoted;
            delimiter.push_str(text);
        }
        if delimiter.contains('\n') || word.text.contains('$') {
            return self.syntax();
        }
        let body = Rc::new(OnceCell::new());
        self.pending.push(PendingDocument {
            delimiter,
            quoted,
            strip_tabs,
            body: Rc::clone(&body),
        });
        Ok(body)
    }

    /// Steps over a line end and reads the here-documents that wait for it.
    pub(super) fn newline(&mut self) -> Parsed<()> {
        if self.outer_pending {
            return self.syntax();
        }
        self.bump();
        for document in std::mem::take(&mut self.pending) {
            self.document(document)?;
        }
        Ok(())
    }

    /// At the end of the text bash takes a document that waits as empty.
    pub(super) fn end_documents(&mut self) -> Parsed<()> {
        for document in std::mem::take(&mut self.pending) {
            self.document(document)?;
        }
        Ok(())
    }

    fn document(&mut self, document: PendingDocument) -> Parsed<()> {
        let start = self.position;
        let mut stripped = String::new();
        let mut end = start;
        let mut continued = false;
        while let Some(line) = self.raw_line() {
            let content = if document.strip_tabs { line.trim_start_matches('\t') } else { line };
            if content == document.delimiter {
                if continued {
                    return self.syntax();
                }
                self.skip_line(line);
                break;
            }
            if self.place == Place::Substitution
                && self.delimiter_before_parenthesis(&document, content)?
            {
                self.position += line.len() - content.len() + document.delimiter.len();
                break;
            }
            continued = !document.quoted && ends_in_continuation(line);
            if document.strip_tabs {
                stripped.push_str(content);
                stripped.push('\n');
            }
            self.skip_line(line);
            end = self.position;
        }
        let body = self.document_body(&document, start, end, &stripped)?;
        // The cell is fresh; a second body cannot occur.
        drop(document.body.set(HereDocument { body }));
        Ok(())
    }

    /// The line here without its end, or `None` at the end of the text.
    fn raw_line(&self) -> Option<&'text str> {
        let rest = self.text.get(self.position..).filter(|rest| !rest.is_empty())?;
        rest.split('\n').next()
    }

    fn skip_line(&mut self, line: &str) {
        let after = self.position + line.len();
        self.position = if self.byte(after) == Some(b'\n') { after + 1 } else { after };
    }

    /// Inside a substitution bash also ends a document at a line that starts with the delimiter and
    /// holds the closing parenthesis. Only the plain form is taken; the others differ between
    /// versions.
    fn delimiter_before_parenthesis(
        &self,
        document: &PendingDocument,
        content: &str,
    ) -> Parsed<bool> {
        match content.strip_prefix(document.delimiter.as_str()) {
            Some(rest) if rest.starts_with(')') => Ok(true),
            Some(rest) if rest.contains(')') => self.syntax(),
            Some(_) | None => Ok(false),
        }
    }

    fn document_body(
        &mut self,
        document: &PendingDocument,
        start: usize,
        end: usize,
        stripped: &str,
    ) -> Parsed<Pieces> {
        let text = if document.strip_tabs { stripped } else { self.slice(start, end) };
        let mut pieces = Pieces::new();
        if document.quoted || !text.contains(['$', '`', '\\']) {
            push_text(&mut pieces, text, true);
            return Ok(pieces);
        }
        let origin = match self.origin {
            Origin::Offset(offset) if !document.strip_tabs => Origin::Offset(offset + start),
            Origin::Offset(_) | Origin::Fixed(_) => Origin::Fixed(self.span(start, end)),
        };
        let mut inner = Parser::new(text, origin, self.depth, self.budget);
        inner.place = Place::Document;
        inner.extended_patterns |= self.extended_patterns;
        match inner.document_text(&mut pieces) {
            Ok(()) => Ok(pieces),
            Err(Fault::Syntax(_)) => Err(Fault::Syntax(start)),
            Err(Fault::TooLarge) => Err(Fault::TooLarge),
        }
    }

    fn document_text(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        while let Some(byte) = self.peek() {
            self.quoted(byte, b"", pieces)?;
        }
        Ok(())
    }

    /// `[[ … ]]` behind its first bracket.
    pub(super) fn conditional(&mut self) -> Parsed<CommandKind> {
        let mut operands: Vec<Operand> = Vec::new();
        let mut role = OperandRole::Text;
        let mut regular_expression = false;
        loop {
            self.linebreak()?;
            if self.eat_reserved("]]") {
                return Ok(CommandKind::Conditional(operands));
            }
            if self.conditional_operator() {
                continue;
            }
            let word = if std::mem::take(&mut regular_expression) {
                self.regular_expression()?
            } else {
                self.nonempty_word()?
            };
            match plain_text(&word) {
                Some("=~") => regular_expression = true,
                Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
                    role = OperandRole::Arithmetic;
                    if let Some(last) = operands.last_mut() {
                        last.role = OperandRole::Arithmetic;
                    }
                }
                Some("-v" | "-R") => role = OperandRole::Variable,
                _ => operands
                    .push(Operand { word, role: std::mem::replace(&mut role, OperandRole::Text) }),
            }
        }
    }

    fn conditional_operator(&mut self) -> bool {
        if self.eat_pair(b'&', b'&') || self.eat_pair(b'|', b'|') {
            return true;
        }
        let single = match self.peek() {
            Some(b'(' | b')') => true,
            Some(b'<' | b'>') => self.peek_second() != Some(b'('),
            Some(b'!') => {
                self.peek_second().is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n'))
            }
            _ => false,
        };
        if single {
            self.bump();
        }
        single
    }

    /// The right side of `=~`: parentheses and bars belong to the word, blanks inside parentheses
    /// too.
    fn regular_expression(&mut self) -> Parsed<WordNode> {
        let start = self.position;
        let mut pieces = Pieces::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => {
                    self.bump();
                    push_text(&mut pieces, "(", false);
                    self.nested(|parser| parser.pattern_until_parenthesis(&mut pieces))?;
                }
                b'|' => {
                    self.bump();
                    push_text(&mut pieces, "|", false);
                }
                _ if is_metacharacter(byte) => break,
                _ => self.unquoted(byte, &mut pieces)?,
            }
        }
        if self.position == start {
            return self.syntax();
        }
        Ok(self.finish_word(start, pieces))
    }
}

fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}
