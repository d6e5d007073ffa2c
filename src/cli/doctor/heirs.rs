//! Proofs that whoever goes on where another one stood gets at most what that one had: a session that
//! is resumed under a wider policy, and an agent that a tool starts inside a cell.

use super::trials::{Found, Trial, bash, judged, rule};
use crate::base::exit::Exit;
use crate::sandbox::probe::{Bench, CANARY, Probe, put};

/// The trials, as rows for the table of probes.
pub(super) const TRIALS: [Probe; 2] = [
    Probe { guarantee: 14, name: "a session resumed under a wider policy", run: resumed_wider },
    Probe { guarantee: 14, name: "an agent that a tool starts", run: nested_agent },
];

fn resumed_wider(bench: &Bench) -> Found {
    let calls = [vec![bash("touch made")]];
    let control = Trial::new(bench, "free")?;
    let wider = control.policy("wider.toml", "")?;
    control.run("", &calls[0])?;
    let trial = Trial::new(bench, "bound")?;
    let first = trial.run(&rule("deny"), &calls[0])?;
    let again = trial.headless(&trial.resumption(Some(&wider), &calls)?)?;
    let detail = format!(
        "a call is denied at the start ({} denial), and going on without the rule is refused (exit \
         {:?})",
        first.denials, again.exit
    );
    let refused = again.exit == Some(Exit::Session.code().into());
    let stopped = !trial.made("made") && first.denials == 1 && refused;
    Ok(judged(control.made("made"), stopped, detail))
}

/// A tool may start this program again. Whatever policy it brings, its cells lie in the tool's cell.
fn nested_agent(bench: &Bench) -> Found {
    let place = bench.workspace();
    let outside = format!("[\"{}/**\"]", bench.outside().display());
    put(
        &place.join("wide.toml"),
        &format!(
            "version = 1\nextends = [\"workspace\"]\n[path]\nread = {outside}\nwrite = {outside}\n\
             [sandbox]\ndegraded = \"allow\"\n"
        ),
    )?;
    let script = format!(
        "mkdir -p inner && HOME={place} {own} exec --state-dir {place}/state --workspace \
         {place}/inner --policy {place}/wide.toml -- /bin/cat {canary}; echo ended $?",
        place = place.display(),
        own = bench.own_program().get_program().display(),
        canary = bench.canary().display(),
    );
    let control = bench.plain_script(&script)?;
    let nested = bench.run(&bench.script(&script))?;
    let read = |output: &[u8]| String::from_utf8_lossy(output).contains(CANARY.trim_end());
    let said = String::from_utf8_lossy(&nested.stdout.head).into_owned();
    let detail = format!(
        "outside it reads what its policy grants; inside a cell not: `{}`",
        said.lines().last().unwrap_or_default()
    );
    Ok(judged(read(&control.stdout), !read(&nested.stdout.head) && said.contains("ended"), detail))
}
