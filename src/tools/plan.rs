//! From a call to the cell it runs in. A pure function of the call and the toolbox, so that what is
//! recorded before the effect is what runs.

use super::toolbox::Toolbox;
use super::worker::job::{
    FileJob, FileRequest, JobLimits, Protected, ProtectedKind, ProtectedPattern, Root,
};
use crate::base::limits::{FILE_JOB_TIME_MAX, JOB_REPLY_BYTES_MAX, JOB_TIME_MAX};
use crate::base::paths::normalise;
use crate::call::ToolCall;
use crate::call::request::{BashArguments, Request};
use crate::chain::resolve::real_path;
use crate::sandbox::{Grant, GrantAccess, MaskKind, MaskPattern, Program, SandboxSpec, Stdin};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time for the start of a cell and the answer's way back, on top of a job's own limit.
const JOB_TIME_SLACK: Duration = Duration::from_secs(10);

/// The cell for `call`; `approved` are paths to which a person agreed for this call. A call about a
/// background job has none: the job runs in its own, and what is known of it is held here.
#[must_use]
pub fn cell(call: &ToolCall, toolbox: &Toolbox, approved: &[PathBuf]) -> Option<SandboxSpec> {
    Some(match &call.request {
        Request::Bash(arguments) => bash(call, arguments, toolbox, approved),
        Request::JobKill(_) | Request::JobOutput(_) => return None,
        Request::Edit(_)
        | Request::Glob(_)
        | Request::Grep(_)
        | Request::List(_)
        | Request::Read(_)
        | Request::Write(_) => file_job(&call.request, toolbox, approved),
    })
}

fn bash(
    call: &ToolCall,
    arguments: &BashArguments,
    toolbox: &Toolbox,
    approved: &[PathBuf],
) -> SandboxSpec {
    // Neither profile nor rc file, and no script that is read as an option: what runs is the script
    // that was judged and nothing else.
    let argv = ["bash", "--noprofile", "--norc", "-c", "--", arguments.command.as_str()];
    let argv = argv.map(OsString::from).to_vec();
    let mut spec = toolbox.cell.spec(Program::Exec { argv, stdin: Stdin::Empty }, approved);
    if let Some(cwd) = &arguments.cwd {
        spec.cwd = normalise(&toolbox.cell.workspace, Path::new(cwd));
    }
    if arguments.is_background() {
        // A rule about the time of a call holds for one that nobody waits for, too.
        let written = toolbox.cell.plan.limits.wall_ms.map(Duration::from_millis);
        spec.limits.wall = written.map_or(JOB_TIME_MAX, |most| most.min(JOB_TIME_MAX));
    }
    if let Some(asked) = arguments.timeout_ms {
        spec.limits.wall = spec.limits.wall.min(Duration::from_millis(asked));
    }
    spec.limits.merge_output = true;
    spec.limits.spill = toolbox.outputs.as_ref().map(|outputs| outputs.file(&call.id));
    spec
}

fn file_job(request: &Request, toolbox: &Toolbox, approved: &[PathBuf]) -> SandboxSpec {
    let mut spec = toolbox.cell.spec(Program::FileJob { job: Vec::new() }, approved);
    let job = FileRequest::of(request).map(|file_request| FileJob {
        workspace: toolbox.cell.workspace.clone(),
        roots: roots(&spec),
        protected: protections(&spec),
        known_content: known_content(request, toolbox),
        created: toolbox.files.created(),
        request: file_request,
        limits: JobLimits::default(),
    });
    // A job is plain data; should it not encode, the worker refuses the empty one.
    let job = job.and_then(|job| serde_json::to_vec(&job).ok()).unwrap_or_default();
    spec.program = Program::FileJob { job };
    spec.limits.wall = spec.limits.wall.min(FILE_JOB_TIME_MAX + JOB_TIME_SLACK);
    spec.limits.output_head_bytes = JOB_REPLY_BYTES_MAX + 1;
    spec.limits.output_tail_bytes = 0;
    spec
}

/// The directories and files that the cell shows, links in their own paths followed.
fn roots(spec: &SandboxSpec) -> Vec<Root> {
    let of_grant = |grant: &Grant| Root {
        path: real_path(&grant.path),
        writable: match grant.access {
            GrantAccess::ReadWrite | GrantAccess::ReadWriteExecute => true,
            GrantAccess::ReadOnly | GrantAccess::ReadExecute => false,
        },
    };
    // The session's own directory is shown under both names.
    let tmp = ["/tmp", "/var/tmp"].map(|path| Root { path: PathBuf::from(path), writable: true });
    let mut roots: Vec<Root> = spec.grants.iter().map(of_grant).collect();
    roots.retain(|root| tmp.iter().all(|own| own.path != root.path));
    roots.extend(tmp);
    roots
}

/// The masks again, for the worker to name the rule instead of meeting an empty file.
fn protections(spec: &SandboxSpec) -> Vec<Protected> {
    let of_mask = |mask: &crate::sandbox::Mask| {
        let pattern = match &mask.pattern {
            MaskPattern::Exact(path) => ProtectedPattern::Exact(path.clone()),
            MaskPattern::Glob { root, patterns, except } => ProtectedPattern::Glob {
                root: root.clone(),
                patterns: patterns.clone(),
                except: except.clone(),
            },
        };
        let kind = match mask.kind {
            MaskKind::Hide => ProtectedKind::Hide,
            MaskKind::ReadOnly => ProtectedKind::ReadOnly,
        };
        Protected { pattern, kind, rule: mask.reason_id.clone() }
    };
    spec.masks.iter().map(of_mask).collect()
}

fn known_content(request: &Request, toolbox: &Toolbox) -> Option<crate::base::digest::Digest> {
    let Request::Edit(arguments) = request else { return None };
    let path = normalise(&toolbox.cell.workspace, Path::new(&arguments.path));
    toolbox.files.seen(&real_path(&path))
}
