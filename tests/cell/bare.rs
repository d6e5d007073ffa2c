//! Cells on a machine that refuses namespaces.

use crate::rig::{Rig, processes_with, shown, stdout, without_namespaces};
use std::time::{Duration, Instant};
use stoplog::sandbox::{Degraded, Layer, LimitsHeld, MaskKind, Namespaces, Step};

#[test]
fn without_namespaces_masks_are_refused_unless_the_loss_is_accepted() {
    let mut rig = Rig::new();
    rig.file(".env", "KEY\n");
    rig.mask(".env", MaskKind::Hide);
    without_namespaces(&mut rig);
    let failed = rig.launch("true").unwrap_err();
    assert_eq!(failed.step, Step::Namespaces, "{failed}");
    rig.spec.degraded = Degraded::Allow;
    let finished = rig.run("cat .env");
    assert_eq!(stdout(&finished), "KEY\n", "{}", shown(&finished));
    assert!(finished.enforced.lost.iter().any(|lost| lost == "G4-deny-inside-allow"));
}

#[test]
fn without_namespaces_landlock_alone_holds_content() {
    let mut rig = Rig::new();
    without_namespaces(&mut rig);
    let secret = rig.outside().join("secret");
    let text = format!("cat {0}; echo x > {0}; echo in > made; cat made", secret.display());
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "in\n", "{}", shown(&finished));
    assert!(!finished.enforced.mount_view && finished.enforced.landlock_abi > 0);
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret\n");
    assert_eq!(rig.control(&text), "secret\nin\n");
}

#[test]
fn without_namespaces_no_descendant_survives() {
    let mut rig = Rig::new();
    without_namespaces(&mut rig);
    daemons_die(&rig, "61.0317");
}

#[test]
fn no_descendant_survives() {
    daemons_die(&Rig::new(), "61.0318");
}

fn daemons_die(rig: &Rig, mark: &str) {
    let text = format!(
        "(setsid sleep {mark} &) ; setsid sh -c 'trap \"\" TERM HUP; sleep {mark}' & sleep 0.2; echo done"
    );
    let start = Instant::now();
    let finished = rig.run(&text);
    assert_eq!(stdout(&finished), "done\n", "{}", shown(&finished));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert!(finished.survivors_killed >= 2, "{}", finished.survivors_killed);
    assert_eq!(processes_with(mark), 0);
}

#[test]
fn without_namespaces_a_required_layer_is_refused_whatever_else_is_accepted() {
    let mut rig = Rig::new();
    without_namespaces(&mut rig);
    rig.spec.degraded = Degraded::Allow;
    for layer in [Layer::MountView, Layer::PidNamespace, Layer::NetworkNamespace] {
        rig.spec.require = vec![Layer::Landlock, layer];
        let failed = rig.launch("touch ran").unwrap_err();
        assert!(
            failed.to_string().contains(&format!("`{}` is required", layer.name())),
            "{failed}"
        );
    }
    assert!(!rig.workspace().join("ran").exists());
    rig.spec.require = vec![Layer::Landlock, Layer::Seccomp];
    let finished = rig.run("touch ran");
    assert!(rig.workspace().join("ran").exists(), "the control: {}", shown(&finished));
    // With namespaces all of them are there.
    rig.spec.namespaces = Namespaces::Auto;
    rig.spec.require.extend([Layer::MountView, Layer::PidNamespace, Layer::NetworkNamespace]);
    assert_eq!(stdout(&rig.run("echo on")), "on\n");
}

#[test]
fn a_required_control_group_that_cannot_be_made_is_refused_at_the_call() {
    let mut rig = Rig::new();
    rig.spec.require = vec![Layer::Cgroup];
    assert_eq!(stdout(&rig.run("echo on")), "on\n", "nothing to hold for a control group");
    rig.spec.limits.processes = Some(50);
    match rig.launch("touch ran") {
        Ok(running) => {
            let held = running.enforced().limits;
            assert_ne!(held, LimitsHeld::Rlimit, "{}", running.enforced());
        }
        Err(failed) => {
            assert_eq!(failed.step, Step::Requirement, "{failed}");
            assert!(failed.to_string().contains("`cgroup` is required"), "{failed}");
            assert!(!rig.workspace().join("ran").exists());
        }
    }
}

#[test]
fn without_namespaces_and_without_anybody_there_nothing_may_be_lost() {
    let mut rig = Rig::new();
    rig.spec.degraded = Degraded::RefuseAny;
    assert_eq!(stdout(&rig.run("echo on")), "on\n", "nothing is lost with namespaces");
    without_namespaces(&mut rig);
    let failed = rig.launch("touch ran").unwrap_err();
    assert!(failed.to_string().contains("nobody is there to be told"), "{failed}");
    assert!(!rig.workspace().join("ran").exists());
    // The control: without masks somebody who is told may go on.
    rig.spec.degraded = Degraded::Refuse;
    let finished = rig.run("echo on");
    assert_eq!(stdout(&finished), "on\n");
    assert!(finished.enforced.lost.iter().any(|lost| lost == "L2-names-outside-visible"));
}
