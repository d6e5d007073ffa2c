//! Everything behind a dollar sign, backquotes, and process substitution.

use super::ast::{Form, List, Parameter, Piece, Pieces};
use super::cursor::{Fault, Origin, Parsed, Parser, Place, is_name_byte, is_name_start};
use super::refused::refused_at;
use super::words::push_text;
use crate::call::effects::Span;

/// Where an operand of `${…}` stands, which decides what quotes mean in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperandQuoting {
    /// Not inside double quotes.
    Unquoted,
    /// Inside double quotes behind `-`, `=`, `?`, `+`: a single quote is an ordinary character.
    Word,
    /// Inside double quotes behind a pattern operator: single quotes quote.
    Pattern,
}

impl Parser<'_, '_> {
    pub(super) fn dollar(&mut self, quoted: bool, pieces: &mut Pieces) -> Parsed<()> {
        let start = self.position;
        self.bump();
        match self.peek() {
            Some(b'(') if self.peek_second() == Some(b'(') => {
                self.arithmetic_or_command(quoted, pieces)
            }
            Some(b'(') => self.command_substitution(quoted, pieces),
            Some(b'{') => self.nested(|parser| parser.braced(start, quoted, pieces)),
            Some(b'[') => {
                let expression = self.nested(Self::subscript)?;
                pieces.push(Piece::Arithmetic { expression, quoted });
                Ok(())
            }
            Some(b'\'') if !quoted => self.ansi_quoted(pieces),
            Some(b'"') if !quoted => self.double_quoted(pieces),
            Some(byte) if is_name_start(byte) => {
                let name = self.name();
                self.plain_parameter(start, name, quoted, pieces)
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.bump();
                self.plain_parameter(start, char::from(byte).to_string(), quoted, pieces)
            }
            _ => {
                push_text(pieces, "$", quoted);
                Ok(())
            }
        }
    }

