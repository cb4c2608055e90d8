// SPDX-License-Identifier: GPL-2.0

//! What a mapped device looks like in the system: the disk, its directory and the link to it.
//!
//! C counterpart: `rnbd_client_setup_device` in `drivers/block/rnbd/rnbd-clt.c`, `rnbd_clt_add_dev_kobj` and
//! `rnbd_clt_add_dev_symlink` in `drivers/block/rnbd/rnbd-clt-sysfs.c`.

use crate::{
    device::Device,
    files,
    ids::MINORS,
    queue::Driver,
    registry::Lease,
    session::Link, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use weft::{
    block::{
        disk::{
            Disk,
            Spec, //
        },
        limits::Limits,
        major::MajorHandle, //
    },
    mm::noio,
    sysfs::{
        self,
        Kobj,
        Node,
        Uevent, //
    },
};
use weft_proto::rnbd::limits::{
    Cache,
    Device as Offer, //
};

/// Bytes at whose multiples the segments of a request meet: RTRS maps memory in pages of this size.
const SEGMENT: u32 = 4096;
/// Binary logarithm of a sector's size.
const SECTOR_SHIFT: u32 = 9;

/// A disk of the module.
pub(crate) type RnbdDisk = Arc<Disk<Driver>>;

/// Where disks are announced.
pub(crate) struct Place {
    /// The major number of all disks.
    pub(crate) major: MajorHandle,
    /// The directory `ctl/devices`.
    pub(crate) links: Node,
}

/// What exists in the system because of a device, besides its disk.
pub(crate) struct Parts {
    /// `ctl/devices/<path>@<session>`
    link: Option<sysfs::Link>,
    /// `/sys/block/rnbdN/rnbd`
    dir: Option<Kobj>,
    /// Keeps the session open.
    lease: Lease,
}

impl Parts {
    /// Nothing yet.
    pub(crate) fn new(lease: Lease) -> Self {
        Self {
            link: None,
            dir: None,
            lease,
        }
    }

    /// Makes the directory of a disk and the link to it, and tells user space. Sleeps.
    pub(crate) fn publish(
        &mut self,
        device: &Arc<Device>,
        disk: &RnbdDisk,
        place: &Place,
    ) -> Result {
        // I/O may wait for the next who tells user space of the disk.
        noio::scope(|| {
            self.dir = Some(files::device_dir(disk.node(), device)?);
            disk.node().uevent(Uevent::Online)?;
            let name = device.link_name()?;
            self.link = Some(sysfs::Link::new(&place.links, &name, disk.node().object())?);
            Ok(())
        })
    }

    /// Takes away what [`Self::publish`] made. Sleeps.
    pub(crate) fn withdraw(self) -> Lease {
        drop(self.link);
        drop(self.dir);
        self.lease
    }
}

/// Makes the disk of a device. Sleeps; its partitions are looked for meanwhile.
pub(crate) fn add(
    device: &Arc<Device>,
    link: &Link,
    offer: &Offer,
    place: &Place,
) -> Result<RnbdDisk> {
    let name = CString::try_from_fmt(fmt!("rnbd{}", device.id.number()))?;
    let spec = Spec {
        name: name.to_str().map_err(|_| EINVAL)?,
        major: &place.major,
        first_minor: device.id.first_minor(),
        minors: MINORS,
        capacity: offer.capacity,
        read_only: !device.access.may_write(),
        limits: limits(offer, link),
    };
    Disk::add(&link.tags, &spec, device.clone())
}

/// The limits of the disk: what travels is bounded by the session, what does not by the server's device.
fn limits(offer: &Offer, link: &Link) -> Limits {
    let discard = offer.discard;
    Limits {
        logical_block_size: offer.logical_block_size,
        physical_block_size: offer.physical_block_size,
        io_opt: link.attrs.max_io_size,
        max_hw_sectors: link.attrs.max_io_size >> SECTOR_SHIFT,
        max_segments: link.attrs.max_segments,
        virt_boundary: SEGMENT,
        max_discard_sectors: discard.map_or(0, |discard| discard.max_sectors),
        discard_granularity: discard.map_or(0, |discard| discard.granularity),
        discard_alignment: discard.map_or(0, |discard| discard.alignment),
        max_secure_erase_sectors: offer.max_secure_erase,
        max_write_zeroes_sectors: offer.max_write_zeroes,
        write_cache: offer.cache != Cache::Safe,
        fua: offer.cache == Cache::VolatileWithFua,
        ..Limits::default()
    }
}
