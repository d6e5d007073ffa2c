//! One decision, by three engines in turn: this project's, `regorus` (Rego) and `cedar-policy`, each with the
//! same rules, of which none matches the command that is measured and one matches the command of the
//! control. The peers are given the command taken apart, since they read no shell; ours is measured both
//! ways. `cargo run --release --manifest-path benches/peers/Cargo.toml`; prints medians, asserts the controls.

#![expect(clippy::unwrap_used, reason = "a measurement may fail loudly")]
#![expect(clippy::print_stdout, reason = "the result")]

#[path = "../../policy_inputs/rules.rs"]
mod rules;

use cedar_policy::{Authorizer, Context, Decision as Answer, Entities, PolicySet, Request};
use rules::{Rule, policy_text, rules};
use serde_json::json;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};
use stoplog::call::effects::Effects;
use stoplog::call::shell::{ShellContext, analyse};
use stoplog::policy::{BoundPolicy, Decision, Layer, Places, PolicySource, Query, load};

/// Turns of each engine.
const ROUNDS: usize = 501;
/// No rule means it.
const MEASURED: [&str; 3] = ["git", "status", "--short"];
/// The first rule denies it.
const REFUSED: [&str; 3] = ["git", "push0", "x"];

fn main() {
    println!(
        "rules | ours, µs | ours with the analysis of the script, µs | regorus, µs | cedar-policy, µs"
    );
    for count in [50, 1_000] {
        measure(count);
    }
}

fn measure(count: usize) {
    let ours = ours(count);
    let mut rego = rego(count);
    let (cedar, authorizer, entities) = (cedar(count), Authorizer::new(), Entities::empty());
    let allows = |words: [&str; 3]| {
        authorizer.is_authorized(&request(words), &cedar, &entities).decision() == Answer::Allow
    };
    assert_eq!(judge(&ours, &effects(REFUSED)), Decision::Deny);
    assert_eq!(judge(&ours, &effects(MEASURED)), Decision::Allow);
    assert_eq!(decide(&mut rego, REFUSED), "deny");
    assert_eq!(decide(&mut rego, MEASURED), "allow");
    assert!(allows(MEASURED) && !allows(REFUSED));

    let (known, script) = (effects(MEASURED), MEASURED.join(" "));
    let (input, asked) = (input(MEASURED), request(MEASURED));
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let [alone, whole, other, third] = &mut times;
        alone.push(time(|| _ = black_box(judge(&ours, &known))));
        whole.push(time(|| _ = black_box(judge(&ours, &analyse(&script, &context())))));
        other.push(time(|| {
            rego.set_input(input.clone());
            drop(black_box(rego.eval_rule("data.measured.decision".to_owned())));
        }));
        third.push(time(|| drop(black_box(authorizer.is_authorized(&asked, &cedar, &entities)))));
    }
    let [alone, whole, other, third] = times.map(median);
    println!("{count} | {alone:.1} | {whole:.1} | {other:.1} | {third:.1}");
}

fn time(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    1_000_000.0 * times.get(times.len() / 2).unwrap().as_secs_f64()
}

fn context() -> ShellContext {
    let places = Places::example();
    ShellContext { cwd: places.workspace, home: places.home, ..ShellContext::default() }
}

fn ours(count: usize) -> BoundPolicy {
    let (name, text) = ("measured.toml".to_owned(), policy_text(count));
    let set = load(vec![PolicySource { name, layer: Layer::Explicit, text }], &|_| None).unwrap();
    set.bind(&Places::example()).unwrap()
}

fn effects(words: [&str; 3]) -> Effects {
    analyse(&words.join(" "), &context())
}

fn judge(policy: &BoundPolicy, effects: &Effects) -> Decision {
    let arguments = &serde_json::Value::Null;
    let query =
        Query { tool: "bash", role: None, effects, real_paths: &[], arguments, headless: false };
    policy.judge(&query).decision
}

fn rego(count: usize) -> regorus::Engine {
    let mut text = String::from("package measured\nimport rego.v1\n");
    for rule in rules(count) {
        match rule {
            Rule::Command { id, decision, program, first: [one, other] } => writeln!(
                text,
                "{decision}_rules contains \"r{id}\" if {{\n some c in input.commands\n c.program == {program:?}\n \
                 c.arguments[0] in {{{one:?}, {other:?}}}\n}}"
            ),
            Rule::Path { id, directory } => writeln!(
                text,
                "deny_rules contains \"r{id}\" if {{\n some p in input.writes\n startswith(p, \"{directory}/\")\n}}"
            ),
        }
        .unwrap();
    }
    text.push_str(
        "default decision := \"allow\"\ndecision := \"deny\" if {\n count(deny_rules) > 0\n} else := \"ask\" if {\n \
         count(ask_rules) > 0\n}\n",
    );
    let mut engine = regorus::Engine::new();
    engine.add_policy("measured.rego".to_owned(), text).unwrap();
    engine
}

fn input(words: [&str; 3]) -> regorus::Value {
    let [program, arguments @ ..] = words;
    let command = json!({ "program": program, "arguments": arguments });
    let text = json!({ "commands": [command], "writes": [] }).to_string();
    regorus::Value::from_json_str(&text).unwrap()
}

fn decide(engine: &mut regorus::Engine, words: [&str; 3]) -> String {
    engine.set_input(input(words));
    let value = engine.eval_rule("data.measured.decision".to_owned()).unwrap();
    value.as_string().unwrap().to_string()
}

fn cedar(count: usize) -> PolicySet {
    let mut text = String::from("permit(principal, action, resource);\n");
    for rule in rules(count) {
        // Cedar has two answers: a question is written as a refusal.
        match rule {
            Rule::Command { decision: "allow", .. } => Ok(()),
            Rule::Command { id, program, first: [one, other], .. } => writeln!(
                text,
                "@id(\"r{id}\") forbid(principal, action == Action::\"run\", resource == Program::{program:?}) \
                 when {{ [{one:?}, {other:?}].contains(context.first) }};"
            ),
            Rule::Path { id, directory } => writeln!(
                text,
                "@id(\"r{id}\") forbid(principal, action == Action::\"write\", resource) \
                 when {{ context.path like \"{directory}/*\" }};"
            ),
        }
        .unwrap();
    }
    text.parse().unwrap()
}

fn request([program, first, second]: [&str; 3]) -> Request {
    let context = json!({ "first": first, "arguments": [first, second] });
    Request::new(
        "User::\"agent\"".parse().unwrap(),
        "Action::\"run\"".parse().unwrap(),
        format!("Program::{program:?}").parse().unwrap(),
        Context::from_json_value(context, None).unwrap(),
        None,
    )
    .unwrap()
}
