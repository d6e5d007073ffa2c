//! What one shell process knows while its script is walked: values, the directory, what is defined.

use super::facts::{Facts, Poisoned};
use super::numeric::NUMERIC_PARAMETERS;
use crate::base::limits::SHELL_BYTES_MAX;
use crate::base::paths::{normalise, normalise_from};
use crate::call::shell::EnvironmentNames;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Directories that are kept as possible at one place: a chain of two unguarded `cd`.
const DIRECTORIES_MAX: usize = 4;

/// Longest path that `cd` is followed into: a quarter of what the kernel takes, and far more than
/// anybody types.
const PATH_BYTES_MAX: usize = 1_024;

/// Deepest directory that `cd` is followed into: twice as deep as the trees of package managers, and so
/// few names that every path in it is judged at once.
const PATH_NAMES_MAX: usize = 64;

/// Bytes that the expansions of one script may give, all together: four times the largest script.
/// `x=$x$x`, forty times, is a script of 300 bytes whose value fills any memory.
const EXPANDED_BYTES_MAX: usize = 4 * SHELL_BYTES_MAX;

/// Longest value of a variable that is followed, in bytes: the longest path that Linux takes.
const VALUE_BYTES_MAX: usize = 4_096;

/// What is left of `EXPANDED_BYTES_MAX`, shared by all shells of one analysis.
#[derive(Debug, Clone)]
pub(crate) struct Expansion(Rc<Cell<usize>>);

impl Expansion {
    pub(crate) fn new() -> Self {
        Self(Rc::new(Cell::new(EXPANDED_BYTES_MAX)))
    }

    /// Takes `bytes`. Where they are too many nothing is left for what follows either, so that every
    /// further value counts as unknown.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Whether nothing is left.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

/// What a parameter stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Known(String),
    /// Digits, whatever happens.
    Number,
    /// Given by the environment or unset: not known, but not chosen by the script.
    Environment,
    /// It has none: nothing assigns it, and the environment cannot hold it.
    Unset,
    Unknown,
}

/// The directories a shell may be in, normalised; none = it cannot be told. Shared, since every command
/// of a script remembers where it began.
#[derive(Debug, Clone)]
pub(crate) struct Directories(Rc<[PathBuf]>);

impl Directories {
    pub(crate) fn one(path: &Path) -> Self {
        Self(Rc::from([normalise(Path::new("/"), path)]))
    }

    pub(crate) fn unknown() -> Self {
        Self(Rc::from([]))
    }

    /// The only possible directory.
    pub(crate) fn certain(&self) -> Option<&Path> {
        match &*self.0 {
            [path] => Some(path),
            _ => None,
        }
    }

    /// All places that `path` may mean.
    pub(crate) fn resolve(&self, path: &str) -> Vec<PathBuf> {
        let path = Path::new(path);
        if path.is_absolute() {
            return vec![normalise(Path::new("/"), path)];
        }
        self.0.iter().map(|directory| normalise_from(directory, path)).collect()
    }

    /// Where `cd path` leads; unknown where that is too long or too deep to be followed.
    pub(crate) fn entered(&self, path: &str) -> Self {
        let found = self.resolve(path);
        if found.iter().any(|path| is_too_far(path)) {
            return Self::unknown();
        }
        Self(found.into())
    }

    /// Whether nothing is known about where the shell is.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }

    /// Either of the two; what `self` holds comes first.
    pub(crate) fn or(self, other: &Self) -> Self {
        if self.0.is_empty() || other.0.is_empty() {
            return Self::unknown();
        }
        let mut more = Vec::new();
        for path in &*other.0 {
            let is_new = !self.0.iter().chain(&more).any(|known| is_same(known, path));
            if is_new && self.0.len() + more.len() < DIRECTORIES_MAX {
                more.push(path.clone());
            }
        }
        if more.is_empty() { self } else { Self(self.0.iter().cloned().chain(more).collect()) }
    }
}

impl PartialEq for Directories {
    fn eq(&self, other: &Self) -> bool {
        let same_all = || self.0.iter().zip(&*other.0).all(|(one, another)| is_same(one, another));
        Rc::ptr_eq(&self.0, &other.0) || self.0.len() == other.0.len() && same_all()
    }
}

impl Eq for Directories {}

fn is_too_far(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let names = bytes.iter().filter(|byte| **byte == b'/').count();
    bytes.len() > PATH_BYTES_MAX || names > PATH_NAMES_MAX
}

/// Normalised paths are equal if their bytes are; taking them apart for it would be slow.
fn is_same(one: &Path, another: &Path) -> bool {
    one.as_os_str() == another.as_os_str()
}

/// Names that exist from a place on, up to the end of what the place belongs to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Defined {
    names: BTreeSet<String>,
    order: Vec<String>,
}

impl Defined {
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(crate) fn insert(&mut self, name: &str) {
        if self.names.insert(name.to_owned()) {
            self.order.push(name.to_owned());
        }
    }

    /// A mark to return to.
    pub(crate) fn mark(&self) -> usize {
        self.order.len()
    }

    /// Forgets what was added behind the mark.
    pub(crate) fn forget(&mut self, mark: usize) {
        for name in self.order.drain(mark.min(self.order.len())..) {
            self.names.remove(&name);
        }
    }
}

