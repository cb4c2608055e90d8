// SPDX-License-Identifier: GPL-2.0

//! Immediates: the 32 bits that announce a request, an answer or a heartbeat.
//!
//! The upper four bits are the type. A request names its chunk and where in it the header stands; an answer names the
//! chunk and carries the outcome. Integers here are host integers; the verbs layer sends them big endian.
//!
//! C counterpart: `enum rtrs_imm_type` and the functions around it in `rtrs-pri.h`.

use core::fmt;

use super::geometry::{
    ChunkId,
    Geometry,
    PAYLOAD_BITS, //
};
use crate::errno::{
    Errno,
    Failure, //
};

/// Lower bits of an immediate.
const PAYLOAD_MASK: u32 = (1 << PAYLOAD_BITS) - 1;
/// Bits of an answer for the number of the chunk; the outcome stands above.
const MSG_ID_BITS: u32 = 19;
/// Lower bits of an answer.
const MSG_ID_MASK: u32 = (1 << MSG_ID_BITS) - 1;
/// Largest error number that an answer can carry.
const MAX_STATUS: u16 = 511;

/// Type of a request (`RTRS_IO_REQ_IMM`).
const IO_REQ: u32 = 0;
/// Type of an answer (`RTRS_IO_RSP_IMM`).
const IO_RSP: u32 = 1;
/// Type of an answer that came after an invalidation (`RTRS_IO_RSP_W_INV_IMM`).
const IO_RSP_W_INV: u32 = 2;
/// Type of a heartbeat (`RTRS_HB_MSG_IMM`).
const HB_MSG: u32 = 8;
/// Type of the answer to a heartbeat (`RTRS_HB_ACK_IMM`).
const HB_ACK: u32 = 9;

/// Outcome of a request.
pub type Status = Result<(), Errno>;

/// Heartbeat to the peer.
pub const HEARTBEAT: u32 = HB_MSG << PAYLOAD_BITS;

/// Answer to the peer's heartbeat.
pub const HEARTBEAT_ACK: u32 = HB_ACK << PAYLOAD_BITS;

/// The nine bits that stand for an outcome in an answer.
///
/// Numbers above 511 do not fit: `ENOTSUPP` becomes the `EOPNOTSUPP` that it means, the others `EIO`.
pub const fn status_to_wire(status: Status) -> u16 {
    /// `ENOTSUPP`, which only the kernel itself uses.
    const ENOTSUPP: u16 = 524;

    match status {
        Ok(()) => 0,
        Err(errno) => match errno.number() {
            number @ ..=MAX_STATUS => number,
            ENOTSUPP => Errno::EOPNOTSUPP.number(),
            _ => Errno::EIO.number(),
        },
    }
}

/// The outcome that nine bits stand for; further bits are ignored.
pub const fn status_from_wire(bits: u16) -> Status {
    match Errno::from_number(bits & MAX_STATUS) {
        None => Ok(()),
        Some(errno) => Err(errno),
    }
}

/// Announces a request whose header stands at offset `off` of `chunk`; `None` if that is outside of the chunk.
#[inline]
pub fn request(geometry: &Geometry, chunk: ChunkId, off: u32) -> Option<u32> {
    let id = u32::from(geometry.chunk(chunk.number().into())?.number());
    if off >= geometry.chunk_size() {
        return None;
    }
    // By the invariants of `Geometry` both fit, one above the other; `IO_REQ` is 0.
    Some(id.checked_shl(geometry.offset_bits()).unwrap_or(0) | off)
}

/// Announces the answer to the request in `chunk`; `invalidated` if an invalidation was sent just before.
#[inline]
pub fn response(chunk: ChunkId, status: Status, invalidated: bool) -> u32 {
    let kind = if invalidated { IO_RSP_W_INV } else { IO_RSP };
    let status = u32::from(status_to_wire(status)) << MSG_ID_BITS;
    (kind << PAYLOAD_BITS) | status | u32::from(chunk.number())
}

/// What a client may announce to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToServer {
    /// A request.
    Request {
        /// Chunk it is in.
        chunk: ChunkId,
        /// Offset of its header, inside of the chunk.
        off: u32,
    },
    /// A heartbeat, to be answered.
    Heartbeat,
    /// The answer to a heartbeat.
    HeartbeatAck,
}

impl ToServer {
    /// Reads an immediate that a server received.
    #[inline]
    pub fn parse(geometry: &Geometry, imm: u32) -> Result<Self, ImmError> {
        let payload = imm & PAYLOAD_MASK;
        match imm >> PAYLOAD_BITS {
            IO_REQ => {
                let bits = geometry.offset_bits();
                let number = payload.checked_shr(bits).unwrap_or(0);
                let off = payload & !u32::MAX.checked_shl(bits).unwrap_or(0);
                let chunk = geometry.chunk(number).ok_or(ImmError::NoSuchChunk {
                    number,
                    queue_depth: geometry.queue_depth(),
                })?;
                if off >= geometry.chunk_size() {
                    return Err(ImmError::Offset {
                        off,
                        chunk_size: geometry.chunk_size(),
                    });
                }
                Ok(Self::Request { chunk, off })
            }
            HB_MSG => Ok(Self::Heartbeat),
            HB_ACK => Ok(Self::HeartbeatAck),
            _ => Err(ImmError::Kind { imm }),
        }
    }
}

/// What a server may announce to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToClient {
    /// An answer.
    Response {
        /// Chunk of the request.
        chunk: ChunkId,
        /// Its outcome.
        status: Status,
        /// Whether an invalidation of the request's key came just before.
        invalidated: bool,
    },
    /// A heartbeat, to be answered.
    Heartbeat,
    /// The answer to a heartbeat.
    HeartbeatAck,
}

