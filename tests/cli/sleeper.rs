//! A command that can be found among all processes, to see whether a call still lives.

use super::rig::Rig;
use std::fs;
use std::time::{Duration, Instant};

/// A command that sleeps under a name that no other test has, and a look whether it lives.
#[derive(Debug)]
pub(crate) struct Sleeper(String);

impl Sleeper {
    pub(crate) fn new(rig: &Rig) -> Self {
        let place = rig.root().file_name().unwrap().to_str().unwrap();
        let unique: u32 =
            place.bytes().map(u32::from).fold(7, |sum, byte| sum * 31 % 999_983 + byte);
        Self(format!("900.{unique:07}{}", std::process::id()))
    }

    pub(crate) fn command(&self) -> String {
        format!("sleep {}", self.0)
    }

    pub(crate) fn lives(&self) -> bool {
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let mut lines = processes.map(|entry| fs::read(entry.path().join("cmdline")));
        let line = format!("sleep\0{}\0", self.0);
        lines.any(|read| read.is_ok_and(|read| read == line.as_bytes()))
    }

    pub(crate) fn is_gone_soon(&self) -> bool {
        let start = Instant::now();
        while self.lives() && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        !self.lives()
    }
}
