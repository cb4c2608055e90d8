// SPDX-License-Identifier: GPL-2.0

//! A session as RNBD uses it: the RTRS session below, the tag set all its disks share, and its devices.
//!
//! C counterpart: `struct rnbd_clt_session`.

use crate::{
    admin,
    device::Device,
    queue::{
        self,
        Driver,
        Note, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use rtrs_client::{
    io::Io,
    session as rtrs,
    user::{
        OpenParams,
        User, //
    },
};
use weft::{
    block::mq::TagSet,
    mm::noio,
    new_snapshot,
    sync::snapshot::Snapshot, //
};
use weft_proto::rtrs::name::SessionName;

/// Seconds between two attempts to connect a path: `RECONNECT_DELAY`.
pub(crate) const RECONNECT_DELAY: u8 = 30;
/// Attempts to connect a path again: `MAX_RECONNECTS`, no limit.
pub(crate) const MAX_RECONNECTS: i16 = -1;

/// What exists as long as the session is open.
#[derive(Clone)]
pub(crate) struct Link {
    /// The RTRS session. It refers to the [`Session`] as its user; [`Session::close`] ends that circle.
    pub(crate) rtrs: Arc<rtrs::Session>,
    /// The tags of all disks. Each disk refers to it as well, and may live longer.
    pub(crate) tags: Arc<TagSet<Driver>>,
    /// What RTRS said about itself when the tag set was made.
    pub(crate) attrs: rtrs::Attrs,
}

/// The devices of a session. Each refers to it; [`Session::remove_gone`] ends that circle, or
/// [`Session::forget_all`].
type Devices = KVec<Arc<Device>>;

/// A session.
#[pin_data]
pub(crate) struct Session {
    pub(crate) name: SessionName,
    /// Hardware queues for polled requests.
    pub(crate) poll_queues: u32,
    #[pin]
    link: Mutex<Option<Link>>,
    #[pin]
    devices: Snapshot<Devices>,
    /// Held by whoever replaces `devices`. What is in it replaces them last, when there may be no memory.
    #[pin]
    changing: Mutex<Option<KBox<Devices>>>,
    /// Held by whoever tells the server something.
    #[pin]
    talking: Mutex<Told>,
}

/// The life of the RTRS session in which the server was told last who this is.
pub(crate) struct Told(Option<u32>);

impl Told {
    /// Tells the server who this is, if it was not told in this life of the RTRS session. Sleeps.
    ///
    /// That has to be the first message of a life: a server that still knows of an earlier one closes all that was opened
    /// before.
    pub(crate) fn introduce(&mut self, rtrs: &Arc<rtrs::Session>, life: u32) -> Result {
        if self.0 != Some(life) {
            admin::introduce(rtrs, life)?;
            self.0 = Some(life);
        }
        Ok(())
    }
}

impl Session {
    /// Connects to the server and introduces this client. Sleeps; how long is bounded by RTRS.
    pub(crate) fn open(name: &SessionName, params: &OpenParams<'_>) -> Result<Arc<Self>> {
        let none = KBox::new(Devices::new(), GFP_KERNEL)?;
        let last = KBox::new(Devices::new(), GFP_KERNEL)?;
        let session = Arc::pin_init(
            try_pin_init!(Self {
                name: *name,
                poll_queues: params.poll_queues,
                link <- new_mutex!(None, "rnbd_session_link"),
                devices <- new_snapshot!(none, "rnbd_session_devices"),
                changing <- new_mutex!(Some(last), "rnbd_session_changing"),
                talking <- new_mutex!(Told(None), "rnbd_session_talking"),
            }? Error),
            GFP_KERNEL,
        )?;
        let rtrs = rtrs::Session::open(params, session.clone())?;
        session.set_up(&rtrs).inspect_err(|_| {
            *session.link.lock() = None;
            rtrs.close();
        })?;
        Ok(session)
    }

    fn set_up(&self, rtrs: &Arc<rtrs::Session>) -> Result {
        let attrs = rtrs.attrs()?;
        let tags = queue::tag_set(rtrs, &attrs, self.poll_queues)?;
        *self.link.lock() = Some(Link {
            rtrs: rtrs.clone(),
            tags,
            attrs,
        });
        self.talk(|told| told.introduce(rtrs, rtrs.life()))
    }

    /// Tells the server something, and takes its answer, while nobody else of this session does. Sleeps.
    ///
    /// A number that the server gave out must not be given back by one who takes it for his own while another gets it
    /// for his device. The server takes such messages one by one as well.
    pub(crate) fn talk<R>(&self, tell: impl FnOnce(&mut Told) -> R) -> R {
        // I/O may wait for the next who wants this lock.
        noio::scope(|| tell(&mut self.talking.lock()))
    }

    /// What exists while the session is open; `ENOTCONN` afterwards.
    pub(crate) fn link(&self) -> Result<Link> {
        self.link.lock().clone().ok_or(ENOTCONN)
    }

    /// Whether [`Self::close`] was called.
    pub(crate) fn is_closed(&self) -> bool {
        self.link.lock().is_none()
    }

    /// Closes the RTRS session; what is in flight ends with an error. Sleeps. A second time does nothing.
    pub(crate) fn close(&self) {
        let link = self.link.lock().take();
        if let Some(link) = link {
            link.rtrs.close();
        }
    }

    /// The session's name.
    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Adds a device, unless there is one with the same path on the server already: `EEXIST`. May sleep.
    ///
    /// One that is being unmapped counts until the server has closed it: for its path the server still gives out the
    /// number that it is about to take back.
    pub(crate) fn add(&self, device: &Arc<Device>) -> Result {
        let _changing = self.changing.lock();
        let mut devices = self.copy(1)?;
        if devices.iter().any(|other| *other.path == *device.path) {
            return Err(EEXIST);
        }
        devices.push(device.clone(), GFP_KERNEL)?;
        self.devices.replace(KBox::new(devices, GFP_KERNEL)?);
        Ok(())
    }

    /// Forgets devices that are gone. May sleep.
    ///
    /// Without memory for that they are forgotten later, with the session at the latest: they count for nothing.
    pub(crate) fn remove_gone(&self) {
        let _changing = self.changing.lock();
        let rest = self.copy(0);
        if let Ok(Ok(rest)) = rest.map(|rest| KBox::new(rest, GFP_KERNEL)) {
            self.devices.replace(rest);
        }
    }

    /// Forgets what is left when nobody uses the session any more. Sleeps.
    pub(crate) fn forget_all(&self) {
        let mut changing = self.changing.lock();
        let left = changing.take().map(|none| self.devices.replace(none));
        drop(changing);
        drop(left);
    }

    /// The devices that are not gone, with room for `more`.
    fn copy(&self, more: usize) -> Result<Devices> {
        let devices = self.devices.read();
        let mut copy = KVec::with_capacity(devices.len().saturating_add(more), GFP_KERNEL)?;
        for device in devices.iter() {
            if !device.is_gone() {
                copy.push(device.clone(), GFP_KERNEL)?;
            }
        }
        Ok(copy)
    }

    /// A device for which `wanted` holds.
    fn find(&self, wanted: impl Fn(&Device) -> bool) -> Option<Arc<Device>> {
        let devices = self.devices.read();
        devices.iter().find(|device| wanted(device)).cloned()
    }

    /// Does something with every device. `visit` must neither add nor remove one.
    pub(crate) fn for_each(&self, visit: impl Fn(&Arc<Device>)) {
        self.devices.read().iter().for_each(visit);
    }
}

impl User for Session {
    /// The server may know nothing of this client. Opens every device anew.
    ///
    /// Devices come and go meanwhile, so each is looked for by itself.
    fn connected(&self) -> Result {
        let Ok(link) = self.link() else {
            // The first time, or the last: whoever opens or closes the session does what is to be done.
            return Ok(());
        };
        let life = link.rtrs.life();
        self.talk(|told| told.introduce(&link.rtrs, life))
            .inspect_err(|error| {
                pr_err!(
                    "{}: the server does not answer after the session came up again: {:?}\n",
                    self,
                    error
                );
            })?;
        self.for_each(|device| device.forget_earlier(life));
        while let Some(device) = self.find(|device| device.wants_remap(life)) {
            device.remap_after_reconnect(life);
        }
        Ok(())
    }

    fn disconnected(&self) {
        self.for_each(|device| device.link_down());
    }

    fn room(&self) {
        // Room for requests is rarely missing, because the queues of a path are made for a full tag set. The block
        // layer tries again by itself a few milliseconds later.
    }

    fn again(&self, io: Io) {
        let disk = io.request.data::<Note>().map(Note::disk);
        match self.find(|device| Some(device.id.number()) == disk) {
            Some(device) => queue::again(&device, io),
            None => io.request.complete(Err(EIO)),
        }
    }
}

impl kernel::fmt::Display for Session {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        f.write_str(self.name())
    }
}
