// SPDX-License-Identifier: GPL-2.0

//! Socket addresses as the kernel lays them out.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

/// Bytes of a `sockaddr_in`.
const LEN_V4: usize = 16;
/// Bytes of a `sockaddr_in6`.
const LEN_V6: usize = 28;

/// A `sockaddr_storage` that is written and read by byte offsets.
#[derive(Clone)]
#[repr(C, align(8))]
pub(crate) struct RawAddr {
    pub(crate) bytes: [u8; 128],
    pub(crate) len: u32,
}

impl RawAddr {
    /// Room for an address the kernel is going to write.
    pub(crate) fn room() -> Self {
        Self {
            bytes: [0; 128],
            len: 128,
        }
    }

    /// The address, or `None` if none was written or its family is neither IPv4 nor IPv6.
    pub(crate) fn get(&self) -> Option<SocketAddr> {
        let len = usize::try_from(self.len).ok()?;
        let bytes = self.bytes.get(..len)?;
        let family = i32::from(u16::from_ne_bytes(field(bytes, 0)?));
        let port = u16::from_be_bytes(field(bytes, 2)?);
        match family {
            libc::AF_INET => {
                let ip = Ipv4Addr::from(field::<4>(bytes, 4)?);
                Some(SocketAddr::new(IpAddr::V4(ip), port))
            }
            libc::AF_INET6 => {
                let flow = u32::from_be_bytes(field(bytes, 4)?);
                let ip = Ipv6Addr::from(field::<16>(bytes, 8)?);
                let scope = u32::from_ne_bytes(field(bytes, 24)?);
                Some(SocketAddr::V6(SocketAddrV6::new(ip, port, flow, scope)))
            }
            _ => None,
        }
    }
}

impl From<SocketAddr> for RawAddr {
    fn from(addr: SocketAddr) -> Self {
        let mut bytes = [0; 128];
        bytes[2..4].copy_from_slice(&addr.port().to_be_bytes());
        let (family, len) = match addr {
            SocketAddr::V4(v4) => {
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                (libc::AF_INET, LEN_V4)
            }
            SocketAddr::V6(v6) => {
                bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                (libc::AF_INET6, LEN_V6)
            }
        };
        // CAST: both families are small positive numbers.
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        // CAST: one of the two constants above.
        Self {
            bytes,
            len: len as u32,
        }
    }
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset + N)?.try_into().ok()
}

/// The local address from which the routing table would reach `destination`.
///
/// No packet is sent.
pub fn source_for(destination: SocketAddr) -> io::Result<SocketAddr> {
    let any: IpAddr = match destination {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = UdpSocket::bind(SocketAddr::new(any, 0))?;
    let mut target = destination;
    target.set_port(1);
    probe.connect(target)?;
    let mut local = probe.local_addr()?;
    local.set_port(0);
    Ok(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_round_trip() {
        for text in ["10.0.0.2:4000", "[2001:db8::1]:0", "[fe80::1%3]:65535"] {
            let addr: SocketAddr = text.parse().unwrap();
            assert_eq!(RawAddr::from(addr).get(), Some(addr));
        }
    }

    #[test]
    fn layout_is_that_of_the_kernel() {
        let raw = RawAddr::from("10.0.0.2:258".parse::<SocketAddr>().unwrap());
        assert_eq!(raw.len, 16);
        assert_eq!(raw.bytes[..8], [2, 0, 1, 2, 10, 0, 0, 2]);
        let raw = RawAddr::from("[fe80::1%3]:1".parse::<SocketAddr>().unwrap());
        assert_eq!(raw.len, 28);
        assert_eq!((raw.bytes[8], raw.bytes[23], raw.bytes[24]), (0xfe, 1, 3));
    }

    #[test]
    fn no_address_is_none() {
        let mut raw = RawAddr::room();
        assert_eq!(raw.get(), None);
        raw.len = 0;
        assert_eq!(raw.get(), None);
        let mut short = RawAddr::from("[::1]:1".parse::<SocketAddr>().unwrap());
        short.len = 16;
        assert_eq!(short.get(), None);
    }
}
