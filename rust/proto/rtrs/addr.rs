// SPDX-License-Identifier: GPL-2.0

//! Addresses as users type and read them.
//!
//! `ip:10.0.0.1`, `ip:fe80::1%eth0`, `gid:fe80:0000:...`; a path is `source@destination` or `source,destination`, or a
//! destination alone. Without port: that of the source is 0 and that of the destination is said elsewhere.
//!
//! C counterpart: `rtrs_addr_to_sockaddr()`, `sockaddr_to_str()` in `rtrs.c`, `inet_pton_with_scope()`.

use core::{
    fmt,
    net::{
        Ipv4Addr,
        Ipv6Addr, //
    }, //
};

use crate::errno::{
    Errno,
    Failure, //
};

/// Longest name of a network interface in bytes.
const MAX_INTERFACE: usize = 15;

/// Partition key of InfiniBand addresses: the default one.
pub const IB_PKEY: u16 = 0xffff;

/// Mask of the service of InfiniBand addresses: all of it counts.
pub const IB_SERVICE_MASK: u64 = u64::MAX;

/// Service of an InfiniBand address that stands for `port` (`RDMA_IB_IP_PS_IB`).
pub const fn ib_service(port: u16) -> u64 {
    // CAST: Widening, `From` is not const.
    0x013f_0000 | port as u64
}

/// Address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Addr {
    /// IPv4.
    V4(Ipv4Addr),
    /// IPv6.
    V6 {
        /// The address.
        addr: Ipv6Addr,
        /// Index of the interface it is reached over, 0 for any.
        scope_id: u32,
    },
    /// InfiniBand: a global identifier.
    Gid([u8; 16]),
}

impl Addr {
    /// Whether connections between the two are possible as far as their kinds go.
    const fn same_kind(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::V4(_), Self::V4(_))
                | (Self::V6 { .. }, Self::V6 { .. })
                | (Self::Gid(_), Self::Gid(_))
        )
    }
}

impl fmt::Display for Addr {
    /// The form that C writes: IPv6 shortened and without interface, InfiniBand in full.
    ///
    /// Except that C writes the end of an ISATAP address like an IPv4 one; both forms are read alike.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(addr) => write!(f, "ip:{addr}"),
            Self::V6 { addr, .. } => write!(f, "ip:{addr}"),
            Self::Gid(gid) => {
                f.write_str("gid")?;
                for group in Ipv6Addr::from(*gid).segments() {
                    write!(f, ":{group:04x}")?;
                }
                Ok(())
            }
        }
    }
}

/// An address as it was typed.
///
/// `scope` is there only if the address needs one to be reached: the name of a network interface, or its index. The
/// caller finds the index and puts it into the address, see [`with_scope`](Self::with_scope).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddrText<'a> {
    /// The address; an interface is not in it yet.
    pub addr: Addr,
    /// The interface.
    pub scope: Option<&'a str>,
}

impl<'a> AddrText<'a> {
    /// Reads an address.
    pub fn parse(text: &'a str) -> Result<Self, AddrError> {
        if let Some(gid) = text.strip_prefix("gid:") {
            let gid: Ipv6Addr = gid.parse().map_err(|_| AddrError::Gid)?;
            return Ok(Self {
                addr: Addr::Gid(gid.octets()),
                scope: None,
            });
        }
        let ip = text.strip_prefix("ip:").ok_or(AddrError::Kind)?;
        if let Ok(addr) = ip.parse() {
            return Ok(Self {
                addr: Addr::V4(addr),
                scope: None,
            });
        }
        let (addr, scope) = match ip.split_once('%') {
            None => (ip, None),
            Some((addr, scope)) => (addr, Some(scope)),
        };
        let addr: Ipv6Addr = addr.parse().map_err(|_| AddrError::Ip)?;
        if scope.is_some_and(|scope| !is_interface(scope)) {
            return Err(AddrError::Scope);
        }
        Ok(Self {
            addr: Addr::V6 { addr, scope_id: 0 },
            // As in C, where none is needed it does not count.
            scope: scope.filter(|_| is_link_local(&addr)),
        })
    }

