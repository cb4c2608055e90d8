// SPDX-License-Identifier: GPL-2.0

//! The RDS message header and the fixed numbers of the wire format.
//!
//! A message is a header and `length` bytes of payload; over TCP the messages follow each other
//! without magic or padding. All integers are big endian on the wire and host integers outside this
//! file.
//!
//! C counterpart: `struct rds_header` in `net/rds/rds.h`, checksum in `net/rds/message.c`.

use zerocopy::{
    big_endian::{
        U16,
        U32,
        U64, //
    },
    IntoBytes as _, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

/// Length of a [`Header`] in bytes.
pub const HEADER_LEN: usize = 48;

/// Length of the extension header space in bytes (`RDS_HEADER_EXT_SPACE`).
pub const EXT_SPACE: usize = 16;

/// Longest payload a local sender may queue, in bytes (`RDS_MAX_MSG_SIZE`).
pub const MAX_MESSAGE: u32 = 1 << 20;

/// Longest payload accepted from a peer, in bytes.
///
/// C accepts any length; Oracle's kernels send up to 1 MiB and one page, whose size may be 64 KiB.
pub const MAX_WIRE_LEN: u32 = (1 << 20) + 65536;

/// Length of a congestion map in bytes: one bit per port (`RDS_CONG_MAP_BYTES`).
pub const CONG_MAP_BYTES: usize = 8192;

/// [`CONG_MAP_BYTES`] as it stands in a header's length field.
pub const CONG_MAP_LEN: u32 = 8192;

/// TCP port every RDS host listens on (`RDS_TCP_PORT`).
pub const TCP_PORT: u16 = 16385;

/// RDS port of the kernel: as a destination a ping, as a source its answer.
pub const PORT_PING: u16 = 0;

/// RDS port of handshake probes; never bindable (`RDS_FLAG_PROBE_PORT`).
pub const PORT_PROBE: u16 = 1;

/// Largest number of paths of a connection (`RDS_MPATH_WORKERS`).
pub const MAX_PATHS: usize = 8;

/// The payload is a congestion map (`RDS_FLAG_CONG_BITMAP`).
pub const FLAG_CONG_BITMAP: u8 = 0x01;

/// The sender wants an acknowledgement soon (`RDS_FLAG_ACK_REQUIRED`).
pub const FLAG_ACK_REQUIRED: u8 = 0x02;

/// The message may have been delivered before (`RDS_FLAG_RETRANSMITTED`).
pub const FLAG_RETRANSMITTED: u8 = 0x04;

/// An RDMA byte count is among the extension headers (`RDS_FLAG_EXTHDR_EXTENSION`).
pub const FLAG_EXTHDR_EXTENSION: u8 = 0x20;

/// Header in front of every message (`struct rds_header`).
#[repr(C)]
#[derive(
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
    Clone,
    Copy,
    Default,
    Debug,
    PartialEq,
    Eq,
)]
pub struct Header {
    /// Number of the message on its path, from 1; 0 in a congestion map.
    sequence: U64,
    /// Last sequence number received from the peer; RDMA only, 0 over TCP.
    ack: U64,
    /// Payload bytes after this header.
    len: U32,
    /// Sending RDS port.
    sport: U16,
    /// Receiving RDS port.
    dport: U16,
    /// `FLAG_*` bits.
    flags: u8,
    /// Receive credits handed to the peer; RDMA only.
    credit: u8,
    /// Zero.
    padding: [u8; 4],
    /// One's complement sum over the header; RDMA only, 0 means not checked.
    checksum: U16,
    /// Extension headers, see [`ext`](super::ext).
    ext: [u8; EXT_SPACE],
}

const _: () = assert!(size_of::<Header>() == HEADER_LEN);

impl Header {
    /// Makes a header without acknowledgement, credits, checksum and extension headers.
    #[inline]
    pub fn new(sequence: u64, len: u32, sport: u16, dport: u16, flags: u8) -> Self {
        Self {
            sequence: U64::new(sequence),
            len: U32::new(len),
            sport: U16::new(sport),
            dport: U16::new(dport),
            flags,
            ..Self::default()
        }
    }

