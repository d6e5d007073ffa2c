//! Any text is answered: without a panic, within bounds, in little time.

#[path = "../support/shell_pieces.rs"]
mod shell_pieces;

use super::{analysed, programs, reasons};
use proptest::prelude::*;
use shell_pieces::SHELL_PIECES;
use std::time::{Duration, Instant};
use stoplog::base::limits::{SHELL_BYTES_MAX, SHELL_NODES_MAX, SHELL_WORDS_MAX};
use stoplog::call::effects::UnresolvedReason::{self, Refused, Syntax, TooLarge};

/// Far above what any accepted script takes in a build without optimisation on a busy machine, far
/// below what anything quadratic would take.
const TIME_MAX: Duration = Duration::from_secs(5);

#[test]
fn what_is_over_a_bound_is_unresolved_as_a_whole() {
    for script in [
        "true;".repeat(200_000),
        "a".repeat(65_537),
        format!("echo {}canary{}", "$(".repeat(2_000), ")".repeat(2_000)),
        format!("{}canary{}", "( ".repeat(2_000), " )".repeat(2_000)),
        "{ ".repeat(3_000),
        "if ".repeat(3_000),
        "${a:-".repeat(3_000),
        "$((".repeat(3_000),
        "`\\`".repeat(3_000),
        "env ".repeat(10_000),
        "a|".repeat(30_000) + "a",
    ] {
        let start = Instant::now();
        let effects = analysed(&script);
        assert!(
            start.elapsed() < TIME_MAX,
            "{} took {:?}",
            script.get(..20).unwrap(),
            start.elapsed()
        );
        assert!(
            effects.unresolved.iter().any(|u| matches!(u.reason, TooLarge | Syntax)),
            "{}",
            script.get(..20).unwrap()
        );
        assert!(effects.unresolved.iter().all(|unresolved| unresolved.text.len() <= 200));
    }
}

/// Twelve lines as people write them.
const ORDINARY_BLOCK: &str = r#"# Builds one part and says how it went.
build_part() {
    local name="$1"
    if ! make -C "parts/$name" all > logs/part.log 2>&1; then
        echo "part $name could not be built; the end of its log follows" >&2
        tail -n 20 logs/part.log | sed 's/^/    /' >&2
        return 1
    fi
    find "parts/$name/out" -name '*.o' -newer logs/part.log -print0 | xargs -0 ls -l
    printf '%s: %s objects\n' "$name" "$(find "parts/$name/out" -type f | wc -l)"
}
"#;

#[test]
fn a_script_of_full_size_is_analysed() {
    let count = SHELL_BYTES_MAX / ORDINARY_BLOCK.len();
    let effects = analysed(&ORDINARY_BLOCK.repeat(count));
    assert!(effects.unresolved.is_empty(), "{:?}", effects.unresolved.first());
    assert_eq!(programs(&effects).iter().filter(|program| **program == "make").count(), count);
    // Denser than anybody writes: over the bound of commands, and over that of words.
    for (script, fits) in [
        ("true;".repeat(SHELL_NODES_MAX), true),
        ("true;".repeat(SHELL_NODES_MAX + 1), false),
        (format!("ls{}", " a".repeat(SHELL_WORDS_MAX - 1)), true),
        (format!("ls{}", " a".repeat(SHELL_WORDS_MAX)), false),
        (format!("nice ls{}", " a".repeat(SHELL_WORDS_MAX / 2)), false),
    ] {
        let reasons = reasons(&analysed(&script));
        let expected: &[UnresolvedReason] = if fits { &[] } else { &[TooLarge] };
        assert_eq!(reasons, expected, "{} bytes of {:?}", script.len(), script.get(..9));
    }
}

#[test]
fn scripts_made_to_be_slow_are_not() {
    for script in [
        "a ".repeat(32_000),
        format!("echo {}", "{".repeat(60_000)),
        format!("echo {}", "{a,".repeat(20_000)),
        format!("echo {}", "{a,b}".repeat(10_000)),
        format!("ls {}", "[".repeat(60_000)),
        "cd a;".repeat(13_000),
        "cd a && ".repeat(8_000) + "ls",
        (0..5_000).map(|index| format!("f{index}(){{ :;}};")).collect::<String>(),
        (0..3_000).map(|index| format!("v{index}=1;")).collect::<String>() + &"$v1 ".repeat(8_000),
        "\\\n".repeat(32_000),
        "a[1".repeat(20_000),
        format!("x=({})", "[a]=b ".repeat(10_000)),
        "cat <<A\nb\nA\n".repeat(5_000),
        format!("cat {}", "<<A ".repeat(15_000)),
        "eval 'x';".repeat(7_000),
        format!("(( {}1 ))", "a+".repeat(30_000)),
        format!("sed '{}'", "s/a/b/;".repeat(9_000)),
        "((a) ".repeat(12_000),
    ] {
        let start = Instant::now();
        let _effects = analysed(&script);
        assert!(
            start.elapsed() < TIME_MAX,
            "{} took {:?}",
            script.get(..20).unwrap(),
            start.elapsed()
        );
    }
}

