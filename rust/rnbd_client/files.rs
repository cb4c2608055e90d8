// SPDX-License-Identifier: GPL-2.0

//! Files of the module in sysfs.
//!
//! C counterpart: `drivers/block/rnbd/rnbd-clt-sysfs.c`.

use crate::{
    device::Device,
    disk::Place,
    map::Client, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::{
    block::major::Major,
    fmt::Plain,
    sysfs::{
        Active,
        Attribute,
        Attributes,
        Class,
        ClassDevice,
        Kobj,
        Node, //
    },
};
use weft_proto::{
    rnbd::{
        control::{
            parse_one,
            parse_sectors,
            Unmap, //
        },
        options::USAGE, //
    },
    text::ValueError, //
};

/// The class `rnbd-client` and its directory `devices`, in which links to mapped devices are made.
///
/// Dropped in order: first the file, so that nothing is mapped any more, with all below it.
pub(crate) struct Control {
    _device: ClassDevice,
    _devices: Kobj,
    _class: Class,
}

impl Control {
    /// Makes them. Sleeps.
    pub(crate) fn new(client: &Arc<Client>, major: &Major) -> Result<Self> {
        let class = Class::new(c"rnbd-client")?;
        let device = ClassDevice::new(&class, c"ctl", &CONTROL_FILES, client.clone())?;
        let devices = Kobj::plain(&device, c"devices")?;
        client.place.populate(Place {
            major: major.handle(),
            links: devices.clone(),
        });
        Ok(Self {
            _device: device,
            _devices: devices,
            _class: class,
        })
    }
}

/// Makes `/sys/block/rnbdN/rnbd`. Sleeps.
pub(crate) fn device_dir(disk: &Node, device: &Arc<Device>) -> Result<Kobj> {
    Kobj::new(disk, c"rnbd", &DEVICE_FILES, device.clone())
}

static CONTROL_FILES: Attributes<Client, 1> =
    Attributes::new::<crate::LocalModule>([Attribute::rw(
        c"map_device",
        |_, page| page.emit(fmt!("{}\n", USAGE)),
        |client, input, _| client.map(input),
    )]);

static DEVICE_FILES: Attributes<Device, 8> = Attributes::new::<crate::LocalModule>([
    Attribute::rw(
        c"unmap_device",
        |_, page| page.emit(fmt!("Usage: echo <normal|force> > unmap_device\n")),
        unmap,
    ),
    Attribute::rw(
        c"resize",
        |_, page| page.emit(fmt!("Usage: echo <new size in sectors> > resize\n")),
        resize,
    ),
    Attribute::rw(
        c"remap_device",
        |_, page| page.emit(fmt!("Usage: echo <1> > remap_device\n")),
        remap,
    ),
    Attribute::ro(c"mapping_path", |device, page| {
        page.emit(fmt!("{}\n", device.path()))
    }),
    Attribute::ro(c"state", |device, page| {
        page.emit(fmt!("{}\n", device.state().sysfs_name()))
    }),
    Attribute::ro(c"session", |device, page| {
        page.emit(fmt!("{}\n", device.session.name()))
    }),
    Attribute::ro(c"access_mode", |device, page| {
        page.emit(fmt!("{}\n", device.access.name()))
    }),
    Attribute::ro(c"nr_poll_queues", |device, page| {
        page.emit(fmt!("{}\n", device.session.poll_queues))
    }),
]);

/// Says what is wrong with what was written to a file.
fn refused(device: &Device, file: &str, why: &ValueError) -> Error {
    pr_err!("{}: {}: {}\n", device, file, Plain(why));
    EINVAL
}

fn unmap(device: &Arc<Device>, input: &[u8], active: Active<'_>) -> Result {
    let how = Unmap::from_text(input).map_err(|why| refused(device, "unmap_device", &why))?;
    // The directory of this file goes. If the module is being unloaded, that unmaps the device.
    active.leave()?;
    device.unmap(how)
}

fn resize(device: &Arc<Device>, input: &[u8], _active: Active<'_>) -> Result {
    let sectors = parse_sectors(input).map_err(|why| refused(device, "resize", &why))?;
    device.resize(sectors)
}

fn remap(device: &Arc<Device>, input: &[u8], _active: Active<'_>) -> Result {
    parse_one(input).map_err(|why| refused(device, "remap_device", &why))?;
    device.remap()
}
