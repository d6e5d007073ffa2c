//! Paths, hosts, assignments and places.

use super::{analysed, reasons};
use stoplog::call::effects::{Access, UnresolvedReason, Word};

/// The paths as `r:/x`, with a star for patterns, sorted.
fn paths(script: &str) -> Vec<String> {
    let mut paths: Vec<String> = analysed(script)
        .paths
        .iter()
        .map(|path| {
            let access = match path.access {
                Access::Read => "r",
                Access::Write => "w",
                Access::Execute => "x",
            };
            let star = if path.is_pattern { "*" } else { "" };
            format!("{access}{star}:{}", path.path.display())
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

#[test]
fn paths_of_redirections_and_arguments_are_resolved() {
    for (script, expected) in [
        ("echo x > f", vec!["w:/w/f"]),
        ("echo x >> ../f 2>&1", vec!["w:/f"]),
        ("cat < /etc/passwd", vec!["r:/etc/passwd"]),
        ("exec 3<>f", vec!["r:/w/f", "w:/w/f"]),
        ("ls &> f", vec!["r:/w", "w:/w/f"]),
        ("ls >& f", vec!["r:/w", "w:/w/f"]),
        ("cat a/../b ./c /d//e", vec!["r:/d/e", "r:/w/b", "r:/w/c"]),
        ("cat ~/.ssh/id \"$HOME/x\" ${HOME}/y", vec!["r:/h/.ssh/id", "r:/h/x", "r:/h/y"]),
        ("cd /out && cat s", vec!["r:/out/s"]),
        ("cd /out; cat s", vec!["r:/out/s", "r:/w/s"]),
        ("cd /out || exit; cat s", vec!["r:/out/s"]),
        ("set -e; cd /out; cat s", vec!["r:/out/s"]),
        ("(cd /out && ls) && cat s", vec!["r:/out", "r:/w/s"]),
        ("cd /out | cat; cat s", vec!["r:/w/s"]),
        ("cd /out && cd - && cat s", vec!["r:/w/s"]),
        ("pushd /out && cat s && popd && cat t", vec!["r:/out/s", "r:/w/t"]),
        ("cd && cat s", vec!["r:/h/s"]),
        ("CDPATH=/a cd b && cat s", vec!["r:/a/b/s", "r:/w/b/s"]),
        ("cat /w/../ou*/s*", vec!["r*:/"]),
        ("cat sub/*.txt", vec!["r*:/w/sub"]),
        ("rm *", vec!["w*:/w"]),
        ("cat {/a,/b}/c", vec!["r:/a/c", "r:/b/c"]),
        ("grep --file=/out/p f", vec!["r:/out/p", "r:/w/f"]),
        ("grep -f/out/p f", vec!["r:/out/p", "r:/w/f"]),
        ("grep -e x a b", vec!["r:/w/a", "r:/w/b"]),
        ("grep x a", vec!["r:/w/a"]),
        ("head -n 5 a", vec!["r:/w/a"]),
        ("cp a b /c", vec!["r:/w/a", "r:/w/b", "w:/c"]),
        ("cp -t /c a", vec!["r:/w/a", "w:/c"]),
        ("mv a /b", vec!["w:/b", "w:/w/a"]),
        ("chmod 755 a", vec!["w:/w/a"]),
        ("tee -a a /b", vec!["w:/b", "w:/w/a"]),
        ("dd if=/dev/zero of=a", vec!["r:/dev/zero", "w:/w/a"]),
        ("sed -i s/a/b/ f", vec!["w:/w/f"]),
        ("sed s/a/b/w/out f", vec!["r:/w/f", "w:/out"]),
        ("sed -n 'w /out' f", vec!["r:/w/f", "w:/out"]),
        ("find /a -name x -delete", vec!["r*:/a", "w*:/a"]),
        ("find a -exec rm {} +", vec!["r*:/w/a", "w*:/w/a"]),
        ("tar cf o.tar a", vec!["r:/w/a", "w:/w/o.tar"]),
        ("tar -xf /a.tar -C /b", vec!["r:/a.tar", "w:/b"]),
        ("curl -o /a h", vec!["w:/a"]),
        ("curl -d @/a -F x=@/b h", vec!["r:/a", "r:/b"]),
        ("./run a", vec!["x:/w/run"]),
        ("bash s.sh", vec!["x:/w/s.sh"]),
        ("python3 x.py", vec!["x:/w/x.py"]),
        (". ./env.sh", vec!["x:/w/env.sh"]),
        ("sudo rm -rf /", vec!["w:/"]),
        ("ssh h rm /x", vec![]),
        ("ln /a b", vec!["r:/a", "w:/w/b"]),
        ("sort -o /a b", vec!["r:/w/b", "w:/a"]),
        ("git -C /a status", vec!["r:/a"]),
        ("x=/a; cat $x/b", vec!["r:/a/b"]),
        ("echo x > ~/f", vec!["w:/h/f"]),
    ] {
        assert_eq!(paths(script), expected, "{script}");
    }
}

#[test]
fn a_target_that_is_not_known_is_said_to_be_so() {
    for script in ["echo x > \"$f\"", "cat < $(ls)", "echo > *.txt", "echo >> f$i"] {
        assert_eq!(reasons(&analysed(script)), [UnresolvedReason::RedirectionTarget], "{script}");
    }
    for script in ["echo 2>&1", "echo >&2", "echo >&-", "cat <&3", "cat < <(ls)", "ls > >(cat)"] {
        assert!(reasons(&analysed(script)).is_empty(), "{script}");
    }
}

#[test]
fn hosts_are_named() {
    for (script, expected) in [
        ("curl https://Example.com/x", vec![("example.com", Some(443))]),
        ("curl http://u:p@h.example:8080/x", vec![("h.example", Some(8080))]),
        ("curl -s example.com/x", vec![("example.com", Some(80))]),
        ("wget ftp://[::1]:21/x", vec![("::1", Some(21))]),
        ("git clone git@h.example:a/b.git", vec![("h.example", None)]),
        ("git clone https://h.example/a", vec![("h.example", Some(443))]),
        ("ssh -p 22 u@h.example ls", vec![("h.example", Some(22))]),
        ("scp a u@h.example:/b", vec![("h.example", None)]),
        ("nc h.example 80", vec![("h.example", Some(80))]),
        ("ping -c 1 h.example", vec![("h.example", None)]),
        ("exec 3<>/dev/tcp/h.example/80", vec![("h.example", Some(80))]),
        ("echo https://h.example", vec![]),
        ("curl file:///etc/passwd", vec![]),
    ] {
        let effects = analysed(script);
        let hosts: Vec<_> =
            effects.hosts.iter().map(|host| (host.host.as_str(), host.port)).collect();
        assert_eq!(hosts, expected, "{script}");
    }
}

#[test]
fn assignments_are_kept_with_what_they_belong_to() {
    let effects = analysed("A=1 B=$x ls; C=2; export D=3 E; declare F=4; G=(a)");
    let front: Vec<&str> =
        effects.commands[0].assignments.iter().map(|assignment| assignment.name.as_str()).collect();
    assert_eq!(front, ["A", "B"]);
    let alone: Vec<(&str, &str)> = effects
        .assignments
        .iter()
        .map(|assignment| (assignment.name.as_str(), assignment.value.shown()))
        .collect();
    assert_eq!(alone, [("C", "2"), ("D", "3"), ("F", "4"), ("G", "(…)")]);
    let inner = analysed("env LD_PRELOAD=./x.so ls");
    assert_eq!(inner.commands[1].assignments[0].name, "LD_PRELOAD");
}

#[test]
fn unknown_words_keep_what_is_certain() {
    let effects = analysed("rm -rf /tmp/a$x src/*.o \"$y\"");
    let [_, first, second, third] = effects.commands[0].arguments.as_slice() else {
        panic!("four arguments");
    };
    assert_eq!(first, &Word::Unknown { text: "/tmp/a$x".into(), prefix: "/tmp/a".into() });
    assert_eq!(second, &Word::Unknown { text: "src/*.o".into(), prefix: "src/".into() });
    assert_eq!(third, &Word::Unknown { text: "\"$y\"".into(), prefix: String::new() });
}

#[test]
fn spans_point_at_what_they_name() {
    let script = "ls; echo $(rm  x) > out\ncat <<E\n$(id)\nE\n";
    let effects = analysed(script);
    let texts: Vec<&str> = effects
        .commands
        .iter()
        .map(|command| script.get(command.span.start..command.span.end).unwrap())
        .collect();
    assert_eq!(texts, ["ls", "echo $(rm  x) > out", "rm  x", "cat <<E", "id"]);
    let span = effects.paths[2].span;
    assert_eq!(script.get(span.start..span.end), Some("out"));
}

#[test]
fn what_ran_before_a_syntax_error_is_kept() {
    let effects = analysed("rm x\nls )\nrm y");
    assert_eq!(super::programs(&effects), ["rm"]);
    assert_eq!(reasons(&effects), [UnresolvedReason::Syntax]);
}

#[test]
fn functions_are_judged_by_their_bodies() {
    let effects = analysed("f() { rm \"$1\"; }; f a; f b");
    assert_eq!(super::programs(&effects), ["rm"]);
    assert_eq!(effects.function_calls.len(), 2);
    // Before its definition, or behind `unset`, the name is that of a program.
    for script in [
        "ls; ls() { rm x; }",
        "ls() { rm x; }; unset -f ls; ls",
        "if a; then ls() { rm x; }; fi; ls",
    ] {
        assert!(super::programs(&analysed(script)).contains(&"ls"), "{script}");
    }
    for name in ["cd", "eval", "command", "source", "["] {
        let script = format!("{name}() {{ ls; }}");
        assert_eq!(reasons(&analysed(&script)), [UnresolvedReason::ShellState], "{script}");
    }
}
