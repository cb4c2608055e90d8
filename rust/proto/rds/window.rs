// SPDX-License-Identifier: GPL-2.0

//! Sequence numbers: which messages to drop, when to ask for an acknowledgement, what TCP has acked.
//!
//! Each path numbers its messages from 1. The numbers survive reconnects on both sides; after one the
//! sender sends everything unacknowledged again and marks it, so the receiver can tell a duplicate.
//!
//! C counterpart: `rds_recv_incoming()` in `net/rds/recv.c`, `rds_send_xmit()` in `net/rds/send.c`,
//! `rds_tcp_is_acked()` in `net/rds/tcp_send.c`.

use super::wire::{
    FLAG_RETRANSMITTED,
    HEADER_LEN, //
};

/// Decides about a message with number `sequence` where `expected` is next.
///
/// Returns the new expected number, or `None` to drop the message as a duplicate. A lower number
/// without the retransmission flag is a peer that has started over and rewinds; gaps are legal,
/// because a sender can cancel messages. Congestion maps have no number and must not be asked about.
#[inline]
pub fn accept(expected: u64, sequence: u64, flags: u8) -> Option<u64> {
    if sequence < expected && flags & FLAG_RETRANSMITTED != 0 {
        return None;
    }
    Some(sequence.wrapping_add(1))
}

/// How much a path may still send before it asks for an acknowledgement.
///
/// The budget is empty at first and after [`reset`](Self::reset), so the first message asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckPolicy {
    /// Messages left.
    packets: u32,
    /// Payload bytes left.
    bytes: u32,
}

impl AckPolicy {
    /// Starts with an empty budget.
    pub const fn new() -> Self {
        Self {
            packets: 0,
            bytes: 0,
        }
    }

    /// Counts a message of `len` payload bytes; returns whether it has to ask for an acknowledgement.
    ///
    /// One that asks refills the budget to `max_packets` messages and `max_bytes` bytes
    /// (`net.rds.max_unacked_packets`, `net.rds.max_unacked_bytes`).
    #[inline]
    pub fn must_ask(&mut self, len: u32, max_packets: u32, max_bytes: u32) -> bool {
        match (self.packets.checked_sub(1), self.bytes.checked_sub(len)) {
            (Some(packets), Some(bytes)) => {
                *self = Self { packets, bytes };
                false
            }
            _ => {
                *self = Self {
                    packets: max_packets,
                    bytes: max_bytes,
                };
                true
            }
        }
    }

    /// Empties the budget, as when the path was reset.
    #[inline]
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}

/// TCP sequence number of a message's last byte.
///
/// `write_seq` is the connection's number for the next byte written, before the message's header
/// goes out; `len` is its payload length.
#[inline]
pub fn tcp_end_sequence(write_seq: u32, len: u32) -> u32 {
    // CAST: 48.
    const LAST: u32 = HEADER_LEN as u32 - 1;
    write_seq.wrapping_add(LAST).wrapping_add(len)
}

/// Whether TCP has acknowledged the byte numbered `end`; `una` is the lowest one it has not.
///
/// The numbers wrap: `end` counts as lower if it is less than 2^31 behind.
#[inline]
pub fn tcp_acked(end: u32, una: u32) -> bool {
    let ahead = una.wrapping_sub(end);
    ahead != 0 && ahead <= 1 << 31
}

#[cfg(test)]
mod tests {
    use super::super::wire::FLAG_ACK_REQUIRED;
    use super::*;

    #[test]
    fn duplicates_are_dropped_only_if_marked() {
        assert_eq!(accept(0, 1, 0), Some(2));
        assert_eq!(accept(5, 5, FLAG_RETRANSMITTED), Some(6));
        assert_eq!(accept(5, 9, FLAG_RETRANSMITTED), Some(10));
        assert_eq!(accept(5, 4, FLAG_RETRANSMITTED), None);
        assert_eq!(accept(5, 4, FLAG_RETRANSMITTED | FLAG_ACK_REQUIRED), None);
        // A peer that has started over.
        assert_eq!(accept(5, 1, FLAG_ACK_REQUIRED), Some(2));
        assert_eq!(accept(5, u64::MAX, 0), Some(0));
    }

    #[test]
    fn first_and_every_ninth_message_asks() {
        let mut policy = AckPolicy::new();
        for at in 0..40 {
            assert_eq!(policy.must_ask(0, 8, 1 << 24), at % 9 == 0, "message {at}");
        }
        policy.reset();
        assert!(policy.must_ask(0, 8, 1 << 24));
    }

    #[test]
    fn bytes_run_out_too() {
        let mut policy = AckPolicy::new();
        assert!(policy.must_ask(1, 8, 100));
        assert!(!policy.must_ask(60, 8, 100));
        assert!(!policy.must_ask(40, 8, 100));
        assert!(policy.must_ask(1, 8, 100));
        assert!(policy.must_ask(u32::MAX, 8, 100));
    }

    #[test]
    fn tcp_sequence_numbers() {
        assert_eq!(tcp_end_sequence(1000, 0), 1047);
        assert_eq!(tcp_end_sequence(1000, 8192), 9239);
        assert_eq!(tcp_end_sequence(u32::MAX, 1), 47);
        assert!(!tcp_acked(1047, 1047));
        assert!(tcp_acked(1047, 1048));
        assert!(!tcp_acked(1047, 1000));
        // Across the wrap.
        assert!(tcp_acked(u32::MAX - 5, 10));
        assert!(!tcp_acked(10, u32::MAX - 5));
    }
}
