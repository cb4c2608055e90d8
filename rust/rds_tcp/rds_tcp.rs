// SPDX-License-Identifier: GPL-2.0

//! The TCP transport of RDS.
//!
//! A path is one TCP connection, on which messages follow each other: header, payload, header, payload. It always goes
//! from the smaller of the two addresses to port 16385 of the larger, whoever wants to send first. TCP acknowledges
//! bytes; a message whose last byte is acknowledged has arrived, so RDS needs no acknowledgements of its own.
//!
//! C counterpart: `net/rds/tcp*.c`.
//!
//! # Who owns what
//!
//! * [`Shared`] is the transport; paths and namespaces refer to it.
//! * [`net::TcpNet`] is one namespace: its listener, its buffer sizes.
//! * [`path::TcpPath`] is the transport's side of an RDS path. It owns the TCP socket, whose callbacks refer to the
//!   path until the socket is detached.
//!
//! # Locks, outer first
//!
//! 1. `Path::xmit` of RDS
//! 2. `Inner::socket` (mutex): which socket, and everything done to it in process context
//! 3. the lock of the TCP socket; callbacks run under it
//! 4. `Inner::rx`: the message being received; delivery to RDS happens under it
//! 5. `Inner::ends`, a leaf; `rds-info` takes it under the list of connections
//! 6. `Inner::parked` (mutex), `Shared::spaces` (mutex): never held while another is taken

#![forbid(unsafe_code)]

mod accept;
mod net;
mod params;
mod path;
mod stream;

use kernel::{
    module::this_module,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use rds::{
    info::Sink,
    netns::NetState,
    state::{
        Rds,
        RDS, //
    },
    transport::{
        self,
        Kind,
        PathOps,
        Registration,
        Transport, //
    },
};
use weft::{
    net::{
        ns::{
            Level,
            Net,
            PerNet, //
        },
        route, //
    },
    percpu::Counters,
    workqueue::Queue, //
};
use weft_proto::rds::{
    addr::Addr,
    counters::Tcp,
    info as record,
    uapi, //
};

module! {
    type: Module,
    name: "rds_tcp",
    authors: ["The Weft developers"],
    description: "RDS: TCP transport",
    license: "GPL",
}

/// The loaded module.
///
/// Fields are dropped in order: first the transport is unregistered, which destroys its connections, then every
/// namespace closes its listener, and the queue of the accepting tasks goes last.
#[pin_data]
pub struct Module {
    registration: Registration,
    #[pin]
    namespaces: PerNet<net::TcpNet>,
    queue: Queue,
}

impl kernel::InPlaceModule for Module {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            let rds = RDS.get().ok_or(ENODEV)?;
            let max_paths = params::own_paths()?;
            let queue = Queue::new(c"krds_tcp_accept")?;
            let shared = Shared::new(rds.clone(), max_paths)?;
            let transport = Arc::new(TcpTransport(shared.clone()), GFP_KERNEL)?;
            let context = net::Context {
                shared,
                queue: queue.handle(),
            };
            Ok(try_pin_init!(Self {
                queue,
                namespaces <- PerNet::new(Level::Device, context),
                registration: transport::register(&rds, transport, this_module::<LocalModule>())?,
            }? Error))
        })
    }
}

/// The transport.
#[pin_data]
pub(crate) struct Shared {
    rds: Arc<Rds>,
    counters: Counters<{ Tcp::COUNT }>,
    /// Paths that a connection may have.
    max_paths: u8,
    #[pin]
    spaces: Mutex<KVec<Arc<net::Space>>>,
}

impl Shared {
    fn new(rds: Arc<Rds>, max_paths: u8) -> Result<Arc<Self>> {
        let counters = Counters::new()?;
        Arc::pin_init(
            pin_init!(Self {
                rds,
                counters,
                max_paths,
                spaces <- new_mutex!(KVec::new()),
            }),
            GFP_KERNEL,
        )
    }

    /// Counts one event.
    #[inline]
    fn count(&self, counter: Tcp) {
        self.counters.add(counter as usize, 1);
    }

    /// What paths need of their namespace. Sleeps.
    fn space_of(&self, net: &Arc<NetState>) -> Option<Arc<net::Space>> {
        self.spaces
            .lock()
            .iter()
            .find(|space| space.is_of(net))
            .cloned()
    }
}

/// The transport as RDS knows it.
struct TcpTransport(Arc<Shared>);

impl Transport for TcpTransport {
    fn kind(&self) -> Kind {
        Kind::Tcp
    }

    fn name(&self) -> &'static str {
        "tcp"
    }

    fn prefers_loopback(&self) -> bool {
        true
    }

    fn max_paths(&self) -> u8 {
        self.0.max_paths
    }

    fn map_tos(&self, _tos: u8) -> Option<u8> {
        // All types of service share one connection.
        Some(0)
    }

    fn is_local(&self, net: &Net, address: &Addr, scope_id: u32) -> bool {
        route::local_address(net, &address.0, scope_id)
    }

    fn new_path(&self) -> Result<Arc<dyn PathOps>> {
        let path: Arc<dyn PathOps> = path::TcpPath::new(&self.0)?;
        Ok(path)
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        for (index, name) in Tcp::NAMES.iter().enumerate() {
            report(name, self.0.counters.sum(index));
        }
    }

    fn info(&self, net: &NetState, option: i32, sink: &mut Sink) -> Option<()> {
        match option {
            uapi::info::TCP_SOCKETS => sink.begin::<record::TcpSocket>(),
            uapi::info::TCP_SOCKETS6 => sink.begin::<record::TcpSocket6>(),
            _ => return None,
        }
        net.for_each_connection(|conn| {
            if conn.key.kind == Kind::Tcp {
                conn.for_each_path(|path| path.ops.info(path, option, sink));
            }
        });
        Some(())
    }
}
