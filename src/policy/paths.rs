//! Rules over paths: from what files say to matchers, and the index that answers for one path.

use super::file::diagnostic::Collector;
use super::file::located::Located;
use super::file::schema::{CacheName, Decision, PathRule};
use super::file::source::{Layer, SourceFile};
use super::rules::globs::{GlobEntry, GlobIndex, Places, Shape, check, expand};
use super::rules::path_names::PathNames;
use super::rules::{PatternError, RuleMeta};
use super::unit::Loaded;
use crate::call::effects::Access;
use std::sync::Arc;

/// A compiled rule over paths, before placeholders are filled in.
#[derive(Debug)]
pub(super) struct PathMatcher {
    /// Who says it.
    pub meta: Arc<RuleMeta>,
    /// What is done.
    pub access: Vec<Access>,
    /// The paths.
    pub patterns: Vec<String>,
    /// Paths that are not meant.
    pub except: Vec<String>,
    /// Paths that no pattern could spell.
    pub places: Vec<Shape>,
    /// Whether a path that does not exist is no error when it is granted.
    pub optional: bool,
}

/// System paths that may be read and run unless `path.system = false`.
pub(super) const SYSTEM_PATHS: [&str; 12] = [
    "/usr/**",
    "/bin/**",
    "/sbin/**",
    "/lib/**",
    "/lib32/**",
    "/lib64/**",
    "/libx32/**",
    "/etc/**",
    "/opt/**",
    "/nix/store/**",
    "/proc/**",
    "/sys/devices/system/**",
];

