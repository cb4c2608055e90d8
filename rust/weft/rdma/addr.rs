// SPDX-License-Identifier: GPL-2.0

//! Addresses of the connection manager: IPv4, IPv6 and InfiniBand.
//!
//! C: `struct sockaddr_in`, `struct sockaddr_in6`, [`struct sockaddr_ib`](srctree/include/rdma/ib.h)

use crate::bindings;
use core::{
    mem::size_of,
    net::{
        Ipv4Addr,
        Ipv6Addr,
        SocketAddr,
        SocketAddrV4,
        SocketAddrV6, //
    },
};

// CAST: Small constants.
const AF_INET: u16 = bindings::AF_INET as u16;
const AF_INET6: u16 = bindings::AF_INET6 as u16;
const AF_IB: u16 = bindings::AF_IB as u16;

/// Bits of a service id that name the port space: `RDMA_PS_IB` above the port.
const SERVICE_ID_IB: u64 = 0x0000_0000_013F_0000;

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addr {
    /// An IP address and a port; an IPv6 address may have a scope, the index of its interface. All zero means any.
    Ip(SocketAddr),
    /// An InfiniBand address.
    Gid(GidAddr),
}

/// An address in the terms of InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidAddr {
    /// The port's global identifier, as on the wire; all zero means any.
    pub gid: [u8; 16],
    /// The partition key.
    pub pkey: u16,
    /// The service: port space and port.
    pub service_id: u64,
    /// Which bits of the service count.
    pub service_mask: u64,
    /// The scope, zero for none.
    pub scope_id: u64,
}

impl GidAddr {
    /// A port in the port space of InfiniBand, default partition.
    pub const fn new(gid: [u8; 16], port: u16) -> Self {
        Self {
            gid,
            pkey: 0xffff,
            // CAST: To a wider type.
            service_id: SERVICE_ID_IB | port as u64,
            service_mask: u64::MAX,
            scope_id: 0,
        }
    }
}

impl Addr {
    /// Any IPv6 address of this host, and any IPv4 one unless the system keeps the two apart (`bindv6only`).
    pub const fn any_v6(port: u16) -> Self {
        Self::Ip(SocketAddr::V6(SocketAddrV6::new(
            Ipv6Addr::UNSPECIFIED,
            port,
            0,
            0,
        )))
    }

    /// Any InfiniBand address of this host.
    pub const fn any_gid(port: u16) -> Self {
        Self::Gid(GidAddr::new([0; 16], port))
    }

    /// The port, in host order. For an InfiniBand address, the part of the service that is the port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Ip(addr) => addr.port(),
            Self::Gid(addr) => {
                let [.., high, low] = addr.service_id.to_be_bytes();
                u16::from_be_bytes([high, low])
            }
        }
    }

    /// Whether both are of one family, as the two ends of a connection have to be.
    pub(crate) fn same_family(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ip(a), Self::Ip(b)) => a.is_ipv4() == b.is_ipv4(),
            (Self::Gid(_), Self::Gid(_)) => true,
            _ => false,
        }
    }
}

impl From<SocketAddr> for Addr {
    fn from(addr: SocketAddr) -> Self {
        Self::Ip(addr)
    }
}

impl From<GidAddr> for Addr {
    fn from(addr: GidAddr) -> Self {
        Self::Gid(addr)
    }
}

/// A `struct sockaddr_storage`: room for any address, zero where an address has nothing.
#[repr(C, align(8))]
pub(crate) struct RawAddr([u8; size_of::<bindings::__kernel_sockaddr_storage>()]);

impl RawAddr {
    /// Copies the address out of C.
    ///
    /// # Safety
    ///
    /// `addr` must be valid for reads, and nobody may write to it meanwhile.
    pub(crate) unsafe fn read(addr: *const bindings::__kernel_sockaddr_storage) -> Self {
        // SAFETY: The caller promises it; the size is that of the C structure, and any bytes are valid here.
        Self(unsafe { addr.cast::<[u8; size_of::<Self>()]>().read() })
    }

    /// As C takes it: valid as long as `self`, for reads and writes of a `struct sockaddr_storage`.
    pub(crate) fn as_raw(&mut self) -> *mut bindings::sockaddr {
        self.0.as_mut_ptr().cast()
    }

    /// The address; `None` if it is of another family, such as none.
    pub(crate) fn decode(&self) -> Option<Addr> {
        match u16::from_ne_bytes(self.get(0)) {
            AF_INET => {
                let ip = Ipv4Addr::from(self.get::<4>(4));
                let addr = SocketAddrV4::new(ip, u16::from_be_bytes(self.get(2)));
                Some(Addr::Ip(addr.into()))
            }
            AF_INET6 => Some(Addr::Ip(SocketAddr::V6(SocketAddrV6::new(
                Ipv6Addr::from(self.get::<16>(8)),
                u16::from_be_bytes(self.get(2)),
                u32::from_be_bytes(self.get(4)),
                u32::from_ne_bytes(self.get(24)),
            )))),
            AF_IB => Some(Addr::Gid(GidAddr {
                gid: self.get(8),
                pkey: u16::from_be_bytes(self.get(2)),
                service_id: u64::from_be_bytes(self.get(24)),
                service_mask: u64::from_be_bytes(self.get(32)),
                scope_id: u64::from_ne_bytes(self.get(40)),
            })),
            _ => None,
        }
    }

    fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        let bytes = self.0.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.copied().unwrap_or([0; N])
    }

    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(room) = self
            .0
            .get_mut(at..)
            .and_then(|bytes| bytes.first_chunk_mut())
        {
            *room = bytes;
        }
    }
}

impl From<&Addr> for RawAddr {
    fn from(addr: &Addr) -> Self {
        let mut raw = Self([0; size_of::<Self>()]);
        match addr {
            Addr::Ip(SocketAddr::V4(addr)) => {
                raw.put(0, AF_INET.to_ne_bytes());
                raw.put(2, addr.port().to_be_bytes());
                raw.put(4, addr.ip().octets());
            }
            Addr::Ip(SocketAddr::V6(addr)) => {
                raw.put(0, AF_INET6.to_ne_bytes());
                raw.put(2, addr.port().to_be_bytes());
                raw.put(4, addr.flowinfo().to_be_bytes());
                raw.put(8, addr.ip().octets());
                raw.put(24, addr.scope_id().to_ne_bytes());
            }
            Addr::Gid(addr) => {
                raw.put(0, AF_IB.to_ne_bytes());
                raw.put(2, addr.pkey.to_be_bytes());
                raw.put(8, addr.gid);
                raw.put(24, addr.service_id.to_be_bytes());
                raw.put(32, addr.service_mask.to_be_bytes());
                raw.put(40, addr.scope_id.to_ne_bytes());
            }
        }
        raw
    }
}
