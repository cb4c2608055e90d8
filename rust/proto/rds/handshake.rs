// SPDX-License-Identifier: GPL-2.0

//! The probe handshake: how two hosts agree on the number of paths.
//!
//! On a new path 0 each side sends a probe, an empty message from port 1 to port 0, and answers the
//! peer's with one from port 0 to port 1. Both carry what the sender can do in extension headers.
//! When the agreed number of paths changes to more than one the connection fans out: the active side
//! connects the other paths, and they stay silent until path 0 has delivered everything it had.
//!
//! C counterpart: `net/rds/send.c` (`rds_send_probe`), `net/rds/recv.c` (`rds_recv_hs_exthdrs`).

use super::{
    ext::{
        Ext,
        ExtWriter, //
    },
    wire::{
        EXT_SPACE,
        MAX_PATHS,
        PORT_PING,
        PORT_PROBE, //
    }, //
};

/// Whether a message with these ports is a handshake probe.
#[inline]
pub fn is_probe(sport: u16, dport: u16) -> bool {
    sport == PORT_PROBE && dport == PORT_PING
}

/// Whether a message with these ports answers a handshake probe.
#[inline]
pub fn is_probe_reply(sport: u16, dport: u16) -> bool {
    sport == PORT_PING && dport == PORT_PROBE
}

/// Fills the extension headers of a probe or of its answer.
///
/// `npaths` is the number of paths this host can use and `generation` the random number of this
/// module load, 0 = unknown. The entries stand in the order C writes them.
pub fn write_probe(ext: &mut [u8; EXT_SPACE], npaths: u16, generation: u32) {
    let mut writer = ExtWriter::new(ext);
    // The three entries take 10 of 16 bytes, so each fits.
    writer.push(Ext::Npaths(npaths));
    writer.push(Ext::Generation(generation));
    writer.push(Ext::SportIndex);
}

/// What a peer announced in a probe or in its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCaps {
    /// Number of paths it can use, unchecked.
    pub npaths: Option<u16>,
    /// Random number of its module load, 0 = unknown.
    pub generation: Option<u32>,
    /// Whether its TCP source ports encode the path.
    pub sport_encodes_path: bool,
}

impl PeerCaps {
    /// Reads the extension headers of a probe; of repeated entries the last counts, as in C.
    pub fn parse(ext: &[u8; EXT_SPACE]) -> Self {
        let mut caps = Self::default();
        for entry in Ext::iter(ext) {
            match entry {
                Ext::Npaths(npaths) => caps.npaths = Some(npaths),
                Ext::Generation(generation) => caps.generation = Some(generation),
                Ext::SportIndex => caps.sport_encodes_path = true,
                _ => {}
            }
        }
        caps
    }
}

/// Number of paths to use: the smaller of `own` and `announced`, from 1 to [`MAX_PATHS`].
///
/// A peer that announces nothing knows nothing of paths and gets one.
pub fn settle_paths(own: u8, announced: Option<u16>) -> u8 {
    let announced = u8::try_from(announced.unwrap_or(1)).unwrap_or(u8::MAX);
    // CAST: `MAX_PATHS` is 8.
    own.min(announced).clamp(1, MAX_PATHS as u8)
}

/// Whether the peer has been restarted since `known` was remembered.
///
/// If so all paths start over with their sequence numbers and whatever waits to be retransmitted is
/// dropped. 0 stands for unknown on either side and never counts as a change.
pub fn generation_changed(known: u32, announced: Option<u32>) -> bool {
    announced.is_some_and(|announced| announced != 0 && known != 0 && announced != known)
}

/// Whether a connection fans out when its number of paths goes from `old` (0 = unknown) to `new`.
pub fn fans_out(old: u8, new: u8) -> bool {
    new > 1 && new != old
}

/// Whether a path above 0 may transmit after fan-out.
///
/// `fan_out_sequence` is the next sequence number of path 0 when the connection fanned out, and
/// `oldest_pending` the lowest one that path 0 still has queued or unacknowledged. Until everything
/// below is acknowledged, a socket that moved to another path could overtake itself.
#[inline]
pub fn caught_up(fan_out_sequence: u64, oldest_pending: Option<u64>) -> bool {
    oldest_pending.is_none_or(|sequence| sequence >= fan_out_sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_vector() {
        let mut ext = [0xff; EXT_SPACE];
        write_probe(&mut ext, 8, 0x1122_3344);
        let expected = [5, 0, 8, 6, 0x11, 0x22, 0x33, 0x44, 8, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(ext, expected);
        let caps = PeerCaps::parse(&ext);
        assert_eq!(caps.npaths, Some(8));
        assert_eq!(caps.generation, Some(0x1122_3344));
        assert!(caps.sport_encodes_path);
    }

    #[test]
    fn peer_without_extensions() {
        assert_eq!(PeerCaps::parse(&[0; EXT_SPACE]), PeerCaps::default());
    }

    #[test]
    fn ports() {
        assert!(is_probe(1, 0) && !is_probe(0, 1) && !is_probe(2, 0) && !is_probe(0, 0));
        assert!(is_probe_reply(0, 1) && !is_probe_reply(1, 0) && !is_probe_reply(0, 0));
    }

    #[test]
    fn paths_settle_between_one_and_eight() {
        for (own, announced, paths) in [
            (8, Some(8), 8),
            (8, Some(3), 3),
            (4, Some(8), 4),
            (8, Some(0), 1),
            (8, Some(256), 8),
            (8, Some(u16::MAX), 8),
            (200, Some(200), 8),
            (0, Some(8), 1),
            (8, None, 1),
        ] {
            assert_eq!(settle_paths(own, announced), paths, "{own} {announced:?}");
        }
    }

    #[test]
    fn only_two_known_generations_can_differ() {
        assert!(generation_changed(1, Some(2)));
        assert!(!generation_changed(1, Some(1)));
        assert!(!generation_changed(0, Some(2)));
        assert!(!generation_changed(1, Some(0)));
        assert!(!generation_changed(1, None));
    }

    #[test]
    fn fan_out() {
        assert!(fans_out(0, 8) && fans_out(1, 2) && fans_out(8, 4));
        assert!(!fans_out(8, 8) && !fans_out(0, 1) && !fans_out(8, 1));
        assert!(caught_up(5, None));
        assert!(caught_up(5, Some(5)));
        assert!(!caught_up(5, Some(4)));
    }
}
