//! The session journal as its callers use it: written by the typed appends, cut, damaged, and read
//! again; and the store that holds the sessions.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod damage;
mod journal;
mod recovery;
mod rig;
mod store;
