// SPDX-License-Identifier: GPL-2.0

//! Control messages, both ways.
//!
//! The kernel's `cmsghdr` is a length (of header and payload), a level and a type, each message
//! padded to eight bytes.

use crate::uapi;
use std::ffi::c_int;

/// Bytes of a `cmsghdr`.
const HEADER: usize = 16;
/// Alignment of control messages.
const ALIGN: usize = 8;
/// Room for everything one receive can bring (the longest is about 160 bytes).
const ROOM: usize = 256;

/// How an RDMA operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was carried out.
    Success,
    /// The peer refused the memory access.
    RemoteError,
    /// It was cancelled locally.
    Cancelled,
    /// The connection broke before it could be carried out.
    Dropped,
    /// Something else went wrong.
    Other(i32),
}

impl From<i32> for Status {
    fn from(value: i32) -> Self {
        match value {
            0 => Self::Success,
            1 => Self::RemoteError,
            2 => Self::Cancelled,
            3 => Self::Dropped,
            other => Self::Other(other),
        }
    }
}

/// A received control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// The sender's memory region that belongs to this message.
    RdmaDest {
        /// Key and offset.
        cookie: u64,
    },
    /// An RDMA operation of this socket ended.
    RdmaStatus {
        /// What the operation was named when it was posted.
        token: u64,
        /// How it ended.
        status: Status,
    },
    /// Ports are no longer congested: bit `port % 64`.
    CongestionUpdate {
        /// The ports.
        mask: u64,
    },
    /// Nanoseconds the message spent on its way in, for each point that was asked for.
    RxLatency(Vec<u64>),
    /// The cookies of zerocopy sends whose memory is free again.
    ZerocopyDone(Vec<u32>),
    /// Anything else.
    Other {
        /// The level.
        level: c_int,
        /// The type.
        kind: c_int,
        /// The payload.
        data: Vec<u8>,
    },
}

/// Room for the control messages of one receive; made once and used again.
#[repr(C, align(8))]
pub struct ControlBuffer {
    pub(crate) bytes: [u8; ROOM],
    pub(crate) len: usize,
}

impl ControlBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self {
            bytes: [0; ROOM],
            len: 0,
        }
    }

    /// The messages that the last receive brought.
    pub fn messages(&self) -> impl Iterator<Item = Control> + '_ {
        Cursor {
            rest: self.bytes.get(..self.len).unwrap_or_default(),
        }
    }
}

impl Default for ControlBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// Walks over the messages of a buffer and stops at the first malformed one.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Iterator for Cursor<'_> {
    type Item = Control;

    fn next(&mut self) -> Option<Control> {
        let len = usize::from_ne_bytes(self.rest.get(..8)?.try_into().ok()?);
        let level = c_int::from_ne_bytes(self.rest.get(8..12)?.try_into().ok()?);
        let kind = c_int::from_ne_bytes(self.rest.get(12..16)?.try_into().ok()?);
        let control = parse(level, kind, self.rest.get(HEADER..len)?);
        self.rest = self
            .rest
            .get(len.next_multiple_of(ALIGN)..)
            .unwrap_or_default();
        Some(control)
    }
}

fn parse(level: c_int, kind: c_int, data: &[u8]) -> Control {
    let known = match (level, kind) {
        (uapi::SOL_RDS, uapi::RDS_CMSG_RDMA_DEST) => {
            u64_at(data, 0).map(|cookie| Control::RdmaDest { cookie })
        }
        (uapi::SOL_RDS, uapi::RDS_CMSG_RDMA_STATUS) => rdma_status(data),
        (uapi::SOL_RDS, uapi::RDS_CMSG_CONG_UPDATE) => {
            u64_at(data, 0).map(|mask| Control::CongestionUpdate { mask })
        }
        (uapi::SOL_RDS, uapi::RDS_CMSG_RXPATH_LATENCY) => rx_latency(data),
        (uapi::SOL_RDS, uapi::RDS_CMSG_ZCOPY_COMPLETION) => zerocopy_done(data),
        _ => None,
    };
    known.unwrap_or_else(|| Control::Other {
        level,
        kind,
        data: data.to_vec(),
    })
}

fn rdma_status(data: &[u8]) -> Option<Control> {
    let token = u64_at(data, 0)?;
    let status = i32::from_ne_bytes(data.get(8..12)?.try_into().ok()?);
    Some(Control::RdmaStatus {
        token,
        status: status.into(),
    })
}

fn rx_latency(data: &[u8]) -> Option<Control> {
    let count = usize::from(*data.first()?);
    (0..count)
        .map(|i| u64_at(data, 8 + 8 * i))
        .collect::<Option<_>>()
        .map(Control::RxLatency)
}

