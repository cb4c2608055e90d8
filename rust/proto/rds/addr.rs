// SPDX-License-Identifier: GPL-2.0

//! Addresses of RDS: IPv6, with IPv4 held in its mapped form.
//!
//! C counterpart: `struct in6_addr` as `net/rds/` uses it; classes as `ipv6_addr_type()` and
//! `ipv4_is_*()`.

use core::{
    fmt,
    net::{
        Ipv4Addr,
        Ipv6Addr, //
    }, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

pub use super::sockaddr::{
    check_bind,
    check_connect,
    check_send,
    parse_sockaddr,
    AddrError,
    Endpoint, //
};

/// First 12 bytes of an IPv4-mapped address, `::ffff:0:0/96`.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// An address in network order; IPv4 addresses are `::ffff:a.b.c.d`.
///
/// The order is that of the 128-bit number, which decides who connects.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct Addr(pub [u8; 16]);

impl Addr {
    /// The IPv6 unspecified address, `::`.
    pub const ANY: Self = Self([0; 16]);

    /// The IPv6 loopback address, `::1`.
    pub const LOOPBACK: Self = Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    /// The mapped form of an IPv4 address in network order.
    #[inline]
    pub const fn from_v4(v4: [u8; 4]) -> Self {
        let [a, b, c, d] = v4;
        Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
    }

    /// The IPv4 address in network order, if this is one in mapped form.
    #[inline]
    pub fn v4(&self) -> Option<[u8; 4]> {
        let (prefix, v4) = self.0.split_first_chunk::<12>()?;
        if *prefix != MAPPED {
            return None;
        }
        v4.first_chunk().copied()
    }

    /// Whether this is an IPv4 address in mapped form.
    #[inline]
    pub fn is_v4_mapped(&self) -> bool {
        self.v4().is_some()
    }

    /// Whether this is `::` or 0.0.0.0.
    #[inline]
    pub fn is_any(&self) -> bool {
        *self == Self::ANY || self.v4() == Some([0; 4])
    }

    /// Whether this is `::1` or in 127.0.0.0/8.
    #[inline]
    pub fn is_loopback(&self) -> bool {
        *self == Self::LOOPBACK || matches!(self.v4(), Some([127, ..]))
    }

    /// Whether this is in `fe80::/10`; IPv4 has no link-local addresses in this sense.
    #[inline]
    pub fn is_link_local(&self) -> bool {
        let [first, second, ..] = self.0;
        first == 0xfe && second & 0xc0 == 0x80
    }

    /// Whether this is in `ff00::/8` or 224.0.0.0/4.
    #[inline]
    pub fn is_multicast(&self) -> bool {
        match self.v4() {
            Some([first, ..]) => first & 0xf0 == 0xe0,
            None => matches!(self.0, [0xff, ..]),
        }
    }

    /// Whether this is 255.255.255.255.
    #[inline]
    pub fn is_broadcast(&self) -> bool {
        self.v4() == Some([255; 4])
    }
}

impl fmt::Display for Addr {
    /// `a.b.c.d`, or the IPv6 address in the form of RFC 5952.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.v4() {
            Some(v4) => Ipv4Addr::from(v4).fmt(f),
            None => Ipv6Addr::from(self.0).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn v6(text: &str) -> Addr {
        Addr(text.parse::<Ipv6Addr>().unwrap().octets())
    }

    #[test]
    fn mapped_form() {
        let addr = Addr::from_v4([10, 9, 0, 1]);
        assert_eq!(addr, v6("::ffff:10.9.0.1"));
        assert_eq!(addr.v4(), Some([10, 9, 0, 1]));
        assert!(addr.is_v4_mapped());
        for text in [
            "::",
            "::1",
            "::10.9.0.1",
            "::fffe:10.9.0.1",
            "1::ffff:10.9.0.1",
        ] {
            assert_eq!(v6(text).v4(), None, "{text}");
        }
    }

    #[test]
    fn classes() {
        assert!(Addr::ANY.is_any() && Addr::from_v4([0; 4]).is_any());
        assert!(!Addr::LOOPBACK.is_any() && Addr::LOOPBACK == v6("::1"));
        assert!(Addr::LOOPBACK.is_loopback() && Addr::from_v4([127, 255, 0, 9]).is_loopback());
        assert!(!Addr::from_v4([128, 0, 0, 1]).is_loopback());
        assert!(v6("fe80::1").is_link_local() && v6("febf::1").is_link_local());
        assert!(!v6("fec0::1").is_link_local());
        assert!(!Addr::from_v4([169, 254, 0, 1]).is_link_local());
        assert!(v6("ff02::1").is_multicast() && Addr::from_v4([239, 1, 2, 3]).is_multicast());
        assert!(!Addr::from_v4([240, 0, 0, 1]).is_multicast());
        assert!(Addr::from_v4([255; 4]).is_broadcast());
    }

    #[test]
    fn text() {
        for (addr, text) in [
            (Addr::from_v4([10, 9, 0, 1]), "10.9.0.1"),
            (Addr::ANY, "::"),
            (Addr::LOOPBACK, "::1"),
            (v6("2001:db8:0:0:1:0:0:1"), "2001:db8::1:0:0:1"),
            (v6("fe80:0:0:0:0:0:0:ABCD"), "fe80::abcd"),
        ] {
            assert_eq!(addr.to_string(), text);
        }
    }
}
