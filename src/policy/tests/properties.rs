//! Properties that hold for every policy and call: only subtract, no order, intersection, purity.

use super::*;
use crate::call::effects::{Access, PathOrigin, PathUse, Unresolved, UnresolvedReason};
use proptest::prelude::*;

const PROGRAMS: [&str; 4] = ["rm", "git", "ls", "/w/tool"];
const WORDS: [&str; 5] = ["push", "status", "-f", "x", "--force"];
const PATHS: [&str; 5] = ["/a/**", "/a/b/**", "/a/b", "**/.env", "{workspace}/**"];
const USED: [&str; 5] = ["/a", "/a/b/c", "/x/.env", "/home/user/project/x", "/q"];
const DECISIONS: [&str; 3] = ["allow", "ask", "deny"];

/// A rule as text; `index` makes its id unique.
#[derive(Debug, Clone)]
struct Rule {
    decision: usize,
    is_path: bool,
    program: usize,
    token: Option<usize>,
    path: usize,
}

impl Rule {
    fn text(&self, index: usize) -> String {
        let decision = DECISIONS[self.decision];
        let head = format!("id = \"r{index}\"\ndecision = \"{decision}\"\nreason = \"r\"\n");
        if self.is_path {
            // An allow must be grantable.
            let path = if self.decision == 0 && self.path == 3 { 0 } else { self.path };
            return format!("[[path.rule]]\n{head}paths = [\"{}\"]\n", PATHS[path]);
        }
        let tokens = self
            .token
            .map_or(String::new(), |token| format!("tokens = [\"{}\", \"**\"]\n", WORDS[token]));
        format!("[[command.rule]]\n{head}program = \"{}\"\n{tokens}", PROGRAMS[self.program])
    }
}

#[derive(Debug, Clone)]
struct Policy {
    default: Option<usize>,
    rules: Vec<Rule>,
}

impl Policy {
    fn text(&self) -> String {
        let mut text = String::new();
        if let Some(default) = self.default {
            let default = DECISIONS[default];
            text.push_str(&format!(
                "[command]\ndefault = \"{default}\"\n[path]\ndefault = \"{default}\"\n"
            ));
        }
        let rules = self.rules.iter().enumerate();
        rules.for_each(|(index, rule)| text.push_str(&rule.text(index)));
        text
    }

    fn bound(&self) -> BoundPolicy {
        bound(&self.text())
    }
}

fn rules() -> impl Strategy<Value = Rule> {
    (0..3_usize, any::<bool>(), 0..4_usize, proptest::option::of(0..5_usize), 0..5_usize).prop_map(
        |(decision, is_path, program, token, path)| Rule {
            decision,
            is_path,
            program,
            token,
            path,
        },
    )
}

fn policies() -> impl Strategy<Value = Policy> {
    (proptest::option::of(0..3_usize), proptest::collection::vec(rules(), 0..6))
        .prop_map(|(default, rules)| Policy { default, rules })
}

