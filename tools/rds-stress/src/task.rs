// SPDX-License-Identifier: GPL-2.0

//! A task: one socket that exchanges messages with every task of the other side, in a thread of its own.

use crate::flow::{Event, Flow};
use crate::header::{corruption, pattern, Header, Op};
use crate::options::Options;
use crate::stats::Stats;
use anyhow::{bail, ensure, Context, Result};
use rds_sys::{poll, priority, Control, ControlBuffer, PollFd, SendFlags, Socket};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time between two looks at what the whole crew is told.
const PATIENCE: Duration = Duration::from_millis(200);
/// Time after which a congested destination is tried although nobody said that it is free again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How much the tasks give way to the thread that prints.
const NICE: u8 = 5;

/// What all tasks of a side have in common.
pub(crate) struct Plan {
    pub(crate) options: Options,
    /// Own address; the port is not used.
    pub(crate) local: SocketAddr,
    /// The other side's address; the port is not used.
    pub(crate) remote: SocketAddr,
    /// Whether the tasks send requests or only answer them.
    pub(crate) requests: bool,
    /// Print round-trip times of more microseconds than this.
    pub(crate) outlier_usec: Option<u64>,
}

/// What the tasks are told while they run.
#[derive(Default)]
pub(crate) struct Orders {
    /// Send no requests any more, only acks.
    pub(crate) stop_requests: AtomicBool,
    /// End.
    pub(crate) end: AtomicBool,
}

/// Statistics that a task updates and others read.
pub(crate) type Published = Arc<Mutex<Stats>>;

/// What a send came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Done,
    /// The own queue is full.
    NoRoom,
    /// The destination is congested.
    Congested,
}

/// A task with its socket.
pub(crate) struct Task {
    number: u16,
    plan: Arc<Plan>,
    socket: Socket,
    flows: Vec<Flow>,
    /// Addresses of the tasks of the other side, in the order of `flows`.
    remotes: Vec<SocketAddr>,
    /// Whether to send requests, too, or only acks.
    requests: bool,
    /// Whether a send may be tried before the socket says that it has room.
    writable: bool,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// What follows the headers of messages that are verified.
    pattern: Option<Vec<u8>>,
    stats: Stats,
    pub(crate) published: Published,
}

impl Task {
    /// Binds the task's socket, so that messages can arrive.
    pub(crate) fn open(plan: &Arc<Plan>, number: u16) -> Result<Self> {
        let options = &plan.options;
        let (local, socket) = open_socket(plan, number)?;
        let remotes: Vec<SocketAddr> = (0..options.tasks)
            .map(|task| numbered(plan.remote, options, task))
            .collect();
        let depth = usize::try_from(options.depth)?;
        let flows = remotes
            .iter()
            .map(|remote| Flow::new(local, *remote, depth))
            .collect();
        let size = usize::try_from(options.req_size.max(options.ack_size))?;
        let header = options.family().header_len();
        let pattern = options.verify.then(|| pattern(size - header));
        let mut outgoing = vec![0; size];
        if let Some(pattern) = &pattern {
            outgoing[header..].copy_from_slice(pattern);
        }
        Ok(Self {
            number,
            plan: Arc::clone(plan),
            socket,
            flows,
            remotes,
            requests: plan.requests,
            writable: true,
            outgoing,
            incoming: vec![0; size],
            pattern,
            stats: Stats::default(),
            published: Published::default(),
        })
    }

    /// Exchanges messages from the time `start` on until it is told to end.
    pub(crate) fn run(mut self, start: Instant, orders: &Orders) -> Result<()> {
        priority::give_way(NICE).context("cannot give way to others")?;
        thread::sleep(start.saturating_duration_since(Instant::now()));
        let number = self.number;
        // ORDERING: The flags stand alone; nothing is published through them.
        while !orders.end.load(Ordering::Relaxed) {
            self.requests &= !orders.stop_requests.load(Ordering::Relaxed);
            self.turn().with_context(|| format!("task {number}"))?;
        }
        Ok(())
    }

