// SPDX-License-Identifier: GPL-2.0

//! RDMA network block device client: makes disks of block devices of another machine.
//!
//! A user writes to a file which device of which server is wanted. The server opens it and tells how large it is and
//! what it can do, and a disk `rnbdN` appears whose requests go to the server over a session of RTRS.
//!
//! C counterpart: `drivers/block/rnbd/rnbd-clt*.c`. Documentation/rnbd.rst tells the protocol as a story.
//!
//! # Who owns what
//!
//! * [`map::Client`] is what the file `map_device` leads to. It finds sessions in the [`registry::Registry`].
//! * [`session::Session`] is shared by the devices of one server. Each device has a [`registry::Lease`] of it; the
//!   last one to give its lease back closes it. A disk that is removed while somebody has it open keeps the object,
//!   but not the connection.
//! * [`device::Device`] is a mapped device. Its session, its disk, its directory in sysfs and the requests under way
//!   hold it; [`device::Device::unmap`] takes it out of all of them.
//! * A request belongs to the session from `submit` on, which completes it.
//!
//! # Locks, outer first
//!
//! 1. the lock of a disk around `open` and `release`
//! 2. `Device::parts` (mutex): while the disk, its directory and its link are made
//! 3. `Session::changing` (mutex): which devices there are
//! 4. `Device::inner` (mutex): the state of a device; held over uevents and changes of the disk's size
//! 5. `Registry::entries`, `Session::link` (mutexes), `Ids::pool` (spinlock): leaves
//!
//! Requests take none of them. None of these is held while the server is asked for something, nor while something is
//! removed from sysfs.
//!
//! `Session::talking` (mutex) comes before `Device::inner`: it is held while the server is told who this is, or has a
//! device opened or closed. Each message ends after a minute at the latest, and a server that does not answer loses
//! the path; so with many paths that hang, who waits for his turn waits for minutes. None of the others is held then.
//! I/O may wait for who has it, so that task starts no I/O to free memory.

#![forbid(unsafe_code)]

mod admin;
mod device;
mod disk;
mod files;
mod ids;
mod map;
mod queue;
mod registry;
mod remote;
mod session;
mod target;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::{
    block::major::Major,
    workqueue::Queue, //
};

module! {
    type: Module,
    name: "rnbd_client",
    authors: ["The Weft developers"],
    description: "RDMA network block device client",
    license: "GPL",
}

/// The loaded module.
///
/// Fields are dropped in order: first nobody can map a device any more, then all devices and sessions go, then the
/// queue whose tasks did that, and the major number of the disks goes last.
struct Module {
    _control: files::Control,
    _client: Running,
    _queue: Queue,
    _major: Major,
}

/// What is mapped; dropping it unmaps all of it.
struct Running(Arc<map::Client>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let major = Major::register(c"rnbd")?;
        let queue = Queue::new(c"rnbd_client")?;
        let client = map::Client::new(queue.handle())?;
        Ok(Self {
            _control: files::Control::new(&client, &major)?,
            _client: Running(client),
            _queue: queue,
            _major: major,
        })
    }
}
