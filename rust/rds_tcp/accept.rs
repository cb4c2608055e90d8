// SPDX-License-Identifier: GPL-2.0

//! Accepting connections.
//!
//! C counterpart: `net/rds/tcp_listen.c`. C parks a connection for which there is no free path in a place of which
//! each namespace has one, and accepts nothing more until it is taken. Here the task hands each connection to the path
//! it is for and goes on; what a path does with it is its own affair.

use crate::path::TcpPath;
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};
use rds::{
    conn::{
        Conn,
        ConnKey, //
    },
    netns::NetState,
    trace::Reason,
    transport::Kind, //
};
use weft::{
    net::tcp::{
        KernelSocket,
        ListenCallbacks,
        Listener,
        Shutdown, //
    },
    new_task,
    workqueue::{
        QueueHandle,
        Task,
        TaskItem, //
    },
};
use weft_proto::rds::{
    addr::Addr,
    arbitration::{
        self,
        Accepted, //
    },
    path::path_of_source_port,
    state::PathState,
};

/// Jiffies after which accepting is tried again if it failed.
const ACCEPT_PAUSE: usize = 10;

/// The task that accepts connections in one namespace.
#[pin_data]
pub(crate) struct Acceptor {
    net: Arc<NetState>,
    listener: Listener,
    #[pin]
    task: Task<Acceptor>,
}

weft::impl_has_task! { impl HasTask<0> for Acceptor { self.task } }

impl Acceptor {
    pub(crate) fn new(
        net: Arc<NetState>,
        listener: Listener,
        queue: QueueHandle,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                net,
                listener,
                task <- new_task!(queue, "rds_tcp_accept"),
            }),
            GFP_KERNEL,
        )
    }

    /// Starts to listen. The listener refers to the acceptor until the namespace is left.
    pub(crate) fn start(self: &Arc<Self>, backlog: i32) -> Result {
        self.listener.listen(backlog, self.clone())
    }

    /// Waits for the task to end; what is accepted after this finds no connection to go to. Sleeps.
    pub(crate) fn stop(self: &Arc<Self>) {
        Task::cancel_sync(self);
    }

    /// Gives a connection to its path, or refuses it.
    fn dispatch(&self, socket: KernelSocket) -> Result {
        let (local, peer) = (socket.local(), socket.peer());
        let (from, to) = (Addr(peer.addr), Addr(local.addr));
        let key = ConnKey {
            peer: from,
            local: to,
            kind: Kind::Tcp,
            tos: 0,
            interface: ConnKey::interface(&to, &from, socket.interface()),
        };
        let not_accepted = || self.net.drop_connection(&key, Reason::NotAccepted);
        let path = Conn::enter(&self.net, key, true, |conn| place(conn, peer.port))
            .inspect_err(|_| not_accepted())?;
        let conn = &path.conn;
        match arbitration::accepted(conn.role()) {
            Accepted::Refuse => {
                // The peer has something to say, but connections go the other way.
                if let Some(path) = conn.path(0) {
                    path.connect_if_down();
                }
                self.net.drop_connection(&key, Reason::WrongWay);
                refuse(socket);
            }
            Accepted::TakeSlot => match TcpPath::of(&path) {
                Some((path, tcp)) => tcp.offer(path, socket),
                None => {
                    not_accepted();
                    refuse(socket);
                }
            },
        }
        Ok(())
    }
}

/// The path for a connection that the peer opened from `port`.
fn place(conn: &Conn, port: u16) -> usize {
    let paths = conn.paths_in_use();
    let is_down = |index: usize| {
        conn.path(index)
            .is_some_and(|path| path.state() == PathState::Down)
    };
    if paths != 0 {
        // If none is down, the peer has lost one of which this end does not know which. The first will be told soonest.
        return arbitration::accept_slot(conn.sport_encodes_path(), port, paths, |index| {
            conn.sport_encodes_path() || is_down(index)
        })
        .unwrap_or(0);
    }
    // A peer that has known this one before opens all its paths at once. Until it says how many it has, the first
    // connection is for path 0; others wait where they seem to belong.
    if is_down(0) && !conn.path(0).is_some_and(|first| first.ops.has_parked()) {
        return 0;
    }
    path_of_source_port(port, conn.transport.max_paths())
}

/// Resets a connection: nothing was or will be read from it.
pub(crate) fn refuse(socket: KernelSocket) {
    socket.no_linger();
    // The drop resets the connection in any case.
    let _ = socket.shutdown(Shutdown::Both);
}

impl ListenCallbacks for Acceptor {
    fn ready(this: ArcBorrow<'_, Self>) {
        Task::schedule(&this.into(), 0);
    }
}

impl TaskItem<0> for Acceptor {
    fn run(this: Arc<Self>) {
        loop {
            match this.listener.accept() {
                Ok(socket) => {
                    if let Err(error) = this.dispatch(socket) {
                        pr_debug!("RDS/tcp: connection refused: {:?}\n", error);
                    }
                }
                // Nothing more to accept, or nothing to accept from.
                Err(EAGAIN | ENETUNREACH) => return,
                // Short of memory, say: those that wait are not announced again.
                Err(_) => return Task::schedule(&this, ACCEPT_PAUSE),
            }
        }
    }
}
