// SPDX-License-Identifier: GPL-2.0

//! The control socket: sends and receives what [`crate::link`] decides.

use crate::link::{Link, Packet};
use crate::rtt::Rtt;
use anyhow::{Context, Result};
use rds_sys::info::{self, Family, Message, Table};
use rds_sys::{is_congested, ControlBuffer, SendFlags, Socket};
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// First and longest time between two attempts to find the other side.
const SEARCH: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// Time between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Time until a packet that found no room is tried again.
const RETRY: Duration = Duration::from_millis(20);
/// Longest packet: a status with 256 totals is much shorter.
const PACKET: usize = 16 * 1024;

/// The control socket and the conversation on it.
pub(crate) struct Channel {
    pub(crate) socket: Socket,
    pub(crate) link: Link,
    pub(crate) rtt: Option<Rtt>,
    local: SocketAddr,
    peer: SocketAddr,
    /// When to send even without news.
    due: Instant,
    /// Not before this time.
    hold: Instant,
    search: Duration,
    buffer: Vec<u8>,
    control: ControlBuffer,
}

impl Channel {
    pub(crate) fn new(socket: Socket, local: SocketAddr, peer: SocketAddr, link: Link) -> Self {
        let now = Instant::now();
        Self {
            socket,
            link,
            rtt: None,
            local,
            peer,
            due: now,
            hold: now,
            search: SEARCH[0],
            buffer: vec![0; PACKET],
            control: ControlBuffer::new(),
        }
    }

    /// When there is something to do even if nothing arrives.
    pub(crate) fn deadline(&self) -> Instant {
        if self.link.changed() {
            self.hold
        } else {
            self.due
        }
    }

    /// Sends what is to be sent now.
    pub(crate) fn tick(&mut self, now: Instant) -> Result<()> {
        if now >= self.deadline() {
            let sent = self.send(&Packet::Status(self.link.own().clone()))?;
            self.reschedule(now, sent);
        }
        if !self.link.up() {
            return Ok(());
        }
        if let Some(number) = self.rtt.as_mut().and_then(|rtt| rtt.ping(now)) {
            if !self.send(&Packet::Ping(number))? {
                self.rtt.as_mut().into_iter().for_each(Rtt::unsent);
            }
        }
        Ok(())
    }

    fn reschedule(&mut self, now: Instant, sent: bool) {
        if !sent {
            self.hold = now + RETRY;
            self.due = self.hold;
            return;
        }
        self.link.sent();
        self.due = now
            + if self.link.up() {
                HEARTBEAT
            } else {
                self.search
            };
        self.search = (self.search * 2).min(SEARCH[1]);
    }

    /// Sends a packet; `false` if there is no room for it now.
    fn send(&self, packet: &Packet) -> Result<bool> {
        let flags = SendFlags {
            dont_wait: true,
            ..SendFlags::default()
        };
        match self.socket.send_to(&packet.encode()?, self.peer, flags) {
            Ok(_) => Ok(true),
            Err(error) if busy(&error) => Ok(false),
            Err(error) => Err(error).context("cannot send to the other control port"),
        }
    }

    /// Takes in all that has arrived.
    pub(crate) fn receive(&mut self) -> Result<()> {
        loop {
            let received = match self.socket.recv(&mut self.buffer, &mut self.control, true) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                Err(error) => return Err(error).context("cannot receive on the control port"),
            };
            if received.from == Some(self.peer) {
                let packet = Packet::decode(&self.buffer[..received.len])?;
                self.take(packet)?;
            }
        }
    }

    fn take(&mut self, packet: Packet) -> Result<()> {
        match packet {
            Packet::Status(status) => self.link.receive(status)?,
            // An answer that finds no room is lost; the next measurement begins without it.
            Packet::Ping(number) => drop(self.send(&Packet::Pong(number))?),
            Packet::Pong(number) => {
                if let Some(rtt) = &mut self.rtt {
                    rtt.pong(number, Instant::now());
                }
            }
        }
        Ok(())
    }

    /// Waits until the other side's kernel has all we sent, since closing the socket takes back what
    /// it has not.
    pub(crate) fn linger(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            let told = !self.link.changed() || self.tick(Instant::now()).is_err();
            if told && self.queued().is_ok_and(|count| count == 0) {
                return;
            }
            thread::sleep(RETRY);
        }
    }

    /// How many packets the other side's kernel has not acknowledged.
    fn queued(&self) -> io::Result<usize> {
        let family = if self.local.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        let mut count = 0;
        for table in [Table::SendQueue, Table::RetransQueue] {
            let messages: Vec<Message> = info::read(&self.socket, table, family)?;
            count += messages
                .iter()
                .filter(|message| self.sent_by_us(message))
                .count();
        }
        Ok(count)
    }

    fn sent_by_us(&self, message: &Message) -> bool {
        message.local == self.local.ip() && message.local_port == self.local.port()
    }
}

/// Whether a send failed only for now.
fn busy(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | OutOfMemory) || is_congested(error)
}
