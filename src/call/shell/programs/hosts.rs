//! Hosts in the arguments of programs that use the network.

use super::Invoked;
use crate::call::effects::Span;
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::Analysis;

/// Programs whose arguments are addresses of the form `scheme://host`.
const BY_ADDRESS: [&str; 24] = [
    "curl",
    "wget",
    "git",
    "http",
    "https",
    "xh",
    "aria2c",
    "svn",
    "hg",
    "pip",
    "pip3",
    "npm",
    "yarn",
    "pnpm",
    "ftp",
    "lftp",
    "lynx",
    "links",
    "w3m",
    "elinks",
    "axel",
    "youtube-dl",
    "yt-dlp",
    "websocat",
];
/// Programs that take `[user@]host:path`.
const BY_PATH: [&str; 4] = ["scp", "rsync", "git", "sftp"];
/// Programs whose first operand is a host.
const BY_NAME: [&str; 18] = [
    "ssh",
    "sftp",
    "nc",
    "ncat",
    "netcat",
    "telnet",
    "ping",
    "ping6",
    "dig",
    "nslookup",
    "host",
    "traceroute",
    "tracepath",
    "whois",
    "mtr",
    "nmap",
    "ftp",
    "mosh",
];

pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let known = [BY_ADDRESS.as_slice(), &BY_PATH, &BY_NAME];
    if !known.iter().any(|names| names.contains(&invoked.name)) {
        return;
    }
    let by_name = BY_NAME.contains(&invoked.name);
    let mut named = !by_name;
    let mut skip = false;
    for (index, field) in invoked.arguments.iter().enumerate() {
        // A bracket in an address is no pattern unless a file of that name exists.
        let text = if field.unknown { field.prefix() } else { &field.value };
        if std::mem::take(&mut skip) {
            continue;
        }
        if let Some(address) = text.split_once("://") {
            if BY_ADDRESS.contains(&invoked.name) || by_name {
                named = true;
                address_host(analysis, address.0, address.1, field.span);
            }
        } else if text.starts_with('-') {
            skip = by_name && takes_value(invoked.name, text);
        } else if BY_PATH.contains(&invoked.name) && remote(text).is_some() {
            named = true;
            analysis.host(remote(text).unwrap_or(""), None, field.span);
        } else if !named {
            named = true;
            host_operand(analysis, invoked, index, text, field.span);
        } else if invoked.name == "curl" && bare_address(text) && !follows_option(invoked, index) {
            address_host(analysis, "http", text, field.span);
        }
    }
}

/// Whether the word before is an option that takes this one as its value.
fn follows_option(invoked: &Invoked<'_>, index: usize) -> bool {
    let before =
        index.checked_sub(1).and_then(|index| invoked.argument(index)).map_or("", Field::prefix);
    before.starts_with('-')
        && !matches!(
            before,
            "-s" | "-L"
                | "-f"
                | "-sS"
                | "-fsSL"
                | "-sL"
                | "-k"
                | "-v"
                | "-i"
                | "-I"
                | "-O"
                | "-sSL"
                | "-sSfL"
        )
}

fn takes_value(program: &str, option: &str) -> bool {
    if option.len() != 2 {
        return false;
    }
    let letters = match program {
        "ssh" | "sftp" | "mosh" => "BbcDEeFIiJLlmOoPpQRSWw",
        "ping" | "ping6" => "cIimMpQsStTwW",
        "nc" | "ncat" | "netcat" => "ecgGiIMmOoPpqsTVwWXx",
        "dig" => "bcfkpqtxy",
        "nmap" => "piDSeg",
        _ => "",
    };
    option.chars().nth(1).is_some_and(|letter| letters.contains(letter))
}

fn host_operand(
    analysis: &mut Analysis,
    invoked: &Invoked<'_>,
    index: usize,
    text: &str,
    span: Span,
) {
    let host = text.rsplit('@').next().unwrap_or(text);
    let port = match invoked.name {
        "ssh" | "sftp" => Some(22),
        "nc" | "ncat" | "netcat" | "telnet" => {
            invoked.argument(index + 1).and_then(Field::exact).and_then(|port| port.parse().ok())
        }
        _ => None,
    };
    analysis.host(host, port, span);
}

/// `user@host:path`, but not `C:` or a path with a colon behind a slash.
fn remote(text: &str) -> Option<&str> {
    let (host, _) = text.split_once(':')?;
    let host = host.rsplit('@').next().unwrap_or(host);
    let plain = host.len() > 1
        && host.chars().all(|character| character.is_alphanumeric() || ".-_".contains(character));
    plain.then_some(host)
}

/// `example.com/x` without a scheme.
fn bare_address(text: &str) -> bool {
    let host = text.split(['/', ':']).next().unwrap_or("");
    (host.contains('.') || host == "localhost")
        && host
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || ".-".contains(character))
}

fn address_host(analysis: &mut Analysis, scheme: &str, rest: &str, span: Span) {
    if scheme.eq_ignore_ascii_case("file") {
        return;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let place = authority.rsplit('@').next().unwrap_or(authority);
    let (host, port) = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = port.and_then(|port| port.parse().ok()).or_else(|| default_port(scheme));
    analysis.host(host, port, span);
}

fn default_port(scheme: &str) -> Option<u16> {
    Some(match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => 80,
        "https" | "wss" => 443,
        "ftp" => 21,
        "ssh" | "sftp" | "scp" | "git+ssh" => 22,
        "git" => 9418,
        _ => return None,
    })
}
