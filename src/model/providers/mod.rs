//! The providers stoplog knows, what a configuration file adds or changes, and the resolution of
//! `PROVIDER/MODEL` to an endpoint. Pure: text in, data out; reads no file, environment or network.

mod endpoint;
mod names;

pub use endpoint::{AdapterKind, Endpoint, Price, Temperature, ThinkingStyle, TokenKey};

use crate::base::limits::{MODEL_IDLE_MAX, MODEL_STALLED_MAX};
use crate::model::error::ModelError;
use names::Traits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is known of one model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// Tokens of its window.
    pub context_window: Option<u64>,
    /// Its price.
    pub price: Option<Price>,
    /// Whether it accepts a temperature.
    pub temperature: Option<bool>,
    /// How it is asked to think.
    pub thinking: Option<ThinkingStyle>,
}

/// A provider, as built in or as a configuration file gives it. What is `None` is found from the
/// model's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// How it is spoken to.
    pub adapter: AdapterKind,
    /// Address below which the adapter's path lies.
    pub base_url: String,
    /// Environment variable of the key.
    #[serde(default)]
    pub key_variable: Option<String>,
    /// Whether a call without a key is refused before it is made.
    #[serde(default)]
    pub key_required: bool,
    /// Further request headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Whether answers are streamed.
    #[serde(default = "yes")]
    pub streaming: bool,
    /// Whether a streamed request asks for token counts by `stream_options`.
    #[serde(default = "yes")]
    pub stream_usage: bool,
    /// How the answer's length is bounded.
    #[serde(default)]
    pub token_key: Option<TokenKey>,
    /// How it is asked to think.
    #[serde(default)]
    pub thinking: Option<ThinkingStyle>,
    /// Whether its models accept a temperature.
    #[serde(default)]
    pub temperature: Option<bool>,
    /// Message field in which thinking goes back beside tool calls, for servers that want it.
    #[serde(default)]
    pub reasoning_field: Option<String>,
    /// Seconds of silence after which an attempt fails.
    #[serde(default)]
    pub idle_seconds: Option<u64>,
    /// Seconds with signs of life and nothing of an answer after which an attempt fails.
    #[serde(default)]
    pub stalled_seconds: Option<u64>,
    /// Facts by model name.
    #[serde(default)]
    pub models: BTreeMap<String, ModelFacts>,
}

const fn yes() -> bool {
    true
}

/// A `PROVIDER/MODEL` choice, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The part before the first slash.
    pub provider: String,
    /// All after it; may hold further slashes.
    pub model: String,
}

impl ModelChoice {
    /// Reads `PROVIDER/MODEL`.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if either part is missing.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
            }
            Some(_) | None => Err(ModelError::Configuration(format!(
                "`{}` is not a model; give PROVIDER/MODEL, for example `openai/gpt-4.1` or `script/FILE`",
                crate::base::text::escape(text)
            ))),
        }
    }

    /// The file of a `script/FILE` choice.
    #[must_use]
    pub fn script(&self) -> Option<&str> {
        (self.provider == "script").then_some(self.model.as_str())
    }
}

/// All providers by name.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderTable(BTreeMap<String, Provider>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderFile {
    #[serde(default)]
    providers: BTreeMap<String, Provider>,
}

impl ProviderTable {
    /// The built-in providers.
    ///
    /// # Errors
    /// [`ModelError::Configuration`]; a test shows that it does not happen.
    pub fn built_in() -> Result<Self, ModelError> {
        Self(BTreeMap::new()).with_file("built-in providers", include_str!("built_in.toml"))
    }

    /// This table with the providers of a configuration file added; a provider of the same name is
    /// replaced as a whole. `name` is for messages.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] with file, line and column.
    pub fn with_file(mut self, name: &str, text: &str) -> Result<Self, ModelError> {
        let file: ProviderFile = toml::from_str(text)
            .map_err(|error| ModelError::Configuration(format!("{name}: {error}")))?;
        if file.providers.contains_key("script") {
            let problem = format!("{name}: `script` is not a provider that can be defined");
            return Err(ModelError::Configuration(problem));
        }
        self.0.extend(file.providers);
        Ok(self)
    }

