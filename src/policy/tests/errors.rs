//! What is wrong with a file is said with its place, all of it at once.

use super::*;

fn codes(text: &str) -> Vec<&'static str> {
    match load_one(text) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.0.iter().map(|error| error.code).collect(),
    }
}

const RULE: &str = "id = \"a\"\ndecision = \"deny\"\nreason = \"r\"\n";

#[test]
fn each_mistake_has_its_code() {
    for (text, code) in [
        ("[path", "invalid-toml"),
        ("version = 2\n[future]\nx = 1", "unknown-version"),
        ("[pth]\nread = []", "unknown-key"),
        ("[path]\nraed = []", "unknown-key"),
        ("[path]\ndefault = \"maybe\"", "unknown-value"),
        ("[path]\ndefault = 1", "wrong-type"),
        ("[path]\nread = [1]", "wrong-type"),
        ("[path]\nread = [\"{workspce}/**\"]", "unknown-placeholder"),
        ("[path]\nread = [\"\"]", "empty-pattern"),
        ("[path]\nread = [\"/a/**b\"]", "bad-pattern"),
        ("[path]\nread = [\"/a/\"]", "never-matches"),
        ("[path]\nread = [\"src/**\"]", "relative-pattern"),
        ("[path]\nread = [\"/a/*.rs\"]", "not-grantable"),
        ("extends = [\"bsae\"]", "unknown-policy"),
        ("[command]\nunresolved = { syntx = \"deny\" }", "unknown-key"),
        ("\0", "nul-byte"),
        ("roles = 1", "wrong-type"),
        ("[limits]\nwall_ms = -1", "wrong-type"),
        ("[env]\nset = { LD_PRELOAD = \"x\" }", "code-variable"),
        ("[audit]\nredact = [\"(\"]", "invalid-regex"),
        ("[audit]\nsign = true", "not-in-force"),
        ("[audit]\nredact = [\"(a{1000}){1000}\"]", "invalid-regex"),
    ] {
        assert_eq!(codes(text), [code], "{text:?}");
    }
}

#[test]
fn each_mistake_in_a_rule_has_its_code() {
    for (text, code) in [
        ("[[command.rule]]\nprogram = \"git status\"\n", "space-in-token"),
        ("[[command.rule]]\nprogram = \"git\"\ntokens = [\"push origin\"]\n", "space-in-token"),
        ("[[command.rule]]\nprogram = []\n", "never-matches"),
        ("[[command.rule]]\nprogram = \"\"\n", "empty-pattern"),
        ("[[command.rule]]\nprogram = \"a\"\nflags = [[\"x\"]]\n", "bad-pattern"),
        (
            "[[command.rule]]\nprogram = \"a\"\ntokens = [{ regex = \"a{99999999}\" }]\n",
            "invalid-regex",
        ),
        ("[[command.rule]]\nprogram = \"a\"\nmatch = [\"b\"]\n", "failing-example"),
        ("[[command.rule]]\nprogram = \"a\"\nnot_match = [\"a\"]\n", "failing-example"),
        ("[[command.rule]]\nprogram = \"a\"\nprogam = \"b\"\n", "unknown-key"),
        ("[[command.rule]]\n", "missing-key"),
        ("[[path.rule]]\npaths = []\n", "never-matches"),
        ("[[path.rule]]\npaths = [\"/a\"]\nexcept = [\"/a\"]\n", "never-matches"),
        ("[[network.rule]]\nhost = \"https://x\"\n", "bad-host"),
        ("[[network.rule]]\nhost = \"x\"\nports = [0]\n", "never-matches"),
        ("[[tool.rule]]\ntool = \"*x*\"\n", "bad-pattern"),
        ("[[tool.rule]]\ntool = \"x\"\narguments = [{ key = \"a\" }]\n", "empty-pattern"),
        ("[[command.assignment]]\nname = \"A B\"\n", "space-in-token"),
    ] {
        let (head, rest) = text.split_once('\n').unwrap();
        assert_eq!(codes(&format!("{head}\n{RULE}{rest}")), [code], "{text:?}");
    }
    let empty = RULE.replace("\"r\"", "\" \"");
    assert_eq!(codes(&format!("[[command.rule]]\nprogram = \"a\"\n{empty}")), ["empty-reason"]);
}

