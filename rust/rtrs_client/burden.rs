// SPDX-License-Identifier: GPL-2.0

//! What a request carries: the memory of a block request, or the room for the answer to a call.

use crate::{
    call::{
        Call,
        MAX_CALL, //
    },
    io::{
        Direction,
        MAX_MESSAGE, //
    },
    job::{
        Cargo,
        Order, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::block::mq::Request;
use weft_rdma::{
    device::Device,
    dma::DataDirection,
    pages::{
        Mapped,
        MappedPages,
        Pages, //
    },
    sg::SgMapped, //
};

/// Memory that the device uses for a request, and how it comes from the request and goes back.
pub(crate) trait Burden: Mapped + Unpin + Sized {
    /// What a lane needs to make it.
    type Shelf: Send + Sync;

    /// Longest message of a user in such a lane, in bytes.
    const MAX_MESSAGE: usize;

    /// Makes a shelf for a device. May sleep.
    fn shelf(device: &Arc<Device>) -> Result<Self::Shelf>;

    /// Pages of the memory region of a lane, if those of a block request may be `pages`.
    fn pages(pages: u32) -> u32;

    /// Gets at the memory of a request; gives it back if that does not work. Any context up to softirq.
    fn load(cargo: Cargo, order: &Order, shelf: &Self::Shelf)
        -> Result<Load<Self>, (Error, Cargo)>;

    /// Undoes [`Self::load`]; `answered` if the server has filled the memory. Any context up to softirq.
    fn unload(memory: Option<Self>, kept: Option<Cargo>, answered: bool) -> Option<Cargo>;
}

/// A request whose memory is ready for the device.
pub(crate) struct Load<M> {
    /// The memory; `None` if there is no data.
    pub(crate) memory: Option<M>,
    /// The request, unless the memory knows it.
    pub(crate) kept: Option<Cargo>,
    /// Bytes of data.
    pub(crate) len: u32,
}

/// The memory of a block request, which goes with it.
pub(crate) type BlockMemory = SgMapped<Request>;

impl Burden for BlockMemory {
    type Shelf = Arc<Device>;

    const MAX_MESSAGE: usize = MAX_MESSAGE;

    fn shelf(device: &Arc<Device>) -> Result<Self::Shelf> {
        Ok(device.clone())
    }

    fn pages(pages: u32) -> u32 {
        pages
    }

    fn load(
        cargo: Cargo,
        order: &Order,
        device: &Self::Shelf,
    ) -> Result<Load<Self>, (Error, Cargo)> {
        let request = match cargo {
            Cargo::Block(request) if order.has_data => request,
            kept => {
                return Ok(Load {
                    memory: None,
                    kept: Some(kept),
                    len: 0,
                })
            }
        };
        let len = request.bytes();
        match map(request, order.direction, device) {
            Ok(memory) => Ok(Load {
                memory: Some(memory),
                kept: None,
                len,
            }),
            Err((error, request)) => Err((error, Cargo::Block(request))),
        }
    }

    fn unload(memory: Option<Self>, kept: Option<Cargo>, _answered: bool) -> Option<Cargo> {
        match memory {
            Some(memory) => Some(Cargo::Block(memory.into_inner())),
            None => kept,
        }
    }
}

fn map(
    mut request: Request,
    direction: Direction,
    device: &Arc<Device>,
) -> Result<BlockMemory, (Error, Request)> {
    if let Err(error) = request.map_sg() {
        return Err((error, request));
    }
    let direction = match direction {
        Direction::Read => DataDirection::FromDevice,
        Direction::Write => DataDirection::ToDevice,
    };
    SgMapped::new(device, request, direction)
}

/// The room for the answer to a call, which stays in its lane.
pub(crate) type CallMemory = Arc<MappedPages>;

impl Burden for CallMemory {
    type Shelf = Arc<MappedPages>;

    const MAX_MESSAGE: usize = MAX_CALL;

    fn shelf(device: &Arc<Device>) -> Result<Self::Shelf> {
        let mapped = MappedPages::new(device, Pages::new(kernel::page::PAGE_SIZE)?)?;
        Ok(Arc::new(mapped, GFP_KERNEL)?)
    }

    fn pages(_pages: u32) -> u32 {
        1
    }

    fn load(cargo: Cargo, order: &Order, room: &Self::Shelf) -> Result<Load<Self>, (Error, Cargo)> {
        let len = match &cargo {
            Cargo::Call(call) if order.direction == Direction::Read => call.reply_len,
            _ => 0,
        };
        let len = u32::try_from(len).unwrap_or(0);
        // What the server does not write must not be what it wrote another time.
        let _ = room.pages().copy_in(0, &[0; crate::call::MAX_REPLY]);
        let _ = room.sync_for_device(0, crate::call::MAX_REPLY);
        Ok(Load {
            memory: (len != 0).then(|| room.clone()),
            kept: Some(cargo),
            len,
        })
    }

    fn unload(memory: Option<Self>, kept: Option<Cargo>, answered: bool) -> Option<Cargo> {
        if let (Some(memory), Some(Cargo::Call(call)), true) = (memory, &kept, answered) {
            read_answer(&memory, call);
        }
        kept
    }
}

/// Copies what the server wrote.
fn read_answer(memory: &MappedPages, call: &Call) {
    let mut bytes = [0; crate::call::MAX_REPLY];
    let len = call.reply_len.min(bytes.len());
    if let Some(bytes) = bytes.get_mut(..len) {
        let read = memory
            .sync_for_cpu(0, len)
            .and_then(|()| memory.pages().copy_out(0, bytes));
        if read.is_ok() {
            call.answer(bytes);
        }
    }
}
