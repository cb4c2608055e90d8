// SPDX-License-Identifier: GPL-2.0

//! Sending requests: which path, and what if none will do.
//!
//! C counterpart: `rtrs_clt_request`, `rtrs_clt_failover_req`, `rtrs_clt_rdma_cq_direct`.

use crate::{
    io::Io,
    job::{
        Cargo,
        Job, //
    },
    session::Session, //
};
use kernel::{
    cpu::CpuId,
    error::code::{
        EAGAIN,
        ECONNABORTED,
        EMSGSIZE,
        ENOMEM,
        ETIMEDOUT, //
    },
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};
use weft_proto::rtrs::policy::Search;

/// Why a request was not sent.
enum Verdict {
    /// Its life is over: its message may name things that the server does not know any more.
    Stale(Job),
    /// There is no way.
    Refused(Error, Job),
}

impl Session {
    /// Sends a request. Any context up to softirq; does not sleep.
    ///
    /// On success the session owns the request and completes it, once: with the server's answer, and not before the
    /// device is done with the memory of the request; or with `ECONNABORTED` if every path is lost and it may not wait.
    /// The request comes back with
    ///
    /// * `EAGAIN` if there is no room now: `User::room` says when it may be tried again,
    /// * `EBUSY` if its slot is in use,
    /// * `EMSGSIZE` if it does not fit a chunk,
    /// * `ECONNABORTED` if there is no path and it may not wait,
    /// * the error of mapping its memory.
    pub fn submit(self: &Arc<Self>, io: Io) -> Result<(), (Error, Io)> {
        let job = Job::from_io(io);
        let (error, job) = match self.try_send(job, true) {
            Ok(()) => return Ok(()),
            Err(Verdict::Stale(job)) => {
                self.begin_again(job);
                return Ok(());
            }
            Err(Verdict::Refused(error, job)) => (error, job),
        };
        let (error, job) = match self.wait_deadline() {
            Some(deadline) if error == ECONNABORTED && !self.is_closed() => {
                self.park(Job { deadline, ..job });
                return Ok(());
            }
            _ => (error, job),
        };
        match job.into_io() {
            Ok(io) => Err((error, io)),
            // Cannot be: it was made of an `Io`.
            Err(call) => {
                call.end(Err(error));
                Ok(())
            }
        }
    }

    /// Sends a call.
    pub(crate) fn send(self: &Arc<Self>, job: Job) -> Result<(), (Error, Job)> {
        match self.try_send(job, true) {
            Ok(()) => Ok(()),
            Err(Verdict::Stale(job)) => Err((ECONNABORTED, job)),
            Err(Verdict::Refused(error, job)) => Err((error, job)),
        }
    }

    /// Tries every way there is now.
    fn try_send(self: &Arc<Self>, mut job: Job, first: bool) -> Result<(), Verdict> {
        let routes = self.routes.read();
        if matches!(job.cargo, Cargo::Block(_)) && !routes.open {
            return Err(Verdict::Refused(ECONNABORTED, job));
        }
        if job.order.life != routes.life {
            return Err(Verdict::Stale(job));
        }
        let mut search = Search::new(self.settings.policy(), self.next_turn(routes.links.len()));
        let mut reason = ECONNABORTED;
        while let Some(link) = routes.next(&mut search) {
            let call = match &job.cargo {
                Cargo::Call(call) => Some(call.clone()),
                Cargo::Block(_) => None,
            };
            let held = call.as_ref().map(|call| call.hold());
            if let Some(None) = held {
                // Nobody waits for it any more, and others may have been sent since.
                return Err(Verdict::Refused(ETIMEDOUT, job));
            }
            match link.start(job) {
                Ok(()) => {
                    if !first {
                        link.path().stats.took_over();
                    }
                    return Ok(());
                }
                Err((error, back)) => {
                    job = back;
                    if error == ENODEV {
                        // The device is being removed: the path ends, and that is all the request has to know.
                        link.fail();
                        continue;
                    }
                    reason = error;
                    if error == EMSGSIZE || error == EBUSY {
                        break;
                    }
                }
            }
        }
        Err(Verdict::Refused(reason, job))
    }

