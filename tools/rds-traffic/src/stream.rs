// SPDX-License-Identifier: GPL-2.0

//! Both directions of a stream on their socket.

use crate::config::{Config, Congestion};
use crate::content::Recipe;
use crate::rx::Rx;
use crate::tx::Tx;
use anyhow::{bail, Context, Result};
use rds_sys::{Control, ControlBuffer, Socket, MAX_MESSAGE};
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

/// Messages to read before the other streams have their turn.
const READ_BUDGET: usize = 64;
/// Messages to send before the other streams have their turn.
const SEND_BUDGET: usize = 16;

/// Memory for receiving, shared by all streams.
pub(crate) struct Scratch {
    data: Vec<u8>,
    control: ControlBuffer,
}

impl Scratch {
    /// One byte more than any message may have, so that longer ones are noticed.
    pub(crate) fn new() -> Self {
        Self {
            data: vec![0; MAX_MESSAGE + 1],
            control: ControlBuffer::new(),
        }
    }
}

/// A socket and what is sent and received on it.
pub(crate) struct Stream {
    pub(crate) socket: Socket,
    pub(crate) tx: Tx,
    pub(crate) rx: Rx,
    congestion: Congestion,
}

impl Stream {
    pub(crate) fn new(socket: Socket, config: &Config, index: u16, recipe: Recipe) -> Self {
        let peer = port_of(config.peer, index);
        Self {
            socket,
            tx: Tx::new(index, peer, recipe, config.zerocopy),
            rx: Rx::new(index, peer),
            congestion: config.congestion,
        }
    }

    /// Reads what is there; the number of messages is returned.
    pub(crate) fn receive(&mut self, scratch: &mut Scratch) -> Result<usize> {
        if self.congestion == Congestion::Poll {
            self.tx.uncongested();
        }
        let mut messages = 0;
        for _ in 0..READ_BUDGET {
            match self.receive_one(scratch)? {
                Some(true) => messages += 1,
                Some(false) => {}
                None => break,
            }
        }
        Ok(messages)
    }

    /// `None`: nothing is there; `Some(false)`: there were only notifications.
    fn receive_one(&mut self, scratch: &mut Scratch) -> Result<Option<bool>> {
        let received = match self
            .socket
            .recv(&mut scratch.data, &mut scratch.control, true)
        {
            Ok(received) => received,
            Err(error) if empty(&error) => return Ok(None),
            Err(error) => return Err(error).context("receiving failed"),
        };
        if received.control_truncated {
            bail!("control messages were lost");
        }
        for control in scratch.control.messages() {
            self.notified(control)?;
        }
        let Some(from) = received.from else {
            return Ok(Some(false));
        };
        if received.truncated {
            bail!("a message from {from} is longer than any may be");
        }
        self.rx.accept(from, &scratch.data[..received.len])?;
        Ok(Some(true))
    }

    fn notified(&mut self, control: Control) -> Result<()> {
        match control {
            Control::CongestionUpdate { mask } if self.tx.concerned(mask) => self.tx.uncongested(),
            Control::ZerocopyDone(cookies) => self.tx.release(&cookies)?,
            _ => {}
        }
        Ok(())
    }

    /// Sends what can be sent.
    pub(crate) fn send(&mut self, now: Instant) -> Result<()> {
        self.tx.send(&self.socket, now, SEND_BUDGET)
    }
}

/// The address of stream `index` of the side with this control address.
pub(crate) fn port_of(control: SocketAddr, index: u16) -> SocketAddr {
    let mut addr = control;
    addr.set_port(control.port() + 1 + index);
    addr
}

fn empty(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
