//! What stands inside words: substitutions that run commands, arithmetic that would evaluate values,
//! redirections that open files.

use super::numeric::{NUMERIC_PARAMETERS, names, prints_numbers};
use super::state::Value;
use super::walk::{Analysis, Input, Walked};
use crate::call::effects::{Access, PathOrigin, Span, UnresolvedReason};
use crate::call::shell::syntax::ast::{
    AssignedValue, AssignmentNode, Form, List, Operand, OperandRole, Parameter, Piece, Pieces,
    Redirect, RedirectOperator, RedirectTarget, WordNode,
};

impl Analysis {
    /// Judges everything that expanding `word` would run.
    pub(crate) fn inside(&mut self, word: &WordNode) -> Walked {
        if let Some(node) = &word.assignment {
            self.inside_assignment(node)?;
        }
        self.pieces(&word.pieces, word.span)
    }

    pub(crate) fn inside_assignment(&mut self, node: &AssignmentNode) -> Walked {
        if let Some(subscript) = &node.subscript {
            self.subscript(&node.name, subscript, node.span)?;
        }
        match &node.value {
            AssignedValue::Scalar(word) => self.inside(word),
            AssignedValue::Array(elements) => {
                for (subscript, word) in elements {
                    if let Some(subscript) = subscript {
                        self.subscript(&node.name, subscript, node.span)?;
                    }
                    self.inside(word)?;
                }
                Ok(())
            }
        }
    }

    fn pieces(&mut self, pieces: &Pieces, span: Span) -> Walked {
        for piece in pieces {
            match piece {
                Piece::Text { .. } => {}
                Piece::Parameter { parameter, .. } => self.parameter(parameter)?,
                Piece::Command { body, .. } | Piece::Process { body } => self.substitution(body)?,
                Piece::Arithmetic { expression, .. } => self.arithmetic(expression, span)?,
                Piece::Opaque { inside } => self.pieces(inside, span)?,
            }
        }
        Ok(())
    }

    fn substitution(&mut self, body: &List) -> Walked {
        let directories = self.shell.directories.clone();
        let defined = self.shell.defined.mark();
        self.sometimes(body)?;
        self.shell.directories = directories;
        self.shell.defined.forget(defined);
        Ok(())
    }

    fn parameter(&mut self, parameter: &Parameter) -> Walked {
        if let Some(subscript) = &parameter.subscript {
            self.subscript(&parameter.name, subscript, parameter.span)?;
        }
        match parameter.form {
            // The value is evaluated: as a name with a subscript, or as a prompt.
            Form::Indirect if self.names_variable(parameter) => {}
            Form::Indirect | Form::Transform(b'P') => {
                self.unresolved(UnresolvedReason::CodeWord, &parameter.name, parameter.span);
            }
            Form::Substring => return self.arithmetic(&parameter.operand, parameter.span),
            Form::Plain
            | Form::Length
            | Form::Names
            | Form::AssignDefault
            | Form::Default
            | Form::Operand
            | Form::Transform(_) => {}
        }
        self.pieces(&parameter.operand, parameter.span)
    }

    /// Whether the value of `${!x}` is certainly the name of a variable, which holds nothing that is
    /// evaluated, or not there at all, which bash refuses.
    fn names_variable(&self, parameter: &Parameter) -> bool {
        let is_name =
            |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        parameter.subscript.is_none()
            && match self.shell.value(&parameter.name) {
                Value::Known(value) => is_name(&value),
                Value::Unset => true,
                Value::Number | Value::Environment | Value::Unknown => false,
            }
    }

    /// A subscript is an expression, unless the array is associative or all elements are meant.
    fn subscript(&mut self, name: &str, subscript: &Pieces, span: Span) -> Walked {
        let whole = matches!(subscript.as_slice(), [Piece::Text { text, .. }] if text == "@" || text == "*");
        if whole {
            return Ok(());
        }
        if self.shell.facts.associative.contains(name) {
            return self.pieces(subscript, span);
        }
        self.arithmetic(subscript, span)
    }

