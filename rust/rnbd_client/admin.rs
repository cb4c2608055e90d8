// SPDX-License-Identifier: GPL-2.0

//! The messages of RNBD that are not I/O, each of which waits for its answer. Each belongs to a life of the session and
//! fails with `ECONNABORTED` when that is over.
//!
//! C counterpart: `send_msg_sess_info`, `send_msg_open` and `send_msg_close` in `drivers/block/rnbd/rnbd-clt.c`.

use kernel::{
    error::code::EPROTO,
    prelude::*,
    sync::Arc, //
};
use rtrs_client::{
    io::Direction,
    session as rtrs, //
};
use weft_proto::rnbd::{
    access::Access,
    path::DevicePath,
    wire::{
        self,
        OpenRsp,
        SessInfo, //
    }, //
};
use zerocopy::{
    FromZeros,
    IntoBytes, //
};

/// How long the server may take, in milliseconds: what RTRS allows for each step of connecting.
const TIMEOUT_MS: u32 = 30_000;

/// SESS_INFO: tells which version of the protocol we speak. Sleeps.
pub(crate) fn introduce(rtrs: &Arc<rtrs::Session>, life: u32) -> Result {
    let mut reply = SessInfo::new_zeroed();
    let message = SessInfo::request(wire::VERSION);
    rtrs.call(
        life,
        Direction::Read,
        message.as_bytes(),
        reply.as_mut_bytes(),
        TIMEOUT_MS,
    )?;
    if reply.kind() != wire::MSG_SESS_INFO_RSP {
        return Err(EPROTO);
    }
    Ok(())
}

/// OPEN: has the server open a device of its own and returns what it is like. Sleeps.
pub(crate) fn open(
    rtrs: &Arc<rtrs::Session>,
    life: u32,
    path: DevicePath<'_>,
    access: Access,
) -> Result<OpenRsp> {
    let mut reply = OpenRsp::new_zeroed();
    let message = wire::Open::new(access.number(), path.to_wire());
    rtrs.call(
        life,
        Direction::Read,
        message.as_bytes(),
        reply.as_mut_bytes(),
        TIMEOUT_MS,
    )?;
    Ok(reply)
}

/// CLOSE: tells the server that a device is not used any more. Sleeps.
pub(crate) fn close(rtrs: &Arc<rtrs::Session>, life: u32, id: u32) -> Result {
    let message = wire::Close::new(id);
    rtrs.call(
        life,
        Direction::Write,
        message.as_bytes(),
        &mut [],
        TIMEOUT_MS,
    )?;
    Ok(())
}
