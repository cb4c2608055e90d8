// SPDX-License-Identifier: GPL-2.0

//! A data socket of the client, and the memory that it sends from.

use crate::args::ClientPlan;
use crate::port::{Event, Port};
use crate::ring::Ring;
use crate::stamp;
use anyhow::{bail, Result};
use std::net::SocketAddr;

/// The socket. Its messages are numbered on their own.
pub(crate) struct Lane {
    pub(crate) port: Port,
    memory: Memory,
}

enum Memory {
    /// One message is enough, as the kernel copies it.
    Copied(Vec<u8>),
    Lent(Ring),
}

impl Lane {
    /// Prepares a socket for sending.
    pub(crate) fn new(port: Port, plan: &ClientPlan) -> Result<Self> {
        let memory = if plan.zerocopy {
            port.socket.set_zerocopy(true)?;
            Memory::Lent(Ring::new(plan.size))
        } else {
            Memory::Copied(stamp::message(plan.size))
        };
        Ok(Self { port, memory })
    }

    /// Sends the message of this number.
    pub(crate) fn send(&mut self, number: u64, to: SocketAddr) -> Result<()> {
        match &mut self.memory {
            Memory::Copied(message) => {
                stamp::put(message, number);
                self.port.send(message, to)
            }
            Memory::Lent(ring) => lend(&mut self.port, ring, number, to),
        }
    }

    /// Waits for the answer of this number.
    pub(crate) fn answer(&mut self, number: u64, size: usize, server: SocketAddr) -> Result<()> {
        match self.port.receive()? {
            Event::Message { from, data }
                if from == server && stamp::matches(data, size, number) => {}
            Event::Message { from, .. } => {
                bail!("answer {number}, from {from}, is not the expected one")
            }
            Event::Timeout => bail!("there is no answer {number}"),
        }
        match &mut self.memory {
            Memory::Copied(_) => Ok(()),
            Memory::Lent(ring) => take_back(&mut self.port, ring),
        }
    }

    /// Waits until all memory is the program's own again.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if let Memory::Lent(ring) = &mut self.memory {
            while !ring.is_whole() {
                wait(&mut self.port, ring)?;
            }
        }
        Ok(())
    }
}

/// Lends the kernel the next message, as soon as its buffer is free.
fn lend(port: &mut Port, ring: &mut Ring, number: u64, to: SocketAddr) -> Result<()> {
    loop {
        if let Some((name, message)) = ring.free(number) {
            if port.lend(message, to, name)? {
                ring.lend(name);
                return Ok(());
            }
            if ring.is_whole() {
                bail!("the kernel has no memory for a zero-copy message, or may not lock it (ulimit -l)");
            }
        }
        wait(port, ring)?;
    }
}

fn wait(port: &mut Port, ring: &mut Ring) -> Result<()> {
    port.wait_returned()?;
    take_back(port, ring)
}

fn take_back(port: &mut Port, ring: &mut Ring) -> Result<()> {
    port.returned().try_for_each(|name| ring.take_back(name))
}
