// SPDX-License-Identifier: GPL-2.0

//! Requests for data: turned into a bio, answered when that is over.
//!
//! What the message says was checked for sense already, and is checked against the device here and where the bio is
//! made: a client could have made up all of it.
//!
//! The data is where RTRS has it, in the chunk of the request: the device reads or writes that memory itself.
//!
//! C counterpart: `process_rdma` and `rnbd_dev_bi_end_io` in `drivers/block/rnbd/rnbd-srv.c`.

use crate::{
    device::Device,
    session::Session, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rtrs_server::operation::{
    Direction,
    Operation, //
};
use weft::{
    block::{
        self,
        bio::{
            BioPages,
            Command,
            Data,
            Done, //
        },
        IoPrio, //
    },
    pr_ratelimited, //
};
use weft_proto::{
    errno::Failure,
    rnbd::{
        message::{
            DeviceLimits,
            Io, //
        },
        op::{
            Op,
            Rw, //
        }, //
    }, //
};

/// Somebody inside of the gate of a device.
struct Inside(Arc<Device>);

impl Inside {
    fn enter(device: Arc<Device>) -> Option<Self> {
        device.gate.enter().then(|| Self(device))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.gate.leave();
    }
}

/// A bio under way for a client.
pub(crate) struct Pending {
    operation: Operation,
    /// Lets the closing of the device wait.
    inside: Inside,
    /// Bytes that the answer carries if all went well.
    answer: u32,
}

impl Done for Pending {
    fn done(self, result: Result) {
        // First: who is answered may close the device at once.
        drop(self.inside);
        self.operation.reply(result.map(|()| self.answer));
    }
}

/// Starts what a client asks for, or answers why not. May sleep.
pub(crate) fn start(session: &Session, operation: Operation, request: &Io) {
    match find(session, request) {
        Ok(inside) => submit(session, operation, inside, request),
        Err(error) => operation.reply(Err(error)),
    }
}

/// The device that a request is for, if it may have it.
fn find(session: &Session, request: &Io) -> Result<Inside> {
    let id = request.device_id();
    let Some(inside) = session.devices.get(id).and_then(Inside::enter) else {
        pr_ratelimited!(
            pr_err,
            "{}: request for device {}, which is not open\n",
            session,
            id
        );
        return Err(ENOTCONN);
    };
    let device = &inside.0;
    let limits = DeviceLimits {
        access: device.access,
        capacity: device.bdev.capacity(),
        logical_block_size: device.bdev.logical_block_size(),
    };
    if let Err(why) = request.check(&limits) {
        pr_ratelimited!(pr_err, "{}: {}\n", device, weft::fmt::Plain(why));
        return Err(Error::from_errno(why.errno().code()));
    }
    Ok(inside)
}

fn submit(session: &Session, operation: Operation, inside: Inside, request: &Io) {
    let command = command(request);
    let data = command.op.has_data().then(|| Data {
        pages: operation.pages().clone() as Arc<dyn BioPages>,
        offset: 0,
        len: usize::try_from(request.data_len()).unwrap_or(0),
    });
    let answer = match operation.direction() {
        Direction::Read => request.data_len(),
        Direction::Write => 0,
    };
    let bdev = inside.0.bdev.clone();
    let pending = Pending {
        operation,
        inside,
        answer,
    };
    if let Err((error, pending)) = session.shared.bios.submit(&bdev, &command, data, pending) {
        pr_ratelimited!(
            pr_err,
            "{}: request not started: {:?}\n",
            pending.inside.0,
            error
        );
        pending.done(Err(error));
    }
}

/// What is done to the device.
fn command(request: &Io) -> Command {
    Command {
        op: block_op(request.rw().op),
        flags: block_flags(request.rw()),
        sector: request.sector(),
        bytes: request.bytes().into(),
        prio: IoPrio::from_raw(request.server_prio()).unwrap_or(IoPrio::NONE),
    }
}

fn block_op(op: Op) -> block::Op {
    match op {
        Op::Read => block::Op::Read,
        Op::Write => block::Op::Write,
        Op::Flush => block::Op::Flush,
        Op::Discard => block::Op::Discard,
        Op::SecureErase => block::Op::SecureErase,
        Op::WriteZeroes => block::Op::WriteZeroes,
    }
}

/// Flags, where they mean something. A flush is what its name says without any.
fn block_flags(rw: Rw) -> block::Flags {
    let write = rw.op == Op::Write;
    block::Flags {
        sync: rw.flags.sync,
        fua: write && rw.flags.fua,
        preflush: write && rw.flags.preflush,
        nounmap: rw.flags.nounmap,
    }
}
