//! Policy files: their types, where they come from, how they are read, and what is said when they
//! are wrong. Nothing here decides on a call.

pub mod diagnostic;
mod embedded;
pub mod located;
pub(in crate::policy) mod read;
pub mod schema;
pub mod source;

pub use read::{LANGUAGE_VERSION, read};
