//! The documents say what is: commands run, flags and codes are all there, links lead somewhere, and
//! every test that a page calls a proof exists. What `docs/policy-reference.md` says about keys and
//! codes is compared in `policy::tests::documents`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may fail loudly, read files and start programs"
)]

mod commands;
mod facts;
mod links;
mod markdown;
mod proofs;
