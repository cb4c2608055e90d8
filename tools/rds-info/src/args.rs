// SPDX-License-Identifier: GPL-2.0

//! The command line.

use crate::section::Section;
use clap::{ArgAction, Parser};

/// Show what the RDS kernel modules know
///
/// Without options that select something everything is shown.
#[derive(Parser)]
#[command(name = "rds-info", version)]
pub(crate) struct Args {
    /// Counters
    #[arg(short = 'c', long)]
    counters: bool,
    /// Sockets
    #[arg(short = 'k', long)]
    sockets: bool,
    /// Connections
    #[arg(short = 'n', long)]
    connections: bool,
    /// Messages in the receive queues
    #[arg(short = 'r', long)]
    receive_queue: bool,
    /// Messages in the send queues
    #[arg(short = 's', long)]
    send_queue: bool,
    /// Messages that were sent and not acknowledged yet
    #[arg(short = 't', long)]
    retransmit_queue: bool,
    /// Sockets of the TCP transport
    #[arg(short = 'T', long)]
    tcp: bool,
    /// Paths of connections (not among everything; only the Weft modules have it)
    #[arg(short = 'p', long)]
    paths: bool,
    /// Connections of the RDMA transport
    #[arg(short = 'I', long)]
    ib: bool,
    /// Show IPv6 too, not only IPv4
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Show more about RDMA connections
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    /// What to show, in the order of showing.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let chosen: Vec<Section> = Section::ALL
            .into_iter()
            .chain([Section::Paths])
            .filter(|section| self.wants(*section))
            .collect();
        if chosen.is_empty() {
            Section::ALL.to_vec()
        } else {
            chosen
        }
    }

    fn wants(&self, section: Section) -> bool {
        match section {
            Section::Ib => self.ib,
            Section::Tcp => self.tcp,
            Section::Counters => self.counters,
            Section::Sockets => self.sockets,
            Section::Connections => self.connections,
            Section::Receive => self.receive_queue,
            Section::Send => self.send_queue,
            Section::Retransmit => self.retransmit_queue,
            Section::Paths => self.paths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_chosen_is_everything() {
        assert_eq!(
            Args::parse_from(["rds-info", "-a"]).sections(),
            Section::ALL
        );
    }

    #[test]
    fn order_is_fixed() {
        let args = Args::parse_from(["rds-info", "-vv", "-sc", "-T"]);
        assert_eq!(
            args.sections(),
            [Section::Tcp, Section::Counters, Section::Send]
        );
        assert_eq!(args.verbose, 2);
        let args = Args::parse_from(["rds-info", "-pn"]);
        assert_eq!(args.sections(), [Section::Connections, Section::Paths]);
    }
}
