// SPDX-License-Identifier: GPL-2.0

//! Blocking sockets that give up in time.

use crate::args::SocketPlan;
use anyhow::{anyhow, bail, Context, Result};
use rds_sys::signal::{self, Signal};
use rds_sys::{ControlBuffer, SendFlags, Socket, MAX_MESSAGE};
use std::io;
use std::net::SocketAddr;

/// A bound socket and the memory to receive with.
pub(crate) struct Port {
    pub(crate) socket: Socket,
    buffer: Vec<u8>,
    control: ControlBuffer,
}

/// How a receive ended.
pub(crate) enum Event<'a> {
    /// A message from somebody.
    Message { from: SocketAddr, data: &'a [u8] },
    /// Nothing came within the socket's time.
    Timeout,
}

impl Port {
    /// Opens a socket with room for messages of `size` bytes and binds it.
    pub(crate) fn open(addr: SocketAddr, plan: &SocketPlan, size: usize) -> Result<Self> {
        let socket = rds_cli::open_socket()?;
        if let Some(transport) = plan.transport {
            let failed = || format!("cannot use transport {transport}");
            socket.set_transport(transport).with_context(failed)?;
        }
        rds_cli::bind_socket(&socket, addr)?;
        if plan.tos != 0 {
            socket
                .set_tos(plan.tos)
                .context("cannot set the type of service")?;
        }
        if let Some(bytes) = plan.rcvbuf {
            socket
                .set_recv_buffer(bytes)
                .context("cannot set the receive buffer")?;
        }
        let port = Self {
            socket,
            buffer: vec![0; MAX_MESSAGE],
            control: ControlBuffer::new(),
        };
        port.make_room(plan.sndbuf, size)?;
        Ok(port)
    }

    /// Sees to it that messages of `size` bytes can be sent.
    pub(crate) fn make_room(&self, sndbuf: Option<usize>, size: usize) -> Result<()> {
        let mut room = match sndbuf {
            Some(bytes) => self.socket.set_send_buffer(bytes),
            None => self.socket.send_buffer(),
        }
        .context("cannot set the send buffer")?;
        if room < size && sndbuf.is_none() {
            room = self
                .socket
                .set_send_buffer(size)
                .context("cannot set the send buffer")?;
        }
        if room < size {
            bail!("the send buffer has only {room} bytes, a message {size}");
        }
        Ok(())
    }

    /// Where the socket is bound.
    pub(crate) fn addr(&self) -> Result<SocketAddr> {
        self.socket.local_addr()?.context("the socket is not bound")
    }

    /// Sends a message, waiting for room.
    pub(crate) fn send(&self, data: &[u8], to: SocketAddr) -> Result<()> {
        loop {
            match self.socket.send_to(data, to, SendFlags::default()) {
                Ok(len) if len == data.len() => return Ok(()),
                Ok(len) => bail!("only {len} of {} bytes were sent", data.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => check_signals()?,
                Err(error) => return Err(anyhow!("sending to {to} failed: {error}")),
            }
        }
    }

    /// Waits for a message.
    pub(crate) fn receive(&mut self) -> Result<Event<'_>> {
        loop {
            match self.socket.recv(&mut self.buffer, &mut self.control, false) {
                Ok(received) => {
                    if let Some(from) = received.from {
                        return Ok(Event::Message {
                            from,
                            data: &self.buffer[..received.len],
                        });
                    }
                }
                Err(error) if timed_out(&error) => return Ok(Event::Timeout),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => check_signals()?,
                Err(error) => return Err(error).context("receiving failed"),
            }
        }
    }
}

/// Fails if a signal says that this has taken long enough.
pub(crate) fn check_signals() -> Result<()> {
    if signal::stop_requested() {
        bail!("stopped by a signal");
    }
    if Signal::Alarm.arrived() {
        bail!("the sample took too long");
    }
    Ok(())
}

/// RDS reports the end of waiting as `ETIMEDOUT`, most other sockets as `EAGAIN`.
fn timed_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
    )
}