/// Whether values decided what runs, and whether any of them could be wrong. One for an analysis.
#[derive(Debug, Default)]
pub(crate) struct Beliefs {
    /// A variable or a parameter decided what runs.
    pub(crate) relied_on: Cell<bool>,
    /// A builtin that may assign is called by a name that the facts of the script do not see.
    pub(crate) shaken: Cell<bool>,
}

/// One shell process.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    pub(crate) facts: Rc<Facts>,
    /// Values of variables that were assigned in the straight line so far.
    pub(crate) values: BTreeMap<String, String>,
    /// Variables that come with the process.
    pub(crate) inherited: BTreeMap<String, Value>,
    /// Which others may come with it.
    pub(crate) environment: EnvironmentNames,
    /// Names that were assigned so far.
    begun: BTreeSet<String>,
    pub(crate) beliefs: Rc<Beliefs>,
    /// Functions that exist at this place.
    pub(crate) defined: Defined,
    pub(crate) directories: Directories,
    pub(crate) previous: Directories,
    pub(crate) stack: Vec<Directories>,
    /// Inside a function, a trap or a loop: it runs later or again.
    pub(crate) in_function: bool,
    /// The function whose body is looked at.
    pub(crate) function: Option<Rc<str>>,
    /// Where the command stands that is looked at.
    pub(crate) position: usize,
    /// `set -e` holds.
    pub(crate) stops_on_error: bool,
    pub(crate) expansion: Expansion,
}

impl Shell {
    pub(crate) fn new(
        directories: Directories,
        inherited: BTreeMap<String, Value>,
        expansion: Expansion,
    ) -> Self {
        Self {
            facts: Rc::new(Facts::default()),
            values: BTreeMap::new(),
            inherited,
            environment: EnvironmentNames::Any,
            begun: BTreeSet::new(),
            beliefs: Rc::default(),
            defined: Defined::default(),
            previous: Directories::unknown(),
            directories,
            stack: Vec::new(),
            in_function: false,
            function: None,
            position: 0,
            stops_on_error: false,
            expansion,
        }
    }

    /// Whether code that is not seen may have changed any variable by now.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.facts.poisoned.is_some_and(|poisoned| match poisoned {
            Poisoned::Always => true,
            Poisoned::Behind(start) => self.in_function || self.position > start,
        })
    }

    pub(crate) fn value(&self, name: &str) -> Value {
        if self.is_poisoned() || self.expansion.is_spent() {
            return Value::Unknown;
        }
        if let Some(assigned) = self.facts.variables.get(name) {
            let certain = !assigned.elsewhere && (!self.in_function || assigned.straight == 1);
            match self.values.get(name).filter(|_| certain) {
                Some(value) => return Value::Known(value.clone()),
                None if assigned.numeric && !self.facts.numbers_doubtful => return Value::Number,
                // What stands in front of all its assignments sees what was there before.
                None if certain && !self.in_function && !self.begun.contains(name) => {}
                None => return Value::Unknown,
            }
        }
        if NUMERIC_PARAMETERS.contains(&name) {
            return Value::Number;
        }
        if name == "PWD" && !self.facts.changes_directory {
            return match self.directories.certain().and_then(Path::to_str) {
                Some(path) => Value::Known(path.to_owned()),
                None => Value::Environment,
            };
        }
        let positional = name.bytes().all(|byte| !byte.is_ascii_alphabetic() && byte != b'_');
        match self.inherited.get(name) {
            Some(value) => value.clone(),
            None if positional => self.positional(name),
            None if super::facts::SPECIAL.contains(&name) => Value::Unknown,
            None if self.environment.may_hold(name) || super::facts::is_set_by_shell(name) => {
                Value::Environment
            }
            None => Value::Unset,
        }
    }

    /// `$1`, `$@` and the like: a script that is handed over as a command has none, until it sets some.
    fn positional(&self, name: &str) -> Value {
        let is_parameter = matches!(name, "@" | "*")
            || name != "0" && name.bytes().all(|byte| byte.is_ascii_digit());
        let is_unset = is_parameter
            && self.environment != EnvironmentNames::Any
            && !self.in_function
            && !self.facts.sets_positional;
        if is_unset { Value::Unset } else { Value::Unknown }
    }

    /// Remembers an assignment of the straight line, if the variable's values can be followed.
    pub(crate) fn assign(&mut self, name: &str, value: Option<&str>) {
        self.begun.insert(name.to_owned());
        let followed = self.facts.variables.get(name).is_some_and(|assigned| !assigned.elsewhere);
        match value.filter(|value| followed && value.len() <= VALUE_BYTES_MAX) {
            Some(value) => self.values.insert(name.to_owned(), value.to_owned()),
            None => self.values.remove(name),
        };
    }

    /// The variables of a child process: what this script assigned may or may not be exported.
    pub(crate) fn for_child(&self) -> BTreeMap<String, Value> {
        let mut inherited = self.inherited.clone();
        for (name, assigned) in &self.facts.variables {
            let numeric = assigned.numeric && !self.facts.numbers_doubtful;
            let value = if numeric { Value::Number } else { Value::Unknown };
            inherited.insert(name.clone(), value);
        }
        if self.is_poisoned() {
            inherited.values_mut().for_each(|value| *value = Value::Unknown);
        }
        inherited
    }
}
