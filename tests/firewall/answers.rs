//! Two lists, and the answers of the policy. Commands in a list are parted by a line of three dashes.

use std::collections::BTreeMap;
use std::path::Path;
use stoplog::call::effects_of::{Surroundings, effects};
use stoplog::call::request::{Request, ToolName};
use stoplog::call::shell::StandardInput;
use stoplog::policy::{
    BoundPolicy, Decision, Layer, Places, PolicySource, Query, built_in_source, load,
};

fn commands(list: &'static str) -> Vec<&'static str> {
    list.trim_end().split("\n---\n").collect()
}

fn policy(name: &str) -> BoundPolicy {
    load(vec![built_in_source(name).unwrap()], &|_| None).unwrap().bind(&Places::example()).unwrap()
}

fn decide(policy: &BoundPolicy, command: &str) -> (Decision, String) {
    let arguments = serde_json::json!({ "command": command });
    let all = ToolName::ALL.into_iter().collect();
    let request = Request::parse("bash", &arguments.to_string(), &all).unwrap();
    let surroundings = Surroundings {
        workspace: Path::new("/home/user/project"),
        home: Some(Path::new("/home/user")),
        environment: &policy.environment().names(),
        input: StandardInput::Empty,
    };
    let judgement = policy.judge(&Query {
        tool: "bash",
        role: None,
        effects: &effects(&request, &surroundings),
        real_paths: &[],
        arguments: &arguments,
        headless: false,
    });
    (judgement.decision, judgement.for_model())
}

#[test]
fn a_developers_day_is_allowed() {
    let policy = policy("workspace");
    let everyday = commands(include_str!("everyday.txt"));
    assert!(everyday.len() > 200, "{}", everyday.len());
    let held: BTreeMap<&str, String> = everyday
        .into_iter()
        .filter_map(|command| {
            let (decision, words) = decide(&policy, command);
            (decision != Decision::Allow).then_some((command, words))
        })
        .collect();
    assert!(held.is_empty(), "{held:#?}");
}

#[test]
fn acts_that_nobody_asked_for_are_refused_or_asked_about() {
    let policy = policy("workspace");
    let acts = commands(include_str!("acts.txt"));
    assert!(acts.len() > 200, "{}", acts.len());
    let allowed: Vec<&str> =
        acts.into_iter().filter(|act| decide(&policy, act).0 == Decision::Allow).collect();
    assert!(allowed.is_empty(), "{allowed:#?}");
}

#[test]
fn without_rules_every_act_would_be_allowed_or_not_known() {
    let text = "version = 1\n[path]\ndefault = \"allow\"\n[command]\ndefault = \"allow\"\n\
                unresolved = \"allow\"\n[network]\ndefault = \"allow\"\n";
    let source =
        PolicySource { name: "none.toml".into(), layer: Layer::Explicit, text: text.into() };
    let policy = load(vec![source], &|_| None).unwrap().bind(&Places::example()).unwrap();
    let refused: Vec<&str> = commands(include_str!("acts.txt"))
        .into_iter()
        .filter(|act| decide(&policy, act).0 != Decision::Allow)
        .collect();
    // What is left is refused in every policy: secrets of the system.
    assert_eq!(
        refused,
        ["cat /etc/shadow", "echo 'x ALL=(ALL) NOPASSWD:ALL' | sudo tee /etc/sudoers.d/x"]
    );
}

#[test]
fn a_search_path_that_is_changed_is_asked_about_where_only_listed_programs_run() {
    for name in ["ci", "readonly", "untrusted"] {
        let policy = policy(name);
        for command in
            ["export PATH=$PWD/bin:$PATH", "PATH=$PWD/bin:$PATH ls", "PATH=$PWD/bin:$PATH; ls"]
        {
            assert_ne!(decide(&policy, command).0, Decision::Allow, "{name}: {command}");
        }
        assert_eq!(decide(&policy, "ls").0, Decision::Allow, "{name}: the control");
    }
}
