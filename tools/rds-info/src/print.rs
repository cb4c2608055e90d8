// SPDX-License-Identifier: GPL-2.0

//! The tables for people, with the titles and columns of rds-tools.

use crate::column::Lines;
use crate::section::{Content, Records, Section};
use rds_sys::info::{
    Connection, Counter, Family, IbConnection, Message, Path, SocketInfo, TcpSocket,
};

/// The section as text, beginning with an empty line.
pub(crate) fn text(section: Section, content: &Content, verbose: bool) -> String {
    let width = match content.family {
        Family::V4 => 15,
        Family::V6 => 37,
    };
    match &content.records {
        Records::Counters(records) => counters(records),
        Records::Connections(records) => connections(records, width),
        Records::Messages(records) => messages(section, records, width),
        Records::Sockets(records) => sockets(records, width),
        Records::Tcp(records) => tcp(records, width),
        Records::Ib(records) => ib(records, width, verbose),
        Records::Paths(records) => paths(records, width),
    }
}

fn counters(records: &[Counter]) -> String {
    let mut lines = Lines::new("Counters", &[("CounterName", 32), ("Value", 16)]);
    for counter in records {
        lines.row(&[&counter.name, &counter.value], "");
    }
    lines.finish()
}

fn sockets(records: &[SocketInfo], width: usize) -> String {
    let mut lines = Lines::new(
        "RDS Sockets",
        &[
            ("BoundAddr", width),
            ("BPort", 5),
            ("ConnAddr", width),
            ("CPort", 5),
            ("SndBuf", 10),
            ("RcvBuf", 10),
            ("Inode", 8),
        ],
    );
    for socket in records {
        lines.row(
            &[
                &socket.bound,
                &socket.bound_port,
                &socket.connected,
                &socket.connected_port,
                &socket.send_buffer,
                &socket.recv_buffer,
                &socket.inode,
            ],
            "",
        );
    }
    lines.finish()
}

fn connections(records: &[Connection], width: usize) -> String {
    let mut lines = Lines::new(
        "RDS Connections",
        &[
            ("LocalAddr", width),
            ("RemoteAddr", width),
            ("Tos", 4),
            ("NextTX", 16),
            ("NextRX", 16),
            ("Flgs", 4),
        ],
    );
    for connection in records {
        lines.row(
            &[
                &connection.local,
                &connection.remote,
                &connection.tos,
                &connection.next_tx,
                &connection.next_rx,
                &connection.flag_letters(),
            ],
            "",
        );
    }
    lines.finish()
}

fn paths(records: &[Path], width: usize) -> String {
    let mut lines = Lines::new(
        "RDS Paths",
        &[
            ("LocalAddr", width),
            ("RemoteAddr", width),
            ("Tos", 4),
            ("Path", 5),
            ("State", 13),
            ("NextTX", 16),
            ("NextRX", 16),
            ("Waiting", 8),
            ("Losses", 7),
        ],
    );
    for path in records {
        let place = match path.paths {
            0 => format!("{}/?", path.index),
            paths => format!("{}/{paths}", path.index),
        };
        lines.row(
            &[
                &path.local,
                &path.remote,
                &path.tos,
                &place,
                &path.state,
                &path.next_tx,
                &path.next_rx,
                &path.waiting,
                &path.losses,
            ],
            "",
        );
    }
    lines.finish()
}

fn messages(section: Section, records: &[Message], width: usize) -> String {
    let title = match section {
        Section::Receive => "Receive Message Queue",
        Section::Retransmit => "Retransmit Message Queue",
        _ => "Send Message Queue",
    };
    let mut lines = Lines::new(
        title,
        &[
            ("LocalAddr", width),
            ("LPort", 5),
            ("RemoteAddr", width),
            ("RPort", 5),
            ("Tos", 4),
            ("Seq", 16),
            ("Bytes", 10),
        ],
    );
    for message in records {
        lines.row(
            &[
                &message.local,
                &message.local_port,
                &message.remote,
                &message.remote_port,
                &message.tos,
                &message.sequence,
                &message.bytes,
            ],
            "",
        );
    }
    lines.finish()
}

