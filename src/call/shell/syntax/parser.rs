//! Lists, pipelines and compound commands.
//!
//! Bash reads and runs a script line by line, so that what stands before a syntax error has already
//! run: [`parse`] gives the lines before the error together with the place of the error.

use super::ast::{Arm, Command, CommandKind, Connector, Item, List, Pieces, Pipeline, WordNode};
use super::cursor::{Budget, Fault, Origin, Parsed, Parser, is_metacharacter, is_name_start};

/// What was read of a script.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) list: List,
    /// The byte from which on the script is not in the grammar.
    pub(crate) error: Option<usize>,
}

/// A script over a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Reads a whole script.
pub(crate) fn parse(
    text: &str,
    origin: Origin,
    depth: usize,
    budget: &mut Budget,
    extended_patterns: bool,
) -> Result<Script, TooLarge> {
    let mut parser = Parser::new(text, origin, depth, budget);
    parser.extended_patterns |= extended_patterns;
    let mut list = List::new();
    if text.contains('\0') {
        return Ok(Script { list, error: Some(0) });
    }
    match parser.lines(&mut list) {
        Ok(()) => Ok(Script { list, error: None }),
        Err(Fault::Syntax(position)) => Ok(Script { list, error: Some(position) }),
        Err(Fault::TooLarge) => Err(TooLarge),
    }
}

/// Words that end the list before them when they stand where a command starts.
const CLOSING: [&str; 8] = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];
/// Words that mean something where a command starts.
const OPENING: [&str; 12] =
    ["if", "while", "until", "for", "select", "case", "function", "time", "coproc", "{", "[[", "!"];

pub(super) fn is_reserved(word: &str) -> bool {
    CLOSING.contains(&word) || OPENING.contains(&word) || matches!(word, "in" | "]]")
}

impl Parser<'_, '_> {
    /// Reads to the end of the text; an error is one for the whole.
    pub(super) fn whole(&mut self) -> Parsed<List> {
        let mut list = List::new();
        self.lines(&mut list)?;
        Ok(list)
    }

    fn lines(&mut self, list: &mut List) -> Parsed<()> {
        loop {
            self.linebreak()?;
            if self.peek().is_none() {
                return self.end_documents();
            }
            let before = self.position;
            // A line is kept only when it has been read to its end: bash runs none of a line that
            // holds an error.
            let mut line = List::new();
            self.line(&mut line)?;
            list.append(&mut line);
            if self.position == before {
                return self.syntax();
            }
        }
    }

    fn line(&mut self, list: &mut List) -> Parsed<()> {
        loop {
            self.blanks();
            match self.peek() {
                None => return self.end_documents(),
                Some(b'\n') => return self.newline(),
                Some(_) => {
                    if !self.item(list)? && !matches!(self.peek(), None | Some(b'\n')) {
                        return self.syntax();
                    }
                }
            }
        }
    }

    /// Reads commands up to something that closes the list, which the caller checks.
    pub(super) fn list(&mut self) -> Parsed<List> {
        let mut list = List::new();
        loop {
            self.linebreak()?;
            match self.peek() {
                None | Some(b')') => return Ok(list),
                Some(b';') => return Ok(list),
                Some(_) if self.at_closing() => return Ok(list),
                Some(_) => {
                    if !self.item(&mut list)? && self.peek() != Some(b'\n') {
                        return Ok(list);
                    }
                }
            }
        }
    }

    /// A list where bash wants at least one command.
    fn commands(&mut self) -> Parsed<List> {
        let list = self.list()?;
        if list.is_empty() { self.syntax() } else { Ok(list) }
    }

