//! The temporary directory of a cell: in a view it is `/tmp`, without one a directory of the machine's
//! own that goes with the process, however that ends. And what programs find in its place.

use super::layers::{ACCEPTS, refused};
use super::rig::{Done, Live, PROGRAM, Rig, answer, bash, is_root};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

/// What `exec` is told before the command.
fn arguments<'a>(policy: &'a str, work: &'a str, script: &'a str) -> [&'a str; 9] {
    ["exec", "--policy", policy, "--workspace", work, "--", "sh", "-c", script]
}

/// Runs a script by `exec`, where namespaces are refused and where they are not.
fn both(rig: &Rig, script: &str) -> [Done; 2] {
    let (policy, work) = (rig.policy(ACCEPTS), rig.work());
    let arguments = arguments(&policy, work.to_str().unwrap(), script);
    [Live::start(refused(rig, &arguments)).end(), rig.stoplog(&arguments)]
}

/// Temporary directories of this machine that processes have, or have left; each has a claim.
fn left(rig: &Rig) -> usize {
    let claims = fs::read_dir(rig.state().join("scratch")).into_iter().flatten();
    let names = claims.map(|claim| claim.unwrap().file_name().into_string().unwrap());
    names.filter(|name| Path::new("/tmp").join(format!("stoplog-{name}")).exists()).count()
}

#[test]
fn exec_has_a_private_temporary_directory_with_and_without_a_view() {
    let script = "umask 022; f=$(mktemp) && echo kept > $f && cat $f && sort -T $TMPDIR $f \
                  && ls -ld $TMPDIR | cut -c 1-10 && echo $TMPDIR";
    let rig = Rig::new();
    let [without, with] = both(&rig, script);
    let (without, with) = (without.exits(0), with.exits(0));
    assert_eq!(with.stdout, "kept\nkept\ndrwx------\n/tmp/cell\n", "{}", with.stderr);
    let place = without.stdout.lines().last().unwrap().to_owned();
    assert!(place.starts_with("/tmp/stoplog-") && place.ends_with("/cell"), "{place}");
    assert_eq!(without.stdout, format!("kept\nkept\ndrwx------\n{place}\n"));
    assert!(!without.stderr.contains("private-tmp"), "{}", without.stderr);
    assert!(!Path::new(&place).parent().unwrap().exists(), "it goes with the command");
    // What lies beside it is out of reach of what no rule can see: others' temporary files, the state.
    let other = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(other.path().join("f"), "theirs\n").unwrap();
    let (other, state) = (other.path().display(), rig.state());
    let state = state.display();
    rig.file("look.sh", format!("cat {other}/f; echo x > {other}/y; ls {state}; echo end"));
    let [without, with] = both(&rig, "sh look.sh");
    for done in [without.exits(0), with.exits(0)] {
        assert_eq!(done.stdout, "end\n");
    }
    let plain = rig.program("sh", &[rig.work().join("look.sh").to_str().unwrap()]);
    let plain = Live::start(plain).end().stdout;
    assert!(plain.starts_with("theirs\naudit\n"), "the control: {plain}");
}

#[test]
fn a_command_may_put_its_temporary_directory_away() {
    let script =
        "touch $TMPDIR/a && rm -rf $TMPDIR && ! test -e $TMPDIR && mkdir $TMPDIR && mktemp";
    for done in both(&Rig::new(), script) {
        assert!(done.exits(0).stdout.contains("/tmp."));
    }
}

#[test]
fn git_goes_on_where_the_settings_of_the_user_are_out_of_reach() {
    let rig = Rig::new();
    let secret = "[user]\n\tname = A B\n\temail = a@b\n[credential]\n\thelper = SECRET\n";
    fs::write(rig.home().join(".gitconfig"), secret).unwrap();
    fs::create_dir_all(rig.home().join(".config/git")).unwrap();
    fs::write(rig.home().join(".config/git/ignore"), "*.o\n").unwrap();
    let script = "git init -q r && cd r && echo x > a && git add . && git commit -qm first \
                  && git branch side && git checkout -q side && git status --short \
                  && git log --format='%an <%ae>' && git config credential.helper; cd ..; rm -rf r";
    let [without, with] = both(&rig, script);
    for done in [without, with] {
        assert_eq!(done.stdout, "A B <a@b>\n", "{}", done.stderr);
    }
    // The control: the settings that git does not see here are there.
    let plain = rig.program("git", &["config", "credential.helper"]);
    assert_eq!(Live::start(plain).end().stdout, "SECRET\n");
}

#[test]
fn a_full_temporary_directory_ends_the_command() {
    let rig = Rig::new();
    let policy = rig.policy(&format!("{ACCEPTS}[limits]\ntmp_bytes = 1000000\n"));
    let work = rig.work();
    let fill = "i=0; while [ $i -lt 60 ]; do head -c 500000 /dev/zero > $TMPDIR/f$i; sleep 0.1; \
                i=$((i+1)); done; echo filled";
    let arguments = arguments(&policy, work.to_str().unwrap(), fill);
    let done = Live::start(refused(&rig, &arguments)).end().exits(128 + 9);
    assert_eq!(done.stdout, "", "{}", done.stderr);
    assert_eq!(left(&rig), 0);
    // The control: less is no matter.
    let less = fill.replace("-lt 60", "-lt 1");
    let arguments = self::arguments(&policy, work.to_str().unwrap(), &less);
    assert_eq!(Live::start(refused(&rig, &arguments)).end().exits(0).stdout, "filled\n");
}

