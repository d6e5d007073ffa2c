//! What the policy's plan of a cell means as a specification that the sandbox builds. One place, so
//! that tools and hooks run in the same kind of cell.

use crate::base::limits::{
    KILL_GRACE, OUTPUT_TOTAL_BYTES_MAX, PRIVATE_TMP_BYTES_MAX, SPILL_BYTES_MAX,
    TOOL_RESULT_BYTES_MAX, TOOL_TIME_MAX,
};
use crate::base::paths::is_within;
use crate::base::pattern::escape;
use crate::call::effects::Access;
use crate::policy::{
    CellLayer, CellPlan, MaskPlanKind, NetworkMode, PlannedGrant, PlannedMask, PlannedPattern,
};
use crate::sandbox::{
    Degraded, Grant, GrantAccess, Identity, LandlockVersions, Layer, Limits, Mask, MaskKind,
    MaskPattern, Namespaces, Network, Program, SandboxSpec, ScratchFile,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that the cells of one run have in common.
#[derive(Debug, Clone)]
pub struct CellBase {
    /// The policy's plan.
    pub plan: CellPlan,
    /// Working directory of tools.
    pub workspace: PathBuf,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What tools see as `/tmp`; `None` = memory, new for each call.
    pub private_tmp: Option<PathBuf>,
    /// Directories that exist empty in the cell: the home directory, unless it is granted.
    pub scratch: Vec<PathBuf>,
    /// Files in those directories.
    pub scratch_files: Vec<ScratchFile>,
    /// Where protected names that a call creates are moved to.
    pub quarantine: Option<PathBuf>,
    /// As whom tools run.
    pub identity: Identity,
    /// Whether namespaces may be used.
    pub namespaces: Namespaces,
    /// Whether nobody is there to be told what a cell does not give. Then nothing may be lost, unless
    /// the policy accepts it in so many words.
    pub unwatched: bool,
}

impl CellBase {
    /// The cell for `program`. `approved` are paths of which a person said yes for this call: a rule
    /// that asks does not mask them.
    #[must_use]
    pub fn spec(&self, program: Program, approved: &[PathBuf]) -> SandboxSpec {
        let plan = &self.plan;
        SandboxSpec {
            program,
            cwd: self.workspace.clone(),
            environment: self.environment.clone(),
            grants: plan
                .grants
                .iter()
                .filter(|planned| !is_tmp(&planned.path))
                .filter_map(grant)
                .collect(),
            masks: masks(&plan.masks, approved),
            private_tmp: self.private_tmp.clone(),
            scratch: self.scratch.clone(),
            scratch_files: self.scratch_files.clone(),
            quarantine: self.quarantine.clone(),
            pseudo_terminals: false,
            network: network(plan.network),
            limits: limits(plan),
            identity: self.identity,
            degraded: match plan.degraded {
                crate::policy::Degraded::Allow => Degraded::Allow,
                crate::policy::Degraded::Refuse if self.unwatched => Degraded::RefuseAny,
                crate::policy::Degraded::Refuse => Degraded::Refuse,
            },
            require: plan.require.iter().copied().map(layer).collect(),
            landlock: LandlockVersions::default(),
            namespaces: self.namespaces,
        }
    }

    /// Whether a tool may change `path`, as far as the grant that decides about it says.
    #[must_use]
    pub fn may_write(&self, path: &Path) -> bool {
        let around = self.plan.grants.iter().filter(|grant| is_within(path, &grant.path));
        let innermost = around.max_by_key(|grant| grant.path.components().count());
        innermost.is_some_and(|grant| grant.access.contains(&Access::Write))
    }

    /// Whether a cell can see this machine's `path` at all.
    #[must_use]
    pub fn grants_path(&self, path: &Path) -> bool {
        let granted = self.plan.grants.iter().filter(|grant| !is_tmp(&grant.path));
        granted.map(|grant| &grant.path).any(|grant| is_within(path, grant))
    }
}

const fn layer(required: CellLayer) -> Layer {
    match required {
        CellLayer::MountView => Layer::MountView,
        CellLayer::Landlock => Layer::Landlock,
        CellLayer::Seccomp => Layer::Seccomp,
        CellLayer::NetworkNamespace => Layer::NetworkNamespace,
        CellLayer::PidNamespace => Layer::PidNamespace,
        CellLayer::Cgroup => Layer::Cgroup,
    }
}

/// The cell shows its private directory there; the machine's own is in no view.
fn is_tmp(path: &Path) -> bool {
    path == Path::new("/tmp") || path == Path::new("/var/tmp")
}

/// A grant that allows nothing is none. Everything in a cell that may be written or run may be read:
/// a program that cannot be read cannot be started.
fn grant(planned: &PlannedGrant) -> Option<Grant> {
    let may = |access| planned.access.contains(&access);
    let access = match (may(Access::Read), may(Access::Write), may(Access::Execute)) {
        (false, false, false) => return None,
        (true, false, false) => GrantAccess::ReadOnly,
        (_, false, true) => GrantAccess::ReadExecute,
        (_, true, false) => GrantAccess::ReadWrite,
        (_, true, true) => GrantAccess::ReadWriteExecute,
    };
    Some(Grant { path: planned.path.clone(), access, optional: planned.optional })
}

/// The masks of a plan. Patterns that a rule has for one directory are one mask: there are dozens, and
/// the specification is written, and read in the cell, while a call waits for it.
fn masks(planned: &[PlannedMask], approved: &[PathBuf]) -> Vec<Mask> {
    let mut masks = Vec::new();
    let mut globs: BTreeMap<GlobOf<'_>, Vec<String>> = BTreeMap::new();
    for planned in planned {
        match &planned.pattern {
            PlannedPattern::Exact(path) => {
                if !(planned.unless_approved && approved.contains(path)) {
                    let of = (planned.kind, planned.rule_id.as_str());
                    masks.push(mask(of, MaskPattern::Exact(path.clone())));
                }
            }
            PlannedPattern::Glob { root, pattern } => {
                let of = GlobOf {
                    root,
                    rule_id: &planned.rule_id,
                    kind: planned.kind,
                    unless_approved: planned.unless_approved,
                    except: &planned.except,
                };
                globs.entry(of).or_default().push(pattern.clone());
            }
        }
    }
    masks.extend(globs.into_iter().map(|(of, patterns)| {
        let approved: &[PathBuf] = if of.unless_approved { approved } else { &[] };
        let inside = approved.iter().filter_map(|path| path.strip_prefix(of.root).ok()?.to_str());
        let except = of.except.iter().cloned().chain(inside.map(escape)).collect();
        mask(
            (of.kind, of.rule_id),
            MaskPattern::Glob { root: of.root.to_owned(), patterns, except },
        )
    }));
    masks
}

/// What patterns of one mask have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GlobOf<'p> {
    root: &'p Path,
    rule_id: &'p str,
    kind: MaskPlanKind,
    unless_approved: bool,
    except: &'p [String],
}