    /// The interface, if it was typed as an index; a name of this form comes first.
    pub fn scope_number(&self) -> Option<u32> {
        self.scope?.parse().ok()
    }

    /// The address with the index of its interface.
    pub fn with_scope(&self, scope_id: u32) -> Addr {
        match self.addr {
            Addr::V6 { addr, .. } => Addr::V6 { addr, scope_id },
            other => other,
        }
    }
}

/// Whether an address means something only on one interface.
const fn is_link_local(addr: &Ipv6Addr) -> bool {
    matches!(addr.octets(), [0xfe, second, ..] if second & 0xc0 == 0x80)
}

/// Whether this can be the name or the index of an interface.
fn is_interface(text: &str) -> bool {
    (1..=MAX_INTERFACE).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'/')
}

/// A path as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathText<'a> {
    /// Own address; without one the routes decide.
    pub src: Option<AddrText<'a>>,
    /// The server's address.
    pub dst: AddrText<'a>,
}

impl<'a> PathText<'a> {
    /// Reads `destination`, `source@destination` or `source,destination`.
    ///
    /// If there is a comma anywhere, that is what separates.
    pub fn parse(text: &'a str) -> Result<Self, PathError> {
        let (src, dst) = match text.split_once(',').or_else(|| text.split_once('@')) {
            None => (None, text),
            Some((src, dst)) => (Some(AddrText::parse(src).map_err(PathError::Source)?), dst),
        };
        let dst = AddrText::parse(dst).map_err(PathError::Destination)?;
        match src {
            Some(src) if !src.addr.same_kind(&dst.addr) => Err(PathError::Kinds),
            _ => Ok(Self { src, dst }),
        }
    }
}

/// Name of a path, which is also that of its directory in sysfs: `source@destination`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathName {
    /// The client's address.
    pub src: Addr,
    /// The server's address.
    pub dst: Addr,
}

impl fmt::Display for PathName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.src, self.dst)
    }
}

/// What is wrong with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddrError {
    /// It begins neither with `ip:` nor with `gid:`.
    Kind,
    /// Neither an IPv4 nor an IPv6 address.
    Ip,
    /// Not a global identifier.
    Gid,
    /// What follows the `%` can be no interface.
    Scope,
}

impl fmt::Display for AddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kind => "must begin with 'ip:' or 'gid:'",
            Self::Ip => "is neither an IPv4 nor an IPv6 address",
            Self::Gid => "is no GID of eight groups",
            Self::Scope => "has no name or number of an interface after '%'",
        })
    }
}

/// What is wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The source address.
    Source(AddrError),
    /// The destination address.
    Destination(AddrError),
    /// Source and destination are of different kinds.
    Kinds,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(error) => write!(f, "source address {error}"),
            Self::Destination(error) => write!(f, "destination address {error}"),
            Self::Kinds => f.write_str("source and destination address are of different kinds"),
        }
    }
}

