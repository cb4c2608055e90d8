// SPDX-License-Identifier: GPL-2.0

//! How busy the machine is, by how little is left over for others.
//!
//! A thread for each processor makes system calls at the lowest priority, and has seen at some time how
//! many it can make in a second if nothing else runs. What it makes less, others have used; unlike the
//! kernel's accounting this has interrupts in it. The machine must be idle when it begins.

use anyhow::{ensure, Context, Result};
use rds_sys::priority;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Calls after which the speed is measured for the first time.
const FIRST: u64 = 1000;
/// How far to give way: all there is.
const NICE: u8 = 20;

/// The threads; they run until the process ends.
pub(crate) struct Soakers {
    soakers: Vec<Arc<Soaker>>,
    threads: Vec<JoinHandle<io::Result<Infallible>>>,
    /// Calls each thread had made, and when.
    last: (Vec<u64>, Instant),
}

#[derive(Default)]
struct Soaker {
    /// Calls made.
    count: AtomicU64,
    /// Most calls ever made in a second.
    per_second: AtomicU64,
}

impl Soakers {
    /// Starts a thread for each processor.
    pub(crate) fn start() -> Result<Self> {
        let count = thread::available_parallelism().context("cannot count the processors")?;
        let soakers: Vec<Arc<Soaker>> = (0..count.get()).map(|_| Arc::default()).collect();
        let spawn = |soaker: &Arc<Soaker>| {
            let soaker = Arc::clone(soaker);
            thread::Builder::new().spawn(move || soaker.run())
        };
        let threads = soakers
            .iter()
            .map(spawn)
            .collect::<io::Result<_>>()
            .context("cannot start a thread that soaks up cycles")?;
        let last = (vec![0; soakers.len()], Instant::now());
        Ok(Self {
            soakers,
            threads,
            last,
        })
    }

    /// Number of threads.
    pub(crate) fn len(&self) -> usize {
        self.soakers.len()
    }

    /// How busy the processors were since the last call, in percent.
    pub(crate) fn busy(&mut self) -> Result<f64> {
        let ended = self.threads.iter().any(JoinHandle::is_finished);
        ensure!(!ended, "a thread that soaks up cycles has ended");
        let now = Instant::now();
        let seconds = now.duration_since(self.last.1).as_secs_f64();
        self.last.1 = now;
        let pairs = self.soakers.iter().zip(&mut self.last.0);
        let usage = pairs.map(|(soaker, last)| {
            // ORDERING: The numbers stand alone; nothing is published through them.
            let count = soaker.count.load(Ordering::Relaxed);
            let made = count - *last;
            *last = count;
            (soaker.per_second.load(Ordering::Relaxed), made)
        });
        Ok(busy_percent(usage, seconds))
    }
}

impl Soaker {
    fn run(&self) -> io::Result<Infallible> {
        priority::give_way(NICE)?;
        // ORDERING: As in `Soakers::busy`.
        let mut calls = FIRST;
        loop {
            let begin = Instant::now();
            for _ in 0..calls {
                std::hint::black_box(std::process::id());
                self.count.fetch_add(1, Ordering::Relaxed);
            }
            // CAST: the speed is an estimate.
            let speed = (calls as f64 / begin.elapsed().as_secs_f64()) as u64;
            self.per_second.fetch_max(speed, Ordering::Relaxed);
            calls = calls.max(speed);
        }
    }
}

/// What is missing of the calls that could have been made, from the most each thread makes in a second
/// and what it made.
fn busy_percent(usage: impl Iterator<Item = (u64, u64)>, seconds: f64) -> f64 {
    let (mut possible, mut made) = (0.0, 0.0);
    for (per_second, count) in usage {
        // CAST: the numbers are for people.
        let most = per_second as f64 * seconds;
        possible += most;
        made += most.min(count as f64);
    }
    if possible > 0.0 {
        (possible - made) * 100.0 / possible
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_was_used_by_others() {
        let percent = busy_percent([(1000, 500), (1000, 2000)].into_iter(), 1.0);
        assert_eq!(percent, 25.0);
        assert_eq!(busy_percent([(1000, 500)].into_iter(), 0.5), 0.0);
        assert_eq!(busy_percent([(1000, 0)].into_iter(), 2.0), 100.0);
        assert_eq!(busy_percent([(0, 0)].into_iter(), 2.0), 0.0);
    }
}
