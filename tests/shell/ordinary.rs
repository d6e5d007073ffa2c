//! What people and models type every day must be resolved: a question here is a defect.

use super::{analysed, line, programs, reasons};

const ORDINARY: &[&str] = &[
    "ls | wc",
    "git log --format='%h; %s'",
    "echo \"rm -rf /\"",
    "grep -r 'sudo' .",
    "find . -name '*.rs'",
    "FOO=1 cargo test 2>&1 | tail -5",
    "for f in *.rs; do wc -l \"$f\"; done",
    "[ -f x ] && cat x",
    "command -v git",
    "cd src && ls 2>/dev/null",
    "cat > f <<'EOF'\n$(touch x)\nEOF",
    "ls # rm -rf /",
    "echo a\\;rm",
    "printf '%s\\n' '$(rm x) `rm y`'",
    "i=0; while [ $i -lt 10 ]; do echo $i; i=$((i+1)); done",
    "for i in $(seq 1 3); do echo $((i*2)); done",
    "for ((i=0;i<3;i++)); do echo $i; done",
    "n=$(wc -l < f); echo $((n+1))",
    "source .venv/bin/activate && pytest -q",
    ". ./env.sh",
    "bash -lc 'ls -la | head'",
    "set -euo pipefail; make",
    "git commit -m \"$(cat <<'EOF'\nfix: it's (done)\nEOF\n)\"",
    "git -C sub status",
    "git -c user.name=x commit -m y",
    "git --no-pager log -3",
    "git config user.name x",
    "git config --get core.pager",
    "while IFS= read -r line; do echo \"$line\"; done < input.txt",
    "find . -type f | while read -r f; do head -1 \"$f\"; done",
    "find . -name '*.o' -exec rm {} +",
    "case \"$1\" in a|b) ls;; *) rm x;; esac",
    "if ! grep -q x f; then echo y; fi",
    "[[ $n -eq 1 ]] && ls",
    "[[ \"$x\" =~ ^([0-9]+)$ ]] && echo \"${BASH_REMATCH[1]}\"",
    "f() { touch \"$1\"; }; f a; f b",
    "declare -A m=([a]=1); for k in \"${!m[@]}\"; do echo \"${m[$k]}\"; done",
    "arr=(a b c); echo \"${arr[@]}\" ${#arr[@]} ${arr[1]}",
    "trap 'rm -f \"$tmp\"' EXIT",
    "trap - INT",
    "nohup ./server > log 2>&1 &",
    "make -j$(nproc)",
    "timeout 30 npm test || true",
    "time -p ls",
    "awk -F, 'NR>1 {s+=$3} END {print s/NR}' d.csv",
    "awk '/a|b/ {print}' f",
    "sed -i 's/a/b/g' f",
    "sed -n '1,5p' f",
    "sed -e 's|a|b|' -e '/x/d' f",
    "tar czf o.tgz src",
    "tar xzf a.tgz -C d --strip-components=1",
    "xargs -0 rm -f",
    "git ls-files | xargs grep -n TODO",
    "ls *.txt | xargs -I{} cp {} d/",
    "diff <(sort a) <(sort b)",
    "python x.py --flag",
    "python3 -m pytest -q",
    "node dist/index.js",
    "bash script.sh arg",
    "./run.sh",
    "make",
    "npm run build",
    "cargo build --release",
    "echo ${x:-default} ${x%.txt} ${x##*/} ${x//a/b} ${#x}",
    "curl -fsSL https://example.com/x -o f",
    "wget -q https://example.com/x",
    "ssh host uptime",
    "docker run --rm -v \"$PWD\":/w -w /w rust:1 cargo test",
    "sudo apt-get install -y x",
    "env -i PATH=/bin ls",
    "export FOO=bar; make",
    "echo $((2 + 3 * (4 - 1)))",
    "echo {1..3} {a,b}c",
    "ls -la \\\n  | head",
    "a=1 b=2",
    "x=${y:-z}",
    "echo $HOME ~ $PWD $USER $?",
    "(cd sub && make) && ls",
    "{ ls; pwd; } > out",
    "cat <<EOF | sort\nb $x\na\nEOF",
    "printf -v s '%03d' 7",
    "read -r a b <<< 'x y'",
    "mapfile -t lines < f",
    "shopt -s globstar nullglob; ls **/*.rs",
    "kill %1",
    "wait",
    "sleep 1 & wait $!",
    "test -z \"$a\" -o -n \"$b\"",
    "let i=1+2",
    "((count++))",
    "local x=1",
    "readonly A=1",
    "declare -i n=3",
    "unset x",
    "type ls",
    "ulimit -n 100",
    "umask 022",
    "pushd d; ls; popd",
    "rm -rf \"$dir/x\"",
    "cp \"$a\" \"$b\"",
    "chmod +x s.sh && ./s.sh",
    "touch a b c",
    "mkdir -p a/{b,c}",
    "ln -s a b",
    "sort -k2,2 -t: f",
    "head -n 5 f",
    "tail -f log",
    "jq '.a|.b' f.json",
    "rg -n 'fn main' src",
    "ps aux | grep '[n]ode'",
    "date +%F",
    "uname -a; id; whoami",
    "yes | head -1",
    "X=touch; $X y",
    "c='ls -la'; $c",
    "python3 --version",
    "node -v",
    "perl -v",
    "parallel gzip ::: a b",
    "alias ll='ls -l'",
    "echo 'a' >> f 2>&1",
    "exec 3> f; echo x >&3; exec 3>&-",
    "ls 2>&1 >/dev/null | cat",
    "! true",
    ": > f",
];

