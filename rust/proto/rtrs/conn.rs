// SPDX-License-Identifier: GPL-2.0

//! Connecting: what client and server tell each other in the private data of the connection manager.
//!
//! A path consists of several connections. The client opens number 0 first, learns from its answer how many chunks of
//! what size there are, and then opens the others. Each request names the session and the path that it belongs to by
//! their UUIDs; the server creates what does not exist yet, if the request says that it may.
//!
//! C counterpart: `rtrs_rdma_connect()` in `rtrs-srv.c`, `rtrs_rdma_conn_established()` and `rtrs_rdma_conn_rejected()`
//! in `rtrs-clt.c`.

use zerocopy::FromBytes as _;

use super::{
    geometry::Geometry,
    state::ServerState,
    wire::{
        ConnReq,
        ConnReqFields,
        ConnRsp,
        MAGIC,
        MAX_CONNECTIONS,
        MAX_PATHS,
        VERSION_MAJOR, //
    }, //
};
use crate::errno::Errno;

pub use error::ConnectError;

mod error;

/// UUID of a path, kept over reconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathUuid(pub [u8; 16]);

/// UUID of a session, the same on all of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionUuid(pub [u8; 16]);

/// A connection request.
///
/// When received: `cid` is below `cid_num`, and that is at most [`MAX_CONNECTIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// Index of the connection in its path.
    pub cid: u16,
    /// Number of connections of the path.
    pub cid_num: u16,
    /// Counts the client's attempts to connect this path, from 1; nobody looks at it.
    pub recon_cnt: u16,
    /// The path.
    pub path: PathUuid,
    /// The session.
    pub session: SessionUuid,
    /// Whether the request may create the session, see [`may_create_session`].
    pub first_conn: bool,
}

impl ConnectRequest {
    /// Reads the private data of a request, which the connection manager may have padded.
    pub fn parse(private_data: &[u8]) -> Result<Self, ConnectError> {
        let len = private_data.len();
        let (wire, _) =
            ConnReq::read_from_prefix(private_data).map_err(|_| ConnectError::Short { len })?;
        check_peer(wire.magic(), wire.version())?;
        let ConnReqFields {
            cid,
            cid_num,
            recon_cnt,
            path,
            session,
            first_conn,
        } = wire.fields();
        if cid_num > MAX_CONNECTIONS {
            return Err(ConnectError::TooManyConnections { cid_num });
        }
        if cid >= cid_num {
            return Err(ConnectError::Cid { cid, cid_num });
        }
        Ok(Self {
            cid,
            cid_num,
            recon_cnt,
            path: PathUuid(path),
            session: SessionUuid(session),
            first_conn,
        })
    }

    /// The private data of the request.
    pub fn to_wire(&self) -> ConnReq {
        ConnReq::new(&ConnReqFields {
            cid: self.cid,
            cid_num: self.cid_num,
            recon_cnt: self.recon_cnt,
            path: self.path.0,
            session: self.session.0,
            first_conn: self.first_conn,
        })
    }
}

/// Whether a client lets the server create the session for a path (`for_new_clt`).
///
/// `only_path` is whether the session had no other path when this one was added: true for the first of those that it
/// was opened with. A path that was `connected_before` may always do it, because the server may have been restarted.
pub const fn may_create_session(only_path: bool, connected_before: bool) -> bool {
    only_path || connected_before
}

/// What a server knows when a request arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Whether the session exists.
    pub session: bool,
    /// Whether it has lost all its paths and is coming to its end.
    pub ended: bool,
    /// Number of its paths.
    pub paths: usize,
    /// Whether one of them runs between the same two addresses as the request.
    pub same_addresses: bool,
    /// The path, if it exists.
    pub path: Option<KnownPath>,
}

/// What a server knows about the path of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPath {
    /// State of the path.
    pub state: ServerState,
    /// Number of connections it will have.
    pub cid_num: u16,
    /// Whether the connection of the request exists.
    pub cid_taken: bool,
}

/// What a server does about a good request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Creates the session and its first path.
    NewSession,
    /// Creates a path of the session.
    NewPath,
    /// Adds a connection to the path.
    Join,
}

/// Decides about a request; limits on memory are the caller's.
///
/// A path has to begin with its connection 0, without which nothing could be done with it.
pub fn admit(request: &ConnectRequest, known: &Known) -> Result<Admission, ConnectError> {
    if !known.session {
        return match request {
            ConnectRequest {
                first_conn: false, ..
            } => Err(ConnectError::NoSession),
            ConnectRequest { cid: 0, .. } => Ok(Admission::NewSession),
            ConnectRequest { cid, .. } => Err(ConnectError::FirstCid { cid: *cid }),
        };
    }
    // Nothing can be added to what the client has lost. It is told so in a way that makes it begin anew.
    match request.first_conn {
        true if known.ended => return Err(ConnectError::Ended),
        false if known.ended => return Err(ConnectError::NoSession),
        _ => {}
    }
    match known.path {
        Some(path) if path.state != ServerState::Connecting => {
            Err(ConnectError::State { state: path.state })
        }
        Some(path) if path.cid_num != request.cid_num => Err(ConnectError::CidNum {
            cid_num: request.cid_num,
            expected: path.cid_num,
        }),
        Some(path) if path.cid_taken => Err(ConnectError::CidTaken { cid: request.cid }),
        Some(_) => Ok(Admission::Join),
        None if known.paths >= MAX_PATHS => Err(ConnectError::TooManyPaths),
        None if known.same_addresses => Err(ConnectError::SameAddresses),
        None if request.cid != 0 => Err(ConnectError::FirstCid { cid: request.cid }),
        None => Ok(Admission::NewPath),
    }
}