    /// An expression may name only variables whose values cannot hold code.
    pub(crate) fn arithmetic(&mut self, expression: &Pieces, span: Span) -> Walked {
        if let Some(doubtful) = expression.iter().find_map(|piece| self.doubtful(piece)) {
            self.unresolved(UnresolvedReason::CodeWord, &doubtful, span);
        }
        self.pieces(expression, span)
    }

    /// The part of an expression whose value could hold code.
    fn doubtful(&self, piece: &Piece) -> Option<String> {
        match piece {
            // What is quoted here is expanded when the expression is evaluated.
            Piece::Text { text, .. } if text.contains(['$', '`']) => Some(text.clone()),
            Piece::Text { text, .. } => self.doubtful_name(text),
            Piece::Parameter { parameter, .. } => match parameter.form {
                Form::Length => None,
                Form::Names if !self.shell.facts.associative.contains(&parameter.name) => None,
                Form::Plain => match self.shell.value(&parameter.name) {
                    Value::Number | Value::Environment | Value::Unset => None,
                    Value::Known(value) => self.doubtful_name(&value),
                    Value::Unknown => Some(parameter.name.clone()),
                },
                Form::Default | Form::Operand => self.doubtful_default(parameter),
                Form::Indirect
                | Form::Names
                | Form::AssignDefault
                | Form::Substring
                | Form::Transform(_) => Some(parameter.name.clone()),
            },
            Piece::Command { body, .. }
                if prints_numbers(body) && !self.shell.facts.numbers_doubtful =>
            {
                None
            }
            Piece::Arithmetic { .. } => None,
            Piece::Command { .. } => Some("$(…)".to_owned()),
            Piece::Process { .. } | Piece::Opaque { .. } => Some("…".to_owned()),
        }
    }

    /// `${x:-0}`: as safe as the variable and the word.
    fn doubtful_default(&self, parameter: &Parameter) -> Option<String> {
        let value = self.shell.value(&parameter.name);
        let safe = matches!(value, Value::Number | Value::Environment | Value::Unset);
        let text = parameter.operand.iter().all(|piece| {
            matches!(piece, Piece::Text { text, .. } if text.bytes().all(|byte| byte.is_ascii_digit() || b"#%-+".contains(&byte)))
        });
        (!(safe && text)).then(|| parameter.name.clone())
    }

    fn doubtful_name(&self, text: &str) -> Option<String> {
        names(text)
            .find(|name| {
                !NUMERIC_PARAMETERS.contains(name)
                    && match self.shell.value(name) {
                        Value::Number | Value::Environment | Value::Unset => false,
                        Value::Known(value) => names(&value).next().is_some(),
                        Value::Unknown => true,
                    }
            })
            .map(ToOwned::to_owned)
    }

    pub(crate) fn conditional(&mut self, operands: &[Operand]) -> Walked {
        for operand in operands {
            match operand.role {
                OperandRole::Text => {}
                OperandRole::Arithmetic => {
                    self.arithmetic(&operand.word.pieces, operand.word.span)?;
                    continue;
                }
                OperandRole::Variable => self.variable_operand(&operand.word),
            }
            self.inside(&operand.word)?;
        }
        Ok(())
    }

    /// A word that is taken as a variable's name: a subscript in it would be evaluated.
    fn variable_operand(&mut self, word: &WordNode) {
        let field = self.shell.single(word);
        if field.exact().is_none_or(|name| name.contains('[')) {
            self.unresolved(UnresolvedReason::CodeWord, &word.text, word.span);
        }
    }

