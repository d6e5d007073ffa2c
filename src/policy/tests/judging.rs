//! Answers: which rule speaks for which command, path, variable, host and tool.

use super::*;
use crate::call::effects::{
    Access, Assignment, HostUse, PathOrigin, PathUse, Unresolved, UnresolvedReason,
};

const LISTED: &str = r#"
[command]
default = "deny"
unresolved = "deny"
[[command.rule]]
id = "read"
decision = "allow"
reason = "reads"
program = ["cat", "sed", "python3"]
[[command.rule]]
id = "git-read"
decision = "allow"
reason = "reads"
program = "git"
tokens = [["status", "log"], "**"]
[[command.rule]]
id = "no-sed"
decision = "deny"
reason = "test"
program = "sed"
flags = [["-i", "--in-place"]]
"#;

fn of_command(text: &str) -> Effects {
    Effects { commands: vec![command(text)], ..Effects::default() }
}

#[test]
fn an_allow_is_exact_and_a_deny_is_loose() {
    let policy = bound(LISTED);
    for (text, decision, rule) in [
        ("cat x", Decision::Allow, "read"),
        ("/usr/bin/cat x", Decision::Allow, "read"),
        ("./cat x", Decision::Deny, "command.default"),
        ("/home/user/project/cat x", Decision::Deny, "command.default"),
        ("sed -n 1p f", Decision::Allow, "read"),
        ("sed -ni.bak 1p f", Decision::Deny, "no-sed"),
        ("/tmp/sed --in-place=x f", Decision::Deny, "no-sed"),
        ("git status --short", Decision::Allow, "git-read"),
        ("git -C sub log", Decision::Allow, "git-read"),
        ("git status-stash", Decision::Deny, "command.default"),
        ("git push", Decision::Deny, "command.default"),
        ("canary", Decision::Deny, "command.default"),
    ] {
        let judgement = judge(&policy, &of_command(text));
        assert_eq!(judgement.decision, decision, "{text}");
        let mut commands = judgement.findings.iter().filter(|f| f.kind == SubjectKind::Command);
        assert_eq!(commands.next().unwrap().rule.id, rule, "{text}");
    }
}

#[test]
fn an_exception_is_exact_and_means_no_code() {
    let policy = bound(
        "[command]\ndefault = \"allow\"\n[[command.rule]]\nid = \"no-kill\"\ndecision = \"deny\"\nreason = \"r\"\n\
         program = \"kill\"\nexcept = [[\"-0\", \"*\"], [\"-l\"]]\n",
    );
    for (text, decision) in [
        ("kill 1", Decision::Deny),
        ("kill -0 1", Decision::Allow),
        ("kill -l", Decision::Allow),
        ("kill -l 9", Decision::Deny),
        ("kill -0 -9 1", Decision::Deny),
        ("kill -9 -0 1", Decision::Deny),
        ("kill -s 9 -0 1", Decision::Deny),
        ("/bin/kill -0 1", Decision::Allow),
    ] {
        assert_eq!(judge(&policy, &of_command(text)).decision, decision, "{text}");
    }
    let mut effects = of_command("kill -l");
    effects.commands[0].inline_code = Some("-l".to_owned());
    assert_eq!(judge(&policy, &effects).decision, Decision::Deny);
}

#[test]
fn a_rule_for_other_machines_passes_over_what_stays_here() {
    let policy = bound(
        "[command]\ndefault = \"allow\"\n[[command.rule]]\nid = \"no-curl\"\ndecision = \"deny\"\nreason = \"r\"\n\
         program = \"curl\"\nremote = true\n",
    );
    let mut effects = of_command("curl -d x localhost");
    assert_eq!(judge(&policy, &effects).decision, Decision::Deny);
    effects.commands[0].stays_here = true;
    assert_eq!(judge(&policy, &effects).decision, Decision::Allow);
    effects.commands.push(command("curl h"));
    assert_eq!(judge(&policy, &effects).decision, Decision::Deny, "each by itself");
}

