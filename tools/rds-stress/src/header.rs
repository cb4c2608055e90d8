// SPDX-License-Identifier: GPL-2.0

//! What a message begins with, and what may follow.
//!
//! Numbers are in network order. Of the header only the first 19 bytes and, with IPv6, the addresses
//! at its end are for us; between them is what RDMA operations need.

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of a header with IPv4 addresses.
const LEN_V4: usize = 63;
/// Bytes of a header with IPv6 addresses.
const LEN_V6: usize = 96;
const SEQ: usize = 0;
const FROM_V4: usize = 4;
const TO_V4: usize = 8;
const FROM_PORT: usize = 12;
const TO_PORT: usize = 14;
const INDEX: usize = 16;
const OP: usize = 18;
const FROM_V6: usize = 64;
const TO_V6: usize = 80;

/// The kind of addresses in the headers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(addr: IpAddr) -> Self {
        if addr.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// Bytes of a header, and thereby of the shortest message.
    pub(crate) fn header_len(self) -> usize {
        match self {
            Self::V4 => LEN_V4,
            Self::V6 => LEN_V6,
        }
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Request,
    Ack,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Ack => "ack",
        })
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Number of the message among all from this task to that one, from 0 on.
    pub(crate) seq: u32,
    /// The sending task; interface and flow are not part of it.
    pub(crate) from: SocketAddr,
    /// The receiving task.
    pub(crate) to: SocketAddr,
    /// Place of the request among those on their way; its answer has the same.
    pub(crate) index: u16,
    pub(crate) op: Op,
}

impl Header {
    /// Writes the header to the beginning of a message, which must have room for it.
    pub(crate) fn encode(&self, message: &mut [u8]) {
        let family = Family::of(self.from.ip());
        message[..family.header_len()].fill(0);
        put(message, SEQ, &self.seq.to_be_bytes());
        for (addr, v4, v6) in [(self.from, FROM_V4, FROM_V6), (self.to, TO_V4, TO_V6)] {
            match addr.ip() {
                IpAddr::V4(ip) => put(message, v4, &ip.octets()),
                IpAddr::V6(ip) => put(message, v6, &ip.octets()),
            }
        }
        put(message, FROM_PORT, &self.from.port().to_be_bytes());
        put(message, TO_PORT, &self.to.port().to_be_bytes());
        put(message, INDEX, &self.index.to_be_bytes());
        message[OP] = match self.op {
            Op::Request => 1,
            Op::Ack => 2,
        };
    }

    /// Reads the header of a message; says what is wrong if there is none.
    pub(crate) fn decode(message: &[u8], family: Family) -> Result<Self, String> {
        if message.len() < family.header_len() {
            return Err(format!("{} bytes are too few", message.len()));
        }
        let op = match message[OP] {
            1 => Op::Request,
            2 => Op::Ack,
            other => return Err(format!("there is no kind {other} of messages")),
        };
        let address = |v4, v6| match family {
            Family::V4 => Ipv4Addr::from(take::<4>(message, v4)).into(),
            Family::V6 => Ipv6Addr::from(take::<16>(message, v6)).into(),
        };
        let port = |at| u16::from_be_bytes(take(message, at));
        Ok(Self {
            seq: u32::from_be_bytes(take(message, SEQ)),
            from: SocketAddr::new(address(FROM_V4, FROM_V6), port(FROM_PORT)),
            to: SocketAddr::new(address(TO_V4, TO_V6), port(TO_PORT)),
            index: u16::from_be_bytes(take(message, INDEX)),
            op,
        })
    }

    /// Says in what this header is not the `expected` one; nothing if it is.
    pub(crate) fn difference(&self, expected: &Self) -> Option<String> {
        let mut text = String::new();
        let mut compare = |name: &str, got: &dyn fmt::Display, want: &dyn fmt::Display| {
            let (got, want) = (got.to_string(), want.to_string());
            if got != want {
                let gap = if text.is_empty() { "" } else { ", " };
                // Writing to a string can not fail.
                let _ = write!(text, "{gap}{name} is {got} instead of {want}");
            }
        };
        compare("seq", &self.seq, &expected.seq);
        compare("from", &self.from, &expected.from);
        compare("to", &self.to, &expected.to);
        compare("index", &self.index, &expected.index);
        compare("op", &self.op, &expected.op);
        (!text.is_empty()).then_some(text)
    }
}

fn put(message: &mut [u8], at: usize, bytes: &[u8]) {
    message[at..at + bytes.len()].copy_from_slice(bytes);
}

fn take<const N: usize>(message: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&message[at..at + N]);
    bytes
}

/// The bytes that follow the header if messages are to be verified.
///
/// Each of 256 successive bytes is another one, and each block of 256 differs from the one before, so
/// that swapped blocks are seen.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let mut byte = 11_u8;
    let mut bytes = Vec::with_capacity(len);
    for place in 1..=len {
        bytes.push(byte);
        // CAST: the number of the block, of which the lower byte counts.
        let block = (place >> 8) as u8;
        byte = byte.wrapping_add(3).wrapping_mul(41).wrapping_add(block);
    }
    bytes
}

/// Says where what follows a header is not the pattern; nothing if it is.
pub(crate) fn corruption(payload: &[u8], pattern: &[u8]) -> Option<String> {
    let wrong = |(got, want): &(&u8, &u8)| got != want;
    let pairs = || payload.iter().zip(pattern);
    let count = pairs().filter(wrong).count();
    let offset = pairs().position(|pair| wrong(&pair))?;
    Some(format!(
        "payload is corrupted at offset {offset}: {count} of {} bytes",
        payload.len()
    ))
}

#[cfg(test)]
mod tests;
