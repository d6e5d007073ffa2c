//! What a decision costs: loading a policy, ordinary commands against small and large rule sets, and
//! the largest accepted script of every slow form. `cargo bench --bench policy`; prints medians,
//! asserts no time. One thread. `cargo bench --bench policy -- FORM…` measures slow forms whose names
//! hold one of the words, and nothing else.

#![expect(clippy::unwrap_used, reason = "a measurement may fail loudly")]
#![expect(clippy::print_stdout, reason = "the result")]

mod policy_inputs;

use policy_inputs::{TYPICAL, policy_text, regex_rules, slow_scripts};
use std::hint::black_box;
use std::time::{Duration, Instant};
use stoplog::call::shell::{ShellContext, analyse};
use stoplog::policy::{
    BUILT_IN_NAMES, BoundPolicy, Layer, Places, PolicySource, Query, built_in_source, load,
};

/// Rounds of a series whose single act takes microseconds.
const ROUNDS: usize = 301;
/// Rounds for a script of full size.
const SLOW_ROUNDS: usize = 5;

fn main() {
    // `cargo bench` itself hands over an option.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if wanted.is_empty() {
        loading();
        typical();
    }
    slow(&wanted);
}

fn source(text: String) -> PolicySource {
    PolicySource { name: "measured.toml".to_owned(), layer: Layer::Explicit, text }
}

fn bound(source: PolicySource) -> BoundPolicy {
    let set = load(vec![source], &|_| None).unwrap();
    set.bind(&Places::example()).unwrap()
}

fn context() -> ShellContext {
    let places = Places::example();
    ShellContext { cwd: places.workspace, home: places.home, ..ShellContext::default() }
}

/// Analyses and judges, as the chain does for a call of `bash`.
fn decide(policy: &BoundPolicy, script: &str, context: &ShellContext) {
    let effects = analyse(script, context);
    black_box(policy.judge(&Query {
        tool: "bash",
        role: None,
        effects: &effects,
        real_paths: &[],
        arguments: &serde_json::Value::Null,
        headless: false,
    }));
}

fn median(rounds: usize, mut act: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            act();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap()
}

fn microseconds(time: Duration) -> f64 {
    1_000_000.0 * time.as_secs_f64()
}

fn loading() {
    println!("policy | load, µs | bind, µs");
    let built_in = BUILT_IN_NAMES.iter().map(|name| (*name, built_in_source(name).unwrap()));
    let sized = [("50 rules", 50), ("1,000 rules", 1_000)];
    let sized = sized.map(|(name, count)| (name, source(policy_text(count))));
    for (name, source) in built_in.chain(sized) {
        let set = load(vec![source.clone()], &|_| None).unwrap();
        let loading = median(ROUNDS, || drop(black_box(load(vec![source.clone()], &|_| None))));
        let binding = median(ROUNDS, || drop(black_box(set.bind(&Places::example()))));
        println!("{name} | {:.0} | {:.0}", microseconds(loading), microseconds(binding));
    }
}

fn typical() {
    let policies = [
        bound(source(policy_text(50))),
        bound(source(policy_text(1_000))),
        bound(built_in_source("workspace").unwrap()),
    ];
    let context = context();
    println!("\ncommand | analysis alone, µs | 50 rules, µs | 1,000 rules, µs | workspace, µs");
    for command in TYPICAL {
        let analysis = median(ROUNDS, || drop(black_box(analyse(command, &context))));
        let times = policies
            .each_ref()
            .map(|policy| microseconds(median(ROUNDS, || decide(policy, command, &context))));
        let [few, many, workspace] = times;
        let analysis = microseconds(analysis);
        println!("{command} | {analysis:.1} | {few:.1} | {many:.1} | {workspace:.1}");
    }
}

fn slow(wanted: &[String]) {
    let policies = [
        ("workspace", bound(built_in_source("workspace").unwrap())),
        ("1,000 rules", bound(source(policy_text(1_000)))),
        ("50 expressions", bound(source(regex_rules()))),
    ];
    let context = context();
    println!(
        "\nscript of full size | analysis alone, ms | workspace, ms | 1,000 rules, ms | 50 expressions, ms"
    );
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word));
    for (name, script) in slow_scripts().into_iter().filter(|(name, _)| is_wanted(name)) {
        let milliseconds = |time| microseconds(time) / 1_000.0;
        let analysis = median(SLOW_ROUNDS, || drop(black_box(analyse(&script, &context))));
        let [one, two, three] = policies.each_ref().map(|(_, policy)| {
            milliseconds(median(SLOW_ROUNDS, || decide(policy, &script, &context)))
        });
        println!("{name} | {:.1} | {one:.1} | {two:.1} | {three:.1}", milliseconds(analysis));
    }
}
