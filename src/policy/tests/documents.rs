//! The reference page, the schema, lint, cases and the words of an explanation.

use super::*;
use std::collections::BTreeSet;

const REFERENCE: &str = include_str!("../../../docs/policy-reference.md");

/// Every property and every enum value of a JSON Schema.
fn names(schema: &serde_json::Value, found: &mut BTreeSet<String>) {
    if let Some(list) = schema.as_array() {
        list.iter().for_each(|value| names(value, found));
    }
    if let Some(map) = schema.as_object() {
        if let Some(properties) = map.get("properties").and_then(|value| value.as_object()) {
            found.extend(properties.keys().cloned());
        }
        let alone = map.get("const").and_then(|value| value.as_str());
        let listed = map.get("enum").and_then(|value| value.as_array()).into_iter().flatten();
        found.extend(alone.into_iter().chain(listed.filter_map(|v| v.as_str())).map(str::to_owned));
        map.values().for_each(|value| names(value, found));
    }
}

fn is_documented(name: &str) -> bool {
    let spellings =
        [format!("`{name}`"), format!("[{name}]"), format!("{name} ="), format!("`{name} ")];
    spellings.iter().any(|spelling| REFERENCE.contains(spelling))
}

#[test]
fn every_key_and_value_is_in_the_reference() {
    let mut found = BTreeSet::new();
    names(&json_schema(), &mut found);
    assert!(found.len() > 90, "the schema has {} names", found.len());
    let missing: Vec<_> = found.iter().filter(|name| !is_documented(name)).collect();
    assert!(missing.is_empty(), "not in docs/policy-reference.md: {missing:?}");
}

#[test]
fn every_code_is_in_the_reference() {
    // Codes stand in the sources as the first part of a tuple or as an argument of `warn`.
    let code =
        regex::Regex::new(r#"(?:\(|, |\{ |^\s*)"([a-z]+[0-9]*(?:-[a-z0-9]+)+)",? "#).unwrap();
    let sources = [
        include_str!("../file/read.rs"),
        include_str!("../authoring/lint.rs"),
        include_str!("../load.rs"),
        include_str!("../paths.rs"),
        include_str!("../rules/commands.rs"),
        include_str!("../rules/globs.rs"),
        include_str!("../rules/hosts.rs"),
        include_str!("../rules/mod.rs"),
        include_str!("../rules/tokens.rs"),
        include_str!("../unit.rs"),
        include_str!("../validate.rs"),
    ];
    let mut found = BTreeSet::new();
    for source in sources {
        let source = source.split("#[cfg(test)]").next().unwrap();
        found.extend(
            source.lines().flat_map(|line| code.captures_iter(line)).map(|c| c[1].to_owned()),
        );
    }
    assert!(found.len() > 15, "{found:?}");
    let ours: BTreeSet<_> =
        ["system-paths", "system-secrets", "own-state", "no-rule"].map(str::to_owned).into();
    let missing: Vec<_> = found.difference(&ours).filter(|code| !is_documented(code)).collect();
    assert!(missing.is_empty(), "not in docs/policy-reference.md: {missing:?}");
    for code in [
        Code::RuleMatched,
        Code::DefaultAnswered,
        Code::NoRule,
        Code::UnknownWord,
        Code::InlineCode,
        Code::Unresolved,
        Code::HeldByCell,
        Code::NetworkOff,
        Code::RoleWithoutTool,
        Code::AlwaysAsked,
    ] {
        assert!(is_documented(code.as_str()), "{}", code.as_str());
    }
}

fn lint_codes(text: &str) -> Vec<&'static str> {
    lint(&load_one(text).unwrap()).into_iter().map(|found| found.code).collect()
}

