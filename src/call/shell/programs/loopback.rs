//! Whether a program that uses the network stays on this machine: every address that it is given is one
//! of loopback, and nothing else in its words could lead elsewhere. What is not understood does not stay.

use super::Invoked;
use super::paths::options_of;
use crate::call::effects::Assignment;
use crate::call::shell::meaning::fields::Field;
use crate::call::shell::meaning::walk::Analysis;

/// Short options of `curl` without a value that do not choose a machine. Whoever listens here could pass
/// on what it gets, so following where it points (`-L`) gives nothing more away.
const CURL_FLAGS: &str = "0123456aBfgGiIjJkLNOqRsSvZ#";
/// Those with a value.
const CURL_VALUES: &str = "AbcCdDeEFHmoPrtTuwXyYz";
const CURL_LONG: [&str; 46] = [
    "ascii",
    "basic",
    "cacert",
    "compressed",
    "connect-timeout",
    "cookie",
    "cookie-jar",
    "data",
    "data-ascii",
    "data-binary",
    "data-raw",
    "data-urlencode",
    "digest",
    "dump-header",
    "fail",
    "fail-early",
    "fail-with-body",
    "form",
    "form-string",
    "get",
    "globoff",
    "head",
    "header",
    "http1.1",
    "http2",
    "include",
    "insecure",
    "json",
    "location",
    "max-time",
    "no-buffer",
    "no-progress-meter",
    "output",
    "progress-bar",
    "range",
    "referer",
    "remote-name",
    "request",
    "retry",
    "retry-connrefused",
    "retry-delay",
    "show-error",
    "silent",
    "user",
    "user-agent",
    "write-out",
];
/// Long options of `wget`.
const WGET_LONG: [&str; 12] = [
    "body-data",
    "header",
    "method",
    "no-verbose",
    "output-document",
    "output-file",
    "post-data",
    "post-file",
    "quiet",
    "timeout",
    "tries",
    "spider",
];
/// Options of `nc` with which it looks whether a port is open, and sends nothing.
const NC_FLAGS: &str = "46nruvwz";

/// Marks the command if it stays on this machine.
pub(super) fn run(analysis: &mut Analysis, invoked: &Invoked<'_>) {
    let stays = match invoked.name {
        "curl" | "wget" => addresses(invoked) && !has_proxy(analysis, invoked),
        "nc" | "ncat" | "netcat" | "nc.openbsd" | "nc.traditional" => only_looks(invoked),
        _ => return,
    };
    let stays_here = stays && !analysis.remote();
    if let Some(command) = analysis.effects.commands.get_mut(invoked.index) {
        command.stays_here = stays_here;
    }
}

/// Whether every operand is an address of this machine, and every option one that chooses none.
fn addresses(invoked: &Invoked<'_>) -> bool {
    let Some(options) = options_of(invoked.name) else { return false };
    if invoked.arguments.iter().any(|field| field.unknown && field.prefix().is_empty()) {
        return false;
    }
    let read = super::options::read(invoked.arguments, &options, false);
    let is_known = |name: &str| match name.strip_prefix("--") {
        Some(long) if invoked.name == "curl" => CURL_LONG.contains(&long),
        Some(long) => WGET_LONG.contains(&long),
        None if invoked.name == "curl" => {
            name.len() == 2
                && name.get(1..).is_some_and(|letter| {
                    CURL_FLAGS.contains(letter) || CURL_VALUES.contains(letter)
                })
        }
        None => matches!(name, "-O" | "-o" | "-q" | "-T" | "-t" | "-S"),
    };
    let mut operands = read.operands.iter().filter_map(|index| invoked.argument(*index)).peekable();
    operands.peek().is_some()
        && operands.all(|field| field.exact().or(bracketed(field)).is_some_and(is_loopback_address))
        && read.given.iter().all(|given| is_known(&given.name))
}

/// An address with a `[` in it counts as a pattern of file names, of which there is none.
fn bracketed(field: &Field) -> Option<&str> {
    (!field.unknown && field.value.contains("://[")).then_some(field.value.as_str())
}

/// `http://localhost:8080/x` and the like. Up to the path there may be nothing but name and port.
fn is_loopback_address(address: &str) -> bool {
    let rest = ["http://", "https://"].iter().find_map(|scheme| address.strip_prefix(scheme));
    let rest = rest.unwrap_or(address);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, _) = rest.split_at(end);
    let (host, port) = match authority.strip_prefix("[::1]") {
        Some(port) => ("[::1]", port.strip_prefix(':').unwrap_or(port)),
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    // With `{}` and `[]` in the rest, `curl` makes several addresses, all of the same machine.
    is_loopback(host) && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "[::1]" | "::1" | "0.0.0.0")
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a variable of the script could send the request elsewhere.
fn has_proxy(analysis: &Analysis, invoked: &Invoked<'_>) -> bool {
    // Files of settings are found by the others.
    let is_proxy = |name: &str| {
        name.to_ascii_lowercase().ends_with("_proxy")
            || matches!(name, "HOME" | "CURL_HOME" | "XDG_CONFIG_HOME" | "WGETRC" | "SYSTEM_WGETRC")
    };
    let in_front = |assignment: &Assignment| is_proxy(&assignment.name);
    invoked.call.assignments.iter().any(in_front)
        || analysis.shell.is_poisoned()
        || analysis.shell.facts.variables.keys().any(|name| is_proxy(name))
}

/// `nc -z HOST PORT`
fn only_looks(invoked: &Invoked<'_>) -> bool {
    let words: Option<Vec<&str>> = invoked.arguments.iter().map(Field::exact).collect();
    let Some(words) = words else { return false };
    let (options, operands): (Vec<&str>, Vec<&str>) =
        words.into_iter().partition(|word| word.starts_with('-'));
    let letters = || options.iter().flat_map(|option| option.chars().skip(1));
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let (hosts, rest): (Vec<&str>, Vec<&str>) =
        operands.into_iter().partition(|word| is_loopback(word));
    letters().any(|letter| letter == 'z')
        && letters().all(|letter| letter.is_ascii_digit() || NC_FLAGS.contains(letter))
        && hosts.len() == 1
        && rest.iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::is_loopback_address;

    #[test]
    fn only_addresses_that_can_mean_nothing_else_are_this_machine() {
        for address in [
            "localhost",
            "http://localhost",
            "http://localhost:8080/a?b=c",
            "https://127.0.0.1/",
            "127.1.2.3:80",
            "http://[::1]:3000/x",
            "http://localhost/@x",
            "0.0.0.0:8000",
        ] {
            assert!(is_loopback_address(address), "{address}");
        }
        for address in [
            "http://localhost@evil.example",
            "http://localhost:80@evil.example/",
            "evil.example",
            "http://localhost.evil.example",
            "http://localhost\\@evil.example/",
            "ftp://localhost/",
            "http://{localhost,evil.example}/",
            "http://localhost:8x/",
            "file:///etc/passwd",
            "http://evil.example/localhost",
            "http://[::1]evil.example/",
            "",
            "@file",
            "http://127.0.0.1.nip.io",
        ] {
            assert!(!is_loopback_address(address), "{address}");
        }
    }
}
