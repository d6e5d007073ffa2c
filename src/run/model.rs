//! From the words of the command line to a model that can be called: provider table, key, script.

use super::environment::Environment;
use super::error::RunError;
use crate::base::secret::Secret;
use crate::model::{HttpOptions, Model, ModelChoice, ModelConfig, ProviderTable, ProxyChoice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Environment variable that names a model for runs that name none.
const MODEL_VARIABLE: &str = "STOPLOG_MODEL";

/// What was said about the model.
#[derive(Debug, Clone, Default)]
pub struct ModelWish {
    /// `PROVIDER/NAME` or `script/FILE`.
    pub name: Option<String>,
    /// Another address of the provider.
    pub base_url: Option<String>,
    /// File with the key.
    pub key_file: Option<PathBuf>,
    /// File with certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// Whether whole answers are asked for instead of a stream.
    pub no_stream: bool,
    /// A model that is connected already: the turns of a conversation share it.
    pub connected: Option<(Arc<Model>, ModelName)>,
    /// A script that is part of the program, instead of all above.
    pub embedded: Option<(String, String)>,
}

/// The provider's and the model's name, as the session file holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// The provider; `script` for a scripted model.
    pub provider: String,
    /// The model, or the script's file.
    pub model: String,
}

/// Makes the model ready; connects to nothing.
///
/// # Errors
/// [`RunError::Usage`] if no model is named, [`RunError::Unreadable`] for a file, and those of the
/// model.
pub fn connect(
    wish: &ModelWish,
    environment: &Environment,
) -> Result<(Arc<Model>, ModelName), RunError> {
    if let Some(connected) = &wish.connected {
        return Ok(connected.clone());
    }
    if let Some((name, text)) = &wish.embedded {
        return script(name, text.clone());
    }
    let name = wish.name.as_deref().or_else(|| environment.text(MODEL_VARIABLE));
    let name = name.ok_or_else(|| {
        RunError::Usage(
            "no model is named; give --model PROVIDER/NAME (for example openai/gpt-5, \
             openrouter/z-ai/glm-4.6, ollama/qwen3, script/FILE) or set STOPLOG_MODEL; \
             `stoplog models` lists the providers"
                .to_owned(),
        )
    })?;
    let choice = ModelChoice::parse(name)?;
    if let Some(file) = choice.script() {
        return script(file, read(Path::new(file))?);
    }
    let mut endpoint = providers(environment)?.resolve(&choice, wish.base_url.as_deref())?;
    endpoint.streaming &= !wish.no_stream;
    let key = match (&wish.key_file, &endpoint.key_variable) {
        (Some(file), _) => Some(Secret::new(&read(file)?)),
        (None, Some(variable)) => environment.text(variable).map(Secret::new),
        (None, None) => None,
    };
    let proxied = environment.text("STOPLOG_PROXY_FROM_ENVIRONMENT").is_some();
    let options = HttpOptions {
        ca_file: wish.ca_file.clone(),
        proxy: if proxied { ProxyChoice::Environment } else { ProxyChoice::None },
        ..HttpOptions::default()
    };
    let model = Model::connect(ModelConfig::Http { endpoint: Box::new(endpoint), key, options })?;
    Ok((Arc::new(model), ModelName { provider: choice.provider, model: choice.model }))
}

/// The built-in providers and those of the user's configuration.
///
/// # Errors
/// [`RunError::Unreadable`], and what is wrong in the file.
pub fn providers(environment: &Environment) -> Result<ProviderTable, RunError> {
    let table = ProviderTable::built_in()?;
    let file = environment.config_directory().map(|directory| directory.join("providers.toml"));
    match file.filter(|file| file.exists()) {
        Some(file) => Ok(table.with_file(&file.display().to_string(), &read(&file)?)?),
        None => Ok(table),
    }
}

fn script(name: &str, text: String) -> Result<(Arc<Model>, ModelName), RunError> {
    let model = Model::connect(ModelConfig::Script { name: name.to_owned(), text })?;
    Ok((Arc::new(model), ModelName { provider: "script".to_owned(), model: name.to_owned() }))
}

fn read(path: &Path) -> Result<String, RunError> {
    std::fs::read_to_string(path)
        .map_err(|source| RunError::Unreadable { path: path.to_owned(), source })
}
