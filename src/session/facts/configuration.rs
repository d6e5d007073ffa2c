//! The configuration that an attempt was made with, and its digest.
//!
//! Recovery continues a step only if the configuration is the same. Keys, times and paths are not
//! part of it; nor is the replay policy, which is kept with each started tool.

use super::{Replay, read};
use crate::base::digest::Digest;
use crate::base::json::canonical;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a model request depends on, as digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigurationSnapshot {
    /// The model's name.
    #[serde(deserialize_with = "read::non_empty")]
    pub model: String,
    /// SHA-256 of the system prompt's bytes.
    pub system_prompt_digest: Digest,
    /// The tools in the order of the request.
    pub tools: Vec<SnapshotTool>,
    /// Which adapter speaks to the model.
    #[serde(deserialize_with = "read::non_empty")]
    pub adapter_identity: String,
    /// Where the request goes.
    #[serde(deserialize_with = "read::non_empty")]
    pub routing_identity: String,
    /// SHA-256 of the canonical output options.
    pub output_options_digest: Digest,
}

/// One tool of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SnapshotTool {
    /// Its name, unique in the list.
    #[serde(deserialize_with = "read::non_empty")]
    pub name: String,
    /// SHA-256 of the canonical `{name, description, parameters}`.
    pub definition_digest: Digest,
}

/// A tool as the host declares it now: what the model is told, and whether repeating it is harmless.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolContract {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether a call whose outcome is unknown may be repeated.
    pub replay: Replay,
    /// Which implementation and effect this is, for example `builtin:read:v1`.
    pub replay_key: String,
}

impl ToolContract {
    /// The digest of what the model is told.
    #[must_use]
    pub fn definition_digest(&self) -> Digest {
        Digest::of(
            canonical(&json!({
                "name": self.name, "description": self.description, "parameters": self.parameters,
            }))
            .as_bytes(),
        )
    }
}

impl ConfigurationSnapshot {
    /// The digest that a step attempt carries: SHA-256 of the canonical snapshot.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let tools: Vec<Value> = self
            .tools
            .iter()
            .map(|tool| json!({"name": tool.name, "definitionDigest": tool.definition_digest}))
            .collect();
        Digest::of(
            canonical(&json!({
                "model": self.model,
                "systemPromptDigest": self.system_prompt_digest,
                "tools": tools,
                "adapterIdentity": self.adapter_identity,
                "routingIdentity": self.routing_identity,
                "outputOptionsDigest": self.output_options_digest,
            }))
            .as_bytes(),
        )
    }

    /// Whether every tool name occurs once.
    pub(crate) fn names_are_unique(&self) -> bool {
        let mut names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair.first() != pair.last())
    }
}

/// The configuration of the running program, against which recovery is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CurrentConfiguration {
    /// The digest of the current snapshot.
    pub configuration_digest: Digest,
    /// Where effects take place: for stoplog the canonical workspace path.
    #[serde(deserialize_with = "read::non_empty")]
    pub environment_identity: String,
    /// The tools that can be dispatched now.
    pub tools: Vec<CurrentTool>,
}

/// One tool of [`CurrentConfiguration`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CurrentTool {
    /// Its name.
    #[serde(deserialize_with = "read::non_empty")]
    pub name: String,
    /// The digest of its definition.
    pub definition_digest: Digest,
    /// Whether it may be repeated.
    pub replay: Replay,
    /// Which implementation it is.
    #[serde(deserialize_with = "read::non_empty")]
    pub replay_key: String,
}

impl CurrentConfiguration {
    /// The configuration made of a snapshot and the tools it was made from.
    #[must_use]
    pub fn new(
        snapshot: &ConfigurationSnapshot,
        environment_identity: String,
        tools: &[ToolContract],
    ) -> Self {
        let tools = tools
            .iter()
            .map(|tool| CurrentTool {
                name: tool.name.clone(),
                definition_digest: tool.definition_digest(),
                replay: tool.replay,
                replay_key: tool.replay_key.clone(),
            })
            .collect();
        Self { configuration_digest: snapshot.digest(), environment_identity, tools }
    }

    /// The tool called `name`.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&CurrentTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
