//! Where sessions lie: one directory each under the state directory, readable by their owner alone.
//!
//! ```text
//! ROOT/sessions/ID/journal.jsonl   this module's file
//!                  quarantine/     protected names that a call created
//!                  tmp/            what the tools see as /tmp
//!      scratch/ID/                 claim to a temporary directory of one process (`scratch`)
//! ```
//! The state directory must not be reachable by a tool or by another user: one that lies inside a
//! workspace, is open to others, is a symbolic link or belongs to somebody else is refused. Finding
//! the directory (XDG) is the business of `cli`.

use crate::base::clock::Clock;
use crate::base::ids::Id;
use crate::base::jsonl;
use crate::base::paths::is_within;
use crate::session::facts::extension::EXTENSION;
use crate::session::facts::message::Message;
use crate::session::facts::{Counters, Header};
use crate::session::journal::{Journal, SessionError};
use crate::session::reduce::corruption::Corruption;
use crate::session::reduce::reduce;
use crate::session::state::SessionState;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A relative path means another directory for each process.
    #[error("the state directory `{}` is not an absolute path; give an absolute one", path.display())]
    Relative {
        /// The directory.
        path: PathBuf,
    },
    /// Tools could read and change it.
    #[error(
        "the state directory `{}` and the workspace `{}` lie in one another, so tools could reach \
         it; choose another with --state-dir", path.display(), workspace.display()
    )]
    InWorkspace {
        /// The directory.
        path: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// Other users could read or change it.
    #[error(
        "`{}` is open to other users (mode {mode:04o}); run `chmod 700 '{}'`",
        path.display(), path.display()
    )]
    OpenToOthers {
        /// The directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It could lead anywhere.
    #[error("`{}` is a symbolic link; give the directory that it leads to", path.display())]
    SymbolicLink {
        /// The link.
        path: PathBuf,
    },
    /// It is something else.
    #[error("`{}` is not a directory; move it away or choose another with --state-dir", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Its owner could read and change it.
    #[error(
        "`{}` belongs to user {owner} and not to you; choose another with --state-dir",
        path.display()
    )]
    ForeignOwner {
        /// The directory.
        path: PathBuf,
        /// The owner's user id.
        owner: u32,
    },
    /// No session has this id.
    #[error("no session is called `{wanted}`; `stoplog session list` shows them")]
    NotFound {
        /// What was asked for, escaped.
        wanted: String,
    },
    /// Several sessions match.
    #[error("`{wanted}` fits {} sessions; give more of the id: {}", fitting.len(), join(fitting))]
    Ambiguous {
        /// What was asked for, escaped.
        wanted: String,
        /// The sessions.
        fitting: Vec<Id>,
    },
    /// The session is in use.
    #[error("session `{id}` is in use by another process")]
    InUse {
        /// The session.
        id: Id,
    },
    /// The journal could not be begun.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The operating system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn join(ids: &[Id]) -> String {
    ids.iter().map(Id::as_str).collect::<Vec<_>>().join(", ")
}

/// The state directory, checked.
#[derive(Debug, Clone)]
pub struct Store {
    sessions: PathBuf,
    pub(super) scratch: PathBuf,
}

/// The directory of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDirectory {
    /// The session.
    pub id: Id,
    path: PathBuf,
}

impl SessionDirectory {
    /// The session.
    #[must_use]
    pub const fn id(&self) -> &Id {
        &self.id
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Protected names that a call created; they are moved here out of the workspace.
    #[must_use]
    pub fn quarantine(&self) -> PathBuf {
        self.path.join("quarantine")
    }

    /// What the tools see as `/tmp`.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }
}

/// One line of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Where it lies.
    pub directory: SessionDirectory,
    /// How it stands.
    pub status: SessionStatus,
    /// Whether a process has it open.
    pub in_use: bool,
    /// What the file says; none if it cannot be read.
    pub content: Option<SessionContent>,
}

/// What the file of a session says, for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionContent {
    /// Its first line.
    pub header: Header,
    /// The first user message, as it came.
    pub first_message: Option<String>,
    /// Messages in all.
    pub messages: usize,
    /// Tokens in all.
    pub usage: Counters,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStatus {
    /// A user message may be added.
    Idle,
    /// Something is going on, or was cut off if no process has the session open.
    Unfinished,
    /// The file is damaged.
    Corrupt(Corruption),
    /// The file cannot be read.
    Unreadable(String),
}

/// Which sessions [`Store::prune`] removes: those that meet both conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneRule {
    /// So many of the newest stay.
    pub keep_newest: usize,
    /// Only those created before this time, in milliseconds since the Unix epoch.
    pub created_before: u64,
}