#[test]
fn lint_names_what_a_valid_policy_probably_does_not_mean() {
    let rule = |decision: &str, id: &str, rest: &str| {
        format!(
            "[[command.rule]]\nid = \"{id}\"\ndecision = \"{decision}\"\nreason = \"r\"\n{rest}\n"
        )
    };
    let shadow = rule("allow", "a", "program = \"x\"\ntokens = [\"y\"]")
        + &rule("deny", "b", "program = \"x\"");
    let twice = rule("deny", "a", "program = \"x\"\ntokens = [\"y\"]")
        + &rule("deny", "b", "program = \"x\"");
    for (text, code) in [
        (rule("allow", "a", "program = \"python3\"\ntokens = [\"**\"]"), "too-broad"),
        (rule("allow", "a", "program = \"bash\""), "too-broad"),
        (rule("allow", "a", "program = \"*\""), "too-broad"),
        (format!("[command]\ndefault = \"allow\"\n{}", rule("allow", "a", "program = \"x\"")), "no-effect"),
        (shadow, "shadowed"),
        (twice, "overlap"),
        ("[path]\nread = [\"{home}/**\"]".to_owned(), "too-broad"),
        ("[path]\nread = [\"/etc/sudoers\"]".to_owned(), "shadowed"),
        (
            "[[path.rule]]\nid = \"a\"\ndecision = \"deny\"\nreason = \"r\"\naccess = [\"execute\"]\npaths = [\"/a\"]".to_owned(),
            "not-enforceable",
        ),
        (
            "[network]\nmode = \"host\"\n[[network.rule]]\nid = \"a\"\ndecision = \"deny\"\nreason = \"r\"\nhost = \"x\"".to_owned(),
            "not-enforceable",
        ),
        (
            "[[network.rule]]\nid = \"a\"\ndecision = \"allow\"\nreason = \"r\"\nhost = \"x\"".to_owned(),
            "no-effect",
        ),
        (
            "[[tool.rule]]\nid = \"a\"\ndecision = \"deny\"\nreason = \"r\"\ntool = \"Bash\"".to_owned(),
            "unknown-tool",
        ),
    ] {
        assert!(lint_codes(&text).contains(&code), "{code}: {:?} for {text}", lint_codes(&text));
    }
    let fine = rule("allow", "a", "program = \"git\"\ntokens = [\"status\"]");
    assert_eq!(lint_codes(&fine), Vec::<&str>::new());
}

#[test]
fn cases_in_a_file_are_run_and_reported() {
    let policy = bound(
        "[command]\ndefault = \"allow\"\n[[command.rule]]\nid = \"no-rm\"\ndecision = \"deny\"\nreason = \"r\"\nprogram = \"rm\"\n",
    );
    let file = cases::CaseFile::read(
        "[[case]]\ncommand = \"rm x\"\nexpect = \"deny\"\nrule = \"no-rm\"\n[[case]]\nname = \"a <b> & #c\"\ncommand = \"ls\"\nexpect = \"ask\"\n[[case]]\ntool = \"read\"\narguments = { path = \"/q\" }\nexpect = \"allow\"\n",
    )
    .unwrap();
    let effects = |tool: &str, arguments: &serde_json::Value| {
        Ok(match (tool, arguments["command"].as_str()) {
            ("bash", Some(text)) => Effects { commands: vec![command(text)], ..Effects::default() },
            _ => Effects::default(),
        })
    };
    let results = cases::run_cases(&policy, &file, &effects);
    let failed: Vec<bool> = results.iter().map(|result| result.failure.is_some()).collect();
    assert_eq!(failed, [false, true, false]);
    let tap = cases::tap(&results);
    assert!(
        tap.starts_with("TAP version 14\n1..3\nok 1 - rm x\nnot ok 2 - a <b> & \\#c\n"),
        "{tap}"
    );
    let junit = cases::junit("p", &results);
    assert!(junit.contains("failures=\"1\"") && junit.contains("a &lt;b&gt; &amp; #c"), "{junit}");
    assert!(cases::CaseFile::read("[[case]]\nexpect = \"deny\"").is_err());
    assert!(cases::CaseFile::read("[[case]]\ncommand = \"x\"\nexpct = \"deny\"").is_err());
}

#[test]
fn an_explanation_names_rule_place_reason_and_what_holds() {
    let policy = bound("extends = [\"base\"]\n[command]\ndefault = \"allow\"\n");
    let effects = Effects { commands: vec![command("sudo ls\u{1b}[2J")], ..Effects::default() };
    let judgement = judge(&policy, &effects);
    let user = judgement.for_user();
    for part in
        ["deny command `sudo ls\\u{1b}[2J`", "gain-privileges (policies/base.toml:", "held by"]
    {
        assert!(user.contains(part), "{part}: {user}");
    }
    let model = judgement.for_model();
    assert!(model.contains("[gain-privileges]") && !model.contains("base.toml"), "{model}");
    assert!(!model.contains('\u{1b}'));
    let json = serde_json::to_value(&judgement).unwrap();
    assert_eq!(json["decision"], "deny");
    assert_eq!(json["findings"][0]["rule"], "gain-privileges");
    assert!(json["findings"][0]["line"].as_u64().unwrap() > 1);
    let parts = resolved(&effects, &[]);
    assert!(resolved_text(&parts).contains("command `sudo ls\\u{1b}[2J`"));
}

#[test]
fn bytes_that_are_not_text_are_an_error_with_a_place() {
    let errors =
        PolicySource::from_bytes("p.toml", Layer::User, b"version = 1\n# \xff\n").unwrap_err();
    assert_eq!((errors.0[0].code, errors.0[0].place()), ("invalid-utf8", (2, 3)));
    assert!(PolicySource::from_bytes("p.toml", Layer::User, b"\xef\xbb\xbfversion = 1\n").is_ok());
}
