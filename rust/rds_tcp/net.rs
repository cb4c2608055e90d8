// SPDX-License-Identifier: GPL-2.0

//! The transport in one namespace: the listener on port 16385, and `net.rds.tcp`.

use crate::{
    accept::Acceptor,
    Shared, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};
use rds::{
    netns::NetState,
    transport::Kind, //
};
use weft::{
    net::{
        ns::{
            Net,
            PerNetData,
            ScopedNet,
            WeakNet, //
        },
        sysctl::{
            Entry,
            SysctlTable, //
        },
        tcp::{
            Family,
            Listener,
            SocketAddr6,
            MIN_RCVBUF,
            MIN_SNDBUF, //
        },
    },
    workqueue::QueueHandle, //
};
use weft_proto::rds::{
    state::PathState,
    wire::TCP_PORT, //
};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// What namespaces need of the module.
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: QueueHandle,
}

/// What paths need of their namespace, and the values of `net.rds.tcp`.
pub(crate) struct Space {
    /// Where sockets are made.
    pub(crate) net: WeakNet,
    rds: Arc<NetState>,
    /// Sizes of socket buffers, in bytes; 0 leaves them to TCP.
    send: Atomic<i32>,
    receive: Atomic<i32>,
}

impl Space {
    /// Whether this is the namespace of `net`.
    pub(crate) fn is_of(&self, net: &Arc<NetState>) -> bool {
        Arc::ptr_eq(&self.rds, net)
    }

    /// The sizes to set; `None` leaves one to TCP.
    pub(crate) fn buffer_sizes(&self) -> (Option<i32>, Option<i32>) {
        // ORDERING: Settings on their own.
        let size = |cell: &Atomic<i32>| Some(cell.load(Relaxed)).filter(|&bytes| bytes > 0);
        (size(&self.send), size(&self.receive))
    }

    /// Has every connection of the namespace made anew, with the new sizes.
    fn reset_connections(&self) {
        self.rds.for_each_connection(|conn| {
            if conn.key.kind == Kind::Tcp {
                conn.for_each_path(|path| {
                    if path.state() != PathState::Down {
                        path.drop_path();
                    }
                });
            }
        });
    }
}

static SYSCTL: [Entry<Space>; 2] = [
    Entry::int(
        c"rds_tcp_sndbuf",
        |space: &Space| &space.send,
        MIN_SNDBUF,
        i32::MAX,
    )
    .on_write(Space::reset_connections),
    Entry::int(
        c"rds_tcp_rcvbuf",
        |space: &Space| &space.receive,
        MIN_RCVBUF,
        i32::MAX,
    )
    .on_write(Space::reset_connections),
];

/// The transport in one namespace.
#[pin_data]
pub(crate) struct TcpNet {
    shared: Arc<Shared>,
    space: Arc<Space>,
    _sysctl: SysctlTable<Space>,
    acceptor: Arc<Acceptor>,
}

impl TcpNet {
    /// A listener for both families, or for IPv4 alone where there is no IPv6.
    fn listener(net: &ScopedNet<'_>) -> Result<Listener> {
        let any = SocketAddr6::any(TCP_PORT);
        Listener::bind(net, Family::V6, &any)
            .or_else(|_| Listener::bind(net, Family::V4, &any))
            .map_err(|error| {
                pr_warn!(
                    "RDS/tcp: cannot listen on TCP port {}: {:?}\n",
                    TCP_PORT,
                    error
                );
                EAFNOSUPPORT
            })
    }
}

impl PerNetData for TcpNet {
    type Ctx = Context;

    fn init(net: &ScopedNet<'_>, context: &Context) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            let shared = context.shared.clone();
            let state = shared.rds.namespace(net).ok_or(ENODEV)?;
            let space = Arc::new(
                Space {
                    net: WeakNet::new(net)?,
                    rds: state.clone(),
                    send: Atomic::new(0),
                    receive: Atomic::new(0),
                },
                GFP_KERNEL,
            )?;
            let sysctl = SysctlTable::new(net, c"net/rds/tcp", space.clone(), &SYSCTL)?;
            let acceptor = Acceptor::new(state, Self::listener(net)?, context.queue.clone())?;
            acceptor.start(BACKLOG)?;
            shared.spaces.lock().push(space.clone(), GFP_KERNEL)?;
            Ok(try_pin_init!(Self {
                shared,
                space,
                _sysctl: sysctl,
                acceptor,
            }? Error))
        })
    }

    fn exit(self: Pin<&Self>, _net: &Net) {
        self.shared
            .spaces
            .lock()
            .retain(|known| !Arc::ptr_eq(known, &self.space));
        self.acceptor.stop();
        self.space.rds.destroy_connections(Some(Kind::Tcp));
    }
}
