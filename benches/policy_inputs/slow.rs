//! Scripts as large as they are accepted, each of one form that a careless analysis or a careless
//! decision would take long for.

use stoplog::base::limits::SHELL_BYTES_MAX;
use stoplog::call::effects::UnresolvedReason;
use stoplog::call::shell::{ShellContext, analyse};

/// `piece` as often as fits between `head` and `tail`.
fn filled(bytes: usize, head: &str, piece: &str, tail: &str) -> String {
    let count = bytes.saturating_sub(head.len() + tail.len()) / piece.len();
    format!("{head}{}{tail}", piece.repeat(count))
}

/// Numbered pieces until the script is full.
fn numbered(bytes: usize, head: &str, piece: impl Fn(usize) -> String, tail: &str) -> String {
    let mut script = head.to_owned();
    for number in 0.. {
        let next = piece(number);
        if script.len() + next.len() + tail.len() > bytes {
            break;
        }
        script.push_str(&next);
    }
    script + tail
}

/// The forms, each with its name, each as large as it is accepted: of full size, or of as many
/// parts of 2 KiB as the other bounds let through.
#[must_use]
pub(crate) fn slow_scripts() -> Vec<(&'static str, String)> {
    let sizes = (1..=32).rev().map(|part| SHELL_BYTES_MAX / 32 * part);
    (0..of_size(0).len())
        .filter_map(|form| {
            // One at a time, so that the memory of the others does not make the measurement slower.
            let scripts = sizes.clone().filter_map(|bytes| of_size(bytes).into_iter().nth(form));
            let mut scripts = scripts.peekable();
            let whole = scripts.peek().cloned();
            scripts.find(|(_, script)| is_accepted(script)).or(whole)
        })
        .collect()
}

/// Whether an analysis looks at the parts of a script.
fn is_accepted(script: &str) -> bool {
    let effects = analyse(script, &ShellContext { cwd: "/w".into(), ..ShellContext::default() });
    !effects.unresolved.iter().any(|part| part.reason == UnresolvedReason::TooLarge)
}

/// The forms with at most so many bytes.
fn of_size(bytes: usize) -> Vec<(&'static str, String)> {
    let mut scripts = words_and_lists(bytes);
    scripts.extend(expansions(bytes));
    scripts.extend(nested(bytes));
    scripts.extend(programs(bytes));
    scripts
}

fn words_and_lists(bytes: usize) -> Vec<(&'static str, String)> {
    vec![
        ("short commands", filled(bytes, "", "true;", "")),
        ("different commands", numbered(bytes, "", |n| format!("p{n};"), "")),
        ("one command of many words", filled(bytes, "ls", " a", "")),
        ("many different files", numbered(bytes, "cat", |n| format!(" f{n}"), "")),
        ("a long pipeline", filled(bytes, "a", "|a", "")),
        ("and, or", filled(bytes, "a", "&&a||a", "")),
        ("assignments", numbered(bytes, "", |n| format!("v{n}=1;"), "")),
        ("assignments in front", numbered(bytes, "", |n| format!("V{n}=1 "), "ls")),
        ("redirections", numbered(bytes, "ls", |n| format!(" >f{n}"), "")),
        ("here-documents", filled(bytes, "", "cat <<A\nb\nA\n", "")),
        ("here-documents of one line", filled(bytes, "cat", " <<A", "")),
        ("quotes", filled(bytes, "echo ", "'a'\"b\"", "")),
        ("line continuations", filled(bytes, "ls", "\\\n", "")),
        ("a loop of many words", filled(bytes, "for x in a", " b", "; do ls; done")),
        ("case arms", numbered(bytes, "case a in ", |n| format!("b{n}) ls;; "), "esac")),
    ]
}

fn expansions(bytes: usize) -> Vec<(&'static str, String)> {
    vec![
        ("globs", filled(bytes, "ls", " *", "")),
        ("globs in directories", numbered(bytes, "ls", |n| format!(" d{n}/*"), "")),
        ("brackets", filled(bytes, "ls ", "[", "")),
        ("braces", filled(bytes, "echo ", "{a,b}", "")),
        ("open braces", filled(bytes, "echo ", "{a,", "")),
        ("sequences of braces", filled(bytes, "echo", " {1..250}", "")),
        ("variables", filled(bytes, "x=1;echo", " $x", "")),
        ("long values", filled(bytes, &format!("x={};echo", "a".repeat(4_000)), " $x", "")),
        ("unknown variables", filled(bytes, "echo", " $x", "")),
        ("defaults", filled(bytes, "echo", " ${x:-a}", "")),
        (
            "values of values",
            numbered(bytes, "", |n| format!("a{n}=$a{};", n.saturating_sub(1)), ""),
        ),
        ("substitutions", filled(bytes, "echo", " $(a)", "")),
        ("backquotes", filled(bytes, "echo", " `a`", "")),
        ("arithmetic", filled(bytes, "echo $((1", "+a", "))")),
        ("process substitutions", filled(bytes, "cat", " <(a)", "")),
        ("elements", filled(bytes, "x=(", "[a]=b ", ")")),
        ("tildes", filled(bytes, "ls", " ~/a", "")),
        ("climbing paths", filled(bytes, "cat", " a/../../b", "")),
        ("one climbing path", filled(bytes, "cat a", "/..", "/b")),
        ("long paths", filled(bytes, "cat", &format!(" {}", "a/".repeat(1_000)), "")),
    ]
}

