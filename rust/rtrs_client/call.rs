// SPDX-License-Identifier: GPL-2.0

//! Messages of the user that wait for their answer.
//!
//! C counterpart: `send_usr_msg` of the block device, on top of permits. The first chunks of the server are set aside
//! for these messages, so that they get through however much block I/O there is.

use crate::{
    io::{
        Direction,
        Message,
        Queue, //
    },
    job::{
        Cargo,
        Job,
        Order, //
    },
    session::Session, //
};
use core::ops::Range;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::{
    mm::noio,
    new_spinlock_bh,
    new_wait_queue,
    sync::{
        bh::SpinLockBh,
        wait::{
            Mode,
            WaitQueue,
            WaitResult, //
        }, //
    },
    time::msecs_to_jiffies, //
};

/// Longest answer, in bytes.
pub const MAX_REPLY: usize = 256;
/// Longest message, in bytes: the one that opens a device has 264.
pub const MAX_CALL: usize = 512;
/// Most chunks set aside.
const MOST_DESKS: u16 = 2;

/// Chunks of `depth` that are set aside for calls.
pub(crate) fn desks(depth: u16) -> u16 {
    if depth >= 8 {
        MOST_DESKS
    } else {
        1
    }
}

/// Which of the chunks set aside are taken.
#[pin_data]
pub(crate) struct Desks {
    #[pin]
    taken: SpinLockBh<[bool; MOST_DESKS as usize]>,
    #[pin]
    freed: WaitQueue,
}

impl Desks {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            taken <- new_spinlock_bh!([false; MOST_DESKS as usize], "rtrs_desks"),
            freed <- new_wait_queue!("rtrs_desks"),
        })
    }

    /// Takes a chunk out of the first `count`.
    fn take(&self, count: u16) -> Option<u16> {
        let mut taken = self.taken.lock();
        let (slot, free) = (0..count)
            .zip(taken.iter_mut())
            .find(|(_, taken)| !**taken)?;
        *free = true;
        Some(slot)
    }

    fn put(&self, slot: u16) {
        if let Some(taken) = self.taken.lock().get_mut(usize::from(slot)) {
            *taken = false;
        }
        self.freed.wake_all();
    }
}

/// A chunk taken for one call; goes back when this is dropped.
struct Desk {
    /// Whose chunk it is; a call may outlive the one that waited for it.
    session: Arc<Session>,
    slot: u16,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.session.desks.put(self.slot);
    }
}

/// How a call goes.
struct Outcome {
    result: Option<Result>,
    reply: [u8; MAX_REPLY],
    len: usize,
}

/// A message that waits for its answer.
#[pin_data]
pub(crate) struct Call {
    desk: Desk,
    message: KVec<u8>,
    /// Bytes that the server is asked for.
    pub(crate) reply_len: usize,
    #[pin]
    outcome: SpinLockBh<Outcome>,
    #[pin]
    done: WaitQueue,
}

impl Call {
    fn new(desk: Desk, message: &[u8], reply_len: usize) -> Result<Arc<Self>> {
        let mut bytes = KVec::with_capacity(message.len(), GFP_KERNEL)?;
        bytes.extend_from_slice(message, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                desk,
                message: bytes,
                reply_len,
                outcome <- new_spinlock_bh!(Outcome {
                    result: None,
                    reply: [0; MAX_REPLY],
                    len: 0,
                }, "rtrs_call"),
                done <- new_wait_queue!("rtrs_call"),
            }),
            GFP_KERNEL,
        )
    }

    /// The message.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Keeps the answer. Any context up to softirq.
    pub(crate) fn answer(&self, bytes: &[u8]) {
        let mut outcome = self.outcome.lock();
        let len = bytes.len().min(MAX_REPLY);
        if let (Some(to), Some(from)) = (outcome.reply.get_mut(..len), bytes.get(..len)) {
            to.copy_from_slice(from);
            outcome.len = len;
        }
    }

    /// The call is over. Any context up to softirq.
    pub(crate) fn end(&self, result: Result) {
        self.outcome.lock().result.get_or_insert(result);
        self.done.wake_all();
    }

    /// Keeps the call from being over while the value exists; `None` if it is. Any context up to softirq, in which the
    /// value must be dropped as well; nobody may sleep meanwhile, nor end or answer the call.
    pub(crate) fn hold(&self) -> Option<impl Sized + '_> {
        let outcome = self.outcome.lock();
        outcome.result.is_none().then_some(outcome)
    }

    /// Whether the call is over.
    fn is_over(&self) -> bool {
        self.outcome.lock().result.is_some()
    }

    /// Sleeps until the call is over, or `timeout` ticks have passed, which gives `None`.
    fn wait(&self, timeout: i64, reply: &mut [u8]) -> Option<Result<usize>> {
        let _ = self
            .done
            .wait(Mode::Uninterruptible, timeout, || self.is_over());
        let outcome = self.outcome.lock();
        let result = outcome.result?;
        Some(result.map(|()| {
            let len = outcome.len.min(reply.len());
            if let (Some(to), Some(from)) = (reply.get_mut(..len), outcome.reply.get(..len)) {
                to.copy_from_slice(from);
            }
            len
        }))
    }
}

