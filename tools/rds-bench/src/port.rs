// SPDX-License-Identifier: GPL-2.0

//! Blocking sockets that give up in time.

use crate::args::SocketPlan;
use anyhow::{bail, Context, Result};
use rds_sys::signal::{self, Signal};
use rds_sys::{poll, Control, ControlBuffer, PollFd, SendFlags, Socket, MAX_MESSAGE};
use std::io;
use std::net::SocketAddr;

/// A bound socket and the memory to receive with.
pub(crate) struct Port {
    pub(crate) socket: Socket,
    buffer: Vec<u8>,
    control: ControlBuffer,
    returned: Vec<u32>,
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
            returned: Vec::new(),
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
        self.transfer(data, to, SendFlags::default())
    }

    /// Sends a message that the kernel does not copy, waiting for room. Its name is in [`Port::returned`] when the
    /// kernel has done with it. `false` if the process may not have more of its memory locked.
    pub(crate) fn lend(&self, data: &[u8], to: SocketAddr, name: u32) -> Result<bool> {
        let flags = SendFlags {
            zerocopy: Some(name),
            ..SendFlags::default()
        };
        match self.transfer(data, to, flags) {
            Err(error) if out_of_memory(&error) => Ok(false),
            result => result.map(|()| true),
        }
    }

    fn transfer(&self, data: &[u8], to: SocketAddr, flags: SendFlags) -> Result<()> {
        loop {
            match self.socket.send_to(data, to, flags) {
                Ok(len) if len == data.len() => return Ok(()),
                Ok(len) => bail!("only {len} of {} bytes were sent", data.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => check_signals()?,
                Err(error) => return Err(error).context(format!("sending to {to} failed")),
            }
        }
    }

    /// The names of lent messages that came back and were not asked for yet.
    pub(crate) fn returned(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.returned.drain(..)
    }

    /// Waits until a lent message comes back, while no other message can come.
    pub(crate) fn wait_returned(&mut self) -> Result<()> {
        while self.returned.is_empty() {
            // Not every kernel wakes a receive that waits, or lets it end, for this; all of them do so for poll.
            match self.socket.recv(&mut self.buffer, &mut self.control, true) {
                Ok(received) => match received.from {
                    Some(from) => bail!("{from} sent a message that was not asked for"),
                    None => self.note_returned(),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait_readable()?,
                Err(error) => return Err(error).context("receiving failed"),
            }
        }
        Ok(())
    }

    fn wait_readable(&self) -> Result<()> {
        match poll(&mut [PollFd::new(&self.socket, true, false)], None) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => check_signals(),
            result => result.map(drop).context("waiting failed"),
        }
    }

    fn note_returned(&mut self) {
        for control in self.control.messages() {
            if let Control::ZerocopyDone(names) = control {
                self.returned.extend(names);
            }
        }
    }

    /// Waits for a message.
    pub(crate) fn receive(&mut self) -> Result<Event<'_>> {
        loop {
            match self.socket.recv(&mut self.buffer, &mut self.control, false) {
                Ok(received) => {
                    self.note_returned();
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

fn out_of_memory(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
}

/// RDS reports the end of waiting as `ETIMEDOUT`, most other sockets as `EAGAIN`.
fn timed_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
    )
}
