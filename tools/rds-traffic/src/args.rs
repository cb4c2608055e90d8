// SPDX-License-Identifier: GPL-2.0

//! The command line.

use crate::config::{Config, Congestion, Limit, SizeRule};
use anyhow::{bail, Result};
use clap::{Args as Group, Parser, Subcommand};
use rds_cli::{parse_count, parse_duration, parse_size};
use rds_sys::{Transport, RESERVED_PORT};
use std::net::SocketAddr;
use std::time::Duration;

/// Send verified traffic over RDS
///
/// Run one process on each host, or in each network namespace; the order does not matter.
#[derive(Parser)]
#[command(name = "rds-traffic", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Subcommand)]
enum Mode {
    /// Send and receive at the same time
    Peer {
        #[command(flatten)]
        remote: Remote,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        sending: Sending,
    },
    /// Send only
    Send {
        #[command(flatten)]
        remote: Remote,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        sending: Sending,
    },
    /// Receive only; the other side says how much
    Recv {
        #[command(flatten)]
        remote: Remote,
        #[command(flatten)]
        common: Common,
    },
    /// Both ends in this process, over the local address
    #[command(name = "self")]
    Own {
        /// Local address
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
        local: String,
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        sending: Sending,
    },
}

/// Who talks to whom.
#[derive(Group)]
struct Remote {
    /// Local address; normally the one that routing chooses
    #[arg(long, value_name = "ADDRESS")]
    local: Option<String>,
    /// The other side's address
    #[arg(long, value_name = "ADDRESS")]
    peer: String,
    /// The other side's control port, if it is not the same as ours
    #[arg(long, value_name = "PORT")]
    peer_port: Option<u16>,
}

/// What applies to both directions.
#[derive(Clone, Group)]
struct Common {
    /// Control port; the streams use the ports that follow it
    #[arg(long, value_name = "PORT", default_value = "4000")]
    port: u16,
    /// Streams, each over its own pair of sockets (at most 256); both sides must say the same
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    sockets: u16,
    /// Transport: tcp, rdma, loop or auto
    #[arg(long, default_value = "auto", value_parser = parse_transport)]
    transport: TransportChoice,
    /// Type of service
    #[arg(long, default_value = "0")]
    tos: u8,
    /// Send buffer of each socket, in bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    sndbuf: Option<usize>,
    /// Receive buffer of each socket, in bytes
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    rcvbuf: Option<usize>,
    /// Give up when nothing arrives on either side for this time
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = parse_duration)]
    timeout: Duration,
    /// Give up when the other side does not turn up within this time
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = parse_duration)]
    start_timeout: Duration,
    /// How to learn that congestion is over: monitor (by message) or poll
    #[arg(long, value_name = "HOW", default_value = "monitor", value_parser = parse_congestion)]
    congestion: Congestion,
    /// Stop reading for this time after every 64 messages, to cause congestion
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_duration)]
    recv_pause: Duration,
    /// Measure round-trip times beside the traffic
    #[arg(long)]
    rtt: bool,
    /// Print a line to standard error this often
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    progress: Option<Duration>,
    /// Print one JSON document at the end
    #[arg(long)]
    json: bool,
}

/// What to send.
#[derive(Clone, Group)]
struct Sending {
    /// Messages to send, shared among the streams
    #[arg(long, value_name = "N", default_value = "1000", value_parser = parse_count)]
    count: u64,
    /// Send for this time instead of a number of messages
    #[arg(long, value_name = "TIME", conflicts_with = "count", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Sizes of the messages: small (up to 1 KiB), mixed, a number, or MIN-MAX
    #[arg(long, default_value = "mixed", value_parser = SizeRule::parse)]
    sizes: SizeRule,
    /// Largest message of the mixture, in bytes [default: 1 MiB or what the send buffer allows]
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    max_size: Option<usize>,
    /// What sizes and contents are derived from
    #[arg(long, default_value = "1", value_parser = parse_count)]
    seed: u64,
    /// Send from our pages without copying (TCP only)
    #[arg(long)]
    zerocopy: bool,
}

/// A transport to insist on.
type TransportChoice = Option<Transport>;

/// What to run.
pub(crate) struct Run {
    /// One for each endpoint of this process.
    pub(crate) configs: Vec<Config>,
    pub(crate) json: bool,
}

impl Args {
    /// Finds the addresses and checks what the options mean together.
    pub(crate) fn resolve(self) -> Result<Run> {
        match self.mode {
            Mode::Peer {
                remote,
                common,
                sending,
            } => one(&remote, common, Some(sending), false),
            Mode::Send {
                remote,
                common,
                sending,
            } => one(&remote, common, Some(sending), true),
            Mode::Recv { remote, common } => one(&remote, common, None, false),
            Mode::Own {
                local,
                common,
                sending,
            } => both(&local, common, sending),
        }
    }
}

fn one(remote: &Remote, common: Common, sending: Option<Sending>, one_way: bool) -> Result<Run> {
    let mut peer = rds_cli::resolve(&remote.peer)?;
    let mut local = rds_cli::source_address(remote.local.as_deref(), peer)?;
    local.set_port(common.port);
    peer.set_port(remote.peer_port.unwrap_or(common.port));
    let json = common.json;
    let config = config(local, peer, common, sending, one_way)?;
    Ok(Run {
        configs: vec![config],
        json,
    })
}

