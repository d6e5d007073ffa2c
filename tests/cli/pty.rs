//! A person at a terminal: the program is given a pseudo-terminal of its own as its controlling one, and
//! the test reads what stands on it and types.

use super::rig::{Done, Live, PROGRAM, Rig};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What does not stand on the screen by then never will.
const NEVER: Duration = Duration::from_secs(90);
/// A program that asks writes its question before it waits for the answer.
const BEFORE_KEYS: Duration = Duration::from_millis(100);

/// A process at a terminal.
pub(crate) struct Pty {
    live: Live,
    keys: Option<File>,
    shown: Arc<Mutex<Vec<u8>>>,
    /// Ends when nobody can write to the terminal any more.
    reader: JoinHandle<()>,
    /// Whether the reading thread lets go of the terminal.
    closed: Arc<AtomicBool>,
    /// How much of `shown` was looked at.
    seen: usize,
}

/// Which of the program's streams are the terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    All,
    InputOnly,
}

/// Makes a program the leader of a session at the terminal, and end with it even where the tests
/// themselves were started to survive theirs (`nohup`).
const LEADER: [&str; 4] = ["--default-signal=HUP", "setsid", "--ctty", "--wait"];

impl Pty {
    /// Starts `arguments` with nothing in the environment but what the rig gives and `environment`.
    pub(crate) fn start(
        rig: &Rig,
        arguments: &[&str],
        environment: &[(&str, &str)],
        streams: Streams,
    ) -> Self {
        let mut command = rig.program("env", &[&LEADER[..], &[PROGRAM, "--state-dir"]].concat());
        command.arg(rig.state()).args(arguments).current_dir(rig.work());
        command.env("TERM", "xterm-256color").envs(environment.iter().copied());
        Self::with(command, streams)
    }

    /// Any program, as the leader of a session at the terminal.
    pub(crate) fn program(rig: &Rig, arguments: &[&str]) -> Self {
        Self::with(rig.program("env", &[&LEADER[..], arguments].concat()), Streams::All)
    }

    fn with(mut command: Command, streams: Streams) -> Self {
        let (master, slave) = pair();
        command.stdin(Stdio::from(slave.try_clone().unwrap()));
        if streams == Streams::All {
            command.stdout(Stdio::from(slave.try_clone().unwrap())).stderr(Stdio::from(slave));
        }
        let live = Live::start(command);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, text) = (master.try_clone().unwrap(), Arc::clone(&shown));
        let closed = Arc::new(AtomicBool::new(false));
        let is_closed = Arc::clone(&closed);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0_u8; 4096];
            let slice = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            while !is_closed.load(Ordering::SeqCst) {
                let mut ready = [PollFd::new(&screen, PollFlags::IN)];
                if poll(&mut ready, Some(&slice)).unwrap() == 0 {
                    continue;
                }
                let Ok(count @ 1..) = screen.read(&mut buffer) else { break };
                text.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { live, keys: Some(master), shown, reader, closed, seen: 0 }
    }

    /// Everything that was ever on the screen, control sequences included.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// Waits until `text` stands behind what was waited for before.
    pub(crate) fn sees(&mut self, text: &str) -> &mut Self {
        let start = Instant::now();
        loop {
            // Looked at first: what the process wrote at its end may still be on the way.
            let is_last =
                start.elapsed() > NEVER || (!self.live.runs() && self.reader.is_finished());
            let found = {
                let shown = self.shown.lock().unwrap();
                let new = shown.get(self.seen..).unwrap_or_default();
                new.windows(text.len()).position(|part| part == text.as_bytes())
            };
            if let Some(at) = found {
                self.seen += at + text.len();
                return self;
            }
            assert!(!is_last, "`{text}` is not on the screen: {:?}", self.shown());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the prompt of a chat.
    pub(crate) fn is_asked(&mut self) -> &mut Self {
        self.sees("> ")
    }

    /// Types.
    pub(crate) fn types(&mut self, keys: &str) -> &mut Self {
        std::thread::sleep(BEFORE_KEYS);
        self.keys.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Waits until something is so outside of the terminal.
    pub(crate) fn until(&mut self, happened: impl FnMut() -> bool) -> &mut Self {
        assert!(self.live.until(happened), "{:?}", self.shown());
        self
    }

    pub(crate) fn signal(&mut self, signal: rustix::process::Signal) -> &mut Self {
        self.live.signal(signal);
        self
    }

    /// Closes the terminal, as one closes a window.
    pub(crate) fn closes(&mut self) -> &mut Self {
        drop(self.keys.take());
        self.closed.store(true, Ordering::SeqCst);
        self
    }

    /// Waits for the end; gives what was on the screen, too.
    pub(crate) fn ends(self) -> (Done, String) {
        let done = self.live.end();
        let start = Instant::now();
        while !self.reader.is_finished() && start.elapsed() < NEVER {
            std::thread::sleep(Duration::from_millis(5));
        }
        let shown = String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned();
        (done, shown)
    }
}

/// Both ends of a terminal of 40 lines of 120 columns.
fn pair() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(master), slave)
}
