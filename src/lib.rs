//! stoplog runs an AI agent that nobody has to trust.
//!
//! Every tool call of the model passes one ordered policy chain, is recorded durably, and takes
//! effect in a short-lived child that the Linux kernel confines. Modules, in reading order; each may
//! use only those above it (`tests/architecture.rs` holds the table):
//!
//! ```text
//! base <- call <- { policy, model, audit, session, sandbox } <- chain <- tools <- agent <- run <- cli
//! ```

pub mod base;
pub mod call;
pub mod policy;
pub mod model;
pub mod audit;
pub mod sandbox;
pub mod session;
pub mod chain;
pub mod tools;
pub mod agent;
pub mod run;
pub mod cli;