    /// Receives what is there, sends what can be sent, and waits for something to do.
    fn turn(&mut self) -> Result<()> {
        let mut fds = [PollFd::new(&self.socket, true, !self.writable)];
        match poll(&mut fds, Some(PATIENCE)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                return Err(error).context("poll failed");
            }
            _ => {}
        }
        let [fd] = fds;
        let (readable, writable) = (fd.readable(), fd.writable());
        self.writable |= writable;
        if readable {
            self.receive_all()?;
        }
        self.retry_congested(readable);
        self.send_all()?;
        *self
            .published
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = self.stats;
        Ok(())
    }

    /// Without notices the socket becomes readable when the congestion of any destination changes.
    fn retry_congested(&mut self, readable: bool) {
        let before = Instant::now().checked_sub(TRY_AGAIN);
        for flow in &mut self.flows {
            if readable && !self.plan.options.cong_monitor {
                flow.clear();
            } else if let Some(before) = before {
                flow.retry(before);
            }
        }
    }

    fn send_all(&mut self) -> Result<()> {
        for index in 0..self.flows.len() {
            if !self.writable {
                break;
            }
            if !self.flows[index].is_congested() {
                self.writable = self.send_to(index)? != Sent::NoRoom;
            }
        }
        Ok(())
    }

    /// Sends one task of the other side what it should get: answers first.
    fn send_to(&mut self, index: usize) -> Result<Sent> {
        loop {
            let flow = &self.flows[index];
            let request = || self.requests.then(|| flow.next_request()).flatten();
            let Some(header) = flow.next_ack().or_else(request) else {
                return Ok(Sent::Done);
            };
            let sent = self.send(index, &header)?;
            if sent != Sent::Done {
                return Ok(sent);
            }
        }
    }

    fn send(&mut self, index: usize, header: &Header) -> Result<Sent> {
        let options = &self.plan.options;
        let size = match header.op {
            Op::Request => options.req_size,
            Op::Ack => options.ack_size,
        };
        let message = &mut self.outgoing[..usize::try_from(size)?];
        header.encode(message);
        let flags = SendFlags {
            dont_wait: true,
            ..SendFlags::default()
        };
        let before = Instant::now();
        match self.socket.send_to(message, self.remotes[index], flags) {
            Ok(len) => ensure!(len == message.len(), "only {len} bytes were sent"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Sent::NoRoom),
            Err(error) if rds_sys::is_congested(&error) => {
                self.flows[index].congest(before);
                return Ok(Sent::Congested);
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot send to {}", header.to));
            }
        }
        self.count_sent(index, header, before);
        Ok(Sent::Done)
    }

    fn count_sent(&mut self, index: usize, header: &Header, before: Instant) {
        let options = &self.plan.options;
        let flow = &mut self.flows[index];
        flow.sent(header.op, before);
        self.stats.missed += u64::from(flow.missed_end());
        match header.op {
            Op::Request => {
                self.stats.req_tx.add(options.req_size.into());
                self.stats.send_usec.add(micros(before.elapsed()));
            }
            Op::Ack => self.stats.ack_tx.add(options.ack_size.into()),
        }
        self.trace("sent", header);
    }

    fn receive_all(&mut self) -> Result<()> {
        let mut control = ControlBuffer::new();
        loop {
            let received = match self.socket.recv(&mut self.incoming, &mut control, true) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                other => other.context("cannot receive")?,
            };
            for notice in control.messages() {
                if let Control::CongestionUpdate { mask } = notice {
                    let freed = self.flows.iter_mut().filter(|flow| flow.in_mask(mask));
                    freed.for_each(Flow::clear);
                }
            }
            if let Some(from) = received.from {
                self.take(from, received.len, received.truncated)
                    .with_context(|| format!("message from {from}"))?;
            }
        }
    }

    /// Verifies and counts a message of `len` bytes.
    fn take(&mut self, from: SocketAddr, len: usize, truncated: bool) -> Result<()> {
        let now = Instant::now();
        let options = &self.plan.options;
        ensure!(!truncated, "it is longer than a request or an ack");
        let index = self.sender(from)?;
        let message = &self.incoming[..len];
        let header = Header::decode(message, options.family()).map_err(anyhow::Error::msg)?;
        let (size, counter) = match header.op {
            Op::Request => (options.req_size, &mut self.stats.req_rx),
            Op::Ack => (options.ack_size, &mut self.stats.ack_rx),
        };
        if len != usize::try_from(size)? {
            bail!("it is a {} with {len} bytes, not {size}", header.op);
        }
        let event = self.flows[index]
            .receive(&header)
            .map_err(anyhow::Error::msg)?;
        let payload = &message[options.family().header_len()..];
        if let Some(text) = self
            .pattern
            .as_ref()
            .and_then(|all| corruption(payload, all))
        {
            bail!("{} {}: {text}", header.op, header.seq);
        }
        counter.add(size.into());
        if let Event::Answer(sent) = event {
            self.count_rtt(micros(now.saturating_duration_since(sent)));
        }
        self.trace("received", &header);
        Ok(())
    }

    /// Which task of the other side has this address.
    fn sender(&self, from: SocketAddr) -> Result<usize> {
        let first = self.plan.options.port + 1;
        let index = from.port().checked_sub(first).map(usize::from);
        index
            .filter(|index| *index < self.flows.len() && from.ip() == self.plan.remote.ip())
            .context("the other side has no task there")
    }

    fn count_rtt(&mut self, usec: u64) {
        self.stats.add_rtt(usec);
        if self.plan.outlier_usec.is_some_and(|limit| usec > limit) {
            eprintln!("Found RTT = {usec:#x}");
        }
    }

    fn trace(&self, what: &str, header: &Header) {
        if self.plan.options.trace {
            let Header {
                seq,
                from,
                to,
                index,
                op,
            } = header;
            eprintln!("{what} {op} {seq} ({index}) from {from} to {to}");
        }
    }
}

