// SPDX-License-Identifier: GPL-2.0

//! A device of a server, mapped here as a disk.
//!
//! C counterpart: `struct rnbd_clt_dev`.

use crate::{
    disk::{
        self,
        Parts,
        Place,
        RnbdDisk, //
    },
    ids::Id,
    session::{
        Link,
        Session, //
    },
    target::Target, //
};
use kernel::{
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    },
};
use rtrs_client::session as rtrs;
use weft::{
    fmt::Plain,
    mm::noio,
    new_task,
    sysfs::Uevent,
    workqueue::{
        QueueHandle,
        Task,
        TaskItem, //
    },
};
use weft_proto::rnbd::{
    access::Access,
    control::{
        DeviceEvent as Event,
        DeviceState as State,
        Unmap, //
    },
    limits::Device as Offer,
    path::{
        DevicePath,
        LinkName, //
    }, //
};

/// What changes about a device.
pub(crate) struct Inner {
    pub(crate) state: State,
    /// Times the disk is open.
    openers: u32,
    /// The disk, from the time it is announced until the device is unmapped.
    pub(crate) disk: Option<RnbdDisk>,
    /// What the server said when the disk was made, which the disk lives by.
    pub(crate) offer: Option<Offer>,
    /// The life of the session in which mapping it again was tried last.
    pub(crate) tried_in: Option<u32>,
    /// It is unmapped, and the server was told. From here on another device may be made for the path.
    gone: bool,
}

/// A mapped device.
#[pin_data]
pub(crate) struct Device {
    /// What the server knows it by.
    pub(crate) path: CString,
    /// What it may be used for.
    pub(crate) access: Access,
    /// Its session. The session refers to the device as well, until it is unmapped.
    pub(crate) session: Arc<Session>,
    /// What its disk sends requests through, without asking the session.
    pub(crate) rtrs: Arc<rtrs::Session>,
    /// Number of the disk.
    pub(crate) id: Id,
    /// Where requests go.
    pub(crate) target: Target,
    #[pin]
    pub(crate) inner: Mutex<Inner>,
    /// What else exists in the system because of it. Held while that is made, and outside of `inner`.
    #[pin]
    parts: Mutex<Option<Parts>>,
    /// Unmaps the device when the module goes.
    #[pin]
    task: Task<Device>,
}

weft::impl_has_task! { impl HasTask<0> for Device { self.task } }

/// What a new device is made of.
pub(crate) struct NewDevice {
    pub(crate) path: CString,
    pub(crate) access: Access,
    pub(crate) session: Arc<Session>,
    pub(crate) id: Id,
    pub(crate) queue: QueueHandle,
}

