// SPDX-License-Identifier: GPL-2.0

//! The command line.

use anyhow::Result;
use clap::Parser;
use rds_cli::{parse_count, parse_duration};
use std::net::SocketAddr;
use std::time::Duration;

/// Sockets, and thereby outstanding pings, if the user does not say otherwise.
const SOCKETS: u64 = 8;

/// Test whether a host answers over RDS
#[derive(Parser)]
#[command(name = "rds-ping", version)]
pub(crate) struct Args {
    /// Stop after this many pings
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    count: Option<u64>,
    /// Time between two pings, in seconds or with unit ms or us
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = parse_duration)]
    interval: Duration,
    /// Local address to ping from
    #[arg(short = 'I', long = "local", value_name = "ADDRESS")]
    local: Option<String>,
    /// Type of service
    #[arg(short = 'Q', long, value_name = "TOS", default_value = "0", value_parser = parse_tos)]
    tos: u8,
    /// Sockets to ping from, one for each outstanding ping (at most 32)
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=32))]
    sockets: Option<u64>,
    /// Time after which a ping counts as unanswered
    #[arg(short = 'W', long, value_name = "TIME", default_value = "5", value_parser = parse_duration)]
    timeout: Duration,
    /// Print one JSON document at the end and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Host to ping, by IPv4 address, IPv6 address or name
    destination: String,
}

/// What to do, with all addresses known.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    /// Pings to send; `None` means until the user stops it.
    pub(crate) count: Option<u64>,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) sockets: usize,
    pub(crate) tos: u8,
    /// Say nothing while pinging.
    pub(crate) quiet: bool,
}

impl Args {
    /// Finds the addresses and settles the defaults that depend on other options.
    pub(crate) fn plan(self) -> Result<Plan> {
        let destination = rds_cli::resolve(&self.destination)?;
        let source = rds_cli::source_address(self.local.as_deref(), destination)?;
        let count = self.count.filter(|count| *count > 0);
        let sockets = self
            .sockets
            .unwrap_or_else(|| count.map_or(SOCKETS, |n| n.min(SOCKETS)));
        Ok(Plan {
            source,
            destination,
            count,
            interval: self.interval,
            timeout: self.timeout,
            sockets: usize::try_from(sockets)?,
            tos: self.tos,
            quiet: self.json,
        })
    }
}

fn parse_tos(text: &str) -> Result<u8, String> {
    u8::try_from(parse_count(text)?).map_err(|_| format!("'{text}' is more than 255"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Plan {
        Args::try_parse_from(line.split(' '))
            .unwrap()
            .plan()
            .unwrap()
    }

    #[test]
    fn the_options_of_rds_tools() {
        let plan = plan("rds-ping -c 3 -i 20ms -I 10.0.0.1 -Q 4 10.0.0.2");
        assert_eq!(plan.count, Some(3));
        assert_eq!(plan.interval, Duration::from_millis(20));
        assert_eq!(plan.source.to_string(), "10.0.0.1:0");
        assert_eq!((plan.tos, plan.sockets), (4, 3));
    }

    #[test]
    fn sockets_follow_the_count_unless_given() {
        assert_eq!(plan("rds-ping -I ::1 ::1").sockets, 8);
        assert_eq!(plan("rds-ping -c 99 -I ::1 ::1").sockets, 8);
        assert_eq!(plan("rds-ping -c 2 -n 5 -I ::1 ::1").sockets, 5);
        assert_eq!(plan("rds-ping -c 0 -I ::1 ::1").count, None);
    }

    #[test]
    fn bad_lines() {
        for line in [
            "rds-ping",
            "rds-ping -Q 256 ::1",
            "rds-ping -n 33 ::1",
            "rds-ping -i x ::1",
        ] {
            assert!(Args::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
