//! What a policy says and this release cannot hold is refused or told; a hook is out of reach of what
//! it judges.

use super::*;

fn notices(text: &str) -> Vec<String> {
    load_one(text).unwrap().not_in_force().iter().map(Diagnostic::line).collect()
}

#[test]
fn a_setting_that_is_held_more_strictly_is_told_with_its_place() {
    let told = notices("[network]\nmode = \"proxy\"");
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("p0.toml:2: `mode = \"proxy\"`"), "{told:?}");
    assert_eq!(notices("[permission]\nremember = \"always\"").len(), 1);
    for fine in
        ["[network]\nmode = \"off\"", "[permission]\nremember = \"never\"", "[audit]\nsign = false"]
    {
        assert!(notices(fine).is_empty(), "{fine}");
    }
    assert!(BUILT_IN_NAMES.iter().all(|name| notices(built_in(name).unwrap()).is_empty()));
    let linted = lint(&load_one("[network]\nmode = \"proxy\"").unwrap());
    assert!(linted.iter().any(|finding| finding.code == "not-in-force"), "{linted:?}");
}

#[test]
fn methods_that_nobody_sees_are_refused() {
    let rule = "[[network.rule]]\nid = \"a\"\ndecision = \"allow\"\nreason = \"r\"\nhost = \"x\"\n";
    let with = |mode: &str| format!("[network]\nmode = \"{mode}\"\n{rule}methods = [\"GET\"]\n");
    assert_eq!(load_one(&with("host")).unwrap_err().0[0].code, "not-in-force");
    assert!(load_one(&with("off")).is_ok(), "control: nothing leaves at all");
    assert!(load_one(&format!("[network]\nmode = \"host\"\n{rule}")).is_ok(), "control");
}

#[test]
fn a_hook_that_tools_could_rewrite_is_refused() {
    let bind = |argv: &str| {
        let text = format!(
            "[path]\ndefault = \"deny\"\nread = [\"{{workspace}}/**\"]\nwrite = [\"{{workspace}}/**\", \"{{tmp}}/**\"]\n\
             [[path.rule]]\nid = \"kept\"\ndecision = \"deny\"\nreason = \"r\"\naccess = [\"write\"]\n\
             paths = [\"{{workspace}}/kept/**\"]\n\
             [[hooks.rule]]\nid = \"h\"\nreason = \"r\"\nevent = \"pre-tool\"\ntools = \"*\"\nargv = {argv}\n"
        );
        load_one(&text).unwrap().bind(&Places::example())
    };
    for argv in [
        "[\"/home/user/project/hook\"]",
        "[\"./hook\"]",
        "[\"sub/hook\", \"-v\"]",
        "[\"python3\", \"hook.py\"]",
        "[\"bash\", \"/home/user/project/hook.sh\"]",
        "[\"/usr/bin/env\", \"python3\", \"../project/hook.py\"]",
        "[\"sh\", \"-c\", \"cat | ./hook\"]",
        "[\"sh\", \"/tmp/hook\"]",
    ] {
        let error = bind(argv).unwrap_err();
        assert!(matches!(&error, BindError::Hook { hook, .. } if hook == "h"), "{argv}: {error}");
    }
    for argv in [
        "[\"/opt/hooks/check\"]",
        "[\"/usr/bin/python3\", \"/opt/hooks/check.py\", \"/home/user/project\"]",
        "[\"sh\", \"-c\", \"exit 2\"]",
        "[\"./kept/hook\"]",
        "[\"/tmp/hook\"]",
    ] {
        assert!(bind(argv).is_ok(), "control: {argv}");
    }
}
