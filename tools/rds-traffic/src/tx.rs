// SPDX-License-Identifier: GPL-2.0

//! The sending direction of a stream.

use crate::content::{Place, Recipe};
use anyhow::{anyhow, bail, Context, Result};
use rds_sys::{is_congested, SendFlags, Socket};
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// A congested sender that is not told that congestion is over tries again after this time.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time to wait when the kernel has no memory.
const STARVED: Duration = Duration::from_millis(10);

/// When a stream stops sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quota {
    Messages(u64),
    Until(Instant),
}

/// Whether the next message can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    /// Our queue is full.
    Full,
    /// The other side does not read fast enough.
    Congested {
        since: Instant,
    },
    /// The kernel had no memory.
    Starved {
        until: Instant,
    },
    /// Congestion may be over although nobody said so.
    Probing,
}

/// Why sends had to be repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Retries {
    /// The own queue was full.
    pub(crate) eagain: u64,
    /// The other side was congested.
    pub(crate) enobufs: u64,
    /// No memory.
    pub(crate) enomem: u64,
    /// Congestion ended without notice.
    pub(crate) lost_wakeups: u64,
}

impl AddAssign for Retries {
    fn add_assign(&mut self, other: Self) {
        self.eagain += other.eagain;
        self.enobufs += other.enobufs;
        self.enomem += other.enomem;
        self.lost_wakeups += other.lost_wakeups;
    }
}

/// What was sent and what comes next.
pub(crate) struct Tx {
    peer: SocketAddr,
    recipe: Recipe,
    /// How much to send; unknown until the link is up.
    quota: Option<Quota>,
    next: Place,
    message: Vec<u8>,
    /// `message` is the one of `next`.
    ready: bool,
    gate: Gate,
    bytes: u64,
    retries: Retries,
    /// Messages the kernel still sends from, by their names; `None` without zerocopy.
    pinned: Option<HashMap<u32, Vec<u8>>>,
}

impl Tx {
    pub(crate) fn new(stream: u16, peer: SocketAddr, recipe: Recipe, zerocopy: bool) -> Self {
        Self {
            peer,
            recipe,
            quota: None,
            next: Place {
                stream,
                sequence: 0,
            },
            message: Vec::new(),
            ready: false,
            gate: Gate::Open,
            bytes: 0,
            retries: Retries::default(),
            pinned: zerocopy.then(HashMap::new),
        }
    }

    /// Begins to send.
    pub(crate) fn start(&mut self, quota: Quota) {
        self.quota = Some(quota);
    }

    /// How many messages there are in all, when it is decided.
    pub(crate) fn total(&self, now: Instant) -> Option<u64> {
        match self.quota? {
            Quota::Messages(count) => (self.next.sequence >= count).then_some(count),
            Quota::Until(end) => (now >= end).then_some(self.next.sequence),
        }
    }

    fn unsent(&self, now: Instant) -> bool {
        self.quota.is_some() && self.total(now).is_none()
    }

    /// Whether to wait for room in the queue.
    pub(crate) fn wants_room(&self, now: Instant) -> bool {
        self.unsent(now) && matches!(self.gate, Gate::Open | Gate::Full | Gate::Probing)
    }

