// SPDX-License-Identifier: GPL-2.0

//! A message on its way out.
//!
//! C counterpart: `struct rds_message` in `net/rds/message.c`. A message is on two lists: that of its socket, which is
//! charged for it, and one of its path, until the peer has it. Each list holds a reference; whoever takes the message
//! off a list drops that one.

use crate::{
    path::Path,
    sock::{
        RdsSock,
        RdsSockExt, //
    },
    zerocopy::Completion, //
};
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    list::ListLinks,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};
use weft::{
    list::{
        Home,
        Tracker, //
    },
    mm::{
        bytes::Bytes,
        frags::Frags,
        user_pages::UserPages, //
    },
    sync::take::TakeCell, //
};
use weft_proto::rds::wire::{
    Header,
    FLAG_RETRANSMITTED,
    PORT_PROBE, //
};

/// Payloads up to this many bytes are kept in ordinary memory and copied into the transport: that costs less than
/// lending pages.
const INLINE_LIMIT: usize = 512;

/// What a message carries.
pub enum Payload {
    /// Bytes in ordinary memory.
    Inline(Bytes),
    /// Bytes in pages that the transport may refer to.
    Frags(Frags),
    /// Bytes in the sender's own pages.
    User(UserPages),
}

impl Payload {
    /// Nothing.
    pub const EMPTY: Self = Self::Inline(Bytes::EMPTY);

