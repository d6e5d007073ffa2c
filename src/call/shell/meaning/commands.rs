//! One simple command: its words, what it is recorded as, and the paths and hosts that it names.

use super::fields::{Field, Place};
use super::forwarding::runs_parameters;
use super::walk::{Analysis, Call, Input, Lookup, Walked};
use crate::call::effects::{
    Access, Assignment, CommandUse, FunctionCall, HostUse, PathOrigin, PathUse, Span,
    UnresolvedReason, Word,
};
use crate::call::shell::programs;
use crate::call::shell::syntax::TooLarge;
use crate::call::shell::syntax::ast::{AssignedValue, AssignmentNode, Command, Simple, WordNode};

impl Analysis {
    pub(super) fn simple(&mut self, simple: &Simple, command: &Command, input: Input) -> Walked {
        let assignments: Vec<Assignment> =
            simple.assignments.iter().map(|node| self.assigned(node)).collect();
        let mut fields = Vec::with_capacity(simple.words.len());
        // What the function's calls give it is judged there.
        let runs_parameters = runs_parameters(simple) && self.is_forwarding();
        for word in simple.words.iter().filter(|_| !runs_parameters) {
            match &word.assignment {
                Some(node) => fields.push(self.assignment_field(word, node)),
                None => {
                    let place = match fields.first().map(Field::exact) {
                        None => Place::Program,
                        Some(Some("eval")) => Place::Code,
                        Some(_) => Place::Argument,
                    };
                    let mut more = self.shell.fields_at(word, place);
                    // Counted here too, since one word may become hundreds.
                    self.budget.words(more.len() - 1.min(more.len())).map_err(|_fault| TooLarge)?;
                    fields.append(&mut more);
                }
            }
        }
        if fields.is_empty() && !runs_parameters {
            for assignment in &assignments {
                self.prompt(assignment);
                self.shell.assign(&assignment.name, assignment.value.known());
            }
            self.effects.assignments.extend(assignments);
        } else if runs_parameters {
            self.effects.assignments.extend(assignments);
        } else {
            let via = self.via.clone();
            let span = command.span;
            let reopens = matches!(fields.as_slice(), [only] if only.exact() == Some("exec"))
                && self.input(&command.redirects).is_some();
            if reopens {
                self.inherited = Input::Stream;
            }
            self.run(Call { fields, assignments, via, span, input, lookup: Lookup::Shell })?;
        }
        for node in &simple.assignments {
            self.inside_assignment(node)?;
        }
        for word in &simple.words {
            self.inside(word)?;
        }
        self.redirects(&command.redirects)
    }

    /// An argument of `declare` and its kin in the form of an assignment.
    fn assignment_field(&self, word: &WordNode, node: &AssignmentNode) -> Field {
        let assignment = self.assigned(node);
        match assignment.value {
            Word::Known(value) if node.subscript.is_none() && !node.append => {
                Field::known(&format!("{}={value}", node.name), word.span)
            }
            Word::Known(_) | Word::Unknown { .. } => Field {
                value: format!("{}=", node.name),
                many: false,
                ..Field::unknown(&word.text, word.span)
            },
        }
    }

    pub(crate) fn assigned(&self, node: &AssignmentNode) -> Assignment {
        let value = match &node.value {
            AssignedValue::Scalar(word) if !node.append => self.shell.single(word).word(),
            AssignedValue::Scalar(word) => {
                Word::Unknown { text: word.text.to_string(), prefix: String::new() }
            }
            AssignedValue::Array(_) => {
                Word::Unknown { text: "(…)".to_owned(), prefix: String::new() }
            }
        };
        Assignment { name: node.name.clone(), value, span: node.span }
    }

    /// Runs one command: records it, then looks at what its arguments would run, touch and reach.
    pub(crate) fn run(&mut self, call: Call) -> Walked {
        self.deeper(|analysis| analysis.run_here(call))
    }

    fn run_here(&mut self, call: Call) -> Walked {
        let Some((program, arguments)) = call.fields.split_first() else { return Ok(()) };
        self.budget.words(arguments.len() + 1).map_err(|_fault| TooLarge)?;
        if self.calls_function(&call, program)? {
            return Ok(());
        }
        self.effects.commands.push(CommandUse {
            program: program.word(),
            arguments: arguments.iter().map(Field::word).collect(),
            assignments: call.assignments.clone(),
            via: call.via.clone(),
            inline_code: None,
            stays_here: false,
            span: call.span,
        });
        call.assignments.iter().for_each(|assignment| self.prompt(assignment));
        let index = self.effects.commands.len() - 1;
        let Some(name) = program.exact() else {
            let reason = if behind_builtin_as_program(&call) {
                UnresolvedReason::Wrapper
            } else {
                UnresolvedReason::ProgramWord
            };
            self.unresolved(reason, &program.text, program.span);
            return Ok(());
        };
        if program.text.contains(['$', '`']) {
            self.shell.beliefs.relied_on.set(true);
        }
        if name.contains('/') {
            self.path(
                program,
                Access::Execute,
                PathOrigin::ProgramArgument { program: name.to_owned() },
            );
        }
        programs::run(self, &call, index)
    }

