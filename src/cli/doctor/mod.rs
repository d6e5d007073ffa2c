//! `doctor`: what this machine can enforce, and with `--selftest` the proof of each guarantee.

mod heirs;
mod people;
mod policies;
mod trials;

use super::args::DoctorArgs;
use super::{CommandError, Context, Outcome, json};
use crate::base::exit::Exit;
use crate::sandbox::probe::{Bench, PROBES, Probe, Report};
use policies::PolicyCell;
use serde::Serialize;
use std::fmt;

/// What the machine gives, and what each shipped policy makes of it.
#[derive(Debug, Serialize)]
struct Diagnosis {
    #[serde(flatten)]
    machine: Report,
    policies: Vec<PolicyCell>,
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for policy in &self.policies {
            writeln!(formatter, "{policy}")?;
        }
        write!(formatter, "{}", self.machine)
    }
}

/// `stoplog doctor`
pub(super) fn doctor(context: &Context, args: &DoctorArgs) -> Outcome {
    let mut bench =
        Bench::of_this_program().map_err(|error| CommandError::new(Exit::Fault, error))?;
    if let Some(version) = args.landlock_at_most {
        bench = bench.with_landlock_at_most(version);
    }
    let own = trials::TRIALS.into_iter().chain(people::TRIALS).chain(heirs::TRIALS);
    let mut probes: Vec<Probe> = PROBES.into_iter().chain(own).collect();
    if !args.selftest {
        probes.clear();
    }
    let report = Diagnosis {
        machine: Report::of(&bench, &probes),
        policies: policies::cells(&context.environment, &bench),
    };
    if args.json {
        context.screen.out(&json(&report)?);
    } else {
        context.screen.out(&report.to_string());
        if !args.selftest {
            context.screen.err("`stoplog doctor --selftest` proves the guarantees");
        }
    }
    Ok(if report.machine.failed() { Exit::Sandbox } else { Exit::Done })
}
