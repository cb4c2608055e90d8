// SPDX-License-Identifier: GPL-2.0

//! The connections of a path for as long as they last.
//!
//! C counterpart: the changing half of `struct rtrs_clt_path`. A link is made whole by [`connect`](crate::connect), used
//! by many, broken once, and dropped; nothing of it is used again for the next one.
//!
//! [`Core`] is what messages of the server act on. It belongs to the queue pairs' handlers, so it does not own the
//! queue pairs; a [`Link`] owns both.

use crate::{
    burden::{
        BlockMemory,
        CallMemory, //
    },
    chunks::Chunks,
    inbox::Inbox,
    io::Queue,
    job::Job,
    lane::{
        Lane,
        Salvage,
        Way, //
    },
    line::Line,
    path::Path,
    session::Session,
    watch::Watched, //
};
use kernel::{
    error::code::{
        ECONNABORTED,
        EINVAL, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce, //
    }, //
};
use weft::{
    new_spinlock_bh,
    sync::{
        bh::SpinLockBh,
        wait::Mode, //
    }, //
};
use weft_proto::rtrs::{
    cid::Connections,
    conn::Accepted, //
};
use weft_rdma::loan::Drained;

/// The lanes of a link.
pub(crate) struct Lanes {
    /// Of the chunks that are set aside for calls: the first ones.
    calls: KVec<Arc<Lane<CallMemory>>>,
    /// Of the others.
    blocks: KVec<Arc<Lane<BlockMemory>>>,
    /// Which chunk's lane has the memory region with this index, sorted by the index.
    regions: KVec<(u32, u16)>,
}

/// The lane of a chunk, of either kind.
pub(crate) enum AnyLane<'a> {
    Call(&'a Arc<Lane<CallMemory>>),
    Block(&'a Arc<Lane<BlockMemory>>),
}

/// Calls a method of a lane, whatever kind it is.
macro_rules! on_lane {
    ($any:expr, $lane:ident => $call:expr) => {
        match $any {
            $crate::link::AnyLane::Call($lane) => $call,
            $crate::link::AnyLane::Block($lane) => $call,
        }
    };
}
pub(crate) use on_lane;

impl Lanes {
    pub(crate) fn new(
        calls: KVec<Arc<Lane<CallMemory>>>,
        blocks: KVec<Arc<Lane<BlockMemory>>>,
    ) -> Result<Self> {
        let mut regions =
            KVec::with_capacity(calls.len().saturating_add(blocks.len()), GFP_KERNEL)?;
        let indices = Iterator::chain(
            calls.iter().map(|lane| lane.region_index()),
            blocks.iter().map(|lane| lane.region_index()),
        );
        for (slot, index) in (0u16..).zip(indices) {
            regions.push((index, slot), GFP_KERNEL)?;
        }
        regions.sort_unstable();
        Ok(Self {
            calls,
            blocks,
            regions,
        })
    }

    /// The lane of chunk number `slot`.
    #[inline]
    pub(crate) fn get(&self, slot: u16) -> Option<AnyLane<'_>> {
        let index = usize::from(slot);
        match index.checked_sub(self.calls.len()) {
            None => self.calls.get(index).map(AnyLane::Call),
            Some(index) => self.blocks.get(index).map(AnyLane::Block),
        }
    }

    /// The lane whose memory region `rkey` opens or did open.
    #[inline]
    pub(crate) fn of_key(&self, rkey: u32) -> Option<AnyLane<'_>> {
        let wanted = rkey >> 8;
        let at = self
            .regions
            .binary_search_by_key(&wanted, |(index, _)| *index)
            .ok()?;
        self.get(self.regions.get(at)?.1)
    }

    /// All lanes in the order of their chunks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = AnyLane<'_>> {
        let calls = self.calls.iter().map(AnyLane::Call);
        Iterator::chain(calls, self.blocks.iter().map(AnyLane::Block))
    }
}

