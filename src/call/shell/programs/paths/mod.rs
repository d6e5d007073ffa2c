//! Paths in the arguments of well-known programs. The table (`rows`) says which operands and option
//! values are paths, and what is done to them. A program that is missing names no paths here; the cell holds it.

mod rows;

use super::Invoked;
use super::options::{Options, Read, read};
use crate::call::effects::{Access, PathOrigin};
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::Analysis;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Which operands are paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    None,
    /// All, in this way.
    All(Access),
    /// All; without any, the current directory.
    AllOrHere(Access),
    /// All but the first, which is a pattern, a mode or an owner, unless one of these options gives
    /// that.
    AfterFirst(Access, &'static [&'static str]),
    /// All are read, the last is written.
    Copy,
    /// The same; with `-s` the first ones are only what the links are to say.
    Link,
    /// The first is read, the second written.
    InOut,
    /// The first in this way, the others in that.
    FirstThen(Access, Access),
}

struct Row {
    names: &'static [&'static str],
    options: Options,
    /// Options whose values are paths.
    values: &'static [(&'static str, Access)],
    operands: Operands,
}

const fn options(short: &'static str, long: &'static [&'static str]) -> Options {
    Options { short, long, single_dash: false }
}

/// The row for a program.
fn find(name: &str) -> Option<&'static Row> {
    static BY_NAME: LazyLock<HashMap<&str, &Row>> = LazyLock::new(|| {
        rows::all().flat_map(|row| row.names.iter().map(move |name| (*name, row))).collect()
    });
    BY_NAME.get(name).copied()
}

/// How the options of a program are read that takes paths.
pub(super) fn options_of(name: &str) -> Option<Options> {
    find(name).map(|row| row.options)
}

/// Programs that read a file, or the names in a directory, and never what lies below.
const NEVER_BELOW: [&str; 23] = [
    "cat",
    "cmp",
    "cut",
    "dir",
    "file",
    "head",
    "less",
    "ls",
    "md5sum",
    "more",
    "nl",
    "od",
    "readlink",
    "realpath",
    "sha256sum",
    "sort",
    "stat",
    "strings",
    "tail",
    "tac",
    "vdir",
    "wc",
    "xxd",
];

fn origin(invoked: &Invoked<'_>) -> PathOrigin {
    PathOrigin::ProgramArgument { program: invoked.name.to_owned() }
}

/// How the operands are used. An option that is not known could be `-R`.
fn operand_origin(invoked: &Invoked<'_>, read: &Read) -> PathOrigin {
    let lists = matches!(invoked.name, "ls" | "dir" | "vdir");
    let goes_below = lists
        && (read.unclear
            || read.given.iter().any(|given| matches!(given.name.as_str(), "-R" | "--recursive")));
    if NEVER_BELOW.contains(&invoked.name) && !goes_below {
        return PathOrigin::Listing { program: invoked.name.to_owned() };
    }
    origin(invoked)
}

/// Records the paths in a command's arguments.
pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    match invoked.name {
        "dd" => return blocks(analysis, invoked),
        "sed" | "gsed" => return sed(analysis, invoked),
        "tar" | "gtar" | "bsdtar" => tar(analysis, invoked),
        "curl" => uploads(analysis, invoked),
        "git" => return clone(analysis, invoked),
        _ => {}
    }
    let Some(row) = find(invoked.name) else { return };
    let read = read(invoked.arguments, &row.options, false);
    for given in &read.given {
        let access = row.values.iter().find(|(name, _)| *name == given.name);
        if let (Some((_, access)), Some(value)) = (access, &given.value) {
            local(analysis, invoked, value, *access);
        }
    }
    operands(analysis, invoked, row.operands, &read);
}

/// A path that is not on another host.
fn local(analysis: &mut Analysis, invoked: &Invoked<'_>, field: &Field, access: Access) {
    touched(analysis, invoked, field, (access, origin(invoked)));
}

fn touched(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    field: &Field,
    (access, origin): (Access, PathOrigin),
) {
    let remote = matches!(invoked.name, "scp" | "rsync")
        && field
            .prefix()
            .find(':')
            .is_some_and(|colon| !field.prefix().get(..colon).unwrap_or("/").contains('/'));
    if field.exact() != Some("-") && !remote {
        analysis.path(field, access, origin);
    }
}

fn operands(analysis: &mut Analysis, invoked: &Invoked<'_>, operands: Operands, read: &Read) {
    let fields: Vec<&Field> =
        read.operands.iter().filter_map(|index| invoked.argument(*index)).collect();
    let last = fields.len().saturating_sub(1);
    let given =
        |names: &[&str]| read.given.iter().any(|given| names.contains(&given.name.as_str()));
    let origin = operand_origin(invoked, read);
    match operands {
        Operands::None => {}
        Operands::AllOrHere(access) if fields.is_empty() => {
            let here = Field::known(".", invoked.call.span);
            analysis.path(&here, access, origin);
        }
        Operands::All(access) | Operands::AllOrHere(access) => {
            for field in fields {
                touched(analysis, invoked, field, (access, origin.clone()));
            }
        }
        Operands::AfterFirst(access, instead) => {
            let skip = usize::from(!given(instead));
            fields.iter().skip(skip).for_each(|field| local(analysis, invoked, field, access));
        }
        Operands::Copy => {
            let directory = given(&["-t", "--target-directory"]);
            for (index, field) in fields.iter().enumerate() {
                let access = if index == last && !directory { Access::Write } else { Access::Read };
                local(analysis, invoked, field, access);
            }
        }
        Operands::Link => links(analysis, invoked, &fields, read),
        Operands::InOut => {
            for (index, field) in fields.iter().enumerate() {
                local(
                    analysis,
                    invoked,
                    field,
                    if index == 0 { Access::Read } else { Access::Write },
                );
            }
        }
        Operands::FirstThen(first, then) => {
            for (index, field) in fields.iter().enumerate() {
                local(analysis, invoked, field, if index == 0 { first } else { then });
            }
        }
    }
}

