// SPDX-License-Identifier: GPL-2.0

//! Who connects to whom over TCP.
//!
//! Both hosts may want to talk at the same time, yet each path must end up with exactly one TCP
//! connection. The rule: connections that last go from the numerically smaller address to the larger
//! one. The larger side may connect too, but only on path 0 and only to wake the smaller one, which
//! refuses that connection and connects back.
//!
//! C counterpart: `net/rds/tcp_connect.c`, `net/rds/tcp_listen.c`, `net/rds/threads.c`.

use super::{
    addr::Addr,
    path::path_of_source_port,
    wire::MAX_PATHS, //
};

/// Part a host plays for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The smaller address: opens the connections.
    Active,
    /// The larger address: accepts them. Also a host talking to itself.
    Passive,
}

/// Role of the host that owns `local` towards `peer`.
#[inline]
pub fn role(local: &Addr, peer: &Addr) -> Role {
    if local < peer {
        Role::Active
    } else {
        Role::Passive
    }
}

/// Whether a path that is down may be connected from this side.
///
/// Path 0 always: on the passive side that is the wake-up call. Further paths only from the active
/// side and once both sides have agreed on more than one (`npaths`, 0 = unknown).
#[inline]
pub fn may_connect(role: Role, path: usize, npaths: u8) -> bool {
    match role {
        _ if path == 0 => true,
        Role::Active => path < usize::from(npaths).min(MAX_PATHS),
        Role::Passive => false,
    }
}

/// What to do when an own connect attempt succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Established {
    /// Bring the path up.
    Up,
    /// The wake-up call has arrived: drop the connection and wait for the peer's.
    Drop,
}

/// Decides what becomes of an own connection that TCP has established.
#[inline]
pub fn established(role: Role) -> Established {
    match role {
        Role::Active => Established::Up,
        Role::Passive => Established::Drop,
    }
}

/// How a path gets back up after its connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconnect {
    /// Connect after a random delay, see [`Backoff`](super::backoff::Backoff).
    Backoff,
    /// Queue a probe; sending it makes one wake-up connect. Then wait for the peer.
    WakeUp,
    /// Wait for the peer to connect.
    Wait,
}

/// Decides how `path` gets back up.
#[inline]
pub fn reconnect(role: Role, path: usize) -> Reconnect {
    match role {
        Role::Active => Reconnect::Backoff,
        Role::Passive if path == 0 => Reconnect::WakeUp,
        Role::Passive => Reconnect::Wait,
    }
}

/// What to do with a connection the listener accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Start an own connect on path 0 if that is down, since the peer wants to talk, and reset it.
    ///
    /// C connects back only as long as there is one path, since it never closes a connection for lack of use.
    Refuse,
    /// Look for a free path with [`accept_slot`].
    TakeSlot,
}

/// Decides about an accepted connection.
///
/// A connection from an own address must be refused before this is asked: such traffic uses the
/// loopback transport.
#[inline]
pub fn accepted(role: Role) -> Accepted {
    match role {
        Role::Active => Accepted::Refuse,
        Role::Passive => Accepted::TakeSlot,
    }
}

/// Path for an accepted connection.
///
/// `peer_port` is the peer's TCP source port. If the peer has announced that it encodes the path
/// only that path will do, else the first that is free. `try_claim` must claim the path if it is
/// down and say whether it was. `None`: no path is free now; the connection must be kept, because
/// the peer's data on it may be acknowledged already, until a path of this connection goes down.
pub fn accept_slot(
    sport_encodes_path: bool,
    peer_port: u16,
    npaths: u8,
    mut try_claim: impl FnMut(usize) -> bool,
) -> Option<usize> {
    let npaths = usize::from(npaths).clamp(1, MAX_PATHS);
    if sport_encodes_path {
        // CAST: at most 8, see the clamp above.
        let path = path_of_source_port(peer_port, npaths as u8);
        return try_claim(path).then_some(path);
    }
    (0..npaths).find(|&path| try_claim(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn the_smaller_number_is_active() {
        let small = Addr::from_v4([10, 9, 0, 1]);
        let large = Addr::from_v4([10, 9, 0, 2]);
        assert_eq!(role(&small, &large), Role::Active);
        assert_eq!(role(&large, &small), Role::Passive);
        assert_eq!(role(&small, &small), Role::Passive);
        // The order is numeric, most significant byte first.
        assert_eq!(
            role(&Addr::from_v4([9, 255, 255, 255]), &small),
            Role::Active
        );
        assert_eq!(role(&small, &Addr::LOOPBACK), Role::Passive);
    }

    #[test]
    fn who_may_connect() {
        for npaths in [0, 1, 2, 8, 255] {
            assert!(may_connect(Role::Active, 0, npaths));
            assert!(may_connect(Role::Passive, 0, npaths));
            assert!(!may_connect(Role::Passive, 1, npaths));
            assert!(!may_connect(Role::Active, 8, npaths));
            assert_eq!(may_connect(Role::Active, 1, npaths), npaths >= 2);
            assert_eq!(may_connect(Role::Active, 7, npaths), npaths >= 8);
        }
    }

    #[test]
    fn active_side() {
        assert_eq!(established(Role::Active), Established::Up);
        assert_eq!(reconnect(Role::Active, 0), Reconnect::Backoff);
        assert_eq!(reconnect(Role::Active, 5), Reconnect::Backoff);
        assert_eq!(accepted(Role::Active), Accepted::Refuse);
    }

    #[test]
    fn passive_side() {
        assert_eq!(established(Role::Passive), Established::Drop);
        assert_eq!(reconnect(Role::Passive, 0), Reconnect::WakeUp);
        assert_eq!(reconnect(Role::Passive, 1), Reconnect::Wait);
        assert_eq!(accepted(Role::Passive), Accepted::TakeSlot);
    }

    #[test]
    fn slot_by_source_port_is_the_only_one_tried() {
        let mut tried = Vec::new();
        let mut claim = |path| {
            tried.push(path);
            false
        };
        assert_eq!(accept_slot(true, 32779, 8, &mut claim), None);
        assert_eq!(accept_slot(true, 32779, 0, &mut claim), None);
        assert_eq!(tried, [3, 0]);
        assert_eq!(accept_slot(true, 32779, 8, |_| true), Some(3));
    }

    #[test]
    fn slot_without_source_port_is_the_first_free() {
        assert_eq!(accept_slot(false, 32779, 8, |path| path >= 2), Some(2));
        assert_eq!(accept_slot(false, 32779, 2, |path| path >= 2), None);
        assert_eq!(accept_slot(false, 32779, 0, |_| true), Some(0));
        let mut tries = 0;
        let none = accept_slot(false, 0, u8::MAX, |_| {
            tries += 1;
            false
        });
        assert_eq!((none, tries), (None, MAX_PATHS));
    }
}
