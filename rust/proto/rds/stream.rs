// SPDX-License-Identifier: GPL-2.0

//! Taking a TCP byte stream apart into RDS messages.
//!
//! The stream is header, payload, header, payload with nothing in between. [`Reassembly`] collects a
//! header from pieces of any size, checks it, and then counts payload bytes, which the caller keeps
//! in whatever form they arrived. One value per path, used under the TCP socket's lock.
//!
//! C counterpart: `rds_tcp_data_recv()` in `net/rds/tcp_recv.c`.

use zerocopy::IntoBytes as _;

use super::wire::{
    Header,
    CONG_MAP_LEN,
    HEADER_LEN,
    MAX_WIRE_LEN, //
};

/// Why a header is not accepted. The stream cannot be resumed: the connection has to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The payload is longer than [`MAX_WIRE_LEN`]; C would take up to 4 GiB.
    TooLong,
    /// A congestion map that is not 8192 bytes long; C ignores its content.
    BadCongestionMap,
}

/// Where in a message the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// In the header, of which this many bytes are there.
    Header { have: usize },
    /// In the payload, of which this many bytes are missing.
    Data { remaining: usize },
}

/// Progress of a stream through its current message.
///
/// ```
/// use weft_proto::rds::{
///     stream::Reassembly,
///     wire::{Header, HEADER_LEN}, //
/// };
/// use zerocopy::IntoBytes as _;
///
/// let sent = Header::new(1, 3, 4001, 4002, 0);
/// let mut stream = Reassembly::new();
/// assert_eq!(stream.push_header(sent.as_bytes()), HEADER_LEN);
/// assert_eq!(stream.take_header(), Some(Ok(sent)));
/// assert_eq!(stream.data_remaining(), 3);
/// stream.consume_data(3);
/// assert!(stream.message_complete());
/// stream.reset();
/// assert_eq!(stream.header_needed(), HEADER_LEN);
/// ```
#[derive(Clone, Debug)]
pub struct Reassembly {
    /// The current header, valid up to the bytes that `phase` counts.
    header: Header,
    /// Position in the current message.
    phase: Phase,
}

impl Reassembly {
    /// Starts in front of a header.
    pub fn new() -> Self {
        Self {
            header: Header::default(),
            phase: Phase::Header { have: 0 },
        }
    }

    /// Header bytes missing; 0 when the header is complete or taken.
    #[inline]
    pub fn header_needed(&self) -> usize {
        match self.phase {
            Phase::Header { have } => HEADER_LEN.saturating_sub(have),
            Phase::Data { .. } => 0,
        }
    }

    /// Adds bytes to the header and returns how many were used: never more than
    /// [`header_needed`](Self::header_needed).
    #[inline]
    pub fn push_header(&mut self, bytes: &[u8]) -> usize {
        let Phase::Header { have } = &mut self.phase else {
            return 0;
        };
        let mut used: usize = 0;
        if let Some(missing) = self.header.as_mut_bytes().get_mut(*have..) {
            for (to, from) in missing.iter_mut().zip(bytes) {
                *to = *from;
                used = used.saturating_add(1);
            }
        }
        *have = have.saturating_add(used);
        used
    }

    /// Hands out the header once it is complete, and starts counting its payload.
    ///
    /// `None` while bytes are missing and after the header was taken. A refused header stays refused
    /// until [`reset`](Self::reset).
    #[inline]
    pub fn take_header(&mut self) -> Option<Result<Header, Refusal>> {
        match self.phase {
            Phase::Header { have } if have >= HEADER_LEN => {}
            _ => return None,
        }
        let len = self.header.len();
        if len > MAX_WIRE_LEN {
            return Some(Err(Refusal::TooLong));
        }
        if self.header.is_congestion_map() && len != CONG_MAP_LEN {
            return Some(Err(Refusal::BadCongestionMap));
        }
        self.phase = Phase::Data {
            // CAST: at most `MAX_WIRE_LEN`, which fits every `usize` of the kernel.
            remaining: len as usize,
        };
        Some(Ok(self.header))
    }

    /// Payload bytes missing from the current message; 0 before its header is taken.
    #[inline]
    pub fn data_remaining(&self) -> usize {
        match self.phase {
            Phase::Header { .. } => 0,
            Phase::Data { remaining } => remaining,
        }
    }

