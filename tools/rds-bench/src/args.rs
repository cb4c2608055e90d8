// SPDX-License-Identifier: GPL-2.0

//! The command line.

use crate::protocol::Kind;
use anyhow::{bail, Result};
use clap::{Args as Group, Parser, Subcommand};
use rds_cli::{parse_count, parse_duration, parse_size};
use rds_sys::{Transport, MAX_MESSAGE, RESERVED_PORT};
use std::net::SocketAddr;
use std::time::Duration;

/// Measure RDS request/response and streaming
///
/// Start a server, then measure from another host or network namespace. Results are JSON.
#[derive(Parser)]
#[command(name = "rds-bench", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Subcommand)]
enum Mode {
    /// Answer clients until stopped
    Server {
        /// Local address
        #[arg(long, value_name = "ADDRESS")]
        local: String,
        /// Stop after this many samples
        #[arg(long, value_name = "N", value_parser = parse_count)]
        samples: Option<u64>,
        #[command(flatten)]
        common: Common,
    },
    /// Measure the time until a message comes back
    Rr(Client),
    /// Measure the time until many messages have arrived
    Stream(Client),
}

#[derive(Group)]
struct Client {
    /// Local address; normally the one that routing chooses
    #[arg(long, value_name = "ADDRESS")]
    local: Option<String>,
    /// The server's address
    #[arg(long, value_name = "ADDRESS")]
    peer: String,
    /// Bytes of a message
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = parse_size)]
    size: usize,
    /// Messages of a sample
    #[arg(long, value_name = "N", default_value = "1000", value_parser = parse_count)]
    count: u64,
    /// Samples to take
    #[arg(long, value_name = "N", default_value = "5", value_parser = parse_count)]
    samples: u64,
    /// Messages to exchange beforehand, unmeasured
    #[arg(long, value_name = "N", default_value = "100", value_parser = parse_count)]
    warmup: u64,
    /// Use the paths 0 to N-1 (1, 2, 4 or 8), each from a socket of its own; normally one socket on any path
    #[arg(long, value_name = "N", value_parser = parse_paths)]
    paths: Option<usize>,
    /// Let the kernel send from the program's memory instead of a copy
    #[arg(long)]
    zerocopy: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Group)]
struct Common {
    /// The server's control port; its data port is the next one
    #[arg(long, value_name = "PORT", default_value = "4100")]
    port: u16,
    /// Transport: tcp, rdma or auto
    #[arg(long, default_value = "auto", value_parser = parse_transport)]
    transport: Choice,
    /// Type of service
    #[arg(long, default_value = "0")]
    tos: u8,
    /// Send buffer, in bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    sndbuf: Option<usize>,
    /// Receive buffer, in bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    rcvbuf: Option<usize>,
    /// Give up on a sample after this time
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = parse_duration)]
    timeout: Duration,
}

/// A transport to insist on.
type Choice = Option<Transport>;

/// What to do.
pub(crate) enum Role {
    Server(ServerPlan),
    Client(ClientPlan),
}

/// How to open a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketPlan {
    pub(crate) transport: Option<Transport>,
    pub(crate) tos: u8,
    pub(crate) sndbuf: Option<usize>,
    pub(crate) rcvbuf: Option<usize>,
}

/// What the server does.
pub(crate) struct ServerPlan {
    /// Control address; the data port is the next one.
    pub(crate) local: SocketAddr,
    /// Samples after which to stop.
    pub(crate) samples: Option<u64>,
    pub(crate) timeout: Duration,
    pub(crate) socket: SocketPlan,
}

/// What the client does.
pub(crate) struct ClientPlan {
    pub(crate) local: SocketAddr,
    /// Control address of the server.
    pub(crate) peer: SocketAddr,
    pub(crate) kind: Kind,
    pub(crate) size: usize,
    pub(crate) count: u64,
    pub(crate) samples: u64,
    pub(crate) warmup: u64,
    /// Paths to use, one socket for each; `None` is one socket, wherever it sends.
    pub(crate) paths: Option<usize>,
    pub(crate) zerocopy: bool,
    pub(crate) timeout: Duration,
    pub(crate) socket: SocketPlan,
}

