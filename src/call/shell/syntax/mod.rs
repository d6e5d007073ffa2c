//! Reads a script into a syntax tree, as bash would read it.
//!
//! Strict and bounded: what is not in the grammar is a fault with its place, never skipped, and each
//! step of recursion, each node and each byte that is read twice is counted. Nothing here expands a
//! word or knows what a program does.

pub(crate) mod ast;
mod cursor;
mod dollar;
mod parser;
mod refused;
mod simple;
mod words;

pub(crate) use cursor::{Budget, Origin};
pub(crate) use parser::{TooLarge, parse};
pub(crate) use refused::refused_at;
