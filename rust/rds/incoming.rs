// SPDX-License-Identifier: GPL-2.0

//! A message that arrived.
//!
//! C counterpart: `struct rds_incoming` in `net/rds/recv.c`.

use crate::{
    message::Message,
    transport::Kind, //
};
use core::mem::MaybeUninit;
use kernel::{
    iov::IovIterDest,
    list::{
        ListArc,
        ListLinks, //
    },
    prelude::*,
    sync::{
        Arc,
        UniqueArc, //
    },
};
use weft::{
    mm::bytes::Bytes,
    net::skb::SkbQueue,
    time, //
};
use weft_proto::rds::{
    addr::Addr,
    wire::Header, //
};

/// Where the payload of an [`Incoming`] is.
pub enum Data {
    /// In ordinary memory.
    Inline(Bytes),
    /// In the buffers it arrived in.
    Skbs(SkbQueue),
    /// In the message that a socket of this machine sent.
    Message(Arc<Message>),
}

impl Data {
    /// Copies to a user as much as fits; returns how much. `EFAULT`. Sleeps.
    fn copy_to(&self, dest: &mut IovIterDest<'_>) -> Result<usize> {
        match self {
            Self::Inline(bytes) => copy_bytes(bytes, dest),
            Self::Skbs(skbs) => copy_skbs(skbs, dest),
            Self::Message(message) => message.payload.copy_to(dest),
        }
    }
}

/// Copies as much of `bytes` as fits to `dest`; returns how much. `EFAULT`.
pub(crate) fn copy_bytes(bytes: &[u8], dest: &mut IovIterDest<'_>) -> Result<usize> {
    let wanted = bytes.len().min(dest.len());
    match bytes.get(..wanted) {
        Some(part) if dest.copy_to_iter(part) == wanted => Ok(wanted),
        _ => Err(EFAULT),
    }
}

/// Copies as much of the buffers' data as fits to `dest`; returns how much. `EFAULT`.
fn copy_skbs(skbs: &SkbQueue, dest: &mut IovIterDest<'_>) -> Result<usize> {
    let mut copied = 0;
    for skb in skbs.iter() {
        let wanted = skb.len().min(dest.len());
        if wanted == 0 {
            break;
        }
        skb.copy_to_iter(0, dest, wanted)?;
        copied += wanted;
    }
    Ok(copied)
}

/// Points in the life of an incoming message whose times an application can ask for, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub struct Trace {
    /// The header began to arrive.
    pub header: u64,
    /// The header was complete.
    pub start: u64,
    /// The message was queued to its socket.
    pub queued: u64,
}

/// What a message came by.
#[derive(Clone, Copy)]
pub struct Via {
    /// Transport of the connection.
    pub kind: Kind,
    /// Type of service of the connection.
    pub tos: u8,
    /// Which path of it.
    pub path: u8,
}

/// A message that arrived, on the receive queue of its socket.
#[pin_data]
pub struct Incoming {
    #[pin]
    links: ListLinks<0>,
    /// Sender's address.
    pub source: Addr,
    /// Header as it arrived.
    pub header: Header,
    /// What it came by.
    pub via: Via,
    /// Wall-clock time of queueing in nanoseconds, if the socket wanted it then.
    pub timestamp: Option<i64>,
    /// When it passed which point.
    pub trace: Trace,
    data: Data,
}

kernel::list::impl_list_arc_safe! {
    impl ListArcSafe<0> for Incoming { untracked; }
}
kernel::list::impl_list_item! {
    impl ListItem<0> for Incoming { using ListLinks { self.links }; }
}

/// Memory for an [`Incoming`], reserved before its content is taken from the transport.
pub struct Slot(UniqueArc<MaybeUninit<Incoming>>);

impl Slot {
    /// Reserves it.
    #[inline]
    pub fn new(flags: kernel::alloc::Flags) -> Result<Self> {
        Ok(Self(UniqueArc::new_uninit(flags)?))
    }

    /// Fills it.
    #[inline]
    pub(crate) fn fill(
        self,
        source: Addr,
        header: Header,
        via: Via,
        timestamp: Option<i64>,
        mut trace: Trace,
        data: Data,
    ) -> ListArc<Incoming> {
        trace.queued = time::local_clock();
        let init = pin_init!(Incoming {
            links <- ListLinks::new(),
            source,
            header,
            via,
            timestamp,
            trace,
            data,
        });
        match self.0.pin_init_with::<core::convert::Infallible>(init) {
            Ok(unique) => ListArc::from(unique),
            Err(never) => match never {},
        }
    }
}

impl Incoming {
    /// Number of payload bytes.
    #[inline]
    pub fn len(&self) -> usize {
        // A length that does not fit was refused when the header arrived.
        usize::try_from(self.header.len()).unwrap_or(0)
    }

    /// Whether there is no payload.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the payload to a user as far as it fits; returns how much that was. `EFAULT`. Sleeps.
    #[inline]
    pub fn copy_to(&self, dest: &mut IovIterDest<'_>) -> Result<usize> {
        self.data.copy_to(dest)
    }
}
