// SPDX-License-Identifier: GPL-2.0

//! One chunk of the server as one link sees it, and the request that is under way in it.
//!
//! C counterpart: `struct rtrs_clt_io_req` with its IU and MR.
//!
//! A request is over when two things have happened, in whatever order: the server has answered, and its memory is
//! proven back from the device. The proof is
//!
//! * of a write from memory that the device reads in place: the completion of the work request;
//! * of a request whose memory is in a memory region: the invalidation of the region, by the server's message that
//!   carries its key or by a work request of our own, which is posted when the answer came without one;
//! * of whatever is left when the link breaks: the drained queue pair.
//!
//! Without data there is nothing to prove. The lock of a lane is held for a few words at a time, and never while
//! anything is called.

use crate::{
    burden::Burden,
    io::Direction,
    job::{
        Cargo,
        Job,
        Order, //
    },
    line::Line,
    path::Path,
    session::SEGMENT, //
};
use kernel::{
    error::code::{
        EAGAIN,
        EBUSY,
        ECONNABORTED,
        EMSGSIZE,
        EPROTO, //
    },
    prelude::*,
    sync::Arc, //
};
use weft::{
    new_spinlock_bh,
    sync::bh::SpinLockBh,
    time::jiffies, //
};
use weft_proto::errno::Failure as _;
use weft_proto::rtrs::{
    geometry::{
        ChunkId,
        Geometry, //
    },
    imm::{
        self,
        Status, //
    },
    request::{
        Placement,
        Target,
        Transfer,
        MAX_HEADER, //
    }, //
};
use weft_rdma::{
    dma::{
        DmaBuf,
        Sge,
        ToDevice, //
    },
    loan::{
        Drained,
        Loan,
        Sent, //
    },
    mr::{
        Access,
        Invalidated,
        Kind,
        Mr, //
    },
    pd::Pd,
    qp::{
        Chain,
        Owner,
        PostError,
        QueuePair,
        Remote,
        Signal,
        WcStatus, //
    }, //
};

/// Where the memory of a request is.
enum Memory<M> {
    /// There is none, or it was given back for good.
    None,
    /// A work request reads it in place.
    Lent,
    /// In the memory region.
    Region,
    /// In the memory region, whose invalidation is posted.
    Leaving,
    /// In the memory region, whose invalidation found no room in the send queue.
    Stuck,
    /// Proven back.
    Back(M),
}

/// A request under way.
struct Busy<M> {
    order: Order,
    /// Who asked for it, unless that is known from the memory.
    kept: Option<Cargo>,
    memory: Memory<M>,
    /// Which connection carries it.
    cid: u16,
    /// When it was sent, in ticks.
    since: usize,
    /// Whether posting it has returned.
    posted: bool,
    /// What the server said.
    answer: Option<Status>,
}

/// What is going on in a lane.
enum Phase<M> {
    Idle,
    /// A request is being made ready.
    Claimed,
    Busy(Busy<M>),
}

/// A request that is over.
pub(crate) struct Done {
    cargo: Option<Cargo>,
    status: Status,
}

impl Done {
    /// Tells who asked for it.
    pub(crate) fn tell(self) {
        if let Some(cargo) = self.cargo {
            cargo.end(self.status.map_err(|errno| Error::from_errno(errno.code())));
        }
    }
}

/// How the device gets at the data of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Means {
    /// There is none.
    None,
    /// The work request lists it.
    InPlace,
    /// Through the memory region.
    Region,
}

/// A request as it is going to be posted.
struct Plan {
    order: Order,
    /// Bytes of the message, which stands in the header buffer already.
    usr_len: u16,
    /// Bytes of data.
    len: u32,
    means: Means,
}

impl Plan {
    /// Memory that is read in place is proven back by the completion of its work request.
    fn signal(&self) -> Signal {
        match self.means {
            Means::InPlace => Signal::Always,
            Means::None | Means::Region => Signal::Auto,
        }
    }
}

/// What the server may do with the memory of a request.
fn access(direction: Direction) -> Access {
    match direction {
        Direction::Read => Access::RemoteWrite,
        Direction::Write => Access::Local,
    }
}

/// What the submitter of a request is told that could not be posted.
fn error_of(error: PostError) -> Error {
    match error {
        PostError::Full => EAGAIN,
        PostError::Closed | PostError::Broken => ECONNABORTED,
        PostError::Failed(error) => error,
    }
}

/// Where the server may write the answer to.
fn target(at: Remote, len: u32) -> Target {
    Target {
        addr: at.addr,
        rkey: at.rkey,
        len,
        invalidate: true,
    }
}

/// What follows from a message of the server.
pub(crate) enum Next {
    /// Nothing yet.
    Wait,
    /// The memory region must be invalidated.
    Invalidate,
    /// The request is over.
    Done(Done),
}