/// Private data of the answer that accepts a connection.
pub fn accept(geometry: &Geometry, new_rkey: bool) -> ConnRsp {
    ConnRsp::accept(&geometry.fields(new_rkey))
}

/// Private data of the answer that rejects a connection.
pub fn reject(errno: Errno) -> ConnRsp {
    // By its range the number fits.
    ConnRsp::reject(i16::try_from(errno.code()).unwrap_or(i16::MIN))
}

/// What a server says in the answer that accepts a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The chunks of the session.
    pub geometry: Geometry,
    /// Whether each answer brings a new key for its chunk.
    pub new_rkey: bool,
}

impl Accepted {
    /// Reads the private data of the answer to connection 0, which the connection manager may have padded.
    pub fn parse(private_data: &[u8]) -> Result<Self, ConnectError> {
        let fields = accepted(private_data)?.fields();
        let geometry = Geometry::new(fields.queue_depth, fields.max_io_size, fields.max_hdr_size);
        Ok(Self {
            geometry: geometry.map_err(ConnectError::Geometry)?,
            new_rkey: fields.new_rkey,
        })
    }

    /// Checks the answer to another connection of the path.
    ///
    /// What it says about chunks does not count.
    pub fn check_other(private_data: &[u8]) -> Result<(), ConnectError> {
        accepted(private_data).map(|_| ())
    }

    /// Whether the path fits a session whose chunks have been agreed on before, over this path or over another one.
    ///
    /// The number of chunks must not change, and requests of the size the user was told must still fit. After such an
    /// error another attempt makes no sense before somebody has changed the server.
    pub fn continues(&self, agreed: &Agreed) -> Result<(), ConnectError> {
        let is = self.geometry.queue_depth();
        let was = agreed.queue_depth;
        if is != was {
            return Err(ConnectError::DepthChanged { was, is });
        }
        let (was, is) = (agreed.max_io_size, self.geometry.max_io_size());
        if is < was {
            return Err(ConnectError::IoShrunk { was, is });
        }
        Ok(())
    }
}

/// What a session of the client has told its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Number of chunks, the same on all paths.
    pub queue_depth: u16,
    /// Longest data of a request in bytes: the smallest of all paths.
    pub max_io_size: u32,
}

impl Agreed {
    /// What the first path of a session brings.
    pub fn first(accepted: &Accepted) -> Self {
        Self {
            queue_depth: accepted.geometry.queue_depth(),
            max_io_size: accepted.geometry.max_io_size(),
        }
    }

    /// Adds another path while the user has not been told yet, which may lower the length of requests.
    pub fn with(self, accepted: &Accepted) -> Result<Self, ConnectError> {
        let max_io_size = self.max_io_size.min(accepted.geometry.max_io_size());
        let agreed = Self {
            max_io_size,
            ..self
        };
        accepted.continues(&agreed).map(|()| agreed)
    }
}

/// Reads the private data of an answer that must be one that accepts.
fn accepted(private_data: &[u8]) -> Result<ConnRsp, ConnectError> {
    let len = private_data.len();
    let (wire, _) =
        ConnRsp::read_from_prefix(private_data).map_err(|_| ConnectError::Short { len })?;
    check_peer(wire.magic(), wire.version())?;
    match wire.code() {
        0 => Ok(wire),
        code => Err(ConnectError::AcceptedError { code }),
    }
}

/// Why a server rejected a connection, from the private data of the rejection if it has any.
///
/// `ECONNRESET` if the server does not say, or says something that is no error number of programs: what it says becomes
/// the result of a system call, and to those the kernel's own numbers mean "do it again".
pub fn rejection(private_data: &[u8]) -> Errno {
    match ConnRsp::read_from_prefix(private_data) {
        Ok((wire, _)) if check_peer(wire.magic(), wire.version()).is_ok() => {
            Errno::from_code(wire.code().into()).filter(|errno| errno.is_public())
        }
        _ => None,
    }
    .unwrap_or(Errno::ECONNRESET)
}

/// Checks what every message of the connection manager begins with.
fn check_peer(magic: u16, version: u16) -> Result<(), ConnectError> {
    if magic != MAGIC {
        return Err(ConnectError::Magic { magic });
    }
    match version.to_be_bytes() {
        [VERSION_MAJOR, _] => Ok(()),
        [major, minor] => Err(ConnectError::Version { major, minor }),
    }
}

#[cfg(test)]
mod tests;