    /// The providers' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The provider of that name.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] naming those that exist.
    pub fn find(&self, name: &str) -> Result<&Provider, ModelError> {
        self.0.get(name).ok_or_else(|| {
            let known: Vec<_> = self.names().collect();
            ModelError::Configuration(format!(
                "unknown provider `{}`; known: {}, script",
                crate::base::text::escape(name),
                known.join(", ")
            ))
        })
    }

    /// The endpoint of a choice; `base_url` replaces the provider's.
    ///
    /// # Errors
    /// As [`ProviderTable::find`].
    pub fn resolve(
        &self,
        choice: &ModelChoice,
        base_url: Option<&str>,
    ) -> Result<Endpoint, ModelError> {
        let provider = self.find(&choice.provider)?;
        let facts = provider.models.get(&choice.model).cloned().unwrap_or_default();
        let base_url = base_url.unwrap_or(&provider.base_url).to_owned();
        let traits = Traits::of(&choice.provider, provider.adapter, &choice.model);
        let sends = facts.temperature.or(provider.temperature).unwrap_or(traits.temperature);
        let seconds = |given: Option<u64>, otherwise| given.map_or(otherwise, Duration::from_secs);
        let idle = seconds(provider.idle_seconds, MODEL_IDLE_MAX);
        let stalled = seconds(provider.stalled_seconds, MODEL_STALLED_MAX);
        Ok(Endpoint {
            provider: choice.provider.clone(),
            model: choice.model.clone(),
            adapter: provider.adapter,
            token_key: provider.token_key.unwrap_or_else(|| default_token_key(&base_url)),
            base_url,
            key_variable: provider.key_variable.clone(),
            key_required: provider.key_required,
            headers: provider.headers.clone(),
            streaming: provider.streaming,
            stream_usage: provider.stream_usage,
            thinking: facts.thinking.or(provider.thinking).unwrap_or(traits.thinking),
            temperature: if sends { Temperature::Send } else { Temperature::Omit },
            reasoning_field: provider.reasoning_field.clone(),
            idle,
            stalled: stalled.max(idle),
            context_window: facts.context_window,
            price: facts.price,
        })
    }
}

