//! What one policy allows that another does not: pairs of which the answer is known. That nothing is
//! overlooked is a property, in `properties`.

use super::*;

fn rule(decision: &str, rest: &str) -> String {
    let kind = if rest.starts_with("paths") { "path" } else { "command" };
    format!(
        "[[{kind}.rule]]\nid = \"{decision}-x\"\ndecision = \"{decision}\"\nreason = \"r\"\n{rest}\n"
    )
}

fn found(given: &str, earlier: &str) -> Vec<String> {
    differences(&bound(given), &bound(earlier))
}

#[test]
fn less_is_no_difference() {
    let git = rule("deny", "program = \"git\"\ntokens = [\"push\", \"**\"]");
    let asks = "[command]\ndefault = \"ask\"\n";
    let denies = "[command]\ndefault = \"deny\"\n";
    let allows = rule("allow", "program = [\"ls\", \"cat\"]");
    let tree = "[path]\ndefault = \"deny\"\nread = [\"{workspace}/**\"]\n";
    let below = "[path]\ndefault = \"deny\"\nread = [\"{workspace}/src/**\"]\n";
    for (given, earlier) in [
        (String::new(), String::new()),
        (git.clone(), String::new()),
        (format!("{denies}{git}"), format!("{asks}{git}")),
        (format!("{denies}{allows}"), format!("{asks}{git}{allows}")),
        (format!("{asks}{}", rule("allow", "program = \"ls\"")), format!("{asks}{allows}")),
        (below.to_owned(), tree.to_owned()),
        (format!("{tree}{}", rule("deny", "paths = [\"**/.env\"]")), tree.to_owned()),
        ("[limits]\nwall_ms = 1000\n".to_owned(), String::new()),
    ] {
        assert_eq!(found(&given, &earlier), Vec::<String>::new(), "{given}\n---\n{earlier}");
    }
}

#[test]
fn more_is_a_difference_that_is_named() {
    let push = rule("deny", "program = \"git\"\ntokens = [\"push\", \"**\"]");
    let tree = "[path]\ndefault = \"deny\"\nread = [\"{workspace}/**\"]\n";
    let wide = "[path]\ndefault = \"deny\"\nread = [\"{home}/**\"]\n";
    let asks = "[command]\ndefault = \"ask\"\n";
    let path = "[[command.assignment]]\nid = \"deny-x\"\ndecision = \"deny\"\nreason = \"r\"\nname = \"PATH\"\n";
    for (given, earlier, named) in [
        (format!("{push}except = [[\"push\", \"*\"]]\n"), push.clone(), "says deny and is missing"),
        (format!("{push}remote = true\n"), push.clone(), "says deny and is missing"),
        (format!("{path}except = \"a\"\n"), path.to_owned(), "says deny and is missing"),
        (String::new(), push.clone(), "`deny-x` (p0.toml:2) says deny and is missing"),
        (push.replace("deny", "ask"), push.clone(), "says deny and is missing"),
        (push.replace("push", "pull"), push.clone(), "says deny and is missing"),
        (asks.replace("ask", "allow"), asks.to_owned(), "`command.default` is allow; it was ask"),
        (format!("{asks}{}", rule("allow", "program = \"ls\"")), asks.to_owned(), "says allow"),
        (wide.to_owned(), tree.to_owned(), "`path.read`"),
        (asks.to_owned() + "unresolved = \"allow\"", asks.to_owned(), "`command.unresolved`"),
        ("[command]\ndefault = \"allow\"".to_owned(), String::new(), "`command.default` is set"),
        ("[network]\nmode = \"host\"".to_owned(), String::new(), "`network.mode`"),
        ("[limits]\nwall_ms = 999999999".to_owned(), String::new(), "`[limits]`"),
        ("[env]\npass = [\"SSH_AUTH_SOCK\"]".to_owned(), String::new(), "`env.pass`"),
        (String::new(), "[permission]\nask = [\"bash\"]".to_owned(), "`[permission]`"),
        (String::new(), "[sandbox]\nrequire = [\"cgroup\"]".to_owned(), "`sandbox.require`"),
    ] {
        let found = found(&given, &earlier).join("\n");
        assert!(found.contains(named), "`{named}` is not in: {found}\n{given}\n---\n{earlier}");
    }
}

#[test]
fn built_in_policies_are_compared_by_what_they_say() {
    let built_in = |name: &str| {
        let set = load(vec![built_in_source(name).unwrap()], &|_| None).unwrap();
        set.bind(&Places::example()).unwrap()
    };
    let wider = |given: &str, earlier: &str| differences(&built_in(given), &built_in(earlier));
    assert_eq!(wider("readonly", "workspace"), Vec::<String>::new());
    assert_eq!(wider("readonly", "readonly"), Vec::<String>::new());
    assert!(!wider("workspace", "readonly").is_empty());
    assert!(!wider("ci", "readonly").is_empty());
    assert!(!wider("base", "readonly").is_empty());
}
