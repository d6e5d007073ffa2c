//! What bash itself takes.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Whether `bash -n` finds nothing wrong.
#[expect(clippy::disallowed_methods, reason = "the test asks bash itself what it accepts")]
pub(crate) fn accepts(script: &str) -> bool {
    let mut child = Command::new("bash")
        .args(["--norc", "--noprofile", "-n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Bash does not read on behind an error.
    drop(child.stdin.take().unwrap().write_all(script.as_bytes()));
    child.wait().unwrap().success()
}