/// A lane.
#[pin_data]
pub(crate) struct Lane<M: Burden> {
    /// Its path, for the statistics; the lane ends with the link.
    path: Arc<Path>,
    chunk: ChunkId,
    /// The message of the user and the header behind it.
    header: DmaBuf<ToDevice>,
    region: Mr<M>,
    loan: Loan<M>,
    shelf: M::Shelf,
    #[pin]
    phase: SpinLockBh<Phase<M>>,
}

/// What a lane has to know of its link to send a request.
pub(crate) struct Way<'a> {
    pub(crate) line: &'a Line,
    pub(crate) cid: u16,
    pub(crate) geometry: &'a Geometry,
    /// Where the chunk is.
    pub(crate) remote: Remote,
}

impl<M: Burden> Lane<M> {
    /// Makes the lane of a chunk. May sleep.
    pub(crate) fn new(
        path: &Arc<Path>,
        pd: &Arc<Pd>,
        chunk: ChunkId,
        pages: u32,
    ) -> Result<Arc<Self>> {
        let device = pd.device();
        let kind = match device.limits().sg_gaps {
            true => Kind::Gaps,
            false => Kind::Pages,
        };
        let header = DmaBuf::new(device, M::MAX_MESSAGE.saturating_add(MAX_HEADER))?;
        let region = Mr::new(pd, kind, M::pages(pages))?;
        let shelf = M::shelf(device)?;
        Arc::pin_init(
            pin_init!(Self {
                path: path.clone(),
                chunk,
                header,
                region,
                loan: Loan::new(),
                shelf,
                phase <- new_spinlock_bh!(Phase::Idle, "rtrs_lane"),
            }),
            GFP_KERNEL,
        )
    }

    /// What stays the same in the keys of the lane's memory region.
    pub(crate) fn region_index(&self) -> u32 {
        self.region.rkey() >> 8
    }

