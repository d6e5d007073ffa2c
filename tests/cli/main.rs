//! The real binary from the outside: what is typed, what is printed, what is left on the disk, and
//! how the process ends. One file for each question; every refusal stands beside the control in which
//! the same thing goes through.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]
#![expect(clippy::indexing_slicing, reason = "JSON is read by keys; what is missing is null")]
#![expect(
    clippy::disallowed_methods,
    reason = "these tests start the program and read their place"
)]

mod bad_input;
mod bugs;
mod completion;
mod copied;
mod documents;
mod exits;
mod hostile;
mod jobs;
mod killed;
mod layers;
mod model_call;
mod parity;
mod persistence;
mod pty;
mod records;
mod replay;
mod rig;
mod secrets;
mod session_bus;
mod session_hooks;
mod sessions;
mod sleeper;
mod spending;
mod stages;
mod stopped;
mod surroundings;
mod talk;
mod temporary;
mod terminal;
mod tools;
mod traced;

#[path = "../support/scripted_http.rs"]
mod scripted_http;