fn mask((kind, rule_id): (MaskPlanKind, &str), pattern: MaskPattern) -> Mask {
    let kind = match kind {
        MaskPlanKind::Hide => MaskKind::Hide,
        MaskPlanKind::ReadOnly => MaskKind::ReadOnly,
    };
    Mask { pattern, kind, reason_id: rule_id.to_owned() }
}

/// Without a proxy to decide on each host, `proxy` gives no network at all: never more than was said.
const fn network(mode: NetworkMode) -> Network {
    match mode {
        NetworkMode::Off | NetworkMode::Proxy => Network::Off,
        NetworkMode::Host => Network::Host,
    }
}

fn limits(plan: &CellPlan) -> Limits {
    let written = &plan.limits;
    let milliseconds =
        |value: Option<u64>, otherwise| value.map_or(otherwise, Duration::from_millis);
    let kept = written.output_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let kept = kept.map_or(TOOL_RESULT_BYTES_MAX, |bytes| bytes.min(TOOL_RESULT_BYTES_MAX));
    Limits {
        wall: milliseconds(written.wall_ms, TOOL_TIME_MAX),
        kill_grace: milliseconds(written.kill_grace_ms, KILL_GRACE),
        cpu_seconds: written.cpu_seconds,
        memory_bytes: written.memory_bytes,
        processes: written.processes,
        file_size_bytes: written.file_size_bytes,
        open_files: written.open_files,
        private_tmp_bytes: Some(written.tmp_bytes.unwrap_or(PRIVATE_TMP_BYTES_MAX)),
        output_head_bytes: kept / 2,
        output_tail_bytes: kept - kept / 2,
        output_total_bytes: Some(OUTPUT_TOTAL_BYTES_MAX),
        spill: None,
        spill_bytes: written.spill_bytes.unwrap_or(SPILL_BYTES_MAX).min(SPILL_BYTES_MAX),
        merge_output: false,
    }
}
