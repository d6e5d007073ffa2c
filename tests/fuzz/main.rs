//! Changes of the seeds in `fuzz/seeds`, for as long as `STOPLOG_FUZZ_SECONDS` says (default: 2): whatever
//! comes out, it is answered, within bounds, twice alike. Every failure shows its input and the number to
//! start from again (`STOPLOG_FUZZ_START`). The changes follow from that number, so that a run without one
//! says the same each time; a search for something new gives another.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a test may fail loudly and says what it did"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test is told from outside how long it may take"
)]

mod bash;
mod change;

use change::Changes;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};
use stoplog::base::limits::SHELL_BYTES_MAX;
use stoplog::call::effects::{Effects, UnresolvedReason};
use stoplog::call::shell::{ShellContext, analyse};
use stoplog::policy::{BoundPolicy, Layer, Places, PolicySource, Query, built_in_source, load};

/// Far above what any input takes in a build without optimisation on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(5);

/// One input in so many is also given to bash.
const ASKED_OF_BASH: u64 = 97;

/// Seeds: the texts of all files in one directory of `fuzz/seeds`.
fn seeds(kind: &str) -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(kind);
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Gives changed seeds to `check` until the time is up.
fn fuzz(kind: &str, check: impl Fn(u64, &str)) {
    let seeds = seeds(kind);
    let budget = Duration::from_secs(number("STOPLOG_FUZZ_SECONDS", 2));
    let first = number("STOPLOG_FUZZ_START", 0);
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < budget {
        let text = Changes::new(first + count).text(&seeds);
        let began = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| check(first + count, &text)));
        let took = began.elapsed();
        assert!(
            result.is_ok() && took < TIME_MAX,
            "STOPLOG_FUZZ_START={} of {kind}, {took:?}: {text:?}",
            first + count
        );
        count += 1;
    }
    println!("{kind}: {count} inputs from {first}");
}

#[test]
fn any_script_is_answered_within_bounds() {
    let set = load(vec![built_in_source("workspace").unwrap()], &|_| None).unwrap();
    let policy = set.bind(&Places::example()).unwrap();
    fuzz("shell", |number, script| {
        let context =
            ShellContext { cwd: "/w".into(), home: Some("/h".into()), ..ShellContext::default() };
        let effects = analyse(script, &context);
        assert_eq!(effects, analyse(script, &context), "not a function of its input");
        hold_bounds(script, &effects);
        judge(&policy, &effects);
        if number.is_multiple_of(ASKED_OF_BASH) {
            compare_with_bash(script, &effects);
        }
    });
}

fn hold_bounds(script: &str, effects: &Effects) {
    for command in &effects.commands {
        assert!(command.span.start <= command.span.end && command.span.end <= script.len());
    }
    assert!(effects.unresolved.iter().all(|unresolved| unresolved.text.len() <= 200));
    let words = effects.commands.iter().flat_map(|command| &command.arguments);
    assert!(words.map(|word| word.shown().len()).sum::<usize>() <= 64 * SHELL_BYTES_MAX);
    if script.len() > SHELL_BYTES_MAX {
        assert!(effects.commands.is_empty() && !effects.unresolved.is_empty());
    }
}

fn judge(policy: &BoundPolicy, effects: &Effects) {
    let query = |headless| Query {
        tool: "bash",
        role: None,
        effects,
        real_paths: &[],
        arguments: &serde_json::Value::Null,
        headless,
    };
    let (asked, alone) = (policy.judge(&query(false)), policy.judge(&query(true)));
    assert_eq!(asked.decision, alone.decision, "the decision does not depend on who watches");
}

/// Nothing that bash takes is said to be refused. The other way round no harm is done: of a line that
/// bash refuses it runs nothing, whatever was judged, and it has more reasons than a grammar tells
/// (`coproc N }`, extended patterns that are switched off).
fn compare_with_bash(script: &str, effects: &Effects) {
    let mut reasons = effects.unresolved.iter().map(|unresolved| unresolved.reason);
    let is_refused = reasons.any(|reason| reason == UnresolvedReason::Refused);
    assert!(!is_refused || !bash::accepts(script), "bash takes it");
}

#[test]
fn any_policy_is_loaded_or_refused_with_a_place() {
    fuzz("policy", |_, text| {
        let name = "fuzz.toml".to_owned();
        let source = PolicySource { name, layer: Layer::Explicit, text: text.to_owned() };
        match load(vec![source], &|_| None) {
            Ok(set) => drop(set.bind(&Places::example())),
            Err(errors) => {
                assert!(errors.0.iter().all(|error| error.place() >= (1, 1)));
                assert!(!errors.to_string().is_empty());
            }
        }
    });
}
