// SPDX-License-Identifier: GPL-2.0

//! Choosing a path for a socket, and a TCP source port for a path.
//!
//! A connection over TCP has up to eight paths. A sending socket always uses the same one, which
//! keeps its messages in order; the choice is a hash of its port and is the sender's own affair. The
//! source port of a path's TCP connection on the other hand tells the peer which path it is.
//!
//! C counterpart: `RDS_MPATH_HASH` in `net/rds/rds.h`, `net/rds/tcp_connect.c`.

use super::wire::MAX_PATHS;

/// Ports of one group: one for each path (`RDS_MPATH_WORKERS`).
const GROUP_PORTS: u32 = 8;

const _: () = assert!(GROUP_PORTS as usize == MAX_PATHS);

/// Arbitrary constant of the kernel's `jhash` (`JHASH_INITVAL`).
const JHASH_INITVAL: u32 = 0xdead_beef;

/// Hash of one word, as `jhash_1word()` in `include/linux/jhash.h`.
#[inline]
fn jhash_1word(word: u32, initval: u32) -> u32 {
    // The length of the input in bytes, 4, is part of the start value.
    let start = initval.wrapping_add(JHASH_INITVAL).wrapping_add(4);
    let (mut a, mut b, mut c) = (word.wrapping_add(start), start, start);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// Hash that spreads sockets over paths; `port` is the socket's bound port.
#[inline]
pub fn path_hash(port: u16, initval: u32) -> u32 {
    jhash_1word(u32::from(port), initval)
}

/// Path that the socket bound to `port` sends on, below `npaths`.
///
/// `initval` is the socket's hash seed. As in C the hash is masked with `npaths - 1`, so with a
/// number of paths that is not a power of two some stay unused. 0 paths means unknown and gives 0.
#[inline]
pub fn path_index(port: u16, initval: u32, npaths: u8) -> usize {
    match npaths.checked_sub(1) {
        // CAST: widening, and masked to at most 255.
        Some(mask) => (path_hash(port, initval) & u32::from(mask)) as usize,
        None => 0,
    }
}

/// Path that a TCP connection from `port` belongs to, if the peer encodes paths in ports.
///
/// 0 paths means unknown and gives 0.
#[inline]
pub fn path_of_source_port(port: u16, npaths: u8) -> usize {
    usize::from(port.checked_rem(u16::from(npaths)).unwrap_or(0))
}

/// Candidates for the TCP source port of a path, in the order they should be tried.
///
/// The range of local ports is cut into groups of eight, and path `i` uses the `i`-th port of a
/// group. A path tries one group after the other, starting behind the one it used last, because the
/// port it used last may be waiting for its old connection to be forgotten.
///
/// ```
/// use weft_proto::rds::path::SourcePorts;
///
/// let mut ports = SourcePorts::new(32768, 60999, 3, 0);
/// assert_eq!(ports.next(), Some(32768 + 8 + 3));
/// assert_eq!(ports.group(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct SourcePorts {
    /// Port of the path in group 0.
    base: u32,
    /// Number of groups in the range.
    groups: u32,
    /// Group of the port handed out last.
    group: u32,
    /// Groups not tried yet.
    left: u32,
}

impl SourcePorts {
    /// Starts a search.
    ///
    /// `low` and `high` are the inclusive local port range (`net.ipv4.ip_local_port_range`), `path`
    /// the index of the path, and `start_group` the [`group`](Self::group) remembered from the
    /// path's last search, or 0. A path of 8 and above has no ports.
    pub fn new(low: u16, high: u16, path: usize, start_group: u32) -> Self {
        let low = u32::from(low).next_multiple_of(GROUP_PORTS);
        let (path, groups) = match u32::try_from(path) {
            Ok(path) if path < GROUP_PORTS => {
                let ports = (u32::from(high).wrapping_add(1)).saturating_sub(low);
                (path, ports / GROUP_PORTS)
            }
            _ => (0, 0),
        };
        Self {
            base: low.saturating_add(path),
            groups,
            group: start_group,
            left: groups,
        }
    }

    /// Group of the last port handed out, to be remembered for the next search.
    pub fn group(&self) -> u32 {
        self.group
    }
}

impl Iterator for SourcePorts {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        self.left = self.left.checked_sub(1)?;
        let next = self.group.saturating_add(1);
        self.group = if next < self.groups { next } else { 0 };
        let port = self
            .base
            .checked_add(self.group.checked_mul(GROUP_PORTS)?)?;
        u16::try_from(port).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn hash_vectors() {
        for (port, hash, path) in [
            (4001, 0xbc7d_f522, 2),
            (4002, 0xf4ba_a206, 6),
            (10000, 0x8977_8e2b, 3),
            (20000, 0x37cb_1b1d, 5),
        ] {
            assert_eq!(path_hash(port, 0), hash);
            assert_eq!(path_index(port, 0, 8), path);
        }
    }

    #[test]
    fn path_stays_below_the_number_of_paths() {
        for npaths in 0..=u8::MAX {
            for port in [0, 1, 4001, 10000, u16::MAX] {
                assert!(path_index(port, 7, npaths) < usize::from(npaths.max(1)));
                assert!(path_of_source_port(port, npaths) < usize::from(npaths.max(1)));
            }
        }
    }

    #[test]
    fn first_ports_are_those_of_the_capture() {
        for path in 0..MAX_PATHS {
            let mut ports = SourcePorts::new(32768, 60999, path, 0);
            let port = ports.next().unwrap();
            assert_eq!(usize::from(port), 32776 + path);
            assert_eq!(path_of_source_port(port, 8), path);
        }
    }

    #[test]
    fn each_group_is_tried_once_and_remembered() {
        // Aligned to 104; groups 104..112 and 112..120, while 120..124 is incomplete.
        let mut ports = SourcePorts::new(99, 123, 2, 1);
        assert_eq!((ports.next(), ports.group()), (Some(106), 0));
        assert_eq!((ports.next(), ports.group()), (Some(114), 1));
        assert_eq!((ports.next(), ports.group()), (None, 1));
        // A group remembered from a larger range starts over.
        assert_eq!(SourcePorts::new(99, 123, 2, 3000).next(), Some(106));
        assert_eq!(SourcePorts::new(99, 123, 2, u32::MAX).next(), Some(106));
    }

    #[test]
    fn ranges_without_ports() {
        assert_eq!(SourcePorts::new(100, 103, 0, 0).next(), None);
        assert_eq!(SourcePorts::new(200, 100, 0, 0).next(), None);
        assert_eq!(SourcePorts::new(u16::MAX, u16::MAX, 0, 0).next(), None);
        assert_eq!(SourcePorts::new(0, u16::MAX, 8, 0).next(), None);
    }

    #[test]
    fn whole_range_reaches_the_last_port() {
        let ports: Vec<u16> = SourcePorts::new(0, u16::MAX, 7, 0).collect();
        assert_eq!(ports.len(), 8192);
        assert_eq!(ports.iter().max(), Some(&u16::MAX));
    }
}
