//! Generated scripts whose commands are known by construction, compared with our reading, with two
//! other parsers, and with what bash accepts.

use super::{analysed, programs};
use proptest::prelude::*;
use std::io::Write as _;
use std::process::Stdio;
use stoplog::call::effects::UnresolvedReason::{Refused, Syntax, TooLarge};

/// A script and the programs in it, at every nesting.
#[derive(Debug, Clone)]
struct Generated {
    text: String,
    names: Vec<String>,
}

fn joined(parts: &[Generated], join: impl Fn(&[&str]) -> String) -> Generated {
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    let names = parts.iter().flat_map(|part| part.names.clone()).collect();
    Generated { text: join(&texts), names }
}

/// Text for the inside of `$()`: `$((` would be something else.
fn spaced(text: &str) -> String {
    if text.starts_with('(') { format!(" {text} ") } else { text.to_owned() }
}

fn name() -> impl Strategy<Value = String> {
    "p[a-z0-9]{1,4}"
}

/// A spelling of a name that bash undoes.
fn spelled() -> impl Strategy<Value = Generated> {
    (name(), 0..5_u8).prop_map(|(name, how)| {
        let text = match how {
            0 => format!("'{name}'"),
            1 => format!("\"{name}\""),
            2 => format!("\\{name}"),
            3 => format!("p''{}", name.get(1..).unwrap_or_default()),
            _ => name.clone(),
        };
        Generated { text, names: vec![name] }
    })
}

/// A word that holds no command.
fn plain_word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "a",
        "'b; c'",
        "\"d | e\"",
        "f\\;g",
        "$x",
        "\"$y\"",
        "${z:-w}",
        "*.rs",
        "{a,b}",
        "\"it's\"",
        "'$(no)'",
        "$'a\\'b'",
        "-x",
        "--y=z",
        "~",
        "$((1+2))",
        "a#b",
        "\"\\$(no)\"",
        "\"`:`\"",
    ])
    .prop_map(str::to_owned)
}

fn simple(inner: BoxedStrategy<Generated>) -> impl Strategy<Value = Generated> {
    let word = prop_oneof![
        4 => plain_word().prop_map(|text| Generated { names: if text.contains('`') { vec![":".to_owned()] } else { Vec::new() }, text }),
        1 => inner.prop_map(|inner| joined(&[inner], |texts| format!("\"$({})\"", spaced(texts[0])))),
    ];
    let redirect = prop::sample::select(vec![
        "",
        "",
        "",
        " >o",
        " 2>&1",
        " <i",
        " >>o",
        " &>o",
        " 2>/dev/null",
        " <<<w",
    ]);
    (spelled(), prop::collection::vec(word, 0..3), redirect).prop_map(
        |(program, words, redirect)| {
            let mut parts = vec![program];
            parts.extend(words);
            joined(&parts, |texts| texts.join(" ") + redirect)
        },
    )
}

fn compound(inner: BoxedStrategy<Generated>) -> impl Strategy<Value = Generated> {
    (prop::collection::vec(inner, 2), 0..19_u8).prop_map(|(parts, how)| {
        joined(&parts, |texts| {
            let (a, b) = (texts[0], texts[1]);
            match how {
                0 => format!("{a}; {b}"),
                1 => format!("{a} && {b}"),
                2 => format!("{a} || {b}"),
                3 => format!("{a} | {b}"),
                4 => format!("{a} & {b}"),
                5 => format!("{a}\n{b}"),
                6 => format!("{{ {a}; {b}; }}"),
                7 => format!("( {a}; {b} )"),
                8 => format!("if {a}; then {b}; fi"),
                9 => format!("while {a}; do {b}; done"),
                10 => format!("for i in 1 2; do {a}; {b}; done"),
                11 => format!("case w in w) {a};; *) {b};; esac"),
                12 => format!("until {a}; do {b}; done"),
                13 => format!("! {a}; {b}"),
                14 => format!("{a} # {b} '\n{b}"),
                15 => format!("[[ -n \"$({})\" ]] && {b}", spaced(a)),
                16 => format!("for ((i=0;i<2;i++)); do {a}; {b}; done"),
                17 => format!("x=\"$({})\"; {b}", spaced(a)),
                _ => format!("{a} <<'E' ; {b}\n$(no)\nE\n:"),
            }
        })
        .with(if how == 18 { Some(":") } else { None })
    })
}