fn effects() -> impl Strategy<Value = Effects> {
    let word = prop_oneof![
        (0..5_usize).prop_map(|word| Word::Known(WORDS[word].to_owned())),
        Just(Word::Unknown { text: "$x".to_owned(), prefix: String::new() }),
    ];
    let command = (0..4_usize, proptest::collection::vec(word, 0..4), any::<bool>()).prop_map(
        |(program, arguments, code)| CommandUse {
            arguments,
            inline_code: code.then(|| "-c".to_owned()),
            ..command(PROGRAMS[program])
        },
    );
    let access = prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::Execute)];
    let path = (0..5_usize, access).prop_map(|(path, access)| PathUse {
        path: USED[path].into(),
        access,
        origin: PathOrigin::ToolArgument,
        is_pattern: false,
        span: Span::default(),
    });
    let unresolved = Just(Unresolved {
        reason: UnresolvedReason::ProgramWord,
        text: "$x".to_owned(),
        span: Span::default(),
    });
    (
        proptest::collection::vec(command, 0..3),
        proptest::collection::vec(path, 0..3),
        proptest::collection::vec(unresolved, 0..2),
    )
        .prop_map(|(commands, paths, unresolved)| Effects {
            commands,
            paths,
            unresolved,
            ..Effects::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_deny_rule_never_loosens_and_an_ask_rule_never_allows(
        policy in policies(), extra in rules(), effects in effects()
    ) {
        let before = judge(&policy.bound(), &effects).decision;
        let mut more = policy.clone();
        more.rules.push(Rule { decision: 2, ..extra.clone() });
        prop_assert!(judge(&more.bound(), &effects).decision >= before);
        let mut more = policy;
        more.rules.push(Rule { decision: 1, ..extra });
        prop_assert!(judge(&more.bound(), &effects).decision >= before.min(Decision::Ask));
    }

    #[test]
    fn no_rule_undoes_the_deny_of_another(policy in policies(), extra in rules(), effects in effects()) {
        let judgement = judge(&policy.bound(), &effects);
        let by_rule = judgement.deciding().any(|finding| finding.code == Code::RuleMatched);
        prop_assume!(by_rule);
        let mut more = policy;
        more.rules.push(extra);
        prop_assert!(judge(&more.bound(), &effects).decision >= judgement.decision);
    }

    #[test]
    fn order_plays_no_part(policy in policies(), effects in effects()) {
        let mut turned = policy.clone();
        turned.rules.reverse();
        // Ids go with the rules, so that the findings can be compared.
        let names = |judgement: Judgement| (judgement.decision, judgement.findings.len());
        prop_assert_eq!(
            names(judge(&policy.bound(), &effects)),
            names(judge(&turned.bound(), &effects))
        );
    }

    #[test]
    fn narrowing_is_intersection(left in policies(), right in policies(), effects in effects()) {
        let sets = [load_one(&left.text()).unwrap(), load_one(&right.text()).unwrap()];
        let answer = |set: &PolicySet| judge(&set.bind(&Places::example()).unwrap(), &effects).decision;
        let both = sets[0].narrow(&sets[1]);
        prop_assert_eq!(answer(&both), answer(&sets[0]).max(answer(&sets[1])));
        prop_assert_eq!(both.digest(), sets[1].narrow(&sets[0]).digest());
        prop_assert_eq!(sets[0].narrow(&sets[0]).digest(), sets[0].digest());
        prop_assert!(both.is_at_most(&sets[0]) && both.is_at_most(&sets[1]));
    }

    #[test]
    fn where_no_difference_is_found_nothing_is_allowed_that_was_not(
        given in policies(), earlier in policies(), common in policies(), effects in effects()
    ) {
        // Often alike, so that narrower pairs occur.
        let join = |own: &Policy| Policy {
            default: own.default.or(common.default),
            rules: common.rules.iter().chain(own.rules.iter().take(1)).cloned().collect(),
        };
        let given = join(&given).bound();
        for earlier in [join(&earlier).bound(), common.bound()] {
            if differences(&given, &earlier).is_empty() {
                prop_assert!(judge(&given, &effects).decision >= judge(&earlier, &effects).decision);
            }
        }
    }

    #[test]
    fn another_layer_never_undoes_what_a_rule_or_default_refused(
        policy in policies(), layer in policies(), effects in effects()
    ) {
        let before = judge(&policy.bound(), &effects);
        prop_assume!(before.deciding().any(|finding| finding.rule.id != "no-rule"));
        let (text, extra) = (policy.text(), layer.text());
        let set = load_layers(&[(Layer::Explicit, &text), (Layer::User, &extra)]).unwrap();
        let after = judge(&set.bind(&Places::example()).unwrap(), &effects).decision;
        prop_assert!(after >= before.decision);
    }

    #[test]
    fn judging_is_pure(policy in policies(), effects in effects()) {
        let policy = policy.bound();
        prop_assert_eq!(judge(&policy, &effects), judge(&policy, &effects));
    }

    #[test]
    fn what_the_cell_does_not_grant_is_not_allowed(policy in policies(), used in 0..5_usize) {
        let policy = policy.bound();
        let path = std::path::Path::new(USED[used]);
        let origin = PathOrigin::ToolArgument;
        let span = Span::default();
        let path_use =
            PathUse { path: path.into(), access: Access::Read, origin, is_pattern: false, span };
        let effects = Effects { paths: vec![path_use], ..Effects::default() };
        if judge(&policy, &effects).decision == Decision::Allow {
            let plan = policy.cell();
            let granted = plan.grants.iter().any(|grant| {
                path.starts_with(&grant.path) && grant.access.contains(&Access::Read)
            });
            prop_assert!(granted, "{path:?} is allowed and not granted");
        }
    }

    #[test]
    fn no_text_makes_the_loader_fail_in_another_way(text in "\\PC{0,200}") {
        // Only that it returns; most texts are errors.
        drop(load_one(&text));
    }
}
