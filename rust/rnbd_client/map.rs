// SPDX-License-Identifier: GPL-2.0

//! Mapping devices as users ask for it, and taking all of them away when the module goes.
//!
//! C counterpart: `rnbd_clt_map_device` and `rnbd_destroy_sessions` in `drivers/block/rnbd/rnbd-clt.c`,
//! `rnbd_clt_map_device_store` in `drivers/block/rnbd/rnbd-clt-sysfs.c`.

use crate::{
    device::{
        Device,
        NewDevice, //
    },
    disk::{
        Parts,
        Place, //
    },
    ids::Ids,
    registry::{
        Lease,
        Registry, //
    },
    session::{
        self,
        Session, //
    },
};
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        SetOnce, //
    },
};
use rtrs_client::{
    addr::PathAddrs,
    user::OpenParams, //
};
use weft::{
    fmt::Plain,
    workqueue::QueueHandle, //
};
use weft_proto::{
    errno::Failure,
    rnbd::options::MapOptions, //
};

/// What the files of the module lead to.
pub(crate) struct Client {
    pub(crate) registry: Arc<Registry>,
    pub(crate) ids: Arc<Ids>,
    /// There once the module's directories are.
    pub(crate) place: SetOnce<Place>,
    pub(crate) queue: QueueHandle,
}

impl Client {
    /// Has nothing mapped.
    pub(crate) fn new(queue: QueueHandle) -> Result<Arc<Self>> {
        let client = Self {
            registry: Arc::pin_init(Registry::new(), GFP_KERNEL)?,
            ids: Ids::new()?,
            place: SetOnce::new(),
            queue,
        };
        Ok(Arc::new(client, GFP_KERNEL)?)
    }

    /// Maps the device that `line` describes. Sleeps, up to minutes if the server is silent.
    pub(crate) fn map(&self, line: &[u8]) -> Result {
        let options = MapOptions::parse(line, nr_cpu_ids()).map_err(|why| {
            pr_err!("map_device: {}\n", Plain(why));
            Error::from_errno(why.errno().code())
        })?;
        let (lease, fresh) = self.registry.lease(&options.session, || open(&options))?;
        check_poll(&lease, fresh, options.nr_poll_queues)?;
        let new = NewDevice {
            path: CString::try_from_fmt(fmt!("{}", options.device.as_str()))?,
            access: options.access,
            session: lease.session().clone(),
            id: self.ids.take()?,
            queue: self.queue.clone(),
        };
        self.bring_up(lease, new)
    }

    /// Has the server open the device and makes the disk.
    fn bring_up(&self, lease: Lease, new: NewDevice) -> Result {
        let place = self.place.as_ref().ok_or(ENODEV)?;
        let link = lease.session().link()?;
        let device = Device::new(new, &link)?;
        device.session.add(&device).inspect_err(|_| {
            pr_err!("{}: mapped already, or not unmapped yet\n", device);
        })?;
        match device.open() {
            Ok(offer) => device.bring_up(Parts::new(lease), &link, &offer, place),
            Err(error) => {
                device.give_up();
                Err(error)
            }
        }
    }

    /// Takes everything away. Nobody maps a device any more. Sleeps.
    ///
    /// Devices go all at the same time, for each takes a while.
    pub(crate) fn shut_down(&self) {
        while let Some(session) = self.registry.find(|session| !session.is_closed()) {
            session.close();
            session.for_each(Device::unmap_later);
        }
        self.registry.wait_empty();
    }
}

/// Opens the session that is missing.
fn open(options: &MapOptions<'_>) -> Result<Arc<Session>> {
    let name = &options.session;
    let mut paths = KVec::new();
    for path in options.paths() {
        paths.push(PathAddrs::resolve(&path, options.dest_port)?, GFP_KERNEL)?;
    }
    if paths.is_empty() {
        pr_err!(
            "map_device: there is no session {} yet, so path= is needed\n",
            name.as_str()
        );
        return Err(ENXIO);
    }
    let params = OpenParams {
        name: name.as_str(),
        paths: &paths,
        port: options.dest_port,
        reconnect_delay: session::RECONNECT_DELAY,
        max_reconnect_attempts: session::MAX_RECONNECTS,
        poll_queues: options.nr_poll_queues,
    };
    Session::open(name, &params).inspect_err(|error| {
        pr_err!(
            "map_device: session {} cannot be opened: {:?}\n",
            name.as_str(),
            error
        );
    })
}

/// As in C, poll queues are for the device that the session is opened for, and no other comes to it.
fn check_poll(lease: &Lease, fresh: bool, poll_queues: u32) -> Result {
    let session = lease.session();
    if fresh || (poll_queues == 0 && session.poll_queues == 0) {
        return Ok(());
    }
    if poll_queues > 0 {
        pr_err!(
            "map_device: nr_poll_queues needs a session of its own, and there is a session {}\n",
            session
        );
    } else {
        pr_err!(
            "map_device: session {} has poll queues, it takes no device without\n",
            session
        );
    }
    Err(EINVAL)
}