/// `ln`: a hard link is one more name of the file, a symbolic one only a text.
fn links(analysis: &mut Analysis, invoked: &Invoked<'_>, fields: &[&Field], read: &Read) {
    let given =
        |names: &[&str]| read.given.iter().any(|given| names.contains(&given.name.as_str()));
    let is_symbolic = given(&["-s", "--symbolic"]);
    let into_directory = given(&["-t", "--target-directory"]);
    let last = fields.len().saturating_sub(1);
    for (index, field) in fields.iter().enumerate() {
        let is_name = index == last && !into_directory && index > 0;
        let access = if is_name { Access::Write } else { Access::Read };
        let origin = if is_symbolic && !is_name { PathOrigin::LinkText } else { origin(invoked) };
        touched(analysis, invoked, field, (access, origin));
    }
    if fields.len() == 1 && !into_directory {
        // The name is the last one of what it leads to, here.
        let here = Field::known(".", invoked.call.span);
        analysis.path(&here, Access::Write, origin(invoked));
    }
}

/// The end of a field as a path.
fn part(field: &Field, value: &str) -> Field {
    Field { value: value.to_owned(), pattern: None, ..field.clone() }
}

/// `dd if=… of=…`
fn blocks(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    for field in invoked.arguments {
        let access = match field.prefix().split_once('=') {
            Some(("if", path)) => Some((path, Access::Read)),
            Some(("of", path)) => Some((path, Access::Write)),
            Some(_) | None => None,
        };
        if let Some((path, access)) = access {
            local(analysis, invoked, &part(field, path), access);
        }
    }
}

fn sed(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let options =
        options("e:f:l:i::nrEsuz", &["expression=", "file=", "line-length=", "in-place?"]);
    let read = read(invoked.arguments, &options, false);
    let in_place =
        read.given.iter().any(|given| matches!(given.name.as_str(), "-i" | "--in-place"));
    let access = if in_place { Access::Write } else { Access::Read };
    for given in read.given.iter().filter(|given| matches!(given.name.as_str(), "-f" | "--file")) {
        if let Some(file) = &given.value {
            local(analysis, invoked, file, Access::Read);
        }
    }
    operands(
        analysis,
        invoked,
        Operands::AfterFirst(access, &["-e", "-f", "--expression", "--file"]),
        &read,
    );
}

/// The archive and the directories of `tar`, in the old spelling too.
fn tar(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let old = invoked.argument(0).is_some_and(|field| !field.prefix().starts_with('-'));
    let mut fields = invoked.arguments.to_vec();
    if old && let Some(first) = fields.first_mut() {
        first.value.insert(0, '-');
    }
    let Some(row) = find("tar") else { return };
    let read = read(&fields, &row.options, false);
    let has = |short: &str, long: &str| {
        read.given.iter().any(|given| given.name == short || given.name == long)
    };
    let creates = has("-c", "--create") || has("-r", "--append") || has("-u", "--update");
    let extracts = has("-x", "--extract") || has("-x", "--get");
    let files = if creates { (Access::Write, Access::Read) } else { (Access::Read, Access::Write) };
    let mut directory = None;
    for given in &read.given {
        let Some(value) = &given.value else { continue };
        match given.name.as_str() {
            "-f" | "--file" => local(analysis, invoked, value, files.0),
            "-C" | "--directory" => {
                local(analysis, invoked, value, files.1);
                directory = Some(value.clone());
            }
            _ => {}
        }
    }
    if creates {
        let names: Vec<Field> =
            read.operands.iter().filter_map(|index| fields.get(*index).cloned()).collect();
        names.iter().for_each(|field| local(analysis, invoked, field, Access::Read));
    } else if extracts && directory.is_none() && !has("-O", "--to-stdout") {
        let here = Field::known(".", invoked.call.span);
        analysis.path(&here, Access::Write, origin(invoked));
    }
}

/// `curl -d @file`, `-F name=@file`, `-O`.
fn uploads(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let Some(row) = find("curl") else { return };
    let read = read(invoked.arguments, &row.options, false);
    for given in &read.given {
        let Some(value) = &given.value else {
            if matches!(given.name.as_str(), "-O" | "--remote-name") {
                let here = Field::known(".", invoked.call.span);
                analysis.path(&here, Access::Write, origin(invoked));
            }
            continue;
        };
        let data = matches!(
            given.name.as_str(),
            "-d" | "--data"
                | "--data-binary"
                | "--data-ascii"
                | "--data-urlencode"
                | "--json"
                | "-F"
                | "--form"
                | "-H"
                | "--header"
                | "-b"
                | "--cookie"
        );
        let file = value.prefix().split_once('@').filter(|(name, _)| {
            name.is_empty() || name.ends_with('=') || given.name == "--data-urlencode"
        });
        match file {
            Some((_, path)) if data => {
                let path = path.split(';').next().unwrap_or(path).to_owned();
                local(analysis, invoked, &part(value, &path), Access::Read);
            }
            Some(_) | None => {}
        }
    }
}

/// `git clone URL DIRECTORY`
fn clone(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let words: Vec<&Field> =
        invoked.arguments.iter().filter(|field| !field.prefix().starts_with('-')).collect();
    if let [verb, _, directory] = words.as_slice()
        && verb.exact() == Some("clone")
    {
        local(analysis, invoked, directory, Access::Write);
    }
}
