// SPDX-License-Identifier: GPL-2.0

//! Socket addresses that user programs pass in and get back.
//!
//! `bind`, `connect` and `sendmsg` accept the same addresses but refuse the others with different
//! errors: [`parse_sockaddr`] finds out what is wrong, and `check_*` turn that into the error of the
//! call.
//!
//! C counterpart: `net/rds/bind.c`, `net/rds/af_rds.c`, `net/rds/send.c`.

use zerocopy::{
    big_endian,
    native_endian,
    FromBytes as _,
    IntoBytes as _, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::{
    addr::Addr,
    uapi::{
        AF_INET,
        AF_INET6, //
    }, //
};

/// Size of `struct sockaddr_in` in bytes.
pub const SOCKADDR_IN_LEN: usize = 16;

/// Size of `struct sockaddr_in6` in bytes.
pub const SOCKADDR_IN6_LEN: usize = 28;

/// Size of `struct sockaddr_storage` in bytes.
pub const SOCKADDR_STORAGE_LEN: usize = 128;

/// `struct sockaddr_in`.
#[repr(C)]
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Default)]
struct SockaddrIn {
    /// [`AF_INET`].
    family: native_endian::U16,
    /// RDS port.
    port: big_endian::U16,
    /// IPv4 address.
    addr: [u8; 4],
    /// Zero.
    zero: [u8; 8],
}

const _: () = assert!(size_of::<SockaddrIn>() == SOCKADDR_IN_LEN);

/// `struct sockaddr_in6`.
#[repr(C)]
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Default)]
struct SockaddrIn6 {
    /// [`AF_INET6`].
    family: native_endian::U16,
    /// RDS port.
    port: big_endian::U16,
    /// Ignored on input, 0 on output.
    flowinfo: big_endian::U32,
    /// IPv6 address.
    addr: Addr,
    /// Interface index of a link-local address.
    scope_id: native_endian::U32,
}

const _: () = assert!(size_of::<SockaddrIn6>() == SOCKADDR_IN6_LEN);

/// A host address, a port on it, and the interface it is reached over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address.
    pub addr: Addr,
    /// The RDS port.
    pub port: u16,
    /// Interface index of a link-local address, 0 for all others.
    pub scope_id: u32,
}

impl Endpoint {
    /// Writes the endpoint as a socket address and returns its length.
    ///
    /// That is [`SOCKADDR_IN_LEN`] for an IPv4 address, else [`SOCKADDR_IN6_LEN`]. The rest of `out`
    /// is zeroed.
    pub fn to_sockaddr(&self, out: &mut [u8; SOCKADDR_STORAGE_LEN]) -> usize {
        *out = [0; SOCKADDR_STORAGE_LEN];
        // Either structure fits the storage, so the writes cannot fail.
        match self.addr.v4() {
            Some(addr) => {
                let name = SockaddrIn {
                    family: AF_INET.into(),
                    port: self.port.into(),
                    addr,
                    zero: [0; 8],
                };
                let _ = name.write_to_prefix(out);
                SOCKADDR_IN_LEN
            }
            None => {
                let name = SockaddrIn6 {
                    family: AF_INET6.into(),
                    port: self.port.into(),
                    flowinfo: big_endian::U32::ZERO,
                    addr: self.addr,
                    scope_id: self.scope_id.into(),
                };
                let _ = name.write_to_prefix(out);
                SOCKADDR_IN6_LEN
            }
        }
    }
}

/// What is wrong with a socket address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Too short for its family, or to have one.
    TooShort,
    /// Neither IPv4 nor IPv6.
    Family,
    /// IPv4: 0.0.0.0.
    AnyV4,
    /// IPv4: broadcast or multicast.
    NotUnicastV4,
    /// IPv6: `::`, multicast, or a mapped IPv4 address that is any, broadcast or multicast.
    NotUnicastV6,
    /// IPv6: link-local without an interface.
    NoScope,
}

/// Reads the socket address in `bytes`, whose length is the one the caller passed to the kernel.
pub fn parse_sockaddr(bytes: &[u8]) -> Result<Endpoint, Defect> {
    let (family, _) = native_endian::U16::read_from_prefix(bytes).map_err(|_| Defect::TooShort)?;
    match family.get() {
        AF_INET => parse_v4(bytes),
        AF_INET6 => parse_v6(bytes),
        _ => Err(Defect::Family),
    }
}

/// Reads a `struct sockaddr_in`.
fn parse_v4(bytes: &[u8]) -> Result<Endpoint, Defect> {
    let (name, _) = SockaddrIn::read_from_prefix(bytes).map_err(|_| Defect::TooShort)?;
    let addr = Addr::from_v4(name.addr);
    if addr.is_any() {
        return Err(Defect::AnyV4);
    }
    if addr.is_broadcast() || addr.is_multicast() {
        return Err(Defect::NotUnicastV4);
    }
    Ok(Endpoint {
        addr,
        port: name.port.get(),
        scope_id: 0,
    })
}

/// Reads a `struct sockaddr_in6`.
fn parse_v6(bytes: &[u8]) -> Result<Endpoint, Defect> {
    let (name, _) = SockaddrIn6::read_from_prefix(bytes).map_err(|_| Defect::TooShort)?;
    let addr = name.addr;
    // These also catch a mapped IPv4 address of the same kind.
    if addr.is_any() || addr.is_broadcast() || addr.is_multicast() {
        return Err(Defect::NotUnicastV6);
    }
    let scope_id = match name.scope_id.get() {
        _ if !addr.is_link_local() => 0,
        0 => return Err(Defect::NoScope),
        scope_id => scope_id,
    };
    Ok(Endpoint {
        addr,
        port: name.port.get(),
        scope_id,
    })
}