fn zerocopy_done(data: &[u8]) -> Option<Control> {
    let count = usize::try_from(u32_at(data, 0)?).ok()?;
    if count > data.len() / 4 {
        return None;
    }
    (1..=count)
        .map(|i| u32_at(data, 4 * i))
        .collect::<Option<_>>()
        .map(Control::ZerocopyDone)
}

fn u32_at(data: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(
        data.get(offset..offset + 4)?.try_into().ok()?,
    ))
}

fn u64_at(data: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(
        data.get(offset..offset + 8)?.try_into().ok()?,
    ))
}

/// The control message that names a zerocopy send.
#[repr(C, align(8))]
pub(crate) struct ZerocopyCookie {
    pub(crate) bytes: [u8; HEADER + ALIGN],
}

impl ZerocopyCookie {
    /// Names a send `cookie`.
    pub(crate) fn new(cookie: u32) -> Self {
        let mut bytes = [0; HEADER + ALIGN];
        put(
            &mut bytes,
            uapi::SOL_RDS,
            uapi::RDS_CMSG_ZCOPY_COOKIE,
            &cookie.to_ne_bytes(),
        );
        Self { bytes }
    }
}

/// Writes one message at the start of `to`, which must have room for it.
fn put(to: &mut [u8], level: c_int, kind: c_int, data: &[u8]) {
    to[..8].copy_from_slice(&(HEADER + data.len()).to_ne_bytes());
    to[8..12].copy_from_slice(&level.to_ne_bytes());
    to[12..16].copy_from_slice(&kind.to_ne_bytes());
    to[HEADER..HEADER + data.len()].copy_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(messages: &[(c_int, c_int, &[u8])]) -> ControlBuffer {
        let mut buffer = ControlBuffer::new();
        for (level, kind, data) in messages {
            put(&mut buffer.bytes[buffer.len..], *level, *kind, data);
            buffer.len += (HEADER + data.len()).next_multiple_of(ALIGN);
        }
        buffer
    }

    fn parsed(messages: &[(c_int, c_int, &[u8])]) -> Vec<Control> {
        buffer(messages).messages().collect()
    }

    #[test]
    fn parses_what_the_kernel_sends() {
        let mut status = [0; 16];
        status[0] = 7;
        status[8] = 3;
        let mut done = [0; 36];
        done[0] = 2;
        done[4] = 5;
        done[8] = 6;
        assert_eq!(
            parsed(&[
                (uapi::SOL_RDS, uapi::RDS_CMSG_RDMA_STATUS, &status),
                (uapi::SOL_RDS, uapi::RDS_CMSG_ZCOPY_COMPLETION, &done),
                (
                    uapi::SOL_RDS,
                    uapi::RDS_CMSG_CONG_UPDATE,
                    &u64::MAX.to_ne_bytes()
                ),
                (libc::SOL_SOCKET, 29, &[1, 2, 3]),
            ]),
            [
                Control::RdmaStatus {
                    token: 7,
                    status: Status::Dropped
                },
                Control::ZerocopyDone(vec![5, 6]),
                Control::CongestionUpdate { mask: u64::MAX },
                Control::Other {
                    level: libc::SOL_SOCKET,
                    kind: 29,
                    data: vec![1, 2, 3]
                },
            ]
        );
    }

    #[test]
    fn latency_lists_the_points_asked_for() {
        let mut data = [0; 32];
        data[0] = 2;
        data[8] = 9;
        data[16] = 8;
        let got = parsed(&[(uapi::SOL_RDS, uapi::RDS_CMSG_RXPATH_LATENCY, &data)]);
        assert_eq!(got, [Control::RxLatency(vec![9, 8])]);
    }

    #[test]
    fn malformed_messages_end_the_walk() {
        assert!(parsed(&[]).is_empty());
        let mut short = buffer(&[(uapi::SOL_RDS, uapi::RDS_CMSG_CONG_UPDATE, &[0; 8])]);
        short.bytes[0] = 3;
        assert_eq!(short.messages().count(), 0);
        short.bytes[..8].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(short.messages().count(), 0);
    }

    #[test]
    fn truncated_payload_is_kept_as_other() {
        let got = parsed(&[(uapi::SOL_RDS, uapi::RDS_CMSG_CONG_UPDATE, &[1, 2])]);
        assert!(matches!(got[..], [Control::Other { .. }]));
        let got = parsed(&[(
            uapi::SOL_RDS,
            uapi::RDS_CMSG_ZCOPY_COMPLETION,
            &[255, 0, 0, 0],
        )]);
        assert!(matches!(got[..], [Control::Other { .. }]));
    }

    #[test]
    fn cookie_layout() {
        let cookie = ZerocopyCookie::new(0x0102_0304);
        assert_eq!(cookie.bytes[0], 20);
        assert_eq!(cookie.bytes[16..20], 0x0102_0304u32.to_ne_bytes());
    }
}
