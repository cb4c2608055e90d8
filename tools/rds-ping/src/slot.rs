// SPDX-License-Identifier: GPL-2.0

//! A socket and the ping that was last sent from it.

use crate::args::Plan;
use anyhow::{Context, Result};
use rds_sys::{ControlBuffer, SendFlags, Socket};
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Where the last ping of a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Answered, or none was sent.
    Idle,
    /// On its way.
    Waiting,
    /// On its way for longer than the user wants to wait; RDS keeps trying all the same.
    Overdue,
}

/// One socket with at most one outstanding ping.
pub(crate) struct Slot {
    pub(crate) socket: Socket,
    state: State,
    sequence: u64,
    sent: Instant,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) sequence: u64,
    pub(crate) time: Duration,
    pub(crate) from: IpAddr,
    /// The ping had been answered before.
    pub(crate) duplicate: bool,
}

impl Slot {
    pub(crate) fn new(plan: &Plan) -> Result<Self> {
        let socket = rds_cli::open_socket()?;
        rds_cli::bind_socket(&socket, plan.source)?;
        if plan.tos != 0 {
            socket
                .set_tos(plan.tos)
                .context("cannot set the type of service")?;
        }
        Ok(Self {
            socket,
            state: State::Idle,
            sequence: 0,
            sent: Instant::now(),
        })
    }

    /// Whether a ping can be sent now: the last one was answered or given up.
    pub(crate) fn free(&self) -> bool {
        self.state != State::Waiting
    }

    /// When the outstanding ping is overdue.
    pub(crate) fn deadline(&self, plan: &Plan) -> Option<Instant> {
        (self.state == State::Waiting).then(|| self.sent + plan.timeout)
    }

    /// Sends ping number `sequence`.
    ///
    /// An overdue ping is abandoned together with its socket, since its answer may still come.
    pub(crate) fn send(&mut self, plan: &Plan, sequence: u64) -> Result<io::Result<()>> {
        if self.state == State::Overdue {
            *self = Self::new(plan)?;
        }
        self.sequence = sequence;
        self.sent = Instant::now();
        let flags = SendFlags {
            dont_wait: true,
            ..SendFlags::default()
        };
        let result = self.socket.send_to(&[], plan.destination, flags);
        if result.is_ok() {
            self.state = State::Waiting;
        }
        Ok(result.map(drop))
    }

    /// Marks the ping as overdue if it is, and returns its number the first time.
    pub(crate) fn expire(&mut self, plan: &Plan, now: Instant) -> Option<u64> {
        if self.deadline(plan)? > now {
            return None;
        }
        self.state = State::Overdue;
        Some(self.sequence)
    }

    /// Reads an answer; `None` if the socket became readable for nothing.
    pub(crate) fn receive(&mut self, control: &mut ControlBuffer) -> io::Result<Option<Reply>> {
        let received = match self.socket.recv(&mut [], control, true) {
            Ok(received) => received,
            Err(error) if retry(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let time = self.sent.elapsed();
        let Some(from) = received.from else {
            return Ok(None);
        };
        let duplicate = self.state == State::Idle;
        self.state = State::Idle;
        Ok(Some(Reply {
            sequence: self.sequence,
            time,
            from: from.ip(),
            duplicate,
        }))
    }

    /// Number of the ping sent last.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }
}

fn retry(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