impl Failure for PathError {
    fn errno(&self) -> Errno {
        match self {
            // C lets only this one through.
            Self::Destination(AddrError::Kind) => Errno::EPROTONOSUPPORT,
            _ => Errno::EINVAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn addr(text: &str) -> Addr {
        AddrText::parse(text).unwrap().addr
    }

    #[test]
    fn text_both_ways() {
        for (text, written) in [
            ("ip:10.9.0.1", "ip:10.9.0.1"),
            ("ip:2001:DB8:0:0:0:0:0:1", "ip:2001:db8::1"),
            ("ip:fe80::200:5aee:feaa:20a2", "ip:fe80::200:5aee:feaa:20a2"),
            ("ip:fe80::1%eth0", "ip:fe80::1"),
            ("ip:::ffff:10.9.0.1", "ip:::ffff:10.9.0.1"),
            ("ip:::1", "ip:::1"),
            ("gid:fe80::1", "gid:fe80:0000:0000:0000:0000:0000:0000:0001"),
        ] {
            assert_eq!(addr(text).to_string(), written);
            assert_eq!(addr(written), addr(text));
        }
    }

    #[test]
    fn interfaces() {
        let text = AddrText::parse("ip:fe80::1%eth0").unwrap();
        assert_eq!((text.scope, text.scope_number()), (Some("eth0"), None));
        assert_eq!(
            text.with_scope(7),
            Addr::V6 {
                addr: "fe80::1".parse().unwrap(),
                scope_id: 7
            }
        );
        let text = AddrText::parse("ip:fe80::1%7").unwrap();
        assert_eq!((text.scope, text.scope_number()), (Some("7"), Some(7)));
        // Not needed, so it does not count.
        assert_eq!(AddrText::parse("ip:2001:db8::1%eth0").unwrap().scope, None);
        assert_eq!(AddrText::parse("ip:fe80::1").unwrap().scope, None);
        for text in [
            "ip:fe80::1%",
            "ip:fe80::1%a/b",
            "ip:fe80::1%0123456789abcdef",
            "ip:fe80::1%a b",
        ] {
            assert_eq!(AddrText::parse(text), Err(AddrError::Scope), "{text}");
        }
        assert_eq!(
            AddrText::parse("ip:10.9.0.1").unwrap().with_scope(7),
            addr("ip:10.9.0.1")
        );
    }

    #[test]
    fn bad_addresses() {
        for (text, error) in [
            ("", AddrError::Kind),
            ("10.9.0.1", AddrError::Kind),
            ("IP:10.9.0.1", AddrError::Kind),
            (" ip:10.9.0.1", AddrError::Kind),
            ("ip:", AddrError::Ip),
            ("ip:10.9.0", AddrError::Ip),
            ("ip:10.9.0.256", AddrError::Ip),
            ("ip:10.9.0.1%eth0", AddrError::Ip),
            ("ip:10.9.0.1 ", AddrError::Ip),
            ("ip:host", AddrError::Ip),
            ("ip:fe80::1::2", AddrError::Ip),
            ("gid:", AddrError::Gid),
            ("gid:10.9.0.1", AddrError::Gid),
            ("gid:fe80::1%eth0", AddrError::Gid),
        ] {
            assert_eq!(AddrText::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn paths() {
        let path =
            |text| PathText::parse(text).map(|path| (path.src.map(|src| src.addr), path.dst.addr));
        let (a, b) = (addr("ip:10.9.0.2"), addr("ip:10.9.0.1"));
        assert_eq!(path("ip:10.9.0.1"), Ok((None, b)));
        assert_eq!(path("ip:10.9.0.2@ip:10.9.0.1"), Ok((Some(a), b)));
        assert_eq!(path("ip:10.9.0.2,ip:10.9.0.1"), Ok((Some(a), b)));
        for (text, error) in [
            ("", PathError::Destination(AddrError::Kind)),
            ("10.9.0.1", PathError::Destination(AddrError::Kind)),
            ("ip:1.2.3.4@", PathError::Destination(AddrError::Kind)),
            ("ip:1.2.3.4@ip:", PathError::Destination(AddrError::Ip)),
            ("@ip:1.2.3.4", PathError::Source(AddrError::Kind)),
            (
                "ip:1.2.3.4@ip:1.2.3.4@ip:1.2.3.4",
                PathError::Destination(AddrError::Ip),
            ),
            // The comma wins.
            (
                "ip:1.2.3.4@ip:1.2.3.4,ip:1.2.3.4",
                PathError::Source(AddrError::Ip),
            ),
            ("ip:1.2.3.4@ip:::1", PathError::Kinds),
            ("gid:fe80::1,ip:::1", PathError::Kinds),
        ] {
            assert_eq!(path(text), Err(error), "{text}");
        }
        assert_eq!(
            PathError::Destination(AddrError::Kind).errno(),
            Errno::EPROTONOSUPPORT
        );
        assert_eq!(PathError::Source(AddrError::Kind).errno(), Errno::EINVAL);
        assert_eq!(
            PathName { src: a, dst: b }.to_string(),
            "ip:10.9.0.2@ip:10.9.0.1"
        );
    }

    #[test]
    fn service_of_a_high_port() {
        assert_eq!(ib_service(1234), 0x0000_0000_013f_04d2);
        assert_eq!(ib_service(40000), 0x0000_0000_013f_9c40);
    }
}
