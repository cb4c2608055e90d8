// SPDX-License-Identifier: GPL-2.0

//! TCP connections from a certain address, which the standard library cannot make.

use crate::sys;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

/// Connects to `peer`; the own end has the address `local`, or what routing chooses.
pub fn connect_from(local: Option<SocketAddr>, peer: SocketAddr) -> io::Result<TcpStream> {
    let family = match peer {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let fd = sys::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC)?;
    let stream = TcpStream::from(fd);
    if let Some(local) = local {
        sys::bind(stream.as_fd(), &local.into())?;
    }
    sys::connect(stream.as_fd(), &peer.into())?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_peer_sees_the_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = "127.0.0.9:0".parse().unwrap();
        let ours = connect_from(Some(local), listener.local_addr().unwrap()).unwrap();
        let (_, from) = listener.accept().unwrap();
        assert_eq!(from, ours.local_addr().unwrap());
        assert_eq!(from.ip(), local.ip());
    }

    #[test]
    fn refused_without_a_listener() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        drop(listener);
        let error = connect_from(None, addr).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
