// SPDX-License-Identifier: GPL-2.0

//! RDMA network block device server: gives clients block devices of this machine.
//!
//! A client names a device, the server opens it below `dev_search_path` and tells how large it is and what it can do.
//! From then on the client's requests become bios for it, whose data is in the chunks that RTRS keeps for the client.
//!
//! C counterpart: `drivers/block/rnbd/rnbd-srv*.c`. Documentation/rnbd.rst tells the protocol as a story.
//!
//! # Who owns what
//!
//! * [`server::Shared`] is what all sessions refer to.
//! * [`session::Session`] is one client. RTRS holds it while the client has a path, and it holds its devices in a
//!   [`table::Table`].
//! * [`device::Device`] is a block device that a session has open. Besides the table, requests under way and its
//!   directory in sysfs hold it; closing removes the directory and the entry, and the block device stays open as long
//!   as requests use it.
//! * [`export::Export`] is a block device that sessions have open, with its directory. Each [`device::Device`] has an
//!   [`export::Grant`] of it, which says whether the device may be written to.
//!
//! # Locks, outer first
//!
//! 1. the lock of RTRS around `connected` and `disconnected`
//! 2. `Table::changing` (mutex)
//! 3. `Device::dir` (mutex): while the directory is made
//! 4. `Exports::entries` (mutex): held over the making and removing of directories, so no file's function takes it
//!    before it has called `Active::leave`
//! 5. `Session::jobs` (mutex), a leaf
//!
//! Requests for data take none of them: they read the table's snapshot.

#![forbid(unsafe_code)]

mod device;
mod export;
mod files;
mod gate;
mod io;
mod open;
mod params;
mod server;
mod session;
mod table;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::{
    block::bio::Pool,
    fmt::Plain,
    workqueue::Queue, //
};
use weft_proto::rnbd::path::SearchPath;

module! {
    type: Module,
    name: "rnbd_server",
    authors: ["The Weft developers"],
    description: "RDMA network block device server",
    license: "GPL",
}

/// Bios that can always be under way; more are as long as there is memory.
const SPARE_BIOS: u32 = 64;

/// The loaded module.
///
/// Fields are dropped in order: first no client is served any more, which closes all devices, then what their bios are
/// made of goes when the last is over, then the files, and the queue of the sessions' tasks goes last.
struct Module {
    _server: rtrs_server::server::Server,
    _bios: Pool<io::Pending>,
    _control: files::Control,
    _queue: Queue,
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let queue = Queue::new(c"rnbd_server")?;
        let control = files::Control::new()?;
        let bios = Pool::new(SPARE_BIOS)?;
        let shared = server::Shared {
            exports: export::Exports::new(control.devices.clone())?,
            search_path: search_path()?,
            bios: bios.handle(),
            queue: queue.handle(),
        };
        let shared = Arc::new(shared, GFP_KERNEL)?;
        let user = Arc::new(server::Server(shared), GFP_KERNEL)?;
        let port = params::port_nr.value();
        Ok(Self {
            _server: rtrs_server::server::Server::open(user, port)?,
            _bios: bios,
            _control: control,
            _queue: queue,
        })
    }
}

/// Where devices are looked for, as the module's user says; a line end behind it does not count.
fn search_path() -> Result<SearchPath<'static>> {
    let given = params::dev_search_path.value().to_bytes();
    let path = given.split(|byte| *byte == b'\n').next().unwrap_or(given);
    SearchPath::new(path).map_err(|why| {
        pr_err!("{}\n", Plain(why));
        EINVAL
    })
}
