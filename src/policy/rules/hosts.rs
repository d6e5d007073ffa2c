//! Rules over hosts.

use super::{PatternError, RuleMeta};
use crate::call::effects::HostUse;
use std::sync::Arc;

/// Which host a rule means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// This name or address.
    Exact(String),
    /// Every name below this one, not the name itself.
    Below(String),
    /// Every host.
    Any,
}

impl HostPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let bad = |message: String, help: Option<&str>| {
            Err(("bad-host", message, help.map(str::to_owned)))
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, is_below) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
        if name.is_empty() {
            return Err(("empty-pattern", "the host is empty".into(), None));
        }
        if name.contains("://") || name.contains('/') {
            return bad(
                format!("`{text}` is an address of a page, not a host"),
                Some("write only the host"),
            );
        }
        if name.contains(['*', '@', ' ', '\t', '\0']) {
            return bad(
                format!("`{text}` is not a host"),
                Some("`*.` may stand only at the front"),
            );
        }
        if name.matches(':').count() == 1 {
            return bad(format!("`{text}` holds a port"), Some("put the port into `ports`"));
        }
        let name = normal(name);
        Ok(if is_below { Self::Below(name) } else { Self::Exact(name) })
    }

    /// Whether `host` (in normal form) is meant.
    #[must_use]
    pub fn fits(&self, host: &str) -> bool {
        match self {
            Self::Exact(name) => name == host,
            Self::Below(name) => host
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            Self::Any => true,
        }
    }
}

/// Lower case, without brackets and the dot at the end.
#[must_use]
pub fn normal(host: &str) -> String {
    host.trim_end_matches('.').trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

/// A compiled rule over hosts.
#[derive(Debug, Clone)]
pub struct HostMatcher {
    /// Who says it.
    pub meta: Arc<RuleMeta>,
    /// The hosts.
    pub hosts: Vec<HostPattern>,
    /// The ports; empty: any.
    pub ports: Vec<u16>,
    /// HTTP methods; empty: any.
    pub methods: Vec<String>,
}

impl HostMatcher {
    /// Whether the rule means this host and port. A port that is not known may be any, which a deny
    /// or ask believes and an allow does not.
    #[must_use]
    pub fn fits(&self, host: &HostUse) -> bool {
        let loose = self.meta.decision > crate::policy::file::schema::Decision::Allow;
        let name = normal(&host.host);
        self.hosts.iter().any(|pattern| pattern.fits(&name))
            && (self.ports.is_empty() || host.port.map_or(loose, |port| self.ports.contains(&port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_by_whole_labels() {
        for (pattern, host, expected) in [
            ("example.org", "example.org", true),
            ("Example.org", "example.org", true),
            ("example.org", "example.org.", true),
            ("example.org", "a.example.org", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "evilexample.org", false),
            ("*.example.org", ".example.org", false),
            ("*", "x", true),
        ] {
            let fits = HostPattern::new(pattern).unwrap().fits(&normal(host));
            assert_eq!(fits, expected, "{pattern} {host}");
        }
        for bad in ["", "https://x", "a*b", "x:80", "*.", "u@h"] {
            assert!(HostPattern::new(bad).is_err(), "{bad}");
        }
    }
}
