// SPDX-License-Identifier: GPL-2.0

//! The side that answers.

use crate::args::ServerPlan;
use crate::port::{Event, Port};
use crate::protocol::{decode, encode, Kind, Reply, Request};
use crate::stamp;
use anyhow::{bail, Result};
use rds_sys::cpu::CpuTime;
use rds_sys::signal;
use rds_sys::MAX_MESSAGE;
use std::net::SocketAddr;
use std::time::Duration;

/// Time between two looks at the stop flag.
const PATIENCE: Duration = Duration::from_millis(500);

/// Serves samples until the user stops it or all are served.
pub(crate) fn serve(plan: &ServerPlan) -> Result<()> {
    let mut server = Server::new(plan)?;
    let mut served = 0;
    let mut last = None;
    while !signal::stop_requested() && plan.samples.is_none_or(|samples| served < samples) {
        let Some((client, request)) = server.request(last)? else {
            continue;
        };
        last = Some(request.id);
        match server.sample(client, &request) {
            Ok(()) => served += 1,
            Err(error) if signal::stop_requested() => return Err(error),
            Err(error) => eprintln!("rds-bench: a sample of {client} failed: {error:#}"),
        }
    }
    Ok(())
}

struct Server<'a> {
    plan: &'a ServerPlan,
    control: Port,
    data: Port,
}

impl<'a> Server<'a> {
    fn new(plan: &'a ServerPlan) -> Result<Self> {
        let control = Port::open(plan.local, &plan.socket, 0)?;
        control.socket.set_recv_timeout(PATIENCE)?;
        let mut addr = plan.local;
        addr.set_port(addr.port() + 1);
        let data = Port::open(addr, &plan.socket, 0)?;
        data.socket.set_recv_timeout(plan.timeout)?;
        data.socket.set_send_timeout(plan.timeout)?;
        Ok(Self {
            plan,
            control,
            data,
        })
    }

    /// Waits for a request other than the last one, which a client may have repeated.
    fn request(&mut self, last: Option<u64>) -> Result<Option<(SocketAddr, Request)>> {
        let Event::Message { from, data } = self.control.receive().or_else(ignore_stop)? else {
            return Ok(None);
        };
        Ok(match decode::<Request>(data) {
            Ok(request) if Some(request.id) != last => Some((from, request)),
            Ok(_) => None,
            Err(error) => {
                eprintln!("rds-bench: {from} sent no request: {error:#}");
                None
            }
        })
    }

    fn sample(&mut self, client: SocketAddr, request: &Request) -> Result<()> {
        let id = request.id;
        if !request.understood() || request.size > MAX_MESSAGE {
            let reason = "client and server do not fit together".to_owned();
            self.tell(client, &Reply::Refused { id, reason })?;
            bail!("the request makes no sense");
        }
        if request.kind == Kind::Rr {
            self.data.make_room(self.plan.socket.sndbuf, request.size)?;
        }
        let before = CpuTime::now()?;
        self.tell(client, &Reply::Ready { id })?;
        self.exchange(client, request)?;
        self.tell(
            client,
            &Reply::Done {
                id,
                cpu: CpuTime::now()? - before,
            },
        )
    }

    fn tell(&self, client: SocketAddr, reply: &Reply) -> Result<()> {
        self.control.send(&encode(reply)?, client)
    }

    fn exchange(&mut self, client: SocketAddr, request: &Request) -> Result<()> {
        let mut senders = senders(client, &request.ports);
        let mut answer = stamp::message(request.size);
        let mut arrived = 0;
        while arrived < request.count {
            let Event::Message { from, data } = self.data.receive()? else {
                bail!("{arrived} of {} messages came", request.count);
            };
            let Some((_, number)) = senders.iter_mut().find(|(addr, _)| *addr == from) else {
                // Left over from a client that went away.
                continue;
            };
            if !stamp::matches(data, request.size, *number % request.period) {
                bail!("message {number} from {from} is not the one that was sent");
            }
            if request.kind == Kind::Rr {
                stamp::put(&mut answer, *number);
                self.data.send(&answer, from)?;
            }
            *number += 1;
            arrived += 1;
        }
        Ok(())
    }
}

/// The client's data sockets, each with the number of its next message.
fn senders(client: SocketAddr, ports: &[u16]) -> Vec<(SocketAddr, u64)> {
    let with_port = |&port| {
        let mut addr = client;
        addr.set_port(port);
        (addr, 0)
    };
    ports.iter().map(with_port).collect()
}

/// A signal that ends the wait for a request is no failure.
fn ignore_stop<'a>(error: anyhow::Error) -> Result<Event<'a>> {
    if signal::stop_requested() {
        Ok(Event::Timeout)
    } else {
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_data_socket_is_numbered_from_zero() {
        let client = "[fe80::1%3]:4000".parse().unwrap();
        let expected = [5000, 5001].map(|port| (format!("[fe80::1%3]:{port}").parse().unwrap(), 0));
        assert_eq!(senders(client, &[5000, 5001]), expected);
    }
}
