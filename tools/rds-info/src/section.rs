// SPDX-License-Identifier: GPL-2.0

//! The sections of the output and where they come from.

use anyhow::Result;
use rds_sys::info::{
    self, Connection, Counter, Family, IbConnection, Message, Path, SocketInfo, Table, TcpSocket,
};
use rds_sys::Socket;
use serde_json::Value;
use std::io;

/// Number of the error "protocol not available".
const ENOPROTOOPT: i32 = 92;

/// One section of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Ib,
    Tcp,
    Counters,
    Sockets,
    Connections,
    Receive,
    Send,
    Retransmit,
    Paths,
}

impl Section {
    /// All sections that rds-tools have, in the order in which rds-tools print them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Ib,
        Self::Tcp,
        Self::Counters,
        Self::Sockets,
        Self::Connections,
        Self::Receive,
        Self::Send,
        Self::Retransmit,
    ];

    /// What it is, for people.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Ib => "IB transport connections",
            Self::Tcp => "TCP transport sockets",
            Self::Counters => "statistic counters",
            Self::Sockets => "sockets",
            Self::Connections => "connections",
            Self::Receive => "recv queue messages",
            Self::Send => "send queue messages",
            Self::Retransmit => "retransmit queue messages",
            Self::Paths => "paths of connections",
        }
    }

    /// What it is, for programs.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Ib => "ib_connections",
            Self::Tcp => "tcp_sockets",
            Self::Counters => "counters",
            Self::Sockets => "sockets",
            Self::Connections => "connections",
            Self::Receive => "receive_queue",
            Self::Send => "send_queue",
            Self::Retransmit => "retransmit_queue",
            Self::Paths => "paths",
        }
    }

    fn table(self) -> Table {
        match self {
            Self::Ib => Table::IbConnections,
            Self::Tcp => Table::TcpSockets,
            Self::Counters => Table::Counters,
            Self::Sockets => Table::Sockets,
            Self::Connections => Table::Connections,
            Self::Receive => Table::RecvQueue,
            Self::Send => Table::SendQueue,
            Self::Retransmit => Table::RetransQueue,
            Self::Paths => Table::Paths,
        }
    }
}

/// The records of a section.
pub(crate) enum Records {
    Counters(Vec<Counter>),
    Connections(Vec<Connection>),
    Messages(Vec<Message>),
    Sockets(Vec<SocketInfo>),
    Tcp(Vec<TcpSocket>),
    Ib(Vec<IbConnection>),
    Paths(Vec<Path>),
}

/// The records and the addresses they can hold.
pub(crate) struct Content {
    pub(crate) family: Family,
    pub(crate) records: Records,
}

impl Content {
    /// Asks the kernel; one that has no IPv6 table is asked for the IPv4 one.
    pub(crate) fn read(socket: &Socket, section: Section, family: Family) -> io::Result<Self> {
        match Records::read(socket, section, family) {
            Ok(records) => Ok(Self { family, records }),
            Err(error) if family == Family::V6 && error.raw_os_error() == Some(ENOPROTOOPT) => {
                let records = Records::read(socket, section, Family::V4)?;
                Ok(Self {
                    family: Family::V4,
                    records,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// The records as a JSON array.
    pub(crate) fn json(&self) -> Result<Value> {
        let value = match &self.records {
            Records::Counters(records) => serde_json::to_value(records),
            Records::Connections(records) => connections(records),
            Records::Messages(records) => serde_json::to_value(records),
            Records::Sockets(records) => serde_json::to_value(records),
            Records::Tcp(records) => serde_json::to_value(records),
            Records::Ib(records) => serde_json::to_value(records),
            Records::Paths(records) => serde_json::to_value(records),
        };
        Ok(value?)
    }
}

impl Records {
    fn read(socket: &Socket, section: Section, family: Family) -> io::Result<Self> {
        let table = section.table();
        match section {
            Section::Counters => info::read(socket, table, family).map(Self::Counters),
            Section::Connections => info::read(socket, table, family).map(Self::Connections),
            Section::Sockets => info::read(socket, table, family).map(Self::Sockets),
            Section::Tcp => info::read(socket, table, family).map(Self::Tcp),
            Section::Ib => info::read(socket, table, family).map(Self::Ib),
            Section::Paths => {
                let mut paths: Vec<Path> = info::read(socket, table, family)?;
                // There is one list for both families.
                paths.retain(|path| family == Family::V6 || path.local.is_ipv4());
                Ok(Self::Paths(paths))
            }
            Section::Receive | Section::Send | Section::Retransmit => {
                info::read(socket, table, family).map(Self::Messages)
            }
        }
    }
}

/// Connections with the flags spelt out.
fn connections(records: &[Connection]) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(records)?;
    let entries = value.as_array_mut().into_iter().flatten();
    for (entry, record) in entries.zip(records) {
        let set = |flag: u8| record.flags & flag != 0;
        entry["sending"] = set(Connection::SENDING).into();
        entry["connecting"] = set(Connection::CONNECTING).into();
        entry["connected"] = set(Connection::CONNECTED).into();
        entry["error"] = set(Connection::ERROR).into();
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_a_connection_has_words_for_the_flags() {
        let record = Connection {
            local: "10.0.0.1".parse().unwrap(),
            remote: "10.0.0.2".parse().unwrap(),
            transport: "tcp".into(),
            tos: 0,
            next_tx: 1,
            next_rx: 2,
            flags: Connection::CONNECTED,
        };
        let records = Records::Connections(vec![record]);
        let json = Content {
            family: Family::V4,
            records,
        }
        .json()
        .unwrap();
        assert_eq!(json[0]["connected"], true);
        assert_eq!(json[0]["sending"], false);
        assert_eq!(json[0]["remote"], "10.0.0.2");
    }
}