    /// Reads one and-or list and its separator; false if no separator followed.
    fn item(&mut self, list: &mut List) -> Parsed<bool> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.blanks();
            let connector = if self.eat_pair(b'&', b'&') {
                Connector::And
            } else if self.eat_pair(b'|', b'|') {
                Connector::Or
            } else {
                break;
            };
            self.linebreak()?;
            rest.push((connector, self.pipeline()?));
        }
        let background = self.peek() == Some(b'&');
        let separated = background
            || (self.peek() == Some(b';') && !matches!(self.peek_second(), Some(b';' | b'&')));
        if separated {
            self.bump();
        }
        list.push(Item { first, rest, background });
        Ok(separated)
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        self.pipeline_prefix()?;
        let mut commands = Vec::new();
        loop {
            self.blanks();
            commands.push(self.command()?);
            self.blanks();
            let piped = self.peek() == Some(b'|') && self.peek_second() != Some(b'|');
            if !piped {
                return Ok(Pipeline { commands });
            }
            self.bump();
            if self.peek() == Some(b'&') {
                self.bump();
            }
            self.linebreak()?;
        }
    }

    /// `!` and `time [-p] [--]`, in any order.
    fn pipeline_prefix(&mut self) -> Parsed<()> {
        loop {
            self.blanks();
            if self.eat_reserved("time") {
                for option in ["-p", "--"] {
                    self.blanks();
                    self.eat_reserved(option);
                }
            } else if self.at_negation()? {
                self.bump();
            } else {
                return Ok(());
            }
        }
    }

    fn at_negation(&mut self) -> Parsed<bool> {
        if self.peek() != Some(b'!') {
            return Ok(false);
        }
        let next = self.peek_second();
        if next == Some(b'(') && self.extended_patterns {
            return self.syntax();
        }
        Ok(next.is_none_or(is_metacharacter))
    }

    /// Whether the word here is exactly `word`, unquoted.
    pub(super) fn at_reserved(&mut self, word: &str) -> bool {
        self.peek();
        let end = self.position + word.len();
        self.slice(self.position, self.text.len()).starts_with(word)
            && self.byte(end).is_none_or(is_metacharacter)
    }

    pub(super) fn eat_reserved(&mut self, word: &str) -> bool {
        let found = self.at_reserved(word);
        if found {
            self.position += word.len();
        }
        found
    }

    fn expect_reserved(&mut self, word: &str) -> Parsed<()> {
        if self.eat_reserved(word) { Ok(()) } else { self.syntax() }
    }

    fn at_closing(&mut self) -> bool {
        self.peek().is_some_and(|byte| b"tefd}".contains(&byte))
            && CLOSING.iter().any(|word| self.at_reserved(word))
    }

    fn command(&mut self) -> Parsed<Command> {
        self.budget.node()?;
        let start = self.position;
        let Some(kind) = self.compound()? else { return self.simple() };
        self.finish_compound(start, kind)
    }

    /// The redirections behind a compound command.
    fn finish_compound(&mut self, start: usize, kind: CommandKind) -> Parsed<Command> {
        let mut redirects = Vec::new();
        self.blanks();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
            self.blanks();
        }
        Ok(Command { kind, redirects, span: self.span_from(start) })
    }

    /// Reads a compound command if one starts here.
    fn compound(&mut self) -> Parsed<Option<CommandKind>> {
        match self.peek() {
            Some(b'(') => self.nested(Self::parenthesis).map(Some),
            Some(byte) if b"{[iwufsc".contains(&byte) => self.reserved_compound(),
            _ => Ok(None),
        }
    }

    fn reserved_compound(&mut self) -> Parsed<Option<CommandKind>> {
        let kind = if self.eat_reserved("{") {
            self.nested(Self::group)?
        } else if self.eat_reserved("[[") {
            self.nested(Self::conditional)?
        } else if self.eat_reserved("if") {
            self.nested(Self::if_clauses)?
        } else if self.eat_reserved("while") || self.eat_reserved("until") {
            self.nested(Self::while_loop)?
        } else if self.eat_reserved("for") {
            self.nested(Self::for_loop)?
        } else if self.eat_reserved("select") {
            self.nested(Self::word_loop)?
        } else if self.eat_reserved("case") {
            self.nested(Self::case)?
        } else if self.eat_reserved("function") {
            self.nested(Self::function_keyword)?
        } else if self.eat_reserved("coproc") {
            self.nested(Self::coprocess)?
        } else {
            return Ok(None);
        };
        Ok(Some(kind))
    }

    /// `(list)`, or `((expression))` if it closes as one.
    fn parenthesis(&mut self) -> Parsed<CommandKind> {
        let start = self.position;
        let double = self.peek_second() == Some(b'(');
        if double {
            match self.double_parenthesis() {
                Ok(Some(expression)) => return Ok(CommandKind::Arithmetic(expression)),
                Ok(None) | Err(Fault::Syntax(_)) => self.go_back(start)?,
                Err(Fault::TooLarge) => return Err(Fault::TooLarge),
            }
        }
        self.expect(b'(')?;
        let body = self.commands()?;
        self.expect(b')')?;
        // `( (a) )` is clear; `((a) )` is what bash finds by counting.
        if double && self.byte(start + 1) == Some(b'(') {
            self.refuse_ambiguous(start)?;
        }
        Ok(CommandKind::Subshell(body))
    }

    fn group(&mut self) -> Parsed<CommandKind> {
        let body = self.commands()?;
        self.expect_reserved("}")?;
        Ok(CommandKind::Group(body))
    }

    fn if_clauses(&mut self) -> Parsed<CommandKind> {
        let mut clauses = Vec::new();
        loop {
            let condition = self.list_before("then")?;
            let body = self.commands()?;
            clauses.push((condition, body));
            if self.eat_reserved("elif") {
                continue;
            }
            let otherwise = if self.eat_reserved("else") { self.commands()? } else { List::new() };
            self.expect_reserved("fi")?;
            return Ok(CommandKind::If { clauses, otherwise });
        }
    }

    fn list_before(&mut self, word: &str) -> Parsed<List> {
        let list = self.commands()?;
        self.expect_reserved(word)?;
        Ok(list)
    }

    fn while_loop(&mut self) -> Parsed<CommandKind> {
        let condition = self.list_before("do")?;
        let body = self.list_before("done")?;
        Ok(CommandKind::While { condition, body })
    }

    fn for_loop(&mut self) -> Parsed<CommandKind> {
        self.blanks();
        if self.peek() == Some(b'(') && self.peek_second() == Some(b'(') {
            return self.arithmetic_loop();
        }
        self.word_loop()
    }

    /// `name [in words]; do list; done` of `for` and `select`.
    fn word_loop(&mut self) -> Parsed<CommandKind> {
        self.blanks();
        if !self.peek().is_some_and(is_name_start) {
            return self.syntax();
        }
        let name = self.name();
        self.linebreak()?;
        let words = if self.eat_reserved("in") { Some(self.loop_words()?) } else { None };
        self.eat_separator();
        let body = self.loop_body()?;
        Ok(CommandKind::For { name, words, body })
    }

    fn loop_words(&mut self) -> Parsed<Vec<WordNode>> {
        let mut words = Vec::new();
        loop {
            self.blanks();
            match self.peek() {
                Some(b';' | b'\n') => return Ok(words),
                None => return self.syntax(),
                Some(_) => words.push(self.nonempty_word()?),
            }
        }
    }

    pub(super) fn nonempty_word(&mut self) -> Parsed<WordNode> {
        let start = self.position;
        let word = self.word()?;
        if self.position == start { self.syntax() } else { Ok(word) }
    }

    fn eat_separator(&mut self) {
        if self.peek() == Some(b';') && self.peek_second() != Some(b';') {
            self.bump();
        }
    }

    fn loop_body(&mut self) -> Parsed<List> {
        self.linebreak()?;
        if self.eat_reserved("{") {
            return self.list_before("}");
        }
        self.expect_reserved("do")?;
        self.list_before("done")
    }

    fn arithmetic_loop(&mut self) -> Parsed<CommandKind> {
        let Some(expression) = self.double_parenthesis()? else { return self.syntax() };
        self.blanks();
        self.eat_separator();
        let body = self.loop_body()?;
        let expressions: Vec<Pieces> = vec![expression];
        Ok(CommandKind::ForArithmetic { expressions, body })
    }

    fn case(&mut self) -> Parsed<CommandKind> {
        self.blanks();
        let word = self.nonempty_word()?;
        self.linebreak()?;
        self.expect_reserved("in")?;
        let mut arms = Vec::new();
        loop {
            self.linebreak()?;
            if self.eat_reserved("esac") {
                return Ok(CommandKind::Case { word, arms });
            }
            arms.push(self.arm()?);
            self.linebreak()?;
            if self.eat_pair(b';', b';') {
                self.eat(b'&');
            } else if !self.eat_pair(b';', b'&') && !self.at_reserved("esac") {
                return self.syntax();
            }
        }
    }

    fn arm(&mut self) -> Parsed<Arm> {
        self.eat(b'(');
        let mut patterns = Vec::new();
        loop {
            self.blanks();
            patterns.push(self.nonempty_word()?);
            self.blanks();
            if !self.eat(b'|') {
                break;
            }
        }
        self.expect(b')')?;
        let body = self.list()?;
        Ok(Arm { patterns, body })
    }

    fn function_keyword(&mut self) -> Parsed<CommandKind> {
        self.blanks();
        let name = self.nonempty_word()?;
        self.blanks();
        if self.eat(b'(') {
            self.blanks();
            self.expect(b')')?;
        }
        self.function_body(name)
    }

    pub(super) fn function_body(&mut self, name: WordNode) -> Parsed<CommandKind> {
        self.linebreak()?;
        let start = self.position;
        let Some(kind) = self.compound()? else { return self.syntax() };
        let body = Box::new(self.finish_compound(start, kind)?);
        Ok(CommandKind::Function { name, body })
    }

    fn coprocess(&mut self) -> Parsed<CommandKind> {
        self.blanks();
        let start = self.position;
        let unnamed = self.compound()?;
        if let Some(kind) = unnamed {
            let body = Box::new(self.finish_compound(start, kind)?);
            return Ok(CommandKind::Coprocess { name: None, body });
        }
        let name = self.nonempty_word()?.text.to_string();
        self.blanks();
        let inner = self.position;
        if let Some(kind) = self.compound()? {
            let body = Box::new(self.finish_compound(inner, kind)?);
            return Ok(CommandKind::Coprocess { name: Some(name), body });
        }
        self.go_back(start)?;
        let body = Box::new(self.simple()?);
        Ok(CommandKind::Coprocess { name: None, body })
    }
}
