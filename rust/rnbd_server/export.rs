// SPDX-License-Identifier: GPL-2.0

//! Block devices that at least one session has open: who may write, and their directories in sysfs.
//!
//! C counterpart: `struct rnbd_srv_dev` and `drivers/block/rnbd/rnbd-srv-sysfs.c`.

use crate::{
    device::Device,
    files,
    session::Session, //
};
use kernel::{
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Full, //
        },
        Arc,
        Mutex, //
    },
};
use weft::{
    block::bdev::Bdev,
    fmt::Plain,
    pr_ratelimited,
    sysfs::{
        Kobj,
        Link,
        Node, //
    },
};
use weft_proto::rnbd::access::{
    Access,
    Writers, //
};

/// A block device that is or was used.
pub(crate) struct Export {
    /// Its number in the system.
    number: u32,
    /// Its name in the system.
    name: CString,
    /// Grants that were released and not taken off the entry yet.
    released: Atomic<u32>,
    /// Those of them that allowed writing.
    released_writers: Atomic<u32>,
}

/// Directories of an export: `ctl/devices/<name>/`. Dropped in order, what is inside first.
struct Dirs {
    _link: Link,
    sessions: Kobj,
    _device: Kobj,
    /// Sessions that have a directory in it.
    used: usize,
}

/// An export and who uses it.
struct Entry {
    export: Arc<Export>,
    writers: Writers,
    grants: u32,
    dirs: Option<Dirs>,
}

impl Entry {
    fn new(bdev: &Bdev) -> Result<Self> {
        let export = Export {
            number: bdev.dev(),
            name: CString::try_from_fmt(fmt!("{}", bdev.name().as_str()))?,
            released: Atomic::new(0),
            released_writers: Atomic::new(0),
        };
        Ok(Self {
            export: Arc::new(export, GFP_KERNEL)?,
            writers: Writers::new(),
            grants: 0,
            dirs: None,
        })
    }

    /// Takes off those who released their grants, which they may do where no lock can be taken.
    fn settle(&mut self) {
        let writers = self.export.released_writers.xchg(0, Full);
        for _ in 0..writers {
            self.writers.close(Access::ReadWrite);
        }
        let released = self.export.released.xchg(0, Full);
        self.grants = self.grants.saturating_sub(released);
    }
}

/// All exports.
#[pin_data]
pub(crate) struct Exports {
    /// Also held while directories are made and removed.
    #[pin]
    entries: Mutex<KVec<Entry>>,
    /// `ctl/devices`.
    devices: Node,
}

impl Exports {
    /// None yet; directories will be made in `devices`.
    pub(crate) fn new(devices: Node) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                entries <- new_mutex!(KVec::new(), "rnbd_server_exports"),
                devices,
            }),
            GFP_KERNEL,
        )
    }

    /// The right to use `bdev`; `EPERM` if others use it in a way that forbids it. May sleep.
    pub(crate) fn grant(self: &Arc<Self>, bdev: &Bdev, access: Access) -> Result<Grant> {
        let mut entries = self.entries.lock();
        entries.retain(|entry| {
            entry.settle();
            entry.grants > 0 || entry.dirs.is_some()
        });
        let number = bdev.dev();
        let known = entries
            .iter()
            .position(|entry| entry.export.number == number);
        let index = match known {
            Some(index) => index,
            None => {
                entries.push(Entry::new(bdev)?, GFP_KERNEL)?;
                entries.len().saturating_sub(1)
            }
        };
        let entry = entries.get_mut(index).ok_or(ENOENT)?;
        entry.writers.open(access).map_err(|why| {
            pr_ratelimited!(
                pr_err,
                "{}: not opened: {}\n",
                &*entry.export.name,
                Plain(why)
            );
            EPERM
        })?;
        entry.grants = entry.grants.saturating_add(1);
        Ok(Grant {
            exports: self.clone(),
            export: entry.export.clone(),
            access,
            held: Atomic::new(true),
        })
    }
}

/// The right of a session to use a block device. Dropping it releases it.
pub(crate) struct Grant {
    exports: Arc<Exports>,
    export: Arc<Export>,
    access: Access,
    held: Atomic<bool>,
}

impl Grant {
    /// Name of the block device.
    pub(crate) fn name(&self) -> &CStr {
        &self.export.name
    }

    /// Ends the right; a second time does nothing. Any context.
    pub(crate) fn release(&self) {
        if !self.held.xchg(false, Full) {
            return;
        }
        // ORDERING: `Full`: what was done to the device comes before another may do it.
        if self.access.may_write() {
            self.export.released_writers.fetch_add(1, Full);
        }
        self.export.released.fetch_add(1, Full);
    }

    /// Makes the directory of a session's device, and before that the one of the block device. Sleeps.
    pub(crate) fn publish(&self, device: &Arc<Device>, session: &Arc<Session>) -> Result<Kobj> {
        let mut entries = self.exports.entries.lock();
        let entry = entries
            .iter_mut()
            .find(|entry| Arc::ptr_eq(&entry.export, &self.export))
            .ok_or(ENOENT)?;
        let fresh = match entry.dirs.take() {
            Some(dirs) => dirs,
            None => Dirs::new(&self.exports.devices, &self.export.name, &device.bdev)?,
        };
        let dirs = entry.dirs.insert(fresh);
        let made = files::device_dir(&dirs.sessions, device, session);
        if made.is_ok() {
            dirs.used = dirs.used.saturating_add(1);
        } else if dirs.used == 0 {
            entry.dirs = None;
        }
        made
    }

    /// The directory that [`Self::publish`] made is gone. Sleeps.
    pub(crate) fn withdraw(&self) {
        let mut entries = self.exports.entries.lock();
        let entry = entries
            .iter_mut()
            .find(|entry| Arc::ptr_eq(&entry.export, &self.export));
        let Some(entry) = entry else {
            return;
        };
        if let Some(dirs) = &mut entry.dirs {
            dirs.used = dirs.used.saturating_sub(1);
            if dirs.used == 0 {
                entry.dirs = None;
            }
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.release();
    }
}

impl Dirs {
    fn new(devices: &Node, name: &CStr, bdev: &Bdev) -> Result<Self> {
        let device = Kobj::plain(devices, name)?;
        let sessions = Kobj::plain(&device, c"sessions")?;
        let link = Link::new(&device, c"block_dev", &bdev.disk_object())?;
        Ok(Self {
            _link: link,
            sessions,
            _device: device,
            used: 0,
        })
    }
}
