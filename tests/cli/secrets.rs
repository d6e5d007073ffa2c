//! What the supervisor holds (its environment with the key, its memory, its descriptors) is out of
//! reach of tools by any spelling, in a view and where namespaces are refused.

use super::layers::{ACCEPTS, refused};
use super::rig::{Done, Live, Rig, answer, bash};
use serde_json::Value;
use std::process::Command;

const CANARY: &str = "canary-key-7193";
/// The same as a pattern that is not found in itself.
const PATTERN: &str = "'canary-key[-]7193'";

/// Every way to read other processes that a shell knows. It prints lines with the canary, and a last
/// line. It lies in a file: rules see no more of it than the name.
const SEARCH: &str = "\
(
  env
  cat /proc/[0-9]*/environ /proc/self/environ /proc/thread-self/environ
  for e in /proc/[0-9]*/task/*/environ; do cat $e; done
  ps axeww
  p=$$
  while [ ${p:-0} -gt 0 ]; do
    cat /proc/$p/environ /proc/$p/cmdline /proc/$p/root/proc/$p/environ
    sed -n 's/^\\([0-9a-f]*\\)-\\([0-9a-f]*\\) rw.*\\(stack\\|heap\\).*/\\1 \\2/p' /proc/$p/maps |
      while read from to; do
        dd if=/proc/$p/mem bs=4096 iflag=skip_bytes,count_bytes \
          skip=$((0x$from)) count=$((0x$to - 0x$from))
      done
    for f in /proc/$p/fd/*; do [ -f $f ] && head -c 100000 $f; done
    p=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$p/status)
  done
) 2>/dev/null </dev/null | tr '\\0' '\\n' | grep -a PATTERN | head -n 9
echo searched
";

/// Writes the search into the workspace and gives the call that runs it.
fn search(rig: &Rig) -> [Value; 2] {
    rig.file("search.sh", SEARCH.replace("PATTERN", PATTERN));
    [bash("timeout 60 sh search.sh"), answer("done")]
}

fn with_key(mut command: Command) -> Done {
    command.env("OPENAI_API_KEY", CANARY).env("STOPLOG_PROBE", CANARY);
    Live::start(command).end()
}

#[test]
fn the_supervisors_environment_and_memory_are_out_of_reach_in_a_view() {
    let rig = Rig::new();
    let script = rig.script(&search(&rig));
    let done = with_key(rig.run_command(&script, &[])).exits(0);
    let result = done.results()[0].clone();
    assert!(result.contains("searched") && !result.contains(CANARY), "{result}");
}

#[test]
fn the_supervisors_environment_and_memory_are_out_of_reach_without_namespaces() {
    let rig = Rig::new();
    let policy = rig.policy(ACCEPTS);
    let script = rig.script(&search(&rig));
    let arguments = rig.arguments(&script, &["--policy", &policy]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = with_key(refused(&rig, &arguments)).exits(0);
    let result = done.results()[0].clone();
    assert!(result.contains("searched") && !result.contains(CANARY), "{result}");
}

#[test]
fn the_search_finds_the_key_of_a_process_that_does_not_protect_itself() {
    let rig = Rig::new();
    search(&rig);
    let script =
        format!("sleep 60 & timeout 60 sh {}; kill $!", rig.work().join("search.sh").display());
    let done = with_key(rig.program("sh", &["-c", &script]));
    assert!(done.stdout.contains("searched"), "{}", done.stdout);
    assert!(done.stdout.matches(CANARY).count() >= 3, "{}", done.stdout);
}

#[test]
fn the_key_is_in_no_file_of_a_run() {
    let rig = Rig::new();
    let script = rig.script(&[bash("env; echo done"), answer("done")]);
    with_key(rig.run_command(&script, &[])).exits(0);
    let root = rig.root().to_str().unwrap().to_owned();
    let found = Live::start(rig.program("grep", &["-rlaF", CANARY, &root])).end();
    assert_eq!(found.stdout, "", "the journal, log or a temporary file holds the key");
    rig.file("planted", CANARY);
    let found = Live::start(rig.program("grep", &["-rlaF", CANARY, &root])).end();
    assert!(found.stdout.contains("planted"), "the control");
}
