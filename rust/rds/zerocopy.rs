// SPDX-License-Identifier: GPL-2.0

//! Telling a sender that the memory of a zero-copy message is its own again.
//!
//! C counterpart: `rds_rm_zerocopy_callback` in `net/rds/message.c`, `rds_recvmsg_zcookie` in `net/rds/recv.c`. Unlike C
//! a receiver that sleeps is woken for it, and a new number joins the last batch instead of the first.

use crate::sock::{
    RdsSock,
    UserSock, //
};
use kernel::{
    list::{
        List,
        ListArc,
        ListLinks, //
    },
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        }, //
    },
};
use weft::{
    net::msg::MsgDest,
    sync::take::TakeCell, //
};
use weft_proto::rds::uapi::{
    self,
    cmsg, //
};

/// Numbers in one control message (`RDS_MAX_ZCOOKIES`).
const BATCH: usize = 8;
/// Bytes of `struct rds_zcopy_cookies`: how many, and the numbers.
const RECORD_LEN: usize = 4 + 4 * BATCH;
/// Room that the control message takes, with its header.
const CMSG_SPACE: usize = (16 + RECORD_LEN).next_multiple_of(8);

/// Numbers that were not told yet; all access is with the socket's list locked, or by its only owner.
#[pin_data]
pub struct Batch {
    #[pin]
    links: ListLinks<0>,
    count: Atomic<u32>,
    cookies: [Atomic<u32>; BATCH],
}

kernel::list::impl_list_arc_safe! {
    impl ListArcSafe<0> for Batch { untracked; }
}
kernel::list::impl_list_item! {
    impl ListItem<0> for Batch { using ListLinks { self.links }; }
}

impl Batch {
    fn new() -> Result<ListArc<Self>> {
        ListArc::pin_init(
            try_pin_init!(Self {
                links <- ListLinks::new(),
                count: Atomic::new(0),
                cookies: [const { Atomic::new(0) }; BATCH],
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Adds a number; `false` if there is no room.
    fn add(&self, cookie: u32) -> bool {
        // ORDERING: The lock of the list orders all.
        let count = self.count.load(Relaxed);
        match self.cookies.get(count as usize) {
            Some(place) => {
                place.store(cookie, Relaxed);
                self.count.store(count + 1, Relaxed);
                true
            }
            None => false,
        }
    }

    /// As the application gets it.
    fn record(&self) -> [u8; RECORD_LEN] {
        let mut record = [0; RECORD_LEN];
        let words = Iterator::chain(core::iter::once(&self.count), &self.cookies);
        for (space, word) in record.chunks_exact_mut(4).zip(words) {
            space.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        record
    }
}

/// The numbers of a socket that were not told yet.
#[derive(Default)]
pub struct Completions {
    batches: List<Batch>,
    /// The socket is closed: nobody will ask.
    closed: bool,
}

impl Completions {
    /// Whether there are any.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether the socket is closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Closes the list; the caller drops what was on it.
    pub fn close(&mut self) -> List<Batch> {
        self.closed = true;
        core::mem::take(&mut self.batches)
    }
}

/// What there is to tell, and to whom.
struct Promise {
    sk: ARef<RdsSock>,
    cookie: u32,
    /// Memory for the number, should it need some.
    spare: ListArc<Batch>,
}

impl Promise {
    /// Adds the number to those that the socket has to tell. Up to softirq.
    fn keep(self) {
        let mut list = self.sk.zerocopy.lock();
        if list.closed {
            return;
        }
        let unused = match list.batches.pop_back() {
            Some(last) if last.add(self.cookie) => {
                list.batches.push_back(last);
                Some(self.spare)
            }
            last => {
                if let Some(last) = last {
                    list.batches.push_back(last);
                }
                self.spare.add(self.cookie);
                list.batches.push_back(self.spare);
                None
            }
        };
        drop(list);
        // Freed without the lock.
        drop(unused);
        self.sk.wake_sleepers();
    }
}

/// Tells the number of a zero-copy message when it is dropped, if the message was queued.
pub struct Completion {
    promise: TakeCell<Promise>,
    queued: Atomic<bool>,
}

impl Completion {
    /// For a message that is not queued yet. `ENOMEM`.
    pub fn new(sk: ARef<RdsSock>, cookie: u32) -> Result<Self> {
        let spare = Batch::new()?;
        Ok(Self {
            promise: TakeCell::new(Promise { sk, cookie, spare }),
            queued: Atomic::new(false),
        })
    }

    /// The message is queued: the application relies on being told.
    pub(crate) fn queued(&self) {
        // ORDERING: Whoever queued the message drops its reference after this.
        self.queued.store(true, Relaxed);
    }

    /// Nobody is to be told any more; lets go of the socket.
    pub(crate) fn forget(&self) {
        drop(self.promise.take());
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let (true, Some(promise)) = (self.queued.load(Relaxed), self.promise.take()) {
            promise.keep();
        }
    }
}

/// Whether this call could tell about completions.
pub(crate) fn wanted(sk: &UserSock, msg: &MsgDest<'_>) -> bool {
    sk.zerocopy_flag() && msg.has_control() && msg.controllen() >= CMSG_SPACE
}

/// Tells about completions, if there are any and the caller has room for them. `EFAULT`. Sleeps.
#[inline]
pub(crate) fn put(sk: &UserSock, msg: &mut MsgDest<'_>) -> Result<bool> {
    if !wanted(sk, msg) {
        return Ok(false);
    }
    let Some(batch) = sk.zerocopy.lock().batches.pop_front() else {
        return Ok(false);
    };
    let result = msg.put_cmsg(uapi::SOL_RDS, cmsg::ZCOPY_COMPLETION, &batch.record());
    if let Err(error) = result {
        let mut list = sk.zerocopy.lock();
        if !list.closed {
            list.batches.push_front(batch);
        }
        return Err(error);
    }
    Ok(true)
}