    /// What the redirections make standard input, if they change it.
    pub(crate) fn input(&self, redirects: &[Redirect]) -> Option<Input> {
        let redirect = redirects.iter().rev().find(|redirect| {
            let reads = matches!(
                redirect.operator,
                RedirectOperator::Read
                    | RedirectOperator::ReadWrite
                    | RedirectOperator::DuplicateIn
                    | RedirectOperator::HereDocument
                    | RedirectOperator::HereString
            );
            redirect.descriptor.map_or(reads && redirect.variable.is_none(), |number| number == 0)
        })?;
        Some(match &redirect.target {
            RedirectTarget::HereDocument(document) => document
                .get()
                .and_then(|document| self.text(&document.body))
                .map_or(Input::Stream, |text| Input::Text(text.into())),
            RedirectTarget::Word(word) => {
                let field = self.shell.single(word);
                match (redirect.operator, field.exact()) {
                    (RedirectOperator::HereString, Some(text)) => {
                        Input::Text(format!("{text}\n").into())
                    }
                    (_, Some("/dev/null")) => Input::none(),
                    (RedirectOperator::Read, Some(path))
                        if !path.is_empty()
                            && !path.starts_with("/dev/")
                            && !path.starts_with("/proc/") =>
                    {
                        Input::File
                    }
                    (_, _) => Input::Stream,
                }
            }
        })
    }

    /// The value of pieces that are all known.
    fn text(&self, pieces: &Pieces) -> Option<String> {
        pieces.iter().try_fold(String::new(), |mut text, piece| {
            match piece {
                Piece::Text { text: part, .. } => text.push_str(part),
                Piece::Parameter { parameter, .. }
                    if parameter.form == Form::Plain && parameter.subscript.is_none() =>
                {
                    match self.shell.value(&parameter.name) {
                        Value::Known(value) if self.shell.expansion.take(value.len()) => {
                            text.push_str(&value);
                        }
                        Value::Known(_)
                        | Value::Number
                        | Value::Environment
                        | Value::Unset
                        | Value::Unknown => return None,
                    }
                }
                Piece::Command { body, .. } => text.push_str(&self.shell.substituted(body)?),
                Piece::Parameter { .. }
                | Piece::Arithmetic { .. }
                | Piece::Process { .. }
                | Piece::Opaque { .. } => return None,
            }
            Some(text)
        })
    }

    pub(crate) fn redirects(&mut self, redirects: &[Redirect]) -> Walked {
        for redirect in redirects {
            match &redirect.target {
                RedirectTarget::Word(word) => {
                    self.opened(redirect, word);
                    self.inside(word)?;
                }
                RedirectTarget::HereDocument(document) => {
                    if let Some(document) = document.get() {
                        self.pieces(&document.body, redirect.span)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn opened(&mut self, redirect: &Redirect, word: &WordNode) {
        let accesses: &[Access] = match redirect.operator {
            RedirectOperator::Read => &[Access::Read],
            RedirectOperator::ReadWrite => &[Access::Read, Access::Write],
            RedirectOperator::Write | RedirectOperator::Append | RedirectOperator::WriteBoth => {
                &[Access::Write]
            }
            RedirectOperator::DuplicateOut => &[Access::Write],
            RedirectOperator::DuplicateIn => &[],
            RedirectOperator::HereDocument | RedirectOperator::HereString => return,
        };
        let fields = self.shell.fields(word);
        let [field] = fields.as_slice() else {
            return self.unresolved(UnresolvedReason::RedirectionTarget, &word.text, word.span);
        };
        let duplicates = matches!(
            redirect.operator,
            RedirectOperator::DuplicateOut | RedirectOperator::DuplicateIn
        );
        if duplicates && is_descriptor(field.exact()) {
            return;
        }
        if field.exact().is_none() {
            let process = matches!(word.pieces.as_slice(), [Piece::Process { .. }]);
            if !process {
                self.unresolved(UnresolvedReason::RedirectionTarget, &word.text, word.span);
            }
            return;
        }
        if self.network_path(&field.value, word.span) {
            return;
        }
        for access in accesses {
            self.path(field, *access, PathOrigin::Redirection);
        }
    }

    /// `/dev/tcp/host/port`, which bash opens itself.
    fn network_path(&mut self, path: &str, span: Span) -> bool {
        let Some(rest) = path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))
        else {
            return false;
        };
        let (host, port) = rest.split_once('/').unwrap_or((rest, ""));
        self.host(host, port.parse().ok(), span);
        true
    }
}

/// `2`, `-` or `2-` behind `>&`.
fn is_descriptor(word: Option<&str>) -> bool {
    word.is_some_and(|word| {
        let number = word.strip_suffix('-').unwrap_or(word);
        !word.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
