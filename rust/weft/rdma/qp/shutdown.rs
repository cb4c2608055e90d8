// SPDX-License-Identifier: GPL-2.0

//! The end of a queue pair.
//!
//! When nobody can post any more, the queue pair is put into its error state and one more work request is posted to
//! each of its queues. As queues complete in order, all others are over when these are. Some devices have their own way
//! of draining, which is used then.
//!
//! Only after that is the queue pair destroyed, because a completion that is still in a completion queue names memory
//! of the ring. That takes as long as a handler that has the completion queue. If it takes too long the device has
//! broken; then all that completions could name is leaked, for ever, and the module whose code they would call stays.

use super::QueuePair;
use crate::{
    bindings,
    cq::{
        Context,
        Cq, //
    },
};
use core::{
    cell::UnsafeCell,
    ptr, //
};
use kernel::{
    container_of,
    ffi,
    new_mutex,
    prelude::*,
    sync::{
        atomic::Release,
        Mutex, //
    },
    task::might_sleep,
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta, //
    },
    types::Opaque, //
};

/// How long a queue may take to drain, in milliseconds, before that is worth a line in the log. It takes microseconds.
const PATIENCE: u32 = 60_000;
/// After so many lines the device is believed to have broken.
const LINES: u32 = 10;
/// How often a queue is looked at that nobody else handles, in milliseconds.
const INTERVAL: u32 = 10;
/// Completions handled at a time, and how many times before looking.
const BUDGET: u16 = 64;
const ROUNDS: u32 = 64;

/// Where a queue pair is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// There is none (yet).
    None,
    /// There is one.
    Up,
    /// It is destroyed, and no completion of it is left.
    Down,
    /// It is destroyed, but did not drain.
    Lost,
}

/// The stage of a queue pair, and the lock of its end.
#[pin_data]
pub(super) struct Stage {
    #[pin]
    life: Mutex<Life>,
}

impl Stage {
    #[inline(never)]
    pub(super) fn new() -> impl PinInit<Self> {
        // Here and not below: what makes the object is compiled in the crates that use it, each of which would have a
        // name of its own for the one lock class.
        let life = new_mutex!(Life::None, "weft_rdma::qp::stage");
        pin_init!(Self { life <- life })
    }

    /// There is a queue pair now.
    pub(super) fn begin(&self) {
        *self.life.lock() = Life::Up;
    }
}

/// One of the last work requests.
#[pin_data]
#[repr(C)]
struct Mark {
    cqe: UnsafeCell<bindings::ib_cqe>,
    #[pin]
    done: Opaque<bindings::completion>,
}

impl Mark {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            cqe: UnsafeCell::new(bindings::ib_cqe {
                done: Some(mark_callback),
            }),
            done <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes and stays where it is.
                unsafe { bindings::init_completion(slot) }
            }),
        })
    }

    fn key(&self) -> u64 {
        // CAST: An address, in the 64 bits that C has for it.
        self.cqe.get().addr() as u64
    }

    /// Waits until it has completed in `cq`; whether it has.
    fn wait(&self, cq: &Cq) -> bool {
        let wait = |time| {
            // SAFETY: The completion is initialised.
            unsafe {
                bindings::wait_for_completion_timeout(self.done.get(), msecs_to_jiffies(time)) != 0
            }
        };
        if cq.context() != Context::Direct {
            // A handler that blocks is to blame, rather than the device, and will return.
            return (0..LINES).any(|_| {
                let done = wait(PATIENCE);
                if !done {
                    pr_warn!("a queue pair does not drain: some handler of its completion queue is slow\n");
                }
                done
            });
        }
        (0..PATIENCE / INTERVAL).any(|_| {
            // The queue may be shared, and have always something.
            let _ = (0..ROUNDS).all(|_| cq.process(BUDGET) > 0);
            wait(INTERVAL)
        })
    }
}

/// The last work requests of a queue pair.
#[pin_data]
pub(super) struct Sentinel {
    #[pin]
    send: Mark,
    #[pin]
    receive: Mark,
}

impl Sentinel {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            send <- Mark::new(),
            receive <- Mark::new(),
        })
    }
}

/// One of the last work requests is over.
///
/// # Safety
///
/// To be called by the RDMA core for a work request with the key of a [`Mark`].
unsafe extern "C" fn mark_callback(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
    // SAFETY: C gives a valid completion, of a mark, which stays until this has been called or for ever.
    unsafe {
        let mark = container_of!(super::ring::cqe_of(&*wc), Mark, cqe);
        bindings::complete((*mark).done.get());
    }
}

