// SPDX-License-Identifier: GPL-2.0

//! Socket addresses, good and bad.

use crate::rng::Rng;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where a socket is bound to; IPv4 in its mapped form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    pub(crate) ip: Ipv6Addr,
    pub(crate) port: u16,
    pub(crate) scope: u32,
}

/// The addresses that 46-calls gives to its namespaces, or some of the time, or to none.
const ADDRESSES: [&str; 20] = [
    "127.0.0.1",
    "127.0.0.1",
    "127.0.0.9",
    "::1",
    "10.8.0.1",
    "10.8.0.1",
    "10.8.0.2",
    "10.8.0.2",
    "10.8.1.1",
    "10.8.1.2",
    "fd08::1",
    "fd08::2",
    "fd08:1::1",
    "fd08:1::2",
    "fe80::8:1",
    "fe80::8:2",
    "10.8.0.77",
    "10.8.0.78",
    "fd08::77",
    "192.0.2.1",
];
/// Those that are never right.
const BAD: [&str; 8] = [
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "::",
    "ff02::1",
    "::ffff:0.0.0.0",
    "::ffff:224.0.0.1",
    "10.8.0.255",
];

impl Name {
    /// One that may be right.
    pub(crate) fn likely(rng: &mut Rng) -> Self {
        Self::of(rng.of(&ADDRESSES), rng)
    }

    /// One that nobody can have.
    pub(crate) fn unlikely(rng: &mut Rng) -> Self {
        Self::of(rng.of(&BAD), rng)
    }

    fn of(text: &str, rng: &mut Rng) -> Self {
        let ip = match text.parse::<Ipv4Addr>() {
            Ok(v4) => v4.to_ipv6_mapped(),
            Err(_) => text.parse().unwrap_or(Ipv6Addr::LOCALHOST),
        };
        let port = match rng.below(20) {
            0 => rng.of(&[0, 1, 2, 65535]),
            // CAST: Cut to a port.
            1 => rng.u32() as u16,
            // CAST: Below 6.
            _ => 4000 + rng.below(6) as u16,
        };
        let scope = if ip.is_unicast_link_local() {
            rng.of(&[0, 1, 2, 2, 2, 3, 3, 9])
        } else {
            0
        };
        Self { ip, port, scope }
    }

    /// As `sockaddr_in`, or `sockaddr_in6` if it is IPv6 or `wide`.
    pub(crate) fn bytes(&self, wide: bool) -> Vec<u8> {
        let port = self.port.to_be_bytes();
        match self.ip.to_ipv4_mapped().filter(|_| !wide) {
            Some(v4) => [&[2, 0][..], &port, &v4.octets(), &[0; 8]].concat(),
            None => [
                &[10, 0][..],
                &port,
                &[0; 4],
                &self.ip.octets(),
                &self.scope.to_ne_bytes(),
            ]
            .concat(),
        }
    }

    /// What the kernel has written; None if it is no address.
    pub(crate) fn parse(raw: &[u8]) -> Option<Self> {
        let port = u16::from_be_bytes([*raw.get(2)?, *raw.get(3)?]);
        match (raw[0], raw.len()) {
            (2, 16) => {
                let ip = Ipv4Addr::new(raw[4], raw[5], raw[6], raw[7]).to_ipv6_mapped();
                Some(Self { ip, port, scope: 0 })
            }
            (10, 28) => {
                let ip: [u8; 16] = raw[8..24].try_into().ok()?;
                let scope: [u8; 4] = raw[24..28].try_into().ok()?;
                Some(Self {
                    ip: ip.into(),
                    port,
                    scope: u32::from_ne_bytes(scope),
                })
            }
            _ => None,
        }
    }

    /// Whether it is IPv4.
    pub(crate) fn is_v4(&self) -> bool {
        self.ip.to_ipv4_mapped().is_some()
    }

    /// Whether it is the same address and port. The scope of a socket becomes that of the link-local address it connects
    /// to, whatever its own address is.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.ip, self.port) == (other.ip, other.port)
    }

    /// Whether messages to it stay in their namespace.
    pub(crate) fn is_loopback(&self) -> bool {
        self.ip.is_loopback() || self.ip.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
    }
}
