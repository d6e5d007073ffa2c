//! Sources to a `PolicySet`: reads every file with what it extends, checks and compiles it, runs its
//! examples. All errors are given at once, and no set is made if there is one.

use super::bound::{BindError, BoundPolicy};
use super::examples;
use super::file::diagnostic::{Collector, Diagnostic, Diagnostics};
use super::file::read;
use super::file::source::{BUILT_IN_NAMES, Layer, PolicySource, SourceFile, built_in_source};
use super::rules::globs::Places;
use super::unit::{Loaded, Unit, compile};
use super::{in_force, validate};
use crate::base::digest::Digest;
use std::sync::Arc;

/// Files that one file may pull in by `extends`: more is a mistake or an attack on the start time.
const EXTENDS_MAX: usize = 32;

/// A validated, compiled set of policy files.
#[derive(Debug, Clone)]
pub struct PolicySet {
    /// Sets that were loaded together. Each one answers for everything; narrowing adds one.
    pub(super) groups: Vec<Vec<Arc<Unit>>>,
    digest: Digest,
}

/// Finds a policy by the name or path in `extends`; built-in names never reach it.
pub type Resolve<'r> = &'r dyn Fn(&str) -> Option<PolicySource>;

/// Loads `sources`, each with what it extends. The order of sources does not matter.
///
/// # Errors
/// Everything that is wrong with any of the files.
pub fn load(sources: Vec<PolicySource>, resolve: Resolve<'_>) -> Result<PolicySet, Diagnostics> {
    let mut collector = Collector::default();
    let mut units = Vec::new();
    for source in sources {
        let layer = source.layer;
        let files = chain(source, resolve, &mut collector);
        validate::files(layer, &files, &mut collector);
        in_force::check(&files, &mut collector);
        let unit = compile(layer, &files, &mut collector);
        examples::run(&unit, &files, &mut collector);
        units.push(Arc::new(unit));
    }
    if !collector.found.is_empty() {
        return Err(Diagnostics(collector.found));
    }
    Ok(PolicySet::of(vec![units]))
}

/// The file and what it extends, parents first, each once.
fn chain(source: PolicySource, resolve: Resolve<'_>, collector: &mut Collector) -> Vec<Loaded> {
    let mut walk = Walk { resolve, collector, done: Vec::new(), open: Vec::new() };
    walk.file(Arc::new(SourceFile::new(source)));
    walk.done
}

struct Walk<'w> {
    resolve: Resolve<'w>,
    collector: &'w mut Collector,
    done: Vec<Loaded>,
    open: Vec<Arc<SourceFile>>,
}