    /// Copies `len` bytes from a user. `EFAULT`, `ENOMEM`. Sleeps.
    pub fn copy_from(source: &mut IovIterSource<'_>, len: usize) -> Result<Self> {
        if len > INLINE_LIMIT {
            return Ok(Self::Frags(Frags::copy_from(source, len)?));
        }
        let mut bytes = Bytes::zeroed(len, GFP_KERNEL)?;
        if source.copy_from_iter(&mut bytes) != len {
            return Err(EFAULT);
        }
        Ok(Self::Inline(bytes))
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Inline(bytes) => bytes.len(),
            Self::Frags(frags) => frags.len(),
            Self::User(pages) => pages.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies to a user as much as fits; returns how much. `EFAULT`. Sleeps.
    pub fn copy_to(&self, dest: &mut IovIterDest<'_>) -> Result<usize> {
        match self {
            Self::Inline(bytes) => crate::incoming::copy_bytes(bytes, dest),
            Self::Frags(frags) => frags.copy_to(dest),
            Self::User(pages) => pages.copy_to(dest),
        }
    }
}

/// What a message says besides its payload.
#[derive(Clone, Copy)]
pub struct Envelope {
    /// Sender's port; 0 and 1 belong to the protocol.
    pub sport: u16,
    /// Receiver's port.
    pub dport: u16,
    /// Header flags it always has.
    pub flags: u8,
    /// Extension headers.
    pub extensions: [u8; 16],
}

/// Set in [`Message::end`] once the message was given to the transport; the low 32 bits are a sequence number.
const END_KNOWN: u64 = 1 << 32;

/// A message.
#[pin_data]
pub struct Message {
    /// The path it takes.
    pub path: Arc<Path>,
    /// The socket it came from; protocol messages have none.
    owner: TakeCell<Option<ARef<RdsSock>>>,
    /// Ports, flags, extensions.
    pub envelope: Envelope,
    /// Content.
    pub payload: Payload,
    /// What follows when nothing refers to the payload any more; hence behind it.
    pub(crate) completion: Option<Completion>,
    /// Number on the path, given when it is queued.
    sequence: Atomic<u64>,
    /// Last position in the transport's stream, with [`END_KNOWN`].
    end: Atomic<u64>,
    /// It was sent over an earlier transport connection.
    retransmitted: Atomic<bool>,
    #[pin]
    sock_links: ListLinks<0>,
    #[pin]
    sock_tracker: Tracker<0>,
    sock_home: Home,
    #[pin]
    path_links: ListLinks<1>,
    #[pin]
    path_tracker: Tracker<1>,
    path_home: Home,
}

weft::impl_home_item! {
    impl HomeItem<0> for Message { links: sock_links, tracker: sock_tracker, home: sock_home }
}
weft::impl_home_item! {
    impl HomeItem<1> for Message { links: path_links, tracker: path_tracker, home: path_home }
}

impl Message {
    /// Makes a message; it is on no list yet.
    pub fn new(
        path: Arc<Path>,
        owner: Option<ARef<RdsSock>>,
        envelope: Envelope,
        payload: Payload,
        completion: Option<Completion>,
        flags: kernel::alloc::Flags,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                path,
                owner: TakeCell::new(owner),
                envelope,
                payload,
                completion,
                sequence: Atomic::new(0),
                end: Atomic::new(0),
                retransmitted: Atomic::new(false),
                sock_links <- ListLinks::new(),
                sock_tracker <- Tracker::new(),
                sock_home: Home::new(),
                path_links <- ListLinks::new(),
                path_tracker <- Tracker::new(),
                path_home: Home::new(),
            }),
            flags,
        )
    }

    /// Has a message take another path before it was queued: nobody else refers to it. `None`, and the message is gone, if
    /// somebody does.
    pub(crate) fn redirect(message: Arc<Self>, path: Arc<Path>) -> Option<Arc<Self>> {
        let mut message = Arc::into_unique_or_drop(message)?;
        *message.as_mut().project().path = path;
        Some(message.into())
    }

    /// Number of payload bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    /// Whether there is no payload.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Number on the path.
    #[inline]
    pub fn sequence(&self) -> u64 {
        // ORDERING: Written under the queue lock; readers either hold it or got the message through it.
        self.sequence.load(Relaxed)
    }

    /// Gives the message its number; with the queue locked.
    #[inline]
    pub(crate) fn set_sequence(&self, sequence: u64) {
        self.sequence.store(sequence, Relaxed);
    }

    /// The header as it goes over the wire now.
    #[inline]
    pub fn header(&self) -> Header {
        let mut flags = self.envelope.flags;
        // ORDERING: Set while nobody transmits.
        if self.retransmitted.load(Relaxed) {
            flags |= FLAG_RETRANSMITTED;
        }
        // A message is at most 1 MiB long.
        let len = u32::try_from(self.len()).unwrap_or(0);
        let mut header = Header::new(
            self.sequence(),
            len,
            self.envelope.sport,
            self.envelope.dport,
            flags,
        );
        *header.ext_mut() = self.envelope.extensions;
        header
    }

    /// Notes where in the transport's stream the message ends.
    #[inline]
    pub fn set_end(&self, sequence: u32) {
        // ORDERING: `Release` pairs with `end`; the transport raises its acknowledged position only after sending.
        self.end.store(END_KNOWN | u64::from(sequence), Release);
    }

    /// Where in the transport's stream the message ends, once it was given to the transport.
    #[inline]
    pub fn end(&self) -> Option<u32> {
        let end = self.end.load(Acquire);
        // Dropping the high half is the point.
        (end & END_KNOWN != 0).then_some((end & 0xffff_ffff) as u32)
    }

    /// The transport did not take the message whole, and takes no more: where it would have ended means nothing.
    pub(crate) fn forget_end(&self) {
        // ORDERING: As in `set_end`.
        self.end.store(0, Release);
    }

    /// Prepares the message for another transport connection: the old position in the stream means nothing there.
    pub(crate) fn reset_for_retransmission(&self) {
        self.end.store(0, Release);
        self.retransmitted.store(true, Relaxed);
    }

    /// Whether it was sent over an earlier transport connection.
    pub fn is_retransmitted(&self) -> bool {
        self.retransmitted.load(Relaxed)
    }

    /// The message left its path for good: it is acknowledged, cancelled or dropped. Up to softirq.
    pub(crate) fn finish(&self) {
        if let Some(Some(sk)) = self.owner.take() {
            sk.message_finished(self);
        }
    }

    /// Lets go of the socket, which has taken the message off its list and its charge.
    pub(crate) fn disown(&self) {
        drop(self.owner.take());
    }

    /// Whether this is a message of the protocol itself, not of a socket.
    #[inline]
    pub fn is_control(&self) -> bool {
        self.envelope.sport <= PORT_PROBE
    }
}
