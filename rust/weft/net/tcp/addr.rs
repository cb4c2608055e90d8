// SPDX-License-Identifier: GPL-2.0

//! Addresses of TCP sockets.

use crate::{
    bindings,
    net::route::{
        v4,
        Address, //
    },
};
use core::mem::size_of;
use kernel::{
    ffi::c_int,
    prelude::*, //
};

/// The address family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4: addresses are v4-mapped.
    V4,
    /// IPv6; a listener accepts IPv4 connections, too.
    V6,
}

impl Family {
    #[inline]
    pub(super) fn as_raw(self) -> c_int {
        match self {
            // CAST: Small constants.
            Family::V4 => bindings::AF_INET as c_int,
            Family::V6 => bindings::AF_INET6 as c_int,
        }
    }
}

/// An address and a port, for sockets of either family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketAddr6 {
    /// The IPv6 address, or the IPv4 address in its v4-mapped form; all zero means any.
    pub addr: Address,
    /// The port, in host order.
    pub port: u16,
    /// The interface that a link-local address belongs to, or zero.
    pub scope_id: u32,
}

impl SocketAddr6 {
    /// Any address of this host.
    pub const fn any(port: u16) -> Self {
        Self {
            addr: [0; 16],
            port,
            scope_id: 0,
        }
    }

    /// The C form for a socket of `family`; `EAFNOSUPPORT` if this is not an IPv4 address but has to be.
    pub(super) fn encode(&self, family: Family) -> Result<RawAddr> {
        let port = self.port.to_be();
        match family {
            Family::V4 => {
                let address = match v4(&self.addr) {
                    Some(address) => address,
                    None if self.addr == [0; 16] => 0,
                    None => return Err(EAFNOSUPPORT),
                };
                Ok(RawAddr::V4(bindings::sockaddr_in {
                    sin_family: bindings::AF_INET as bindings::__kernel_sa_family_t,
                    sin_port: port,
                    sin_addr: bindings::in_addr { s_addr: address },
                    ..Default::default()
                }))
            }
            Family::V6 => Ok(RawAddr::V6(bindings::sockaddr_in6 {
                sin6_family: bindings::AF_INET6 as bindings::__kernel_sa_family_t,
                sin6_port: port,
                sin6_addr: bindings::in6_addr {
                    in6_u: bindings::in6_addr__bindgen_ty_1 {
                        u6_addr8: self.addr,
                    },
                },
                sin6_scope_id: self.scope_id,
                ..Default::default()
            })),
        }
    }
}

/// A complete C socket address.
pub(super) enum RawAddr {
    V4(bindings::sockaddr_in),
    V6(bindings::sockaddr_in6),
}

impl RawAddr {
    /// Pointer and length as C takes them. The pointer is valid as long as `self`.
    #[inline]
    pub(super) fn as_raw(&mut self) -> (*mut bindings::sockaddr_unsized, c_int) {
        match self {
            // CAST: Small constants.
            RawAddr::V4(addr) => (
                (&raw mut *addr).cast(),
                size_of::<bindings::sockaddr_in>() as c_int,
            ),
            RawAddr::V6(addr) => (
                (&raw mut *addr).cast(),
                size_of::<bindings::sockaddr_in6>() as c_int,
            ),
        }
    }
}
