//! What each shipped policy gets on this machine: one cell as a run of that policy would make it.

use crate::policy::{BUILT_IN_NAMES, Places};
use crate::run::cell::{self, CellInputs};
use crate::run::environment::Environment;
use crate::run::{RunError, policies};
use crate::sandbox::probe::Bench;
use crate::sandbox::{Enforced, Namespaces, Program, SandboxSpec};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// What one policy gets.
#[derive(Debug, Serialize)]
pub(super) struct PolicyCell {
    /// The policy's name.
    pub(super) policy: &'static str,
    /// What the kernel enforces; `None` if a run is refused.
    pub(super) cell: Option<Enforced>,
    /// Why a run is refused.
    pub(super) refused: Option<String>,
}

impl fmt::Display for PolicyCell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "policy          {}: ", self.policy)?;
        match (&self.cell, &self.refused) {
            (Some(enforced), _) => write!(formatter, "{enforced}"),
            (None, why) => write!(formatter, "refused: {}", why.as_deref().unwrap_or_default()),
        }
    }
}

/// The shipped policy that only holds rules for the others to extend, and grants nothing.
const WITHOUT_CELL: &str = "base";

/// The cells of the shipped policies in the workspace of `bench`, whose Landlock they take.
pub(super) fn cells(environment: &Environment, bench: &Bench) -> Vec<PolicyCell> {
    BUILT_IN_NAMES
        .into_iter()
        .filter(|policy| *policy != WITHOUT_CELL)
        .map(|policy| match cell_of(policy, environment, bench) {
            Ok(enforced) => PolicyCell { policy, cell: Some(enforced), refused: None },
            Err(error) => PolicyCell { policy, cell: None, refused: Some(error.to_string()) },
        })
        .collect()
}

fn cell_of(name: &str, environment: &Environment, bench: &Bench) -> Result<Enforced, RunError> {
    let workspace = bench.workspace();
    let set = policies::load_sources(vec![policies::by_name(name)?])?;
    let policy = set.bind(&Places {
        workspace: workspace.clone(),
        home: environment.home(),
        tmp: PathBuf::from("/tmp"),
        protected: Vec::new(),
    })?;
    let inputs = CellInputs {
        environment,
        workspace: &workspace,
        // A run brings one; here any directory will do.
        private_tmp: Some(bench.outside()),
        quarantine: None,
        namespaces: Namespaces::Auto,
        unwatched: false,
    };
    let base = cell::base(&policy, inputs)?;
    let spec = base.spec(Program::FileJob { job: Vec::new() }, &[]);
    cell::enforced(&SandboxSpec { landlock: bench.landlock(), ..spec })
}
