//! `policy replay`: what another policy would have said to the calls of earlier sessions.

use super::super::args::{FailOn, ReplayArgs};
use super::super::audit::{log_file, logs, unreadable};
use super::super::screen::Tone;
use super::super::{CommandError, Context, Outcome, json};
use crate::audit::query::{Filter, Rows};
use crate::audit::read::Lines;
use crate::audit::show::subject;
use crate::audit::verify::Status;
use crate::audit::{Anchors, log_path, sessions, verify};
use crate::base::exit::Exit;
use crate::base::text::escape;
use crate::policy::{RuleMeta, rules_of};
use crate::run::policies::{by_name, load_sources};
use crate::run::replay::{Answer, Change, Redecided, Replay};
use serde_json::{Value, json as value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `stoplog policy replay`
pub(super) fn replay(context: &Context, args: &ReplayArgs) -> Outcome {
    // A mistake in the policy is told even where there is no log yet.
    Replay::of(&args.against)?;
    let mut tally = Tally::default();
    for path in files(context, args.all, &args.logs)? {
        check_intact(&path)?;
        let mut replay = Replay::of(&args.against)?;
        let filter = Filter::default();
        for row in Rows::new(Lines::open(&path).map_err(unreadable)?, &filter) {
            let row = row.map_err(unreadable)?;
            let Some(found) = replay.take(row.record)? else { continue };
            if args.json {
                context.screen.out(&json(&as_json(&found))?);
            } else if found.change() != Change::Unchanged {
                context.screen.out(&as_text(context, &found));
            }
            tally.count(&found, args.fail_on);
        }
    }
    let coverage = args.coverage.then(|| tally.coverage(&args.against)).transpose()?;
    if args.json {
        context.screen.out(&json(&totals_json(&tally, coverage.as_deref()))?);
    } else {
        let coverage = coverage.unwrap_or_default();
        coverage.iter().for_each(|line| context.screen.out(&line.as_text()));
        context.screen.out(&tally.as_text());
    }
    Ok(if tally.fails { Exit::Fault } else { Exit::Done })
}

/// The log files that are meant: every one, those that are named, or the newest.
pub(super) fn files(
    context: &Context,
    all: bool,
    named: &[String],
) -> Result<Vec<PathBuf>, CommandError> {
    if all {
        let directory = logs(context)?;
        let known = sessions(&directory).map_err(unreadable)?;
        return Ok(known.iter().map(|session| log_path(&directory, session)).collect());
    }
    if named.is_empty() {
        return Ok(vec![log_file(context, None)?]);
    }
    named.iter().map(|wanted| log_file(context, Some(wanted))).collect()
}

/// Nothing is concluded from a log that is not what was written.
pub(super) fn check_intact(path: &Path) -> Result<(), CommandError> {
    let anchors = Anchors::beside(path).map_err(unreadable)?;
    let report = verify(path, &anchors).map_err(unreadable)?;
    if report.status() == Status::Damaged {
        let message =
            format!("{}\nnothing is decided again from it", report.to_string().trim_end());
        return Err(CommandError::new(Exit::Record, message));
    }
    Ok(())
}

fn as_text(context: &Context, found: &Redecided) -> String {
    let tone = match found.change() {
        Change::NewlyDenied => Tone::Bad,
        Change::NewlyAsked | Change::Untold => Tone::Weak,
        Change::NewlyAllowed | Change::Unchanged => Tone::Good,
    };
    let change = context.screen.paint_out(tone, found.change().as_str());
    let session = found.session.as_ref().map_or("", |session| session.short());
    let (tool, what) = (&found.record.tool, subject(&found.record));
    let mut text = format!("{change}  {session} #{}  {tool} {what}\n", found.sequence);
    if let Some(before) = &found.before {
        text.push_str(&format!("  was    {}\n", answer_text(before)));
    }
    match &found.after {
        Ok(after) => text.push_str(&format!("  would  {}", answer_text(after))),
        Err(problem) => text.push_str(&format!("  cannot be told: {problem}")),
    }
    text
}

fn answer_text(answer: &Answer) -> String {
    let Answer { decision, rule, place, reason, rules: _ } = answer;
    let rule = rule.as_ref().map_or_else(|| "the role".to_owned(), |rule| format!("rule {rule}"));
    let place = place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
    format!("{decision} by {rule}{place}: {reason}")
}

fn as_json(found: &Redecided) -> Value {
    value!({
        "session": found.session,
        "seq": found.sequence,
        "call": found.record.call,
        "tool": found.record.tool,
        "arguments": found.record.arguments,
        "redacted": found.record.redacted > 0,
        "change": found.change().as_str(),
        "before": found.before.as_ref().map(answer_json),
        "after": found.after.as_ref().ok().map(answer_json),
        "problem": found.after.as_ref().err(),
    })
}

fn answer_json(answer: &Answer) -> Value {
    let Answer { decision, rule, place, reason, rules: _ } = answer;
    value!({"decision": decision, "rule": rule, "place": place, "reason": reason})
}

fn totals_json(tally: &Tally, coverage: Option<&[Coverage]>) -> Value {
    let rules = coverage.map(|rules| rules.iter().map(Coverage::as_json).collect::<Vec<_>>());
    value!({"totals": tally.changes(), "rules": rules})
}

/// How many calls a rule said something about.
#[derive(Debug)]
struct Coverage {
    place: Place,
    calls: u64,
}

/// File, line and name of a rule.
type Place = (Option<String>, usize, String);

fn place(rule: &RuleMeta) -> Place {
    (rule.file_name().map(escape), rule.line, rule.id.clone())
}

impl Coverage {
    fn as_text(&self) -> String {
        let (file, line, id) = &self.place;
        format!("{:>6}  calls met {id} ({}:{line})", self.calls, file.as_deref().unwrap_or("-"))
    }

    fn as_json(&self) -> Value {
        let (file, line, id) = &self.place;
        value!({"rule": id, "file": file, "line": line, "calls": self.calls})
    }
}

/// What came of all calls.
#[derive(Debug, Default)]
struct Tally {
    changes: BTreeMap<Change, u64>,
    /// Changes by the rule that makes them.
    rules: BTreeMap<(Change, String), u64>,
    /// Calls that each rule said something about.
    met: BTreeMap<Place, u64>,
    fails: bool,
}

impl Tally {
    fn count(&mut self, found: &Redecided, fail_on: FailOn) {
        let change = found.change();
        *self.changes.entry(change).or_default() += 1;
        for rule in found.after.iter().flat_map(|after| &after.rules) {
            *self.met.entry(place(rule)).or_default() += 1;
        }
        if change == Change::Unchanged {
            return;
        }
        if let Ok(after) = &found.after {
            let rule = after.rule.as_ref().map_or_else(|| "(role)".to_owned(), ToString::to_string);
            let place = after.place.as_ref().map_or_else(String::new, |at| format!(" ({at})"));
            *self.rules.entry((change, format!("{rule}{place}"))).or_default() += 1;
        }
        self.fails |= match fail_on {
            FailOn::Any => true,
            FailOn::Looser => found.is_looser() || change == Change::Untold,
            FailOn::Stricter => !found.is_looser(),
        };
    }

    /// Every rule of the policies that are tried, those that no call met too.
    fn coverage(&self, against: &[String]) -> Result<Vec<Coverage>, CommandError> {
        let sources = against.iter().map(|name| by_name(name)).collect::<Result<Vec<_>, _>>()?;
        let places = rules_of(&load_sources(sources)?).into_iter().map(|rule| place(&rule));
        let calls = |place: &Place| self.met.get(place).copied().unwrap_or_default();
        Ok(places.map(|place| Coverage { calls: calls(&place), place }).collect())
    }

    fn changes(&self) -> BTreeMap<&'static str, u64> {
        let count = |change: &Change| self.changes.get(change).copied().unwrap_or_default();
        Change::ALL.iter().map(|change| (change.as_str(), count(change))).collect()
    }

    fn as_text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for ((change, rule), count) in &self.rules {
            lines.push(format!("{count:>6}  {} by {rule}", change.as_str()));
        }
        let all: u64 = self.changes.values().sum();
        let counts = Change::ALL.iter().map(|change| {
            let count = self.changes.get(change).copied().unwrap_or_default();
            format!("{count} {}", change.as_str())
        });
        lines.push(format!("{all} calls: {}", counts.collect::<Vec<_>>().join(", ")));
        lines.join("\n")
    }
}