    pub(super) fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(byte) = self.peek().filter(|byte| is_name_byte(*byte)) {
            name.push(char::from(byte));
            self.bump();
        }
        name
    }

    fn plain_parameter(
        &mut self,
        start: usize,
        name: String,
        quoted: bool,
        pieces: &mut Pieces,
    ) -> Parsed<()> {
        let span = self.span_from(start);
        let parameter =
            Parameter { name, subscript: None, form: Form::Plain, operand: Vec::new(), span };
        pieces.push(Piece::Parameter { parameter: Box::new(parameter), quoted });
        Ok(())
    }

    fn command_substitution(&mut self, quoted: bool, pieces: &mut Pieces) -> Parsed<()> {
        let body = self.nested(Self::parenthesised_list)?;
        pieces.push(Piece::Command { body, quoted });
        Ok(())
    }

    /// `<(…)` and `>(…)`.
    pub(super) fn process(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        self.bump();
        let body = self.nested(Self::parenthesised_list)?;
        pieces.push(Piece::Process { body });
        Ok(())
    }

    /// `( list )` of a substitution, with here-documents of its own.
    fn parenthesised_list(&mut self) -> Parsed<List> {
        self.expect(b'(')?;
        let pending = std::mem::take(&mut self.pending);
        let outer = self.outer_pending;
        self.outer_pending |= !pending.is_empty();
        let place = std::mem::replace(&mut self.place, Place::Substitution);
        let body = self.list();
        let complete = self.pending.is_empty();
        self.pending = pending;
        self.outer_pending = outer;
        self.place = place;
        let body = body?;
        if !complete {
            return self.syntax();
        }
        self.expect(b')')?;
        Ok(body)
    }

    /// `$((`: arithmetic if the parentheses close as `))`, else a substitution that starts with a
    /// subshell.
    fn arithmetic_or_command(&mut self, quoted: bool, pieces: &mut Pieces) -> Parsed<()> {
        let start = self.position;
        match self.nested(Self::double_parenthesis) {
            Ok(Some(expression)) => {
                pieces.push(Piece::Arithmetic { expression, quoted });
                return Ok(());
            }
            Ok(None) | Err(Fault::Syntax(_)) => self.go_back(start)?,
            Err(Fault::TooLarge) => return Err(Fault::TooLarge),
        }
        self.command_substitution(quoted, pieces)?;
        self.refuse_ambiguous(start)
    }

    /// Returns to `start` to read the text there in another way.
    pub(super) fn go_back(&mut self, start: usize) -> Parsed<()> {
        self.budget.rescan(self.position - start)?;
        self.position = start;
        Ok(())
    }

    /// Bash finds the end of `((…)` by counting parentheses. Where comments, here-documents or
    /// `case` could make our end another one than bash's, nothing is claimed.
    pub(super) fn refuse_ambiguous(&self, start: usize) -> Parsed<()> {
        let text = self.slice(start, self.position);
        if text.contains('#') || text.replace("<<<", "").contains("<<") || text.contains("case") {
            return self.syntax();
        }
        Ok(())
    }

    /// `((expression))` from its first parenthesis on; `None` if it does not close as `))`.
    pub(super) fn double_parenthesis(&mut self) -> Parsed<Option<Pieces>> {
        self.expect(b'(')?;
        self.expect(b'(')?;
        let mut pieces = Pieces::new();
        let mut open = 0_usize;
        loop {
            match self.peek() {
                None => return self.syntax(),
                Some(b')') if open == 0 => {
                    if self.peek_second() != Some(b')') {
                        return Ok(None);
                    }
                    self.bump();
                    self.bump_after_peek();
                    return Ok(Some(pieces));
                }
                Some(byte) => {
                    match byte {
                        b'(' => open += 1,
                        b')' => open -= 1,
                        _ => {}
                    }
                    self.arithmetic_piece(byte, &mut pieces)?;
                }
            }
        }
    }

    fn bump_after_peek(&mut self) {
        self.peek();
        self.bump();
    }

    /// One thing inside an arithmetic expression, which is read like double-quoted text.
    pub(super) fn arithmetic_piece(&mut self, byte: u8, pieces: &mut Pieces) -> Parsed<()> {
        match byte {
            b'$' => self.dollar(true, pieces),
            b'`' => self.backquoted(false, pieces),
            b'"' => self.double_quoted(pieces),
            b'\'' | b'\\' => self.syntax(),
            _ => {
                let start = self.position;
                self.bump();
                self.run(|byte| byte.is_ascii_alphanumeric() || b" \t_+-*/%=,".contains(&byte));
                push_text(pieces, self.slice(start, self.position), true);
                Ok(())
            }
        }
    }

    /// Backquotes: backslashes are taken off once, then the rest is a script of its own.
    pub(super) fn backquoted(&mut self, in_quotes: bool, pieces: &mut Pieces) -> Parsed<()> {
        let start = self.position;
        self.bump();
        let mut script = String::new();
        loop {
            let text = self.run(|byte| !matches!(byte, b'`' | b'\\'));
            script.push_str(text);
            match self.raw() {
                None => return self.syntax(),
                Some(b'\\') => self.backquoted_escape(in_quotes, &mut script),
                Some(_) => break,
            }
        }
        self.bump();
        let span = self.span_from(start);
        let body = match self.derived(&script, span) {
            // Bash reads it when it comes to it, says what is wrong, and goes on with no text. An inner
            // shell may be another one.
            Err(Fault::Syntax(_))
                if matches!(self.origin, Origin::Offset(_)) && refused_at(&script).is_some() =>
            {
                List::new()
            }
            other => other?,
        };
        pieces.push(Piece::Command { body, quoted: in_quotes });
        Ok(())
    }

    fn backquoted_escape(&mut self, in_quotes: bool, script: &mut String) {
        match self.byte(self.position + 1) {
            Some(byte @ (b'$' | b'`' | b'\\')) => script.push(char::from(byte)),
            Some(b'"') if in_quotes => script.push('"'),
            Some(b'\n') => {}
            _ => {
                script.push('\\');
                self.bump();
                return;
            }
        }
        self.position += 2;
    }

    /// Reads text that was derived from what stands at `span`.
    fn derived(&mut self, script: &str, span: Span) -> Parsed<List> {
        self.budget.rescan(script.len())?;
        let at = self.position;
        let extended = self.extended_patterns;
        self.nested(|parser| {
            let mut inner = Parser::new(script, Origin::Fixed(span), parser.depth, parser.budget);
            inner.extended_patterns |= extended;
            let result = inner.whole();
            result.map_err(|fault| match fault {
                Fault::Syntax(_) => Fault::Syntax(at),
                Fault::TooLarge => Fault::TooLarge,
            })
        })
    }

    /// `${…}`; the dollar sign at `start` is read.
    fn braced(&mut self, start: usize, quoted: bool, pieces: &mut Pieces) -> Parsed<()> {
        self.expect(b'{')?;
        match self.peek() {
            Some(b' ' | b'\t' | b'\n' | b'|') => return self.function_substitution(quoted, pieces),
            Some(b'#') if !matches!(self.peek_second(), Some(b'}')) => {
                self.bump();
                return self.length(start, quoted, pieces);
            }
            _ => {}
        }
        let indirect = self.peek() == Some(b'!') && self.peek_second() != Some(b'}');
        if indirect {
            self.bump();
        }
        let name = self.parameter_name()?;
        let subscript = if self.peek() == Some(b'[') { Some(self.subscript()?) } else { None };
        let mut parameter = Parameter {
            name,
            subscript,
            form: Form::Plain,
            operand: Vec::new(),
            span: self.span_from(start),
        };
        self.parameter_operation(quoted, &mut parameter)?;
        if indirect {
            parameter.form = if names_only(&parameter) { Form::Names } else { Form::Indirect };
        }
        parameter.span = self.span_from(start);
        pieces.push(Piece::Parameter { parameter: Box::new(parameter), quoted });
        Ok(())
    }

    fn parameter_name(&mut self) -> Parsed<String> {
        match self.peek() {
            Some(byte) if is_name_start(byte) => Ok(self.name()),
            Some(byte) if byte.is_ascii_digit() => {
                self.peek();
                Ok(self.run(|byte| byte.is_ascii_digit()).to_owned())
            }
            Some(byte) if b"@*#?-$!".contains(&byte) => {
                self.bump();
                Ok(char::from(byte).to_string())
            }
            _ => self.syntax(),
        }
    }

    /// `${ list; }` and `${| list; }`, which newer shells run; older ones refuse them.
    fn function_substitution(&mut self, quoted: bool, pieces: &mut Pieces) -> Parsed<()> {
        self.eat(b'|');
        let body = self.list()?;
        self.expect(b'}')?;
        pieces.push(Piece::Command { body, quoted });
        Ok(())
    }

    fn length(&mut self, start: usize, quoted: bool, pieces: &mut Pieces) -> Parsed<()> {
        let name = self.parameter_name()?;
        let subscript = if self.peek() == Some(b'[') { Some(self.subscript()?) } else { None };
        self.expect(b'}')?;
        let span = self.span_from(start);
        let parameter =
            Parameter { name, subscript, form: Form::Length, operand: Vec::new(), span };
        pieces.push(Piece::Parameter { parameter: Box::new(parameter), quoted });
        Ok(())
    }

    /// What follows the name inside `${…}`, with the closing brace.
    fn parameter_operation(&mut self, quoted: bool, parameter: &mut Parameter) -> Parsed<()> {
        let colon = self.peek() == Some(b':')
            && matches!(self.peek_second(), Some(b'-' | b'=' | b'?' | b'+'));
        if colon {
            self.bump();
        }
        let Some(byte) = self.peek() else { return self.syntax() };
        self.bump();
        let word = if quoted { OperandQuoting::Word } else { OperandQuoting::Unquoted };
        let pattern = if quoted { OperandQuoting::Pattern } else { OperandQuoting::Unquoted };
        let (form, quoting) = match byte {
            b'}' => return Ok(()),
            b'=' => (Form::AssignDefault, word),
            b'-' => (Form::Default, word),
            b'?' | b'+' => (Form::Operand, word),
            b'#' | b'%' | b'/' | b'^' | b',' | b'~' => (Form::Operand, pattern),
            b':' => (Form::Substring, word),
            b'@' => return self.transformation(parameter),
            b'*' => {
                parameter.form = Form::Names;
                return self.expect(b'}');
            }
            _ => return self.syntax(),
        };
        parameter.form = form;
        self.operand(quoting, &mut parameter.operand)
    }

    fn transformation(&mut self, parameter: &mut Parameter) -> Parsed<()> {
        if self.eat(b'}') {
            parameter.form = Form::Names;
            return Ok(());
        }
        let letter = self.peek().filter(u8::is_ascii_alphabetic);
        let Some(letter) = letter else { return self.syntax() };
        self.bump();
        parameter.form = Form::Transform(letter);
        self.expect(b'}')
    }

    /// Reads to the brace that closes the expansion.
    fn operand(&mut self, quoting: OperandQuoting, pieces: &mut Pieces) -> Parsed<()> {
        loop {
            let Some(byte) = self.peek() else { return self.syntax() };
            match (byte, quoting) {
                (b'}', _) => {
                    self.bump();
                    return Ok(());
                }
                (b'<' | b'>', OperandQuoting::Unquoted) if self.peek_second() == Some(b'(') => {
                    self.process(pieces)?;
                }
                (_, OperandQuoting::Unquoted) => self.operand_unquoted(byte, pieces)?,
                (b'"' | b'\'', _) if self.place == Place::Document => return self.syntax(),
                (b'"', _) => self.double_quoted(pieces)?,
                (b'\'', OperandQuoting::Pattern) => self.single_quoted(pieces)?,
                (_, OperandQuoting::Word | OperandQuoting::Pattern) => {
                    self.quoted(byte, b"\"}", pieces)?;
                }
            }
        }
    }

    fn operand_unquoted(&mut self, byte: u8, pieces: &mut Pieces) -> Parsed<()> {
        if matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`') {
            return self.unquoted(byte, pieces);
        }
        let start = self.position;
        self.bump();
        self.run(|byte| byte.is_ascii_alphanumeric());
        push_text(pieces, self.slice(start, self.position), false);
        Ok(())
    }

    /// `$'…'`. An escape whose meaning depends on the locale, or that gives no text, makes the
    /// value unknown.
    fn ansi_quoted(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        self.bump();
        push_text(pieces, "", true);
        loop {
            let text = self.run(|byte| !matches!(byte, b'\'' | b'\\'));
            push_text(pieces, text, true);
            match self.raw() {
                None => return self.syntax(),
                Some(b'\\') => {
                    self.bump();
                    self.ansi_escape(pieces)?;
                }
                Some(_) => {
                    self.bump();
                    return Ok(());
                }
            }
        }
    }

    fn ansi_escape(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        let Some(byte) = self.raw() else { return self.syntax() };
        let simple = match byte {
            b'a' => "\u{7}",
            b'b' => "\u{8}",
            b'e' | b'E' => "\u{1b}",
            b'f' => "\u{c}",
            b'n' => "\n",
            b'r' => "\r",
            b't' => "\t",
            b'v' => "\u{b}",
            b'\\' => "\\",
            b'\'' => "'",
            b'"' => "\"",
            b'?' => "?",
            b'0'..=b'7' => return self.ansi_number(0, 8, 3, pieces),
            b'x' => return self.ansi_number(1, 16, 2, pieces),
            b'u' => return self.ansi_number(1, 16, 4, pieces),
            b'U' => return self.ansi_number(1, 16, 8, pieces),
            b'c' => {
                self.bump();
                return self.ansi_control(pieces);
            }
            _ => {
                push_text(pieces, "\\", true);
                return Ok(());
            }
        };
        self.bump();
        push_text(pieces, simple, true);
        Ok(())
    }

    /// `\cX`: one character is taken, whatever it is; the value is left unknown.
    fn ansi_control(&mut self, pieces: &mut Pieces) -> Parsed<()> {
        let rest = self.slice(self.position, self.text.len());
        let Some(character) = rest.chars().next() else { return self.syntax() };
        if matches!(character, '\'' | '\\') {
            return self.syntax();
        }
        self.position += character.len_utf8();
        pieces.push(Piece::Opaque { inside: Vec::new() });
        Ok(())
    }

    fn ansi_number(
        &mut self,
        skip: usize,
        radix: u32,
        digits: usize,
        pieces: &mut Pieces,
    ) -> Parsed<()> {
        self.position += skip;
        let start = self.position;
        while self.position - start < digits
            && self.raw().is_some_and(|byte| char::from(byte).is_digit(radix))
        {
            self.position += 1;
        }
        let value = u32::from_str_radix(self.slice(start, self.position), radix);
        match value.ok().filter(|value| (1..0x80).contains(value)).and_then(char::from_u32) {
            Some(character) => push_text(pieces, character.encode_utf8(&mut [0; 4]), true),
            None => pieces.push(Piece::Opaque { inside: Vec::new() }),
        }
        Ok(())
    }
}

/// `${!prefix*}`, `${!prefix@}` and `${!name[@]}` give names and keys, never code.
fn names_only(parameter: &Parameter) -> bool {
    let whole = |pieces: &Pieces| matches!(pieces.as_slice(), [Piece::Text { text, .. }] if text == "@" || text == "*");
    parameter.form == Form::Names
        || (parameter.form == Form::Plain && parameter.subscript.as_ref().is_some_and(whole))
}
