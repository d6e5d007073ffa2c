//! What must keep working inside: real programs in the cell of the shipped `workspace` policy, each
//! judged by its own success.
//!
//! A row is a script and what it must print. Outside the cell the same script prints the same: that is
//! the control. Then `stoplog exec` runs it, so the command rules are judged with the cell. A row
//! whose program is not installed says so and proves nothing; where programs must be there, as in
//! `.ci/run`, `STOPLOG_MATRIX_REQUIRE` names them and the row fails.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
#![expect(clippy::print_stdout, reason = "a row says that it did not run")]
#![expect(clippy::disallowed_methods, reason = "controls act outside of any cell")]

/// Makes a test of each row: its name, the programs it needs, the script, what it must print.
macro_rules! rows {
    ($($(#[doc = $why:literal])* $name:ident [$($need:literal),*] $script:literal => $prints:literal;)+) => {
        $($(#[doc = $why])* #[test]
        fn $name() {
            $crate::rig::Row {
                name: stringify!($name),
                needs: &[$($need),*],
                script: $script,
                prints: $prints,
            }
            .holds();
        })+
    };
}

mod build;
mod files;
mod git;
mod network;
mod python;
mod refused;
mod rig;
mod shell;
mod web;