fn both(local: &str, common: Common, sending: Sending) -> Result<Run> {
    let mut first = rds_cli::resolve(local)?;
    let mut second = first;
    first.set_port(common.port);
    second.set_port(common.port.saturating_add(common.sockets).saturating_add(1));
    let json = common.json;
    let there = config(first, second, common.clone(), Some(sending.clone()), false)?;
    let back = config(second, first, common, Some(sending), false)?;
    Ok(Run {
        configs: vec![there, back],
        json,
    })
}

fn config(
    local: SocketAddr,
    peer: SocketAddr,
    common: Common,
    sending: Option<Sending>,
    one_way: bool,
) -> Result<Config> {
    check_ports(local, common.sockets)?;
    check_ports(peer, common.sockets)?;
    if local == peer {
        bail!("both sides have address and port {local}; give one of them another --port");
    }
    let sending = sending.unwrap_or_else(Sending::nothing);
    let limit = sending.limit();
    Ok(Config {
        local,
        peer,
        one_way,
        streams: common.sockets,
        transport: common.transport,
        tos: common.tos,
        sndbuf: common.sndbuf,
        rcvbuf: common.rcvbuf,
        timeout: common.timeout,
        start_timeout: common.start_timeout,
        congestion: common.congestion,
        recv_pause: common.recv_pause,
        rtt: common.rtt,
        progress: common.progress,
        limit,
        sizes: sending.sizes,
        max_size: sending.max_size,
        seed: sending.seed,
        zerocopy: sending.zerocopy,
    })
}

impl Sending {
    /// What a side that only receives sends.
    fn nothing() -> Self {
        Self {
            count: 0,
            duration: None,
            sizes: SizeRule::Small,
            max_size: None,
            seed: 0,
            zerocopy: false,
        }
    }

    fn limit(&self) -> Limit {
        self.duration
            .map_or(Limit::Messages(self.count), Limit::Time)
    }
}

/// All ports of a side must exist and be ones that can be bound.
fn check_ports(first: SocketAddr, streams: u16) -> Result<()> {
    if first.port() <= RESERVED_PORT || first.port().checked_add(streams).is_none() {
        bail!(
            "ports {} and the {streams} that follow are not all usable",
            first.port()
        );
    }
    Ok(())
}

fn parse_transport(text: &str) -> Result<TransportChoice, String> {
    match text {
        "auto" => Ok(None),
        "tcp" => Ok(Some(Transport::Tcp)),
        "rdma" | "ib" => Ok(Some(Transport::Rdma)),
        "loop" => Ok(Some(Transport::Loopback)),
        _ => Err("tcp, rdma, loop or auto".to_owned()),
    }
}

fn parse_congestion(text: &str) -> Result<Congestion, String> {
    match text {
        "monitor" => Ok(Congestion::Monitor),
        "poll" => Ok(Congestion::Poll),
        _ => Err("monitor or poll".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rds_sys::MAX_MESSAGE;

    fn resolve(line: &str) -> Result<Run> {
        Args::try_parse_from(line.split(' '))?.resolve()
    }

    #[test]
    fn peer_uses_the_same_port_on_both_sides() {
        let line = "rds-traffic peer --local 10.0.0.1 --peer 10.0.0.2 --port 5000 --sockets 4";
        let run = resolve(line).unwrap();
        let config = &run.configs[0];
        assert_eq!(config.local.to_string(), "10.0.0.1:5000");
        assert_eq!(config.peer.to_string(), "10.0.0.2:5000");
        assert_eq!((config.streams, config.limit), (4, Limit::Messages(1000)));
    }

    #[test]
    fn receiver_sends_nothing() {
        let run = resolve("rds-traffic recv --local 10.0.0.1 --peer 10.0.0.2").unwrap();
        assert_eq!(run.configs[0].limit, Limit::Messages(0));
    }

    #[test]
    fn both_ends_of_self_fit_together() {
        let run = resolve("rds-traffic self --sockets 3 --duration 5").unwrap();
        let [a, b] = run.configs.as_slice() else {
            panic!()
        };
        assert_eq!((a.local, a.peer), (b.peer, b.local));
        assert_eq!(b.local.port(), a.local.port() + 4);
        assert_eq!(a.limit, Limit::Time(Duration::from_secs(5)));
    }

    #[test]
    fn impossible_combinations() {
        for line in [
            "rds-traffic peer",
            "rds-traffic peer --local ::1 --peer ::1",
            "rds-traffic recv --local ::1 --peer ::1 --peer-port 5 --port 1",
            "rds-traffic recv --local ::1 --peer ::1 --peer-port 5 --port 65535",
            "rds-traffic send --local ::1 --peer ::1 --peer-port 5 --count 5 --duration 5",
            "rds-traffic recv --local ::1 --peer ::1 --peer-port 5 --count 5",
            "rds-traffic self --transport udp",
        ] {
            assert!(resolve(line).is_err(), "{line}");
        }
    }

    #[test]
    fn largest_mixture_is_what_the_kernel_takes() {
        assert_eq!(
            SizeRule::parse("mixed").unwrap().wanted(None),
            1..=MAX_MESSAGE
        );
    }
}
