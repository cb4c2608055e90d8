// SPDX-License-Identifier: GPL-2.0

//! Files of the module in sysfs.
//!
//! C counterpart: `drivers/block/rnbd/rnbd-srv-sysfs.c`.

use crate::{
    device::Device,
    session::Session, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use weft::sysfs::{
    self,
    Active,
    Attribute,
    Attributes,
    Class,
    ClassDevice,
    Kobj, //
};

/// The class `rnbd-server` with its device `ctl` and the directory `devices` in it.
///
/// Dropped in order, what is inside first.
pub(crate) struct Control {
    pub(crate) devices: Kobj,
    _device: ClassDevice,
    _class: Class,
}

impl Control {
    /// Makes them. Sleeps.
    pub(crate) fn new() -> Result<Self> {
        let class = Class::new(c"rnbd-server")?;
        let device = ClassDevice::new(&class, c"ctl", &NO_FILES, Arc::new((), GFP_KERNEL)?)?;
        let devices = Kobj::plain(&device, c"devices")?;
        Ok(Self {
            devices,
            _device: device,
            _class: class,
        })
    }
}

static NO_FILES: Attributes<(), 0> = Attributes::new::<crate::LocalModule>([]);

/// What the files of a session's device lead to.
struct Opened {
    device: Arc<Device>,
    session: Arc<Session>,
}

static FILES: Attributes<Opened, 4> = Attributes::new::<crate::LocalModule>([
    Attribute::ro(c"read_only", |opened, page| {
        page.emit(fmt!("{}\n", u8::from(opened.device.read_only())))
    }),
    Attribute::ro(c"access_mode", |opened, page| {
        page.emit(fmt!("{}\n", opened.device.access.name()))
    }),
    Attribute::ro(c"mapping_path", |opened, page| {
        page.emit(fmt!("{}\n", opened.device.path()))
    }),
    Attribute::rw(
        c"force_close",
        |_, page| page.emit(fmt!("Usage: echo 1 > force_close\n")),
        force_close,
    ),
]);

/// Makes `<session>/` below the directory of a block device. Sleeps. `EEXIST` if there is one.
pub(crate) fn device_dir(
    sessions: &Kobj,
    device: &Arc<Device>,
    session: &Arc<Session>,
) -> Result<Kobj> {
    let name = CString::try_from_fmt(fmt!("{}", session.name.as_str()))?;
    let opened = Opened {
        device: device.clone(),
        session: session.clone(),
    };
    Kobj::new(sessions, &name, &FILES, Arc::new(opened, GFP_KERNEL)?)
}

/// Closes a device although the client uses it. Its number stays taken, so that the client does not reach another
/// device by it.
fn force_close(opened: &Arc<Opened>, input: &[u8], active: Active<'_>) -> Result {
    if !sysfs::is(input, b"1") {
        pr_err!("{}: force_close takes 1 and nothing else\n", opened.device);
        return Err(EINVAL);
    }
    pr_info!("{}: closed by force\n", opened.device);
    active.leave()?;
    if opened.device.close() {
        // Meanwhile the client may have closed it as well, and the number be that of another device.
        let kept = opened.session.devices.keep(&opened.device);
        opened.session.forgotten(opened.device.id, kept);
    }
    Ok(())
}