#[test]
fn all_mistakes_come_at_once_with_line_column_and_help() {
    let text = "[path]\nraed = []\nwirte = []\ndefault = \"alow\"\n\n[[command.rule]]\nid = \"a\"\ndecision = \"deny\"\nprogram = \"a b\"\n\n[[command.rule]]\nid = \"a\"\ndecision = \"ask\"\nreason = \"r\"\nprogram = \"x\"\n";
    let errors = load_one(text).unwrap_err();
    let found: Vec<_> = errors.0.iter().map(|error| (error.code, error.place())).collect();
    assert!(found.contains(&("unknown-key", (2, 1))), "{found:?}");
    assert!(found.contains(&("unknown-key", (3, 1))), "{found:?}");
    assert!(found.contains(&("unknown-value", (4, 11))), "{found:?}");
    assert!(found.iter().any(|(code, _)| *code == "missing-key"), "{found:?}");
    let shown = errors.to_string();
    for part in [
        "p0.toml:2:1",
        "did you mean `read`?",
        "did you mean `write`?",
        "did you mean `allow`?",
        "^^^^",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn ids_are_unique_over_the_files_of_a_unit() {
    let rule = "[[command.rule]]\nid = \"gain-privileges\"\ndecision = \"ask\"\nreason = \"r\"\nprogram = \"x\"\n";
    assert_eq!(codes(rule), Vec::<&str>::new());
    assert_eq!(codes(&format!("extends = [\"base\"]\n{rule}")), ["duplicate-id"]);
}

#[test]
fn a_workspace_file_may_only_ask_and_deny() {
    for text in [
        "[command]\ndefault = \"allow\"",
        "[command]\nunresolved = \"allow\"",
        "[command]\nunresolved = { path-word = \"allow\" }",
        "[path]\nread = [\"/a\"]",
        "[path]\ncaches = [\"npm\"]",
        "[network]\nmode = \"host\"",
        "[env]\npass = [\"X\"]",
        "[env]\nset = { X = \"1\" }",
        "[audit]\nredact = [\"x\"]",
        "[sandbox]\ndegraded = \"allow\"",
        "[sandbox]\nidentity = \"caller\"",
        "[[hooks.rule]]\nid = \"h\"\nreason = \"r\"\nevent = \"pre-tool\"\ntools = \"*\"\nargv = [\"x\"]",
        "[[command.rule]]\nid = \"a\"\ndecision = \"allow\"\nreason = \"r\"\nprogram = \"x\"",
        "extends = [\"readonly\"]",
    ] {
        let errors = load_layers(&[(Layer::Workspace, text)]).unwrap_err();
        assert!(errors.0.iter().all(|error| error.code == "workspace-allows"), "{text}: {errors}");
        assert!(load_one(text).is_ok(), "{text}");
    }
    for text in ["extends = [\"base\"]", "[command]\ndefault = \"deny\"", "[limits]\nwall_ms = 1"] {
        assert!(load_layers(&[(Layer::Workspace, text)]).is_ok(), "{text}");
    }
}

#[test]
fn a_cycle_is_named_and_a_diamond_is_read_once() {
    let files = |name: &str| {
        let text = match name {
            "a" => "extends = [\"b\"]",
            "b" => "extends = [\"a\"]",
            "left" | "right" => "extends = [\"top\"]",
            "top" => {
                "[[command.rule]]\nid = \"t\"\ndecision = \"deny\"\nreason = \"r\"\nprogram = \"x\""
            }
            _ => return None,
        };
        Some(PolicySource { name: name.into(), layer: Layer::Explicit, text: text.into() })
    };
    let errors = load(vec![files("a").unwrap()], &files).unwrap_err();
    assert_eq!(errors.0[0].code, "extends-cycle");
    let diamond = "extends = [\"left\", \"right\"]".to_owned();
    let source = PolicySource { name: "d".into(), layer: Layer::Explicit, text: diamond };
    assert_eq!(load(vec![source], &files).unwrap().files().len(), 4);
    // A user's file in a directory `policies`, with the name of a built-in one.
    let (name, text) = ("policies/workspace.toml".into(), "extends = [\"workspace\"]".into());
    let source = PolicySource { name, layer: Layer::Explicit, text };
    assert_eq!(load(vec![source], &files).unwrap().files().len(), 3);
}

#[test]
fn a_file_over_a_mebibyte_is_refused_before_it_is_read() {
    let text = format!("# {}\n", "x".repeat(crate::base::limits::POLICY_BYTES_MAX));
    assert_eq!(codes(&text), ["file-too-large"]);
}

#[test]
fn the_digest_depends_on_layers_and_texts_alone() {
    let text = "[command]\ndefault = \"deny\"\n";
    let base = "extends = [\"base\"]\n";
    let digest = |files: &[(Layer, &str)]| load_layers(files).unwrap().digest();
    let both = digest(&[(Layer::User, text), (Layer::Explicit, base)]);
    assert_eq!(both, digest(&[(Layer::Explicit, base), (Layer::User, text)]));
    assert_ne!(both, digest(&[(Layer::User, text)]));
    assert_ne!(digest(&[(Layer::User, text)]), digest(&[(Layer::Explicit, text)]));
}
