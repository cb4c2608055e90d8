// SPDX-License-Identifier: GPL-2.0

//! Addresses of hosts and sockets bound to them.

use anyhow::{anyhow, bail, Context, Result};
use rds_sys::Socket;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Number of the error "address family not supported".
const EAFNOSUPPORT: i32 = 97;

/// The first address of `host`, which may be a name, an IPv4 or an IPv6 address (with `%interface` if
/// it is link-local). The port is 0.
pub fn resolve(host: &str) -> Result<SocketAddr> {
    let addr = addresses(host)?
        .next()
        .with_context(|| format!("{host} has no address"))?;
    check_unicast(addr)
}

/// The first address of `host` that is of the family of `other`.
pub fn resolve_near(host: &str, other: SocketAddr) -> Result<SocketAddr> {
    let addr = addresses(host)?
        .find(|addr| addr.is_ipv4() == other.is_ipv4())
        .with_context(|| format!("{host} has no address of the family of {}", other.ip()))?;
    check_unicast(addr)
}

fn addresses(host: &str) -> Result<impl Iterator<Item = SocketAddr>> {
    (host, 0)
        .to_socket_addrs()
        .with_context(|| format!("cannot resolve {host}"))
}

/// The local address to reach `peer` from: what the user said, else what the routing table says.
pub fn source_address(local: Option<&str>, peer: SocketAddr) -> Result<SocketAddr> {
    match local {
        Some(host) => resolve_near(host, peer),
        None => rds_sys::source_for(peer)
            .with_context(|| format!("no way to {}; give a local address", peer.ip())),
    }
}

/// A new socket, with advice if there can be none.
pub fn open_socket() -> Result<Socket> {
    Socket::new().map_err(|error| match error.raw_os_error() {
        Some(EAFNOSUPPORT) => anyhow!("no RDS in this kernel; load the module with 'modprobe rds'"),
        _ => anyhow!("cannot create an RDS socket: {error}"),
    })
}

/// Binds `socket`, with advice if that fails.
pub fn bind_socket(socket: &Socket, addr: SocketAddr) -> Result<()> {
    socket.bind(addr).map_err(|error| match error.kind() {
        io::ErrorKind::AddrNotAvailable => anyhow!(
            "cannot bind {addr}: no RDS transport serves this address; \
             is it configured here, and is rds_tcp or rds_rdma loaded?"
        ),
        _ => anyhow!("cannot bind {addr}: {error}"),
    })
}

/// Refuses addresses no socket can have or reach.
fn check_unicast(addr: SocketAddr) -> Result<SocketAddr> {
    if addr.ip().is_unspecified() || addr.ip().is_multicast() {
        bail!("{} is not the address of a host", addr.ip());
    }
    Ok(addr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_need_no_name_service() {
        assert_eq!(resolve("10.1.2.3").unwrap().to_string(), "10.1.2.3:0");
        assert_eq!(
            resolve("2001:db8::5").unwrap().to_string(),
            "[2001:db8::5]:0"
        );
    }

    #[test]
    fn families_must_agree() {
        let v4 = resolve("10.1.2.3").unwrap();
        assert!(resolve_near("2001:db8::5", v4).is_err());
        assert!(resolve_near("10.1.2.4", v4).is_ok());
    }

    #[test]
    fn only_hosts() {
        assert!(resolve("0.0.0.0").is_err());
        assert!(resolve("ff02::1").is_err());
        assert!(resolve("::1").is_ok());
    }
}