/// What a complete link is made of, beside its queue pairs.
#[pin_data]
pub(crate) struct Core {
    path: Arc<Path>,
    serial: u32,
    /// What the server said on the first connection.
    accepted: SetOnce<Accepted>,
    /// Where the server's chunks are.
    pub(crate) chunks: SetOnce<Chunks>,
    lanes: SetOnce<Lanes>,
    /// The server's answer in the info exchange.
    #[pin]
    pub(crate) inbox: Inbox,
    /// Something was received since this was last cleared.
    heard: Atomic<bool>,
    /// What the watch over the path remembers.
    #[pin]
    pub(crate) watched: SpinLockBh<Watched>,
    /// When the last heartbeat was sent, in nanoseconds.
    pub(crate) beat_sent: Atomic<i64>,
    /// No request is to start any more.
    broken: Atomic<bool>,
}

impl Core {
    pub(crate) fn new(path: &Arc<Path>, serial: u32) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                path: path.clone(),
                serial,
                accepted: SetOnce::new(),
                chunks: SetOnce::new(),
                lanes: SetOnce::new(),
                inbox <- Inbox::new(),
                heard: Atomic::new(false),
                watched <- new_spinlock_bh!(Watched::new(), "rtrs_watched"),
                beat_sent: Atomic::new(0),
                broken: Atomic::new(false),
            }),
            GFP_KERNEL,
        )
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.path
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.path.session
    }

    /// What the server said; set once the first connection is there.
    #[inline]
    pub(crate) fn accepted(&self) -> Option<&Accepted> {
        self.accepted.as_ref()
    }

    pub(crate) fn set_accepted(&self, accepted: Accepted) {
        self.accepted.populate(accepted);
    }

    #[inline]
    pub(crate) fn lanes(&self) -> Option<&Lanes> {
        self.lanes.as_ref()
    }

    pub(crate) fn set_lanes(&self, lanes: Lanes) {
        self.lanes.populate(lanes);
    }

    /// Something was received. Any context.
    #[inline]
    pub(crate) fn hear(&self) {
        // ORDERING: A hint to the heartbeat. Read first, so that the line stays shared among those who receive.
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// Whether something was received since the last call.
    pub(crate) fn take_heard(&self) -> bool {
        // ORDERING: As in `hear`.
        self.heard.xchg(false, Relaxed)
    }

    /// The link is of no use any more. Any context up to softirq. Whether this was news.
    pub(crate) fn fail(&self) -> bool {
        // ORDERING: A hint that spares vain attempts.
        self.broken.store(true, Relaxed);
        self.path.fail(self.serial)
    }

    /// Whether requests can be sent, as far as is known.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        // ORDERING: As in `fail`.
        !self.broken.load(Relaxed)
    }
}

/// The connections of a path.
pub(crate) struct Link {
    core: Arc<Core>,
    /// All connections: the one for messages, those of the CPUs, those for polling.
    lines: KVec<Line>,
    /// Which is which.
    plan: Connections,
}

impl Link {
    pub(crate) fn new(core: Arc<Core>, lines: KVec<Line>, plan: Connections) -> Result<Arc<Self>> {
        let link = Self { core, lines, plan };
        Ok(Arc::new(link, GFP_KERNEL)?)
    }

    #[inline]
    pub(crate) fn path(&self) -> &Arc<Path> {
        &self.core.path
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn serial(&self) -> u32 {
        self.core.serial
    }

    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.core.is_usable()
    }

    /// Gives the link up. Any context up to softirq.
    pub(crate) fn fail(&self) -> bool {
        self.core.fail()
    }

    /// The connection for messages.
    pub(crate) fn first_line(&self) -> Option<&Line> {
        self.lines.first()
    }

