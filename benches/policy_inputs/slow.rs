//! Scripts as large as they are accepted, each of one form that a careless analysis or a careless
//! decision would take long for.

use stoplog::base::limits::SHELL_BYTES_MAX;

/// `piece` as often as fits between `head` and `tail`.
fn filled(head: &str, piece: &str, tail: &str) -> String {
    let count = (SHELL_BYTES_MAX - head.len() - tail.len()) / piece.len();
    format!("{head}{}{tail}", piece.repeat(count))
}

/// Numbered pieces until the script is full.
fn numbered(head: &str, piece: impl Fn(usize) -> String, tail: &str) -> String {
    let mut script = head.to_owned();
    for number in 0.. {
        let next = piece(number);
        if script.len() + next.len() + tail.len() > SHELL_BYTES_MAX {
            break;
        }
        script.push_str(&next);
    }
    script + tail
}

/// The forms, each with its name.
#[must_use]
pub(crate) fn slow_scripts() -> Vec<(&'static str, String)> {
    let mut scripts = words_and_lists();
    scripts.extend(expansions());
    scripts.extend(nested());
    scripts.extend(programs());
    scripts
}

fn words_and_lists() -> Vec<(&'static str, String)> {
    vec![
        ("short commands", filled("", "true;", "")),
        ("different commands", numbered("", |n| format!("p{n};"), "")),
        ("one command of many words", filled("ls", " a", "")),
        ("many different files", numbered("cat", |n| format!(" f{n}"), "")),
        ("a long pipeline", filled("a", "|a", "")),
        ("and, or", filled("a", "&&a||a", "")),
        ("assignments", numbered("", |n| format!("v{n}=1;"), "")),
        ("assignments in front", numbered("", |n| format!("V{n}=1 "), "ls")),
        ("redirections", numbered("ls", |n| format!(" >f{n}"), "")),
        ("here-documents", filled("", "cat <<A\nb\nA\n", "")),
        ("here-documents of one line", filled("cat", " <<A", "")),
        ("quotes", filled("echo ", "'a'\"b\"", "")),
        ("line continuations", filled("ls", "\\\n", "")),
        ("a loop of many words", filled("for x in a", " b", "; do ls; done")),
        ("case arms", numbered("case a in ", |n| format!("b{n}) ls;; "), "esac")),
    ]
}

fn expansions() -> Vec<(&'static str, String)> {
    vec![
        ("globs", filled("ls", " *", "")),
        ("globs in directories", numbered("ls", |n| format!(" d{n}/*"), "")),
        ("brackets", filled("ls ", "[", "")),
        ("braces", filled("echo ", "{a,b}", "")),
        ("open braces", filled("echo ", "{a,", "")),
        ("sequences of braces", filled("echo", " {1..250}", "")),
        ("variables", filled("x=1;echo", " $x", "")),
        ("long values", filled(&format!("x={};echo", "a".repeat(4_000)), " $x", "")),
        ("unknown variables", filled("echo", " $x", "")),
        ("defaults", filled("echo", " ${x:-a}", "")),
        ("values of values", numbered("", |n| format!("a{n}=$a{};", n.saturating_sub(1)), "")),
        ("substitutions", filled("echo", " $(a)", "")),
        ("backquotes", filled("echo", " `a`", "")),
        ("arithmetic", filled("echo $((1", "+a", "))")),
        ("process substitutions", filled("cat", " <(a)", "")),
        ("elements", filled("x=(", "[a]=b ", ")")),
        ("tildes", filled("ls", " ~/a", "")),
        ("climbing paths", filled("cat", " a/../../b", "")),
        ("one climbing path", filled("cat a", "/..", "/b")),
        ("long paths", filled("cat", &format!(" {}", "a/".repeat(1_000)), "")),
    ]
}

fn nested() -> Vec<(&'static str, String)> {
    let wide = |open: &str, close: &str| {
        let one = format!("{}a{};", open.repeat(20), close.repeat(20));
        filled("", &one, "")
    };
    vec![
        ("deep substitutions", wide("echo $(", ")")),
        ("deep quoted substitutions", wide("echo \"$(", ")\"")),
        ("deep subshells", wide("( ", " )")),
        ("deep groups", wide("{ ", " ;}")),
        ("deep conditions", wide("if a;then ", " ;fi")),
        ("deep defaults", wide("echo ${a:-", "}")),
        ("open parentheses", filled("", "((a) ", "")),
        ("open substitutions", filled("echo ", "$(", "")),
        ("unclosed quote behind many", filled("", "echo 'a' ", "'")),
        ("functions", numbered("", |n| format!("f{n}(){{ :;}};"), "")),
        (
            "functions that call functions",
            numbered("f0(){ :;};", |n| format!("f{}(){{ f{n};f{n};}};", n + 1), "f9"),
        ),
        ("aliases", numbered("shopt -s expand_aliases\n", |n| format!("alias a{n}=b\n"), "a1")),
        ("changes of directory", filled("", "cd a;", "ls b")),
        ("guarded changes of directory", filled("", "cd a&&", "ls b")),
        ("directories and paths", filled("", "cd a;cat b;", "")),
        ("doubling", filled("x=a;", "x=$x$x;", "")),
    ]
}

fn programs() -> Vec<(&'static str, String)> {
    vec![
        ("wrappers in wrappers", filled("", &format!("{}a;", "env ".repeat(25)), "")),
        ("shells in shells", filled("", "sh -c 'sh -c \"sh -c ls\"';", "")),
        ("shells", filled("", "sh -c 'ls b';", "")),
        ("evaluations", filled("", "eval 'x';", "")),
        ("inserted names", filled("", "find . -exec sh -c 'ls {}' ';';", "")),
        ("xargs", filled("", "ls|xargs rm;", "")),
        ("parallel", filled("parallel echo :::", " a", "")),
        ("actions of find", filled("find .", " -exec a {} +", "")),
        ("a long sed script", filled("sed '", "s/a/b/;", "' f")),
        ("a long awk program", filled("awk '", "{print $1}", "' f")),
        ("git settings", filled("git", " -c a.b=c", " status")),
        ("git", filled("", "git log a;", "")),
        ("hosts", numbered("curl", |n| format!(" http://h{n}"), "")),
        ("options", filled("curl", " --data-x", "")),
        ("relative programs", numbered("", |n| format!("./p{n};"), "")),
        ("one relative program", filled("", "./p;", "")),
        ("relative programs in a shell", numbered("sh -c '", |n| format!("./p{n};"), "'")),
        ("deletions", filled("", "rm -rf a;", "")),
        ("code in arguments", filled("", "python -c 'a(1)';", "")),
        ("one long argument of code", filled("python3 -c '", "print(1);", "'")),
        ("printed scripts", filled("", "echo ls|sh;", "")),
        ("traps", filled("", "trap 'ls' 0;", "")),
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