impl Store {
    /// Opens the state directory, and makes it with mode 0700 if it is missing. No workspace may lie
    /// in it, nor it in a workspace.
    ///
    /// # Errors
    /// Every way in which it could be reached by others; each says what to do.
    pub fn open(root: &Path, workspaces: &[&Path]) -> Result<Self, StoreError> {
        if !root.is_absolute() {
            return Err(StoreError::Relative { path: root.to_owned() });
        }
        refuse_workspaces(root, workspaces)?;
        make_private(root)?;
        let real = fs::canonicalize(root).map_err(refused("resolve", root))?;
        refuse_workspaces(&real, workspaces)?;
        let sessions = real.join("sessions");
        make_private(&sessions)?;
        Ok(Self { sessions, scratch: real.join("scratch") })
    }

    /// Makes a session: its directory and its journal. `header` gives all but id, time and
    /// extensions, which are set here.
    ///
    /// # Errors
    /// Those of the file system and of the journal.
    pub fn create(
        &self,
        header: Header,
        clock: Clock,
    ) -> Result<(SessionDirectory, Journal), StoreError> {
        let directory = self.make(header.id.clone())?;
        let header =
            Header { created_at: clock.now_ms(), extensions: vec![EXTENSION.to_owned()], ..header };
        let journal = Journal::create(&directory.journal(), &header, clock)?;
        Ok((directory, journal))
    }

    /// The directories of a session that does not exist yet.
    pub(super) fn make(&self, id: Id) -> Result<SessionDirectory, StoreError> {
        let directory = SessionDirectory { path: self.sessions.join(id.as_str()), id };
        make_directory(&directory.path)?;
        make_directory(&directory.quarantine())?;
        make_directory(&directory.tmp())?;
        Ok(directory)
    }

    /// All sessions, the newest first, damaged ones included.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn list(&self) -> Result<Vec<SessionSummary>, StoreError> {
        Ok(self.directories()?.into_iter().map(summary).collect())
    }

    /// The directories of all sessions, the newest first.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn directories(&self) -> Result<Vec<SessionDirectory>, StoreError> {
        let entries = fs::read_dir(&self.sessions).map_err(refused("list", &self.sessions))?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(refused("list", &self.sessions))?;
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let id = entry.file_name().to_str().and_then(Id::parse);
            if let Some(id) = id.filter(|_| is_directory) {
                found.push(SessionDirectory { id, path: entry.path() });
            }
        }
        found.sort_by(|left, right| right.id.cmp(&left.id));
        Ok(found)
    }

    /// The session whose id is `wanted`, or begins or ends with it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] and [`StoreError::Ambiguous`].
    pub fn find(&self, wanted: &str) -> Result<SessionDirectory, StoreError> {
        let mut fitting = self.directories()?;
        fitting.retain(|directory| {
            let id = directory.id.as_str();
            !wanted.is_empty() && (id.starts_with(wanted) || id.ends_with(wanted))
        });
        let wanted = crate::base::text::escape(wanted);
        if fitting.len() > 1 {
            let fitting = fitting.into_iter().map(|directory| directory.id).collect();
            return Err(StoreError::Ambiguous { wanted, fitting });
        }
        let directory = fitting.pop().ok_or(StoreError::NotFound { wanted })?;
        check(&directory.path, &inspect(&directory.path)?)?;
        Ok(directory)
    }

    /// The newest session of a workspace, if there is one.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn newest_of(&self, workspace: &str) -> Result<Option<SessionDirectory>, StoreError> {
        let of_workspace = |directory: &SessionDirectory| {
            let content = summary(directory.clone()).content;
            content.is_some_and(|content| content.header.cwd == workspace)
        };
        Ok(self.directories()?.into_iter().find(of_workspace))
    }

    /// Removes old sessions that no process has open, and tells which.
    ///
    /// # Errors
    /// If a directory cannot be read or removed; those before it are gone.
    pub fn prune(&self, rule: PruneRule) -> Result<Vec<Id>, StoreError> {
        let mut removed = Vec::new();
        for directory in self.directories()?.into_iter().skip(rule.keep_newest) {
            if created_at(&directory) < rule.created_before && remove_unused(&directory)? {
                removed.push(directory.id);
            }
        }
        Ok(removed)
    }

    /// Removes one session.
    ///
    /// # Errors
    /// [`StoreError::InUse`], or if it cannot be removed.
    pub fn remove(&self, directory: &SessionDirectory) -> Result<(), StoreError> {
        if remove_unused(directory)? {
            Ok(())
        } else {
            Err(StoreError::InUse { id: directory.id.clone() })
        }
    }
}

