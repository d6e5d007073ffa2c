//! The bus of the user's session: a socket that runs programs for whoever connects to it.

use super::layers::{ACCEPTS, refused};
use super::rig::{Live, Rig};
use super::surroundings::has_python;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

/// Says where the bus is by the environment, and knocks at every place where one could be.
const KNOCK: &str = "\
import os, socket, sys
print('told', [v for k, v in os.environ.items() if 'BUS' in k or k.startswith('XDG_RUNTIME')])
for address in sys.argv[1:]:
    address = '\\0' + address[1:] if address.startswith('@') else address
    try:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end.connect(address)
        end.sendall(b'\\0AUTH EXTERNAL\\r\\n')
        print('reached', repr(address))
    except OSError:
        pass
print('end')
";

/// Whether somebody connected since the last look.
fn was_reached(bus: &UnixListener) -> bool {
    bus.set_nonblocking(true).unwrap();
    match bus.accept() {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_session_bus_is_neither_named_to_a_tool_nor_reached_by_it() {
    if !has_python() {
        return;
    }
    let rig = Rig::new();
    rig.file("knock.py", KNOCK);
    // One in the runtime directory, one in the workspace itself, where the cell may see the file of a
    // socket, and one without a file.
    let outside = rig.beside("bus", "");
    std::fs::remove_file(&outside).unwrap();
    let inside = rig.work().join("bus");
    let inside = inside.to_str().unwrap();
    let name = format!("stoplog-bus-{}", std::process::id());
    let buses = [
        UnixListener::bind(&outside).unwrap(),
        UnixListener::bind(inside).unwrap(),
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
    ];
    let name = format!("@{name}");
    let places = [outside.as_str(), inside, &name];
    let with_bus = |mut command: Command| {
        command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={outside}"));
        command.env("XDG_RUNTIME_DIR", rig.root());
        Live::start(command).end().exits(0)
    };
    let (policy, work) = (rig.policy(ACCEPTS), rig.work());
    let exec = ["exec", "--policy", &policy, "--workspace", work.to_str().unwrap(), "--"];
    let exec = [&exec[..], &["python3", "knock.py"], &places[..2], &places[2..]].concat();
    for command in [rig.command(&exec), refused(&rig, &exec)] {
        let done = with_bus(command);
        assert_eq!(done.stdout, "told []\nend\n", "{}", done.stderr);
        assert_eq!(buses.each_ref().map(was_reached), [false; 3]);
    }
    let script = rig.work().join("knock.py");
    let plain = [&[script.to_str().unwrap()], &places[..]].concat();
    let done = with_bus(rig.program("python3", &plain));
    assert!(done.stdout.contains("unix:path="), "the control: {}", done.stdout);
    assert_eq!(buses.each_ref().map(was_reached), [true; 3], "the control: {}", done.stdout);
}

#[test]
fn a_socket_that_a_tool_makes_serves_the_tool_and_is_removed_by_the_next_call() {
    if !has_python() {
        return;
    }
    let rig = Rig::new();
    rig.file(
        "own.py",
        "import socket\n\
         one = socket.socket(socket.AF_UNIX); one.bind('own'); one.listen()\n\
         two = socket.socket(socket.AF_UNIX); two.connect('own'); print('served')\n",
    );
    let held = UnixListener::bind(rig.work().join("held")).unwrap();
    let work = rig.work();
    let exec = |more: &[&str]| {
        let fixed = ["exec", "--workspace", work.to_str().unwrap()];
        rig.stoplog(&[&fixed[..], more].concat())
    };
    assert_eq!(exec(&["--", "python3", "own.py"]).exits(0).stdout, "served\n");
    assert!(rig.has("own"), "its name is left");
    let next = exec(&["--show-cell", "--", "sh", "-c", "rm own && echo removed; rm held"]);
    assert!(next.stdout.contains("removed"), "{} {}", next.stdout, next.stderr);
    assert!(next.stderr.contains("programs of this machine listen there"), "{}", next.stderr);
    assert!(rig.has("held"), "what somebody else holds stays");
    drop(held);
    exec(&["--", "rm", "held"]).exits(0);
}
