// SPDX-License-Identifier: GPL-2.0

//! Drivers of disks: requests, the tags they have, and the queues they come from.
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)
//!
//! A driver implements [`Operations`], makes a [`TagSet`] and then any number of disks that share its tags (see
//! [`disk`](crate::block::disk)). The block layer calls [`Operations::queue_rq`] with each request.
//!
//! - A [`Request`] is the one owner of a request in flight. It cannot be copied, may be kept anywhere and is consumed
//!   by [`Request::complete`] or [`Request::requeue`]; dropped, it fails. So a request cannot be completed twice, nor
//!   be used after its completion.
//! - Every request has private data of the driver ([`Operations::RequestData`]), made before the first use of the tag
//!   set and dropped with it. It is shared: the driver, which owns the request, and the timeout callback may look at
//!   it at the same time.
//! - The timeout callback gets a [`RequestRef`], with which nothing can be completed: the owner does that, sooner or
//!   later, perhaps at that very time.
//! - A disk holds its tag set; [`Disk::remove`](crate::block::disk::Gendisk::remove) waits for the requests in flight.

mod hw;
mod ops;
mod pdu;
mod request;
mod table;
mod tags;

pub use self::{
    hw::{
        Hw,
        QueueKind, //
    },
    ops::{
        Busy,
        Geometry,
        Open,
        Operations,
        Timeout, //
    },
    request::{
        Request,
        RequestRef, //
    },
    tags::{
        online_queues,
        Params,
        TagSet, //
    }, //
};
