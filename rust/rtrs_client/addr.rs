// SPDX-License-Identifier: GPL-2.0

//! Addresses of a path.
//!
//! Users type and read them as `weft_proto` says; the connection manager has its own form.

use core::{
    net::{
        Ipv4Addr,
        SocketAddr, //
    },
    str::from_utf8, //
};
use kernel::{
    fmt,
    prelude::*, //
};
use weft::{
    fmt::Plain,
    net::{
        ns::ActiveNet,
        route::interface_index, //
    }, //
};
use weft_proto::rtrs::addr::{
    Addr as Text,
    AddrError,
    AddrText,
    PathError,
    PathName,
    PathText, //
};
use weft_rdma::addr::{
    Addr,
    GidAddr, //
};

/// The two ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAddrs {
    /// This host's; without one the routes decide.
    pub src: Option<Addr>,
    /// The server's, with its port.
    pub dst: Addr,
}

impl PathAddrs {
    /// Reads `destination`, `source@destination` or `source,destination`. Sleeps not.
    ///
    /// `port` is the server's. An interface in a link-local address is looked up in the initial network namespace.
    pub fn parse(text: &[u8], port: u16) -> Result<Self, PathError> {
        let text = from_utf8(text).map_err(|_| PathError::Destination(AddrError::Kind))?;
        Self::look_up(&PathText::parse(text)?, port)
    }

    /// The addresses that were typed, with their interfaces looked up; `EINVAL` if there is no such interface.
    pub fn resolve(path: &PathText<'_>, port: u16) -> Result<Self> {
        Self::look_up(path, port).map_err(|error| {
            pr_err!("{}\n", Plain(error));
            EINVAL
        })
    }

    fn look_up(path: &PathText<'_>, port: u16) -> Result<Self, PathError> {
        let src = path
            .src
            .map(|src| resolve(&src).map_err(PathError::Source))
            .transpose()?;
        let dst = resolve(&path.dst).map_err(PathError::Destination)?;
        Ok(Self {
            src: src.map(|src| from_text(src, 0)),
            dst: from_text(dst, port),
        })
    }

    /// As users read them. Without a source address, any of the kind stands there.
    pub(crate) fn shown(&self) -> PathName {
        let dst = to_text(&self.dst);
        let src = self.src.map_or(any(&dst), |src| to_text(&src));
        PathName { src, dst }
    }

    /// Whether both are between the same hosts, as far as that is known.
    pub(crate) fn same_hosts(&self, other: &Self) -> bool {
        let same = |a: &Addr, b: &Addr| to_text(a) == to_text(b);
        let same_src = match (&self.src, &other.src) {
            (Some(a), Some(b)) => same(a, b),
            (None, None) => true,
            _ => false,
        };
        same_src && same(&self.dst, &other.dst)
    }
}

impl fmt::Display for PathAddrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Plain(self.shown()).fmt(f)
    }
}

/// Puts the index of its interface into an address.
fn resolve(text: &AddrText<'_>) -> Result<Text, AddrError> {
    let Some(name) = text.scope else {
        return Ok(text.addr);
    };
    let index = interface_index(ActiveNet::init(), name).or_else(|| text.scope_number());
    Ok(text.with_scope(index.ok_or(AddrError::Scope)?))
}

/// The form of the connection manager.
fn from_text(addr: Text, port: u16) -> Addr {
    match addr {
        Text::V4(ip) => Addr::Ip(SocketAddr::new(ip.into(), port)),
        Text::V6 { addr, scope_id } => {
            let addr = core::net::SocketAddrV6::new(addr, port, 0, scope_id);
            Addr::Ip(SocketAddr::V6(addr))
        }
        Text::Gid(gid) => Addr::Gid(GidAddr::new(gid, port)),
    }
}

/// The form of users.
fn to_text(addr: &Addr) -> Text {
    match addr {
        Addr::Ip(SocketAddr::V4(addr)) => Text::V4(*addr.ip()),
        Addr::Ip(SocketAddr::V6(addr)) => Text::V6 {
            addr: *addr.ip(),
            scope_id: addr.scope_id(),
        },
        Addr::Gid(addr) => Text::Gid(addr.gid),
    }
}

/// Any address of the same kind.
fn any(like: &Text) -> Text {
    match like {
        Text::V4(_) => Text::V4(Ipv4Addr::UNSPECIFIED),
        Text::V6 { .. } => Text::V6 {
            addr: core::net::Ipv6Addr::UNSPECIFIED,
            scope_id: 0,
        },
        Text::Gid(_) => Text::Gid([0; 16]),
    }
}
