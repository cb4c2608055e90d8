// SPDX-License-Identifier: GPL-2.0

//! Which path of a connection a socket sends on.
//!
//! The kernel chooses it by a hash of the socket's port. A program cannot compute the hash, as it has a start value that
//! may be random, so it is tried out: a ping from the socket goes its way, and moves a TCP connection on. Its source
//! port tells which path that is.

use crate::args::ClientPlan;
use crate::port::{check_signals, Event, Port};
use anyhow::{bail, Context, Result};
use rds_sys::info::{self, Family, Table, TcpSocket};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Paths a connection can have; this is also how a source port tells its path.
const MAX_PATHS: u16 = 8;
/// Where RDS listens.
const RDS_PORT: u16 = 16385;
/// Bytes before each message on the wire.
const HEADER: u64 = 48;
/// Sockets to try. Each is on one of eight paths, so that so many miss one only once in 10^11 times.
const SOCKETS: usize = 200;
/// Pings to try with a socket.
const PINGS: usize = 20;
/// Time between two looks whether there are all paths.
const PAUSE: Duration = Duration::from_millis(20);

/// By path, where in its TCP stream the last message ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Positions(BTreeMap<usize, u32>);

/// Opens a socket on each of the paths from 0 to `count - 1`.
pub(crate) fn open(plan: &ClientPlan, count: usize) -> Result<Vec<Port>> {
    connect(plan, count)?;
    let mut found: Vec<Option<Port>> = (0..count).map(|_| None).collect();
    for _ in 0..SOCKETS {
        let mut port = Port::open(plan.local, &plan.socket, plan.size)?;
        let path = find(&mut port, plan)?;
        if let Some(place @ None) = found.get_mut(path) {
            *place = Some(port);
        }
        if found.iter().all(Option::is_some) {
            return Ok(found.into_iter().flatten().collect());
        }
    }
    bail!("of {SOCKETS} sockets none is on one of the {count} paths")
}

/// Waits until both hosts have agreed on enough paths and connected them.
fn connect(plan: &ClientPlan, count: usize) -> Result<()> {
    let mut port = Port::open(plan.local, &plan.socket, 0)?;
    let end = Instant::now() + plan.timeout;
    loop {
        ping(&mut port, plan.peer)?;
        let there = Positions::now(&port, plan)?;
        if (0..count).all(|path| there.0.contains_key(&path)) {
            return Ok(());
        }
        if Instant::now() > end {
            bail!(
                "there are {} TCP connections, too few for {count} paths",
                there.0.len()
            );
        }
        thread::sleep(PAUSE);
    }
}

/// Finds the path of a socket.
fn find(port: &mut Port, plan: &ClientPlan) -> Result<usize> {
    for _ in 0..PINGS {
        let before = Positions::now(port, plan)?;
        ping(port, plan.peer)?;
        // If something else was sent meanwhile it cannot be told from the ping.
        if let [path] = Positions::now(port, plan)?.moved_since(&before)[..] {
            return Ok(path);
        }
    }
    bail!(
        "too much else is sent to {} to find the path of a socket",
        plan.peer.ip()
    )
}

/// Lets the peer's kernel answer.
fn ping(port: &mut Port, mut peer: SocketAddr) -> Result<()> {
    peer.set_port(0);
    port.send(&[], peer)?;
    loop {
        match port.receive()? {
            Event::Message { from, .. } if from == peer => return Ok(()),
            _ => check_signals()?,
        }
    }
}

impl Positions {
    /// Those of all connections between the client's address and the server's.
    pub(crate) fn now(port: &Port, plan: &ClientPlan) -> Result<Self> {
        let family = match plan.peer {
            SocketAddr::V4(_) => Family::V4,
            SocketAddr::V6(_) => Family::V6,
        };
        let rows: Vec<TcpSocket> = info::read(&port.socket, Table::TcpSockets, family)
            .context("paths can be told only on TCP")?;
        let ends = (plan.local.ip(), plan.peer.ip());
        let ours = rows.iter().filter(|row| (row.local, row.remote) == ends);
        Ok(Self(
            ours.map(|row| (path_of(row), row.last_expected_una))
                .collect(),
        ))
    }

    fn moved_since(&self, before: &Self) -> Vec<usize> {
        let still = |path, end| before.0.get(path) == Some(end);
        let moved = self.0.iter().filter(|(path, end)| !still(*path, *end));
        moved.map(|(path, _)| *path).collect()
    }

    /// Fails unless each of the first `paths` paths has carried its share of `messages`, and perhaps something else.
    pub(crate) fn check_since(
        &self,
        before: &Self,
        paths: usize,
        messages: u64,
        size: usize,
    ) -> Result<()> {
        // CAST: to a wider type on every Linux.
        let (count, bytes) = (paths as u64, HEADER + size as u64);
        for path in 0..paths {
            let (Some(end), Some(start)) = (self.0.get(&path), before.0.get(&path)) else {
                bail!("path {path} is not connected any more");
            };
            // CAST: widening. The first paths have one more if the messages cannot be divided evenly.
            let share = (messages + count - 1 - path as u64) / count;
            // CAST: positions wrap around, too; one that is short of its share is far behind it.
            let besides = end
                .wrapping_sub(*start)
                .wrapping_sub((share * bytes) as u32);
            if besides > u32::MAX / 2 {
                bail!("the {share} messages of path {path} went another way");
            }
        }
        Ok(())
    }
}

/// The path of a connection, by the port of the side that made it.
fn path_of(row: &TcpSocket) -> usize {
    let source = match row.remote_port {
        RDS_PORT => row.local_port,
        source => source,
    };
    usize::from(source % MAX_PATHS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(ends: &[u32]) -> Positions {
        Positions(ends.iter().copied().enumerate().collect())
    }

    fn row(local_port: u16, remote_port: u16) -> TcpSocket {
        let addr = "10.0.0.1".parse().unwrap();
        TcpSocket {
            local: addr,
            local_port,
            remote: addr,
            remote_port,
            header_remaining: 0,
            data_remaining: 0,
            last_sent_nxt: 0,
            last_expected_una: 0,
            last_seen_una: 0,
        }
    }

    #[test]
    fn the_port_of_who_connects_tells_the_path() {
        assert_eq!(path_of(&row(32779, RDS_PORT)), 3);
        assert_eq!(path_of(&row(RDS_PORT, 32783)), 7);
    }

    #[test]
    fn new_connections_and_new_positions_have_moved() {
        let before = positions(&[5, 6]);
        assert_eq!(positions(&[5, 7, 0]).moved_since(&before), [1, 2]);
        assert!(before.moved_since(&before).is_empty());
    }

    #[test]
    fn every_path_must_have_its_share() {
        // Of five messages of 112 bytes on the wire three go on path 0; positions wrap around.
        let before = positions(&[u32::MAX - 100, 1000]);
        let check = |ends: &[u32]| positions(ends).check_since(&before, 2, 5, 64);
        assert!(check(&[3 * 112 - 101, 1000 + 2 * 112]).is_ok());
        assert!(check(&[3 * 112 - 101 + (1 << 20), 1000 + 2 * 112, 9]).is_ok());
        assert!(check(&[2 * 112 - 101, 1000 + 2 * 112]).is_err());
        assert!(check(&[3 * 112 - 101, 1000]).is_err());
        assert!(check(&[3 * 112 - 101]).is_err());
    }
}