fn refuse_workspaces(root: &Path, workspaces: &[&Path]) -> Result<(), StoreError> {
    for workspace in workspaces {
        let real = fs::canonicalize(workspace).unwrap_or_else(|_| (*workspace).to_owned());
        if is_within(root, &real) || is_within(&real, root) {
            return Err(StoreError::InWorkspace { path: root.to_owned(), workspace: real });
        }
    }
    Ok(())
}

/// Makes the directory and those above it if they are missing, then checks it.
pub(super) fn make_private(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => check(path, &metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().unwrap_or(Path::new("/"));
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder.create(parent).map_err(refused("make", parent))?;
            match DirBuilder::new().mode(0o700).create(path) {
                // Another start was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(refused("make", path))?,
            }
            check(path, &inspect(path)?)
        }
        Err(error) => Err(refused("inspect", path)(error)),
    }
}

pub(super) fn make_directory(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new().mode(0o700).create(path).map_err(refused("make", path))
}

fn inspect(path: &Path) -> Result<Metadata, StoreError> {
    fs::symlink_metadata(path).map_err(refused("inspect", path))
}

fn check(path: &Path, metadata: &Metadata) -> Result<(), StoreError> {
    let path = path.to_owned();
    let mode = metadata.mode() & 0o7777;
    let owner = metadata.uid();
    if metadata.is_symlink() {
        Err(StoreError::SymbolicLink { path })
    } else if !metadata.is_dir() {
        Err(StoreError::NotADirectory { path })
    } else if owner != geteuid().as_raw() {
        Err(StoreError::ForeignOwner { path, owner })
    } else if mode & 0o077 != 0 {
        Err(StoreError::OpenToOthers { path, mode })
    } else {
        Ok(())
    }
}

fn summary(directory: SessionDirectory) -> SessionSummary {
    let in_use = is_in_use(&directory);
    let (status, content) = match jsonl::read(&directory.journal()) {
        Err(error) => (SessionStatus::Unreadable(error.to_string()), None),
        Ok(contents) => match reduce(&contents.complete) {
            Err(corruption) => (SessionStatus::Corrupt(corruption), None),
            Ok(state) if state.is_idle() => (SessionStatus::Idle, Some(content(state))),
            Ok(state) => (SessionStatus::Unfinished, Some(content(state))),
        },
    };
    SessionSummary { directory, status, in_use, content }
}

fn content(state: SessionState) -> SessionContent {
    let first_message = state.transcript.iter().find_map(|placed| match &*placed.message {
        Message::User(user) => Some(user.content.clone()),
        Message::Assistant(_) | Message::Tool(_) => None,
    });
    SessionContent {
        first_message,
        messages: state.transcript.len(),
        usage: state.usage,
        header: state.header,
    }
}

/// The time that a version 7 UUID begins with.
fn created_at(directory: &SessionDirectory) -> u64 {
    let digits: String =
        directory.id.as_str().chars().filter(|digit| *digit != '-').take(12).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(u64::MAX)
}

/// The lock of the journal, if nobody else has it. A session without one is in nobody's hands.
fn take_lock(directory: &SessionDirectory, how: FlockOperation) -> io::Result<Option<File>> {
    let path = directory.journal().with_extension("lock");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let lock = match rustix::fs::open(&path, flags, Mode::empty()) {
        Ok(lock) => File::from(lock),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    flock(&lock, how)?;
    Ok(Some(lock))
}

fn is_in_use(directory: &SessionDirectory) -> bool {
    let lock = take_lock(directory, FlockOperation::NonBlockingLockShared);
    lock.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Removes the session unless a process has it open, and tells whether it did.
fn remove_unused(directory: &SessionDirectory) -> Result<bool, StoreError> {
    let path = &directory.path;
    let lock = match take_lock(directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
        Err(error) => return Err(refused("lock", path)(error)),
    };
    remove(path).map_err(refused("remove", path))?;
    drop(lock);
    Ok(true)
}

/// Removes a tree, also what tools made hard to remove. Root, whom no mode stops, never changes one:
/// others may write where temporary files lie.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match remove_tree(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !geteuid().is_root() => {
            open_directories(path);
            remove_tree(path)
        }
        other => other,
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that removes sessions")]
fn remove_tree(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path)
}

/// Tools may have left directories in `tmp` that their owner cannot write. Symbolic links are not
/// followed. What cannot be opened is found when the removal is tried again.
fn open_directories(path: &Path) {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    if !is_directory || fs::set_permissions(path, Permissions::from_mode(0o700)).is_err() {
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        open_directories(&entry.path());
    }
}

pub(super) fn refused(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path, source }
}