impl Generated {
    fn with(mut self, more: Option<&str>) -> Self {
        self.names.extend(more.map(ToOwned::to_owned));
        self
    }
}

fn script() -> impl Strategy<Value = Generated> {
    let leaf = spelled().boxed();
    leaf.prop_recursive(4, 24, 2, |inner| prop_oneof![simple(inner.clone()), compound(inner)])
}

/// How bash ends when it only reads the script, and what it says.
#[expect(clippy::disallowed_methods, reason = "the test asks bash itself what it accepts")]
fn bash_reads(script: &str) -> (bool, String) {
    let mut child = std::process::Command::new("bash")
        .args(["--norc", "--noprofile", "-n"])
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash is installed");
    child.stdin.take().expect("stdin is piped").write_all(script.as_bytes()).expect("bash reads");
    let output = child.wait_with_output().expect("bash ends");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn bash_accepts(script: &str) -> bool {
    bash_reads(script).0
}

/// Whether bash would run the script. An error between `[[` and `]]` it tells and ends with 0, and
/// still runs nothing; its warnings are no errors.
fn bash_would_run(script: &str) -> bool {
    let (success, told) = bash_reads(script);
    success && told.lines().all(|line| line.contains("warning: "))
}

fn is_refused(script: &str) -> bool {
    analysed(script).unresolved.iter().any(|u| matches!(u.reason, Refused | Syntax | TooLarge))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn generated_scripts_are_read_exactly(generated in script()) {
        // A here-document inside a one-line construct moves its body, and `!` may stand only at the
        // front of a pipeline: bash refuses such scripts.
        prop_assume!(bash_accepts(&generated.text));
        let effects = analysed(&generated.text);
        // A line end inside a substitution in front of a here-document's body is ambiguous.
        let document = generated.text.contains("<<'E'");
        prop_assert!(document || !is_refused(&generated.text), "{}", generated.text);
        if !generated.text.contains("<<'E'") && !generated.text.contains('#') {
            let mut found: Vec<String> = programs(&effects).into_iter().map(ToOwned::to_owned).collect();
            let mut expected = generated.names.clone();
            found.sort();
            expected.sort();
            prop_assert_eq!(found, expected, "{}", generated.text);
        }
    }

    #[test]
    fn other_parsers_find_no_command_that_we_do_not(generated in script()) {
        let Ok(nodes) = rable::parse(&generated.text, true) else { return Ok(()) };
        prop_assume!(!is_refused(&generated.text));
        // Theirs keep their quotes, and ours may hold some that other quotes made plain text.
        let bare = |name: &str| name.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect::<String>();
        let ours: Vec<String> = programs(&analysed(&generated.text)).into_iter().map(bare).collect();
        let mut theirs = Vec::new();
        nodes.iter().for_each(|node| rable_names(node, &mut theirs));
        for name in theirs {
            let bare = bare(&name);
            prop_assert!(ours.contains(&bare) || bare.is_empty(), "{bare} in {}", generated.text);
        }
        let document = generated.text.contains("<<'E'");
        let mut brush = brush_parser::Parser::new(generated.text.as_bytes(), &brush_parser::ParserOptions::default());
        if brush.parse_program().is_ok() && !document && bash_accepts(&generated.text) {
            prop_assert!(!is_refused(&generated.text), "{}", generated.text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// What we read, bash must accept: else the two would disagree about where things end.
    #[test]
    fn what_bash_refuses_we_refuse(tokens in prop::collection::vec(fragment(), 1..12)) {
        let script = tokens.join(" ");
        if !bash_accepts(&script) {
            prop_assert!(is_refused(&script), "{script}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// Of a line that bash is said to refuse, bash runs nothing.
    #[test]
    fn what_is_said_to_be_refused_bash_refuses(tokens in prop::collection::vec(scrap(), 1..9)) {
        let script = tokens.concat();
        let refused = analysed(&script).unresolved.iter().any(|u| u.reason == Refused);
        prop_assert!(!refused || !bash_would_run(&script), "{script:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// Backquotes that are let off for an error in them: bash runs nothing of what they hold.
    #[test]
    fn what_is_let_off_between_backquotes_bash_refuses(tokens in prop::collection::vec(scrap(), 1..9)) {
        let script = tokens.concat();
        // A backslash is taken off first, which makes another script of it.
        prop_assume!(!script.contains('\\'));
        let line = format!("echo `{script}`");
        if is_refused(&script) && !is_refused(&line) {
            prop_assert!(!bash_would_run(&script), "{script:?}");
        }
    }
}

fn scrap() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b ",
        " ",
        "'",
        "\"",
        "\\",
        "(",
        ")",
        " (",
        "()",
        "<",
        ">",
        "> ",
        "|",
        "&",
        ";",
        "{",
        "}",
        " {",
        "!",
        "x=",
        "?",
        "2>&1",
        "<x>",
        "f() { a; }",
        "a b",
        "$x",
        "@(",
        "[",
        "]",
        "\t",
        "{}",
        "it's",
        "=(",
        "if ",
        "then ",
        "fi",
        "in ",
        "do ",
        "\\(",
        "-x",
        "a[",
        "[[ ",
        "]]",
        "+=(",
        "declare ",
        "time ",
        "~",
        "%",
        "^",
        ",",
        "1>",
        "{a,b}",
        "*",
        "\n",
    ])
}

fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b",
        "if",
        "then",
        "fi",
        "{",
        "}",
        "(",
        ")",
        ";",
        "&&",
        "||",
        "|",
        "!",
        "for x in",
        "do",
        "done",
        "while",
        "case x in",
        "y)",
        ";;",
        "esac",
        "[[",
        "]]",
        "'q'",
        "\"d\"",
        "$(a)",
        "$((1))",
        ">f",
        "2>&1",
        "x=1",
        "&",
        "\n",
        "function f",
        "f()",
        "time",
        "else",
        "((1))",
        "`a`",
        "<<<w",
        "#c",
    ])
}

/// The programs of the nodes that stand outside words.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is that of another crate")]
fn rable_names(node: &rable::Node, names: &mut Vec<String>) {
    use rable::NodeKind;
    let mut inside = |node: &rable::Node| rable_names(node, names);
    match &node.kind {
        NodeKind::Pipeline { commands, .. } => commands.iter().for_each(inside),
        NodeKind::List { items } => items.iter().for_each(|item| inside(&item.command)),
        NodeKind::If { condition, then_body, else_body, .. } => {
            inside(condition);
            inside(then_body);
            if let Some(body) = else_body {
                inside(body);
            }
        }
        NodeKind::While { condition, body, .. } | NodeKind::Until { condition, body, .. } => {
            inside(condition);
            inside(body);
        }
        NodeKind::For { body, .. }
        | NodeKind::ForArith { body, .. }
        | NodeKind::Subshell { body, .. }
        | NodeKind::BraceGroup { body, .. } => inside(body),
        NodeKind::Case { patterns, .. } => {
            patterns.iter().filter_map(|pattern| pattern.body.as_ref()).for_each(inside)
        }
        NodeKind::Command { words, .. } => {
            if let Some(NodeKind::Word { value, .. }) = words.first().map(|word| &word.kind) {
                names.push(value.clone());
            }
        }
        // Not our enum: what holds no command outside words is of no interest.
        _ => {}
    }
}
