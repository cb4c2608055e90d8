// SPDX-License-Identifier: GPL-2.0

//! The end of a request: the answer of the server, the return of the memory, or the end of the link.

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
        Job, //
    }, //
};
use kernel::{
    error::code::EPROTO,
    prelude::*,
    sync::Arc, //
};
use weft_proto::rtrs::imm::Status;
use weft_rdma::{
    loan::{
        Drained,
        Sent, //
    },
    mr::Invalidated,
    qp::{
        Owner,
        PostError,
        QueuePair,
        Signal,
        WcStatus, //
    }, //
};

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

/// What follows from a message of the server.
pub(crate) enum Next {
    /// Nothing yet.
    Wait,
    /// The memory region must be invalidated.
    Invalidate,
    /// The request is over.
    Done(Done),
}

/// What is left of a request on a broken link.
pub(crate) enum Salvage {
    /// It was answered: only its memory was awaited.
    Answered(Done),
    /// It was not.
    Job(Job),
}

impl<M: Burden> Lane<M> {
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
            &*self.busy.lock(),
            Some(busy) if busy.order.direction == Direction::Read
        );
        if !may || proof.rkey() != self.region.rkey() {
            return Err(EPROTO);
        }
        match self.region.invalidated(proof) {
            Ok(()) => Ok(self.came_back(self.region.take())),
            // The key comes again after 256 registrations, and a message about an earlier one could say the same. So
            // this one proves nothing, and the region is invalidated here when the answer comes.
            Err(EINVAL) => Ok(Next::Wait),
            Err(_) => Err(EPROTO),
        }
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
        let mut lane = self.busy.lock();
        let busy = (*lane).as_mut()?;
        change(busy);
        let Some(status) = busy.answer else {
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
        let busy = lane.take()?;
        drop(lane);
        self.unclaim();
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
            let mut busy = self.busy.lock();
            if let Some(
                busy @ Busy {
                    memory: Memory::Leaving,
                    ..
                },
            ) = &mut *busy
            {
                busy.memory = Memory::Stuck;
            }
        }
        result
    }

    /// Whether an invalidation over connection `cid` is to be tried again, which the caller does then.
    pub(crate) fn is_stuck(&self, cid: u16) -> bool {
        let mut busy = self.busy.lock();
        match &mut *busy {
            Some(busy) if busy.cid == cid && matches!(busy.memory, Memory::Stuck) => {
                busy.memory = Memory::Leaving;
                true
            }
            _ => false,
        }
    }

    /// Takes the memory of a request from the device. If that fails the device may use it for ever, and the request with
    /// it has no end.
    fn revoke(&self, proof: &Drained) -> Option<M> {
        let result = self.region.revoke(proof);
        result.unwrap_or_else(|error| {
            let label = self.path.label();
            pr_err!(
                "{}: the device does not give memory back: {:?}\n",
                label,
                error
            );
            None
        })
    }

    /// Takes out what a drained connection `cid` leaves behind: a request to be sent elsewhere, or to be completed
    /// because the server had answered it. Sleeps.
    pub(crate) fn salvage(&self, cid: u16, proof: &Drained) -> Option<Salvage> {
        let busy = {
            let mut busy = self.busy.lock();
            busy.take_if(|busy| busy.cid == cid)?
        };
        self.path.stats.ended();
        let order = busy.order;
        let memory = match busy.memory {
            Memory::Back(memory) => Some(memory),
            Memory::None => None,
            _ => self.loan.take(proof).or_else(|| self.revoke(proof)),
        };
        self.unclaim();
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