impl Session {
    /// Sends a message over the connection for messages and waits for its answer. Sleeps, at most twice `timeout_ms`.
    ///
    /// `reply` is filled with what the server wrote; the number of bytes asked for is returned, or the server's error.
    /// `EMSGSIZE` if the message is longer than [`MAX_CALL`] or the answer than [`MAX_REPLY`]; `ECONNABORTED` without
    /// a path, and outside of this `life`; `ETIMEDOUT` if no answer came, and then the path that carried the message is
    /// taken down, for its server hangs.
    ///
    /// A call may go out during `User::connected`, and moves to another path if its path breaks. It is never sent in
    /// another life than the one that it was made for, where the server may have been told something else, or know
    /// nothing; nor after this has returned. A signal does not end the wait: what is on its way to the server cannot be called back.
    pub fn call(
        self: &Arc<Self>,
        life: u32,
        direction: Direction,
        message: &[u8],
        reply: &mut [u8],
        timeout_ms: u32,
    ) -> Result<usize> {
        if message.len() > MAX_CALL || reply.len() > MAX_REPLY {
            return Err(EMSGSIZE);
        }
        let timeout = i64::try_from(msecs_to_jiffies(timeout_ms))?;
        // I/O may wait for the next who wants this desk.
        let call = noio::scope(|| {
            let desk = self.take_desk(timeout)?;
            let call = Call::new(desk, message, reply.len())?;
            self.begin(&call, life, direction)?;
            Ok::<_, Error>(call)
        })?;
        if let Some(result) = call.wait(timeout, reply) {
            return result;
        }
        call.end(Err(ETIMEDOUT));
        let slot = call.desk.slot;
        self.no_answer(slot..slot.saturating_add(1));
        Err(ETIMEDOUT)
    }

    /// Sends the message of a call.
    fn begin(self: &Arc<Self>, call: &Arc<Call>, life: u32, direction: Direction) -> Result {
        let job = Job {
            order: Order {
                slot: call.desk.slot,
                direction,
                has_data: call.reply_len > 0,
                queue: Queue::Admin,
                message: Message::EMPTY,
                life,
            },
            cargo: Cargo::Call(call.clone()),
            deadline: 0,
        };
        self.send(job).map_err(|(error, _)| error)
    }

    /// The server hangs: takes down the paths that carry messages in these chunks.
    fn no_answer(&self, slots: Range<u16>) {
        pr_warn!("{}: the server did not answer a message\n", self);
        for slot in slots {
            self.fail_carriers(slot);
        }
    }

    fn take_desk(self: &Arc<Self>, timeout: i64) -> Result<Desk> {
        let count = desks(self.limits().ok_or(ECONNABORTED)?.agreed.queue_depth);
        let mut slot = None;
        let free = || {
            slot = self.desks.take(count);
            slot.is_some() || self.is_closed()
        };
        match self.desks.freed.wait(Mode::Uninterruptible, timeout, free) {
            WaitResult::Ready(_) => {}
            _ => {
                // Those who asked have gone, and the server has not answered them.
                self.no_answer(0..count);
                return Err(ETIMEDOUT);
            }
        }
        let slot = slot.ok_or(ECONNABORTED)?;
        Ok(Desk {
            session: self.clone(),
            slot,
        })
    }
}
