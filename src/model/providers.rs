//! The providers stoplog knows, what a configuration file adds or changes, and the resolution of
//! `PROVIDER/MODEL` to an endpoint. Pure: text in, data out; reads no file, environment or network.

use crate::base::limits::MODEL_IDLE_MAX;
use crate::model::error::ModelError;
use crate::model::message::{Thinking, ThinkingLevel, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdapterKind {
    /// OpenAI-compatible Chat Completions.
    Chat,
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Responses.
    Responses,
}

impl AdapterKind {
    /// The word in configuration files and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
        }
    }
}

/// How a thinking level is written into a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingStyle {
    /// Not at all.
    Omit,
    /// `reasoning_effort` (Chat Completions) or `reasoning.effort` (Responses).
    Effort,
    /// OpenRouter's `reasoning` object.
    Reasoning,
    /// `chat_template_kwargs.enable_thinking`, for servers that render a chat template.
    Template,
    /// Anthropic: `thinking` with a token budget.
    Budget,
    /// Anthropic: `thinking` of type `adaptive` with an effort.
    Adaptive,
}

/// The name of the key that bounds the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKey {
    /// The older name, which most servers know.
    MaxTokens,
    /// `OpenAI`'s newer name, the only one that its reasoning models accept.
    MaxCompletionTokens,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that came from no cache.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the cache; default as `input`.
    pub cache_read: Option<f64>,
    /// Input written to the cache; default as `input`.
    pub cache_write: Option<f64>,
}

impl Price {
    /// What `usage` costs, in dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        let parts = [
            (usage.input.saturating_sub(cached), self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write, self.cache_write.unwrap_or(self.input)),
        ];
        parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum::<f64>() / 1e6
    }
}

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
    /// Facts by model name.
    #[serde(default)]
    pub models: BTreeMap<String, ModelFacts>,
}

const fn yes() -> bool {
    true
}

/// A model of a provider, with everything that a call needs but the key.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// The provider's name.
    pub provider: String,
    /// The model's name, as the provider knows it.
    pub model: String,
    /// How it is spoken to.
    pub adapter: AdapterKind,
    /// Address below which the adapter's path lies.
    pub base_url: String,
    /// Environment variable of the key, for messages.
    pub key_variable: Option<String>,
    /// Whether a call without a key is refused.
    pub key_required: bool,
    /// Further request headers.
    pub headers: BTreeMap<String, String>,
    /// Whether answers are streamed.
    pub streaming: bool,
    /// Whether a streamed request asks for token counts.
    pub stream_usage: bool,
    /// How the answer's length is bounded.
    pub token_key: TokenKey,
    /// How a thinking level is written.
    pub thinking: ThinkingStyle,
    /// Whether a temperature is sent; see [`Endpoint::sends_temperature`].
    pub temperature: Temperature,
    /// Message field in which thinking goes back.
    pub reasoning_field: Option<String>,
    /// Silence after which an attempt fails.
    pub idle: Duration,
    /// Tokens of the model's window, if known.
    pub context_window: Option<u64>,
    /// The model's price, if known.
    pub price: Option<Price>,
}

/// Whether a model accepts a temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temperature {
    /// It does.
    Send,
    /// It refuses one.
    Omit,
}