    /// Records a call of a function. True if certainly no program of that name runs.
    fn calls_function(&mut self, call: &Call, program: &Field) -> Result<bool, TooLarge> {
        let Some(name) = program.exact().filter(|_| call.lookup == Lookup::Shell) else {
            return Ok(false);
        };
        if !self.shell.facts.functions.contains_key(name) {
            return Ok(false);
        }
        self.forwarded(call, name)?;
        self.effects.function_calls.push(FunctionCall { name: name.to_owned(), span: call.span });
        Ok(self.shell.defined.contains(name))
    }

    /// Whether the function whose body is looked at runs its parameters in a way that is followed.
    fn is_forwarding(&self) -> bool {
        let name = self.shell.function.as_deref();
        name.is_some_and(|name| self.shell.facts.forwards(name).is_some())
    }

    /// Runs what a function is given and runs itself.
    fn forwarded(&mut self, call: &Call, name: &str) -> Walked {
        let Some(shifted) = self.shell.facts.forwards(name) else { return Ok(()) };
        self.shell.beliefs.relied_on.set(true);
        let (away, given) = call.fields.split_at(call.fields.len().min(1 + shifted));
        if given.is_empty() {
            return Ok(());
        }
        // A word that may be several makes it unclear which of them is the program.
        if let Some(several) = away.iter().find(|field| field.many || field.pattern.is_some()) {
            self.unresolved(UnresolvedReason::ProgramWord, &several.text, several.span);
        }
        let (fields, assignments) = (given.to_vec(), call.assignments.clone());
        let via = call.via.iter().cloned().chain([name.to_owned()]).collect();
        let (span, input) = (call.span, Input::Stream);
        self.run(Call { fields, assignments, via, span, input, lookup: Lookup::Shell })
    }

    /// The prompt of `set -x` is expanded before each command, substitutions too.
    pub(crate) fn prompt(&mut self, assignment: &Assignment) {
        let runs = |value: &str| value.contains("$(") || value.contains('`');
        let is_code = match &assignment.value {
            Word::Known(value) => runs(value),
            Word::Unknown { text, .. } => !text.starts_with('"') || runs(text),
        };
        if assignment.name == "PS4" && is_code {
            let text = assignment.value.shown().to_owned();
            self.unresolved(UnresolvedReason::CodeWord, &text, assignment.span);
        }
    }

    pub(crate) fn inline_code(&mut self, index: usize, what: &str) {
        if let Some(command) = self.effects.commands.get_mut(index)
            && command.inline_code.is_none()
        {
            command.inline_code = Some(what.to_owned());
        }
    }

    /// Records a path, in every directory it may be relative to.
    pub(crate) fn path(&mut self, field: &Field, access: Access, origin: PathOrigin) {
        if self.remote {
            return;
        }
        let (text, is_pattern) = match (field.exact(), field.pattern) {
            (Some(value), _) => (value, false),
            // The directory in which names are matched: everything before the last slash in front
            // of the pattern.
            (None, Some(index)) => {
                let head = field.value.get(..index).unwrap_or("");
                (head.rfind('/').and_then(|slash| head.get(..=slash)).unwrap_or("."), true)
            }
            (None, None) => return,
        };
        if text.is_empty() {
            return;
        }
        let fetches = access == Access::Write
            && matches!(&origin, PathOrigin::ProgramArgument { program } if FETCHERS.contains(&program.as_str()));
        for path in self.shell.directories.resolve(text) {
            if access == Access::Execute && self.fetched.contains(&path) {
                self.unresolved(UnresolvedReason::ForeignCode, &field.text, field.span);
            }
            if fetches && !is_pattern {
                self.fetched.insert(path.clone());
            }
            let origin = origin.clone();
            self.effects.paths.push(PathUse { path, access, origin, is_pattern, span: field.span });
        }
    }

    pub(crate) fn host(&mut self, host: &str, port: Option<u16>, span: Span) {
        let host = host.to_ascii_lowercase();
        if !host.is_empty() && !self.remote {
            self.effects.hosts.push(HostUse { host, port, span });
        }
    }
}

/// Programs whose files come from other machines: whoever runs one runs what somebody else wrote.
const FETCHERS: [&str; 5] = ["aria2c", "axel", "curl", "scp", "wget"];

/// Whether the command stands behind `command` that no shell looks up. Most systems have no file of that
/// name, so that nothing runs; where there is one, what it runs is not known.
fn behind_builtin_as_program(call: &Call) -> bool {
    call.lookup == Lookup::Program
        && matches!(call.via.as_slice(), [.., outer, last]
            if last == "command" && matches!(outer.as_str(), "find" | "xargs" | "gfind" | "gxargs"))
}