/// Devices that every cell has.
pub(super) const DEVICE_PATHS: [&str; 12] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/fd/**",
    "/dev/shm/**",
    "/proc/self/fd/**",
    "/dev/tty",
];

/// Files of the system that no cell shows, whoever starts it: a mask in every view.
pub(super) const SYSTEM_SECRETS: [&str; 16] = [
    "/etc/shadow*",
    "/etc/gshadow*",
    "/etc/sudoers",
    "/etc/sudoers.d/**",
    "/etc/ssh/*_key",
    "/etc/ssl/private/**",
    "/etc/pki/tls/private/**",
    "/etc/krb5.keytab",
    "/etc/security/opasswd",
    "/etc/NetworkManager/system-connections/**",
    "/etc/wireguard/**",
    "/etc/openvpn/**",
    "/etc/docker/key.json",
    "/etc/kubernetes/**",
    "/etc/ppp/*-secrets",
    "/etc/netplan/**",
];

const ALL_ACCESS: [Access; 3] = [Access::Read, Access::Write, Access::Execute];

/// Where a named cache lies, below the home directory.
#[must_use]
pub(super) const fn cache_paths(name: CacheName) -> &'static [&'static str] {
    match name {
        CacheName::Cargo => &[".cargo/registry", ".cargo/git", ".cargo/bin", ".cargo/env"],
        CacheName::Rustup => &[".rustup"],
        CacheName::Npm => &[".npm", ".cache/node", ".cache/node-gyp"],
        CacheName::Nvm => &[".nvm", ".volta"],
        CacheName::Yarn => &[".cache/yarn", ".yarn"],
        CacheName::Pnpm => &[".local/share/pnpm", ".cache/pnpm"],
        CacheName::Pip => &[".cache/pip"],
        CacheName::Uv => &[".cache/uv", ".local/share/uv"],
        CacheName::Pyenv => &[".pyenv"],
        CacheName::Go => &["go", ".cache/go-build"],
        CacheName::Maven => &[".m2/repository"],
        CacheName::Gradle => &[".gradle/caches", ".gradle/wrapper"],
    }
}

/// Compiles the path sections of the files of one unit.
pub(super) fn path_matchers(files: &[Loaded], collector: &mut Collector) -> Vec<PathMatcher> {
    let mut matchers = Vec::new();
    for (file, document) in files {
        let section = &document.path;
        let mut list = |id: &str, patterns: &[Located<String>], access: &[Access]| {
            for pattern in patterns {
                matchers.extend(shorthand(file, (id, pattern, access), collector));
            }
        };
        let read_and_run: &[Access] = if section.execute.is_none() {
            &[Access::Read, Access::Execute]
        } else {
            &[Access::Read]
        };
        list("path.read", &section.read, read_and_run);
        list("path.write", &section.write, &[Access::Write]);
        list("path.execute", section.execute.as_deref().unwrap_or(&[]), &[Access::Execute]);
        matchers.extend(section.caches.iter().map(|name| cache(file, name, false)));
        matchers.extend(section.caches_write.iter().map(|name| cache(file, name, true)));
        matchers.extend(section.rule.iter().filter_map(|rule| path_rule(file, rule, collector)));
    }
    let allows = matchers.iter().any(|matcher| matcher.meta.decision == Decision::Allow);
    let system = files.iter().rev().find_map(|(_, document)| document.path.system.as_ref());
    if allows && system.is_none_or(|system| system.value) {
        matchers.push(system_matcher());
    }
    matchers
}

/// The system's paths, as a rule.
#[must_use]
pub(super) fn system_matcher() -> PathMatcher {
    let reason = "programs, libraries and public configuration of the system";
    PathMatcher {
        meta: RuleMeta::built_in("system-paths", Decision::Allow, reason),
        access: vec![Access::Read, Access::Execute],
        patterns: SYSTEM_PATHS.map(str::to_owned).to_vec(),
        except: Vec::new(),
        places: Vec::new(),
        optional: true,
    }
}

/// Rules that hold in every policy, because without them no other rule would.
#[must_use]
pub(super) fn standing_matchers(places: &Places) -> Vec<PathMatcher> {
    let secrets = PathMatcher {
        meta: RuleMeta::built_in(
            "system-secrets",
            Decision::Deny,
            "password hashes and private keys of the system are in no view",
        ),
        access: ALL_ACCESS.to_vec(),
        patterns: SYSTEM_SECRETS.map(str::to_owned).to_vec(),
        except: Vec::new(),
        places: Vec::new(),
        optional: true,
    };
    let own = PathMatcher {
        meta: RuleMeta::built_in(
            "own-state",
            Decision::Deny,
            "policies, approvals, logs and sessions of stoplog are out of reach of every tool",
        ),
        access: ALL_ACCESS.to_vec(),
        patterns: Vec::new(),
        except: Vec::new(),
        places: places.protected.iter().cloned().map(Shape::Tree).collect(),
        optional: true,
    };
    let devices = PathMatcher {
        meta: RuleMeta::built_in("devices", Decision::Allow, "devices that every cell has"),
        access: ALL_ACCESS.to_vec(),
        patterns: DEVICE_PATHS.map(str::to_owned).to_vec(),
        except: Vec::new(),
        places: Vec::new(),
        optional: true,
    };
    vec![secrets, own, devices]
}

type Shorthand<'s> = (&'s str, &'s Located<String>, &'s [Access]);

fn shorthand(
    file: &Arc<SourceFile>,
    (id, pattern, access): Shorthand<'_>,
    collector: &mut Collector,
) -> Option<PathMatcher> {
    let checked = checked(file, &pattern.value, true);
    if let Err((code, message, help)) = checked {
        collector.error(file, &pattern.span, (code, message), help);
        return None;
    }
    let id = Located { value: id.to_owned(), span: pattern.span.clone() };
    Some(PathMatcher {
        meta: RuleMeta::new(file, &id, Decision::Allow, "listed as allowed"),
        access: access.to_vec(),
        patterns: vec![pattern.value.clone()],
        except: Vec::new(),
        places: Vec::new(),
        optional: false,
    })
}

/// What is wrong with a pattern. Those of built-in policies are checked by tests, not at each start.
fn checked(file: &SourceFile, pattern: &str, is_allow: bool) -> Result<(), PatternError> {
    if file.layer == Layer::BuiltIn {
        return Ok(());
    }
    check(pattern)?;
    if is_allow { grantable(pattern) } else { Ok(()) }
}

/// An allow must be something that a kernel can grant: a path, or a directory and all below it.
fn grantable(pattern: &str) -> Result<(), PatternError> {
    match expand(pattern, &Places::example()) {
        Some(Shape::Glob(_)) => Err((
            "not-grantable",
            format!("`{pattern}` cannot be granted: the kernel grants a path or a whole directory"),
            Some("write an exact path or `directory/**`, and deny what is not meant".to_owned()),
        )),
        Some(Shape::Exact(_) | Shape::Tree(_)) | None => Ok(()),
    }
}

fn cache(file: &Arc<SourceFile>, name: &Located<CacheName>, write: bool) -> PathMatcher {
    let id = if write { "path.caches_write" } else { "path.caches" };
    let id = Located { value: id.to_owned(), span: name.span.clone() };
    let access: &[Access] = if write { &ALL_ACCESS } else { &[Access::Read, Access::Execute] };
    let below = |path: &&str| format!("{{home}}/{path}/**");
    PathMatcher {
        meta: RuleMeta::new(file, &id, Decision::Allow, "a named cache"),
        access: access.to_vec(),
        patterns: cache_paths(name.value).iter().map(below).collect(),
        except: Vec::new(),
        places: Vec::new(),
        optional: true,
    }
}

fn path_rule(
    file: &Arc<SourceFile>,
    rule: &PathRule,
    collector: &mut Collector,
) -> Option<PathMatcher> {
    let before = collector.found.len();
    let is_allow = rule.decision.value == Decision::Allow;
    let mut error = |span, (code, message, help): PatternError| {
        collector.error(file, span, (code, message), help);
    };
    for pattern in rule.paths.iter().chain(&rule.except) {
        if let Err(problem) = checked(file, &pattern.value, is_allow) {
            error(&pattern.span, problem);
        }
        if rule.except.contains(pattern)
            && rule.paths.iter().any(|path| path.value == pattern.value)
        {
            let message =
                "the exception takes the whole pattern away, so it can never match".to_owned();
            error(&pattern.span, ("never-matches", message, None));
        }
    }
    if rule.paths.is_empty() {
        let message = "the rule names no path, so it can never match".to_owned();
        error(&rule.id.span, ("never-matches", message, None));
    }
    if let Some(except) = rule.except.first().filter(|_| is_allow) {
        let message = "an allow has no exceptions: the kernel could not hold them".to_owned();
        error(&except.span, ("not-grantable", message, Some("write a deny rule".to_owned())));
    }
    let named: Vec<Access> = rule.access.iter().map(|name| name.access()).collect();
    let texts = |list: &[Located<String>]| list.iter().map(|text| text.value.clone()).collect();
    (collector.found.len() == before).then(|| PathMatcher {
        meta: RuleMeta::new(file, &rule.id, rule.decision.value, &rule.reason.value),
        access: if named.is_empty() { ALL_ACCESS.to_vec() } else { named },
        patterns: texts(&rule.paths),
        except: texts(&rule.except),
        places: Vec::new(),
        optional: false,
    })
}

/// The rules of one unit with placeholders filled in.
#[derive(Debug)]
pub(super) struct PathIndex {
    globs: GlobIndex,
}

impl PathIndex {
    /// Builds the index over `matchers`; owners are positions in it.
    ///
    /// # Errors
    /// The position of a rule that could not be built, with the reason.
    pub(super) fn new(matchers: &[PathMatcher], places: &Places) -> Result<Self, (usize, String)> {
        let mut entries = Vec::new();
        for (owner, matcher) in matchers.iter().enumerate() {
            let is_refusal = matcher.meta.decision > Decision::Allow;
            let patterns = matcher.patterns.iter().map(|pattern| (pattern, false));
            for shape in matcher.places.iter().cloned() {
                entries.push(GlobEntry { owner, shape, is_refusal, is_exception: false });
            }
            for (pattern, is_exception) in patterns.chain(matcher.except.iter().map(|p| (p, true)))
            {
                if let Some(shape) = expand(pattern, places) {
                    entries.push(GlobEntry { owner, shape, is_refusal, is_exception });
                }
            }
        }
        GlobIndex::new(&entries).map(|globs| Self { globs })
    }

    /// The rules that mean this use of a path.
    pub(super) fn fits<'m>(
        &self,
        matchers: &'m [PathMatcher],
        names: &PathNames<'_>,
        access: Access,
    ) -> Vec<&'m PathMatcher> {
        self.globs
            .owners_of(names)
            .into_iter()
            .filter_map(|owner| matchers.get(owner))
            .filter(|matcher| matcher.access.contains(&access))
            .collect()
    }
}