impl Walk<'_> {
    fn file(&mut self, file: Arc<SourceFile>) {
        let document = read(&file, self.collector);
        self.open.push(Arc::clone(&file));
        for parent in &document.extends {
            match self.parent(&parent.value) {
                Ok(None) => {}
                Ok(Some(source)) => self.file(Arc::new(SourceFile::new(source))),
                Err((code, message, help)) => {
                    self.collector.error(&file, &parent.span, (code, message), help);
                }
            }
        }
        self.open.pop();
        self.done.push((file, document));
    }

    /// What `extends` names; `None` if it is in the set already.
    fn parent(&self, name: &str) -> Result<Option<PolicySource>, super::rules::PatternError> {
        let found = built_in_source(name).or_else(|| (self.resolve)(name));
        let Some(source) = found else {
            let near = super::file::diagnostic::did_you_mean(name, BUILT_IN_NAMES);
            let help = near.map_or_else(
                || format!("built in are {}", BUILT_IN_NAMES.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            let message = format!("there is no policy `{name}`");
            return Err(("unknown-policy", message, Some(help)));
        };
        if self.open.iter().any(|file| is_same(file, &source)) {
            let open: Vec<&str> = self.open.iter().map(|file| file.name.as_str()).collect();
            let message = format!("`{name}` extends itself: {}", open.join(" -> "));
            return Err(("extends-cycle", message, None));
        }
        if self.done.len() + self.open.len() > EXTENDS_MAX {
            let message = format!("more than {EXTENDS_MAX} files are pulled in");
            return Err(("extends-too-many", message, None));
        }
        let is_known = self.done.iter().any(|(file, _)| is_same(file, &source));
        Ok((!is_known).then_some(source))
    }
}

/// Whether a source is a file that was read: a file of a user may lie where a built-in one seems to.
fn is_same(file: &SourceFile, source: &PolicySource) -> bool {
    let is_built_in = |layer: Layer| layer == Layer::BuiltIn;
    file.name == source.name && is_built_in(file.layer) == is_built_in(source.layer)
}

/// What makes a unit the same: its layer and the texts of its files.
fn key(unit: &Unit) -> (Layer, Vec<Digest>) {
    (unit.layer, unit.files.iter().map(|file| file.digest).collect())
}

impl PolicySet {
    fn of(mut groups: Vec<Vec<Arc<Unit>>>) -> Self {
        for units in &mut groups {
            units.sort_by_key(|unit| key(unit));
            units.dedup_by_key(|unit| key(unit));
        }
        let keys = |units: &Vec<Arc<Unit>>| units.iter().map(|unit| key(unit)).collect::<Vec<_>>();
        groups.sort_by_key(keys);
        groups.dedup_by_key(|units| keys(units));
        let mut text = String::from("stoplog-policy-set 1\n");
        for units in &groups {
            text.push_str("set\n");
            for (layer, files) in keys(units) {
                text.push_str(layer.as_str());
                files.iter().for_each(|file| text.push_str(&format!(" {file}")));
                text.push('\n');
            }
        }
        Self { groups, digest: Digest::of(text.as_bytes()) }
    }

    /// Every unit, set after set.
    pub(super) fn units(&self) -> impl Iterator<Item = &Arc<Unit>> {
        self.groups.iter().flatten()
    }

    /// Digest of the canonical set: layers and texts of all files, whatever the order and the
    /// directories they were found in.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The sets of which this one is the narrowing, each alone; one that was never narrowed is its own
    /// only part.
    #[must_use]
    pub fn parts(&self) -> Vec<Self> {
        self.groups.iter().map(|units| Self::of(vec![units.clone()])).collect()
    }

    /// This set and `other` together: only what both allow. Nothing widens a set.
    #[must_use]
    pub fn narrow(&self, other: &Self) -> Self {
        Self::of(self.groups.iter().chain(&other.groups).cloned().collect())
    }

    /// Whether this set holds everything of `other`, so that it allows nothing that `other` does not.
    #[must_use]
    pub fn is_at_most(&self, other: &Self) -> bool {
        let keys = |units: &[Arc<Unit>]| units.iter().map(|unit| key(unit)).collect::<Vec<_>>();
        other.groups.iter().all(|theirs| self.groups.iter().any(|ours| keys(ours) == keys(theirs)))
    }

    /// Settings of any file that this release holds more strictly than they are written.
    #[must_use]
    pub fn not_in_force(&self) -> Vec<Diagnostic> {
        self.units().flat_map(|unit| unit.notices.clone()).collect()
    }

    /// The files that were given, without those that they extend.
    #[must_use]
    pub fn roots(&self) -> Vec<Arc<SourceFile>> {
        self.units().filter_map(|unit| unit.files.last().cloned()).collect()
    }

    /// Every file of the set, each once.
    #[must_use]
    pub fn files(&self) -> Vec<Arc<SourceFile>> {
        let mut files: Vec<Arc<SourceFile>> = Vec::new();
        for file in self.units().flat_map(|unit| &unit.files) {
            if !files.iter().any(|known| known.digest == file.digest && known.name == file.name) {
                files.push(Arc::clone(file));
            }
        }
        files
    }

    /// The text of every file, each behind a line with its name, layer and digest: what an audit log
    /// keeps to be read on another machine.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for file in self.files() {
            let name = crate::base::text::escape(&file.name);
            text.push_str(&format!(
                "# file {name} layer {} {}\n",
                file.layer.as_str(),
                file.digest
            ));
            text.push_str(&file.text);
            text.push('\n');
        }
        text
    }

    /// Fills in the places of one run.
    ///
    /// # Errors
    /// A place whose name is not UTF-8 or not absolute, so that rules over it could not be held.
    pub fn bind(&self, places: &Places) -> Result<BoundPolicy, BindError> {
        BoundPolicy::new(self.clone(), places)
    }
}