#[test]
fn what_a_killed_exec_leaves_is_removed_by_the_next_start() {
    const MOMENTS: u64 = 16;
    let rig = Rig::new();
    let (policy, work) = (rig.policy(ACCEPTS), rig.work());
    let script = "mkdir -p $TMPDIR/a/b; while :; do echo secret > $TMPDIR/a/b/f; done";
    let arguments = arguments(&policy, work.to_str().unwrap(), script);
    let mut found = 0;
    for moment in 0..MOMENTS {
        let live = Live::start(refused(&rig, &arguments));
        // From before the state directory is looked at to well after the command's start.
        std::thread::sleep(Duration::from_millis(moment * 25));
        live.signal(Signal::KILL);
        drop(live.end());
        found += left(&rig);
    }
    assert!(found > 0, "some moments met a directory");
    // A command of somebody else that runs meanwhile keeps its own.
    let kept = "echo mine > $TMPDIR/f; touch ready; while test -e ready; do sleep 0.02; done; \
                cat $TMPDIR/f";
    let kept = self::arguments(&policy, work.to_str().unwrap(), kept);
    let mut live = Live::start(refused(&rig, &kept));
    assert!(live.until(|| rig.has("ready")));
    // The monitors of those that were killed may still be ending their trees.
    assert!(live.until(|| {
        rig.stoplog(&["exec", "--workspace", work.to_str().unwrap(), "--", "true"]).code()
            == Some(0)
            && left(&rig) == 1
    }));
    fs::remove_file(rig.work().join("ready")).unwrap();
    assert_eq!(live.end().exits(0).stdout, "mine\n");
    assert_eq!(left(&rig), 0);
}

/// As [`refused`], but by root, who can still become somebody else: the machine is a container.
fn refused_in_a_container(rig: &Rig, arguments: &[&str]) -> Done {
    let limits = ["user", "mnt", "pid", "net", "ipc", "uts"]
        .map(|kind| format!("echo 0 >/proc/sys/user/max_{kind}_namespaces"));
    let script = format!("read mapped; {}; exec \"$@\" </dev/null", limits.join("; "));
    let state = rig.state();
    let fixed = ["--user", "sh", "-c", &script, "sh", PROGRAM, "--state-dir"];
    let all = [&fixed[..], &[state.to_str().unwrap()], arguments].concat();
    let mut command = rig.program("unshare", &all);
    let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    command.stdin(theirs);
    let mut live = Live::start(command);
    let at = Path::new("/proc").join(live.id().to_string());
    let namespace = |at: &Path| fs::read_link(at.join("ns/user")).unwrap();
    assert!(live.until(|| namespace(&at) != namespace(Path::new("/proc/self"))));
    for map in ["uid_map", "gid_map"] {
        fs::write(at.join(map), "0 0 65536").unwrap();
    }
    rustix::io::write(&ours, b"\n").unwrap();
    live.end()
}

#[test]
fn root_of_a_container_gives_it_to_the_owner_of_the_workspace() {
    const OWNER: u32 = 20_000;
    if !is_root() {
        // Nobody else can become another user.
        return;
    }
    let rig = Rig::new();
    rig.give_to(OWNER);
    std::os::unix::fs::chown(rig.root(), Some(0), Some(0)).unwrap();
    fs::set_permissions(rig.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let (policy, work) = (rig.policy(ACCEPTS), rig.work());
    let script =
        "id -u; f=$(mktemp) && echo kept > $f && cat $f; git init -q r && rm -rf r && echo git";
    let exec = arguments(&policy, work.to_str().unwrap(), script);
    let done = refused_in_a_container(&rig, &exec).exits(0);
    assert_eq!(done.stdout, "20000\nkept\ngit\n", "{}", done.stderr);
    let model = rig.script(&[bash(script), answer("done")]);
    let run = rig.arguments(&model, &["--policy", &policy]);
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    let done = refused_in_a_container(&rig, &run).exits(0);
    assert!(done.results()[0].contains("20000\nkept\ngit\n"), "{:?}", done.results());
    assert_eq!(left(&rig), 0);
}

#[test]
fn a_run_without_a_view_keeps_its_temporary_files_from_call_to_call() {
    let rig = Rig::new();
    let policy = rig.policy(ACCEPTS);
    let first = "echo kept > $TMPDIR/f; echo $TMPDIR > where; seq 200000";
    let model =
        rig.script(&[bash(first), bash("cat $TMPDIR/f; cat $(cat where)/f"), answer("done")]);
    let run = rig.arguments(&model, &["--policy", &policy]);
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    let done = Live::start(refused(&rig, &run)).end().exits(0);
    assert!(done.results()[1].contains("kept\nkept\n"), "{:?}", done.results()[1]);
    // The whole of a long output can be read where the model is told.
    let told = done.results()[0].clone();
    let path = told.rsplit_once("/stoplog-output/").unwrap().0;
    assert!(path.contains("/tmp/stoplog-"), "{told}");
    assert_eq!(left(&rig), 0);
}
