//! `run` and `resume`: an agent works on a task.

use super::args::{
    AgentArgs, BehaviourArgs, ModelChoice, Output, ResumeArgs, RunArgs, Thinking, ToolCalls,
};
use super::live::{self, Answers, Opening};
use super::screen::Tone;
use super::{CommandError, Context, Outcome, json, progress, tell};
use crate::agent::events::RunResult;
use crate::base::exit::Exit;
use crate::base::text::escape_keeping_lines;
use crate::model::{Recording, ThinkingLevel, ToolCallStyle};
use crate::run::model::ModelWish;
use crate::run::{self, Job, RunConfig, RunError, WiderPolicy};
use std::io::IsTerminal as _;
use std::sync::Arc;

/// `stoplog run`
pub(super) fn run(context: &Context, args: RunArgs) -> Outcome {
    let RunArgs { task, agent, resume } = args;
    let job = match resume {
        None => Job::New { task },
        Some(session) => Job::Resume { session, task: Some(task) },
    };
    carry_out(context, agent, job)
}

/// `stoplog resume`
pub(super) fn resume(context: &Context, args: ResumeArgs) -> Outcome {
    let ResumeArgs { session, task, agent } = args;
    carry_out(context, agent, Job::Resume { session, task })
}

/// What of a run somebody watches at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watching {
    /// Nothing: a script reads, or the output is kept.
    Nobody,
    /// The calls and the diffs; the answer goes elsewhere, whole.
    Progress,
    /// The answer, too, as it arrives.
    All,
}

fn watching(behaviour: &BehaviourArgs) -> Watching {
    if behaviour.output != Output::Text || !std::io::stderr().is_terminal() {
        Watching::Nobody
    } else if std::io::stdout().is_terminal() {
        Watching::All
    } else {
        Watching::Progress
    }
}

fn carry_out(context: &Context, agent: AgentArgs, job: Job) -> Outcome {
    let BehaviourArgs { output, no_content, .. } = agent.behaviour;
    let watching = watching(&agent.behaviour);
    let listener = match watching {
        Watching::Nobody => progress::listener(context.screen, output, no_content),
        Watching::Progress => live::listener(context.screen, Answers::Left, Opening::Shown),
        Watching::All => live::listener(context.screen, Answers::Shown, Opening::Shown),
    };
    let config = config(context, agent);
    let result = match config.and_then(|config| run::run(&config, job, listener)) {
        Ok(result) => result,
        Err(error) if output == Output::Text => return Err(error.into()),
        Err(error) => return failed_start(context, &error.into()),
    };
    match output {
        Output::Json if no_content => context.screen.out(&json(&result.without_content())?),
        Output::Json => context.screen.out(&json(&result)?),
        // The last event was the result.
        Output::StreamJson => {}
        Output::Text => show_text(context, &result, watching),
    }
    Ok(Exit::Command(result.exit_code))
}

/// A script gets an object even if nothing could start.
fn failed_start(context: &Context, error: &CommandError) -> Outcome {
    let object = serde_json::json!({
        "type": "result",
        "status": "failed",
        "finish_reason": "start_failure",
        "error": error.to_string(),
        "exit_code": error.exit().code(),
    });
    context.screen.out(&json(&object)?);
    tell(context.screen, error);
    Ok(error.exit())
}

fn show_text(context: &Context, result: &RunResult, watching: Watching) {
    let screen = context.screen;
    if !result.answer.is_empty() && watching != Watching::All {
        screen.out(&escape_keeping_lines(&result.answer));
    }
    if let Some(error) = &result.error {
        screen.err(&format!("{} {error}", screen.paint(Tone::Bad, "error:")));
    }
    let denied = result.denials.len();
    let refused = if denied == 0 { String::new() } else { format!(", {denied} calls denied") };
    let tokens = result.usage.input.saturating_add(result.usage.output);
    let cost = result.cost_dollars.map_or(String::new(), |dollars| format!(", ${dollars:.4}"));
    let line = format!(
        "{} after {} turns, {tokens} tokens{cost}{refused}; session {} (stoplog audit log {})",
        result.finish_reason.as_str(),
        result.turns,
        result.session,
        result.session.short(),
    );
    screen.err(&screen.paint(Tone::Dim, &line));
}

/// The configuration that the flags describe.
pub(super) fn config(context: &Context, agent: AgentArgs) -> Result<RunConfig, RunError> {
    let AgentArgs { place, model, behaviour, keep_policy } = agent;
    if behaviour.no_content && behaviour.output == Output::Text {
        let why = "--no-content needs `run` or `resume` with --output stream-json or json";
        return Err(RunError::Usage(why.to_owned()));
    }
    let shows_pieces =
        behaviour.output == Output::StreamJson || watching(&behaviour) == Watching::All;
    let recording = model.record.as_deref().map(Recording::create).transpose()?;
    Ok(RunConfig {
        state_directory: context.state_directory.clone(),
        workspace: place.workspace,
        policies: place.policy,
        role: place.role,
        tools: behaviour.tools,
        max_iterations: behaviour.max_iterations,
        max_repeats: behaviour.max_repeats,
        max_cost: behaviour.max_cost,
        max_history: behaviour.max_history,
        max_retries: behaviour.max_retries,
        max_background_rounds: behaviour.max_background_rounds,
        temperature: model.temperature,
        max_tokens: model.max_tokens,
        thinking: match model.thinking {
            Thinking::None => ThinkingLevel::None,
            Thinking::Low => ThinkingLevel::Low,
            Thinking::Medium => ThinkingLevel::Medium,
            Thinking::High => ThinkingLevel::High,
        },
        tool_calls: match model.tool_calls {
            ToolCalls::Native => ToolCallStyle::Native,
            ToolCalls::Json => ToolCallStyle::Json,
        },
        recording: recording.map(Arc::new),
        agents_file: !behaviour.no_agents_file,
        wider_policy: if keep_policy { WiderPolicy::CutDown } else { WiderPolicy::Refused },
        headless: behaviour.headless,
        shows_pieces,
        model: wish(model),
        ..RunConfig::of(context.environment.clone())
    })
}

fn wish(model: ModelChoice) -> ModelWish {
    ModelWish {
        name: model.model,
        base_url: model.base_url,
        key_file: model.key_file,
        ca_file: model.ca_file,
        no_stream: model.no_stream,
        ..ModelWish::default()
    }
}