    /// When to try again in any case.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.gate {
            Gate::Congested { since } => Some(since + PATIENCE),
            Gate::Starved { until } => Some(until),
            _ => None,
        }
    }

    /// Sends at most `budget` messages; stops when the kernel takes no more.
    pub(crate) fn send(&mut self, socket: &Socket, now: Instant, budget: usize) -> Result<()> {
        self.reopen(now);
        for _ in 0..budget {
            if !self.unsent(now) || !matches!(self.gate, Gate::Open | Gate::Probing) {
                break;
            }
            self.send_one(socket, now)?;
        }
        Ok(())
    }

    fn send_one(&mut self, socket: &Socket, now: Instant) -> Result<()> {
        if !self.ready {
            self.recipe.write(self.next, &mut self.message);
            self.ready = true;
        }
        // The kernel takes no zerocopy send without bytes.
        let pin = self.pinned.is_some() && !self.message.is_empty();
        let flags = SendFlags {
            dont_wait: true,
            zerocopy: pin.then(|| self.cookie()),
        };
        match socket.send_to(&self.message, self.peer, flags) {
            Ok(len) if len == self.message.len() => self.advance(),
            Ok(len) => {
                let whole = self.message.len();
                bail!(
                    "stream {}: {len} of {whole} bytes were sent",
                    self.next.stream
                )
            }
            Err(error) => return self.refused(error, now),
        }
        Ok(())
    }

    /// The name of the next message for zerocopy.
    fn cookie(&self) -> u32 {
        // CAST: the low half is unique among the messages in flight.
        self.next.sequence as u32
    }

    fn advance(&mut self) {
        // CAST: to a wider type on every Linux.
        self.bytes += self.message.len() as u64;
        let cookie = self.cookie();
        if let Some(pinned) = self.pinned.as_mut().filter(|_| !self.message.is_empty()) {
            pinned.insert(cookie, std::mem::take(&mut self.message));
        }
        if self.gate == Gate::Probing {
            self.retries.lost_wakeups += 1;
        }
        self.gate = Gate::Open;
        self.ready = false;
        self.next.sequence += 1;
    }

    fn refused(&mut self, error: io::Error, now: Instant) -> Result<()> {
        let gate = match error.kind() {
            io::ErrorKind::WouldBlock => {
                self.retries.eagain += 1;
                Gate::Full
            }
            io::ErrorKind::OutOfMemory => {
                self.retries.enomem += 1;
                Gate::Starved {
                    until: now + STARVED,
                }
            }
            io::ErrorKind::Interrupted => self.gate,
            _ if is_congested(&error) => {
                self.retries.enobufs += 1;
                Gate::Congested { since: now }
            }
            _ => {
                let Place { stream, sequence } = self.next;
                let what = format!("stream {stream}: message {sequence}");
                return Err(error).with_context(|| format!("{what} was refused"));
            }
        };
        self.gate = gate;
        Ok(())
    }

    /// Opens the gate when its time has come.
    fn reopen(&mut self, now: Instant) {
        match self.gate {
            Gate::Congested { since } if now >= since + PATIENCE => self.gate = Gate::Probing,
            Gate::Starved { until } if now >= until => self.gate = Gate::Open,
            _ => {}
        }
    }

    /// There is room in the queue.
    pub(crate) fn room(&mut self) {
        if self.gate == Gate::Full {
            self.gate = Gate::Open;
        }
    }

    /// The end of congestion was announced.
    pub(crate) fn uncongested(&mut self) {
        if matches!(self.gate, Gate::Congested { .. } | Gate::Probing) {
            self.gate = Gate::Open;
        }
    }

    /// Whether the end of congestion for the ports in `mask` concerns this stream.
    pub(crate) fn concerned(&self, mask: u64) -> bool {
        mask & (1 << (self.peer.port() % 64)) != 0
    }

    /// The kernel no longer uses the messages with these names.
    pub(crate) fn release(&mut self, cookies: &[u32]) -> Result<()> {
        let stream = self.next.stream;
        let pinned = self
            .pinned
            .as_mut()
            .context("a completion without zerocopy")?;
        for cookie in cookies {
            pinned.remove(cookie).ok_or_else(|| {
                anyhow!("stream {stream}: zerocopy send {cookie} completed twice or never sent")
            })?;
        }
        Ok(())
    }

    /// Messages the kernel still sends from.
    pub(crate) fn pinned(&self) -> usize {
        self.pinned.as_ref().map_or(0, HashMap::len)
    }

    pub(crate) fn messages(&self) -> u64 {
        self.next.sequence
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn retries(&self) -> Retries {
        self.retries
    }

    /// What the stream waits for, in words.
    pub(crate) fn state(&self, now: Instant) -> &'static str {
        match self.gate {
            _ if self.quota.is_none() => "not started",
            _ if !self.unsent(now) => "all sent",
            Gate::Open | Gate::Probing => "sending",
            Gate::Full => "send queue full",
            Gate::Congested { .. } => "other side congested",
            Gate::Starved { .. } => "no memory",
        }
    }
}

#[cfg(test)]
mod tests;
