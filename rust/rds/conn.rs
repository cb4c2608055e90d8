// SPDX-License-Identifier: GPL-2.0

//! The bond between an own address and a peer's.
//!
//! C counterpart: `struct rds_connection` in `net/rds/connection.c`. It is made by the first message or by the peer's
//! connect. It holds what was not acknowledged yet, so it outlasts every transport connection: it lives until its
//! namespace or its transport goes, or until nobody has used it for long (`idle.rs`).

use crate::{
    handshake::Handshake,
    idle::{
        InUse,
        Quiet, //
    },
    maps::MapRef,
    netns::NetState,
    path::Path,
    settling::Settling,
    state::Rds,
    transport::{
        Kind,
        TransportRef, //
    },
    worker::Event, //
};
use kernel::{
    alloc::KVec,
    list::ListLinks,
    prelude::*,
    rbtree::RBTreeNodeReservation,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};
use weft::{
    list::{
        Home,
        Tracker, //
    },
    new_spinlock_bh,
    sync::bh::SpinLockBh, //
};
use weft_proto::rds::{
    addr::Addr,
    arbitration::{
        self,
        Role, //
    },
    counters::Core, //
};

/// How often a connection is looked for that goes away just when it was found.
const MOST_ENTRIES: usize = 4;

/// What identifies a connection within its namespace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnKey {
    /// Peer's address.
    pub peer: Addr,
    /// Own address.
    pub local: Addr,
    /// Transport.
    pub kind: Kind,
    /// Type of service.
    pub tos: u8,
    /// Interface of a link-local address, else 0; see [`Self::interface`].
    pub interface: u32,
}

impl ConnKey {
    /// What counts of an interface that a program or a socket named.
    ///
    /// Two hosts that reach each other by other addresses than link-local ones have one connection: the peer has one in
    /// any case, and would mix up the numbers of two.
    #[inline]
    pub fn interface(local: &Addr, peer: &Addr, named: u32) -> u32 {
        if local.is_link_local() || peer.is_link_local() {
            named
        } else {
            0
        }
    }
}

/// A connection.
#[pin_data]
pub struct Conn {
    /// Its identity.
    pub key: ConnKey,
    /// The module.
    pub rds: Arc<Rds>,
    /// The namespace; it outlives the connection.
    pub net: Arc<NetState>,
    /// What carries it.
    pub transport: TransportRef,
    /// Own congestion, sent to the peer.
    pub local_map: MapRef,
    /// The peer's congestion.
    pub peer_map: MapRef,
    /// What the two ends told each other about multipath.
    #[pin]
    pub(crate) handshake: SpinLockBh<Handshake>,
    /// Paths in use; 0 as long as that is unknown. Written with `handshake` locked.
    pub(crate) npaths: Atomic<u32>,
    /// Number on path 0 below which all must be delivered before another path sends; 0 for nothing. See `handshake.rs`.
    pub(crate) catch_up: Atomic<u64>,
    /// Whether messages of other paths have to wait for path 0.
    pub(crate) settling: Settling,
    /// Emptied when the connection is destroyed, which breaks the circle of references.
    #[pin]
    paths: SpinLockBh<KVec<Arc<Path>>>,
    /// The own map has to be sent.
    map_queued: Atomic<bool>,
    pub(crate) destroying: Atomic<bool>,
    /// Nobody may come to the connection: it is being forgotten, or it is being seen whether it can be.
    pub(crate) retiring: Atomic<bool>,
    /// A path has been up: the peer knows numbers of this end.
    pub(crate) was_up: Atomic<bool>,
    /// The peer sends congestion maps on other paths than 0, as C does: they may overtake each other.
    pub(crate) maps_anywhere: Atomic<bool>,
    #[pin]
    pub(crate) quiet: SpinLockBh<Quiet>,
    #[pin]
    map_links: ListLinks<0>,
    #[pin]
    map_tracker: Tracker<0>,
    map_home: Home,
}

weft::impl_home_item! {
    impl HomeItem<0> for Conn { links: map_links, tracker: map_tracker, home: map_home }
}

impl Conn {
    /// The connection from `key.local` to `key.peer`, made if there is none. Sleeps.
    ///
    /// Messages to an own address take the loopback transport if `key.kind` prefers that; then an `incoming`
    /// connection is refused with `EOPNOTSUPP`. `ENETDOWN` while namespace or transport go away; `ENOMEM`, also if the
    /// namespace has as many connections as it may have.
    pub fn get(net: &Arc<NetState>, mut key: ConnKey, incoming: bool) -> Result<Arc<Self>> {
        if let Some(conn) = net.find_connection(&key) {
            return Ok(conn);
        }
        let active = net.net().ok_or(ENETDOWN)?;
        let transports = &net.rds.transports;
        let mut transport = transports.get(key.kind).ok_or(ENETDOWN)?;
        if transport.prefers_loopback() && transports.is_local(&active, &key.peer, key.interface) {
            if incoming {
                return Err(EOPNOTSUPP);
            }
            key.kind = Kind::Loop;
            transport = transports.get(Kind::Loop).ok_or(ENETDOWN)?;
            if let Some(conn) = net.find_connection(&key) {
                return Ok(conn);
            }
        }
        Self::create(net, key, transport)
    }

    /// The same, and goes to the path of it that `choose` names. Sleeps.
    ///
    /// `EAGAIN` if the connection goes away at once; else the errors of [`Self::get`].
    pub fn enter(
        net: &Arc<NetState>,
        key: ConnKey,
        incoming: bool,
        choose: impl Fn(&Arc<Self>) -> usize,
    ) -> Result<InUse> {
        for _ in 0..MOST_ENTRIES {
            let conn = Self::get(net, key, incoming)?;
            // One that is being forgotten is not found again.
            if let Some(path) = conn.path(choose(&conn)).and_then(Path::enter) {
                return Ok(path);
            }
        }
        Err(EAGAIN)
    }

