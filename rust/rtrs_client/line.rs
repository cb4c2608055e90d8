// SPDX-License-Identifier: GPL-2.0

//! One connection of a path: an RC queue pair, its completion queue and its connection manager id.
//!
//! C counterpart: `struct rtrs_clt_con`.

use crate::{
    receiver::Receiver,
    usher::Usher, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft_rdma::{
    cm::CmId,
    cq::Cq,
    dma::{
        DmaBuf,
        ToDevice, //
    },
    loan::Drained,
    qp::{
        Owner,
        Qp,
        QueuePair,
        Remote,
        Signal, //
    }, //
};

/// Completions of a poll connection that one call handles.
const POLL_BUDGET: u16 = 64;

/// The owner of work requests that use no memory.
pub(crate) struct Nobody;

impl Owner for Nobody {}

/// The owner of a message.
pub(crate) struct Letter(pub(crate) DmaBuf<ToDevice>);

impl Owner for Letter {}

/// A connection.
pub(crate) struct Line {
    qp: Qp<Receiver>,
    cq: Arc<Cq>,
    cm: CmId,
    usher: Arc<Usher>,
    /// Scatter-gather entries of one work request.
    most_sges: u32,
}

impl Line {
    pub(crate) fn new(
        qp: Qp<Receiver>,
        cq: Arc<Cq>,
        cm: CmId,
        usher: Arc<Usher>,
        most_sges: u32,
    ) -> Self {
        Self {
            qp,
            cq,
            cm,
            usher,
            most_sges,
        }
    }

    #[inline]
    pub(crate) fn qp(&self) -> &QueuePair {
        &self.qp
    }

    pub(crate) fn cm(&self) -> &CmId {
        &self.cm
    }

    pub(crate) fn usher(&self) -> &Arc<Usher> {
        &self.usher
    }

    /// Scatter-gather entries of one work request.
    #[inline]
    pub(crate) fn most_sges(&self) -> u32 {
        self.most_sges
    }

    /// Sends an immediate that belongs to no request; does nothing if there is no room. Any context up to softirq.
    pub(crate) fn beat(&self, imm: u32) {
        let Ok(nobody) = Arc::new(Nobody, GFP_ATOMIC) else {
            return;
        };
        let _ = self.qp.post(nobody, Signal::Auto, |_, chain| {
            chain.write_imm((), Remote::NONE, imm)
        });
    }

    /// Handles completions of a poll connection; how many there were. Any context up to softirq.
    pub(crate) fn process(&self) -> i32 {
        i32::try_from(self.cq.process(POLL_BUDGET)).unwrap_or(i32::MAX)
    }

    /// Tells the server that the connection ends, and breaks the queue pair. Sleeps.
    pub(crate) fn hang_up(&self) {
        // Without a connection there is nobody to tell.
        let _ = self.cm.disconnect();
    }

    /// Waits until the device is done with everything that was posted, and lets nothing be posted any more. Sleeps.
    pub(crate) fn drain(&self) -> Drained {
        self.qp.shutdown()
    }

    /// Whether the server has hung up, too.
    pub(crate) fn is_over(&self) -> bool {
        self.usher.is_over()
    }
}
