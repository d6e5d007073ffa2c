//! The syntax tree of a script: what bash would see after reading it, nothing expanded yet.
//!
//! Every node that can end up in a message or a record carries the span it was read from. Code that
//! was read from derived text (backquotes, `eval`, here-documents with stripped tabs) carries the
//! span of the outer construct.

use crate::call::effects::Span;
use std::cell::OnceCell;
use std::rc::Rc;

/// A list of commands, in order.
pub(crate) type List = Vec<Item>;

/// One and-or list and how it is ended.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Connector, Pipeline)>,
    /// Ended by `&`.
    pub(crate) background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connector {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) kind: CommandKind,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum CommandKind {
    Simple(Simple),
    Subshell(List),
    Group(List),
    If { clauses: Vec<(List, List)>, otherwise: List },
    While { condition: List, body: List },
    For { name: String, words: Option<Vec<WordNode>>, body: List },
    ForArithmetic { expressions: Vec<Pieces>, body: List },
    Case { word: WordNode, arms: Vec<Arm> },
    Arithmetic(Pieces),
    Conditional(Vec<Operand>),
    Function { name: WordNode, body: Box<Command> },
    Coprocess { name: Option<String>, body: Box<Command> },
}

#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<WordNode>,
    pub(crate) body: List,
}

/// One operand inside `[[ ]]`.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) word: WordNode,
    pub(crate) role: OperandRole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandRole {
    Text,
    /// Evaluated as an arithmetic expression (`-eq` and its kin).
    Arithmetic,
    /// A variable's name, whose subscript would be evaluated (`-v`).
    Variable,
}

#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<AssignmentNode>,
    pub(crate) words: Vec<WordNode>,
}

#[derive(Debug)]
pub(crate) struct AssignmentNode {
    pub(crate) name: String,
    pub(crate) subscript: Option<Pieces>,
    pub(crate) append: bool,
    pub(crate) value: AssignedValue,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum AssignedValue {
    Scalar(WordNode),
    Array(Vec<(Option<Pieces>, WordNode)>),
}

/// A word before any expansion.
#[derive(Debug)]
pub(crate) struct WordNode {
    pub(crate) pieces: Pieces,
    /// The word as written.
    pub(crate) text: Box<str>,
    pub(crate) span: Span,
    /// Set for an argument of `declare` and its kin that has the form of an assignment.
    pub(crate) assignment: Option<Box<AssignmentNode>>,
}

pub(crate) type Pieces = Vec<Piece>;

#[derive(Debug)]
pub(crate) enum Piece {
    /// Literal text; unquoted text takes part in brace, tilde and pathname expansion.
    Text {
        text: String,
        quoted: bool,
    },
    Parameter {
        parameter: Box<Parameter>,
        quoted: bool,
    },
    /// `$(…)`, backquotes, `${ …; }`.
    Command {
        body: List,
        quoted: bool,
    },
    Arithmetic {
        expression: Pieces,
        quoted: bool,
    },
    /// `<(…)` and `>(…)`.
    Process {
        body: List,
    },
    /// Text whose value is not worked out (an extended pattern, an odd escape); what is inside is
    /// still judged.
    Opaque {
        inside: Pieces,
    },
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) subscript: Option<Pieces>,
    pub(crate) form: Form,
    pub(crate) operand: Pieces,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `$x`, `${x}`, `${x[1]}`
    Plain,
    /// `${#x}`
    Length,
    /// `${!x}`: the value names the variable, or an element with a subscript that is evaluated.
    Indirect,
    /// `${!x*}` and `${!x[@]}`
    Names,
    /// `${x=word}` and `${x:=word}`
    AssignDefault,
    /// `${x-word}` and `${x:-word}`
    Default,
    /// `${x:+word}`, `${x#pattern}` and the like.
    Operand,
    /// `${x:offset:length}`
    Substring,
    /// `${x@Q}`; the letter.
    Transform(u8),
}

#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) operator: RedirectOperator,
    pub(crate) target: RedirectTarget,
    /// `{name}>`: the variable that receives the descriptor.
    pub(crate) variable: Option<String>,
    pub(crate) descriptor: Option<u32>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum RedirectTarget {
    Word(WordNode),
    HereDocument(Rc<OnceCell<HereDocument>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectOperator {
    /// `<`
    Read,
    /// `>` and `>|`
    Write,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `&>` and `&>>`
    WriteBoth,
    /// `>&`
    DuplicateOut,
    /// `<&`
    DuplicateIn,
    /// `<<` and `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

#[derive(Debug)]
pub(crate) struct HereDocument {
    pub(crate) body: Pieces,
}
