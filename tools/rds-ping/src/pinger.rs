// SPDX-License-Identifier: GPL-2.0

//! The loop that sends pings and collects answers.

use crate::args::Plan;
use crate::report::Report;
use crate::slot::Slot;
use anyhow::{Context, Result};
use rds_sys::{poll, signal, ControlBuffer, PollFd};
use std::io;
use std::time::{Duration, Instant};

/// Longest time between two looks at the stop flag.
const PATIENCE: Duration = Duration::from_millis(500);

/// Everything that is needed to ping.
pub(crate) struct Pinger {
    slots: Vec<Slot>,
    /// The slot whose turn it is.
    turn: usize,
    next_send: Instant,
    sent: u64,
    report: Report,
    plan: Plan,
}

impl Pinger {
    pub(crate) fn new(plan: Plan) -> Result<Self> {
        let slots = (0..plan.sockets)
            .map(|_| Slot::new(&plan))
            .collect::<Result<_>>()?;
        let report = Report::new(&plan);
        Ok(Self {
            slots,
            turn: 0,
            next_send: Instant::now(),
            sent: 0,
            report,
            plan,
        })
    }

    /// Pings until all are answered or overdue, or until the user stops it.
    pub(crate) fn run(mut self) -> Result<Report> {
        let mut control = ControlBuffer::new();
        while !self.finished() && !signal::stop_requested() {
            let now = Instant::now();
            if now >= self.next_send && self.unsent() {
                self.send(now)?;
            }
            self.expire(now)?;
            if !self.finished() {
                self.wait(now)?;
                self.receive(&mut control)?;
            }
        }
        Ok(self.report)
    }

    fn unsent(&self) -> bool {
        self.plan.count.is_none_or(|count| self.sent < count)
    }

    fn finished(&self) -> bool {
        if self.unsent() {
            return false;
        }
        self.report.received() >= self.sent || self.slots.iter().all(Slot::free)
    }

    fn send(&mut self, now: Instant) -> Result<()> {
        self.next_send = now + self.plan.interval;
        let slot = &mut self.slots[self.turn];
        if !slot.free() {
            return Ok(());
        }
        self.turn = (self.turn + 1) % self.plan.sockets;
        self.sent += 1;
        self.report.count_sent();
        if let Err(error) = slot.send(&self.plan, self.sent)? {
            self.report.error(self.sent, &error)?;
        }
        Ok(())
    }

    fn expire(&mut self, now: Instant) -> Result<()> {
        for slot in &mut self.slots {
            if let Some(sequence) = slot.expire(&self.plan, now) {
                self.report.timeout(sequence)?;
            }
        }
        Ok(())
    }

    /// Waits for an answer or the next thing to do.
    fn wait(&self, now: Instant) -> Result<()> {
        let deadlines = self
            .slots
            .iter()
            .filter_map(|slot| slot.deadline(&self.plan));
        let next_send = self.unsent().then_some(self.next_send);
        let next = deadlines.chain(next_send).min();
        let limit = next
            .map_or(PATIENCE, |at| at.saturating_duration_since(now))
            .min(PATIENCE);
        let mut fds: Vec<PollFd> = self
            .slots
            .iter()
            .map(|slot| PollFd::new(&slot.socket, true, false))
            .collect();
        match poll(&mut fds, Some(limit)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                Err(error).context("poll failed")
            }
            _ => Ok(()),
        }
    }

    fn receive(&mut self, control: &mut ControlBuffer) -> Result<()> {
        for slot in &mut self.slots {
            match slot.receive(control) {
                Ok(Some(reply)) => self.report.reply(&reply)?,
                Ok(None) => {}
                Err(error) => self.report.error(slot.sequence(), &error)?,
            }
        }
        Ok(())
    }
}
