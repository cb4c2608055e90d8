// SPDX-License-Identifier: GPL-2.0

//! OPEN: from the path a client gives to a device it can use.
//!
//! C counterpart: `process_msg_open` in `drivers/block/rnbd/rnbd-srv.c`.

use crate::{
    device::{
        Device,
        NewDevice, //
    },
    session::Session, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use weft::{
    block::bdev::{
        Bdev,
        Mode, //
    },
    fmt::Plain,
    pr_ratelimited, //
};
use weft_proto::{
    errno::Failure,
    rnbd::{
        access::Access,
        path::{
            DevicePath,
            PATH_SPACE, //
        },
        wire::{
            OpenRsp,
            OpenRspFields,
            CACHE_FUA,
            CACHE_WRITEBACK, //
        }, //
    }, //
};

/// What a client asks for.
pub(crate) struct Wanted {
    access: Access,
    path: CString,
}

impl Wanted {
    /// Keeps it. May sleep.
    pub(crate) fn new(access: Access, path: DevicePath<'_>) -> Result<Self> {
        Ok(Self {
            access,
            path: CString::try_from_fmt(fmt!("{}", path.as_str()))?,
        })
    }
}

/// Opens a device, or finds it open already under the same path. Sleeps.
pub(crate) fn open(session: &Arc<Session>, wanted: &Wanted) -> Result<OpenRsp> {
    let known = |device: &Device| *device.path == *wanted.path && !device.gate.is_closed();
    let device = match session.devices.find(known) {
        // Whatever access is asked for: the one it was opened for stays.
        Some(device) => device,
        None => open_anew(session, wanted).inspect_err(|error| {
            pr_ratelimited!(
                pr_err,
                "{}: '{}' is not opened: {:?}\n",
                session,
                &*wanted.path,
                error
            );
        })?,
    };
    describe(&device)
}

fn open_anew(session: &Arc<Session>, wanted: &Wanted) -> Result<Arc<Device>> {
    let bdev = open_bdev(session, wanted)?;
    let twin = |device: &Device| device.bdev.dev() == bdev.dev() && !device.gate.is_closed();
    if let Some(twin) = session.devices.find(twin) {
        pr_ratelimited!(pr_err, "{}: '{}' is the same device\n", twin, &*wanted.path);
        return Err(EEXIST);
    }
    let new = NewDevice {
        path: CString::try_from(&*wanted.path)?,
        access: wanted.access,
        grant: session.shared.exports.grant(&bdev, wanted.access)?,
        bdev,
    };
    let device = session.devices.insert(|id| Device::new(session, id, new))?;
    if let Err(error) = device.publish(session) {
        device.close();
        session.forget(device.id);
        return Err(error);
    }
    pr_ratelimited!(pr_info, "{}: opened as {}\n", device, device.access.name());
    Ok(device)
}

/// Opens the block device that the path means here.
fn open_bdev(session: &Session, wanted: &Wanted) -> Result<Arc<Bdev>> {
    let mut space = KBox::new([0; PATH_SPACE], GFP_KERNEL)?;
    let path = DevicePath::new(wanted.path.to_bytes()).map_err(|_| EINVAL)?;
    let full = session
        .shared
        .search_path
        .resolve(&session.name, path, &mut space)
        .map_err(|why| {
            pr_ratelimited!(pr_err, "{}: {}\n", session, Plain(why));
            Error::from_errno(why.errno().code())
        })?;
    let mode = if wanted.access.may_write() {
        Mode::Write
    } else {
        Mode::Read
    };
    Bdev::open(full, mode)
}

/// The largest block size that the answer has room for; a power of two.
const MOST_BLOCK: u32 = 1 << 15;

/// What the client is told of a device.
fn describe(device: &Device) -> Result<OpenRsp> {
    let bdev = &device.bdev;
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let short = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    let block = bdev.logical_block_size();
    if block > MOST_BLOCK {
        pr_ratelimited!(
            pr_err,
            "{}: blocks of {} bytes cannot be told to a client\n",
            device,
            block
        );
        return Err(EOPNOTSUPP);
    }
    let fields = OpenRspFields {
        device_id: device.id,
        nsectors: bdev.capacity(),
        max_hw_sectors: bdev.max_hw_sectors(),
        max_write_zeroes_sectors: bdev.max_write_zeroes_sectors(),
        max_discard_sectors: bdev.max_discard_sectors(),
        discard_granularity: bdev.discard_granularity(),
        discard_alignment: bdev.discard_alignment(),
        physical_block_size: short(bdev.physical_block_size().min(MOST_BLOCK)),
        logical_block_size: short(block),
        max_segments: bdev.max_segments(),
        secure_discard: short(bdev.max_secure_erase_sectors()),
        cache_policy: bit(bdev.fua(), CACHE_FUA) | bit(bdev.write_cache(), CACHE_WRITEBACK),
    };
    Ok(OpenRsp::new(&fields))
}