impl Device {
    /// A device that the server has not been asked for yet.
    pub(crate) fn new(new: NewDevice, link: &Link) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                path: new.path,
                access: new.access,
                session: new.session,
                rtrs: link.rtrs.clone(),
                id: new.id,
                target: Target::new(),
                inner <- new_mutex!(Inner {
                    state: State::Init,
                    openers: 0,
                    disk: None,
                    offer: None,
                    tried_in: None,
                    gone: false,
                }, "rnbd_device"),
                parts <- new_mutex!(None, "rnbd_device_parts"),
                task <- new_task!(new.queue, "rnbd_unmap"),
            }),
            GFP_KERNEL,
        )
    }

    /// What the device is at.
    pub(crate) fn state(&self) -> State {
        self.inner.lock().state
    }

    /// Whether it is over and done with, here and on the server.
    pub(crate) fn is_gone(&self) -> bool {
        self.inner.lock().gone
    }

    /// The path on the server.
    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap_or_default()
    }

    /// Name of the link to the disk.
    pub(crate) fn link_name(&self) -> Result<CString> {
        let path = DevicePath::new(self.path.to_bytes()).map_err(|_| EINVAL)?;
        let name = LinkName::new(path, &self.session.name).map_err(|_| ENAMETOOLONG)?;
        CString::try_from_fmt(fmt!("{}", Plain(name)))
    }

    /// Tells the system that the disk works again.
    pub(crate) fn back_again(&self, inner: &Inner, offer: &Offer) {
        if let Some(disk) = &inner.disk {
            self.change_capacity(disk, offer.capacity);
            let _ = disk.node().uevent(Uevent::Online);
            pr_info!("{}: device is mapped again\n", self);
        }
    }

    fn change_capacity(&self, disk: &RnbdDisk, sectors: u64) {
        let old = disk.capacity();
        if old != sectors {
            pr_info!(
                "{}: size changed from {} to {} sectors\n",
                self,
                old,
                sectors
            );
            disk.set_capacity(sectors);
        }
    }

    /// Another size, in sectors of 512 bytes, as a user says. `ENOENT` unless the device is open.
    pub(crate) fn resize(&self, sectors: u64) -> Result {
        // I/O may wait for the next who wants this lock.
        noio::scope(|| {
            let inner = self.inner.lock();
            if inner.state != State::Mapped {
                pr_err!("{}: cannot be resized, it is not open\n", self);
                return Err(ENOENT);
            }
            let disk = inner.disk.as_ref().ok_or(ENOENT)?;
            self.change_capacity(disk, sectors);
            Ok(())
        })
    }

    /// The session went down. Requests are still given to the session, which knows whether they fail or wait.
    pub(crate) fn link_down(&self) {
        let mut inner = self.inner.lock();
        if let Ok(state) = inner.state.step(Event::LinkLost) {
            inner.state = state;
            // Whatever was tried before counts for nothing now, in whichever life that was.
            inner.tried_in = None;
            self.target.link_down();
            pr_err!("{}: disconnected\n", self);
            if let Some(disk) = &inner.disk {
                let _ = disk.node().uevent(Uevent::Offline);
            }
        }
    }

    /// Somebody opens the disk.
    pub(crate) fn opened_here(&self) -> Result {
        let mut inner = self.inner.lock();
        if inner.state == State::Unmapped {
            return Err(EIO);
        }
        inner.openers = inner.openers.checked_add(1).ok_or(EMFILE)?;
        Ok(())
    }

    /// Somebody closes the disk.
    pub(crate) fn closed_here(&self) {
        let mut inner = self.inner.lock();
        inner.openers = inner.openers.saturating_sub(1);
    }

    /// Makes the disk and all that goes with it; the device is unmapped again if that fails. Sleeps.
    pub(crate) fn bring_up(
        self: &Arc<Self>,
        parts: Parts,
        link: &Link,
        offer: &Offer,
        place: &Place,
    ) -> Result {
        let mut own = self.parts.lock();
        let parts = own.insert(parts);
        let result = disk::add(self, link, offer, place).and_then(|disk| {
            // From here on link events are told of the disk.
            self.inner.lock().disk = Some(disk.clone());
            parts.publish(self, &disk, place)
        });
        drop(own);
        if let Err(error) = result {
            pr_err!("{}: no disk can be made of it: {:?}\n", self, error);
            let _ = self.unmap(Unmap::Force);
            return Err(error);
        }
        pr_info!(
            "{}: mapped as {}, {} sectors\n",
            self,
            self.access.name(),
            offer.capacity
        );
        Ok(())
    }

    /// The device is not mapped after all: nothing was made of it yet.
    pub(crate) fn give_up(&self) {
        self.inner.lock().state = State::Unmapped;
        self.forget();
    }

    /// Neither this host nor the server has anything to do with it any more.
    fn forget(&self) {
        self.inner.lock().gone = true;
        self.session.remove_gone();
    }

    /// Unmaps the device soon, whether it is in use or not.
    pub(crate) fn unmap_later(self: &Arc<Self>) {
        Task::schedule(self, 0);
    }

    /// Takes the device out of the system.
    ///
    /// [`Unmap::Normal`] only if nobody has the disk open: `EBUSY`. `EALREADY` if somebody else is at it. Sleeps. A file
    /// of its directory must have called `Active::leave` before.
    pub(crate) fn unmap(&self, how: Unmap) -> Result {
        let mut inner = self.inner.lock();
        let state = inner.state.step(Event::Unmap).map_err(|_| EALREADY)?;
        if how == Unmap::Normal && inner.openers > 0 {
            pr_err!(
                "{}: not unmapped, it is open {} times\n",
                self,
                inner.openers
            );
            return Err(EBUSY);
        }
        let was_mapped = inner.state == State::Mapped;
        inner.state = state;
        let target = self.target.get();
        self.target.clear();
        drop(inner);

        // Waits for whoever makes them.
        let parts = self.parts.lock().take();
        let lease = parts.map(|parts| parts.withdraw());
        let disk = self.inner.lock().disk.take();
        if let Some(disk) = disk {
            disk.remove();
        }
        if let (true, Some((id, life))) = (was_mapped, target) {
            self.session.talk(|_| self.close(id, life));
        }
        self.forget();
        pr_info!("{}: unmapped\n", self);
        // Last: this closes the session if it was the last device.
        drop(lease);
        Ok(())
    }
}

impl TaskItem<0> for Device {
    fn run(this: Arc<Self>) {
        let _ = this.unmap(Unmap::Force);
    }
}

impl kernel::fmt::Display for Device {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        f.write_fmt(fmt!(
            "{}@{} (rnbd{})",
            self.path(),
            self.session,
            self.id.number()
        ))
    }
}
