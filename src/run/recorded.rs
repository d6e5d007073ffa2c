//! The policy that a log holds, from the texts in it: whatever the disk has now.

use super::error::RunError;
use super::policies;
use crate::audit::record::{PolicyRecord, PolicySourceRecord};
use crate::policy::{Layer, PolicySet, PolicySource};
use std::collections::BTreeMap;

/// The sources of a record by the start that they were given at, the earliest first.
pub(super) fn parts(record: &PolicyRecord) -> Vec<Vec<PolicySourceRecord>> {
    let mut parts: BTreeMap<u64, Vec<PolicySourceRecord>> = BTreeMap::new();
    for source in &record.sources {
        parts.entry(source.part).or_default().push(source.clone());
    }
    parts.into_values().collect()
}

/// The policy of a record, from its text alone.
pub(super) fn policy(
    record: &PolicyRecord,
    parts: &[Vec<PolicySourceRecord>],
) -> Result<PolicySet, RunError> {
    let digest = record.digest;
    let set = together(parts.iter().cloned().map(part))?;
    if set.digest() != digest {
        let why = format!("its log holds a policy whose digest is not {digest}");
        return Err(RunError::Blocked(why));
    }
    Ok(set)
}

fn part(sources: Vec<PolicySourceRecord>) -> Result<PolicySet, RunError> {
    let (given, extended): (Vec<_>, Vec<_>) = sources.into_iter().partition(|source| source.given);
    let read = |sources: Vec<PolicySourceRecord>| sources.into_iter().filter_map(source).collect();
    let (given, extended): (Vec<PolicySource>, Vec<PolicySource>) = (read(given), read(extended));
    policies::load_recorded(given, &extended)
}

pub(super) fn source(recorded: PolicySourceRecord) -> Option<PolicySource> {
    let layer = Layer::ALL.into_iter().find(|layer| layer.as_str() == recorded.layer)?;
    let text = recorded.text.raw().to_owned();
    Some(PolicySource { name: recorded.name.raw().to_owned(), layer, text })
}

/// What all sets allow.
pub(super) fn together(
    sets: impl Iterator<Item = Result<PolicySet, RunError>>,
) -> Result<PolicySet, RunError> {
    let sets = sets.collect::<Result<Vec<_>, _>>()?;
    let set = sets.into_iter().reduce(|all, set| all.narrow(&set));
    set.ok_or_else(|| RunError::Blocked("its log holds no policy".to_owned()))
}
