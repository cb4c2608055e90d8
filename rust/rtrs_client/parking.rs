// SPDX-License-Identifier: GPL-2.0

//! Requests that wait for a path.
//!
//! With nowhere to go a request fails at once, as with the C module, or waits as long as the session is set to. It
//! keeps its chunk of the server meanwhile: if it was sent before, the server may still be at work on it, and a server
//! that knows which of its chunks are in use can only hold back the repetition if it comes in the same chunk.

use crate::{
    job::Job,
    session::Session, //
};
use kernel::{
    error::code::ECONNABORTED,
    prelude::*,
    sync::Arc, //
};
use weft::{
    mm::noio,
    new_spinlock_bh,
    sync::bh::SpinLockBh,
    time::{
        jiffies,
        msecs_to_jiffies, //
    },
    workqueue::{
        Task,
        TaskItem, //
    },
};

/// Task that sends or fails what waits.
pub(crate) const PARKED: u64 = 1;

/// How long what found every queue full waits at most before it is tried again, in milliseconds.
const FULL_MS: u32 = 10;

/// The waiting requests.
#[pin_data]
pub(crate) struct Parking {
    #[pin]
    jobs: SpinLockBh<KVec<Job>>,
}

/// Whether tick `now` is not before `then`; both wrap.
pub(crate) fn reached(now: usize, then: usize) -> bool {
    now.wrapping_sub(then) <= usize::MAX / 2
}

impl Parking {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            jobs <- new_spinlock_bh!(KVec::new(), "rtrs_parking"),
        })
    }

    /// Makes room for as many requests as can be under way. May sleep.
    pub(crate) fn reserve(&self, depth: u16) -> Result {
        let room = KVec::with_capacity(usize::from(depth), GFP_KERNEL)?;
        let mut jobs = self.jobs.lock();
        if jobs.capacity() == 0 {
            *jobs = room;
        }
        Ok(())
    }

    /// Keeps a request; gives it back if there is no room.
    fn push(&self, job: Job) -> Result<(), Job> {
        let mut jobs = self.jobs.lock();
        jobs.push_within_capacity(job).map_err(|error| error.0)
    }

    /// Takes one that `chosen` names.
    fn take(&self, chosen: impl Fn(&Job) -> bool) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        let index = jobs.iter().position(chosen)?;
        jobs.remove(index).ok()
    }

    /// The earliest deadline.
    fn deadline(&self) -> Option<usize> {
        let now = jiffies();
        let jobs = self.jobs.lock();
        jobs.iter().map(|job| job.deadline).min_by_key(|deadline| {
            if reached(now, *deadline) {
                0
            } else {
                deadline.wrapping_sub(now)
            }
        })
    }
}

impl TaskItem<PARKED> for Session {
    fn run(this: Arc<Self>) {
        noio::scope(|| this.serve_parked());
    }
}

impl Session {
    /// Has what waits looked at. Any context up to softirq.
    pub(crate) fn kick_parked(self: &Arc<Self>) {
        Task::<Self, PARKED>::reschedule(self, 0);
    }

    /// When a request that begins to wait now is over; `None` if it may not wait.
    pub(crate) fn wait_deadline(&self) -> Option<usize> {
        match self.settings.no_path_timeout() {
            0 => None,
            seconds => Some(jiffies().wrapping_add(msecs_to_jiffies(seconds.saturating_mul(1000)))),
        }
    }

    /// Lets a request wait for a path until its deadline. Any context up to softirq.
    pub(crate) fn park(self: &Arc<Self>, job: Job) {
        if let Err(job) = self.parking.push(job) {
            // Cannot be: there is room for every chunk.
            return job.fail(ECONNABORTED);
        }
        // Also covers a path that came up since the caller looked.
        Task::<Self, PARKED>::schedule(self, msecs_to_jiffies(FULL_MS));
    }

    /// Ends all that waits.
    pub(crate) fn fail_parked(&self) {
        while let Some(job) = self.parking.take(|_| true) {
            job.fail(ECONNABORTED);
        }
    }

    /// What [`PARKED`] does.
    fn serve_parked(self: &Arc<Self>) {
        while self.is_closed() || self.takes_requests() {
            let Some(job) = self.parking.take(|_| true) else {
                break;
            };
            if let Err(job) = self.resend(job) {
                // Full again; others may still be waiting longer.
                let _ = self.parking.push(job);
                break;
            }
        }
        let now = jiffies();
        while let Some(job) = self.parking.take(|job| reached(now, job.deadline)) {
            job.fail(ECONNABORTED);
        }
        self.schedule_parked();
    }

    /// Looks again at the next deadline, or soon if requests wait for room only.
    fn schedule_parked(self: &Arc<Self>) {
        let Some(deadline) = self.parking.deadline() else {
            return;
        };
        let now = jiffies();
        let left = if reached(now, deadline) {
            1
        } else {
            deadline.wrapping_sub(now)
        };
        let delay = match self.takes_requests() {
            true => left.min(msecs_to_jiffies(FULL_MS)),
            false => left,
        };
        Task::<Self, PARKED>::schedule(self, delay.max(1));
    }
}