#[test]
fn a_variable_has_exceptions_by_what_is_written() {
    let policy = bound(
        "[command]\ndefault = \"allow\"\n[[command.assignment]]\nid = \"path\"\ndecision = \"ask\"\nreason = \"r\"\n\
         name = \"PATH\"\nexcept = '\\$HOME/bin:\\$PATH'\n",
    );
    let assigned = |value: Word| Effects {
        assignments: vec![Assignment { name: "PATH".into(), value, span: Span::default() }],
        ..Effects::default()
    };
    let unknown = |text: &str| Word::Unknown { text: text.into(), prefix: String::new() };
    for (value, decision) in [
        (unknown("$HOME/bin:$PATH"), Decision::Allow),
        (unknown("\"$HOME/bin:$PATH\""), Decision::Allow),
        (unknown("/x:$HOME/bin:$PATH"), Decision::Ask),
        (unknown("$HOME/bin:$PATH$(x)"), Decision::Ask),
        (Word::Known("/x".into()), Decision::Ask),
    ] {
        let effects = assigned(value.clone());
        assert_eq!(judge(&policy, &effects).decision, decision, "{value:?}");
    }
}

#[test]
fn what_is_too_large_is_told_how_large_it_may_be() {
    let policy = bound("[command]\ndefault = \"allow\"\nunresolved = \"ask\"\n");
    let effects = Effects::opaque(UnresolvedReason::TooLarge, "true;", Span::default());
    let judgement = judge(&policy, &effects);
    assert_eq!(judgement.decision, Decision::Ask);
    assert!(
        judgement.for_model().contains("6000 commands and constructs"),
        "{}",
        judgement.for_model()
    );
}

#[test]
fn code_in_an_argument_is_not_covered_by_an_allow() {
    let policy = bound(LISTED);
    let mut effects = of_command("python3 -c x");
    assert_eq!(judge(&policy, &effects).decision, Decision::Allow);
    effects.commands[0].inline_code = Some("-c".to_owned());
    let judgement = judge(&policy, &effects);
    assert_eq!(judgement.decision, Decision::Deny);
    assert_eq!(judgement.deciding().next().unwrap().code, Code::InlineCode);
}

#[test]
fn every_command_is_judged_and_the_strictest_counts() {
    let policy = bound(LISTED);
    let mut effects = of_command("cat x");
    effects.commands.push(command("rm x"));
    assert_eq!(judge(&policy, &effects).decision, Decision::Deny);
    let told = judge(&policy, &effects).for_model();
    assert!(told.contains("rm x") && !told.contains("cat x"), "{told}");
}

fn path_effects(path: &str, access: Access) -> Effects {
    let origin = PathOrigin::ToolArgument;
    let span = Span::default();
    let path = PathUse { path: path.into(), access, origin, is_pattern: false, span };
    Effects { paths: vec![path], ..Effects::default() }
}

#[test]
fn a_path_gets_the_same_answer_through_every_tool_and_through_links() {
    let policy = bound(
        r#"
extends = ["base"]
[path]
default = "ask"
read = ["{workspace}/**"]
write = ["{workspace}/**"]
"#,
    );
    for (path, access, decision) in [
        ("/home/user/project/a", Access::Read, Decision::Allow),
        ("/home/user/project", Access::Write, Decision::Allow),
        ("/home/user/project/.env", Access::Read, Decision::Deny),
        ("/home/user/project/.git/hooks/pre-commit", Access::Write, Decision::Deny),
        ("/home/user/project/.git/hooks/pre-commit", Access::Read, Decision::Allow),
        ("/home/user/other", Access::Read, Decision::Ask),
        ("/usr/include/stdio.h", Access::Read, Decision::Allow),
        ("/usr/include/stdio.h", Access::Write, Decision::Deny),
        ("/etc/shadow", Access::Read, Decision::Deny),
        ("/dev/null", Access::Write, Decision::Allow),
        ("/dev/sda", Access::Write, Decision::Deny),
        ("/home/user/.ssh/id_rsa", Access::Read, Decision::Deny),
    ] {
        let effects = path_effects(path, access);
        for tool in ["bash", "read", "write", "grep"] {
            let query = Query {
                tool,
                role: None,
                effects: &effects,
                real_paths: &[],
                arguments: &serde_json::Value::Null,
                headless: true,
            };
            assert_eq!(policy.judge(&query).decision, decision, "{tool} {path} {access:?}");
        }
    }
    let effects = path_effects("/home/user/project/link", Access::Read);
    let query = Query {
        tool: "read",
        role: None,
        effects: &effects,
        real_paths: &[(0, "/etc/shadow".into())],
        arguments: &serde_json::Value::Null,
        headless: false,
    };
    assert_eq!(policy.judge(&query).decision, Decision::Deny, "a link is what it points to");
}

