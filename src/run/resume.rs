//! Going on with an earlier session. It gets what it had or less: the policy that the log recorded, or
//! one that is at most as wide; the same role and workspace; no further tools.

use super::error::RunError;
use super::model::{self, ModelWish};
use super::options::check_role;
use super::setup::{self, Grounds, Opened, Surroundings};
use super::{RunConfig, WiderPolicy, policies, recorded};
use crate::agent::events::Event;
use crate::agent::{Parts, Start};
use crate::audit::log_path;
use crate::audit::read::Lines;
use crate::audit::record::{Body, PolicySourceRecord, Record, Session as SessionRecord};
use crate::base::clock::Clock;
use crate::policy::{Layer, PolicySet, PolicySource, differences};
use crate::session::{CurrentConfiguration, Journal, NextAction, RecoverMode, RunContext, Store};
use std::path::Path;

/// Differences between two policies that are told; the others are counted.
const DIFFERENCES_SHOWN: usize = 8;

/// Opens the session, checks that nothing gets wider, and recovers what a crash cut off.
pub(super) fn open_session(
    config: &RunConfig,
    wanted: &str,
    task: Option<String>,
    surroundings: Surroundings<'_>,
) -> Result<(Parts, Start), RunError> {
    let state = setup::state_directory(config.state_directory.as_deref(), &config.environment)?;
    let directory = Store::open(&state, &[])?.find(wanted)?;
    let (journal, _torn) = Journal::open(&directory.journal(), Clock::System)?;
    let header = journal.state().header.clone();
    let earlier = journal.state().extension.run_contexts.last().cloned();
    let config = &continued(config, Path::new(&header.cwd), &header, earlier.as_ref())?;
    let logs = state.join("audit");
    if journal.state().transcript.is_empty() && !log_path(&logs, directory.id()).exists() {
        return Err(RunError::Blocked(
            "it was cut off before anything was asked or done in it, so nothing is lost; start a new \
             session"
                .to_owned(),
        ));
    }
    let record = last_start(&logs, directory.id())?.policy;
    let parts = recorded::parts(&record);
    let recorded = recorded::policy(&record, &parts)?;
    let given = given_policy(config, Path::new(&header.cwd), &parts)?;
    // Each set must allow a call, so that whatever is given, nothing gets wider.
    let set = if given.is_at_most(&recorded) { given.clone() } else { recorded.narrow(&given) };
    let grounds = setup::grounds(config, Some(set))?;
    if config.wider_policy == WiderPolicy::Refused {
        refuse_wider(&grounds, config, &given, &recorded)?;
    }
    check_role(&grounds.policy, config.role.as_deref())?;
    let (model, _) = model::connect(&config.model, &config.environment)?;
    let prepared = setup::prepare(config, &grounds, model)?;
    let words = task.clone().unwrap_or_default();
    let enforced = setup::enforced(config, &grounds)?;
    let resumed = true;
    let opened = Opened { grounds, directory, journal, prepared, task: &words, enforced, resumed };
    let mut parts = setup::assemble(config, opened, surroundings)?;
    let start = recover(&mut parts, task)?;
    Ok((parts, start))
}

/// What is not said is as the session had it.
fn continued(
    config: &RunConfig,
    workspace: &Path,
    header: &crate::session::Header,
    earlier: Option<&RunContext>,
) -> Result<RunConfig, RunError> {
    let mut config = config.clone();
    if let Some(given) = &config.workspace {
        let same = std::fs::canonicalize(given).is_ok_and(|given| given == workspace);
        if !same {
            let cwd = crate::base::text::escape(&header.cwd);
            return Err(RunError::Wider(format!("it works in `{cwd}`, not in another workspace")));
        }
    }
    config.workspace = Some(workspace.to_owned());
    let chosen = config.model.connected.is_some() || config.model.embedded.is_some();
    if config.model.name.is_none() && !chosen {
        let name = format!("{}/{}", header.provider, header.model);
        config.model = ModelWish { name: Some(name), ..config.model };
    }
    if let Some(earlier) = earlier {
        let had = Some(earlier.role.clone()).filter(|role| role != "none");
        if config.role.is_some() && config.role != had {
            return Err(RunError::Wider(format!("its role is `{}`", earlier.role)));
        }
        config.role = had;
        let extra = config.tools.iter().flatten().find(|tool| !earlier.tools.contains(tool));
        if let Some(extra) = extra {
            return Err(RunError::Wider(format!("it never had the tool `{extra}`")));
        }
        config.tools.get_or_insert_with(|| earlier.tools.clone());
    }
    Ok(config)
}