    /// Makes the header of a congestion map message.
    #[inline]
    pub fn congestion_map() -> Self {
        Self::new(0, CONG_MAP_LEN, 0, 0, FLAG_CONG_BITMAP)
    }

    /// Number of the message on its path.
    #[inline]
    pub fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// Last sequence number the sender has received.
    #[inline]
    pub fn ack(&self) -> u64 {
        self.ack.get()
    }

    /// Payload length in bytes.
    #[inline]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a field of the header, not the size of a collection"
    )]
    pub fn len(&self) -> u32 {
        self.len.get()
    }

    /// Sending RDS port.
    #[inline]
    pub fn sport(&self) -> u16 {
        self.sport.get()
    }

    /// Receiving RDS port.
    #[inline]
    pub fn dport(&self) -> u16 {
        self.dport.get()
    }

    /// `FLAG_*` bits.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Receive credits handed over.
    #[inline]
    pub fn credit(&self) -> u8 {
        self.credit
    }

    /// Stored checksum, see [`checksum_ok`].
    #[inline]
    pub fn stored_checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Extension header bytes.
    #[inline]
    pub fn ext(&self) -> &[u8; EXT_SPACE] {
        &self.ext
    }

    /// Extension header bytes, to write them.
    #[inline]
    pub fn ext_mut(&mut self) -> &mut [u8; EXT_SPACE] {
        &mut self.ext
    }

    /// Sets the number of the message on its path.
    #[inline]
    pub fn set_sequence(&mut self, sequence: u64) {
        self.sequence = U64::new(sequence);
    }

    /// Sets the last sequence number received.
    #[inline]
    pub fn set_ack(&mut self, ack: u64) {
        self.ack = U64::new(ack);
    }

    /// Sets the payload length in bytes.
    #[inline]
    pub fn set_len(&mut self, len: u32) {
        self.len = U32::new(len);
    }

    /// Sets the sending RDS port.
    #[inline]
    pub fn set_sport(&mut self, sport: u16) {
        self.sport = U16::new(sport);
    }

    /// Sets the receiving RDS port.
    #[inline]
    pub fn set_dport(&mut self, dport: u16) {
        self.dport = U16::new(dport);
    }

    /// Replaces the `FLAG_*` bits.
    #[inline]
    pub fn set_flags(&mut self, flags: u8) {
        self.flags = flags;
    }

    /// Sets the receive credits handed over.
    #[inline]
    pub fn set_credit(&mut self, credit: u8) {
        self.credit = credit;
    }

    /// Whether the payload is a congestion map.
    ///
    /// As in C only when the flags are exactly [`FLAG_CONG_BITMAP`]; with any other bit beside it
    /// the message is data.
    #[inline]
    pub fn is_congestion_map(&self) -> bool {
        self.flags == FLAG_CONG_BITMAP
    }
}

/// Folded one's complement sum over all 48 bytes.
fn sum(header: &Header) -> u16 {
    let mut sum: u32 = 0;
    for pair in header.as_bytes().chunks_exact(2) {
        if let &[high, low] = pair {
            // 24 words of 16 bits stay far below 2^32.
            sum = sum.wrapping_add(u32::from(u16::from_be_bytes([high, low])));
        }
    }
    sum = (sum & 0xffff).wrapping_add(sum >> 16);
    sum = (sum & 0xffff).wrapping_add(sum >> 16);
    // Two folds leave 16 bits.
    (sum & 0xffff) as u16
}

/// The checksum that belongs into `header`, whatever is stored there now.
///
/// C counterpart: `rds_message_make_checksum()`.
pub fn checksum(header: &Header) -> u16 {
    let mut blank = *header;
    blank.checksum = U16::ZERO;
    !sum(&blank)
}

