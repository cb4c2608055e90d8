// SPDX-License-Identifier: GPL-2.0

//! What the snapshots list: counters, connections, messages, sockets.
//!
//! Only the caller's namespace is shown, except for the counters, which are those of the module.

use crate::{
    conn::Conn,
    incoming::Incoming,
    info::Sink,
    message::Message,
    path::Path,
    queue::TxQueue,
    sock::{
        RdsSock,
        RdsSockExt,
        UserSock, //
    },
};
use kernel::sync::Arc;
use weft_proto::rds::{
    addr::Addr,
    counters::{
        Core,
        Drops, //
    },
    info as record,
    sockaddr::Endpoint,
    state::PathState,
    uapi::info as option, //
};

/// Which list of a path.
#[derive(Clone, Copy)]
enum Queue {
    Send,
    Unacked,
}

/// Fills a snapshot; `None` if there is no such option.
pub(crate) fn fill(sk: &UserSock, number: i32, sink: &mut Sink) -> Option<()> {
    match number {
        option::COUNTERS => counters(sk, sink),
        option::CONNECTIONS => connections(sk, sink, false),
        option::CONNECTIONS6 => connections(sk, sink, true),
        option::SEND_MESSAGES => queued(sk, sink, Queue::Send, false),
        option::SEND_MESSAGES6 => queued(sk, sink, Queue::Send, true),
        option::RETRANS_MESSAGES => queued(sk, sink, Queue::Unacked, false),
        option::RETRANS_MESSAGES6 => queued(sk, sink, Queue::Unacked, true),
        option::RECV_MESSAGES => received(sk, sink, false),
        option::RECV_MESSAGES6 => received(sk, sink, true),
        option::SOCKETS => sockets(sk, sink, false),
        option::SOCKETS6 => sockets(sk, sink, true),
        option::PATHS => paths(sk, sink),
        other => {
            let mut found = None;
            sk.rds.transports.for_each(|transport| {
                found = found.or_else(|| transport.info(&sk.net, other, sink));
            });
            return found;
        }
    }
    Some(())
}

fn counters(sk: &UserSock, sink: &mut Sink) {
    sink.begin::<record::Counter>();
    for (index, name) in Core::NAMES.iter().enumerate() {
        sink.push(&record::Counter::new(name, sk.rds.counter(index)));
    }
    sk.rds.transports.for_each(|transport| {
        transport.counters(&mut |name, value| sink.push(&record::Counter::new(name, value)));
    });
    // Behind all that C has, so that what counts by position is not led astray.
    for (index, name) in Drops::NAMES.iter().enumerate() {
        sink.push(&record::Counter::new(name, sk.rds.drop_counter(index)));
    }
}

fn connections(sk: &UserSock, sink: &mut Sink, v6: bool) {
    if v6 {
        sink.begin::<record::Connection6>();
    } else {
        sink.begin::<record::Connection>();
    }
    sk.net.for_each_connection(|conn| {
        let Some(full) = connection(conn) else {
            return;
        };
        if v6 {
            sink.push(&full);
        } else if let Some(short) = full.to_v4(conn.key.tos) {
            sink.push(&short);
        }
    });
}

/// What is told of a connection: of its first path, as the format has room for one.
fn connection(conn: &Conn) -> Option<record::Connection6> {
    let path = conn.path(0)?;
    let mut flags = match path.state() {
        PathState::Connecting => record::CONN_CONNECTING,
        PathState::Up => record::CONN_CONNECTED,
        PathState::Error => record::CONN_ERROR,
        _ => 0,
    };
    if path.is_transmitting() {
        flags |= record::CONN_SENDING;
    }
    let next = path.queue.lock().next_sequence;
    Some(record::Connection6::new(
        conn.key.local,
        conn.key.peer,
        (next, path.rx_expected()),
        conn.transport.name(),
        flags,
    ))
}

fn paths(sk: &UserSock, sink: &mut Sink) {
    sink.begin::<record::Path>();
    sk.net
        .for_each_connection(|conn| conn.for_each_path(|path| sink.push(&one_path(conn, path))));
}