#[test]
fn directories_of_the_program_itself_are_out_of_reach() {
    let set = load_one("[path]\ndefault = \"allow\"\n").unwrap();
    let places = Places { protected: vec!["/state/[x]{a}".into()], ..Places::example() };
    let policy = set.bind(&places).unwrap();
    for (path, decision) in [("/state/[x]{a}/log", Decision::Deny), ("/state/x", Decision::Allow)] {
        assert_eq!(judge(&policy, &path_effects(path, Access::Read)).decision, decision, "{path}");
    }
}

#[test]
fn variables_in_front_of_commands_have_rules_of_their_own() {
    let policy = bound("extends = [\"base\"]\n[command]\ndefault = \"ask\"\n");
    let open = bound("extends = [\"base\"]\n[command]\ndefault = \"allow\"\n");
    for (name, value, strict, loose) in [
        ("RUST_LOG", "debug", Decision::Ask, Decision::Allow),
        ("FOO", "1", Decision::Ask, Decision::Allow),
        ("LD_PRELOAD", "x", Decision::Deny, Decision::Deny),
        ("PATH", "x", Decision::Ask, Decision::Ask),
        ("NODE_OPTIONS", "--max-old-space-size=1", Decision::Ask, Decision::Allow),
    ] {
        let mut effects = of_command("ls");
        effects.commands[0].assignments = vec![Assignment {
            name: name.to_owned(),
            value: Word::Known(value.to_owned()),
            span: Span::default(),
        }];
        assert_eq!(judge(&policy, &effects).decision, strict, "{name}");
        assert_eq!(judge(&open, &effects).decision, loose, "{name}");
    }
}

#[test]
fn what_cannot_be_told_is_answered_as_the_reference_says() {
    let deny_rule =
        "[[command.rule]]\nid = \"a\"\ndecision = \"deny\"\nreason = \"r\"\nprogram = \"rm\"\n";
    let held = ("[command]\ndefault = \"allow\"\n".to_owned(), Decision::Allow, Code::HeldByCell);
    let named =
        (format!("[command]\ndefault = \"allow\"\n{deny_rule}"), Decision::Ask, Code::Unresolved);
    let unset = ("[command]\ndefault = \"deny\"\n".to_owned(), Decision::Ask, Code::Unresolved);
    let set = (
        "[command]\ndefault = \"allow\"\nunresolved = \"deny\"\n".to_owned(),
        Decision::Deny,
        Code::Unresolved,
    );
    let other = (
        "[command]\nunresolved = { default = \"deny\", path-word = \"allow\" }\n".to_owned(),
        Decision::Deny,
        Code::Unresolved,
    );
    let none = (String::new(), Decision::Ask, Code::Unresolved);
    let effects = Effects {
        unresolved: vec![Unresolved {
            reason: UnresolvedReason::ProgramWord,
            text: "$c".to_owned(),
            span: Span::default(),
        }],
        ..Effects::default()
    };
    for (text, decision, code) in [held, named, unset, set, other, none] {
        let judgement = judge(&bound(&text), &effects);
        assert_eq!(judgement.decision, decision, "{text}");
        assert!(judgement.findings.iter().any(|finding| finding.code == code), "{text}");
    }
}

#[test]
fn an_unknown_word_that_could_be_a_denied_one_is_asked_about() {
    let policy = bound(
        "[command]\ndefault = \"allow\"\n[[command.rule]]\nid = \"a\"\ndecision = \"deny\"\nreason = \"r\"\nprogram = \"git\"\ntokens = [\"push\"]\n",
    );
    let mut effects = of_command("git status");
    assert_eq!(judge(&policy, &effects).decision, Decision::Allow);
    effects.commands[0].arguments[0] = Word::Unknown { text: "$x".into(), prefix: String::new() };
    assert_eq!(judge(&policy, &effects).decision, Decision::Ask);
    effects.commands[0].arguments[0] = Word::Unknown { text: "st$x".into(), prefix: "st".into() };
    assert_eq!(judge(&policy, &effects).decision, Decision::Allow);
}

