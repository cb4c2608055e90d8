// SPDX-License-Identifier: GPL-2.0

//! Sending a request: from its memory to the work requests.

use super::{
    Busy,
    Lane,
    Memory, //
};
use crate::{
    burden::Burden,
    io::Direction,
    job::{
        Cargo,
        Job,
        Order, //
    },
    line::Line,
    link::Core,
    params,
    session::SEGMENT, //
};
use kernel::{
    error::code::{
        EAGAIN,
        EBUSY,
        ECONNABORTED,
        EMSGSIZE, //
    },
    prelude::*,
    sync::Arc, //
};
use weft::time::jiffies;
use weft_proto::{
    errno::Failure as _,
    rtrs::{
        geometry::Geometry,
        imm,
        request::{
            Placement,
            Target,
            Transfer, //
        }, //
    }, //
};
use weft_rdma::{
    dma::Sge,
    mr::Access,
    qp::{
        Chain,
        PostError,
        Remote,
        Signal, //
    }, //
};

/// What a lane has to know of its link to send a request.
pub(crate) struct Way<'a> {
    pub(crate) core: &'a Core,
    pub(crate) line: &'a Line,
    pub(crate) cid: u16,
    pub(crate) geometry: &'a Geometry,
    /// Where the chunk is.
    pub(crate) remote: Remote,
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
    /// Its number among the requests of the lane.
    serial: u32,
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
        invalidate: params::remote_invalidation.value(),
    }
}

impl<M: Burden> Lane<M> {
    /// Sends a request; gives it back if that does not work. Any context up to softirq.
    pub(crate) fn start(self: &Arc<Self>, way: &Way<'_>, job: Job) -> Result<(), (Error, Job)> {
        let Some(serial) = self.claim() else {
            return Err((EBUSY, job));
        };
        let usr_len = match self.write_message(&job) {
            Ok(len) => len,
            Err(error) => {
                self.unclaim();
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
                self.unclaim();
                return Err(rejob(refused));
            }
        };
        let means = match self.store(load.memory, &order, way.line.most_sges()) {
            Ok(means) => means,
            Err((error, memory)) => {
                self.unclaim();
                let Some(cargo) = M::unload(Some(memory), load.kept, false) else {
                    return Ok(());
                };
                return Err(rejob((error, cargo)));
            }
        };
        let plan = Plan {
            order,
            serial,
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
            Ok(()) => {
                self.path.stats.sent(order.direction, bytes);
                Ok(())
            }
            // What was posted in part ends with the link, and is moved from it.
            Err(PostError::Broken) => {
                way.core.fail();
                Ok(())
            }
            Err(error) => match self.take_back(serial) {
                Some(cargo) => Err(rejob((error_of(error), cargo))),
                // The server answered what it was not asked.
                None => Ok(()),
            },
        }
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
        *self.busy.lock() = Some(Busy {
            order: plan.order,
            kept,
            memory: match plan.means {
                Means::None => Memory::None,
                Means::InPlace => Memory::Lent,
                Means::Region => Memory::Region,
            },
            cid,
            since: jiffies(),
            serial: plan.serial,
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

    /// Undoes [`Self::begin`] and [`Self::store`] for a request that could not be posted; `None` if it is over.
    fn take_back(&self, serial: u32) -> Option<Cargo> {
        let busy = {
            let mut busy = self.busy.lock();
            busy.take_if(|busy| busy.serial == serial)?
        };
        let memory = self.loan.take_unlent().or_else(|| self.region.take());
        self.unclaim();
        self.path.stats.ended();
        M::unload(memory, busy.kept, false)
    }
}