    fn create(net: &Arc<NetState>, key: ConnKey, transport: TransportRef) -> Result<Arc<Self>> {
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let local_map = MapRef::get(net, &key.local)?;
        let peer_map = MapRef::get(net, &key.peer)?;
        let conn = Arc::pin_init(
            pin_init!(Self {
                key,
                rds: net.rds.clone(),
                net: net.clone(),
                transport,
                local_map,
                peer_map,
                handshake <- new_spinlock_bh!(Handshake::default(), "rds_handshake"),
                npaths: Atomic::new(0),
                catch_up: Atomic::new(0),
                settling: Settling::new(),
                paths <- new_spinlock_bh!(KVec::new(), "rds_paths"),
                map_queued: Atomic::new(false),
                destroying: Atomic::new(false),
                retiring: Atomic::new(false),
                was_up: Atomic::new(false),
                maps_anywhere: Atomic::new(false),
                quiet <- new_spinlock_bh!(Quiet::default(), "rds_quiet"),
                map_links <- ListLinks::new(),
                map_tracker <- Tracker::new(),
                map_home: Home::new(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        if key.kind == Kind::Loop {
            conn.peer_map.set_looped();
        }
        let result = conn
            .make_paths()
            .and_then(|()| net.insert_connection(&conn, reservation));
        match &result {
            Ok(found) if Arc::ptr_eq(found, &conn) => {}
            _ => conn.discard(),
        }
        result
    }

    /// Ends a connection that nobody has got to know.
    fn discard(&self) {
        let paths = core::mem::take(&mut *self.paths.lock());
        drop(paths);
    }

    fn make_paths(self: &Arc<Self>) -> Result {
        let mut paths = KVec::new();
        for index in 0..self.transport.max_paths() {
            paths.push(Path::new(self, index)?, GFP_KERNEL)?;
        }
        *self.paths.lock() = paths;
        Ok(())
    }

    /// Which end opens transport connections.
    #[inline]
    pub fn role(&self) -> Role {
        arbitration::role(&self.key.local, &self.key.peer)
    }

    /// A path; `None` once the connection is being destroyed, or if it has not that many.
    #[inline]
    pub fn path(&self, index: usize) -> Option<Arc<Path>> {
        self.paths.lock().get(index).cloned()
    }

    /// Calls `visit` for each path, with the paths locked; `visit` must not sleep.
    pub fn for_each_path(&self, mut visit: impl FnMut(&Arc<Path>)) {
        for path in self.paths.lock().iter() {
            visit(path);
        }
    }

    /// Whether messages of sockets are on any path, sent or not.
    pub(crate) fn holds_user_messages(&self) -> bool {
        self.paths
            .lock()
            .iter()
            .any(|path| path.holds_user_messages())
    }

    /// Whether somebody waits for the news that a port of the peer is free again.
    pub(crate) fn is_waited_for(&self) -> bool {
        let map = &self.peer_map;
        map.is_congested() && (map.waiters.has_sleepers() || self.net.awaits_news())
    }

    /// Whether a path is up.
    fn is_up(&self) -> bool {
        self.paths.lock().iter().any(|path| path.is_up())
    }

    /// Whether the connection is going away: nothing new is begun on it.
    #[inline]
    pub fn is_destroying(&self) -> bool {
        // ORDERING: `Acquire` pairs with `destroy`.
        self.destroying.load(Acquire)
    }

    /// Whether the connection is being forgotten; see [`Path::enter`].
    #[inline]
    pub(crate) fn is_retiring(&self) -> bool {
        self.retiring.load(Acquire)
    }

    /// A path is up.
    pub(crate) fn note_up(&self) {
        // ORDERING: The change of state that came before makes it visible.
        self.was_up.store(true, Relaxed);
    }

    /// Has the own congestion map sent to the peer. Up to softirq.
    pub fn queue_map(&self) {
        // ORDERING: `Full`: whoever takes the mark sees the map as it is now.
        if !self.map_queued.xchg(true, Full) {
            self.rds.count(Core::CongUpdateQueued);
            if let Some(path) = self.path(0) {
                path.kick(Event::Send);
                // Maps take no other path, and one may be up alone.
                if !path.is_up() && self.is_up() {
                    path.connect_if_down();
                }
            }
        }
    }

    /// Whether the map waits to be sent.
    #[inline]
    pub fn map_is_queued(&self) -> bool {
        self.map_queued.load(Acquire)
    }

    /// Takes the mark that the map is to be sent.
    #[inline]
    pub(crate) fn take_map_mark(&self) -> bool {
        self.map_queued.load(Acquire) && self.map_queued.xchg(false, Full)
    }

    /// Sets the mark without scheduling anybody: the map goes out with the next message.
    pub(crate) fn mark_map(&self) {
        self.map_queued.store(true, Release);
    }

    /// Ends the connection: stops its tasks, closes what carries it, drops what is queued. Sleeps.
    ///
    /// Waits for tasks that run now; a transport closes without waiting for the peer.
    pub fn destroy(&self) {
        // ORDERING: `Release` pairs with `is_destroying`.
        self.destroying.store(true, Release);
        self.local_map.remove_conn(self);
        let paths = core::mem::take(&mut *self.paths.lock());
        for path in &paths {
            path.destroy();
        }
    }

    /// The scope in which the receiving socket is looked up.
    #[inline]
    pub fn bound_interface(&self) -> u32 {
        if self.key.local.is_link_local() {
            self.key.interface
        } else {
            0
        }
    }
}
