//! The commands of examples/README.md run as written and end with the code that their comment gives
//! (`# exit 10`; without one, 0). Those of README.md run in `tests/cli/documents.rs`.

use super::markdown::{Block, blocks, page, root};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// The code that a line says it ends with.
fn expected(line: &str) -> i32 {
    line.split_once("# exit ").map_or(0, |(_, code)| code.trim().parse().unwrap())
}

/// A block as one script that stops at the first line whose code is another than it says.
fn script(block: &Block) -> String {
    let mut script = String::new();
    for line in block.lines.iter().filter(|line| !line.trim().is_empty()) {
        let code = expected(line);
        script.push_str(&format!("{line}\ncode=$?\n"));
        script.push_str(&format!(
            "[ $code -eq {code} ] || {{ echo \"code $code\" >&2; exit 99; }}\n"
        ));
    }
    script
}

/// A copy of what the commands name, with `stoplog` on the PATH and a home directory of its own.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for name in ["bin", "home", "clone"] {
        fs::create_dir(place.path().join(name)).unwrap();
    }
    let binary = place.path().join("bin/stoplog");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_stoplog"), binary).unwrap();
    copy(&root().join("examples"), &place.path().join("clone/examples"));
    fs::copy(root().join("README.md"), place.path().join("clone/README.md")).unwrap();
    place
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = {
            let entry = entry.unwrap();
            (entry.path(), entry.file_name())
        };
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

fn run(place: &Path, script: &str) -> Output {
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(
        std::iter::once(place.join("bin")).chain(std::env::split_paths(&path)),
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(place.join("clone"));
    bash.env("PATH", path.unwrap()).env("HOME", place.join("home"));
    for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "STOPLOG_MODEL"] {
        bash.env_remove(name);
    }
    bash.output().unwrap()
}

fn assert_runs(place: &Path, script: &str) {
    let output = run(place, script);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\nended with {}\n{out}\n{err}", output.status);
}

#[test]
fn the_commands_of_the_examples_run_as_written() {
    let place = place();
    // Exit code 20: this machine refuses namespaces, and the example's policy demands them.
    if run(place.path(), "stoplog exec -- true").status.code() == Some(20) {
        println!("not run: this machine refuses namespaces; the example needs them");
        return;
    }
    let all = blocks(&page("examples/README.md"));
    let runnable: Vec<&Block> = all.iter().filter(|block| block.language == "sh").collect();
    assert!(!runnable.is_empty(), "the page has commands");
    for block in runnable {
        assert_runs(place.path(), &script(block));
    }
}

#[test]
fn a_block_is_for_running_or_for_reading() {
    for name in ["README.md", "examples/README.md"] {
        for block in blocks(&page(name)) {
            let known = ["sh", "text"].contains(&block.language.as_str());
            assert!(
                known,
                "{name}: a block is `sh`, which is run, or `text`, not `{}`",
                block.language
            );
        }
    }
}

#[test]
fn a_command_that_ends_otherwise_is_seen() {
    let place = place();
    let block = |line: &str| Block { language: "sh".to_owned(), lines: vec![line.to_owned()] };
    assert!(run(place.path(), &script(&block("false # exit 1"))).status.success());
    assert!(!run(place.path(), &script(&block("false"))).status.success());
    assert!(!run(place.path(), &script(&block("true # exit 1"))).status.success());
    assert!(!run(place.path(), &script(&block("stoplog --no-such-flag"))).status.success());
}
