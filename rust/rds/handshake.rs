// SPDX-License-Identifier: GPL-2.0

//! The multipath handshake: each end tells the other how many paths it can use and which life of it this is.
//!
//! C counterpart: `rds_recv_hs_exthdrs`, `rds_send_ping` in `net/rds`. This version uses one path and says so, which
//! makes a peer that could use eight stay on path 0.

use crate::{
    conn::Conn,
    path::Path, //
};
use kernel::sync::Arc;
use weft_proto::rds::{
    handshake::{
        self,
        PeerCaps, //
    },
    wire::{
        PORT_PING,
        PORT_PROBE, //
    },
};

/// Paths that this implementation uses.
pub const OWN_PATHS: u8 = 1;

/// What is known of the peer.
pub struct Handshake {
    /// Paths in use; 0 as long as the peer has not said how many it has.
    pub paths: u8,
    /// The peer's life; 0 if unknown.
    peer_generation: u32,
    /// A probe is under way.
    probing: bool,
}

impl Handshake {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self {
            paths: 0,
            peer_generation: 0,
            probing: false,
        }
    }
}

impl Default for Handshake {
    fn default() -> Self {
        Self::new()
    }
}

impl Conn {
    /// Sends a probe on path 0 unless one is under way. Up to softirq.
    pub fn probe(&self, path: &Arc<Path>) {
        {
            let mut handshake = self.handshake.lock();
            if handshake.probing {
                return;
            }
            handshake.probing = true;
        }
        if path.send_control(PORT_PROBE, PORT_PING).is_err() {
            self.handshake.lock().probing = false;
        }
    }

    /// Paths in use; 0 as long as that is unknown.
    pub fn paths_in_use(&self) -> u8 {
        self.handshake.lock().paths
    }

    /// Whether the peer has not told yet how many paths it uses.
    pub fn paths_unknown(&self) -> bool {
        self.handshake.lock().paths == 0
    }

    /// Takes in what a probe or its answer said. Up to softirq.
    pub(crate) fn handshake_received(&self, extensions: &[u8; 16]) {
        let peer = PeerCaps::parse(extensions);
        let mut handshake = self.handshake.lock();
        // A peer that says nothing of paths now may have said it before.
        if peer.npaths.is_some() || handshake.paths == 0 {
            handshake.paths = handshake::settle_paths(OWN_PATHS, peer.npaths);
        }
        handshake.probing = false;
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
            self.for_each_path(|path| path.peer_restarted());
        }
    }
}
