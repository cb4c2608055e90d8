// SPDX-License-Identifier: GPL-2.0

//! Answers: what a server posts for a request, and how the client reads it.
//!
//! An answer is a chain of up to four messages, in this order:
//!
//! 1. the data of a successful read, written into the client's target,
//! 2. the invalidation of the target's key, if the client asked for it,
//! 3. with new keys only: the registration of the chunk under its new key (local, not sent),
//! 4. the immediate; with new keys it comes with the new key of the chunk.
//!
//! If nothing is between the data and the immediate, one write brings both.
//!
//! The client relies on it that an immediate which says "invalidated" came after an invalidation, and that with new
//! keys every answer, even to a failed request, brings one.
//!
//! C counterpart: `rdma_write_sg()` and `send_io_resp_imm()` in `rtrs-srv.c`, `process_io_rsp()` and
//! `rtrs_clt_rkey_rsp_done()` in `rtrs-clt.c`.

use core::fmt;
use zerocopy::{
    FromBytes as _,
    IntoBytes as _, //
};

use super::{
    geometry::{
        ChunkId,
        Geometry, //
    },
    imm::{
        self,
        ImmError,
        Status,
        ToClient, //
    },
    request::Request,
    wire::{
        RkeyRsp,
        MSG_RKEY_RSP, //
    }, //
};
use crate::errno::{
    Errno,
    Failure, //
};

/// Length of the message that brings a new key, in bytes: each receive of the client has this much room.
pub const RKEY_RSP_LEN: usize = size_of::<RkeyRsp>();

/// Data to be written into the client's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataWrite {
    /// Address in the client's memory region.
    pub addr: u64,
    /// Key of the region.
    pub rkey: u32,
    /// Length in bytes, from the start of the chunk; not 0.
    pub len: u32,
}

/// What a server posts for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Data to be written first.
    pub data: Option<DataWrite>,
    /// Key of the client that is to be invalidated next.
    pub invalidate: Option<u32>,
    /// The immediate at the end.
    pub imm: u32,
    /// Message that the immediate comes with; without one it comes with an empty write.
    pub message: Option<[u8; RKEY_RSP_LEN]>,
}

impl Answer {
    /// Answers `request` in `chunk`.
    ///
    /// `reply_len` bytes at the start of the chunk are the reply; all that the user has not written there is left out,
    /// so that nothing else than the reply reaches the client. `new_rkey` is the key under which the chunk is registered
    /// again; it is there exactly if the server announced new keys.
    pub fn new(
        chunk: ChunkId,
        request: &Request,
        status: Status,
        reply_len: u32,
        new_rkey: Option<u32>,
    ) -> Self {
        let target = request.target();
        let data = target.and_then(|target| {
            let len = target.len.min(reply_len);
            (status.is_ok() && len != 0).then_some(DataWrite {
                addr: target.addr,
                rkey: target.rkey,
                len,
            })
        });
        let invalidate = target
            .filter(|target| target.invalidate)
            .map(|target| target.rkey);
        Self {
            data,
            invalidate,
            imm: imm::response(chunk, status, invalidate.is_some()),
            message: new_rkey.map(|rkey| Self::key_message(chunk, rkey)),
        }
    }

    /// The message that brings the new key of `chunk`.
    #[inline]
    pub fn key_message(chunk: ChunkId, rkey: u32) -> [u8; RKEY_RSP_LEN] {
        let mut message = [0; RKEY_RSP_LEN];
        // Same length, so this cannot fail.
        let _ = RkeyRsp::new(chunk.number(), rkey).write_to(&mut message);
        message
    }
}

/// An answer as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Chunk of the request.
    pub chunk: ChunkId,
    /// Outcome.
    pub status: Status,
    /// Whether an invalidation came just before.
    pub invalidated: bool,
    /// New key of the chunk, to be stored before the request is completed.
    pub new_rkey: Option<u32>,
}

