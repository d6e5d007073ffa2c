//! Names and connections where a policy grants the network, and none where it does not.

use crate::rig::Place;
use std::net::{TcpListener, UdpSocket};
use std::thread;

const GRANTED: &str = "[network]\nmode = \"host\"\n";

/// A look-up by the file of hosts and by the resolver that most programs use, which asks netlink.
const NAMES: &str = r#"
    getent hosts localhost > /dev/null && echo hosts
    printf 'import socket\nprint(len(socket.getaddrinfo("localhost", 80)) > 0)\n' > names.py; python3 names.py
"#;

#[test]
fn names_are_looked_up_where_the_network_is_granted() {
    let place = Place::new();
    let policy = place.policy(GRANTED);
    assert_eq!(place.plain(NAMES).stdout, "hosts\nTrue\n", "the control");
    let inside = place.confined(&["--policy", &policy], NAMES);
    assert_eq!(inside.stdout, "hosts\nTrue\n", "{inside:?}");
}

/// A query by hand to a server outside of the cell, and a connection to one.
#[test]
fn packets_leave_where_the_network_is_granted_and_nowhere_else() {
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let connections = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = datagrams.local_addr().unwrap().port();
    let tcp = connections.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut buffer = [0; 16];
        while let Ok((_, from)) = datagrams.recv_from(&mut buffer) {
            drop(datagrams.send_to(b"answer", from));
        }
    });
    thread::spawn(move || while connections.accept().is_ok() {});
    let script = format!(
        "exec 3<> /dev/udp/127.0.0.1/{udp} && echo -n query >&3 && timeout 2 head -c 6 <&3; echo; \
         (exec 3<> /dev/tcp/127.0.0.1/{tcp}) && echo connected"
    );
    let place = Place::new();
    let policy = place.policy(GRANTED);
    assert_eq!(place.plain(&script).stdout, "answer\nconnected\n", "the control");
    let granted = place.confined(&["--policy", &policy], &script);
    assert_eq!(granted.stdout, "answer\nconnected\n", "{granted:?}");
    let without = place.confined(&[], &script);
    assert_eq!(without.stdout, "\n", "{without:?}");
}
