//! The cell, driven through the library with the real binary as the child.
//!
//! Every act that must fail inside is first shown to succeed outside, on the same files.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail loudly"
)]
#![expect(clippy::disallowed_methods, reason = "controls act outside of any cell")]

mod bare;
mod between_calls;
mod bombs;
mod ending;
mod hard_links;
mod limits;
mod masks;
mod ready;
mod rig;
mod view;

use rig::{Rig, shown, stdout};
use stoplog::sandbox::{Exit, Grant, GrantAccess};

#[test]
fn a_program_runs_and_its_output_and_code_come_back() {
    let finished = Rig::new().run("echo out; echo err >&2; exit 7");
    assert_eq!(finished.exit, Exit::Code(7), "{}", shown(&finished));
    assert_eq!(finished.stdout.head, b"out\n");
    assert_eq!(finished.stderr.head, b"err\n");
    assert!(finished.enforced.mount_view && finished.enforced.landlock_abi > 0);
}

#[test]
fn what_is_not_granted_is_absent() {
    let rig = Rig::new();
    let secret = rig.outside().join("secret");
    let text = format!("cat {}", secret.display());
    assert_eq!(rig.control(&text), "secret\n");
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "");
    assert!(shown(&finished).contains("No such file"), "{}", shown(&finished));
}

#[test]
fn the_workspace_is_written_and_a_read_only_grant_is_not() {
    let mut rig = Rig::new();
    let read_only = rig.outside();
    rig.spec.grants.push(Grant::new(&read_only, GrantAccess::ReadOnly));
    let text = format!("echo x > made; echo y > {0}/made; cat {0}/secret", read_only.display());
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "secret\n", "{}", shown(&finished));
    assert!(rig.workspace().join("made").exists());
    assert!(!read_only.join("made").exists());
    rig.control(&text);
    assert!(read_only.join("made").exists(), "the control writes");
}
