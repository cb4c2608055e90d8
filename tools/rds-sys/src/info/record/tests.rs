// SPDX-License-Identifier: GPL-2.0

//! Records built byte by byte from the layout tables of the user interface.

use super::*;

fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(bytes);
}

fn name<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn mapped(last: u8) -> [u8; 16] {
    Ipv4Addr::new(10, 0, 0, last).to_ipv6_mapped().octets()
}

fn global(last: u8) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&[0x20, 0x01]);
    bytes[15] = last;
    bytes
}

#[test]
fn counter() {
    let mut raw = name::<32>("recv_queued").to_vec();
    put(&mut raw, &77u64.to_ne_bytes());
    assert_eq!(raw.len(), 40);
    let counter = Counter::parse(Raw(&raw), Family::V4);
    assert_eq!(
        counter,
        Counter {
            name: "recv_queued".into(),
            value: 77
        }
    );
    let full = [b'x'; 40];
    assert_eq!(Counter::parse(Raw(&full), Family::V4).name.len(), 32);
}

#[test]
fn connection_of_both_families() {
    let mut v4 = Vec::new();
    put(&mut v4, &5u64.to_ne_bytes());
    put(&mut v4, &6u64.to_ne_bytes());
    put(&mut v4, &[10, 0, 0, 1, 10, 0, 0, 2]);
    put(&mut v4, &name::<16>("tcp"));
    put(&mut v4, &[5, 3]);
    assert_eq!(v4.len(), 42);
    let connection = Connection::parse(Raw(&v4), Family::V4);
    assert_eq!((connection.next_tx, connection.next_rx), (5, 6));
    assert_eq!(connection.remote.to_string(), "10.0.0.2");
    assert_eq!(connection.transport, "tcp");
    assert_eq!(connection.tos, 3);
    assert_eq!(connection.flag_letters(), "s-C-");

    let mut v6 = v4[..16].to_vec();
    put(&mut v6, &mapped(1));
    put(&mut v6, &mapped(2));
    put(&mut v6, &v4[24..41]);
    assert_eq!(v6.len(), 65);
    // Mainline leaves the type of service out of the longer record.
    assert_eq!(
        Connection::parse(Raw(&v6), Family::V6),
        Connection {
            tos: 0,
            ..connection
        }
    );
}

#[test]
fn flags_of_ancient_kernels() {
    let mut raw = [0; 42];
    raw[39] = 10;
    assert_eq!(
        Connection::parse(Raw(&raw), Family::V4).flag_letters(),
        "-c-E"
    );
}

#[test]
fn message_of_both_families() {
    let tail = [0x0f, 0xa0, 0x0f, 0xa1, 0, 9];
    let mut v4 = Vec::new();
    put(&mut v4, &1u64.to_ne_bytes());
    put(&mut v4, &1000u32.to_ne_bytes());
    let mut v6 = v4.clone();
    put(&mut v4, &[10, 0, 0, 1, 10, 0, 0, 2]);
    put(&mut v4, &tail);
    put(&mut v6, &global(1));
    put(&mut v6, &global(2));
    put(&mut v6, &tail);
    assert_eq!((v4.len(), v6.len()), (26, 50));
    let message = Message::parse(Raw(&v4), Family::V4);
    assert_eq!((message.local_port, message.remote_port), (4000, 4001));
    assert_eq!((message.sequence, message.bytes, message.tos), (1, 1000, 9));
    let message = Message::parse(Raw(&v6), Family::V6);
    assert_eq!((message.local_port, message.remote_port), (4000, 4001));
    assert_eq!(message.remote.to_string(), "2001::2");
}