#[test]
fn everyday_commands_are_resolved() {
    let held_up: Vec<String> = ORDINARY
        .iter()
        .filter(|script| !analysed(script).unresolved.is_empty())
        .map(|script| format!("{script}: {:?}", analysed(script).unresolved))
        .collect();
    assert!(held_up.is_empty(), "{held_up:#?}");
}

#[test]
fn everyday_commands_carry_no_code_mark() {
    let marked: Vec<&str> = ORDINARY
        .iter()
        .copied()
        .filter(|script| {
            analysed(script).commands.iter().any(|command| command.inline_code.is_some())
        })
        .collect();
    assert!(marked.is_empty(), "{marked:#?}");
}

#[test]
fn text_that_looks_like_a_command_is_none() {
    for (script, expected) in [
        ("echo \"rm -rf /\"", vec!["echo"]),
        ("grep -r 'sudo' .", vec!["grep"]),
        ("ls # ; rm x", vec!["ls"]),
        ("cat <<'E'\nrm x; $(rm y)\nE", vec!["cat"]),
        ("echo 'a;rm' \"b && rm\" c\\;rm", vec!["echo"]),
        ("echo if then fi; ls", vec!["echo", "ls"]),
        ("a=rm; ls", vec!["ls"]),
        ("echo $'it\\'s; rm x'", vec!["echo"]),
    ] {
        let effects = analysed(script);
        assert_eq!(programs(&effects), expected, "{script}");
        assert!(reasons(&effects).is_empty(), "{script}");
    }
}

#[test]
fn what_bash_refuses_between_backquotes_runs_nothing_and_gives_no_text() {
    for (script, expected) in [
        ("cd `which <file> | xargs dirname`", vec!["cd"]),
        ("echo a`touch x; ls <a> | b`c; ls", vec!["echo", "ls"]),
    ] {
        let effects = analysed(script);
        assert_eq!(effects.unresolved, [], "{script}");
        assert_eq!(programs(&effects), expected, "{script}");
    }
    // What bash may take, what is not plain, and what an inner shell reads, which may be another one.
    for script in [
        "cd `f ( a`",
        "echo `ls $(a) <b> | c`",
        "sh -c 'echo `ls <a> | b`'",
        "echo `ls <a> | b",
        "`find . ( -name x )`rm -rf y",
    ] {
        assert!(!analysed(script).unresolved.is_empty(), "{script}");
    }
}

#[test]
fn quotes_and_expansions_are_undone_as_bash_does_it() {
    for (script, expected) in [
        ("echo a\"b c\"'d e'f\\ g", "echo ab cd ef g"),
        ("echo $'a\\tb\\x41\\101'", "echo a\tbAA"),
        ("echo \"a\\\"b\\$c\\d\"", "echo a\"b$c\\d"),
        ("echo 'a\\nb'", "echo a\\nb"),
        ("echo a{b,c{d,e}}f x{1..3}", "echo abf acdf acef x1 x2 x3"),
        ("echo {01..03} {c..a} {a,b", "echo 01 02 03 c b a {a,b"),
        ("echo {5..1..2} {a} '{a,b}'", "echo 5 3 1 {a} {a,b}"),
        ("echo ~/x '~/x' a~", "echo /h/x ~/x a~"),
        ("echo \"$HOME/x\" ${HOME}", "echo /h/x /h"),
        ("x=1; y=a$x; echo $y \"$x\"", "echo a1 1"),
        ("x='a b'; echo $x", "echo a b"),
        ("echo \"a\\\nb\"", "echo ab"),
    ] {
        let effects = analysed(script);
        assert_eq!(line(&effects.commands[0]), expected, "{script}");
    }
    let split = analysed("x='a b'; echo $x");
    assert_eq!(split.commands[0].arguments.len(), 2, "an unquoted value is split");
}