    /// Which connection carries what is to go over `queue`.
    #[inline]
    fn cid(&self, queue: Queue) -> u16 {
        match queue {
            Queue::Admin => 0,
            Queue::Cpu(cpu) => self.plan.for_cpu(cpu),
            Queue::Poll(index) => self
                .plan
                .for_poll(index)
                .unwrap_or_else(|| self.plan.for_cpu(index)),
        }
    }

    /// Sends a request; gives it back if that does not work. Any context up to softirq.
    #[inline]
    pub(crate) fn start(&self, job: Job) -> Result<(), (Error, Job)> {
        let cid = self.cid(job.order.queue);
        let parts = self
            .core
            .accepted()
            .zip(self.core.lanes())
            .zip(self.core.chunks.as_ref())
            .zip(self.lines.get(usize::from(cid)));
        let Some((((accepted, lanes), chunks), line)) = parts else {
            return Err((ECONNABORTED, job));
        };
        let slot = job.order.slot;
        let (Some(lane), Some(remote)) = (lanes.get(slot), chunks.get(slot)) else {
            return Err((EINVAL, job));
        };
        let way = Way {
            core: &self.core,
            line,
            cid,
            geometry: &accepted.geometry,
            remote,
        };
        on_lane!(lane, lane => lane.start(&way, job))
    }

    /// Whether a request is under way in `slot`.
    pub(crate) fn is_busy(&self, slot: u16) -> bool {
        let lane = self.core.lanes().and_then(|lanes| lanes.get(slot));
        lane.is_some_and(|lane| on_lane!(lane, lane => lane.is_busy()))
    }

    /// Handles completions of poll connection `index`; how many there were.
    pub(crate) fn poll(&self, index: u32) -> i32 {
        let line = self
            .plan
            .for_poll(index)
            .and_then(|cid| self.lines.get(usize::from(cid)));
        line.map_or(0, |line| line.process())
    }

    /// Handles completions of the connection that carries a request in `slot`, if nobody else would.
    pub(crate) fn poll_for(&self, slot: u16) {
        let lane = self.core.lanes().and_then(|lanes| lanes.get(slot));
        let under_way = lane.and_then(|lane| on_lane!(lane, lane => lane.under_way()));
        if let Some(line) = under_way.and_then(|(cid, _)| self.lines.get(usize::from(cid))) {
            line.process();
        }
    }

    /// Whether a request is under way since tick `then` or longer.
    pub(crate) fn has_older_than(&self, then: usize) -> bool {
        let Some(lanes) = self.core.lanes() else {
            return false;
        };
        lanes.iter().any(|lane| {
            on_lane!(lane, lane => lane.under_way())
                .is_some_and(|(_, since)| crate::parking::reached(then, since))
        })
    }

    /// Hangs up, waits until the device is done with everything, and moves what was under way. Sleeps.
    ///
    /// No request can start any more when this is called.
    pub(crate) fn stop(&self) {
        for line in &self.lines {
            line.hang_up();
        }
        for (cid, line) in (0u16..).zip(&self.lines) {
            let drained = line.drain();
            self.salvage(cid, &drained);
        }
    }

    fn salvage(&self, cid: u16, drained: &Drained) {
        let Some(lanes) = self.core.lanes() else {
            return;
        };
        for lane in lanes.iter() {
            let left = on_lane!(lane, lane => lane.salvage(cid, drained));
            match left {
                Some(Salvage::Job(job)) => self.core.session().fail_over(job),
                Some(Salvage::Answered(done)) => done.tell(),
                None => {}
            }
        }
    }

    /// Waits until the server has hung up, too, at most `timeout` ticks. Sleeps.
    ///
    /// A server that is still taking the path down would refuse the next connection.
    pub(crate) fn wait_for_hangup(&self, timeout: usize) {
        let over = || self.lines.iter().all(Line::is_over);
        let timeout = i64::try_from(timeout).unwrap_or(0);
        let _ = self
            .core
            .path
            .changed
            .wait(Mode::Uninterruptible, timeout, over);
    }
}
