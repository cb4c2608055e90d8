// SPDX-License-Identifier: GPL-2.0

//! The side that measures.

use crate::args::ClientPlan;
use crate::guest;
use crate::port::{Event, Port};
use crate::protocol::{decode, encode, Kind, Reply, Request};
use crate::result::{Results, Sample};
use crate::stamp;
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
        client.sample(plan.warmup).context("warming up")?;
    }
    let samples = (0..plan.samples)
        .map(|index| {
            client
                .sample(plan.count)
                .with_context(|| format!("sample {index}"))
        })
        .collect::<Result<Vec<_>>>()?;
    let transport = client.data.socket.transport()?;
    let transport = transport.map_or("none".to_owned(), |transport| transport.to_string());
    Ok(Results::new(plan, transport, samples))
}

struct Client<'a> {
    plan: &'a ClientPlan,
    control: Port,
    data: Port,
    /// The server's data address.
    server: SocketAddr,
    message: Vec<u8>,
    /// Of the sample that is being taken.
    id: u64,
    base: Instant,
}

impl<'a> Client<'a> {
    fn new(plan: &'a ClientPlan) -> Result<Self> {
        let control = Port::open(plan.local, &plan.socket, 0)?;
        control.socket.set_recv_timeout(REPEAT)?;
        let data = Port::open(plan.local, &plan.socket, plan.size)?;
        let mut server = plan.peer;
        server.set_port(server.port() + 1);
        let id = RandomState::new().build_hasher().finish();
        Ok(Self {
            plan,
            control,
            data,
            server,
            message: stamp::message(plan.size),
            id,
            base: Instant::now(),
        })
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
        let port = self.data.addr()?.port();
        let request = Request::new(self.id, self.plan.kind, self.plan.size, count, port);
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
        for number in 0..count {
            stamp::put(&mut self.message, number);
            self.data.send(&self.message, self.server)?;
            match self.data.receive()? {
                Event::Message { from, data }
                    if from == self.server && stamp::matches(data, self.plan.size, number) => {}
                Event::Message { from, .. } => {
                    bail!("answer {number}, from {from}, is not the expected one")
                }
                Event::Timeout => bail!("there is no answer {number}"),
            }
        }
        Ok(())
    }

    fn stream(&mut self, count: u64) -> Result<()> {
        for number in 0..count {
            stamp::put(&mut self.message, number);
            self.data.send(&self.message, self.server)?;
        }
        Ok(())
    }
}
