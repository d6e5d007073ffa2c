//! What the command line and the policy together make of the loop's settings, and who reviews and who is
//! asked. Where both say something, the narrower counts.

use super::RunConfig;
use super::environment::Environment;
use super::error::RunError;
use super::model;
use crate::agent::prompt;
use crate::agent::settings::{AgentSettings, Budget};
use crate::base::digest::Digest;
use crate::base::dollars::Dollars;
use crate::base::json::canonical;
use crate::base::limits;
use crate::call::request::ToolName;
use crate::chain::guardian::Guardian;
use crate::chain::permission::{Permission, Prompter};
use crate::model::{Model, RetryPolicy, ToolCallStyle, ToolDefinition};
use crate::policy::{BoundPolicy, Remember, RoleVerdict};
use crate::session::{ConfigurationSnapshot, Replay, SnapshotTool, ToolContract};
use crate::tools::definitions::definitions;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Version of what the built-in tools do; a changed meaning gets a new number, so that a resumed
/// session does not repeat a call under another meaning.
const TOOL_VERSION: &str = "v1";

/// A role that no layer knows would be refused at every call; better said at once.
pub(super) fn check_role(policy: &BoundPolicy, role: Option<&str>) -> Result<(), RunError> {
    let known = policy.roles();
    match role {
        Some(role) if !known.contains(&role) => Err(RunError::Usage(format!(
            "role `{}` is not in the policy; it has {}",
            crate::base::text::escape(role),
            if known.is_empty() { "no roles".to_owned() } else { known.join(", ") }
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The tools that the host enables: all, or those that are named.
fn enabled(config: &RunConfig) -> Result<BTreeSet<ToolName>, RunError> {
    match &config.tools {
        None => Ok(ToolName::ALL.into_iter().collect()),
        Some(names) => names.iter().map(|name| tool(name)).collect(),
    }
}

/// What the role may not use is not offered to the model.
fn offered(
    enabled: &BTreeSet<ToolName>,
    config: &RunConfig,
    policy: &BoundPolicy,
) -> BTreeSet<ToolName> {
    let role = config.role.as_deref();
    let allowed = |tool: &&ToolName| policy.role_gate(role, tool.as_str()) == RoleVerdict::Pass;
    enabled.iter().filter(allowed).copied().collect()
}

fn tool(name: &str) -> Result<ToolName, RunError> {
    ToolName::parse(name).ok_or_else(|| {
        let known: Vec<&str> = ToolName::ALL.iter().map(|tool| tool.as_str()).collect();
        let name = crate::base::text::escape(name);
        RunError::Usage(format!("unknown tool `{name}`; known: {}", known.join(", ")))
    })
}

pub(super) fn settings(
    config: &RunConfig,
    policy: &BoundPolicy,
    workspace: &Path,
    model: &Model,
) -> Result<AgentSettings, RunError> {
    let enabled = enabled(config)?;
    let offered = offered(&enabled, config, policy);
    let definitions = definitions(&offered);
    let contracts: Vec<ToolContract> = definitions.iter().map(contract).collect();
    let system = prompt::system(workspace, &offered);
    let temperature = config.temperature.unwrap_or(limits::TEMPERATURE);
    let max_tokens = config.max_tokens.unwrap_or(limits::OUTPUT_TOKENS_MAX);
    let mut options = json!({
        "temperature": temperature.to_string(),
        "maxTokens": max_tokens.to_string(),
        "thinking": config.thinking.as_str(),
    });
    if let (ToolCallStyle::Json, Some(options)) = (config.tool_calls, options.as_object_mut()) {
        options.insert("toolCalls".to_owned(), "json".into());
    }
    let snapshot_tools = contracts.iter().map(|contract| SnapshotTool {
        name: contract.name.clone(),
        definition_digest: contract.definition_digest(),
    });
    let snapshot = ConfigurationSnapshot {
        model: model.identity(),
        system_prompt_digest: Digest::of(system.as_bytes()),
        tools: snapshot_tools.collect(),
        adapter_identity: "stoplog:v1".to_owned(),
        routing_identity: model.identity(),
        output_options_digest: Digest::of(canonical(&options).as_bytes()),
    };
    Ok(AgentSettings {
        system,
        definitions,
        enabled,
        offered,
        contracts,
        snapshot,
        temperature,
        max_tokens,
        thinking: config.thinking,
        tool_calls: config.tool_calls,
        context_window: model.endpoint().and_then(|endpoint| endpoint.context_window),
        native_search: false,
        price: model.price(),
        budget: budget(config, policy),
        retry: RetryPolicy {
            retries: config.max_retries.unwrap_or(limits::MODEL_RETRIES_MAX),
            ..RetryPolicy::default()
        },
        shows_pieces: config.shows_pieces,
    })
}

fn contract(definition: &ToolDefinition) -> ToolContract {
    ToolContract {
        name: definition.name.clone(),
        description: definition.description.clone(),
        parameters: definition.parameters.clone(),
        replay: if definition.name == "read" { Replay::Safe } else { Replay::Never },
        replay_key: format!("builtin:{}:{TOOL_VERSION}", definition.name),
    }
}

/// The narrower of what the command line and the policy say.
fn budget(config: &RunConfig, policy: &BoundPolicy) -> Budget {
    let written = policy.limits();
    let by_policy = written.iterations.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    let asked = config.max_iterations.or(by_policy).unwrap_or(limits::ITERATIONS_MAX);
    Budget {
        iterations: by_policy.map_or(asked, |most| asked.min(most)),
        tool_calls: written.tool_calls,
        tokens: written.tokens,
        cost: cost_limit(config, policy),
        time: written.run_seconds.map(Duration::from_secs),
        history: config
            .max_history
            .and_then(|most| usize::try_from(most).ok())
            .unwrap_or(limits::HISTORY_MESSAGES_MAX),
        background_rounds: config
            .max_background_rounds
            .unwrap_or(limits::BACKGROUND_DRAIN_ROUNDS_MAX),
        repetitions: config.max_repeats.unwrap_or(limits::REPETITIONS_MAX),
    }
}

/// The narrower of what the command line and the policy say about money.
fn cost_limit(config: &RunConfig, policy: &BoundPolicy) -> Option<Dollars> {
    let by_policy = policy.limits().cost_millionths.map(Dollars::from_millionths);
    by_policy.into_iter().chain(config.max_cost).min()
}

/// A budget of money that cannot be counted is none: every model that is asked must have a price.
pub(super) fn check_prices(
    config: &RunConfig,
    policy: &BoundPolicy,
    models: [Option<&Model>; 2],
) -> Result<(), RunError> {
    if cost_limit(config, policy).is_none() {
        return Ok(());
    }
    // A script is no endpoint, and costs nothing.
    let unpriced =
        |model: &&Model| model.endpoint().is_some_and(|endpoint| endpoint.price.is_none());
    match models.into_iter().flatten().find(unpriced) {
        None => Ok(()),
        Some(model) => Err(RunError::Usage(format!(
            "the cost budget cannot be kept: no price is known for `{}`; give one in providers.toml \
             (see docs/models.md), or bound the tokens instead (`limits.tokens`)",
            crate::base::text::escape(&model.identity())
        ))),
    }
}

pub(super) fn guardian(
    config: &RunConfig,
    policy: &BoundPolicy,
) -> Result<Option<Guardian>, RunError> {
    let written = policy.guardian();
    if written.enabled != Some(true) {
        return Ok(None);
    }
    let mut wish = config.model.clone();
    if let Some(name) = &written.model {
        // The reviewer is the policy's choice; an address that was given for the agent's model is
        // not meant for it.
        wish = model::ModelWish { name: Some(name.clone()), ..model::ModelWish::default() };
        wish.ca_file.clone_from(&config.model.ca_file);
    }
    let (model, _) = model::connect(&wish, &config.environment)?;
    Ok(Some(Guardian::new(model, written.timeout_ms.map(Duration::from_millis))))
}

/// Whether nobody is there: the run was told so, or it has no terminal to ask at.
pub(super) fn unwatched(config: &RunConfig) -> bool {
    config.headless || std::fs::File::options().write(true).open("/dev/tty").is_err()
}

pub(super) fn permission(config: &RunConfig, policy: &BoundPolicy) -> Permission {
    let prompter = if config.headless { Prompter::Headless } else { Prompter::Terminal };
    let stage =
        Permission::new(prompter, policy.permission().timeout_ms.map(Duration::from_millis));
    if policy.permission().remember == Some(Remember::Never) { stage.that_forgets() } else { stage }
}

/// Who is at the terminal, for grant records.
pub(super) fn person(environment: &Environment) -> String {
    let name =
        environment.text("USER").or_else(|| environment.text("LOGNAME")).unwrap_or("unknown");
    format!("{name} (uid {})", rustix::process::getuid().as_raw())
}
