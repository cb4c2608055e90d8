// SPDX-License-Identifier: GPL-2.0

//! The multipath handshake: each end tells the other how many paths it can use and which life of it this is.
//!
//! C counterpart: `rds_recv_hs_exthdrs`, `rds_start_mprds`, `rds_send_ping` in `net/rds`. Until the peer has said how
//! many paths it has everything takes path 0. Then the connection fans out: the active end connects the other paths,
//! and each socket keeps to the one that the hash of its port names.

use crate::{
    conn::Conn,
    path::Path,
    worker::Event, //
};
use kernel::sync::{
    atomic::{
        Acquire,
        Full,
        Release, //
    },
    Arc, //
};
use weft_proto::rds::{
    arbitration::Role,
    handshake::{
        self,
        PeerCaps, //
    },
    path::path_index,
    wire::{
        PORT_PING,
        PORT_PROBE, //
    },
};

/// In [`Conn::catch_up`] while the number is being looked up: larger than any.
const UNDECIDED: u64 = u64::MAX;

/// What is known of the peer.
#[derive(Default)]
pub struct Handshake {
    /// The peer's life; 0 if unknown.
    peer_generation: u32,
    /// Whether the peer's source ports say which path a connection is.
    sport_encodes_path: bool,
    /// A probe is under way.
    probing: bool,
}

impl Handshake {
    /// The peer's life and whether its source ports say which path a connection is.
    pub(crate) fn known(&self) -> (u32, bool) {
        (self.peer_generation, self.sport_encodes_path)
    }

    /// Takes over what was known before.
    pub(crate) fn recall(&mut self, peer_generation: u32, sport_encodes_path: bool) {
        self.peer_generation = peer_generation;
        self.sport_encodes_path = sport_encodes_path;
    }
}

impl Conn {
    /// Sends a probe on path 0 unless one is under way. Up to softirq.
    pub fn probe(&self, first: &Arc<Path>) {
        {
            let mut handshake = self.handshake.lock();
            if handshake.probing {
                return;
            }
            handshake.probing = true;
        }
        if first.send_control(PORT_PROBE, PORT_PING).is_err() {
            self.handshake.lock().probing = false;
        }
    }

    /// Paths in use; 0 as long as that is unknown. Any context.
    #[inline]
    pub fn paths_in_use(&self) -> u8 {
        // ORDERING: `Acquire` pairs with `settle`: who sees a new number sees what has to be sent before.
        self.npaths.load(Acquire).try_into().unwrap_or(0)
    }

    /// Whether the peer's source ports say which path a connection is.
    pub fn sport_encodes_path(&self) -> bool {
        self.handshake.lock().sport_encodes_path
    }

    /// The path of a socket that is bound to `port`; `start` is the socket's own start value. Any context.
    #[inline]
    pub(crate) fn path_index_of(&self, port: u16, start: u32) -> usize {
        match self.paths_in_use() {
            0 | 1 => 0,
            paths => path_index(port, start, paths),
        }
    }

    /// Takes in what a probe or its answer said. Up to softirq.
    pub(crate) fn handshake_received(&self, extensions: &[u8; 16]) {
        let peer = PeerCaps::parse(extensions);
        if self.settle(&peer) {
            self.take_up(peer.sport_encodes_path);
        }
        self.connect_others();
    }

    /// Has the active end connect what is down. Up to softirq.
    pub(crate) fn connect_others(&self) {
        let paths = self.paths_in_use();
        if self.role() == Role::Active && paths > 1 {
            self.for_each_path(|path| {
                if path.index < paths {
                    path.connect_if_down();
                }
            });
        }
    }

    /// Agrees on a number of paths; returns whether it is another than before.
    fn settle(&self, peer: &PeerCaps) -> bool {
        let Some(first) = self.path(0) else {
            return false;
        };
        let mut handshake = self.handshake.lock();
        handshake.probing = false;
        let old = self.paths_in_use();
        // A peer that says nothing of paths now may have said it before.
        if peer.npaths.is_none() && old != 0 {
            return false;
        }
        handshake.sport_encodes_path = peer.sport_encodes_path;
        let new = handshake::settle_paths(self.transport.max_paths(), peer.npaths);
        let fans_out = handshake::fans_out(old, new);
        if fans_out {
            self.catch_up.store(UNDECIDED, Release);
            self.settling.begin();
        }
        // ORDERING: `Release` pairs with `paths_in_use`.
        self.npaths.store(new.into(), Release);
        drop(handshake);
        if fans_out {
            // Whoever comes to queue something on path 0 after this sees the number of paths, and takes another.
            let queue = first.queue.lock();
            self.catch_up.store(queue.next_sequence, Release);
        }
        new != old
    }

    /// The number of paths is another from now on: gives up those that are no more, and takes what the peer has opened
    /// for the others.
    fn take_up(&self, sport_encodes_path: bool) {
        let (paths, passive) = (self.paths_in_use(), self.role() == Role::Passive);
        self.for_each_path(|path| {
            if path.is_surplus() {
                // What waits on it is dropped by its task.
                path.drop_path();
            }
            if !passive {
                return;
            }
            if path.index == 0 {
                // It may have been taken before it was known to be another path's.
                match path.ops.meant_for(paths) {
                    other if other != 0 && sport_encodes_path => path.gives_way_to(other),
                    _ => path.stands_for_itself(),
                }
            }
            path.kick(Event::Accept);
        });
    }

    /// Whether path 0 has delivered what sockets had sent on it before the connection fanned out. Up to softirq.
    pub(crate) fn has_caught_up(&self) -> bool {
        // ORDERING: `Acquire` pairs with `settle`.
        let goal = self.catch_up.load(Acquire);
        if goal == 0 {
            return true;
        }
        if goal == UNDECIDED {
            return false;
        }
        let Some(first) = self.path(0) else {
            return true;
        };
        // The connection may have fanned out anew meanwhile.
        handshake::caught_up(goal, first.oldest_pending())
            && self.catch_up.cmpxchg(goal, 0, Full).is_ok()
    }

    /// Finds out whether the peer has started anew since it was last heard of. Up to softirq.
    pub(crate) fn note_generation(&self, extensions: &[u8; 16]) {
        let peer = PeerCaps::parse(extensions);
        let restarted = {
            let mut handshake = self.handshake.lock();
            let restarted =
                handshake::generation_changed(handshake.peer_generation, peer.generation);
            if let Some(generation) = peer.generation.filter(|&generation| generation != 0) {
                handshake.peer_generation = generation;
            }
            restarted
        };
        if restarted {
            // Own numbers go on: a gap is legal, and a message that was sent to both lives keeps one number.
            self.for_each_path(|path| path.arrivals.restart());
            // The peer begins on path 0 again, and fans out without a change of the number here.
            self.settling.begin();
        }
    }
}
