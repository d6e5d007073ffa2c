//! What the stages judge: one call, parsed once. Every stage, the record and the cell are made from
//! this value, so that what was judged is what runs.

use crate::audit::record::{PathRecord, Resolved};
use crate::base::digest::Digest;
use crate::base::text::Untrusted;
use crate::call::ToolCall;
use crate::call::effects::{Access, Effects};
use crate::call::effects_of::{Surroundings, effects};
use crate::call::shell::{EnvironmentNames, StandardInput};
use crate::chain::resolve::real_paths;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where a call is judged.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The workspace, resolved.
    pub workspace: PathBuf,
    /// The home directory as the cell sees it.
    pub home: Option<PathBuf>,
    /// The role of the agent; `None` = the policy's default.
    pub role: Option<String>,
    /// What the user asked for.
    pub task: String,
    /// Which variables a command may find in its environment.
    pub environment: EnvironmentNames,
    /// What a command finds at its standard input.
    pub input: StandardInput,
}

/// One call with everything that is known about it before it runs.
#[derive(Debug)]
pub struct Subject {
    /// The call.
    pub call: ToolCall,
    /// Its arguments.
    pub arguments: Value,
    /// What it would do.
    pub effects: Effects,
    /// Each path of the effects after links were followed, in the same order.
    pub real_paths: Vec<PathBuf>,
}

impl Subject {
    /// Works out what `call` would do, here and now.
    #[must_use]
    pub fn new(call: ToolCall, setting: &Setting) -> Self {
        Self::with_links(call, setting, real_paths)
    }

    /// Works out what `call` would do where links lead as `links` says, one path for each of the
    /// effects. Nothing is looked up.
    #[must_use]
    pub fn with_links(
        call: ToolCall,
        setting: &Setting,
        links: impl FnOnce(&Effects) -> Vec<PathBuf>,
    ) -> Self {
        let surroundings = Surroundings {
            workspace: &setting.workspace,
            home: setting.home.as_deref(),
            environment: &setting.environment,
            input: setting.input,
        };
        let effects = effects(&call.request, &surroundings);
        let real_paths = links(&effects);
        // The text was parsed when the request was made from it; it parses again.
        let arguments = serde_json::from_str(&call.raw_arguments).unwrap_or(Value::Null);
        Self { call, arguments, effects, real_paths }
    }

    /// The tool.
    #[must_use]
    pub const fn tool(&self) -> &'static str {
        self.call.request.tool().as_str()
    }

    /// What a remembered answer is bound to: tool, arguments, workspace and role.
    #[must_use]
    pub fn identity(&self, workspace: &Path, role: &str) -> Digest {
        let workspace = workspace.as_os_str().as_encoded_bytes();
        let parts = [
            self.tool().as_bytes(),
            self.call.raw_arguments.as_bytes(),
            workspace,
            role.as_bytes(),
        ];
        let joined: Vec<u8> = parts.iter().flat_map(|part| *Digest::of(part).as_bytes()).collect();
        Digest::of(&joined)
    }

    /// What the record says it would do.
    #[must_use]
    pub fn resolved(&self) -> Resolved {
        let mut resolved = Resolved::from(&self.effects);
        for (record, real) in resolved.paths.iter_mut().zip(&self.real_paths) {
            let real = real.to_string_lossy();
            if record.path.raw() != real {
                *record = PathRecord { real: Some(Untrusted::new(real)), ..record.clone() };
            }
        }
        resolved
    }

    /// Each program that would run, for a person.
    #[must_use]
    pub fn programs_shown(&self) -> Vec<Untrusted> {
        let words = |command: &crate::call::effects::CommandUse| {
            let mut words = vec![command.program.shown().to_owned()];
            words.extend(command.arguments.iter().map(|word| word.shown().to_owned()));
            Untrusted::new(words.join(" "))
        };
        self.effects.commands.iter().map(words).collect()
    }

    /// Each path that would be touched, links followed, for a person.
    #[must_use]
    pub fn paths_shown(&self) -> Vec<Untrusted> {
        let line = |(path, real): (&crate::call::effects::PathUse, &PathBuf)| {
            let access = match path.access {
                Access::Read => "read",
                Access::Write => "write",
                Access::Execute => "run",
            };
            Untrusted::new(format!("{access} {}", real.display()))
        };
        self.effects.paths.iter().zip(&self.real_paths).map(line).collect()
    }
}