#[test]
fn nesting_up_to_the_bound_fits_the_stack() {
    for (open, close) in [
        ("$(", ")"),
        ("( ", " )"),
        ("{ ", ";}"),
        ("${a:-", "}"),
        ("\"$(", ")\""),
        ("if ", ";then b;fi"),
        ("while ", ";do b;done"),
        ("<(", ")"),
        ("f(){ ", ";}"),
        ("case $(", ") in a) b;; esac"),
        ("[[ $(", ") ]]"),
        ("$((", "))"),
        ("@(", ")"),
        ("a=(\"$(", ")\")"),
        ("coproc { ", ";}"),
    ] {
        for depth in [10, 20, 30, 40, 60, 63, 64, 65, 100] {
            let script = format!("echo {}a{}", open.repeat(depth), close.repeat(depth));
            let _effects = analysed(&script);
            let script = format!("{}a{}", open.repeat(depth), close.repeat(depth));
            let _effects = analysed(&script);
        }
    }
}

#[test]
fn a_value_that_doubles_without_end_is_no_longer_followed() {
    for script in [
        format!("x=aaaaaaaa;{}echo $x", "x=$x$x;".repeat(60)),
        format!("x={};{}", "a".repeat(4_000), "echo $x$x$x$x$x$x$x$x;".repeat(2_000)),
        format!("x={};echo {}", "a".repeat(4_000), "$x".repeat(25_000)),
        format!("x={};cat <<E\n{}\nE", "a".repeat(4_000), "$x".repeat(25_000)),
        format!("{}x{}", "echo $(echo {a,b}".repeat(60), ")".repeat(60)),
        format!("echo {}", "{1..250}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ".repeat(1_200)),
    ] {
        let start = Instant::now();
        let effects = analysed(&script);
        assert!(start.elapsed() < TIME_MAX, "{:?} took {:?}", script.get(..20), start.elapsed());
        let shown = |word: &stoplog::call::effects::Word| word.shown().len();
        let bytes: usize = effects.commands.iter().flat_map(|c| &c.arguments).map(shown).sum();
        assert!(bytes <= 20 * 65_536, "{bytes} bytes of {:?}", script.get(..20));
    }
}

#[test]
fn broken_scripts_are_refused() {
    for script in [
        "echo 'abc",
        "echo \"abc",
        "echo `abc",
        "echo $(abc",
        "echo ${abc",
        "echo $((1",
        "( ls",
        "{ ls;",
        "if ls; then",
        "for",
        "case x in",
        "ls )",
        "ls ;; ls",
        "echo \\$(rm x)",
        "ls\u{0}; rm x",
        "| ls",
        "&& ls",
        "ls &&",
        "fi",
        "then",
        "{rm x; }",
        "a=(x #)\nrm y",
        "ls > ",
        "cat <<",
        "function",
        "echo $'a",
        "x=$(cat <<A)\nb\nA",
        "cat <<E\n\\\nE\nrm x\nE",
    ] {
        let reasons = reasons(&analysed(script));
        assert!(
            reasons.contains(&Syntax) || reasons.contains(&Refused),
            "{script:?}: {:?}",
            programs(&analysed(script))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(script in ".{0,200}") {
        let _effects = analysed(&script);
    }

    #[test]
    fn any_mix_of_shell_tokens_is_answered(tokens in prop::collection::vec(token(), 0..60)) {
        let script = tokens.concat();
        let effects = analysed(&script);
        for command in &effects.commands {
            prop_assert!(command.span.end <= script.len() && command.span.start <= command.span.end);
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _effects = analysed(&String::from_utf8_lossy(&bytes));
    }
}

fn token() -> impl Strategy<Value = String> {
    prop::sample::select(SHELL_PIECES).prop_map(str::to_owned)
}