impl ToClient {
    /// Reads an immediate that a client received.
    #[inline]
    pub fn parse(geometry: &Geometry, imm: u32) -> Result<Self, ImmError> {
        let payload = imm & PAYLOAD_MASK;
        match imm >> PAYLOAD_BITS {
            kind @ (IO_RSP | IO_RSP_W_INV) => {
                let number = payload & MSG_ID_MASK;
                let chunk = geometry.chunk(number).ok_or(ImmError::NoSuchChunk {
                    number,
                    queue_depth: geometry.queue_depth(),
                })?;
                // CAST: Nine bits are left of 28.
                let status = status_from_wire((payload >> MSG_ID_BITS) as u16);
                Ok(Self::Response {
                    chunk,
                    status,
                    invalidated: kind == IO_RSP_W_INV,
                })
            }
            HB_MSG => Ok(Self::Heartbeat),
            HB_ACK => Ok(Self::HeartbeatAck),
            _ => Err(ImmError::Kind { imm }),
        }
    }
}

/// What is wrong with an immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImmError {
    /// A type that does not exist or that only the other side sends.
    Kind {
        /// The immediate.
        imm: u32,
    },
    /// A number that no chunk has.
    NoSuchChunk {
        /// The number.
        number: u32,
        /// Number of chunks.
        queue_depth: u16,
    },
    /// An offset behind the end of the chunk.
    Offset {
        /// The offset.
        off: u32,
        /// Size of the chunk in bytes.
        chunk_size: u32,
    },
}

impl fmt::Display for ImmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Kind { imm } => write!(
                f,
                "immediate {imm:#010x} has a type that this side does not know"
            ),
            Self::NoSuchChunk {
                number,
                queue_depth,
            } => {
                write!(
                    f,
                    "immediate names chunk {number}, it must be below {queue_depth}"
                )
            }
            Self::Offset { off, chunk_size } => {
                write!(
                    f,
                    "immediate names offset {off}, it must be below {chunk_size}"
                )
            }
        }
    }
}

impl Failure for ImmError {
    fn errno(&self) -> Errno {
        Errno::EPROTO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(queue_depth: u16) -> Geometry {
        Geometry::new(queue_depth, 126_976, 4096).unwrap()
    }

    #[test]
    fn vectors() {
        let geometry = geometry(512);
        let chunk = geometry.chunk(1).unwrap();
        assert_eq!(request(&geometry, chunk, 0x1020), Some(0x0008_1020));
        assert_eq!(response(chunk, Ok(()), true), 0x2000_0001);
        assert_eq!(response(chunk, Err(Errno::EINVAL), false), 0x10b0_0001);
        assert_eq!((HEARTBEAT, HEARTBEAT_ACK), (0x8000_0000, 0x9000_0000));
    }

    #[test]
    fn request_bounds() {
        for depth in [1, 2, 3, 511, 512, 2048] {
            let geometry = geometry(depth);
            for number in [0, depth - 1] {
                let chunk = geometry.chunk(number.into()).unwrap();
                for off in [0, 131_071] {
                    let imm = request(&geometry, chunk, off).unwrap();
                    assert_eq!(
                        ToServer::parse(&geometry, imm),
                        Ok(ToServer::Request { chunk, off })
                    );
                }
                assert_eq!(request(&geometry, chunk, 131_072), None);
            }
            // A number that would fit the bits but that no chunk has.
            if !depth.is_power_of_two() {
                let imm = u32::from(depth) << geometry.offset_bits();
                let error = ImmError::NoSuchChunk {
                    number: depth.into(),
                    queue_depth: depth,
                };
                assert_eq!(ToServer::parse(&geometry, imm), Err(error));
            }
        }
        // The offset has more bits than the chunk has bytes.
        let error = ImmError::Offset {
            off: 131_072,
            chunk_size: 131_072,
        };
        assert_eq!(ToServer::parse(&geometry(512), 131_072), Err(error));
    }

    #[test]
    fn foreign_chunk_is_not_encoded() {
        let chunk = geometry(512).chunk(511).unwrap();
        assert_eq!(request(&geometry(64), chunk, 0), None);
    }

    #[test]
    fn types() {
        let geometry = geometry(512);
        for kind in 0..16u32 {
            let imm = kind << 28;
            assert_eq!(
                ToServer::parse(&geometry, imm).is_ok(),
                matches!(kind, 0 | 8 | 9),
                "{kind}"
            );
            assert_eq!(
                ToClient::parse(&geometry, imm).is_ok(),
                matches!(kind, 1 | 2 | 8 | 9),
                "{kind}"
            );
        }
    }

    #[test]
    fn outcomes() {
        let geometry = geometry(512);
        let chunk = geometry.chunk(511).unwrap();
        for number in 0..=511 {
            let status = status_from_wire(number);
            assert_eq!(status_to_wire(status), number);
            let imm = response(chunk, status, number % 2 == 1);
            let invalidated = number % 2 == 1;
            assert_eq!(
                ToClient::parse(&geometry, imm),
                Ok(ToClient::Response {
                    chunk,
                    status,
                    invalidated
                })
            );
        }
        assert_eq!(status_to_wire(Err(Errno::from_number(512).unwrap())), 5);
        assert_eq!(status_to_wire(Err(Errno::from_number(524).unwrap())), 95);
        assert_eq!(status_to_wire(Err(Errno::from_number(4095).unwrap())), 5);
        let error = ImmError::NoSuchChunk {
            number: 512,
            queue_depth: 512,
        };
        assert_eq!(ToClient::parse(&geometry, 0x1000_0200), Err(error));
    }
}