/// `OpenAI` itself wants the new key; whoever stands behind another address knows the old one.
fn default_token_key(base_url: &str) -> TokenKey {
    if base_url.starts_with("https://api.openai.com/") {
        TokenKey::MaxCompletionTokens
    } else {
        TokenKey::MaxTokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::Usage;

    fn resolve(choice: &str) -> Endpoint {
        let table = ProviderTable::built_in().unwrap();
        table.resolve(&ModelChoice::parse(choice).unwrap(), None).unwrap()
    }

    #[test]
    fn a_choice_keeps_the_slashes_of_its_model() {
        let choice = ModelChoice::parse("openrouter/meta/llama-3:free").unwrap();
        assert_eq!(
            (choice.provider.as_str(), choice.model.as_str()),
            ("openrouter", "meta/llama-3:free")
        );
        assert_eq!(
            ModelChoice::parse("script//tmp/a b.jsonl").unwrap().script(),
            Some("/tmp/a b.jsonl")
        );
        for text in ["", "openai", "openai/", "/x"] {
            assert!(ModelChoice::parse(text).unwrap_err().to_string().contains("PROVIDER/MODEL"));
        }
    }

    #[test]
    fn every_built_in_provider_resolves() {
        let table = ProviderTable::built_in().unwrap();
        let names: Vec<_> = table.names().collect();
        assert_eq!(
            names,
            [
                "anthropic",
                "llama-cpp",
                "ollama",
                "openai",
                "openai-responses",
                "openrouter",
                "vllm"
            ]
        );
        let error = table.find("opnai").unwrap_err().to_string();
        assert!(error.contains("openrouter") && error.contains("script"), "{error}");
    }

    #[test]
    fn a_models_name_says_how_it_thinks() {
        for (choice, thinking, temperature) in [
            ("anthropic/claude-3-5-sonnet-20241022", ThinkingStyle::Omit, Temperature::Send),
            ("anthropic/claude-3-7-sonnet-latest", ThinkingStyle::Budget, Temperature::Send),
            ("anthropic/claude-opus-4-20250514", ThinkingStyle::Budget, Temperature::Send),
            ("anthropic/claude-sonnet-4-5-20250929", ThinkingStyle::Budget, Temperature::Send),
            ("anthropic/claude-sonnet-4-6", ThinkingStyle::Adaptive, Temperature::Send),
            ("anthropic/claude-opus-4-7", ThinkingStyle::Adaptive, Temperature::Omit),
            ("anthropic/claude-opus-5", ThinkingStyle::Adaptive, Temperature::Omit),
            ("anthropic/scripted", ThinkingStyle::Budget, Temperature::Send),
            ("openai/gpt-4.1", ThinkingStyle::Omit, Temperature::Send),
            ("openai/gpt-5-chat-latest", ThinkingStyle::Omit, Temperature::Send),
            ("openai/o3-mini", ThinkingStyle::Effort, Temperature::Omit),
            ("openai/o300", ThinkingStyle::Omit, Temperature::Send),
            ("openai-responses/gpt-5.2", ThinkingStyle::Effort, Temperature::Omit),
            ("openrouter/openai/gpt-5", ThinkingStyle::Reasoning, Temperature::Send),
            ("vllm/x", ThinkingStyle::Template, Temperature::Send),
        ] {
            let endpoint = resolve(choice);
            assert_eq!(
                (endpoint.thinking, endpoint.temperature),
                (thinking, temperature),
                "{choice}"
            );
        }
    }

    #[test]
    fn a_file_adds_and_replaces_and_is_read_strictly() {
        let text = r#"
            [providers.mine]
            adapter = "chat"
            base_url = "https://models.example/v1"
            headers = { x-team = "a" }
            temperature = false
            idle_seconds = 7
            stalled_seconds = 70
            [providers.mine.models."org/small"]
            context_window = 4096
            temperature = true
            price = { input = 1.0, output = 2.0, cache_read = 0.1 }
        "#;
        let table = ProviderTable::built_in().unwrap().with_file("providers.toml", text).unwrap();
        let choice = ModelChoice::parse("mine/org/small").unwrap();
        let endpoint = table.resolve(&choice, None).unwrap();
        assert_eq!(endpoint.context_window, Some(4096));
        assert_eq!(endpoint.temperature, Temperature::Send);
        assert_eq!(endpoint.idle, Duration::from_secs(7));
        assert_eq!(endpoint.stalled, Duration::from_secs(70));
        assert_eq!(endpoint.token_key, TokenKey::MaxTokens);
        let other = table.resolve(&ModelChoice::parse("mine/b").unwrap(), None).unwrap();
        assert_eq!(other.temperature, Temperature::Omit);
        for (text, told) in [
            ("[providers.a]\nadapter = \"chat\"\nbase_url = \"x\"\nurl = 1", "unknown field `url`"),
            ("[providers.a]\nadapter = \"chta\"\nbase_url = \"x\"", "unknown variant `chta`"),
            ("[provider.a]", "unknown field `provider`"),
            ("[providers.script]\nadapter = \"chat\"\nbase_url = \"x\"", "can be defined"),
            ("[providers.a]\nadapter = \"chat\"\nadapter = \"chat\"", "duplicate key"),
        ] {
            let table = ProviderTable::built_in().unwrap();
            let error = table.with_file("providers.toml", text).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("providers.toml"), "{error}");
        }
    }

    #[test]
    fn a_price_tells_cached_tokens_apart() {
        let price = Price { input: 10.0, output: 20.0, cache_read: Some(1.0), cache_write: None };
        let usage = Usage {
            input: 1_000_000,
            output: 500_000,
            cache_read: 400_000,
            cache_write: 100_000,
            estimated: false,
        };
        assert_eq!(price.cost(&usage).to_string(), "$16.40", "5.0 + 10.0 + 0.4 + 1.0");
    }
}