/// Error for a socket address, named after the errno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddrError {
    /// `EINVAL`.
    Inval,
    /// `EDESTADDRREQ`.
    DestAddrReq,
    /// `EPROTOTYPE`.
    ProtoType,
    /// `EAFNOSUPPORT`.
    AfNoSupport,
}

/// Reads the address given to `bind`.
pub fn check_bind(bytes: &[u8]) -> Result<Endpoint, AddrError> {
    parse_sockaddr(bytes).map_err(|_| AddrError::Inval)
}

/// Reads the address given to `connect`.
pub fn check_connect(bytes: &[u8]) -> Result<Endpoint, AddrError> {
    parse_sockaddr(bytes).map_err(|defect| match defect {
        Defect::TooShort | Defect::NotUnicastV4 | Defect::NoScope => AddrError::Inval,
        Defect::AnyV4 => AddrError::DestAddrReq,
        Defect::NotUnicastV6 => AddrError::ProtoType,
        Defect::Family => AddrError::AfNoSupport,
    })
}

/// Reads the destination given to `sendmsg`.
pub fn check_send(bytes: &[u8]) -> Result<Endpoint, AddrError> {
    parse_sockaddr(bytes).map_err(|_| AddrError::Inval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv6Addr;
    use std::vec::Vec;

    fn sin(addr: [u8; 4]) -> Vec<u8> {
        let mut name = std::vec![0; 16];
        name[..2].copy_from_slice(&AF_INET.to_ne_bytes());
        name[2..4].copy_from_slice(&[0x0f, 0xa1]);
        name[4..8].copy_from_slice(&addr);
        name
    }

    fn sin6(addr: &str, scope_id: u32) -> Vec<u8> {
        let mut name = std::vec![0; 28];
        name[..2].copy_from_slice(&AF_INET6.to_ne_bytes());
        name[2..4].copy_from_slice(&[0x0f, 0xa1]);
        name[4..8].fill(0xee);
        name[8..24].copy_from_slice(&addr.parse::<Ipv6Addr>().unwrap().octets());
        name[24..].copy_from_slice(&scope_id.to_ne_bytes());
        name
    }

    /// Asserts what `bind`, `connect` and `sendmsg` say to `name`, which all refuse.
    fn refused(name: &[u8], bind: AddrError, connect: AddrError, send: AddrError) {
        assert_eq!(check_bind(name), Err(bind), "bind {name:?}");
        assert_eq!(check_connect(name), Err(connect), "connect {name:?}");
        assert_eq!(check_send(name), Err(send), "sendmsg {name:?}");
    }

    #[test]
    fn every_row_of_the_table() {
        use AddrError::*;
        refused(&[], Inval, Inval, Inval);
        refused(&[2], Inval, Inval, Inval);
        refused(&sin([10, 0, 0, 1])[..15], Inval, Inval, Inval);
        refused(&sin([0; 4]), Inval, DestAddrReq, Inval);
        refused(&sin([255; 4]), Inval, Inval, Inval);
        refused(&sin([224, 0, 0, 1]), Inval, Inval, Inval);
        refused(&sin6("2001:db8::1", 0)[..27], Inval, Inval, Inval);
        for addr in [
            "::",
            "ff02::1",
            "::ffff:0.0.0.0",
            "::ffff:255.255.255.255",
            "::ffff:224.0.0.1",
        ] {
            refused(&sin6(addr, 1), Inval, ProtoType, Inval);
        }
        refused(&sin6("fe80::1", 0), Inval, Inval, Inval);
        let mut other = sin([10, 0, 0, 1]);
        other[..2].copy_from_slice(&1u16.to_ne_bytes());
        refused(&other, Inval, AfNoSupport, Inval);
        refused(&other[..2], Inval, AfNoSupport, Inval);
    }

    #[test]
    fn accepted_addresses() {
        let v4 = Endpoint {
            addr: Addr::from_v4([10, 0, 0, 1]),
            port: 4001,
            scope_id: 0,
        };
        let mut long = sin([10, 0, 0, 1]);
        long.resize(128, 0xee);
        for name in [&sin([10, 0, 0, 1]), &long, &sin6("::ffff:10.0.0.1", 7)] {
            assert_eq!(check_bind(name), Ok(v4));
            assert_eq!(check_connect(name), Ok(v4));
            assert_eq!(check_send(name), Ok(v4));
        }
        for (addr, scope_id, kept) in [
            ("2001:db8::1", 7, 0),
            ("fe80::1", 7, 7),
            ("::1", 7, 0),
            ("::2", 0, 0),
        ] {
            let endpoint = check_bind(&sin6(addr, scope_id)).unwrap();
            assert_eq!((endpoint.port, endpoint.scope_id), (4001, kept), "{addr}");
            assert_eq!(endpoint.addr.0, addr.parse::<Ipv6Addr>().unwrap().octets());
        }
    }

    #[test]
    fn written_as_it_was_read() {
        let mut out = [0xff; SOCKADDR_STORAGE_LEN];
        let name = sin([10, 0, 0, 1]);
        assert_eq!(check_bind(&name).unwrap().to_sockaddr(&mut out), 16);
        assert_eq!(out[..16], name);
        assert_eq!(out[16..], [0; 112]);

        let mut name = sin6("fe80::1", 7);
        assert_eq!(check_bind(&name).unwrap().to_sockaddr(&mut out), 28);
        name[4..8].fill(0);
        assert_eq!(out[..28], name);
        assert_eq!(out[28..], [0; 100]);
    }
}