impl Args {
    /// Finds the addresses and checks the numbers.
    pub(crate) fn role(self) -> Result<Role> {
        match self.mode {
            Mode::Server {
                local,
                samples,
                common,
            } => {
                let mut addr = rds_cli::resolve(&local)?;
                addr.set_port(common.checked_port()?);
                let (timeout, socket) = (common.timeout, common.socket());
                Ok(Role::Server(ServerPlan {
                    local: addr,
                    samples,
                    timeout,
                    socket,
                }))
            }
            Mode::Rr(client) => client.plan(Kind::Rr),
            Mode::Stream(client) => client.plan(Kind::Stream),
        }
    }
}

impl Client {
    fn plan(self, kind: Kind) -> Result<Role> {
        let mut peer = rds_cli::resolve(&self.peer)?;
        let local = rds_cli::source_address(self.local.as_deref(), peer)?;
        peer.set_port(self.common.checked_port()?);
        if self.size > MAX_MESSAGE {
            bail!("a message has at most {MAX_MESSAGE} bytes");
        }
        if self.count == 0 || self.samples == 0 {
            bail!("nothing to measure");
        }
        if self.zerocopy && self.size == 0 {
            bail!("there is no zero-copy of nothing");
        }
        Ok(Role::Client(ClientPlan {
            local,
            peer,
            kind,
            size: self.size,
            count: self.count,
            samples: self.samples,
            warmup: self.warmup,
            paths: self.paths,
            zerocopy: self.zerocopy,
            timeout: self.common.timeout,
            socket: self.common.socket(),
        }))
    }
}

impl Common {
    fn checked_port(&self) -> Result<u16> {
        if self.port <= RESERVED_PORT || self.port == u16::MAX {
            bail!("port {} and the next one are not both usable", self.port);
        }
        Ok(self.port)
    }

    fn socket(&self) -> SocketPlan {
        SocketPlan {
            transport: self.transport,
            tos: self.tos,
            sndbuf: self.sndbuf,
            rcvbuf: self.rcvbuf,
        }
    }
}

fn parse_transport(text: &str) -> Result<Choice, String> {
    match text {
        "auto" => Ok(None),
        "tcp" => Ok(Some(Transport::Tcp)),
        "rdma" | "ib" => Ok(Some(Transport::Rdma)),
        _ => Err("tcp, rdma or auto".to_owned()),
    }
}

fn parse_paths(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(paths @ (1 | 2 | 4 | 8)) => Ok(paths),
        _ => Err("1, 2, 4 or 8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(line: &str) -> Result<Role> {
        Args::try_parse_from(line.split(' '))?.role()
    }

    #[test]
    fn client_and_server_meet_at_the_same_port() {
        let Role::Server(server) = role("rds-bench server --local 10.0.0.1").unwrap() else {
            panic!()
        };
        let line = "rds-bench rr --local 10.0.0.2 --peer 10.0.0.1 --size 4k --count 10";
        let Role::Client(client) = role(line).unwrap() else {
            panic!()
        };
        assert_eq!(server.local, client.peer);
        assert_eq!(
            (client.size, client.count, client.local.port()),
            (4096, 10, 0)
        );
        assert_eq!((client.paths, client.zerocopy), (None, false));
    }

    #[test]
    fn paths_and_zerocopy() {
        let line = "rds-bench stream --local ::1 --peer ::1 --paths 8 --zerocopy";
        let Role::Client(client) = role(line).unwrap() else {
            panic!()
        };
        assert_eq!((client.paths, client.zerocopy), (Some(8), true));
    }

    #[test]
    fn bad_lines() {
        for line in [
            "rds-bench",
            "rds-bench rr --peer ::1 --local ::1 --size 2m",
            "rds-bench rr --peer ::1 --local ::1 --count 0",
            "rds-bench stream --peer ::1 --local ::1 --port 1",
            "rds-bench rr --peer ::1 --local ::1 --paths 0",
            "rds-bench rr --peer ::1 --local ::1 --paths 3",
            "rds-bench rr --peer ::1 --local ::1 --paths 16",
            "rds-bench stream --peer ::1 --local ::1 --zerocopy --size 0",
            "rds-bench server --local ::1 --paths 8",
            "rds-bench server --local ::1 --zerocopy",
            "rds-bench server --local ::1 --port 65535",
        ] {
            assert!(role(line).is_err(), "{line}");
        }
    }
}
