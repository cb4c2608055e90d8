// SPDX-License-Identifier: GPL-2.0

//! A request inside the session: who asked for it, and all that is needed to send it once more.

use crate::{
    call::Call,
    io::{
        Direction,
        Io,
        Message,
        Queue, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::block::mq::Request;

/// What a request is for.
pub(crate) enum Cargo {
    /// A block request.
    Block(Request),
    /// A message of the user that waits for its answer; shared with who waits.
    Call(Arc<Call>),
}

/// A request without its cargo, which is elsewhere while the device may use it.
#[derive(Clone, Copy)]
pub(crate) struct Order {
    pub(crate) slot: u16,
    pub(crate) direction: Direction,
    pub(crate) has_data: bool,
    pub(crate) queue: Queue,
    pub(crate) message: Message,
    pub(crate) life: u32,
}

/// A request that no link has at the moment.
pub(crate) struct Job {
    pub(crate) order: Order,
    pub(crate) cargo: Cargo,
    /// When waiting for a path ends, in ticks; means nothing before it waits.
    pub(crate) deadline: usize,
}

impl Job {
    /// A request of the user.
    pub(crate) fn from_io(io: Io) -> Self {
        Self {
            order: Order {
                slot: io.slot,
                direction: io.direction,
                has_data: io.has_data,
                queue: io.queue,
                message: io.message,
                life: io.life,
            },
            cargo: Cargo::Block(io.request),
            deadline: 0,
        }
    }

    /// The request as its user gave it; `None` if it is a call.
    pub(crate) fn into_io(self) -> Result<Io, Arc<Call>> {
        let order = self.order;
        match self.cargo {
            Cargo::Call(call) => Err(call),
            Cargo::Block(request) => Ok(Io {
                slot: order.slot,
                direction: order.direction,
                has_data: order.has_data,
                queue: order.queue,
                message: order.message,
                life: order.life,
                request,
            }),
        }
    }

    /// Ends the request without an answer. Any context up to softirq.
    pub(crate) fn fail(self, error: Error) {
        self.cargo.end(Err(error));
    }
}

impl Cargo {
    /// Tells who asked for the request how it ended. Any context up to softirq.
    pub(crate) fn end(self, result: Result) {
        match self {
            Self::Block(request) => request.complete(result),
            Self::Call(call) => call.end(result),
        }
    }
}