/// Stores the checksum; RDMA only, TCP leaves it 0.
pub fn set_checksum(header: &mut Header) {
    header.checksum = U16::new(checksum(header));
}

/// Whether the stored checksum is absent (0) or right (`rds_message_verify_checksum()`).
pub fn checksum_ok(header: &Header) -> bool {
    header.checksum == U16::ZERO || sum(header) == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromBytes as _;

    #[test]
    fn fields_stand_where_the_wire_has_them() {
        let mut header = Header::new(0x0102_0304_0506_0708, 0x1112_1314, 0x2122, 0x3132, 0x41);
        header.set_ack(0x5152_5354_5556_5758);
        header.set_credit(0x61);
        header.ext_mut()[15] = 0x71;
        header.checksum = U16::new(0x8182);
        let mut expected = [0; HEADER_LEN];
        expected[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        expected[8..16].copy_from_slice(&[0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58]);
        expected[16..24].copy_from_slice(&[0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x31, 0x32]);
        expected[24..32].copy_from_slice(&[0x41, 0x61, 0, 0, 0, 0, 0x81, 0x82]);
        expected[47] = 0x71;
        assert_eq!(header.as_bytes(), expected);

        let parsed = Header::read_from_bytes(&expected).unwrap();
        assert_eq!(parsed, header);
        assert_eq!(parsed.sequence(), 0x0102_0304_0506_0708);
        assert_eq!(parsed.ack(), 0x5152_5354_5556_5758);
        assert_eq!(parsed.len(), 0x1112_1314);
        assert_eq!((parsed.sport(), parsed.dport()), (0x2122, 0x3132));
        assert_eq!((parsed.flags(), parsed.credit()), (0x41, 0x61));
        assert_eq!(parsed.stored_checksum(), 0x8182);
    }

    #[test]
    fn setters_write_what_getters_read() {
        let mut header = Header::default();
        header.set_sequence(1);
        header.set_len(2);
        header.set_sport(3);
        header.set_dport(4);
        header.set_flags(5);
        assert_eq!(header, Header::new(1, 2, 3, 4, 5));
    }

    #[test]
    fn congestion_map_header_vector() {
        let mut expected = [0; HEADER_LEN];
        expected[18] = 0x20;
        expected[24] = 1;
        assert_eq!(Header::congestion_map().as_bytes(), expected);
    }

    #[test]
    fn only_the_bare_flag_makes_a_congestion_map() {
        assert!(Header::congestion_map().is_congestion_map());
        let flags = FLAG_CONG_BITMAP | FLAG_RETRANSMITTED;
        assert!(!Header::new(0, CONG_MAP_LEN, 0, 0, flags).is_congestion_map());
    }

    #[test]
    fn checksum_vectors() {
        let mut data = Header::new(7, 4096, 4001, 4002, FLAG_ACK_REQUIRED);
        data.set_ack(5);
        assert_eq!(checksum(&data), 0xceb0);

        let mut ack = Header::default();
        ack.set_ack(9);
        ack.set_credit(16);
        assert_eq!(checksum(&ack), 0xffe6);
        set_checksum(&mut ack);
        assert_eq!(ack.stored_checksum(), 0xffe6);
        assert_eq!(checksum(&ack), 0xffe6);
    }

    #[test]
    fn checksum_is_checked_unless_zero() {
        let mut header = Header::new(7, 4096, 4001, 4002, 0);
        assert!(checksum_ok(&header));
        set_checksum(&mut header);
        assert!(checksum_ok(&header));
        header.set_dport(4003);
        assert!(!checksum_ok(&header));
    }

    #[test]
    fn checksum_carries_fold() {
        let mut header = Header::read_from_bytes(&[0xff; HEADER_LEN]).unwrap();
        set_checksum(&mut header);
        // The other words sum up to 0xffff, whose complement counts as unchecked.
        assert_eq!(header.stored_checksum(), 0);
        assert!(checksum_ok(&header));
    }
}