/// The address of a task.
fn numbered(mut addr: SocketAddr, options: &Options, task: u16) -> SocketAddr {
    addr.set_port(options.port + 1 + task);
    addr
}

/// Binds a socket and gives it room for all messages that may be under way.
fn open_socket(plan: &Plan, number: u16) -> Result<(SocketAddr, Socket)> {
    let options = &plan.options;
    let local = numbered(plan.local, options, number);
    let socket = rds_cli::open_socket()?;
    rds_cli::bind_socket(&socket, local)?;
    let messages = usize::from(options.tasks) * usize::try_from(options.depth)? * 2;
    let wanted = messages * usize::try_from(options.req_size + options.ack_size)?;
    let send = socket
        .set_send_buffer(wanted)
        .context("cannot set the send buffer")?;
    let receive = socket
        .set_recv_buffer(wanted)
        .context("cannot set the receive buffer")?;
    // One warning is enough: all tasks get the same.
    for (what, got) in [("send", send), ("receive", receive)] {
        if got < wanted && number == 0 {
            eprintln!("rds-stress: the {what} buffer has room for {got} bytes, not for {wanted}");
        }
    }
    if options.cong_monitor {
        socket
            .set_cong_monitor(true)
            .context("cannot ask for notices of congestion; --use-cong-monitor 0 does without")?;
    }
    if options.tos != 0 {
        socket
            .set_tos(options.tos)
            .context("cannot set the type of service")?;
    }
    Ok((local, socket))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::options;

    #[test]
    fn ports_follow_the_control_port() {
        let addr = numbered("10.0.0.2:9".parse().unwrap(), &options(), 3);
        assert_eq!(addr.to_string(), "10.0.0.2:4004");
    }
}
