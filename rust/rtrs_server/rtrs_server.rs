// SPDX-License-Identifier: GPL-2.0

//! The server of RTRS, a transport for remote block devices over RDMA.
//!
//! A client machine has a *session* here, over any number of *paths*, each of which is a set of *connections* (queue
//! pairs) between two addresses. The server gives each session a fixed number of buffers, the *chunks*. The client
//! writes a request with its data into a chunk, announces it with an immediate, and may use the chunk again when it has
//! the answer. What a request means is the affair of the user of this crate, `rnbd_server`: it gets each one as an
//! [`operation::Operation`] with a private copy of its message.
//!
//! C counterpart: `drivers/infiniband/ulp/rtrs/rtrs-srv*.c`.
//!
//! # The life of a request
//!
//! * `receiver.rs` hears of it. `chunks.rs` makes it the owner of its chunk, or has it wait, or refuses it.
//! * With `always_invalidate` the client's key to the chunk is taken away first, and given out anew with the answer.
//! * `request.rs` copies header and message out of the chunk, and calls the user.
//! * `operation.rs` is what the user has of it; `reply.rs` sends the answer, `conn.rs` parks it if there is no room.
//!
//! # The life of a path
//!
//! * `accept.rs` makes connections, `registry.rs` finds the path and the session for them.
//! * `setup.rs` answers the information request: memory, files, keys. Then requests flow.
//! * `timer.rs` watches it; `close.rs` takes it down, whoever wants that.
//!
//! # Who owns what
//!
//! * [`server::Server`] belongs to the user. It owns listeners and, through the registry, sessions and paths.
//! * A path owns its connections and they the path; the closing task ends this circle. All that belongs to a device is
//!   in `conn::Live` and `conn::Serving`, which the closing task takes out.
//! * An operation owns its claim of the chunk, the memory of the chunk, and the connection as an object without device.
//!   So neither a path nor a device waits for a disk.
//!
//! # Locks, outer first
//!
//! 1. the handler mutex of an id of the connection manager
//! 2. `Registry::members`
//! 3. `Path::conns`
//! 4. `Conn::serving`, held while the user looks at a request
//! 5. `Session::link`, held while the user is told of a session's begin and end
//! 6. `Path::setup`, `Path::dir`, `Session::dir`, `Session::pool`, `Shared::listeners`, `Conn::id`
//! 7. `Conn::live`, with interrupts off
//! 8. `Slot::stage`, with interrupts off
//! 9. the locks of chunks, with interrupts off
//!
//! `Shared::listeners` is not held when a listener is dropped, nor `Path::conns` when a connection's id is: both wait for
//! handlers.

#![forbid(unsafe_code)]

mod accept;
mod budget;
mod chunks;
mod close;
mod config;
mod conn;
pub mod operation;
mod params;
mod path;
mod pool;
mod pulse;
mod queue;
mod receiver;
mod registry;
mod reply;
mod request;
pub mod server;
pub mod session;
mod setup;
mod slot;
mod stats;
mod sysfs;
mod timer;
pub mod user;

use crate::config::Config;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::{
    global::{
        Global,
        Published, //
    },
    sysfs::Class,
    workqueue::{
        Queue,
        QueueHandle, //
    },
};

module! {
    type: RtrsServer,
    name: "rtrs_server",
    authors: ["The Weft developers"],
    description: "RTRS server",
    license: "GPL",
}

/// What servers need of the module.
static CORE: Global<Core> = Global::new();

/// See [`CORE`].
pub(crate) struct Core {
    config: Config,
    queue: QueueHandle,
    class: Class,
}

/// The module.
///
/// Fields are dropped in order. No server is left by then, since its user needs this module; what is left of their
/// tasks ends with the queue.
struct RtrsServer {
    _core: Published<Core>,
    _queue: Queue,
}

impl kernel::Module for RtrsServer {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let config = Config::new(
            params::max_chunk_size.value(),
            params::sess_queue_depth.value(),
            params::always_invalidate.value(),
        )?;
        let queue = Queue::new(c"rtrs_server_wq")?;
        let core = Core {
            config,
            queue: queue.handle(),
            class: Class::new(sysfs::CLASS)?,
        };
        let core = CORE.publish(Arc::new(core, GFP_KERNEL)?)?;
        Ok(Self {
            _core: core,
            _queue: queue,
        })
    }
}
