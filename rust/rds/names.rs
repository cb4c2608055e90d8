// SPDX-License-Identifier: GPL-2.0

//! `bind`, `connect`, `getsockname`, `getpeername`.
//!
//! C counterpart: `rds_bind`, `rds_connect`, `rds_getname`. Unlike C a failed bind leaves a chosen transport chosen
//! and keeps no reference, and IPv4 and IPv6 do not mix.

use crate::{
    maps::MapRef,
    sock::{
        Bound,
        UserSock, //
    },
    transport::Attached,
};
use kernel::prelude::*;
use weft::{
    fmt::Plain,
    net::proto::SockAddrBuf, //
};
use weft_proto::rds::{
    sockaddr::{
        self,
        AddrError,
        Endpoint,
        SOCKADDR_IN6_LEN,
        SOCKADDR_IN_LEN,
        SOCKADDR_STORAGE_LEN, //
    },
    uapi::{
        AF_INET,
        AF_INET6, //
    },
    wire::PORT_PROBE, //
};

/// The errno of an address that cannot be used.
pub(crate) fn errno(error: AddrError) -> Error {
    match error {
        AddrError::Inval => EINVAL,
        AddrError::DestAddrReq => EDESTADDRREQ,
        AddrError::ProtoType => EPROTOTYPE,
        AddrError::AfNoSupport => EAFNOSUPPORT,
    }
}

/// Whether a port means something to the protocol itself.
fn is_reserved(port: u16) -> bool {
    port == PORT_PROBE
}

/// Binds a socket. Sleeps.
pub(crate) fn bind(sk: &UserSock, addr: &[u8]) -> Result {
    let wanted = sockaddr::check_bind(addr).map_err(errno)?;
    let locked = sk.lock();
    {
        let binding = locked.binding.lock();
        if binding.bound.is_some() {
            return Err(EINVAL);
        }
        if binding.scope_id != 0 && wanted.scope_id != 0 && binding.scope_id != wanted.scope_id {
            return Err(EINVAL);
        }
        if binding
            .peer
            .is_some_and(|peer| peer.addr.is_v4_mapped() != wanted.addr.is_v4_mapped())
        {
            return Err(EOPNOTSUPP);
        }
    }
    let attached = attach(sk, &wanted)?;
    if is_reserved(wanted.port) {
        return Err(EINVAL);
    }
    let map = MapRef::get(&sk.net, &wanted.addr)?;
    let key = sk
        .net
        .binds
        .insert(sk, wanted.addr, wanted.port, wanted.scope_id)?;
    let mut binding = locked.binding.lock();
    binding.bound = Some(Bound { key, map });
    if let Some(attached) = attached {
        binding.attached = Some(attached);
    }
    Ok(())
}

/// The transport to attach for an address; `None` if one that accepts it is attached already.
fn attach(sk: &UserSock, wanted: &Endpoint) -> Result<Option<Attached>> {
    let chosen = {
        let binding = sk.binding.lock();
        binding
            .attached
            .as_ref()
            .map(|attached| attached.transport.clone())
    };
    if let Some(transport) = chosen {
        return if transport.is_local(sk.net(), &wanted.addr, wanted.scope_id) {
            Ok(None)
        } else {
            Err(ENOPROTOOPT)
        };
    }
    let attached = sk
        .rds
        .transports
        .attach_for(sk.net(), &wanted.addr, wanted.scope_id);
    if attached.is_none() {
        weft::pr_ratelimited!(
            pr_info,
            "RDS: no transport has the address {}, load rds_tcp or rds_rdma?\n",
            Plain(wanted.addr)
        );
        return Err(EADDRNOTAVAIL);
    }
    Ok(attached)
}

/// Sets where messages without an address go. Sleeps.
pub(crate) fn connect(sk: &UserSock, addr: &[u8]) -> Result {
    let peer = sockaddr::check_connect(addr).map_err(errno)?;
    let locked = sk.lock();
    let mut binding = locked.binding.lock();
    if let Some(bound) = &binding.bound {
        if bound.key.address.is_v4_mapped() != peer.addr.is_v4_mapped() {
            return Err(EOPNOTSUPP);
        }
    }
    if peer.addr.is_link_local() {
        let bound_scope = binding.bound.as_ref().map_or(0, |bound| bound.key.scope_id);
        if bound_scope != 0 && peer.scope_id != 0 && bound_scope != peer.scope_id {
            return Err(EINVAL);
        }
        binding.scope_id = peer.scope_id;
    }
    binding.peer = Some(peer);
    Ok(())
}

/// Tells the own or the peer's address.
pub(crate) fn getname(sk: &UserSock, out: &mut SockAddrBuf, peer: bool) -> Result<usize> {
    let binding = sk.binding.lock();
    let scope_id = binding.interface();
    if peer {
        let to = binding.peer.ok_or(ENOTCONN)?;
        return Ok(put(out, &Endpoint { scope_id, ..to }));
    }
    if let Some(bound) = &binding.bound {
        let own = Endpoint {
            addr: bound.key.address,
            port: bound.key.port,
            scope_id,
        };
        return Ok(put(out, &own));
    }
    // An unbound socket has an address of zeros, in the family of its peer if it has one.
    let (family, len) = match binding.peer {
        None => (0, SOCKADDR_IN_LEN),
        Some(to) if to.addr.is_v4_mapped() => (AF_INET, SOCKADDR_IN_LEN),
        Some(_) => (AF_INET6, SOCKADDR_IN6_LEN),
    };
    out.set(&family.to_ne_bytes());
    Ok(len)
}

/// Writes an address; returns its length.
fn put(out: &mut SockAddrBuf, endpoint: &Endpoint) -> usize {
    let mut bytes = [0; SOCKADDR_STORAGE_LEN];
    let len = endpoint.to_sockaddr(&mut bytes);
    out.set(bytes.get(..len).unwrap_or(&[]))
}