#[test]
fn hosts_are_answered_by_rules_then_default_then_mode() {
    let host = |name: &str, port| Effects {
        hosts: vec![HostUse { host: name.to_owned(), port, span: Span::default() }],
        ..Effects::default()
    };
    let rule = "[[network.rule]]\nid = \"a\"\ndecision = \"allow\"\nreason = \"r\"\nhost = \"ok.test\"\nports = [443]\n";
    for (text, name, port, decision) in [
        (String::new(), "x.test", None, Decision::Deny),
        ("[network]\nmode = \"host\"\n".to_owned(), "x.test", None, Decision::Allow),
        (format!("[network]\nmode = \"proxy\"\n{rule}"), "ok.test", Some(443), Decision::Allow),
        (format!("[network]\nmode = \"proxy\"\n{rule}"), "ok.test", Some(80), Decision::Deny),
        (format!("[network]\nmode = \"proxy\"\n{rule}"), "ok.test", None, Decision::Deny),
        (format!("[network]\nmode = \"proxy\"\n{rule}"), "x.test", Some(443), Decision::Deny),
    ] {
        assert_eq!(judge(&bound(&text), &host(name, port)).decision, decision, "{text} {name}");
    }
}

#[test]
fn tools_are_judged_by_name_and_arguments() {
    let policy = bound(
        r#"
[tool]
default = "ask"
[[tool.rule]]
id = "list"
decision = "allow"
reason = "lists"
tool = "mcp__github__list_*"
[[tool.rule]]
id = "not-there"
decision = "deny"
reason = "that repository is closed"
tool = "mcp__github__*"
arguments = [{ key = "owner", equals = "closed" }]
match = ['mcp__github__list_issues {"owner":"closed"}']
not_match = ['mcp__github__list_issues {"owner":"open"}', "mcp__gitlab__x"]
"#,
    );
    let effects = Effects::default();
    for (tool, arguments, decision) in [
        ("mcp__github__list_issues", "{}", Decision::Allow),
        ("mcp__github__list_issues", r#"{"owner":"closed"}"#, Decision::Deny),
        ("mcp__github__create", "{}", Decision::Ask),
        ("mcp__github__list", "{}", Decision::Ask),
    ] {
        let arguments = serde_json::from_str(arguments).unwrap();
        let query = Query {
            tool,
            role: None,
            effects: &effects,
            real_paths: &[],
            arguments: &arguments,
            headless: false,
        };
        assert_eq!(policy.judge(&query).decision, decision, "{tool} {arguments}");
    }
}

#[test]
fn roles_have_only_the_tools_that_are_listed() {
    let policy = bound(
        "[roles]\ndefault = \"reader\"\n[roles.reader]\ntools = [\"read\", \"mcp__a__*\"]\n[roles.nobody]\ntools = []\n",
    );
    for (role, tool, passes) in [
        (Some("reader"), "read", true),
        (Some("reader"), "mcp__a__x", true),
        (Some("reader"), "write", false),
        (None, "read", true),
        (None, "write", false),
        (Some("nobody"), "read", false),
        (Some("stranger"), "read", false),
    ] {
        assert_eq!(policy.role_gate(role, tool) == RoleVerdict::Pass, passes, "{role:?} {tool}");
    }
    assert_eq!(bound("").role_gate(None, "write"), RoleVerdict::Pass);
}

#[test]
fn the_strictest_layer_wins() {
    let allow = "[path]\ndefault = \"allow\"\n[command]\ndefault = \"allow\"\n";
    let deny =
        "[[command.rule]]\nid = \"no-rm\"\ndecision = \"deny\"\nreason = \"r\"\nprogram = \"rm\"\n";
    for layers in [
        [(Layer::Administrator, deny), (Layer::Explicit, allow)],
        [(Layer::Explicit, allow), (Layer::Workspace, deny)],
        [(Layer::User, allow), (Layer::Administrator, deny)],
    ] {
        let set = load_layers(&layers).unwrap();
        let policy = set.bind(&Places::example()).unwrap();
        assert_eq!(judge(&policy, &of_command("rm x")).decision, Decision::Deny);
        assert_eq!(judge(&policy, &of_command("ls")).decision, Decision::Allow);
    }
}
