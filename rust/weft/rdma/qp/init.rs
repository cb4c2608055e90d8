// SPDX-License-Identifier: GPL-2.0

//! Making a queue pair.

use super::{
    pair::{
        Calls,
        QueuePair, //
    },
    recv::Receives,
    ring::{
        self,
        Ring, //
    },
    shutdown::{
        Sentinel,
        Stage, //
    },
    WcStatus,
    MAX_SGES, //
};
use crate::{
    bindings,
    cm::Token,
    cq::{
        Cq,
        Room, //
    },
    pd::Pd, //
};
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr::NonNull, //
};
use kernel::{
    ffi,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};

/// The number of the next queue pair; none has 0.
static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// Buffers for receives.
#[derive(Clone, Copy, Debug)]
pub struct SlabSize {
    /// Bytes of each.
    pub entry: u32,
    /// How many there are, up to 65536.
    pub count: u32,
}

/// What a queue pair is made of.
pub struct QpInit<'a> {
    /// Its protection domain.
    pub pd: &'a Arc<Pd>,
    /// Where its sends complete. Needs `max_send_wr + 1` entries for it.
    pub send_cq: &'a Arc<Cq>,
    /// Where its receives complete; may be the same. Needs `max_recv_wr + 1` entries for it.
    pub recv_cq: &'a Arc<Cq>,
    /// Work requests in its send queue, at least [`MAX_WRS`](super::MAX_WRS)` + 1`.
    pub max_send_wr: u32,
    /// Receives in its receive queue.
    pub max_recv_wr: u32,
    /// Receives that are posted again together, 1 to 16: one less than that may be missing in the queue at any time.
    pub recv_batch: u32,
    /// Scatter-gather entries of one work request; not more than [`MAX_SGES`] are of use.
    pub max_send_sge: u32,
    /// Buffers for receives with bytes.
    pub slab: Option<SlabSize>,
}

impl QpInit<'_> {
    /// Checks it and takes room in the completion queues.
    pub(super) fn check(&self) -> Result<(Room, Room)> {
        let device = self.pd.device();
        let limits = device.limits();
        let same = Arc::ptr_eq(device, self.send_cq.device())
            && Arc::ptr_eq(device, self.recv_cq.device());
        let fits = (ring::LEAST_WRS..=limits.max_qp_wr).contains(&self.max_send_wr)
            && self.max_recv_wr <= limits.max_qp_wr
            && (1..=limits.max_send_sge).contains(&self.max_send_sge);
        if !same || !fits {
            return Err(EINVAL);
        }
        // One more each, to drain.
        Ok((
            self.send_cq.reserve(self.max_send_wr + 1)?,
            self.recv_cq.reserve(self.max_recv_wr + 1)?,
        ))
    }
}

impl QueuePair {
    pub(super) fn init(
        init: &QpInit<'_>,
        (send, receive): (Room, Room),
        recv: impl PinInit<Receives>,
        calls: Calls,
    ) -> Result<impl PinInit<Self>> {
        let ring = Ring::new(init.max_send_wr)?;
        let pd = init.pd.clone();
        let max_send_sge = usize::try_from(init.max_send_sge)?.min(MAX_SGES);
        // INVARIANT: There is no queue pair yet.
        Ok(pin_init!(Self {
            ring <- ring,
            recv <- recv,
            raw: Atomic::new(core::ptr::null_mut()),
            // ORDERING: Only uniqueness counts; a 64-bit counter does not wrap.
            id: NEXT_ID.fetch_add(1, Relaxed),
            max_send_sge,
            pd,
            send,
            receive,
            failed: Atomic::new(false),
            calls,
            qp: UnsafeCell::new(MaybeUninit::uninit()),
            sentinel <- Sentinel::new(),
            stage <- Stage::new(),
        }))
    }

    /// Makes the queue pair of C and lets work in.
    ///
    /// # Safety
    ///
    /// `self` must be pinned, in an [`Inner`](super::inner::Inner) of the type that `calls` is for. To be called once.
    pub(super) unsafe fn create(&self, token: &Token<'_>, init: &QpInit<'_>) -> Result {
        // SAFETY: The caller promises that it is pinned.
        unsafe {
            self.ring.attach(self);
            self.recv.attach(self);
        }
        let mut attr = bindings::ib_qp_init_attr {
            event_handler: Some(event_callback),
            qp_context: core::ptr::from_ref(self).cast_mut().cast(),
            send_cq: self.send.cq().as_raw(),
            recv_cq: self.receive.cq().as_raw(),
            cap: bindings::ib_qp_cap {
                max_send_wr: init.max_send_wr + 1,
                max_recv_wr: init.max_recv_wr + 1,
                max_send_sge: init.max_send_sge,
                max_recv_sge: 1,
                ..Default::default()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            ..Default::default()
        };
        let pd = NonNull::new(self.pd.as_raw()).ok_or(EINVAL)?;
        // SAFETY: The domain and the completion queues are held by `self`, which destroys the queue pair before it
        // drops them. The context is `self`, which stays for that long.
        let qp = unsafe { token.create_qp(pd, &mut attr) }?;
        let raw = qp.as_raw();
        // SAFETY: `raw` is null, so nobody looks at the field.
        unsafe { (*self.qp.get()).write(qp) };
        // INVARIANT: It is initialised.
        // ORDERING: `Release` pairs with `as_raw`.
        self.raw.store(raw, Release);
        self.stage.begin();
        self.ring.open();
        self.recv.open();
        Ok(())
    }
}

/// Something has happened to a queue pair outside of its queues.
///
/// # Safety
///
/// To be called by the RDMA core with the [`QueuePair`] that was given as context, until the queue pair is destroyed.
unsafe extern "C" fn event_callback(event: *mut bindings::ib_event, context: *mut ffi::c_void) {
    // SAFETY: By the safety requirements.
    let qp = unsafe { &*context.cast::<QueuePair>().cast_const() };
    // SAFETY: C gives a valid event.
    let event = unsafe { (*event).event };
    match event {
        bindings::ib_event_type_IB_EVENT_COMM_EST if qp.as_raw().is_some() => {
            // SAFETY: It is initialised; destroying it waits for events.
            unsafe { (*qp.qp.get()).assume_init_ref() }.established();
        }
        bindings::ib_event_type_IB_EVENT_QP_FATAL
        | bindings::ib_event_type_IB_EVENT_QP_REQ_ERR
        | bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR => qp.fail(WcStatus::FATAL),
        _ => {}
    }
}
