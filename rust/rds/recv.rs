// SPDX-License-Identifier: GPL-2.0

//! What happens to a message when it has arrived whole.
//!
//! C counterpart: `rds_recv_incoming` in `net/rds/recv.c`.

use crate::{
    bind::Key,
    cong::CongMap,
    conn::{
        Conn,
        ConnKey, //
    },
    incoming::{
        Data,
        Slot,
        Trace, //
    },
    path::Path,
    sock::RdsSockExt,
    trace::{
        self,
        Reason, //
    },
    transport::Kind, //
};
use kernel::sync::{
    atomic::Relaxed,
    Arc, //
};
use weft_proto::rds::{
    addr::Addr,
    counters::Core,
    handshake,
    wire::{
        Header,
        PORT_PING, //
    },
};

/// A message that has arrived.
pub struct Arrival {
    /// Memory to queue it in.
    pub slot: Slot,
    /// Sender's address.
    pub source: Addr,
    /// Own address it was sent to.
    pub destination: Addr,
    /// Its header; the length was checked.
    pub header: Header,
    /// When it passed which point.
    pub trace: Trace,
    /// Its payload.
    pub data: Data,
}

/// What to do with a message that had better wait: because its socket has far more unread than it asked for, or because
/// path 0 may hold older ones of its sender.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// Give it back: the transport keeps it and reads no further until it is taken.
    GiveBack,
    /// Take it even if the socket has no room, but not before path 0 is known to hold nothing older.
    TakeInOrder,
    /// Take it all the same.
    Take,
}

/// Delivers a message to its socket, or does what the protocol asks for. Up to softirq.
///
/// `map` is the congestion map of the own address. The transport calls this for one message of a path at a time. If it
/// gets the message back it offers it again with [`redeliver`], before any other.
pub fn deliver(
    path: &Arc<Path>,
    map: &CongMap,
    arrival: Arrival,
    overload: Overload,
) -> Result<(), Arrival> {
    let conn = &path.conn;
    let (sport, dport) = (arrival.header.sport(), arrival.header.dport());
    let is_handshake = handshake::is_probe(sport, dport) || handshake::is_probe_reply(sport, dport);
    if is_handshake {
        // Before the number is judged: if the peer has started anew, its numbers have, too.
        conn.note_generation(arrival.header.ext());
    }
    if !path
        .arrivals
        .accept(arrival.header.sequence(), arrival.header.flags())
    {
        drop_arrival(path, &arrival, Reason::OldSequence);
        return Ok(());
    }
    if dport == PORT_PING {
        ping(path, &arrival);
        return Ok(());
    }
    if handshake::is_probe_reply(sport, dport) {
        conn.handshake_received(arrival.header.ext());
        return Ok(());
    }
    redeliver(path, map, arrival, overload)
}

/// Delivers a message that was given back before. Up to softirq.
pub fn redeliver(
    path: &Arc<Path>,
    map: &CongMap,
    arrival: Arrival,
    overload: Overload,
) -> Result<(), Arrival> {
    let conn = &path.conn;
    if path.index > 0 && overload != Overload::Take && conn.waits_for_first_path() {
        return Err(arrival);
    }
    let key = Key {
        port: arrival.header.dport(),
        scope_id: conn.bound_interface(),
        address: arrival.destination,
    };
    match conn.net.binds.lookup(&key) {
        Some(sk) => sk.receive(arrival, path, map, overload),
        None => {
            drop_arrival(path, &arrival, Reason::NoSocket);
            Ok(())
        }
    }
}

/// A message that has arrived goes no further. Over loopback the path is that of the sender.
pub(crate) fn drop_arrival(path: &Path, arrival: &Arrival, reason: Reason) {
    path.conn.net.drop_datagram(reason, || {
        let (to, from) = (arrival.destination, arrival.source);
        let place = trace::place(&path.conn.net, to, from, path.via());
        (place, trace::arrived(&arrival.header))
    });
}

/// Answers a ping. A probe is answered whatever the administrator says of pings: multipath depends on it.
fn ping(path: &Arc<Path>, arrival: &Arrival) {
    let rds = &path.conn.rds;
    let (sport, extensions) = (arrival.header.sport(), arrival.header.ext());
    let probe = handshake::is_probe(sport, PORT_PING);
    if sport == PORT_PING {
        drop_arrival(path, arrival, Reason::PingUnanswerable);
        return;
    }
    if !probe && !rds.tunables.answers_pings() {
        drop_arrival(path, arrival, Reason::PingDisabled);
        return;
    }
    rds.count(Core::RecvPing);
    match way_back(path) {
        Some(back) => back.pong(sport),
        None => path.pong(sport),
    }
    if probe {
        path.conn.handshake_received(extensions);
    }
}

/// The path of the opposite direction, where that is another: between two own addresses.
fn way_back(path: &Arc<Path>) -> Option<Arc<Path>> {
    let key = path.conn.key;
    if key.kind != Kind::Loop || key.local == key.peer {
        return None;
    }
    let back = ConnKey {
        local: key.peer,
        peer: key.local,
        ..key
    };
    // Loopback delivers in process context, so a connection may be made here.
    Conn::get(&path.conn.net, back, false).ok()?.path(0)
}

/// Takes over the congestion map of a peer. Up to softirq.
///
/// C sends maps on any path. One that had to wait may be older than what came on another path meanwhile. To take its
/// ports for congested could mean to wait for ever, as the peer has told already that they are free; the other mistake
/// costs little.
pub fn congestion_map(path: &Arc<Path>, bytes: &[u8], has_waited: bool) {
    let conn = &path.conn;
    // ORDERING: A habit of the peer. Of the first such map and one on path 0 neither is known to be newer.
    if path.index > 0 {
        conn.maps_anywhere.store(true, Relaxed);
    }
    let may_be_old = has_waited && conn.maps_anywhere.load(Relaxed);
    let freed = conn.peer_map.replace(bytes, may_be_old);
    trace::event::cong_receive(|| {
        let ports = bytes.iter().map(|byte| byte.count_ones()).sum();
        (path.place(), ports)
    });
    conn.net.map_updated(&conn.peer_map, freed);
}
