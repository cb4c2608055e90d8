// SPDX-License-Identifier: GPL-2.0

//! The client of RTRS, the RDMA transport of block requests.
//!
//! A session is the bond of this host with one server. It runs over one or more paths, each between two addresses with
//! one connection for each CPU. The server lends the session a number of buffers, the chunks; a request writes its
//! message, and its data if it has any, into one of them, and the server answers into the memory of the request. A path
//! that breaks hands its requests to another one.
//!
//! C counterpart: `drivers/infiniband/ulp/rtrs/rtrs-clt*`. Documentation/rnbd.rst tells the protocol as a story.
//!
//! # Who owns what
//!
//! * [`module::Module`] is the loaded module: queues, the class in sysfs, the sessions.
//! * [`session::Session`] is a session. Its user holds it from [`Session::open`](session::Session::open) to
//!   [`Session::close`](session::Session::close). It owns its paths, and they refer to it: closing it ends that circle,
//!   and those with the files in sysfs and with the user.
//! * [`path::Path`] is a path, with its state, its statistics and its tasks. It owns at most one
//! * [`link::Link`]: the connections for as long as they last. They own the queue pairs; what these call when something
//!   arrives ([`receiver::Receiver`]) owns the [`link::Core`], and that owns
//! * the [`lane::Lane`]s, one for each chunk. A lane keeps the request that is under way in its chunk, with the memory
//!   that the device may use; work requests keep the lane.
//! * A [`job::Job`] is a request that no lane has: being submitted, being moved, or waiting for a path.
//!
//! # Locks, outer first
//!
//! 1. `Path::link` (mutex): who sets a link up or takes it down.
//! 2. `Session::files`, `Path::files` (mutexes): not held while anything is removed from sysfs.
//! 3. `Module::sessions` (mutex).
//! 4. `Session::board` (mutex): paths, and which of them are up. Replacing `Session::routes` waits for those who read
//!    it, and these take no sleeping lock.
//! 5. `Path::status` and the other spinlocks of a path or session, `Parking::jobs`, `Lane::busy`: leaves, held for a
//!    few words.
//!
//! The user is called with none of them held.

#![forbid(unsafe_code)]

pub mod addr;
mod board;
mod burden;
pub mod call;
mod chunks;
mod connect;
mod cpus;
mod inbox;
pub mod io;
mod job;
mod lane;
mod line;
mod link;
mod module;
mod params;
mod parking;
mod path;
mod receiver;
mod recovery;
mod routes;
pub mod session;
mod settings;
mod stats;
mod submit;
mod sysfs;
mod sysfs_path;
pub mod user;
mod usher;
mod uuid;
mod watch;

use kernel::prelude::*;
use weft::{
    global::Published,
    sysfs::Class,
    workqueue::Queue, //
};
use weft_rdma::watch::Watch;

module! {
    type: RtrsClient,
    name: "rtrs_client",
    authors: ["The Weft developers"],
    description: "RTRS client",
    license: "GPL",
}

/// The loaded module.
///
/// Fields are dropped in order: first nobody opens a session any more (those who have one pin the module, so there are
/// none left), then nobody tells of devices, then the queues go.
struct RtrsClient {
    _published: Published<module::Module>,
    _watch: Watch,
    _urgent: Queue,
    _patient: Queue,
}

impl kernel::Module for RtrsClient {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let urgent = Queue::new(c"rtrs_client")?;
        let patient = Queue::new(c"rtrs_client_slow")?;
        let class = Class::new(c"rtrs-client")?;
        let module = module::Module::new(urgent.handle(), patient.handle(), class)?;
        Ok(Self {
            _watch: Watch::register(module.clone())?,
            _published: module::MODULE.publish(module)?,
            _urgent: urgent,
            _patient: patient,
        })
    }
}