fn nested(bytes: usize) -> Vec<(&'static str, String)> {
    let wide = |open: &str, close: &str| {
        let one = format!("{}a{};", open.repeat(20), close.repeat(20));
        filled(bytes, "", &one, "")
    };
    vec![
        ("deep substitutions", wide("echo $(", ")")),
        ("deep quoted substitutions", wide("echo \"$(", ")\"")),
        ("deep subshells", wide("( ", " )")),
        ("deep groups", wide("{ ", " ;}")),
        ("deep conditions", wide("if a;then ", " ;fi")),
        ("deep defaults", wide("echo ${a:-", "}")),
        ("open parentheses", filled(bytes, "", "((a) ", "")),
        ("open substitutions", filled(bytes, "echo ", "$(", "")),
        ("unclosed quote behind many", filled(bytes, "", "echo 'a' ", "'")),
        ("functions", numbered(bytes, "", |n| format!("f{n}(){{ :;}};"), "")),
        (
            "functions that call functions",
            numbered(bytes, "f0(){ :;};", |n| format!("f{}(){{ f{n};f{n};}};", n + 1), "f9"),
        ),
        (
            "aliases",
            numbered(bytes, "shopt -s expand_aliases\n", |n| format!("alias a{n}=b\n"), "a1"),
        ),
        ("changes of directory", filled(bytes, "", "cd a;", "ls b")),
        ("guarded changes of directory", filled(bytes, "", "cd a&&", "ls b")),
        ("directories and paths", filled(bytes, "", "cd a;cat b;", "")),
        ("doubling", filled(bytes, "x=a;", "x=$x$x;", "")),
    ]
}

fn programs(bytes: usize) -> Vec<(&'static str, String)> {
    vec![
        ("wrappers in wrappers", filled(bytes, "", &format!("{}a;", "env ".repeat(25)), "")),
        ("shells in shells", filled(bytes, "", "sh -c 'sh -c \"sh -c ls\"';", "")),
        ("shells", filled(bytes, "", "sh -c 'ls b';", "")),
        ("evaluations", filled(bytes, "", "eval 'x';", "")),
        ("inserted names", filled(bytes, "", "find . -exec sh -c 'ls {}' ';';", "")),
        ("xargs", filled(bytes, "", "ls|xargs rm;", "")),
        ("parallel", filled(bytes, "parallel echo :::", " a", "")),
        ("actions of find", filled(bytes, "find .", " -exec a {} +", "")),
        ("a long sed script", filled(bytes, "sed '", "s/a/b/;", "' f")),
        ("a long awk program", filled(bytes, "awk '", "{print $1}", "' f")),
        ("git settings", filled(bytes, "git", " -c a.b=c", " status")),
        ("git", filled(bytes, "", "git log a;", "")),
        ("hosts", numbered(bytes, "curl", |n| format!(" http://h{n}"), "")),
        ("options", filled(bytes, "curl", " --data-x", "")),
        ("relative programs", numbered(bytes, "", |n| format!("./p{n};"), "")),
        ("one relative program", filled(bytes, "", "./p;", "")),
        ("relative programs in a shell", numbered(bytes, "sh -c '", |n| format!("./p{n};"), "'")),
        ("deletions", filled(bytes, "", "rm -rf a;", "")),
        ("code in arguments", filled(bytes, "", "python -c 'a(1)';", "")),
        ("one long argument of code", filled(bytes, "python3 -c '", "print(1);", "'")),
        ("printed scripts", filled(bytes, "", "echo ls|sh;", "")),
        ("traps", filled(bytes, "", "trap 'ls' 0;", "")),
    ]
}

/// Rules whose expressions are many and long, all for one program.
#[must_use]
pub(crate) fn regex_rules() -> String {
    let mut text = String::from("[command]\ndefault = \"allow\"\n");
    for number in 0..50 {
        text.push_str(&format!(
            "[[command.rule]]\nid = \"r{number}\"\ndecision = \"deny\"\nreason = \"measured\"\n\
             program = \"ls\"\ntokens = [\"**\", {{ regex = \"(?:a|b|c)*x{number}(?:.*y)?[a-z]*\" }}, \"**\"]\n"
        ));
    }
    text
}
