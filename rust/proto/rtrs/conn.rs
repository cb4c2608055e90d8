// SPDX-License-Identifier: GPL-2.0

//! Connecting: what client and server tell each other in the private data of the connection manager.
//!
//! A path consists of several connections. The client opens number 0 first, learns from its answer how many chunks of
//! what size there are, and then opens the others. Each request names the session and the path that it belongs to by
//! their UUIDs; the server creates what does not exist yet, if the request says that it may.
//!
//! C counterpart: `rtrs_rdma_connect()` in `rtrs-srv.c`, `rtrs_rdma_conn_established()` and `rtrs_rdma_conn_rejected()`
//! in `rtrs-clt.c`.

use core::fmt;
use zerocopy::FromBytes as _;

use super::{
    geometry::{
        Geometry,
        GeometryError, //
    },
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
use crate::errno::{
    Errno,
    Failure, //
};

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
/// `ECONNRESET` if the server does not say, or says something that is no error number.
pub fn rejection(private_data: &[u8]) -> Errno {
    match ConnRsp::read_from_prefix(private_data) {
        Ok((wire, _)) if check_peer(wire.magic(), wire.version()).is_ok() => {
            Errno::from_code(wire.code().into())
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

/// What is wrong with a connection request or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// Too short.
    Short {
        /// Its length in bytes.
        len: usize,
    },
    /// Not RTRS.
    Magic {
        /// What stands there.
        magic: u16,
    },
    /// Another major version.
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// More connections than a path may have.
    TooManyConnections {
        /// Their number.
        cid_num: u16,
    },
    /// A connection beyond the number of connections.
    Cid {
        /// Its index.
        cid: u16,
        /// Their number.
        cid_num: u16,
    },
    /// No such session, and the request may not create it.
    NoSession,
    /// The first connection of a path is not number 0.
    FirstCid {
        /// Its index.
        cid: u16,
    },
    /// The path is not being connected.
    State {
        /// Its state.
        state: ServerState,
    },
    /// Another number of connections than the path began with.
    CidNum {
        /// The number in the request.
        cid_num: u16,
        /// The number of the path.
        expected: u16,
    },
    /// The connection exists.
    CidTaken {
        /// Its index.
        cid: u16,
    },
    /// The session has as many paths as it may have.
    TooManyPaths,
    /// The session has a path between the same addresses.
    SameAddresses,
    /// An answer that accepts and has an error number.
    AcceptedError {
        /// The error number.
        code: i16,
    },
    /// Chunks that cannot be.
    Geometry(GeometryError),
    /// Another number of chunks than before.
    DepthChanged {
        /// Number before.
        was: u16,
        /// Number now.
        is: u16,
    },
    /// Less room for data than before.
    IoShrunk {
        /// Bytes before.
        was: u32,
        /// Bytes now.
        is: u32,
    },
}

impl ConnectError {
    /// Whether trying again makes no sense until the server has been changed.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::DepthChanged { .. } | Self::IoShrunk { .. })
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Short { len } => write!(f, "private data has {len} bytes, it must have 56"),
            Self::Magic { magic } => write!(f, "magic is {magic:#06x}, it must be {MAGIC:#06x}"),
            Self::Version { major, minor } => {
                write!(
                    f,
                    "peer has version {major}.{minor}, the major must be {VERSION_MAJOR}"
                )
            }
            Self::TooManyConnections { cid_num } => {
                write!(
                    f,
                    "path wants {cid_num} connections, at most {MAX_CONNECTIONS} are allowed"
                )
            }
            Self::Cid { cid, cid_num } => {
                write!(f, "connection has index {cid}, it must be below {cid_num}")
            }
            Self::NoSession => {
                f.write_str("session does not exist and this path may not create it")
            }
            Self::FirstCid { cid } => {
                write!(f, "path begins with connection {cid}, it must begin with 0")
            }
            Self::State { state } => write!(f, "path is {state}, it must be connecting"),
            Self::CidNum { cid_num, expected } => {
                write!(
                    f,
                    "path wants {cid_num} connections, it began with {expected}"
                )
            }
            Self::CidTaken { cid } => write!(f, "connection {cid} exists already"),
            Self::TooManyPaths => write!(f, "session has {MAX_PATHS} paths already"),
            Self::SameAddresses => {
                f.write_str("session has a path between these addresses already")
            }
            Self::AcceptedError { code } => write!(f, "connection was accepted with error {code}"),
            Self::Geometry(error) => fmt::Display::fmt(&error, f),
            Self::DepthChanged { was, is } => write!(f, "queue depth changed from {was} to {is}"),
            Self::IoShrunk { was, is } => write!(f, "max_io_size went down from {was} to {is}"),
        }
    }
}

impl Failure for ConnectError {
    fn errno(&self) -> Errno {
        match self {
            Self::NoSession => Errno::ENXIO,
            Self::SameAddresses => Errno::EEXIST,
            _ => Errno::ECONNRESET,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use zerocopy::IntoBytes as _;

    fn request() -> ConnectRequest {
        ConnectRequest {
            cid: 1,
            cid_num: 2,
            recon_cnt: 3,
            path: PathUuid([4; 16]),
            session: SessionUuid([5; 16]),
            first_conn: true,
        }
    }

    #[test]
    fn request_round_trips() {
        for first_conn in [false, true] {
            let request = ConnectRequest {
                first_conn,
                ..request()
            };
            let mut padded = [0; 92];
            padded[..56].copy_from_slice(request.to_wire().as_bytes());
            assert_eq!(ConnectRequest::parse(&padded), Ok(request));
            assert_eq!(ConnectRequest::parse(&padded[..56]), Ok(request));
            assert_eq!(
                ConnectRequest::parse(&padded[..55]),
                Err(ConnectError::Short { len: 55 })
            );
        }
    }

    #[test]
    fn bad_requests() {
        let error = |change: fn(&mut [u8])| {
            let mut bytes = request().to_wire();
            change(bytes.as_mut_bytes());
            ConnectRequest::parse(bytes.as_bytes()).unwrap_err()
        };
        assert_eq!(
            error(|bytes| bytes[2] = 0),
            ConnectError::Magic { magic: 0x1b00 }
        );
        assert_eq!(
            error(|bytes| bytes[5] = 3),
            ConnectError::Version { major: 3, minor: 0 }
        );
        assert_eq!(
            error(|bytes| bytes[6] = 2),
            ConnectError::Cid { cid: 2, cid_num: 2 }
        );
        assert_eq!(
            error(|bytes| bytes[8] = 0),
            ConnectError::Cid { cid: 1, cid_num: 0 }
        );
        let many = error(|bytes| bytes[8..10].copy_from_slice(&4097u16.to_le_bytes()));
        assert_eq!(many, ConnectError::TooManyConnections { cid_num: 4097 });
        assert_eq!(many.errno(), Errno::ECONNRESET);
        let most = ConnectRequest {
            cid: 4095,
            cid_num: 4096,
            ..request()
        };
        assert_eq!(ConnectRequest::parse(most.to_wire().as_bytes()), Ok(most));
        // A newer minor version, reserved bits and bytes do not matter.
        let mut newer = request().to_wire();
        newer.as_mut_bytes()[4] = 9;
        newer.as_mut_bytes()[44..].fill(0xff);
        assert_eq!(ConnectRequest::parse(newer.as_bytes()), Ok(request()));
    }

    #[test]
    fn admission() {
        let first = ConnectRequest {
            cid: 0,
            ..request()
        };
        let stranger = ConnectRequest {
            first_conn: false,
            ..first
        };
        let none = Known::default();
        assert_eq!(admit(&first, &none), Ok(Admission::NewSession));
        assert_eq!(
            admit(&request(), &none),
            Err(ConnectError::FirstCid { cid: 1 })
        );
        assert_eq!(admit(&stranger, &none), Err(ConnectError::NoSession));
        assert_eq!(ConnectError::NoSession.errno(), Errno::ENXIO);

        let known = Known {
            session: true,
            paths: 1,
            ..none
        };
        assert_eq!(admit(&stranger, &known), Ok(Admission::NewPath));
        assert_eq!(
            admit(&request(), &known),
            Err(ConnectError::FirstCid { cid: 1 })
        );
        assert_eq!(
            admit(
                &first,
                &Known {
                    paths: 128,
                    ..known
                }
            ),
            Err(ConnectError::TooManyPaths)
        );
        let same = Known {
            same_addresses: true,
            ..known
        };
        assert_eq!(admit(&first, &same), Err(ConnectError::SameAddresses));
        assert_eq!(ConnectError::SameAddresses.errno(), Errno::EEXIST);

        let path = KnownPath {
            state: ServerState::Connecting,
            cid_num: 2,
            cid_taken: false,
        };
        let with = |path| Known {
            path: Some(path),
            ..same
        };
        assert_eq!(admit(&request(), &with(path)), Ok(Admission::Join));
        let taken = KnownPath {
            cid_taken: true,
            ..path
        };
        assert_eq!(
            admit(&request(), &with(taken)),
            Err(ConnectError::CidTaken { cid: 1 })
        );
        let other = KnownPath { cid_num: 3, ..path };
        let error = ConnectError::CidNum {
            cid_num: 2,
            expected: 3,
        };
        assert_eq!(admit(&request(), &with(other)), Err(error));
        for state in [
            ServerState::Connected,
            ServerState::Closing,
            ServerState::Closed,
        ] {
            let path = KnownPath { state, ..path };
            assert_eq!(
                admit(&request(), &with(path)),
                Err(ConnectError::State { state })
            );
        }
    }

    #[test]
    fn who_may_create() {
        assert!(may_create_session(true, false) && may_create_session(false, true));
        assert!(!may_create_session(false, false));
    }

    fn geometry() -> Geometry {
        Geometry::new(512, 126_976, 4096).unwrap()
    }

    #[test]
    fn answer_round_trips() {
        for new_rkey in [false, true] {
            let mut padded = [0; 196];
            padded[..56].copy_from_slice(accept(&geometry(), new_rkey).as_bytes());
            let accepted = Accepted {
                geometry: geometry(),
                new_rkey,
            };
            assert_eq!(Accepted::parse(&padded), Ok(accepted));
            assert_eq!(
                Accepted::parse(&padded[..55]),
                Err(ConnectError::Short { len: 55 })
            );
            assert_eq!(Accepted::check_other(&padded), Ok(()));
        }
    }

    #[test]
    fn bad_answers() {
        let rejected = reject(Errno::EBUSY);
        assert_eq!(
            Accepted::parse(rejected.as_bytes()),
            Err(ConnectError::AcceptedError { code: -16 })
        );
        let mut empty = accept(&geometry(), true);
        empty.as_mut_bytes()[6..8].fill(0);
        let error = ConnectError::Geometry(GeometryError::NoChunks);
        assert_eq!(Accepted::parse(empty.as_bytes()), Err(error));
        assert_eq!(error.to_string(), GeometryError::NoChunks.to_string());
        // Of the other connections this does not count.
        assert_eq!(Accepted::check_other(empty.as_bytes()), Ok(()));
    }

    #[test]
    fn rejections() {
        for errno in [
            Errno::ECONNRESET,
            Errno::EEXIST,
            Errno::from_number(4095).unwrap(),
        ] {
            let mut padded = [0; 148];
            padded[..56].copy_from_slice(reject(errno).as_bytes());
            assert_eq!(rejection(&padded), errno);
        }
        let mut foreign = reject(Errno::EEXIST);
        foreign.as_mut_bytes()[0] = 0;
        for data in [
            &[][..],
            &[0; 148],
            foreign.as_bytes(),
            accept(&geometry(), false).as_bytes(),
        ] {
            assert_eq!(rejection(data), Errno::ECONNRESET);
        }
        let positive = ConnRsp::reject(17);
        assert_eq!(rejection(positive.as_bytes()), Errno::ECONNRESET);
    }

    #[test]
    fn paths_of_one_session() {
        let accepted = |depth, io| Accepted {
            geometry: Geometry::new(depth, io, 4096).unwrap(),
            new_rkey: false,
        };
        let agreed = Agreed::first(&accepted(512, 126_976))
            .with(&accepted(512, 61_440))
            .unwrap();
        assert_eq!(
            agreed,
            Agreed {
                queue_depth: 512,
                max_io_size: 61_440
            }
        );
        assert_eq!(accepted(512, 126_976).continues(&agreed), Ok(()));
        let changed = accepted(64, 126_976).continues(&agreed).unwrap_err();
        assert_eq!(changed, ConnectError::DepthChanged { was: 512, is: 64 });
        assert!(changed.is_final());
        let shrunk = accepted(512, 4096).continues(&agreed).unwrap_err();
        assert_eq!(
            shrunk,
            ConnectError::IoShrunk {
                was: 61_440,
                is: 4096
            }
        );
        assert!(shrunk.is_final() && !ConnectError::NoSession.is_final());
        assert!(agreed.with(&accepted(64, 126_976)).is_err());
    }
}