/// What came with an immediate, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// An answer.
    Response(Response),
    /// A heartbeat, to be answered.
    Heartbeat,
    /// The answer to a heartbeat.
    HeartbeatAck,
}

impl Incoming {
    /// Reads an immediate that came with an empty write.
    ///
    /// `new_rkeys` is whether the server announced new keys: then an answer cannot come this way.
    pub fn parse_write(
        geometry: &Geometry,
        new_rkeys: bool,
        imm: u32,
    ) -> Result<Self, AnswerError> {
        Self::parse(geometry, imm, |_| {
            if new_rkeys {
                Err(AnswerError::NoKey)
            } else {
                Ok(None)
            }
        })
    }

    /// Reads an immediate that came with a message.
    ///
    /// `new_rkeys` is whether the server announced new keys: otherwise nothing but writes may come.
    pub fn parse_send(
        geometry: &Geometry,
        new_rkeys: bool,
        imm: u32,
        message: &[u8],
    ) -> Result<Self, AnswerError> {
        if !new_rkeys {
            return Err(AnswerError::Message { len: message.len() });
        }
        match Self::parse(geometry, imm, |chunk| parse_rkey(chunk, message).map(Some))? {
            response @ Self::Response(_) => Ok(response),
            Self::Heartbeat | Self::HeartbeatAck => {
                Err(AnswerError::Message { len: message.len() })
            }
        }
    }

    /// Reads an immediate; `new_rkey` tells the new key of a chunk.
    fn parse(
        geometry: &Geometry,
        imm: u32,
        new_rkey: impl FnOnce(ChunkId) -> Result<Option<u32>, AnswerError>,
    ) -> Result<Self, AnswerError> {
        match ToClient::parse(geometry, imm).map_err(AnswerError::Imm)? {
            ToClient::Response {
                chunk,
                status,
                invalidated,
            } => Ok(Self::Response(Response {
                chunk,
                status,
                invalidated,
                new_rkey: new_rkey(chunk)?,
            })),
            ToClient::Heartbeat => Ok(Self::Heartbeat),
            ToClient::HeartbeatAck => Ok(Self::HeartbeatAck),
        }
    }
}

/// Reads the message that brings a new key for `chunk`.
fn parse_rkey(chunk: ChunkId, message: &[u8]) -> Result<u32, AnswerError> {
    let len = message.len();
    let message = RkeyRsp::read_from_bytes(message).map_err(|_| AnswerError::Message { len })?;
    if message.kind() != MSG_RKEY_RSP {
        return Err(AnswerError::Kind {
            kind: message.kind(),
        });
    }
    if message.buf_id() != chunk.number() {
        return Err(AnswerError::OtherChunk {
            buf_id: message.buf_id(),
            chunk,
        });
    }
    Ok(message.rkey())
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// The immediate.
    Imm(ImmError),
    /// A message where none may be, or of another length than the one that may be.
    Message {
        /// Its length.
        len: usize,
    },
    /// A message of another type.
    Kind {
        /// The type.
        kind: u16,
    },
    /// A key for another chunk than the one that is answered.
    OtherChunk {
        /// Number in the message.
        buf_id: u16,
        /// The chunk that is answered.
        chunk: ChunkId,
    },
    /// No key, though the server announced new ones.
    NoKey,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Imm(error) => fmt::Display::fmt(&error, f),
            Self::Message { len } => write!(
                f,
                "unexpected message of {len} bytes: only answers have one, of {RKEY_RSP_LEN}, and only if the server \
                 invalidates"
            ),
            Self::Kind { kind } => write!(f, "answer has type {kind}, it must be {MSG_RKEY_RSP}"),
            Self::OtherChunk { buf_id, chunk } => {
                write!(f, "answer for chunk {chunk} brings the key of chunk {buf_id}")
            }
            Self::NoKey => f.write_str("answer without a new key, though the server announced that it invalidates"),
        }
    }
}

