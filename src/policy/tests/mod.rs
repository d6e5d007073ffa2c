//! Tests of the policy module as a whole: files in, answers out.

mod built_in;
mod cell;
mod corpora;
mod difference;
mod documents;
mod errors;
mod everyday;
mod in_force;
mod judging;
mod properties;
mod speed;

use super::*;
use crate::call::effects::{CommandUse, Effects, Span, Word};

/// Loads one file as if it was named on the command line.
pub(super) fn load_one(text: &str) -> Result<PolicySet, Diagnostics> {
    load_layers(&[(Layer::Explicit, text)])
}

/// Loads one file for each layer.
pub(super) fn load_layers(files: &[(Layer, &str)]) -> Result<PolicySet, Diagnostics> {
    let source = |(index, (layer, text)): (usize, &(Layer, &str))| PolicySource {
        name: format!("p{index}.toml"),
        layer: *layer,
        text: (*text).to_owned(),
    };
    load(files.iter().enumerate().map(source).collect(), &|_| None)
}

/// Loads and binds to the example places.
pub(super) fn bound(text: &str) -> BoundPolicy {
    let set = load_one(text).unwrap_or_else(|errors| panic!("{errors}"));
    set.bind(&Places::example()).unwrap()
}

/// One command of known words.
pub(super) fn command(text: &str) -> CommandUse {
    let mut words = text.split_whitespace().map(|word| Word::Known(word.to_owned()));
    CommandUse {
        program: words.next().unwrap(),
        arguments: words.collect(),
        assignments: Vec::new(),
        via: Vec::new(),
        stays_here: false,
        inline_code: None,
        span: Span::default(),
    }
}

/// Judges effects as a call of `bash`.
pub(super) fn judge(policy: &BoundPolicy, effects: &Effects) -> Judgement {
    policy.judge(&Query {
        tool: "bash",
        role: None,
        effects,
        real_paths: &[],
        arguments: &serde_json::Value::Null,
        headless: false,
    })
}