impl QueuePair {
    /// Ends it, if that was not done. Whether no completion of it can come any more. Sleeps.
    pub(super) fn shutdown(&self) -> bool {
        might_sleep();
        let mut life = self.stage.life.lock();
        if *life == Life::Up {
            *life = self.end();
        }
        *life != Life::Lost
    }

    fn end(&self) -> Life {
        self.silence();
        self.ring.close();
        self.recv.close();
        let drained = match self.as_raw() {
            Some(raw) => self.drain(raw),
            None => true,
        };
        if !drained {
            // SAFETY: It is initialised until it is dropped below.
            let qp = unsafe { (*self.qp.get()).assume_init_ref() };
            core::mem::forget(qp.hold());
        }
        // SAFETY: It is initialised, and dropped this once. Destroying it waits for its events.
        unsafe { (*self.qp.get()).assume_init_drop() };
        // INVARIANT: The field is not initialised any more.
        // ORDERING: `Release` orders its end before.
        self.raw.store(ptr::null_mut(), Release);
        if !drained {
            pr_err!(
                "{}: a queue pair does not drain, memory is lost\n",
                self.device().name()
            );
            return Life::Lost;
        }
        // SAFETY: The ring is closed, and the queue pair drained and destroyed.
        unsafe { self.ring.finish(self.id) };
        // SAFETY: By the type invariants, and it is destroyed.
        unsafe { (self.calls.release)(self) };
        Life::Down
    }

    /// Waits until all work requests are over and have been handled. Whether they are.
    fn drain(&self, raw: *mut bindings::ib_qp) -> bool {
        // SAFETY: The queue pair is there until `end` destroys it.
        if unsafe { bindings::weft_helper_ib_has_drain(raw) } {
            self.drain_by_device(raw);
            return true;
        }
        let mut attr = bindings::ib_qp_attr {
            qp_state: bindings::ib_qp_state_IB_QPS_ERR,
            ..Default::default()
        };
        // CAST: A small bit.
        let mask = bindings::ib_qp_attr_mask_IB_QP_STATE as ffi::c_int;
        // SAFETY: As above.
        if unsafe { bindings::ib_modify_qp(raw, &mut attr, mask) } != 0 {
            return false;
        }
        self.post_marks(raw)
            && self.sentinel.send.wait(self.send.cq())
            && self.sentinel.receive.wait(self.receive.cq())
    }

    /// Lets the device drain it. That handles completion queues that nobody else does.
    fn drain_by_device(&self, raw: *mut bindings::ib_qp) {
        let direct = |cq: &Cq| cq.context() == Context::Direct;
        let cqs = [self.send.cq(), self.receive.cq()];
        let one = ptr::eq(&**cqs[0], &**cqs[1]);
        let count = if one { 1 } else { cqs.len() };
        let ours = || cqs.iter().take(count).filter(|cq| direct(cq));
        for cq in ours() {
            while !cq.enter() {
                fsleep(Delta::from_millis(1));
            }
        }
        // SAFETY: The queue pair is there, nobody posts to it, and nobody else handles the queues that this handles.
        unsafe { bindings::ib_drain_qp(raw) };
        for cq in ours() {
            cq.leave();
        }
    }

    /// Posts the last work requests. Whether both were posted.
    fn post_marks(&self, raw: *mut bindings::ib_qp) -> bool {
        let mut send = bindings::ib_rdma_wr {
            wr: bindings::ib_send_wr {
                opcode: bindings::ib_wr_opcode_IB_WR_RDMA_WRITE,
                // CAST: A single bit.
                send_flags: bindings::ib_send_flags_IB_SEND_SIGNALED as ffi::c_int,
                ..Default::default()
            },
            ..Default::default()
        };
        send.wr.__bindgen_anon_1.bindgen_union_field = self.sentinel.send.key();
        let mut bad = ptr::null();
        // SAFETY: The queue pair is there, with room for one more work request. It has no memory.
        let sent = unsafe { bindings::weft_helper_ib_post_send(raw, &send.wr, &mut bad) };
        let mut receive = bindings::ib_recv_wr::default();
        receive.__bindgen_anon_1.bindgen_union_field = self.sentinel.receive.key();
        let mut bad = ptr::null();
        // SAFETY: As above, for receives.
        let received = unsafe { bindings::weft_helper_ib_post_recv(raw, &receive, &mut bad) };
        sent == 0 && received == 0
    }
}