fn tcp(records: &[TcpSocket], width: usize) -> String {
    let mut lines = Lines::new(
        "TCP Connections",
        &[
            ("LocalAddr", width),
            ("LPort", 5),
            ("RemoteAddr", width),
            ("RPort", 5),
            ("HdrRemain", 10),
            ("DataRemain", 10),
            ("SentNxt", 10),
            ("ExpectUna", 10),
            ("SeenUna", 10),
        ],
    );
    for socket in records {
        lines.row(
            &[
                &socket.local,
                &socket.local_port,
                &socket.remote,
                &socket.remote_port,
                &socket.header_remaining,
                &socket.data_remaining,
                &socket.last_sent_nxt,
                &socket.last_expected_una,
                &socket.last_seen_una,
            ],
            "",
        );
    }
    lines.finish()
}

fn ib(records: &[IbConnection], width: usize, verbose: bool) -> String {
    let mut lines = Lines::new(
        "RDS IB Connections",
        &[
            ("LocalAddr", width),
            ("RemoteAddr", width),
            ("Tos", 4),
            ("SL", 3),
            ("LocalDev", 32),
            ("RemoteDev", 32),
        ],
    );
    for connection in records {
        let details = if verbose {
            ib_details(connection)
        } else {
            String::new()
        };
        lines.row(
            &[
                &connection.local,
                &connection.remote,
                &connection.tos,
                &connection.sl,
                &connection.local_gid,
                &connection.remote_gid,
            ],
            &details,
        );
    }
    lines.finish()
}

fn ib_details(connection: &IbConnection) -> String {
    format!(
        "  send_wr={}, recv_wr={}, send_sge={}, rdma_mr_max={}, rdma_mr_size={}, cache_allocs={}",
        connection.max_send_wr,
        connection.max_recv_wr,
        connection.max_send_sge,
        connection.rdma_mr_max,
        connection.rdma_mr_size,
        connection.cache_allocs
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        text.lines().collect()
    }

    #[test]
    fn counters_as_in_rds_tools() {
        let records = Records::Counters(vec![Counter {
            name: "conn_reset".into(),
            value: 3,
        }]);
        let content = Content {
            family: Family::V4,
            records,
        };
        let text = text(Section::Counters, &content, false);
        assert_eq!(
            lines(&text),
            [
                "",
                "Counters:",
                "                     CounterName            Value",
                "                      conn_reset                3",
            ]
        );
    }

    #[test]
    fn messages_as_in_rds_tools() {
        let records = Records::Messages(vec![Message {
            local: "10.0.0.1".parse().unwrap(),
            local_port: 4000,
            remote: "10.0.0.2".parse().unwrap(),
            remote_port: 4001,
            tos: 0,
            sequence: 12,
            bytes: 1024,
        }]);
        let content = Content {
            family: Family::V4,
            records,
        };
        let text = text(Section::Retransmit, &content, false);
        assert_eq!(
            lines(&text)[1..],
            [
                "Retransmit Message Queue:",
                "      LocalAddr LPort      RemoteAddr RPort  Tos              Seq      Bytes",
                "       10.0.0.1  4000        10.0.0.2  4001    0               12       1024",
            ]
        );
    }

    #[test]
    fn paths_by_number() {
        let path = Path {
            local: "10.0.0.1".parse().unwrap(),
            remote: "10.0.0.2".parse().unwrap(),
            transport: "tcp".into(),
            tos: 0,
            index: 3,
            paths: 8,
            state: "up",
            next_tx: 12,
            next_rx: 1,
            waiting: 2,
            losses: 1,
        };
        let unknown = Path {
            index: 0,
            paths: 0,
            state: "connecting",
            ..path.clone()
        };
        let content = Content {
            family: Family::V4,
            records: Records::Paths(vec![path, unknown]),
        };
        let text = text(Section::Paths, &content, false);
        let words: Vec<Vec<&str>> = lines(&text)[3..]
            .iter()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words[0][3..], ["3/8", "up", "12", "1", "2", "1"]);
        assert_eq!(words[1][3..5], ["0/?", "connecting"]);
    }

    #[test]
    fn ipv6_gets_wider_columns() {
        let records = Records::Connections(vec![Connection {
            local: "2001:db8::1".parse().unwrap(),
            remote: "2001:db8::2".parse().unwrap(),
            transport: "tcp".into(),
            tos: 0,
            next_tx: 5,
            next_rx: 6,
            flags: 5,
        }]);
        let content = Content {
            family: Family::V6,
            records,
        };
        let text = text(Section::Connections, &content, false);
        let row = lines(&text)[3];
        assert_eq!(row.find("2001:db8::2"), Some(38 + 37 - 11));
        assert!(row.ends_with("6 s-C-"), "{row}");
    }
}
