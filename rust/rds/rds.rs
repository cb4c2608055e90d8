// SPDX-License-Identifier: GPL-2.0

//! Reliable Datagram Sockets.
//!
//! A socket of this family sends datagrams to any number of peers through one bound address, and each datagram
//! arrives exactly once and in order, however often the connection between the two hosts breaks. Sockets do not own
//! connections: all sockets of a host that talk to the same peer share one, and it stays when they close.
//!
//! C counterpart: `net/rds`. Documentation/rds.rst tells the protocol as a story.
//!
//! # Who owns what
//!
//! * [`state::Rds`] is the module: counters, transports, tunables. Everything holds a reference to it.
//! * [`netns::NetState`] is one network namespace: bound sockets, connections, congestion maps. It dies with the
//!   namespace, and takes its connections with it.
//! * [`conn::Conn`] is the bond between two addresses, its [`path::Path`]s carry messages over a
//!   [`transport::Transport`]. A path refers to its connection and the connection to its paths; the namespace breaks
//!   that circle when it destroys the connection.
//! * [`sock::SockState`] is what a file descriptor stands for.
//! * A [`message::Message`] is on two lists: of its socket (for accounting) and of its path (for sending and until it
//!   is acknowledged). An [`incoming::Incoming`] is on the receive queue of one socket.
//!
//! # Locks, outer first
//!
//! 1. `Path::xmit` (mutex): who transmits. Held while calling into the transport, which takes the TCP socket lock.
//! 2. The TCP socket lock; message delivery runs under it, in softirq.
//! 3. A lock of the transport around the message being received.
//! 4. `NetState::conns`, `NetState::sockets` or a shard of `BindTable`.
//! 5. `SockState::tx` or `SockState::rx`.
//! 6. `CongMap::conns`, `NetState::monitors` or `NetState::congested`.
//! 7. `Conn::paths`.
//! 8. `Path::queue`.
//! 9. `NetState::maps`, `Conn::handshake`, `Conn::quiet`, `Path::reconnect`, `SockState::binding`, `SockState::monitor`,
//!    `SockState::zerocopy`: leaves.
//!
//! Not every pair is nested; where two are, it is in this order.

#![forbid(unsafe_code)]

mod arrivals;
pub mod bind;
pub mod cong;
pub mod conn;
pub mod handshake;
pub mod idle;
pub mod incoming;
pub mod info;
mod info_lists;
mod loopback;
pub mod maps;
pub mod message;
mod names;
pub mod netns;
mod operations;
pub mod path;
mod poll;
pub mod queue;
mod reconnect;
pub mod recv;
mod recvmsg;
pub mod send;
mod sendmsg;
pub mod settling;
pub mod sock;
mod sockopt;
pub mod state;
mod sysctl;
pub mod trace;
pub mod transport;
pub mod worker;
pub mod zerocopy;

use kernel::prelude::*;
use weft::{
    global::Published,
    net::{
        ns::{
            Level,
            PerNet, //
        },
        proto::Registration, //
    },
    workqueue::Queue, //
};

module! {
    type: Module,
    name: "rds",
    authors: ["The Weft developers"],
    description: "RDS: Reliable Datagram Sockets",
    license: "GPL",
}

weft::module_params! {
    /// Messages that one turn of a sender sends at most; 0 or less for no limit.
    send_batch_count: i32 = 1024, "Messages one turn of the send worker sends at most; 0 for no limit (default: 1024)";
}

/// The loaded module.
///
/// Fields are dropped in order: first no new socket can be made (those that exist pin the module, so there are none
/// left), then every namespace destroys its connections, then loopback goes, then nobody finds the module state any
/// more, and the work queue goes last.
#[pin_data]
pub struct Module {
    #[pin]
    family: Registration<sock::SockState>,
    #[pin]
    namespaces: PerNet<netns::Namespace>,
    loopback: transport::Registration,
    published: Published<state::Rds>,
    queue: Queue,
}

impl kernel::InPlaceModule for Module {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            let queue = Queue::new(c"krdsd")?;
            let batch = send_batch_count.value();
            let rds = state::Rds::new(queue.handle(), batch)?;
            let loopback = loopback::register(&rds)?;
            let published = state::RDS.publish(rds.clone())?;
            Ok(try_pin_init!(Self {
                queue,
                published,
                loopback,
                namespaces <- PerNet::new(Level::Device, rds),
                // Last: from here on sockets can be made.
                family <- Registration::new(),
            }? Error))
        })
    }
}
