//! `models`: which providers are known, and whether one answers.

use super::args::ModelsArgs;
use super::{CommandError, Context, Outcome, json};
use crate::base::exit::Exit;
use crate::model::{Abort, Message, ModelRequest, Shown};
use crate::run::model::{ModelWish, connect, providers};
use serde_json::json as value;

/// `stoplog models`
pub(super) fn models(context: &Context, args: &ModelsArgs) -> Outcome {
    match &args.check {
        Some(name) => check(context, name, args),
        None => list(context, args.json),
    }
}

fn list(context: &Context, as_json: bool) -> Outcome {
    let table = providers(&context.environment)?;
    for name in table.names() {
        let provider = table.find(name).map_err(|error| CommandError::new(Exit::Fault, error))?;
        let variable = provider.key_variable.as_deref().unwrap_or("-");
        let has_key = context.environment.text(variable).is_some();
        if as_json {
            context.screen.out(&json(&value!({
                "provider": name, "base_url": provider.base_url, "key_variable": provider.key_variable,
                "key_required": provider.key_required, "key_is_set": has_key,
                "models": provider.models.keys().collect::<Vec<_>>(),
            }))?);
            continue;
        }
        let key = match (provider.key_required, has_key) {
            (_, true) => format!("{variable} is set"),
            (true, false) => format!("needs {variable}"),
            (false, false) => "needs no key".to_owned(),
        };
        context.screen.out(&format!("{name:<12} {:<45} {key}", provider.base_url));
    }
    if !as_json {
        context
            .screen
            .out("script       FILE (docs/script-format.md)                      needs no key");
    }
    Ok(Exit::Done)
}

/// One token is enough to see that address, key and name are right.
fn check(context: &Context, name: &str, args: &ModelsArgs) -> Outcome {
    let wish = ModelWish {
        name: Some(name.to_owned()),
        base_url: args.base_url.clone(),
        ..ModelWish::default()
    };
    let (model, _) = connect(&wish, &context.environment)?;
    let request =
        ModelRequest { max_tokens: 1, ..ModelRequest::new("", vec![Message::user("Hi")]) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::new(Exit::Fault, error))?;
    let mut unshown = |_event| Shown::No;
    let answer = runtime.block_on(model.call(&request, &mut unshown, &Abort::new()));
    let answer = answer.map_err(|error| CommandError::new(Exit::Model, error))?;
    if args.json {
        context.screen.out(&json(&value!({
            "model": model.identity(), "answers": true, "answered_as": answer.model,
            "usage": answer.usage,
        }))?);
    } else {
        context.screen.out(&format!("{} answers", model.identity()));
    }
    Ok(Exit::Done)
}