impl Failure for AnswerError {
    fn errno(&self) -> Errno {
        Errno::EPROTO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtrs::request::{
        Placement,
        Target,
        Transfer, //
    };

    fn geometry() -> Geometry {
        Geometry::new(512, 126_976, 4096).unwrap()
    }

    fn request(transfer: Transfer, data_len: u32) -> Request {
        let placement = Placement::new(&geometry(), transfer, data_len, 32).unwrap();
        Request::parse(&geometry(), placement.header_off(), placement.header()).unwrap()
    }

    fn read(invalidate: bool) -> Request {
        let target = Target {
            addr: 0x1000,
            rkey: 7,
            len: 4096,
            invalidate,
        };
        request(Transfer::Read(Some(target)), 4096)
    }

    /// The client's view of an answer.
    fn received(answer: &Answer) -> Response {
        let incoming = match answer.message {
            None => Incoming::parse_write(&geometry(), false, answer.imm),
            Some(message) => Incoming::parse_send(&geometry(), true, answer.imm, &message),
        };
        match incoming {
            Ok(Incoming::Response(response)) => response,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_kind_of_answer() {
        let chunk = geometry().chunk(3).unwrap();
        let requests = [
            read(true),
            read(false),
            request(Transfer::Write, 4096),
            request(Transfer::Read(None), 0),
        ];
        for request in requests {
            for status in [Ok(()), Err(Errno::EIO)] {
                for new_rkey in [None, Some(0x3ff)] {
                    let answer = Answer::new(chunk, &request, status, 4096, new_rkey);
                    assert_eq!(
                        answer.data.is_some(),
                        request.target().is_some() && status.is_ok()
                    );
                    let wants = request.target().is_some_and(|target| target.invalidate);
                    assert_eq!(answer.invalidate, wants.then_some(7));
                    let expected = Response {
                        chunk,
                        status,
                        invalidated: wants,
                        new_rkey,
                    };
                    assert_eq!(received(&answer), expected);
                }
            }
        }
    }

    #[test]
    fn no_more_than_the_reply() {
        let chunk = geometry().chunk(0).unwrap();
        let len = |reply| {
            Answer::new(chunk, &read(true), Ok(()), reply, None)
                .data
                .map(|data| data.len)
        };
        assert_eq!(
            (len(0), len(36), len(4096), len(1 << 20)),
            (None, Some(36), Some(4096), Some(4096))
        );
    }

    #[test]
    fn answers_in_the_wrong_form() {
        let chunk = geometry().chunk(3).unwrap();
        let imm = imm::response(chunk, Ok(()), false);
        let message = [4, 0, 3, 0, 9, 0, 0, 0];
        assert_eq!(
            Incoming::parse_write(&geometry(), true, imm),
            Err(AnswerError::NoKey)
        );
        let send = |new, imm, message: &[u8]| Incoming::parse_send(&geometry(), new, imm, message);
        assert!(send(true, imm, &message).is_ok());
        assert_eq!(
            send(false, imm, &message),
            Err(AnswerError::Message { len: 8 })
        );
        assert_eq!(
            send(true, imm, &message[..7]),
            Err(AnswerError::Message { len: 7 })
        );
        assert_eq!(
            send(true, imm, &[0; 9]),
            Err(AnswerError::Message { len: 9 })
        );
        assert_eq!(send(true, imm, &[0; 8]), Err(AnswerError::Kind { kind: 0 }));
        assert_eq!(
            send(true, imm::HEARTBEAT, &message),
            Err(AnswerError::Message { len: 8 })
        );
        let other = [4, 0, 4, 0, 9, 0, 0, 0];
        assert_eq!(
            send(true, imm, &other),
            Err(AnswerError::OtherChunk { buf_id: 4, chunk })
        );
        assert!(matches!(send(true, 0, &message), Err(AnswerError::Imm(_))));
        let heartbeat = Incoming::parse_write(&geometry(), true, imm::HEARTBEAT);
        assert_eq!(heartbeat, Ok(Incoming::Heartbeat));
    }
}
