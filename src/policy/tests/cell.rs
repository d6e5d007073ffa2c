//! What the path rules of a policy mean to the cell.

use super::*;
use crate::call::effects::Access;
use std::path::Path;

fn grant<'p>(plan: &'p CellPlan, path: &str) -> Option<&'p PlannedGrant> {
    plan.grants.iter().find(|grant| grant.path == Path::new(path))
}

#[test]
fn the_workspace_policy_grants_the_workspace_and_masks_what_is_denied_inside() {
    let set = load(vec![built_in_source("workspace").unwrap()], &|_| None).unwrap();
    let plan = set.bind(&Places::example()).unwrap().cell();
    let workspace = grant(&plan, "/home/user/project").unwrap();
    assert_eq!(workspace.access.len(), 3);
    let system = grant(&plan, "/usr").unwrap();
    assert!(!system.access.contains(&Access::Write) && system.access.contains(&Access::Execute));
    assert!(grant(&plan, "/home/user").is_none() && grant(&plan, "/proc").is_none());
    let mask = |rule: &str, pattern: &str| {
        plan.masks.iter().any(|mask| {
            mask.rule_id == rule
                && match &mask.pattern {
                    PlannedPattern::Exact(path) => path == Path::new(pattern),
                    PlannedPattern::Glob { root, pattern: rest } => {
                        format!("{}//{rest}", root.display()) == pattern
                    }
                }
        })
    };
    assert!(mask("git-hooks-and-config", "/home/user/project/.git/hooks"));
    assert!(mask("git-hooks-and-config", "/home/user/project/.git/config"));
    assert!(mask("secrets-in-trees", "/home/user/project//**/.env"));
    assert!(mask("own-policy", "/home/user/project/.stoplog"));
    assert!(mask("system-secrets", "/etc//shadow*"));
    assert!(!mask("system-files", "/usr"), "what is not writable needs no mask against writing");
    assert!(!plan.masks.iter().any(|mask| mask.rule_id == "home-credentials"), "not granted");
    assert_eq!((plan.network, plan.degraded), (NetworkMode::Off, Degraded::Refuse));
}

#[test]
fn a_workspace_below_a_system_directory_stays_writable() {
    let set = load(vec![built_in_source("workspace").unwrap()], &|_| None).unwrap();
    let places = Places { workspace: "/usr/src/project".into(), ..Places::example() };
    let plan = set.bind(&places).unwrap().cell();
    assert!(grant(&plan, "/usr/src/project").unwrap().access.contains(&Access::Write));
    assert!(!plan.masks.iter().any(|mask| mask.pattern == PlannedPattern::Exact("/usr".into())));
}

#[test]
fn layers_that_restrict_are_intersected() {
    let wide = "[path]\ndefault = \"ask\"\nread = [\"/a/**\"]\nwrite = [\"/a/**\"]\n";
    let narrow = "[path]\ndefault = \"deny\"\nsystem = false\nread = [\"/a/b/**\", \"/c/**\"]\n";
    let set = load_layers(&[(Layer::User, wide), (Layer::Administrator, narrow)]).unwrap();
    let plan = set.bind(&Places::example()).unwrap().cell();
    let paths: Vec<_> = plan.grants.iter().map(|grant| grant.path.as_path()).collect();
    assert_eq!(paths, [Path::new("/a/b")]);
    assert!(!plan.grants[0].access.contains(&Access::Write));
}

#[test]
fn a_grant_inside_what_is_denied_goes() {
    let policy = bound(
        "[path]\ndefault = \"deny\"\nsystem = false\nread = [\"/a/b/**\"]\nwrite = [\"/a/b/**\"]\n[[path.rule]]\nid = \"no-a\"\ndecision = \"deny\"\nreason = \"r\"\naccess = [\"write\"]\npaths = [\"/a/**\"]\n",
    );
    let plan = policy.cell();
    assert!(!grant(&plan, "/a/b").unwrap().access.contains(&Access::Write));
    assert!(grant(&plan, "/a/b").unwrap().access.contains(&Access::Read));
}

#[test]
fn an_exception_is_spelled_from_the_searched_directory() {
    let text = "[path]\ndefault = \"ask\"\nread = [\"{workspace}/**\"]\n\
        [[path.rule]]\nid = \"keys\"\ndecision = \"deny\"\nreason = \"r\"\naccess = [\"read\"]\n\
        paths = [\"**/*.key\"]\nexcept = [\"{workspace}/docs/*.key\"]\n";
    let set = load_layers(&[(Layer::User, text)]).unwrap();
    let plan = set.bind(&Places::example()).unwrap().cell();
    let mask = plan.masks.iter().find(|mask| mask.rule_id == "keys").unwrap();
    assert_eq!(mask.except, ["docs/*.key"]);
}

#[test]
fn a_pattern_deeper_than_a_grant_leaves_the_grant() {
    let text = "[path]\ndefault = \"ask\"\nread = [\"/data/team/**\"]\n\
        [[path.rule]]\nid = \"keys\"\ndecision = \"deny\"\nreason = \"r\"\naccess = [\"read\"]\n\
        paths = [\"/data/*/keys\"]\n";
    let set = load_layers(&[(Layer::User, text)]).unwrap();
    let plan = set.bind(&Places::example()).unwrap().cell();
    assert!(grant(&plan, "/data/team").is_some());
    let pattern = PlannedPattern::Exact("/data/team/keys".into());
    assert!(plan.masks.iter().any(|mask| mask.pattern == pattern), "{:?}", plan.masks);
}
