// SPDX-License-Identifier: GPL-2.0

//! The queue pair of a connection: how large it is, how it comes and goes, and what is posted to set a path up.
//!
//! C counterpart: `create_con`, `post_recv_path`, the second half of `process_info_req`.

use crate::{
    conn::{
        Conn,
        Live, //
    },
    request,
    setup::Information,
    slot::{
        Group,
        Invalidation,
        Slot,
        Slots,
        Stage, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft_proto::rtrs::{
    cid::Use,
    sizes::{
        Needs,
        QueueSizes, //
    },
    wire::{
        Desc,
        InfoReq, //
    },
};
use weft_rdma::{
    cm::Token,
    cq::{
        Context,
        Cq, //
    },
    loan::Sent,
    mr::{
        Access,
        Registered, //
    },
    pd::Pd,
    qp::{
        Chain,
        Owner,
        Qp,
        QpInit,
        Signal,
        SlabSize,
        WcStatus, //
    },
};

/// Bytes that a work request takes in a queue of the device and of the library, roughly.
const WR_BYTES: u64 = 256;
/// Work requests that the library wants a send queue to have room for: a chain and one more.
const LEAST_SENDS: u32 = 16;

impl Conn {
    /// How long the queues are.
    fn sizes(&self) -> QueueSizes {
        let config = self.path.session.server().config();
        let needs = match config.always_invalidate {
            true => Needs::SERVER_INVALIDATING,
            false => Needs::SERVER,
        };
        let usage = match self.cid {
            0 => Use::Admin,
            _ => Use::Io,
        };
        // The library needs one more to drain them.
        let most = self.path.ends.device.limits().max_qp_wr.saturating_sub(1);
        let sizes = QueueSizes::new(needs, usage, config.geometry.queue_depth(), most);
        QueueSizes {
            max_send_wr: sizes.max_send_wr.max(LEAST_SENDS),
            ..sizes
        }
    }

    /// Makes the queue pair, ready to receive the first message. Sleeps.
    pub(crate) fn make(self: &Arc<Self>, token: &Token<'_>, pd: &Arc<Pd>) -> Result {
        let sizes = self.sizes();
        let wrs = u64::from(sizes.completions());
        let reserved = self
            .path
            .session
            .server()
            .budget
            .take(wrs.saturating_mul(WR_BYTES))?;
        let entries = sizes.completions().saturating_add(2);
        let vector = Some(u32::from(self.cid));
        let cq = Cq::pooled(pd.device(), Context::Workqueue, entries, vector)?;
        let slab = SlabSize {
            entry: u32::try_from(size_of::<InfoReq>())?,
            count: 1,
        };
        let init = QpInit {
            pd,
            send_cq: &cq,
            recv_cq: &cq,
            max_send_wr: sizes.max_send_wr,
            max_recv_wr: sizes.max_recv_wr,
            // The connection for messages has one receive at first, which must not wait for others to be posted again.
            recv_batch: if self.cid == 0 { 1 } else { sizes.batch() },
            max_send_sge: sizes.max_send_sge,
            slab: (self.cid == 0).then_some(slab),
        };
        let qp = Qp::new(token, &init, self.clone())?;
        if self.cid == 0 {
            qp.post_slab_recv(1)?;
        }
        *self.live.lock() = Some(Live::new(qp, reserved)?);
        Ok(())
    }

    /// Makes the connection ready for requests. Sleeps.
    pub(crate) fn open(&self, slots: &Arc<Slots>) -> Result {
        let depth = self.path.session.queue_depth();
        let parked = KVVec::with_capacity(usize::from(depth), GFP_KERNEL)?;
        let mut live = self.live.lock();
        let live = (*live).as_mut().ok_or(ENOTCONN)?;
        live.parked = parked;
        live.slots = Some(slots.clone());
        Ok(live.qp.post_recv(self.sizes().receives)?)
    }

    /// Has the device learn the key of a chunk. `EAGAIN` if there is no room now.
    ///
    /// Returns what the client is told of it.
    pub(crate) fn register_slot(&self, slot: &Arc<Slot>) -> Result<Desc> {
        let mut desc = Desc::default();
        self.post(slot, Signal::Auto, |slot, chain| {
            let key = slot.key.as_ref().ok_or(EINVAL)?;
            desc = describe(&chain.register(&key.region, Access::RemoteWrite)?)?;
            Ok(())
        })?;
        Ok(desc)
    }

    /// Has the device learn the key of a group of chunks. `EAGAIN` if there is no room now.
    ///
    /// Returns what the client is told of it.
    pub(crate) fn register_group(&self, group: &Arc<Group>) -> Result<Desc> {
        let mut desc = Desc::default();
        self.post(group, Signal::Auto, |group, chain| {
            desc = describe(&chain.register(&group.region, Access::RemoteWrite)?)?;
            Ok(())
        })?;
        Ok(desc)
    }

    /// Answers the request for information. `EAGAIN` if there is no room now.
    pub(crate) fn inform(&self, information: &Arc<Information>) -> Result {
        self.post(information, Signal::Auto, |information, chain| {
            chain.send(information.0.sge(0, information.0.len())?)
        })?;
        // Soft-RoCE may read what it sends once more after the client has acknowledged it.
        if let Some(live) = &mut *self.live.lock() {
            live.information = Some(information.clone());
        }
        Ok(())
    }

    fn post<T: Owner>(
        &self,
        owner: &Arc<T>,
        signal: Signal,
        build: impl for<'o> FnOnce(&'o T, &mut Chain<'o>) -> Result,
    ) -> Result {
        let live = self.live.lock();
        let live = live.as_ref().ok_or(ENOTCONN)?;
        Ok(live.qp.post(owner.clone(), signal, build)?)
    }

    /// Ends what the device does for the connection, and drops what waited for it. Sleeps.
    pub(crate) fn shut(&self) {
        let Some(live) = self.live.lock().take() else {
            return;
        };
        // Ends the work requests under way, and with them the claims of their requests.
        let _ = live.qp.shutdown();
        for chunk in live.parked.iter() {
            if let Some(slot) = live.slots.as_ref().and_then(|slots| slots.get(*chunk)) {
                let stage = slot.set(Stage::Idle);
                drop(stage);
            }
        }
    }
}

/// What the client is told of a memory region.
fn describe(registered: &Registered<'_>) -> Result<Desc> {
    let remote = registered.remote();
    Ok(Desc::new(
        remote.addr,
        remote.rkey,
        u32::try_from(registered.len())?,
    ))
}

impl Owner for Group {}

impl Owner for Invalidation {
    fn sent(self: Arc<Self>, _result: Result<(), WcStatus>, sent: &Sent) {
        let Some(claim) = self.0.take_invalidated() else {
            return;
        };
        // Fails if it was not done: then the queue pair is in its error state, and the path on its way to its end.
        if self
            .0
            .key
            .as_ref()
            .is_some_and(|key| key.region.settle(sent).is_ok())
        {
            request::run(claim);
        }
    }
}