impl Endpoint {
    /// `ADAPTER:PROVIDER/MODEL`: what produced a block of thinking, and what may get it back.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}:{}/{}", self.adapter.as_str(), self.provider, self.model)
    }

    /// The blocks of `thinking` that came from here and go back unchanged.
    pub(crate) fn replays<'a>(&self, thinking: &'a [Thinking]) -> impl Iterator<Item = &'a Value> {
        let origin = self.origin();
        thinking
            .iter()
            .filter_map(|piece| piece.replay.as_ref())
            .filter(move |replay| replay.origin == origin)
            .map(|replay| &replay.block)
    }

    /// Whether a temperature goes into requests.
    pub(crate) fn sends_temperature(&self) -> bool {
        self.temperature == Temperature::Send
    }

    /// The model's name in a request. OpenRouter's `:online` suffix makes the provider search the
    /// web by itself; it goes unless that is allowed.
    pub(crate) fn model_for(&self, native_search: bool) -> &str {
        if native_search { &self.model } else { self.without_search().unwrap_or(&self.model) }
    }

    /// Whether the model's name asks for a search by the provider, which a request without
    /// `native_search` takes away. The caller records that.
    #[must_use]
    pub fn names_native_search(&self) -> bool {
        self.without_search().is_some()
    }

    fn without_search(&self) -> Option<&str> {
        if self.provider == "openrouter" { self.model.strip_suffix(":online") } else { None }
    }

    /// The effort word for `level`; `None` leaves the model its default.
    pub(crate) fn effort(&self, level: ThinkingLevel) -> Option<&'static str> {
        if level != ThinkingLevel::None {
            return Some(level.as_str());
        }
        // Without a word these think at medium effort; `minimal` is the least they accept.
        let name = bare_name(&self.model);
        let minimal =
            name == "gpt-5" || name.starts_with("gpt-5-mini") || name.starts_with("gpt-5-nano");
        minimal.then_some("minimal")
    }
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
        Self(BTreeMap::new()).with_file("built-in providers", include_str!("providers.toml"))
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
        let traits = Traits::of(&choice.provider, provider, &choice.model);
        let sends = facts.temperature.or(provider.temperature).unwrap_or(traits.temperature);
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
            idle: provider.idle_seconds.map_or(MODEL_IDLE_MAX, Duration::from_secs),
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

/// What a model's name says about it.
struct Traits {
    thinking: ThinkingStyle,
    temperature: bool,
}

impl Traits {
    fn of(provider_name: &str, provider: &Provider, model: &str) -> Self {
        let name = bare_name(model);
        let reasons = is_openai_reasoning(name);
        match provider.adapter {
            AdapterKind::Chat => Self {
                thinking: match provider_name {
                    "openrouter" => ThinkingStyle::Reasoning,
                    _ if reasons => ThinkingStyle::Effort,
                    _ => ThinkingStyle::Omit,
                },
                // OpenRouter drops what a model does not accept.
                temperature: !reasons || provider_name == "openrouter",
            },
            AdapterKind::Responses => Self {
                thinking: if reasons { ThinkingStyle::Effort } else { ThinkingStyle::Omit },
                temperature: !reasons,
            },
            AdapterKind::Anthropic => Self::of_claude(name),
        }
    }
}

impl Traits {
    /// Anthropic's models: before 3.7 none thinks, up to 4.5 with a budget, from 4.6 adaptively, and
    /// from 4.7 they refuse a temperature. A name without a version is taken for a new one.
    fn of_claude(name: &str) -> Self {
        let version = claude_version(name);
        let thinking = match version {
            Some(version) if version < (3, 7) => ThinkingStyle::Omit,
            Some(version) if version < (4, 6) => ThinkingStyle::Budget,
            None if !name.starts_with("claude-") => ThinkingStyle::Budget,
            Some(_) | None => ThinkingStyle::Adaptive,
        };
        let refuses = match version {
            Some(version) => version >= (4, 7),
            None => name.starts_with("claude-"),
        };
        Self { thinking, temperature: !refuses }
    }
}

/// The version in a model's name: `claude-3-5-sonnet-20241022` is (3, 5), `claude-opus-5` is (5, 0).
fn claude_version(name: &str) -> Option<(u32, u32)> {
    let words = name.strip_prefix("claude-")?.split(['-', '.', '@']);
    // Longer numbers are dates.
    let mut numbers = words.filter(|word| word.len() <= 2).filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

fn bare_name(model: &str) -> &str {
    model.rsplit_once('/').map_or(model, |(_, name)| name)
}

/// `OpenAI` models that think, and that refuse a temperature.
fn is_openai_reasoning(name: &str) -> bool {
    let o_series = ["o1", "o3", "o4"].iter().any(|family| {
        name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    o_series || (name.starts_with("gpt-5") && !name.contains("-chat"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!((price.cost(&usage) - (5.0 + 10.0 + 0.4 + 1.0)).abs() < 1e-9);
    }
}
