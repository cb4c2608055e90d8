// SPDX-License-Identifier: GPL-2.0

//! All tasks of one side.

use crate::stats::Stats;
use crate::task::{Orders, Plan, Published, Task};
use anyhow::{anyhow, Context, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two looks at what the tasks do.
const LOOK: Duration = Duration::from_millis(20);

/// The running tasks.
pub(crate) struct Crew {
    orders: Arc<Orders>,
    threads: Vec<JoinHandle<Result<()>>>,
    published: Vec<Published>,
}

impl Crew {
    /// Binds the sockets of all tasks.
    pub(crate) fn open(plan: &Arc<Plan>) -> Result<Vec<Task>> {
        (0..plan.options.tasks)
            .map(|number| Task::open(plan, number))
            .collect()
    }

    /// Lets the tasks begin at the time `start`.
    pub(crate) fn start(tasks: Vec<Task>, start: Instant) -> Result<Self> {
        let orders = Arc::<Orders>::default();
        let published = tasks
            .iter()
            .map(|task| Arc::clone(&task.published))
            .collect();
        let threads = tasks
            .into_iter()
            .map(|task| {
                let orders = Arc::clone(&orders);
                thread::Builder::new().spawn(move || task.run(start, &orders))
            })
            .collect::<std::io::Result<_>>()
            .context("cannot start a task")?;
        Ok(Self {
            orders,
            threads,
            published,
        })
    }

    /// What all tasks did so far.
    pub(crate) fn total(&self) -> Stats {
        let mut total = Stats::default();
        for stats in &self.published {
            total += *stats.lock().unwrap_or_else(PoisonError::into_inner);
        }
        total
    }

    /// Fails with the reason if a task has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        let ended = self.threads.iter().position(JoinHandle::is_finished);
        ended.map_or(Ok(()), |index| join(self.threads.swap_remove(index)))
    }

    /// Stops sending requests; those of the other side are still answered.
    pub(crate) fn stop_requests(&self) {
        // ORDERING: The flag stands alone; nothing is published through it.
        self.orders.stop_requests.store(true, Ordering::Relaxed);
    }

    /// Waits until `done` says so of what all tasks did, or nothing is exchanged for a time of `patience`.
    pub(crate) fn settle(
        &mut self,
        patience: Duration,
        mut done: impl FnMut(&Stats) -> Result<bool>,
    ) -> Result<()> {
        let mut last = (self.total(), Instant::now());
        while !done(&last.0)? && last.1.elapsed() < patience {
            thread::sleep(LOOK);
            self.check()?;
            let now = self.total();
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// Ends the tasks; what all of them did.
    pub(crate) fn finish(mut self) -> Result<Stats> {
        // ORDERING: As in `stop_requests`.
        self.orders.end.store(true, Ordering::Relaxed);
        self.threads.drain(..).try_for_each(join)?;
        Ok(self.total())
    }
}

fn join(thread: JoinHandle<Result<()>>) -> Result<()> {
    thread.join().map_err(|_| anyhow!("a task broke off"))?
}
