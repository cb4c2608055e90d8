// SPDX-License-Identifier: GPL-2.0

//! Requests of the block layer on their way to the session.
//!
//! All disks of a session share one tag set, and a tag is a chunk of the server: RTRS has a slot for each, so nothing
//! has to be taken or waited for besides what the block layer does anyway.
//!
//! C counterpart: `rnbd_queue_rq` and `struct blk_mq_ops` in `drivers/block/rnbd/rnbd-clt.c`, and what there is to
//! share the permits of RTRS among queues.

use crate::device::Device;
use kernel::{
    cpu::CpuId,
    error::code::{
        EAGAIN,
        ECONNABORTED, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};
use rtrs_client::{
    io::{
        Direction,
        Io,
        Message,
        Queue, //
    },
    session::{
        self as rtrs,
        Attrs, //
    },
};
use weft::{
    block::{
        mq::{
            self,
            Busy,
            Geometry,
            Hw,
            Open,
            Operations,
            Params,
            Request,
            RequestRef,
            TagSet,
            Timeout, //
        },
        Op, //
    },
    pr_ratelimited, //
};
use weft_proto::rnbd::{
    op,
    wire, //
};

/// Entries of a scatter list that every request has room for: `RNBD_INLINE_SG_CNT`.
const INLINE_SG: u16 = 2;

/// The driver, as the block layer knows it.
pub(crate) struct Driver;

/// What the disks of a session share.
pub(crate) struct Shared {
    /// For requests that take long. It does not refer to the tag set.
    rtrs: Arc<rtrs::Session>,
    /// The first chunk that a tag stands for.
    first_slot: u16,
    /// Hardware queues that are not polled.
    queues: u32,
}

/// What belongs to a request.
pub(crate) struct Note {
    disk: Atomic<u32>,
    rtrs: Arc<rtrs::Session>,
    first_slot: u16,
}

impl Note {
    /// Number of the disk that the request is for.
    pub(crate) fn disk(&self) -> u32 {
        // ORDERING: Written and read by the owner of the request only.
        self.disk.load(Relaxed)
    }
}

/// Makes the tags of a session. Sleeps.
pub(crate) fn tag_set(
    rtrs: &Arc<rtrs::Session>,
    attrs: &Attrs,
    poll_queues: u32,
) -> Result<Arc<TagSet<Driver>>> {
    let queues = mq::online_queues(0);
    let params = Params {
        queues,
        read_queues: 0,
        poll_queues,
        depth: attrs.queue_depth.saturating_sub(attrs.admin).into(),
        shared: true,
        // The server has one, and a scheduler here is one lock for all processors.
        no_scheduler: true,
        inline_sg: INLINE_SG,
        timeout_ms: 0,
    };
    let shared = Shared {
        rtrs: rtrs.clone(),
        first_slot: attrs.admin,
        queues,
    };
    TagSet::new(&params, shared)
}

#[vtable]
impl Operations for Driver {
    type TagSetData = Shared;
    type QueueData = Arc<Device>;
    type HwData = HwQueue;
    type RequestData = Note;

    const GEOMETRY: Option<Geometry> = Some(Geometry {
        heads: 4,
        sectors: 16,
    });

    fn new_request(tags: &Shared) -> impl PinInit<Note, Error> {
        Ok(Note {
            disk: Atomic::new(0),
            rtrs: tags.rtrs.clone(),
            first_slot: tags.first_slot,
        })
    }

    fn new_hw(tags: &Shared, index: u32) -> Result<HwQueue> {
        Ok(HwQueue {
            first_slot: tags.first_slot,
            poll: index.checked_sub(tags.queues),
        })
    }

    #[inline]
    fn queue_rq(
        hw: Hw<'_, Self>,
        device: &Arc<Device>,
        request: Request,
        _last: bool,
    ) -> Result<(), Busy> {
        if let Some(note) = request.data::<Note>() {
            // ORDERING: See `Note::disk`.
            note.disk.store(device.id.number(), Relaxed);
        }
        let slot = request.tag().saturating_add(hw.data().first_slot);
        let queue = match hw.data().poll {
            Some(index) => Queue::Poll(index),
            None => Queue::Cpu(CpuId::current().as_u32()),
        };
        submit(device, request, slot, queue)
    }

    fn timeout(request: RequestRef<'_, Self>) -> Timeout {
        // The session watches its requests itself; only that of a poller who is gone has to be looked for.
        let note = request.data();
        if let Some(tag) = request.tag() {
            note.rtrs.look_after(tag.saturating_add(note.first_slot));
        }
        Timeout::Again
    }

    fn poll(hw: Hw<'_, Self>, device: &Arc<Device>) -> i32 {
        match hw.data().poll {
            Some(index) => device.rtrs.poll(index),
            None => -1,
        }
    }

    fn open(device: &Arc<Device>, open: Open) -> Result {
        if open.write && open.read_only {
            return Err(EPERM);
        }
        device.opened_here()
    }

    fn release(device: &Arc<Device>) {
        device.closed_here();
    }
}

/// A hardware queue of a disk.
pub(crate) struct HwQueue {
    first_slot: u16,
    /// Which poll connection it uses, if it is polled.
    poll: Option<u32>,
}

/// Makes the message of a request and gives both to the session.
#[inline]
fn submit(device: &Device, request: Request, slot: u16, queue: Queue) -> Result<(), Busy> {
    let Some((id, life)) = device.target.get() else {
        request.complete(Err(EIO));
        return Ok(());
    };
    let io = Io {
        slot,
        direction: direction(request.op()),
        has_data: request.op().has_data(),
        queue,
        message: message(&request, id),
        life,
        request,
    };
    match device.rtrs.submit(io) {
        Ok(()) => Ok(()),
        Err((error, io)) if error == EAGAIN || error == ENOMEM || error == EBUSY => {
            Err(Busy(io.request))
        }
        // The session tells of its coming up before it lets requests in, and of its going down a moment later.
        Err((error, io)) if error == ECONNABORTED && device.target.is_up() => Err(Busy(io.request)),
        Err((error, io)) => {
            pr_ratelimited!(pr_err, "{}: request not sent: {:?}\n", device, error);
            io.request.complete(Err(error));
            Ok(())
        }
    }
}

/// Submits a request once more, whose message was made in an earlier life of the session.
///
/// If the device was not opened again in this life, the request fails: it would come back for ever.
pub(crate) fn again(device: &Device, io: Io) {
    match device.target.get() {
        Some((_, life)) if life != io.life => {
            if let Err(Busy(request)) = submit(device, io.request, io.slot, io.queue) {
                request.requeue();
            }
        }
        _ => io.request.complete(Err(EIO)),
    }
}

/// The message for the server.
#[inline]
fn message(request: &Request, id: u32) -> Message {
    let flags = request.flags();
    let flags = op::Flags {
        sync: flags.sync,
        fua: flags.fua,
        preflush: flags.preflush,
        nounmap: flags.nounmap,
    };
    let op = wire_op(request.op());
    let flush = op == op::Op::Flush;
    let io = wire::Io::new(&wire::IoFields {
        device_id: id,
        // A flush is about no sector.
        sector: if flush { 0 } else { request.sector() },
        rw: op::Rw::from_block(op, flags).to_wire(),
        bi_size: request.bytes(),
        prio: request.ioprio().to_raw(),
    });
    // Shorter than any message may be.
    Message::new(io.as_bytes()).unwrap_or(Message::EMPTY)
}

fn wire_op(op: Op) -> op::Op {
    match op {
        Op::Read => op::Op::Read,
        Op::Write => op::Op::Write,
        Op::Flush => op::Op::Flush,
        Op::Discard => op::Op::Discard,
        Op::SecureErase => op::Op::SecureErase,
        Op::WriteZeroes => op::Op::WriteZeroes,
    }
}

/// Which way RTRS takes a request. It has no other kinds, so what has no data goes by the kind of its operation.
#[inline]
fn direction(op: Op) -> Direction {
    if wire_op(op).travels_as_write() {
        Direction::Write
    } else {
        Direction::Read
    }
}