fn one_path(conn: &Conn, path: &Path) -> record::Path {
    let (next, waiting) = {
        let queue = path.queue.lock();
        let waiting = queue.send.iter().count() + queue.unacked.iter().count();
        (queue.next_sequence, waiting)
    };
    record::Path {
        next_tx_seq: next.into(),
        next_rx_seq: path.rx_expected().into(),
        laddr: conn.key.local,
        faddr: conn.key.peer,
        transport: record::Path::transport(conn.transport.name()),
        waiting: u32::try_from(waiting).unwrap_or(u32::MAX).into(),
        losses: path.losses().into(),
        tos: conn.key.tos,
        index: path.index,
        paths: conn.paths_in_use(),
        // CAST: Small numbers.
        state: path.state().as_i32() as u8,
        reserved: [0; 4],
    }
}

fn queued(sk: &UserSock, sink: &mut Sink, which: Queue, v6: bool) {
    begin_messages(sink, v6);
    sk.net.for_each_connection(|conn| {
        conn.for_each_path(|path| {
            let queue: &TxQueue = &path.queue.lock();
            let list = match which {
                Queue::Send => queue.send.iter(),
                Queue::Unacked => queue.unacked.iter(),
            };
            for message in list {
                push_message(sink, &outgoing(conn, &message), v6);
            }
        });
    });
}

fn outgoing(conn: &Arc<Conn>, message: &Message) -> record::Message6 {
    record::Message6::new(
        message.sequence(),
        u32::try_from(message.len()).unwrap_or(u32::MAX),
        &endpoint(conn.key.local, message.envelope.sport),
        &endpoint(conn.key.peer, message.envelope.dport),
        conn.key.tos,
    )
}

fn received(sk: &UserSock, sink: &mut Sink, v6: bool) {
    begin_messages(sink, v6);
    sk.net.binds.for_each(|key, sk| {
        for message in sk.rx.lock().messages.iter() {
            push_message(sink, &incoming(&message, key.address), v6);
        }
    });
}

/// What is told of a message that was not read yet: here the receiver is the local side.
fn incoming(message: &Incoming, local: Addr) -> record::Message6 {
    let header = &message.header;
    record::Message6::new(
        header.sequence(),
        header.len(),
        &endpoint(local, header.dport()),
        &endpoint(message.source, header.sport()),
        message.via.tos,
    )
}

fn begin_messages(sink: &mut Sink, v6: bool) {
    if v6 {
        sink.begin::<record::Message6>();
    } else {
        sink.begin::<record::Message>();
    }
}

fn push_message(sink: &mut Sink, message: &record::Message6, v6: bool) {
    if v6 {
        sink.push(message);
    } else if let Some(short) = message.to_v4() {
        sink.push(&short);
    }
}

fn endpoint(addr: Addr, port: u16) -> Endpoint {
    Endpoint {
        addr,
        port,
        scope_id: 0,
    }
}

fn sockets(sk: &UserSock, sink: &mut Sink, v6: bool) {
    if v6 {
        sink.begin::<record::Socket6>();
    } else {
        sink.begin::<record::Socket>();
    }
    sk.net.for_each_socket(|sk| {
        let full = socket(sk);
        if v6 {
            sink.push(&full);
        } else if let Some(short) = full.to_v4() {
            sink.push(&short);
        }
    });
}

fn socket(sk: &RdsSock) -> record::Socket6 {
    let nowhere = endpoint(Addr::ANY, 0);
    let (bound, peer) = {
        let binding = sk.binding.lock();
        let bound = binding
            .bound
            .as_ref()
            .map(|bound| endpoint(bound.key.address, bound.key.port));
        (bound, binding.peer)
    };
    record::Socket6::new(
        &bound.unwrap_or(nowhere),
        &peer.unwrap_or(nowhere),
        u32::try_from(sk.send_limit()).unwrap_or(u32::MAX),
        u32::try_from(sk.receive_limit()).unwrap_or(u32::MAX),
        sk.inode(),
    )
}
