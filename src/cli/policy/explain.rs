//! `policy explain`: what the chain would decide about a call, stage by stage, without running it.

use super::super::args::ExplainArgs;
use super::super::{CommandError, Context, Outcome, json};
use crate::base::exit::Exit;
use crate::base::ids::Id;
use crate::call::ToolCall;
use crate::call::request::{Request, ToolName};
use crate::call::shell::StandardInput;
use crate::chain::subject::{Setting, Subject};
use crate::chain::{firewall, hooks};
use crate::policy::{BoundPolicy, Decision, HookEvent, Judgement, Places, RoleVerdict};
use crate::run::policies::{self, protected};
use crate::run::setup::state_directory;
use serde::Deserialize;
use serde_json::{Value, json as value};
use std::io::BufRead as _;
use std::path::PathBuf;

/// One line of `--stdin`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    tool: String,
    args: Value,
}

/// Under what a call is explained.
struct Rules {
    policy: BoundPolicy,
    setting: Setting,
    headless: bool,
}

/// `stoplog policy explain`
pub(super) fn explain(context: &Context, args: ExplainArgs) -> Outcome {
    let rules = rules(context, &args)?;
    if args.stdin {
        return explain_lines(context, &rules);
    }
    let words = args.call.unwrap_or_default();
    let arguments = if args.tool == "bash" && !words.trim_start().starts_with('{') {
        value!({"command": words}).to_string()
    } else {
        words
    };
    let subject = rules.subject(&args.tool, &arguments)?;
    let judgement = rules.judge(&subject);
    if args.json {
        context.screen.out(&json(&rules.as_json(&subject, &judgement))?);
    } else {
        context.screen.out(rules.as_text(&subject, &judgement).trim_end());
    }
    Ok(match rules.decision(&subject, &judgement) {
        Decision::Allow => Exit::Done,
        Decision::Deny => Exit::Denied,
        // The number is that of the iteration limit; here it says "ask".
        Decision::Ask => Exit::IterationLimit,
    })
}

/// One decision a line, in the order of the calls; a line that is no call gets an error object.
fn explain_lines(context: &Context, rules: &Rules) -> Outcome {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| CommandError::new(Exit::Usage, error))?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = serde_json::from_str::<Line>(&line)
            .map_err(|error| CommandError::new(Exit::Usage, error))
            .and_then(|Line { tool, args }| rules.subject(&tool, &args.to_string()))
            .map_or_else(
                |error| value!({"decision": "deny", "error": error.to_string()}),
                |subject| rules.as_json(&subject, &rules.judge(&subject)),
            );
        context.screen.out(&json(&answer)?);
    }
    Ok(Exit::Done)
}

fn rules(context: &Context, args: &ExplainArgs) -> Result<Rules, CommandError> {
    let given = args.place.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
    let workspace = std::fs::canonicalize(&given).map_err(|error| {
        CommandError::new(Exit::Usage, format!("workspace `{}`: {error}", given.display()))
    })?;
    let set = policies::load(&args.place.policy, Some(&workspace), &context.environment)?;
    let home = context.environment.home();
    let home = home.map(|home| std::fs::canonicalize(&home).unwrap_or(home));
    // An explanation needs no state directory; where there is one, its protection is explained too.
    let state = state_directory(context.state_directory.as_deref(), &context.environment).ok();
    let protected = state
        .map_or_else(Vec::new, |state| protected(&state, &workspace, &set, &context.environment));
    let places =
        Places { workspace: workspace.clone(), home: home.clone(), tmp: "/tmp".into(), protected };
    let policy = set.bind(&places).map_err(|error| CommandError::new(Exit::Policy, error))?;
    let role = args.place.role.clone();
    let setting = Setting {
        workspace,
        home,
        role,
        task: String::new(),
        environment: policy.environment().names(),
        input: StandardInput::Empty,
    };
    Ok(Rules { policy, setting, headless: args.headless })
}

