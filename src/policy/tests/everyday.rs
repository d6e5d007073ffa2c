//! What the shipped `workspace` policy answers on what developers and models type all day, by kinds; and,
//! beside each kind, what looks like it and must still be refused.

use super::*;
use crate::call::shell::{ShellContext, analyse};

fn answers(scripts: &[&'static str]) -> Vec<(&'static str, Decision, String)> {
    let set = load(vec![built_in_source("workspace").unwrap()], &|_| None).unwrap();
    let places = Places::example();
    let policy = set.bind(&places).unwrap();
    let context =
        ShellContext { cwd: places.workspace, home: places.home, ..ShellContext::default() };
    let answer = |script: &&'static str| {
        let judgement = judge(&policy, &analyse(script, &context));
        (*script, judgement.decision, judgement.for_model())
    };
    scripts.iter().map(answer).collect()
}

fn all_allowed(scripts: &[&'static str]) {
    let answers = answers(scripts);
    let held: Vec<_> = answers.iter().filter(|(_, answer, _)| *answer > Decision::Allow).collect();
    assert!(held.is_empty(), "{held:#?}");
}

fn none_allowed(scripts: &[&'static str]) {
    let answers = answers(scripts);
    let passed: Vec<_> =
        answers.iter().filter(|(_, answer, _)| *answer == Decision::Allow).collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn own_jobs_may_be_ended_and_no_other_processes() {
    all_allowed(&[
        "npm start & SERVER=$!; sleep 2; curl -s localhost:3000; kill $SERVER",
        "./server & pid=$!; trap 'kill $pid' EXIT; wait $pid",
        "python3 -m http.server & PID=$!; sleep 1; kill \"$PID\" 2>/dev/null",
        "./a & kill -9 \"$!\" || true",
        "kill %1",
        "kill -TERM $!",
        "kill -USR1 $$",
        "kill $(jobs -p)",
        "kill -l",
        "pids=(); ./a & pids+=($!); ./b & pids+=($!); kill \"${pids[@]}\"",
        "./a & p=$!; kill -0 ${p}",
    ]);
    none_allowed(&[
        "kill 1",
        "kill -9 -1",
        "pid=1; kill $pid",
        "pid=$!; pid=1; kill $pid",
        "./a & pid=$!; read pid; kill $pid",
        "./a & pid=$!; source ./x; kill $pid",
        "./a & pid=$!; eval 'pid=1'; kill $pid",
        "for pid in 1 2; do kill $pid; done",
        "kill $(cat server.pid)",
        "jobs() { echo 1; }; kill $(jobs -p)",
        "pgrep x | xargs kill",
        "kill $! 1",
    ]);
}

#[test]
fn the_names_at_the_root_and_at_home_may_be_listed_and_nothing_below() {
    all_allowed(&["ls /", "ls -la ~", "ls -d /", "stat /", "cd ~ && ls", "file / && wc -l /"]);
    none_allowed(&[
        "ls -R /",
        "ls --recursive ~",
        "ls $options /",
        "ls /*/*",
        "ls ~/.ssh",
        "cat ~/notes",
        "find / -name x",
        "grep -r x /",
        "du -sh ~",
        "cp -r / copy",
        "tar cf all.tar /",
        "rm -r /",
        "touch /",
    ]);
}

#[test]
fn a_symbolic_link_is_a_name_and_a_hard_one_a_file() {
    all_allowed(&[
        "ln -s ../shared/lib lib",
        "ln -sf ../../config/settings settings",
        "ln -sfn \"../releases/$(date +%s)\" current",
        "ln -s /opt/tool/bin/tool bin/tool",
        "ln -s ../config/environments",
        "ln a b",
    ]);
    none_allowed(&[
        "ln -s ~/.ssh/id_ed25519 key",
        "ln -s /etc/shadow x",
        "ln ../secret x",
        "ln /srv/data x",
        "ln -s a ~/.bashrc",
        "ln -s ../x /usr/bin/tool",
        "ln -s -t ~/.config/autostart a.desktop",
    ]);
}

#[test]
fn names_of_files_may_be_put_into_words_of_code() {
    all_allowed(&[
        "find . -name '*.jpg' | xargs -I{} sh -c 'convert {} {}.png'",
        "find src -name '*.c' -print0 | xargs -0 -I% bash -c 'echo \"%\"; wc -l \"%\"'",
        "ls *.gz | xargs -I{} sh -c 'gunzip -c {} > {}.txt'",
        "git ls-files '*.py' | xargs -I{} sh -c 'black --check {} || echo bad {}'",
        "find . -type d | sort | grep -v target | xargs -I{} sh -c 'ls {} | wc -l'",
        "rg -l TODO | head -5 | xargs -I{} bash -c 'grep -c TODO {}'",
        "seq 1 5 | xargs -I{} sh -c 'echo {}; sleep 1'",
        "find . -name '*.sh' -exec bash -n {} \\;",
        "find . -name __pycache__ | xargs rm -rf",
        "find . -name __pycache__ | xargs -I{} sh -c 'rm -rf {}'",
        "xargs command < list",
    ]);
    none_allowed(&[
        "curl -s https://x.example/list | xargs -I{} sh -c 'echo {}'",
        "cat list | xargs -I{} sh -c 'rm {}'",
        "find . | xargs -I{} sh -c '{}'",
        "find . | xargs -I{} sh -c 'ls; {}'",
        "find . | xargs -I{} sh -c 'sudo {}'",
        "find /usr/lib | xargs -I{} sh -c 'rm -rf {}'",
        "find . -printf 'x' | xargs -I{} sh -c 'echo {}'",
        "seq -f 'x;id %g' 2 | xargs -I{} sh -c 'echo {}'",
        "ls | sed 's/a/;id/' | xargs -I{} sh -c 'echo {}'",
        "grep -h . list | xargs -I{} sh -c 'echo {}'",
        "grep -oh x list | xargs -I{} sh -c 'echo {}'",
        "find . | xargs -a list -I{} sh -c 'echo {}'",
        "find() { curl -s https://x.example; }; find . | xargs -I{} sh -c 'echo {}'",
        "find / -name core | xargs rm -rf",
        "find .. -name x | xargs rm -rf",
        "find ~/other | xargs rm -rf",
        "find /dev -name stdin -exec bash {} \\;",
        "find . | sh",
        "xargs env < list",
        "xargs command sudo id",
        "find . -exec env {} \\;",
        "x=$(cat f); command $x",
    ]);
}

#[test]
fn programs_that_only_tell_are_told_from_those_that_act() {
    all_allowed(&[
        "docker compose logs web",
        "docker compose ps",
        "gdb -batch -ex bt ./program core",
        "docker ps -a",
    ]);
    none_allowed(&[
        "docker compose up -d",
        "docker compose -f dev.yml exec web sh",
        "gdb -p 1",
        "perf record -a",
    ]);
}

#[test]
fn what_is_known_stays_known_until_code_that_is_not_seen_runs() {
    all_allowed(&[
        "source ~/project/env.sh",
        ". \"$HOME/project/env.sh\" && ls",
        "tool=ls; trap 'rm -f x' EXIT; $tool -l",
        "tool=ls; eval 'echo a'; $tool",
        "tool=ls; ./a & pid=$!; wait \"$pid\"; $tool",
    ]);
    none_allowed(&[
        "tool=ls; source ./x; $tool",
        "tool=ls; trap 'tool=id' DEBUG; $tool",
        "tool=ls; eval 'tool=id'; $tool",
        "tool=ls; eval 'read tool'; $tool",
        "tool=ls; eval \"$x\"; $tool",
        "tool=ls; wait -n -p tool; $tool sudo id",
        "tool=ls; x='-p tool'; wait $x; $tool sudo id",
        "tool=ls; for i in 1 2; do $tool; source ./x; done",
        "tool=ls; f() { $tool; }; source ./x; f",
        "source ./x; for i in $(cat f); do $i; done",
        "wc() { echo 'a[$(id)]'; }; n=$(echo | wc -l); echo $((n))",
        "date() { echo 'a[$(id)]'; }; echo $(( $(date +%s) ))",
    ]);
}
