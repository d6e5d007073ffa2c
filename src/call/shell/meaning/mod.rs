//! From the syntax tree to what it means: facts about the whole script, expansion of words, and the
//! walk that turns commands into effects.

mod assigning;
mod braces;
mod commands;
pub(crate) mod facts;
pub(crate) mod fields;
mod forwarding;
mod inside;
pub(crate) mod numeric;
mod printed;
pub(crate) mod state;
pub(crate) mod walk;
