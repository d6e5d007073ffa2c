//! A pattern with exceptions: what one rule refuses below a directory.

use super::PathPattern;
use std::sync::Arc;

/// A pattern with exceptions: what a rule refuses below some directory.
#[derive(Debug, Clone)]
pub struct Selection {
    patterns: Vec<PathPattern>,
    except: Arc<[PathPattern]>,
}

impl Selection {
    /// What `pattern` matches and none of `except` does. `directory/**` means the directory itself too,
    /// so that nothing new can be put into it; but not if there are exceptions, which may lie in it.
    ///
    /// # Errors
    /// What is wrong with the pattern.
    pub fn new(pattern: &str, except: Arc<[PathPattern]>) -> Result<Self, &'static str> {
        let mut patterns = PathPattern::parse(pattern)?;
        if !except.is_empty() {
            patterns = patterns.into_iter().map(PathPattern::strictly_below).collect();
        }
        Ok(Self { patterns, except })
    }

    /// Reads exceptions, for any number of selections.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn exceptions(texts: &[String]) -> Result<Arc<[PathPattern]>, &'static str> {
        let mut patterns = Vec::new();
        for text in texts {
            patterns.extend(PathPattern::parse(text)?.into_iter().map(PathPattern::strictly_below));
        }
        Ok(patterns.into())
    }

    /// Whether a path, given as names, is meant.
    #[must_use]
    pub fn fits(&self, names: &[&[u8]]) -> bool {
        self.patterns.iter().any(|pattern| pattern.fits(names))
            && !self.except.iter().any(|except| except.fits(names))
    }

    /// Levels at which a match can lie; `None` = any.
    #[must_use]
    pub fn depth(&self) -> Option<usize> {
        let depths = self.patterns.iter().map(PathPattern::depth).collect::<Option<Vec<_>>>()?;
        depths.into_iter().max()
    }

    /// Whether nothing but the last name decides; see [`PathPattern::is_last_name_alone`].
    #[must_use]
    pub fn is_last_name_alone(&self) -> bool {
        self.patterns.iter().all(PathPattern::is_last_name_alone)
    }
}
