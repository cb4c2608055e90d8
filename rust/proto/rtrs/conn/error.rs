// SPDX-License-Identifier: GPL-2.0

//! What can be wrong with a connection.

use core::fmt;

use crate::{
    errno::{
        Errno,
        Failure, //
    },
    rtrs::{
        geometry::GeometryError,
        state::ServerState,
        wire::{
            MAGIC,
            MAX_CONNECTIONS,
            MAX_PATHS,
            VERSION_MAJOR, //
        }, //
    }, //
};

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
    /// The session is coming to its end; there will be room for a new one soon.
    Ended,
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
            Self::Ended => f.write_str("session has lost its paths and is being ended"),
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
