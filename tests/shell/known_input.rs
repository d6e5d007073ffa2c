//! What a script prints itself is known where it reads it again: as the value of a substitution, as a
//! script, as arguments. Where anything could make it differ, it is not.

use super::{analysed, line, reasons};
use stoplog::call::effects::UnresolvedReason::{
    self, CodeWord, ForeignCode, InsertedWord, ProgramWord, Refused,
};

fn lines(script: &str) -> Vec<String> {
    analysed(script).commands.iter().map(line).collect()
}

#[test]
fn what_is_printed_is_judged_where_it_is_read() {
    for (script, expected) in [
        ("$(echo rm) -rf x", vec!["rm -rf x", "echo rm"]),
        ("`echo rm -rf` x", vec!["rm -rf x", "echo rm -rf"]),
        ("ls \"$(echo 'a b')\"", vec!["ls a b", "echo a b"]),
        ("echo 'rm x' | bash", vec!["echo rm x", "bash", "bash : rm x"]),
        ("printf '%s\\n' 'rm x' | sh", vec!["printf %s\\n rm x", "sh", "sh : rm x"]),
        ("cat <<E 2>&1 | sh\nrm x\nE", vec!["cat", "sh", "sh : rm x"]),
        ("cat <<E | sh\nrm x\nE", vec!["cat", "sh", "sh : rm x"]),
        ("echo / | xargs rm -rf", vec!["echo /", "xargs rm -rf", "xargs : rm -rf /"]),
        (
            "echo a b | xargs -I{} mv {} d",
            vec!["echo a b", "xargs -I{} mv {} d", "xargs : mv a b d"],
        ),
        (
            "echo a | xargs -I{} sh -c 'rm {}'",
            vec!["echo a", "xargs -I{} sh -c rm {}", "xargs : sh -c rm a", "xargs sh : rm a"],
        ),
        ("parallel rm -rf ::: /", vec!["parallel rm -rf ::: /", "parallel : rm -rf /"]),
        ("parallel rm ::: a b", vec!["parallel rm ::: a b", "parallel : rm a", "parallel : rm b"]),
        (
            "parallel echo {2} {1} ::: a ::: 'b c'",
            vec!["parallel echo {2} {1} ::: a ::: b c", "parallel : echo b c a"],
        ),
        (
            "parallel -q rm 'a b' {} ::: 'c d'",
            vec!["parallel -q rm a b {} ::: c d", "parallel : rm a b c d"],
        ),
        ("echo 'a;b' | parallel rm", vec!["echo a;b", "parallel rm", "parallel : rm a;b"]),
        (
            "parallel bash -c ::: 'rm x'",
            vec!["parallel bash -c ::: rm x", "parallel : bash -c rm x", "parallel bash : rm x"],
        ),
        // The words are joined without their quotes: `rm` gets no argument.
        (
            "parallel bash -c 'rm -rf {}' ::: /",
            vec![
                "parallel bash -c rm -rf {} ::: /",
                "parallel : bash -c rm -rf /",
                "parallel bash : rm",
            ],
        ),
    ] {
        assert_eq!(lines(script), expected, "{script}");
        assert_eq!(reasons(&analysed(script)), Vec::<UnresolvedReason>::new(), "{script}");
    }
}

#[test]
fn what_could_be_printed_otherwise_is_not_known() {
    for (script, reason) in [
        ("$(echo -e rm) x", ProgramWord),
        ("$(echo 'r\\155') x", ProgramWord),
        ("$(printf 'r%c' m) x", ProgramWord),
        ("$(echo rm >&2) x", ProgramWord),
        ("cat <<E >f | sh\nrm x\nE", ForeignCode),
        ("$(echo rm; echo ls) x", ProgramWord),
        ("$(echo rm &) x", ProgramWord),
        ("$(echo $x) x", ProgramWord),
        ("echo() { ls; }; $(echo rm) x", ProgramWord),
        ("IFS=$y; $(echo rm) x", ProgramWord),
        ("IFS='m '; $(echo rm) x", ProgramWord),
        ("eval \"$y\"; $(echo rm) x", ProgramWord),
        ("echo 'rm x' | tee f | bash", ForeignCode),
        ("cat f | bash", ForeignCode),
        ("cat <<E | tr a b | bash\nrm x\nE", ForeignCode),
        ("cat() { ls; }; cat <<E | bash\nrm x\nE", ForeignCode),
        ("cat f - <<E | bash\nrm x\nE", ForeignCode),
        ("echo 'a\"b' | xargs env", ProgramWord),
        ("echo a b | xargs -n 1 env", ProgramWord),
        ("echo a b | xargs -L 1 env", ProgramWord),
        ("cat f | xargs -I{} sh -c 'rm {}'", CodeWord),
        ("cat f | parallel bash -c", CodeWord),
        ("find . -exec sh -c 'rm {}' \\;", InsertedWord),
        ("find . -exec sh -c '{} x' \\;", CodeWord),
        ("find . -exec sh -c 'ls; {} x' \\;", ProgramWord),
    ] {
        let found = reasons(&analysed(script));
        assert!(found.contains(&reason), "{script}: {found:?}");
    }
}

#[test]
fn of_a_line_that_bash_refuses_what_was_meant_is_judged() {
    for (script, expected) in [
        ("rm -rf /x 'y", vec!["rm -rf /x"]),
        ("touch a; find . -user <name>", vec!["touch a", "find . -user"]),
        ("find . ( -name a )", vec!["find ."]),
        ("echo 'a", vec!["echo"]),
    ] {
        assert_eq!(lines(script), expected, "{script}");
        assert_eq!(reasons(&analysed(script)), [Refused], "{script}");
    }
}

#[test]
fn code_around_the_names_of_files_is_judged() {
    assert_eq!(
        lines("find . -exec sh -c 'rm -f {}.o' \\;"),
        ["find . -exec sh -c rm -f {}.o ;", "find : sh -c rm -f {}.o", "find sh : rm -f ${name}.o"]
    );
}
