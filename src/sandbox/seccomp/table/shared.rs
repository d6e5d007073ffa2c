//! Calls on what processes share: sockets, and objects outside the file tree.

use super::{Call, Row, number};
use crate::sandbox::seccomp::Layer;
use crate::sandbox::seccomp::rules::Rule;

pub(super) const SOCKETS: &[Row] = &[
    row!(Rule::Socket, "every way out of the cell begins here", [SYS_socket]),
    row!(Rule::SocketPair, "a datagram pair can send to other sockets", [SYS_socketpair]),
    row!(
        Rule::Allow,
        "works on sockets that the cell could make",
        [
            SYS_bind,
            SYS_listen,
            SYS_accept,
            SYS_accept4,
            SYS_connect,
            SYS_shutdown,
            SYS_getsockname,
            SYS_getpeername,
            SYS_getsockopt,
            SYS_setsockopt,
            SYS_sendto,
            SYS_sendmsg,
            SYS_sendmmsg,
            SYS_recvfrom,
            SYS_recvmsg,
            SYS_recvmmsg,
        ]
    ),
];

pub(super) const SHARED: &[Row] = &[
    row!(
        Rule::Needs(Layer::IpcNamespace),
        "System V memory, queues and semaphores are shared by all processes of a namespace",
        [
            SYS_shmget,
            SYS_shmat,
            SYS_shmdt,
            SYS_shmctl,
            SYS_msgget,
            SYS_msgsnd,
            SYS_msgrcv,
            SYS_msgctl,
            SYS_semget,
            SYS_semop,
            SYS_semtimedop,
            SYS_semctl,
        ]
    ),
    row!(
        Rule::Needs(Layer::IpcNamespace),
        "message queues have names of their own that no path rule sees",
        [
            SYS_mq_open,
            SYS_mq_unlink,
            SYS_mq_timedsend,
            SYS_mq_timedreceive,
            SYS_mq_notify,
            SYS_mq_getsetattr,
        ]
    ),
    row!(
        Rule::Refuse,
        "keyrings are shared by all processes of a user",
        [SYS_add_key, SYS_request_key, SYS_keyctl]
    ),
];
