//! What a shell is offered: the script asks the program, and the program answers from what there is.

use super::rig::{Live, PROGRAM, Rig};

/// What is offered for the last of `words`.
fn offered(rig: &Rig, words: &[&str]) -> Vec<String> {
    let mut command = rig.program(PROGRAM, &[&["--", "stoplog"], words].concat());
    command.env("STOPLOG_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("XDG_STATE_HOME", rig.root()).current_dir(rig.work());
    let done = Live::start(command).end().exits(0);
    done.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn rules_sessions_policies_and_commands_are_offered() {
    let rig = Rig::new();
    assert!(offered(&rig, &["audit", "qu"]).contains(&"query".to_owned()));
    let rules = offered(&rig, &["audit", "query", "--rule", "home-"]);
    assert!(rules.contains(&"home-credentials".to_owned()), "{rules:?}");
    assert!(rules.iter().all(|rule| rule.starts_with("home-")), "{rules:?}");
    let layer = "version = 1\n[[command.rule]]\nid = \"house-rule\"\ndecision = \"deny\"\nreason = \"r\"\n\
                 program = \"x\"\nmatch = [\"x\"]\nnot_match = [\"y\"]\n";
    rig.file(".stoplog/policy.toml", layer);
    assert_eq!(offered(&rig, &["audit", "log", "--rule", "house"]), ["house-rule"]);
    let policies = offered(&rig, &["run", "--policy", "read"]);
    assert_eq!(policies, ["readonly"]);

    assert!(offered(&rig, &["audit", "verify", ""]).iter().all(|word| word.starts_with('-')));
    let words = ["exec", "--workspace", ".", "--", "true"];
    let mut exec = rig.program(PROGRAM, &words);
    exec.env("XDG_STATE_HOME", rig.root()).current_dir(rig.work());
    drop(Live::start(exec).end().exits(0));
    let sessions = offered(&rig, &["audit", "verify", ""]);
    let log = std::fs::read_dir(rig.root().join("stoplog/audit")).unwrap();
    let names: Vec<String> =
        log.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    let id = sessions.iter().find(|word| !word.starts_with('-')).unwrap();
    assert!(names.iter().any(|name| name.starts_with(id.as_str())), "{id} {names:?}");
}

#[test]
fn each_shell_gets_a_script_that_asks_the_program() {
    let rig = Rig::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = rig.stoplog(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("STOPLOG_COMPLETE") && script.contains("stoplog"), "{shell}");
    }
    // Bash itself asks, and gets the answer.
    let script = rig.beside("completion.bash", rig.stoplog(&["completions", "bash"]).stdout);
    let directory = std::path::Path::new(PROGRAM).parent().unwrap().display();
    let asks = format!(
        "PATH={directory}:$PATH; source {script}; COMP_WORDS=(stoplog audit ver); COMP_CWORD=2; \
         COMP_TYPE=9; $(complete -p stoplog | sed 's/.*-F \\([^ ]*\\).*/\\1/') stoplog ver audit; \
         echo \"${{COMPREPLY[@]}}\""
    );
    let done = Live::start(rig.program("bash", &["-c", &asks])).end().exits(0);
    assert!(done.stdout.contains("verify"), "{done:?}");
}
