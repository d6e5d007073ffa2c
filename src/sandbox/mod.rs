//! The cell: how a child process is confined. Mechanism only; it knows no policy.

pub mod seccomp;