    /// Whether a request is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(*self.phase.lock(), Phase::Idle)
    }

    /// Which connection carries a request and since when, if one is under way.
    pub(crate) fn under_way(&self) -> Option<(u16, usize)> {
        match &*self.phase.lock() {
            Phase::Busy(busy) => Some((busy.cid, busy.since)),
            _ => None,
        }
    }

    /// Sends a request; gives it back if that does not work. Any context up to softirq.
    pub(crate) fn start(self: &Arc<Self>, way: &Way<'_>, job: Job) -> Result<(), (Error, Job)> {
        if !self.claim() {
            return Err((EBUSY, job));
        }
        let usr_len = match self.write_message(&job) {
            Ok(len) => len,
            Err(error) => {
                *self.phase.lock() = Phase::Idle;
                return Err((error, job));
            }
        };
        let Job {
            order,
            cargo,
            deadline,
        } = job;
        let rejob = |(error, cargo)| {
            (
                error,
                Job {
                    order,
                    cargo,
                    deadline,
                },
            )
        };
        let load = match M::load(cargo, &order, &self.shelf) {
            Ok(load) => load,
            Err(refused) => {
                *self.phase.lock() = Phase::Idle;
                return Err(rejob(refused));
            }
        };
        let means = match self.store(load.memory, &order, way.line.most_sges()) {
            Ok(means) => means,
            Err((error, memory)) => {
                *self.phase.lock() = Phase::Idle;
                let Some(cargo) = M::unload(Some(memory), load.kept, false) else {
                    return Ok(());
                };
                return Err(rejob((error, cargo)));
            }
        };
        let plan = Plan {
            order,
            usr_len,
            len: load.len,
            means,
        };
        self.begin(&plan, load.kept, way.cid);
        let bytes = u64::from(plan.len).saturating_add(plan.usr_len.into());
        self.path.stats.started();
        let signal = plan.signal();
        let qp = way.line.qp();
        let result = qp.post(self.clone(), signal, |lane, chain| {
            lane.build(&plan, way, chain)
        });
        match result {
            // What was posted in part ends with the link, which its handler has been told of.
            Ok(()) | Err(PostError::Broken) => {
                self.path.stats.sent(order.direction, bytes);
                if let Next::Done(done) = self.posted() {
                    done.tell();
                }
                Ok(())
            }
            Err(error) => match self.take_back() {
                Some(cargo) => Err(rejob((error_of(error), cargo))),
                // Cannot be: nobody ends a request that was not posted.
                None => Ok(()),
            },
        }
    }

    fn claim(&self) -> bool {
        let mut phase = self.phase.lock();
        let idle = matches!(*phase, Phase::Idle);
        if idle {
            *phase = Phase::Claimed;
        }
        idle
    }

    /// Puts the memory of a request where chains find it; gives it back if it does not fit.
    fn store(&self, memory: Option<M>, order: &Order, most_sges: u32) -> Result<Means, (Error, M)> {
        let Some(memory) = memory else {
            return Ok(Means::None);
        };
        let (_, segments) = memory.table();
        // One entry is for message and header.
        if order.direction == Direction::Write && segments < most_sges {
            // It is empty while the lane is idle.
            self.loan.put(memory).map_err(|memory| (EBUSY, memory))?;
            Ok(Means::InPlace)
        } else {
            self.region.put(memory, SEGMENT)?;
            Ok(Means::Region)
        }
    }

    fn begin(&self, plan: &Plan, kept: Option<Cargo>, cid: u16) {
        *self.phase.lock() = Phase::Busy(Busy {
            order: plan.order,
            kept,
            memory: match plan.means {
                Means::None => Memory::None,
                Means::InPlace => Memory::Lent,
                Means::Region => Memory::Region,
            },
            cid,
            since: jiffies(),
            posted: false,
            answer: None,
        });
    }

    /// Makes the work requests of a request.
    fn build<'o>(&'o self, plan: &Plan, way: &Way<'_>, chain: &mut Chain<'o>) -> Result {
        let (mut lent, mut region) = (None, None);
        match plan.means {
            Means::None => {}
            Means::InPlace => lent = Some(chain.lend(&self.loan)?),
            Means::Region => {
                region = Some(chain.register(&self.region, access(plan.order.direction))?)
            }
        }
        let transfer = match plan.order.direction {
            Direction::Write => Transfer::Write,
            Direction::Read => {
                Transfer::Read(region.map(|region| target(region.remote(), plan.len)))
            }
        };
        let (header, remote_off, imm) = self.place(plan, way, transfer)?;
        let remote = Remote {
            addr: way.remote.addr.wrapping_add(remote_off.into()),
            ..way.remote
        };
        // What the server writes is not sent.
        let region = match plan.order.direction {
            Direction::Write => region.map(|region| region.sge(0, plan.len)).transpose()?,
            Direction::Read => None,
        };
        chain.write_imm((lent, (region, header)), remote, imm)
    }

    /// Writes the header behind the message: what is to be sent of both, where to, and the immediate.
    fn place(&self, plan: &Plan, way: &Way<'_>, transfer: Transfer) -> Result<(Sge<'_>, u32, u32)> {
        let placement = Placement::new(way.geometry, transfer, plan.len, plan.usr_len)
            .map_err(|error| Error::from_errno(error.errno().code()))?;
        let imm = imm::request(way.geometry, self.chunk, placement.header_off()).ok_or(EMSGSIZE)?;
        let header = placement.header();
        self.header.write(plan.usr_len.into(), header)?;
        let len = header.len().saturating_add(plan.usr_len.into());
        Ok((self.header.sge(0, len)?, placement.remote_off(), imm))
    }

    /// Writes the message of a request for the device to send; its length.
    fn write_message(&self, job: &Job) -> Result<u16> {
        let message = match &job.cargo {
            Cargo::Block(_) => job.order.message.bytes(),
            Cargo::Call(call) => call.message(),
        };
        // Too long a message does not fit the buffer.
        self.header.write(0, message).map_err(|_| EMSGSIZE)?;
        u16::try_from(message.len()).map_err(|_| EMSGSIZE)
    }

    /// Undoes [`Self::begin`] and [`Self::store`] for a request that could not be posted.
    fn take_back(&self) -> Option<Cargo> {
        let phase = core::mem::replace(&mut *self.phase.lock(), Phase::Claimed);
        let cargo = match phase {
            Phase::Busy(busy) => {
                let memory = self.loan.take_unlent().or_else(|| self.region.take());
                M::unload(memory, busy.kept, false)
            }
            _ => None,
        };
        *self.phase.lock() = Phase::Idle;
        self.path.stats.ended();
        cargo
    }

    /// Posting has returned.
    fn posted(self: &Arc<Self>) -> Next {
        self.advance(|busy| busy.posted = true)
            .unwrap_or(Next::Wait)
    }

    /// The server has answered over connection `cid`. `EPROTO` if nothing was asked there, or it has answered before.
    pub(crate) fn answered(self: &Arc<Self>, cid: u16, status: Status) -> Result<Next> {
        let mut expected = false;
        let next = self.advance(|busy| {
            expected = busy.cid == cid && busy.answer.is_none();
            if expected {
                busy.answer = Some(status);
            }
        });
        match next {
            Some(next) if expected => Ok(next),
            _ => Err(EPROTO),
        }
    }

    /// The server has invalidated the key of the region. `EPROTO` if there was no reason to.
    pub(crate) fn invalidated(self: &Arc<Self>, proof: &Invalidated<'_>) -> Result<Next> {
        // The server was not told the key of what it only reads.
        let may = matches!(
            &*self.phase.lock(),
            Phase::Busy(busy) if busy.order.direction == Direction::Read
        );
        if !may || self.region.invalidated(proof).is_err() {
            return Err(EPROTO);
        }
        Ok(self.came_back(self.region.take()))
    }

    /// Work requests are over.
    fn over(self: &Arc<Self>, proof: &Sent) -> Next {
        let memory = self.loan.take(proof).or_else(|| {
            // Not yet, or nothing to settle: another proof will come, or the queue pair breaks.
            self.region.settle(proof).ok()?;
            self.region.take()
        });
        self.came_back(memory)
    }

    fn came_back(self: &Arc<Self>, memory: Option<M>) -> Next {
        let Some(memory) = memory else {
            return Next::Wait;
        };
        self.advance(|busy| busy.memory = Memory::Back(memory))
            .unwrap_or(Next::Wait)
    }

    /// Changes a request under way, and sees what follows; `None` if there is none.
    fn advance(&self, change: impl FnOnce(&mut Busy<M>)) -> Option<Next> {
        let mut phase = self.phase.lock();
        let Phase::Busy(busy) = &mut *phase else {
            return None;
        };
        change(busy);
        let Some(status) = busy.answer.filter(|_| busy.posted) else {
            return Some(Next::Wait);
        };
        match busy.memory {
            Memory::None | Memory::Back(_) => {}
            Memory::Region => {
                busy.memory = Memory::Leaving;
                return Some(Next::Invalidate);
            }
            Memory::Lent | Memory::Leaving | Memory::Stuck => return Some(Next::Wait),
        }
        let Phase::Busy(busy) = core::mem::replace(&mut *phase, Phase::Idle) else {
            return None;
        };
        drop(phase);
        self.path.stats.ended();
        Some(Next::Done(Self::finish(busy, status)))
    }

    fn finish(busy: Busy<M>, status: Status) -> Done {
        let memory = match busy.memory {
            Memory::Back(memory) => Some(memory),
            _ => None,
        };
        Done {
            cargo: M::unload(memory, busy.kept, status.is_ok()),
            status,
        }
    }

    /// Invalidates the memory region by a work request, which [`Next::Invalidate`] asked for.
    pub(crate) fn invalidate(self: &Arc<Self>, qp: &QueuePair) -> Result<(), PostError> {
        let result = qp.post(self.clone(), Signal::Always, |lane, chain| {
            chain.invalidate(&lane.region)
        });
        if result == Err(PostError::Full) {
            let mut phase = self.phase.lock();
            if let Phase::Busy(
                busy @ Busy {
                    memory: Memory::Leaving,
                    ..
                },
            ) = &mut *phase
            {
                busy.memory = Memory::Stuck;
            }
        }
        result
    }

    /// Whether an invalidation over connection `cid` is to be tried again, which the caller does then.
    pub(crate) fn is_stuck(&self, cid: u16) -> bool {
        let mut phase = self.phase.lock();
        match &mut *phase {
            Phase::Busy(busy) if busy.cid == cid && matches!(busy.memory, Memory::Stuck) => {
                busy.memory = Memory::Leaving;
                true
            }
            _ => false,
        }
    }

    /// Takes out what a drained connection `cid` leaves behind: a request to be sent elsewhere, or to be completed
    /// because the server had answered it. Sleeps.
    pub(crate) fn salvage(&self, cid: u16, proof: &Drained) -> Option<Salvage> {
        let busy = {
            let mut phase = self.phase.lock();
            match &*phase {
                Phase::Busy(busy) if busy.cid == cid => {}
                _ => return None,
            }
            match core::mem::replace(&mut *phase, Phase::Idle) {
                Phase::Busy(busy) => busy,
                _ => return None,
            }
        };
        self.path.stats.ended();
        let order = busy.order;
        let memory = match busy.memory {
            Memory::Back(memory) => Some(memory),
            Memory::None => None,
            _ => self
                .loan
                .take(proof)
                .or_else(|| self.region.revoke(proof).ok().flatten()),
        };
        let answer = busy.answer;
        let cargo = M::unload(memory, busy.kept, answer == Some(Ok(())))?;
        Some(match answer {
            Some(status) => Salvage::Answered(Done {
                cargo: Some(cargo),
                status,
            }),
            None => Salvage::Job(Job {
                order,
                cargo,
                deadline: 0,
            }),
        })
    }
}

/// What is left of a request on a broken link.
pub(crate) enum Salvage {
    /// It was answered: only its memory was awaited.
    Answered(Done),
    /// It was not.
    Job(Job),
}

impl<M: Burden> Owner for Lane<M> {
    /// A signalled chain is over: a write in place, or an invalidation.
    ///
    /// Errors break the queue pair, and what is under way is salvaged when that is drained.
    fn sent(self: Arc<Self>, result: Result<(), WcStatus>, sent: &Sent) {
        if result.is_ok() {
            if let Next::Done(done) = self.over(sent) {
                done.tell();
            }
        }
    }
}
