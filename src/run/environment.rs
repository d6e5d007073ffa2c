//! The process environment, read once at the start. Everything later is given this value, so that
//! tests and replays can give another one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Names and values as they were when the process started.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

/// Values may be keys; only the names are shown.
impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    /// The environment of this process.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// An environment of these values.
    pub fn of(values: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(values.into_iter().collect())
    }

    /// The value of `name`; an empty one counts as absent, as the XDG specification asks for.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The value of `name` as text; a value that is not UTF-8 counts as absent.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.to_str()
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }

    /// The home directory, if it is an absolute path.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// `$XDG_STATE_HOME/stoplog`, by default `~/.local/state/stoplog`.
    #[must_use]
    pub fn state_directory(&self) -> Option<PathBuf> {
        self.xdg("XDG_STATE_HOME", ".local/state")
    }

    /// `$XDG_CONFIG_HOME/stoplog`, by default `~/.config/stoplog`.
    #[must_use]
    pub fn config_directory(&self) -> Option<PathBuf> {
        self.xdg("XDG_CONFIG_HOME", ".config")
    }

    /// `$XDG_CACHE_HOME/stoplog`, by default `~/.cache/stoplog`.
    #[must_use]
    pub fn cache_directory(&self) -> Option<PathBuf> {
        self.xdg("XDG_CACHE_HOME", ".cache")
    }

    fn xdg(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let given = self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = given.or_else(|| self.home().map(|home| home.join(below_home)))?;
        Some(base.join("stoplog"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment::of(pairs.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn state_lies_where_the_xdg_specification_says() {
        let home = environment(&[("HOME", "/home/u")]);
        assert_eq!(home.state_directory().unwrap(), PathBuf::from("/home/u/.local/state/stoplog"));
        let given = environment(&[("HOME", "/home/u"), ("XDG_STATE_HOME", "/s")]);
        assert_eq!(given.state_directory().unwrap(), PathBuf::from("/s/stoplog"));
        let relative = environment(&[("HOME", "/home/u"), ("XDG_STATE_HOME", "s")]);
        assert_eq!(relative.state_directory(), home.state_directory());
        assert_eq!(environment(&[("HOME", "")]).state_directory(), None);
    }

    #[test]
    fn values_are_not_shown() {
        let shown = format!("{:?}", environment(&[("OPENAI_API_KEY", "sk-1")]));
        assert!(shown.contains("OPENAI_API_KEY") && !shown.contains("sk-1"));
    }
}
