// SPDX-License-Identifier: GPL-2.0

//! A block device that a session has open.
//!
//! C counterpart: `struct rnbd_srv_sess_dev`.

use crate::{
    export::Grant,
    gate::Gate,
    session::Session, //
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
use weft::{
    block::bdev::Bdev,
    pr_ratelimited,
    sysfs::Kobj,
    time::msecs_to_jiffies, //
};
use weft_proto::{
    rnbd::access::Access,
    rtrs::name::SessionName, //
};

/// How long closing waits for requests under way, in milliseconds. They keep the device open longer if need be.
pub(crate) const DRAIN_MS: u32 = 30_000;

/// An open device.
///
/// Closing it is a matter of its [`Gate`]: whoever closes that closes the device, and nobody else. The block device
/// itself stays open as long as requests refer to this.
#[pin_data]
pub(crate) struct Device {
    /// What the client knows it by in requests.
    pub(crate) id: u32,
    /// What the client asked for.
    pub(crate) path: CString,
    /// What the client may do.
    pub(crate) access: Access,
    /// Whose it is, for messages.
    pub(crate) session: SessionName,
    /// The device itself.
    pub(crate) bdev: Arc<Bdev>,
    /// The right to use the device in this way. After `bdev`, so that it ends later if nobody ends it before.
    grant: Grant,
    /// Requests under way.
    #[pin]
    pub(crate) gate: Gate,
    /// Its directory in sysfs, whose files refer to the device; [`Device::close`] ends that circle.
    #[pin]
    dir: Mutex<Option<Kobj>>,
}

/// What a new device is made of.
pub(crate) struct NewDevice {
    pub(crate) path: CString,
    pub(crate) access: Access,
    pub(crate) bdev: Arc<Bdev>,
    pub(crate) grant: Grant,
}

impl Device {
    /// A device of `session`.
    pub(crate) fn new(session: &Session, id: u32, new: NewDevice) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                id,
                path: new.path,
                access: new.access,
                session: session.name,
                bdev: new.bdev,
                grant: new.grant,
                gate <- Gate::new(),
                dir <- new_mutex!(None, "rnbd_server_dir"),
            }),
            GFP_KERNEL,
        )
    }

    /// What the client asked for.
    pub(crate) fn path(&self) -> &str {
        self.path.to_str().unwrap_or_default()
    }

    /// Whether the client may only look at what is on it.
    pub(crate) fn read_only(&self) -> bool {
        !self.access.may_write()
    }

    /// Announces the device in sysfs. Sleeps.
    pub(crate) fn publish(self: &Arc<Self>, session: &Arc<Session>) -> Result {
        // Held while the files come up: one of them may close the device at once.
        let mut dir = self.dir.lock();
        *dir = Some(self.grant.publish(self, session)?);
        Ok(())
    }

    /// Closes the device and waits for what is under way. Sleeps.
    ///
    /// `false` if somebody else has closed it. A file of its directory must have called `Active::leave` before.
    pub(crate) fn close(&self) -> bool {
        let closed = self.shut();
        if closed {
            self.drain(msecs_to_jiffies(DRAIN_MS));
        }
        closed
    }

    /// The first half of [`Self::close`]: no request is let in, and sysfs forgets the device. Sleeps.
    pub(crate) fn shut(&self) -> bool {
        if !self.gate.close() {
            return false;
        }
        let dir = self.dir.lock().take();
        if let Some(dir) = dir {
            drop(dir);
            self.grant.withdraw();
        }
        true
    }

    /// The second half: waits for requests under way, at most `timeout` jiffies. Sleeps.
    pub(crate) fn drain(&self, timeout: usize) {
        if self.gate.wait_empty(timeout) {
            self.grant.release();
            pr_ratelimited!(pr_info, "{}: closed\n", self);
        } else {
            pr_ratelimited!(
                pr_warn,
                "{}: requests do not end, the device stays open for them\n",
                self
            );
        }
    }
}

impl kernel::fmt::Display for Device {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        f.write_fmt(fmt!(
            "{}@{} ({})",
            self.path(),
            self.session.as_str(),
            self.grant.name()
        ))
    }
}
