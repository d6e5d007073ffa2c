//! The cell: how a child process is confined. Mechanism only; it knows no policy.
//!
//! ```text
//! supervisor            monitor                init (pid 1)          program
//! launch ──spawn──────> own binary again,
//!                       perhaps long before
//!   spec in a memfd     control group ──clone──> namespaces, view,
//!   <── set-up pipe ────────────────────────── privileges ──fork──> limits, Landlock, report,
//!   <── outcome pipe ── waits, cleans up <──── reaps, kills          seccomp, exec
//!   ── lifeline ──────> kills at its end
//! ```
//! What a cell is to be is a [`SandboxSpec`]; what it became is an [`Enforced`]. A machine that
//! refuses namespaces has no init: the monitor then reaps, and finds survivors by descent.

mod attempt;
mod capture;
mod child;
mod disk;
mod enforced;
mod hard_links;
mod launch;
mod lossless;
mod monitor;
pub mod probe;
mod running;
pub mod seccomp;
mod sockets;
mod spare;
mod spec;
mod sys;
mod wire;

pub use capture::{Captured, LiveOutput, Piece};
pub use child::{Serve, child_entry};
pub use enforced::{Enforced, LimitsHeld, SetupFailed, Step};
pub use hard_links::{HardLinks, SecondName, hard_links};
pub use launch::{Held, Launcher, harden_supervisor};
pub use running::{Cancel, Exit, Finished, Resources, Running};
pub use sockets::bound_sockets;
pub use spare::{Ready, copy_at_start};
pub use spec::{
    Degraded, Grant, GrantAccess, Identity, LandlockVersions, Layer, Limits, Mask, MaskKind,
    MaskPattern, Namespaces, Network, Program, SandboxSpec, ScratchFile, Stdin,
};
pub use wire::ProtectedName;

/// Whether a cell of this spec gives all its guarantees wherever it starts at all.
#[must_use]
pub fn loses_nothing(spec: &SandboxSpec) -> bool {
    launch::needs_namespaces(spec).is_some()
}

/// Starts a child that the next launch of this binary takes, so that it is spared the wait for it.
pub fn ready_once() -> Ready {
    Launcher::default().ready_once()
}

/// The same for the next launch and for each one after it, as long as the value lives.
pub fn ready_always() -> Ready {
    Launcher::default().ready_always()
}

/// Starts a cell from this binary and waits until its program runs or a step failed.
///
/// # Errors
/// The step that failed; nothing runs then.
pub fn launch(spec: &SandboxSpec) -> Result<Running, SetupFailed> {
    Launcher::default().launch(spec)
}

/// Starts to build a cell from this binary whose program waits, confined, until it is released.
pub fn hold(spec: std::sync::Arc<SandboxSpec>) -> Held {
    Launcher::default().hold(spec)
}