impl Rules {
    fn subject(&self, tool: &str, arguments: &str) -> Result<Subject, CommandError> {
        let all = ToolName::ALL.into_iter().collect();
        let request = Request::parse(tool, arguments, &all)
            .map_err(|invalid| CommandError::new(Exit::Usage, invalid))?;
        let call = ToolCall {
            id: Id::new(),
            provider_id: String::new(),
            origin: "explain".to_owned(),
            request,
            raw_arguments: arguments.to_owned(),
        };
        Ok(Subject::new(call, &self.setting))
    }

    fn judge(&self, subject: &Subject) -> Judgement {
        firewall::judge(&self.policy, subject, &self.setting, self.headless)
    }

    /// What the stages that can be told beforehand come to together.
    fn decision(&self, subject: &Subject, judgement: &Judgement) -> Decision {
        let role = self.policy.role_gate(self.setting.role.as_deref(), subject.tool());
        match (role, judgement.decision) {
            (RoleVerdict::Deny { .. }, _) => Decision::Deny,
            (RoleVerdict::Pass, Decision::Ask) if self.headless => Decision::Deny,
            (RoleVerdict::Pass, decision) => decision,
        }
    }

    /// What the other stages would do.
    fn stages(&self, subject: &Subject, judgement: &Judgement) -> [(&'static str, String); 6] {
        let tool = subject.call.request.tool();
        let role = match self.policy.role_gate(self.setting.role.as_deref(), tool.as_str()) {
            RoleVerdict::Pass => "pass".to_owned(),
            RoleVerdict::Deny { reason } => format!("deny: {reason}"),
        };
        let hooks: Vec<_> = hooks::of(self.policy.hooks(), HookEvent::PreTool, tool.as_str())
            .map(|hook| hook.meta.id.as_str())
            .collect();
        let hooks = if hooks.is_empty() {
            "skipped: no hook for this tool".to_owned()
        } else {
            format!("would ask {}", hooks.join(", "))
        };
        let reviews = self.policy.guardian().reviews(tool.as_str(), tool.is_read_only());
        let guardian = if reviews { "would ask the reviewing model" } else { "skipped: not asked" };
        let permission = match (judgement.decision, self.headless) {
            (Decision::Ask, true) => "deny: nobody can be asked",
            (Decision::Ask, false) => "would ask the user",
            (Decision::Allow | Decision::Deny, _) => "skipped: nothing to ask",
        };
        [
            ("abort", "pass".to_owned()),
            ("role", role),
            ("hooks", hooks),
            ("firewall", judgement.decision.as_str().to_owned()),
            ("guardian", guardian.to_owned()),
            ("permission", permission.to_owned()),
        ]
    }

    fn as_json(&self, subject: &Subject, judgement: &Judgement) -> Value {
        let deciding = judgement.deciding().next();
        let stages: Vec<Value> = self
            .stages(subject, judgement)
            .into_iter()
            .map(|(stage, says)| value!({"stage": stage, "says": says}))
            .collect();
        value!({
            "decision": self.decision(subject, judgement),
            "rule": deciding.map(|finding| finding.rule.id.as_str()),
            "code": deciding.map(|finding| finding.code.as_str()),
            "file": deciding.and_then(|finding| finding.rule.file_name()),
            "line": deciding.and_then(|finding| finding.rule.file.is_some().then_some(finding.rule.line)),
            "reason": deciding.map(|finding| finding.reason()),
            "stages": stages,
            "findings": judgement.findings,
            "resolved": subject.resolved(),
            "policy": self.policy.set().digest(),
        })
    }

    fn as_text(&self, subject: &Subject, judgement: &Judgement) -> String {
        let mut text = format!("decision    {}\n", self.decision(subject, judgement));
        for (number, (stage, says)) in (1..).zip(self.stages(subject, judgement)) {
            text.push_str(&format!("  {number} {stage:<10} {says}\n"));
        }
        let resolved = crate::audit::show::resolved_text(&subject.resolved());
        if !resolved.is_empty() {
            text.push_str("\nwhat it would do\n");
            text.push_str(&resolved);
        }
        text.push('\n');
        text.push_str(&judgement.for_user());
        text
    }
}
