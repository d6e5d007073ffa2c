//! What a model's name says about it, where no configuration does.

use super::endpoint::{AdapterKind, ThinkingStyle};

/// What a model's name says about it.
pub(super) struct Traits {
    pub(super) thinking: ThinkingStyle,
    pub(super) temperature: bool,
}

impl Traits {
    pub(super) fn of(provider: &str, adapter: AdapterKind, model: &str) -> Self {
        let name = bare_name(model);
        let reasons = is_openai_reasoning(name);
        match adapter {
            AdapterKind::Chat => Self {
                thinking: match provider {
                    "openrouter" => ThinkingStyle::Reasoning,
                    _ if reasons => ThinkingStyle::Effort,
                    _ => ThinkingStyle::Omit,
                },
                // OpenRouter drops what a model does not accept.
                temperature: !reasons || provider == "openrouter",
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

pub(super) fn bare_name(model: &str) -> &str {
    model.rsplit_once('/').map_or(model, |(_, name)| name)
}

/// `OpenAI` models that think, and that refuse a temperature.
fn is_openai_reasoning(name: &str) -> bool {
    let o_series = ["o1", "o3", "o4"].iter().any(|family| {
        name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    o_series || (name.starts_with("gpt-5") && !name.contains("-chat"))
}