#[test]
fn socket_of_both_families() {
    let mut v4 = 106_496u32.to_ne_bytes().to_vec();
    let mut v6 = v4.clone();
    put(&mut v4, &[10, 0, 0, 1, 0, 0, 0, 0]);
    put(&mut v6, &mapped(1));
    put(&mut v6, &[0; 16]);
    for raw in [&mut v4, &mut v6] {
        put(raw, &[0x0f, 0xa0, 0, 0]);
        put(raw, &4096u32.to_ne_bytes());
        put(raw, &123u64.to_ne_bytes());
    }
    assert_eq!((v4.len(), v6.len()), (28, 52));
    let socket = SocketInfo::parse(Raw(&v4), Family::V4);
    assert_eq!(
        (socket.send_buffer, socket.recv_buffer, socket.inode),
        (106_496, 4096, 123)
    );
    assert_eq!(socket.bound_port, 4000);
    let six = SocketInfo::parse(Raw(&v6), Family::V6);
    assert_eq!(six.bound, socket.bound);
    assert_eq!((six.recv_buffer, six.inode), (4096, 123));
}

#[test]
fn tcp_socket_of_both_families() {
    let mut v4 = vec![10, 0, 0, 1, 0x40, 0x01, 10, 0, 0, 2, 0x9c, 0x40];
    let mut v6 = mapped(1).to_vec();
    put(&mut v6, &[0x40, 0x01]);
    put(&mut v6, &mapped(2));
    put(&mut v6, &[0x9c, 0x40]);
    for raw in [&mut v4, &mut v6] {
        put(raw, &48u64.to_ne_bytes());
        put(raw, &7u64.to_ne_bytes());
        for number in [1u32, 2, 3] {
            put(raw, &number.to_ne_bytes());
        }
    }
    put(&mut v4, &[0]);
    assert_eq!((v4.len(), v6.len()), (41, 64));
    let socket = TcpSocket::parse(Raw(&v4), Family::V4);
    assert_eq!((socket.local_port, socket.remote_port), (16385, 40000));
    assert_eq!((socket.header_remaining, socket.data_remaining), (48, 7));
    assert_eq!((socket.last_sent_nxt, socket.last_seen_una), (1, 3));
    assert_eq!(TcpSocket::parse(Raw(&v6), Family::V6), socket);
}

#[test]
fn ib_connection_of_both_families() {
    let mut tail = global(1).to_vec();
    put(&mut tail, &global(2));
    for number in [256u32, 1024, 8, 4096, 256] {
        put(&mut tail, &number.to_ne_bytes());
    }
    put(&mut tail, &[4, 5, 0, 0]);
    put(&mut tail, &12u32.to_ne_bytes());
    let mut v4 = vec![10, 0, 0, 1, 10, 0, 0, 2];
    put(&mut v4, &tail);
    let mut v6 = mapped(1).to_vec();
    put(&mut v6, &mapped(2));
    put(&mut v6, &tail);
    assert_eq!((v4.len(), v6.len()), (68, 92));
    let connection = IbConnection::parse(Raw(&v4), Family::V4);
    assert_eq!(connection.remote_gid.to_string(), "2001::2");
    assert_eq!(
        (connection.max_recv_wr, connection.rdma_mr_size),
        (1024, 256)
    );
    assert_eq!(
        (connection.tos, connection.sl, connection.cache_allocs),
        (4, 5, 12)
    );
    assert_eq!(IbConnection::parse(Raw(&v6), Family::V6), connection);
}

#[test]
fn path() {
    let mut raw = Vec::new();
    put(&mut raw, &5u64.to_ne_bytes());
    put(&mut raw, &6u64.to_ne_bytes());
    put(&mut raw, &mapped(1));
    put(&mut raw, &global(2));
    put(&mut raw, &name::<16>("tcp"));
    put(&mut raw, &7u32.to_ne_bytes());
    put(&mut raw, &8u32.to_ne_bytes());
    put(&mut raw, &[1, 2, 4, 3, 0, 0, 0, 0]);
    assert_eq!(raw.len(), 80);
    let path = Path::parse(Raw(&raw), Family::V6);
    assert_eq!(
        path,
        Path {
            local: "10.0.0.1".parse().unwrap(),
            remote: "2001::2".parse().unwrap(),
            transport: "tcp".into(),
            tos: 1,
            index: 2,
            paths: 4,
            state: "up",
            next_tx: 5,
            next_rx: 6,
            waiting: 7,
            losses: 8,
        }
    );
    raw[75] = 200;
    assert_eq!(Path::parse(Raw(&raw), Family::V4).state, "unknown");
}