    /// Notes that `n` payload bytes were taken from the stream.
    ///
    /// The caller takes at most [`data_remaining`](Self::data_remaining); more counts as that.
    #[inline]
    pub fn consume_data(&mut self, n: usize) {
        if let Phase::Data { remaining } = &mut self.phase {
            *remaining = remaining.saturating_sub(n);
        }
    }

    /// Whether header and payload of the current message are through.
    ///
    /// Stays so until [`reset`](Self::reset) moves on to the next message.
    #[inline]
    pub fn message_complete(&self) -> bool {
        matches!(self.phase, Phase::Data { remaining: 0 })
    }

    /// Forgets the current message: after a complete one, or when the connection is gone.
    #[inline]
    pub fn reset(&mut self) {
        self.phase = Phase::Header { have: 0 };
    }
}

impl Default for Reassembly {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a whole header and takes it.
    fn feed(stream: &mut Reassembly, header: Header) -> Option<Result<Header, Refusal>> {
        assert_eq!(stream.push_header(header.as_bytes()), HEADER_LEN);
        stream.take_header()
    }

    #[test]
    fn header_in_pieces() {
        let sent = Header::new(9, 5, 1, 2, 0);
        let bytes = sent.as_bytes();
        let mut stream = Reassembly::default();
        assert_eq!(stream.header_needed(), 48);
        assert_eq!(stream.push_header(&[]), 0);
        assert_eq!(stream.push_header(&bytes[..47]), 47);
        assert_eq!(stream.header_needed(), 1);
        assert_eq!(stream.take_header(), None);
        // Bytes behind the header stay with the caller.
        assert_eq!(stream.push_header(&[bytes[47], 1, 2]), 1);
        assert_eq!(stream.push_header(&[1, 2]), 0);
        assert_eq!((stream.header_needed(), stream.data_remaining()), (0, 0));
        assert!(!stream.message_complete());
        assert_eq!(stream.take_header(), Some(Ok(sent)));
        assert_eq!(stream.take_header(), None);
        assert_eq!(stream.push_header(&[1, 2]), 0);
    }

    #[test]
    fn payload_is_counted_down() {
        let mut stream = Reassembly::new();
        feed(&mut stream, Header::new(9, 5, 1, 2, 0));
        stream.consume_data(4);
        assert_eq!(stream.data_remaining(), 1);
        assert!(!stream.message_complete());
        stream.consume_data(4);
        assert_eq!(stream.data_remaining(), 0);
        assert!(stream.message_complete());
        stream.reset();
        assert!(!stream.message_complete());
        assert_eq!(stream.header_needed(), 48);
    }

    #[test]
    fn payload_before_the_header_does_not_count() {
        let mut stream = Reassembly::new();
        stream.consume_data(100);
        assert_eq!(stream.header_needed(), 48);
        assert_eq!(stream.data_remaining(), 0);
    }

    #[test]
    fn empty_message_is_complete_at_once() {
        let mut stream = Reassembly::new();
        assert!(feed(&mut stream, Header::new(1, 0, 1, 0, 0)).is_some());
        assert!(stream.message_complete());
    }

    #[test]
    fn length_limit() {
        let mut stream = Reassembly::new();
        let longest = Header::new(1, MAX_WIRE_LEN, 1, 2, 0);
        assert_eq!(feed(&mut stream, longest), Some(Ok(longest)));
        for len in [MAX_WIRE_LEN + 1, u32::MAX] {
            stream.reset();
            let refused = feed(&mut stream, Header::new(1, len, 1, 2, 0));
            assert_eq!(refused, Some(Err(Refusal::TooLong)));
            assert_eq!(stream.take_header(), refused);
            assert_eq!(stream.data_remaining(), 0);
            assert!(!stream.message_complete());
        }
    }

    #[test]
    fn congestion_map_length() {
        let mut stream = Reassembly::new();
        assert!(matches!(
            feed(&mut stream, Header::congestion_map()),
            Some(Ok(_))
        ));
        assert_eq!(stream.data_remaining(), 8192);
        for len in [0, 8191, 8193, 65536] {
            stream.reset();
            let refused = feed(&mut stream, Header::new(0, len, 0, 0, 1));
            assert_eq!(refused, Some(Err(Refusal::BadCongestionMap)));
        }
        // With another flag beside it, it is data of any length.
        stream.reset();
        assert!(matches!(
            feed(&mut stream, Header::new(0, 7, 0, 0, 5)),
            Some(Ok(_))
        ));
    }
}