/// What the command line names; otherwise what the session was given at each of its starts. Either
/// stands between the layers of the machine as they are now: an administrator who took something back
/// did so for sessions that go on, too.
fn given_policy(
    config: &RunConfig,
    workspace: &Path,
    parts: &[Vec<PolicySourceRecord>],
) -> Result<PolicySet, RunError> {
    if !config.policies.is_empty() {
        return policies::load(&config.policies, Some(workspace), &config.environment);
    }
    let again = |sources: &Vec<PolicySourceRecord>| {
        let (given, extended): (Vec<_>, Vec<_>) =
            sources.iter().cloned().partition(|source| source.given);
        let is_named =
            |source: &PolicySource| matches!(source.layer, Layer::Explicit | Layer::BuiltIn);
        let named = given.into_iter().filter_map(recorded::source).filter(is_named).collect();
        let extended: Vec<PolicySource> =
            extended.into_iter().filter_map(recorded::source).collect();
        policies::load_again(named, &extended, workspace, &config.environment)
    };
    recorded::together(parts.iter().map(again))
}

/// Stands in every record of a run's start, as it is written; a log is long and holds few of them.
const SESSION_KIND: &[u8] = b"\"kind\":\"session\"";

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The last record of a run's start that holds the policy's text.
pub(super) fn last_start(
    directory: &Path,
    session: &crate::base::ids::Id,
) -> Result<SessionRecord, RunError> {
    let path = log_path(directory, session);
    let unusable = |problem: String| RunError::Blocked(format!("its log {problem}"));
    let lines = Lines::open(&path).map_err(|error| unusable(error.to_string()))?;
    let mut found = None;
    for line in lines {
        let line = line.map_err(|error| unusable(error.to_string()))?;
        if !contains(&line.bytes, SESSION_KIND) {
            continue;
        }
        let Ok(Record { body: Body::Session(session), .. }) = Record::from_line(&line.bytes) else {
            continue;
        };
        if !session.policy.sources.is_empty() {
            found = Some(*session);
        }
    }
    found.ok_or_else(|| unusable("holds no policy".to_owned()))
}

/// What is in force is what both policies allow, so that nothing can get wider. A policy that may ask
/// for more is refused all the same, with what it asks for: whoever gives it, or has changed a layer
/// since, expects something that will not be.
fn refuse_wider(
    grounds: &Grounds,
    config: &RunConfig,
    given: &PolicySet,
    earlier: &PolicySet,
) -> Result<(), RunError> {
    let places = grounds.policy.places();
    let found = differences(&given.bind(places)?, &earlier.bind(places)?);
    if found.is_empty() {
        return Ok(());
    }
    let mut shown: Vec<String> =
        found.iter().take(DIFFERENCES_SHOWN).map(|found| format!("\n  {found}")).collect();
    if let Some(more @ 1..) = found.len().checked_sub(DIFFERENCES_SHOWN) {
        shown.push(format!("\n  and {more} more"));
    }
    let (earlier, given, shown) =
        (earlier.digest().short(), given.digest().short(), shown.concat());
    Err(RunError::Wider(if config.policies.is_empty() {
        format!(
            "a policy file of this machine, its user or the workspace has changed since, and what \
             stands there now ({given}) is not sure to be narrower than what the session had \
             ({earlier}):{shown}\nput it back, go on with what both allow (--keep-policy), or start a \
             new session"
        )
    } else {
        format!(
            "its policy {earlier} may only be narrowed, and {given} is not sure to be:{shown}\nleave \
             --policy out, name the earlier policies too, go on with what both allow (--keep-policy), \
             or start a new session"
        )
    }))
}

/// Closes what cannot go on and says where the loop begins.
fn recover(parts: &mut Parts, task: Option<String>) -> Result<Start, RunError> {
    let environment = parts.journal.state().header.environment_identity.clone();
    let settings = &parts.settings;
    let current = CurrentConfiguration::new(&settings.snapshot, environment, &settings.contracts);
    let mode = if task.is_some() { RecoverMode::Close } else { RecoverMode::Continue };
    let recovery = parts.journal.recover(&current, mode)?;
    (parts.listener)(&Event::Resumed { in_flight: recovery.in_flight });
    match (recovery.next, task) {
        (NextAction::UserMessage, Some(task)) => Ok(Start::Task(task)),
        (NextAction::UserMessage, None) => Err(RunError::Usage(
            "the session is at its end; give a further task: stoplog resume ID 'TASK'".to_owned(),
        )),
        (NextAction::Step(_) | NextAction::Tool(_), _) => Ok(Start::Interrupted),
        (NextAction::Blocked(reason), _) => Err(RunError::Blocked(format!(
            "{}; restore it, or give a further task, which closes the interrupted one",
            reason.explain()
        ))),
    }
}
