//! `policy learn`: a policy file from the calls of earlier sessions that were approved.

use super::super::args::LearnArgs;
use super::super::audit::unreadable;
use super::super::{CommandError, Context, Outcome};
use super::replay::{check_intact, files};
use crate::audit::query::{Filter, Rows};
use crate::audit::read::Lines;
use crate::base::exit::Exit;
use crate::policy::learn as policy_text;
use crate::run::learn::Learning;

/// `stoplog policy learn`
pub(super) fn learn(context: &Context, args: &LearnArgs) -> Outcome {
    let mut learning = Learning::default();
    for path in files(context, args.all, &args.logs)? {
        check_intact(&path)?;
        let filter = Filter::default();
        for row in Rows::new(Lines::open(&path).map_err(unreadable)?, &filter) {
            learning.take(&row.map_err(unreadable)?.record);
        }
    }
    let places = learning.places().ok_or_else(|| {
        CommandError::new(
            Exit::Usage,
            "the logs name no session, so there is nothing to learn from",
        )
    })?;
    context.screen.out(policy_text(learning.observed(), places).trim_end());
    let approved = learning.observed().len();
    context.screen.err(&format!("learned from {approved} approved calls"));
    for (record, part) in learning.untold() {
        context.screen.err(&format!("not covered: {record}: {part}"));
    }
    Ok(if learning.untold().is_empty() { Exit::Done } else { Exit::Fault })
}
