// SPDX-License-Identifier: GPL-2.0

//! The side that measures.

use crate::args::ClientPlan;
use crate::guest;
use crate::lane::Lane;
use crate::paths::{self, Positions};
use crate::port::{Event, Port};
use crate::protocol::{decode, encode, Kind, Reply, Request};
use crate::result::{Results, Sample};
use crate::ring;
use anyhow::{bail, Context, Result};
use rds_sys::cpu::CpuTime;
use rds_sys::signal;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time until a request is repeated.
const REPEAT: Duration = Duration::from_millis(200);

/// Takes all samples.
pub(crate) fn run(plan: &ClientPlan) -> Result<Results> {
    let mut client = Client::new(plan)?;
    if plan.warmup > 0 {
        client.warm_up().context("warming up")?;
    }
    let samples = (0..plan.samples)
        .map(|index| {
            client
                .sample(plan.count)
                .with_context(|| format!("sample {index}"))
        })
        .collect::<Result<Vec<_>>>()?;
    let transport = client.control.socket.transport()?;
    let transport = transport.map_or("none".to_owned(), |transport| transport.to_string());
    Ok(Results::new(plan, transport, samples))
}

struct Client<'a> {
    plan: &'a ClientPlan,
    control: Port,
    lanes: Vec<Lane>,
    /// The server's data address.
    server: SocketAddr,
    /// Of the sample that is being taken.
    id: u64,
    base: Instant,
}

impl<'a> Client<'a> {
    fn new(plan: &'a ClientPlan) -> Result<Self> {
        let control = Port::open(plan.local, &plan.socket, 0)?;
        control.socket.set_recv_timeout(REPEAT)?;
        let ports = match plan.paths {
            Some(count) => {
                signal::watchdog(plan.timeout)?;
                paths::open(plan, count).context("looking for paths")?
            }
            None => vec![Port::open(plan.local, &plan.socket, plan.size)?],
        };
        let lanes = ports.into_iter().map(|port| Lane::new(port, plan));
        let mut server = plan.peer;
        server.set_port(server.port() + 1);
        let id = RandomState::new().build_hasher().finish();
        Ok(Self {
            plan,
            control,
            lanes: lanes.collect::<Result<_>>()?,
            server,
            id,
            base: Instant::now(),
        })
    }

    /// Takes a sample that nobody sees, and finds out whether its messages went where they should.
    fn warm_up(&mut self) -> Result<()> {
        let Some(paths) = self.plan.paths else {
            return self.sample(self.plan.warmup).map(drop);
        };
        let before = Positions::now(&self.control, self.plan)?;
        self.sample(self.plan.warmup)?;
        let after = Positions::now(&self.control, self.plan)?;
        after.check_since(&before, paths, self.plan.warmup, self.plan.size)
    }

    fn sample(&mut self, count: u64) -> Result<Sample> {
        signal::watchdog(self.plan.timeout)?;
        self.id = self.id.wrapping_add(1);
        self.request(count)?;
        let guest_before = guest::read(self.base);
        let cpu_before = CpuTime::now()?;
        let start = Instant::now();
        let server = match self.plan.kind {
            Kind::Rr => {
                self.round_trips(count)?;
                None
            }
            Kind::Stream => {
                self.stream(count)?;
                Some(self.done()?)
            }
        };
        self.lanes.iter_mut().try_for_each(Lane::settle)?;
        let elapsed = start.elapsed();
        let client = CpuTime::now()? - cpu_before;
        let guest = guest::read(self.base)
            .zip(guest_before)
            .map(|(now, before)| now.since(before));
        Ok(Sample {
            messages: count,
            // CAST: to a wider type on every Linux.
            bytes: count * self.plan.size as u64,
            elapsed_ns: u64::try_from(elapsed.as_nanos())?,
            client,
            server: server.map_or_else(|| self.done(), Ok)?,
            guest,
        })
    }

    /// Asks for a sample until the server is ready.
    fn request(&mut self, count: u64) -> Result<()> {
        let ports = self.lanes.iter().map(|lane| Ok(lane.port.addr()?.port()));
        let ports = ports.collect::<Result<_>>()?;
        let Self { id, plan, .. } = *self;
        let period = if plan.zerocopy { ring::BUFFERS } else { count };
        let request = Request::new(id, plan.kind, plan.size, count, ports, period);
        loop {
            self.control.send(&encode(&request)?, self.plan.peer)?;
            match self.reply()? {
                Some(Reply::Ready { id }) if id == self.id => return Ok(()),
                Some(Reply::Refused { id, reason }) if id == self.id => {
                    bail!("the server refuses: {reason}")
                }
                _ => crate::port::check_signals()?,
            }
        }
    }

    /// Waits for the server to say that everything has arrived.
    fn done(&mut self) -> Result<CpuTime> {
        loop {
            match self.reply()? {
                Some(Reply::Done { id, cpu }) if id == self.id => return Ok(cpu),
                _ => crate::port::check_signals()?,
            }
        }
    }

    fn reply(&mut self) -> Result<Option<Reply>> {
        match self.control.receive()? {
            Event::Message { from, data } if from == self.plan.peer => decode(data).map(Some),
            _ => Ok(None),
        }
    }

    fn round_trips(&mut self, count: u64) -> Result<()> {
        for index in 0..count {
            let (lane, number) = turn(&mut self.lanes, index)?;
            lane.send(number, self.server)?;
            lane.answer(number, self.plan.size, self.server)?;
        }
        Ok(())
    }

    fn stream(&mut self, count: u64) -> Result<()> {
        for index in 0..count {
            let (lane, number) = turn(&mut self.lanes, index)?;
            lane.send(number, self.server)?;
        }
        Ok(())
    }
}

/// Whose turn it is to send message `index` of a sample, and the number that it has there.
fn turn<T>(lanes: &mut [T], index: u64) -> Result<(&mut T, u64)> {
    // CAST: to a wider type on every Linux; the remainder is an index again.
    let count = lanes.len() as u64;
    let at = index.checked_rem(count).context("there are no sockets")? as usize;
    Ok((&mut lanes[at], index / count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_take_turns() {
        let mut lanes = ['a', 'b'];
        let mut taken = (0..5).map(|index| {
            turn(&mut lanes, index)
                .map(|(lane, number)| (*lane, number))
                .unwrap()
        });
        let expected = [('a', 0), ('b', 0), ('a', 1), ('b', 1), ('a', 2)];
        assert!(taken.by_ref().eq(expected));
        assert!(turn::<char>(&mut [], 0).is_err());
    }
}