    /// Which of `count` paths comes next in the round-robin of this CPU.
    fn next_turn(&self, count: usize) -> usize {
        if count < 2 {
            return 0;
        }
        let cpu = usize::try_from(CpuId::current().as_u32()).unwrap_or(0);
        // ORDERING: Which path is next does not matter if two tasks race.
        let turn = self
            .cursors
            .get(cpu)
            .map_or(0, |cursor| cursor.fetch_add(1, Relaxed));
        usize::try_from(turn)
            .ok()
            .and_then(|turn| turn.checked_rem(count))
            .unwrap_or(0)
    }

    /// A request that was sent over a path which is down now, and whose memory is back: over another one, or let it
    /// wait, or fail. Sleeps not.
    pub(crate) fn fail_over(self: &Arc<Self>, job: Job) {
        let deadline = self.wait_deadline();
        match self.try_send(job, false) {
            Ok(()) => {}
            Err(Verdict::Stale(job)) => self.begin_again(job),
            // The queues of the other path are full: some room will be there soon.
            Err(Verdict::Refused(EAGAIN, job)) => {
                let deadline =
                    weft::time::jiffies().wrapping_add(weft::time::msecs_to_jiffies(FULL_MS));
                self.park(Job { deadline, ..job });
            }
            Err(Verdict::Refused(error, job)) => match (deadline, &job.cargo) {
                (Some(deadline), Cargo::Block(_)) if error == ECONNABORTED && !self.is_closed() => {
                    self.park(Job { deadline, ..job });
                }
                _ => job.fail(error),
            },
        }
    }

    /// Sends a request that has waited; gives it back if it must wait on.
    pub(crate) fn resend(self: &Arc<Self>, job: Job) -> Result<(), Job> {
        if self.is_closed() {
            job.fail(ECONNABORTED);
            return Ok(());
        }
        match self.try_send(job, false) {
            Ok(()) => Ok(()),
            Err(Verdict::Stale(job)) => {
                self.begin_again(job);
                Ok(())
            }
            // It was accepted for waiting, so a lack of memory is no more a reason to fail it than a lack of room.
            Err(Verdict::Refused(EAGAIN | ECONNABORTED | ENOMEM, job)) => Err(job),
            Err(Verdict::Refused(error, job)) => {
                job.fail(error);
                Ok(())
            }
        }
    }

    /// Has the user make a request anew.
    fn begin_again(self: &Arc<Self>, job: Job) {
        match (job.into_io(), self.user()) {
            (Ok(io), Some(user)) => user.again(io),
            (Ok(io), None) => io.request.complete(Err(ECONNABORTED)),
            (Err(call), _) => call.end(Err(ECONNABORTED)),
        }
    }

    /// Whether requests of the user are let through now.
    pub(crate) fn takes_requests(&self) -> bool {
        self.routes.read().open
    }

    /// Whether a path is up. Any context up to softirq.
    pub fn is_up(&self) -> bool {
        self.routes.read().links.iter().any(|link| link.is_usable())
    }

    /// How often the session came up; see [`Io::life`]. Any context up to softirq.
    ///
    /// In `User::connected`, and after `open` has returned, it is the life of the server that the user talks to now.
    pub fn life(&self) -> u32 {
        self.routes.read().life
    }

    /// Takes completions off poll connection `index` of each path until one had some; how many, or -1 if there is no
    /// path. Any context up to softirq.
    pub fn poll(&self, index: u32) -> i32 {
        let routes = self.routes.read();
        let mut found = -1;
        for link in routes.links.iter() {
            found = link.poll(index);
            if found > 0 {
                break;
            }
        }
        found
    }

    /// A slot whose request takes long: its completion may only wait to be looked at. Process context.
    ///
    /// The session watches its requests itself (`io_timeout`), so the block layer need do nothing else.
    pub fn look_after(&self, slot: u16) {
        let routes = self.routes.read();
        for link in routes.links.iter() {
            link.poll_for(slot);
        }
    }

    /// Gives up the paths that carry a request in `slot`. Any context up to softirq.
    pub(crate) fn fail_carriers(&self, slot: u16) {
        let routes = self.routes.read();
        for link in routes.links.iter().filter(|link| link.is_busy(slot)) {
            link.fail();
        }
    }

    /// Room appeared somewhere.
    pub(crate) fn room(self: &Arc<Self>) {
        if let Some(user) = self.user() {
            user.room();
        }
    }
}

/// Longest wait for room on a path that took over, in milliseconds.
const FULL_MS: u32 = 30_000;
