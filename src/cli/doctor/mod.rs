//! `doctor`: what this machine can enforce, and with `--selftest` the proof of each guarantee.

mod trials;

use super::args::DoctorArgs;
use super::{CommandError, Context, Outcome, json};
use crate::base::exit::Exit;
use crate::sandbox::probe::{Bench, PROBES, Probe, Report};

/// `stoplog doctor`
pub(super) fn doctor(context: &Context, args: &DoctorArgs) -> Outcome {
    let bench = Bench::of_this_program().map_err(|error| CommandError::new(Exit::Fault, error))?;
    let mut probes: Vec<Probe> = PROBES.into_iter().chain(trials::TRIALS).collect();
    if !args.selftest {
        probes.clear();
    }
    let report = Report::of(&bench, &probes);
    if args.json {
        context.screen.out(&json(&report)?);
    } else {
        context.screen.out(&report.to_string());
        if !args.selftest {
            context.screen.err("`stoplog doctor --selftest` proves the guarantees");
        }
    }
    Ok(if report.failed() { Exit::Sandbox } else { Exit::Done })
}
