// SPDX-License-Identifier: GPL-2.0

//! The chunks of a session: how many, how large, and what fits an immediate.
//!
//! A server hands each session `queue_depth` buffers of equal size, the chunks. A request lives in one of them: its
//! data first, then the user's message, then a header; the first `max_io_size` bytes are meant for data and the rest
//! for message and header. The server announces the three numbers once and both sides compute with them from then on,
//! so this is the only place where they are checked.
//!
//! C counterpart: `rtrs_rdma_conn_established()` in `rtrs-clt.c`, `check_module_params()` in `rtrs-srv.c`.

use core::fmt;

use super::wire::ConnRspFields;
use crate::errno::{
    Errno,
    Failure, //
};

/// Bits of an immediate below its type (`MAX_IMM_PAYL_BITS`).
pub const PAYLOAD_BITS: u32 = 28;

/// Smallest `max_io_size` in bytes: a page of the block layer's smallest size, which every server has.
pub const MIN_IO_SIZE: u32 = 4096;

/// Smallest `max_hdr_size` in bytes: the longest message of RNBD is 264 bytes, the longest header 24.
pub const MIN_HDR_SIZE: u32 = 512;

/// Largest `max_hdr_size` in bytes: the largest page a server may have.
pub const MAX_HDR_SIZE: u32 = 65536;

/// Smallest chunk a server may be configured for, in bytes (`MIN_CHUNK_SIZE`).
pub const MIN_CHUNK_SIZE: u32 = 8192;

/// Bits that can count to `n`: the logarithm to base 2, rounded up.
pub const fn bits_for(n: u32) -> u32 {
    // `n - 1` has the same length as the largest of `n` numbers from 0.
    u32::BITS - n.saturating_sub(1).leading_zeros()
}

/// Number of a chunk, below the queue depth of the [`Geometry`] that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(u16);

impl ChunkId {
    /// Number for the wire.
    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Number for an index.
    #[inline]
    pub const fn index(self) -> usize {
        // CAST: Widening, `From` is not const.
        self.0 as usize
    }
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Number and size of the chunks of a session.
///
/// # Invariants
///
/// * `queue_depth` is not 0.
/// * `max_io_size + max_hdr_size` does not overflow.
/// * The numbers of all chunks and all offsets in a chunk fit the [`PAYLOAD_BITS`] of an immediate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of chunks.
    queue_depth: u16,
    /// Longest data of a request in bytes.
    max_io_size: u32,
    /// Longest user message and header together in bytes.
    max_hdr_size: u32,
}

impl Geometry {
    /// Checks what a server announced.
    pub fn new(
        queue_depth: u16,
        max_io_size: u32,
        max_hdr_size: u32,
    ) -> Result<Self, GeometryError> {
        if queue_depth == 0 {
            return Err(GeometryError::NoChunks);
        }
        if max_io_size < MIN_IO_SIZE {
            return Err(GeometryError::IoSize { max_io_size });
        }
        if !(MIN_HDR_SIZE..=MAX_HDR_SIZE).contains(&max_hdr_size) {
            return Err(GeometryError::HdrSize { max_hdr_size });
        }
        let sum = max_io_size.checked_add(max_hdr_size);
        match sum
            .map(|chunk_size| bits_for(chunk_size).saturating_add(bits_for(queue_depth.into())))
        {
            // INVARIANT: Just checked, one after the other.
            Some(0..=PAYLOAD_BITS) => Ok(Self {
                queue_depth,
                max_io_size,
                max_hdr_size,
            }),
            _ => Err(GeometryError::Immediate {
                queue_depth,
                max_io_size,
                max_hdr_size,
            }),
        }
    }

    /// Checks the settings of a server with pages of `page_size` bytes.
    ///
    /// `max_chunk_size` is in bytes (module parameters `max_chunk_size`, `sess_queue_depth`).
    pub fn from_settings(
        max_chunk_size: i32,
        sess_queue_depth: i32,
        page_size: u32,
    ) -> Result<Self, GeometryError> {
        let queue_depth = match u16::try_from(sess_queue_depth) {
            Ok(queue_depth @ 1..) => queue_depth,
            _ => return Err(GeometryError::DepthSetting { sess_queue_depth }),
        };
        let chunk_error = GeometryError::ChunkSetting { max_chunk_size };
        let chunk_size = u32::try_from(max_chunk_size).map_err(|_| chunk_error)?;
        if chunk_size < MIN_CHUNK_SIZE || !chunk_size.is_power_of_two() {
            return Err(chunk_error);
        }
        let max_io_size = chunk_size.checked_sub(page_size).ok_or(chunk_error)?;
        Self::new(queue_depth, max_io_size, page_size)
    }

    /// Number of chunks, at least 1.
    #[inline]
    pub const fn queue_depth(&self) -> u16 {
        self.queue_depth
    }

    /// Longest data of a request in bytes.
    #[inline]
    pub const fn max_io_size(&self) -> u32 {
        self.max_io_size
    }

    /// Longest user message and header together in bytes.
    #[inline]
    pub const fn max_hdr_size(&self) -> u32 {
        self.max_hdr_size
    }

    /// Size of a chunk in bytes.
    #[inline]
    pub const fn chunk_size(&self) -> u32 {
        // By the invariants, the sum does not overflow.
        self.max_io_size.saturating_add(self.max_hdr_size)
    }

    /// Bits of an immediate for the offset in a chunk; the number of the chunk stands above.
    #[inline]
    pub const fn offset_bits(&self) -> u32 {
        // CAST: Widening, `From` is not const.
        PAYLOAD_BITS.saturating_sub(bits_for(self.queue_depth as u32))
    }

    /// The chunk with this number, if there is one.
    #[inline]
    pub fn chunk(&self, number: u32) -> Option<ChunkId> {
        match u16::try_from(number) {
            Ok(number) if number < self.queue_depth => Some(ChunkId(number)),
            _ => None,
        }
    }

    /// All chunks in order.
    pub fn chunks(&self) -> impl DoubleEndedIterator<Item = ChunkId> {
        (0..self.queue_depth).map(ChunkId)
    }

    /// What a server with these chunks announces.
    pub const fn fields(&self, new_rkey: bool) -> ConnRspFields {
        ConnRspFields {
            queue_depth: self.queue_depth,
            max_io_size: self.max_io_size,
            max_hdr_size: self.max_hdr_size,
            new_rkey,
        }
    }
}

/// What is wrong with the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeometryError {
    /// A queue depth of 0.
    NoChunks,
    /// Chunks without room for a page of data.
    IoSize {
        /// Announced longest data.
        max_io_size: u32,
    },
    /// Too little room for messages, or more than any server has.
    HdrSize {
        /// Announced longest message.
        max_hdr_size: u32,
    },
    /// An immediate cannot hold the number of a chunk and an offset in it.
    Immediate {
        /// Announced number of chunks.
        queue_depth: u16,
        /// Announced longest data.
        max_io_size: u32,
        /// Announced longest message.
        max_hdr_size: u32,
    },
    /// Module parameter `sess_queue_depth`.
    DepthSetting {
        /// Its value.
        sess_queue_depth: i32,
    },
    /// Module parameter `max_chunk_size`.
    ChunkSetting {
        /// Its value.
        max_chunk_size: i32,
    },
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoChunks => f.write_str("queue depth is 0, it must be at least 1"),
            Self::IoSize { max_io_size } => {
                write!(f, "max_io_size is {max_io_size}, it must be at least {MIN_IO_SIZE}")
            }
            Self::HdrSize { max_hdr_size } => write!(
                f,
                "max_hdr_size is {max_hdr_size}, it must be from {MIN_HDR_SIZE} to {MAX_HDR_SIZE}"
            ),
            Self::Immediate {
                queue_depth,
                max_io_size,
                max_hdr_size,
            } => write!(
                f,
                "{queue_depth} chunks of {max_io_size} + {max_hdr_size} bytes need more than the {PAYLOAD_BITS} bits \
                 of an immediate"
            ),
            Self::DepthSetting { sess_queue_depth } => {
                write!(f, "sess_queue_depth is {sess_queue_depth}, it must be from 1 to 65535")
            }
            Self::ChunkSetting { max_chunk_size } => write!(
                f,
                "max_chunk_size is {max_chunk_size}, it must be a power of two, at least {MIN_CHUNK_SIZE} and larger \
                 than a page"
            ),
        }
    }
}

impl Failure for GeometryError {
    fn errno(&self) -> Errno {
        match self {
            Self::DepthSetting { .. } | Self::ChunkSetting { .. } => Errno::EINVAL,
            // As C answers to everything it does not like about a connection.
            Self::NoChunks
            | Self::IoSize { .. }
            | Self::HdrSize { .. }
            | Self::Immediate { .. } => Errno::ECONNRESET,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn logarithm_rounds_up() {
        for (n, bits) in [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 2),
            (4, 2),
            (5, 3),
            (512, 9),
            (513, 10),
            (65535, 16),
        ] {
            assert_eq!(bits_for(n), bits, "{n}");
        }
        assert_eq!(bits_for(u32::MAX), 32);
    }

    #[test]
    fn default_of_the_server() {
        let geometry = Geometry::from_settings(131_072, 512, 4096).unwrap();
        assert_eq!(geometry, Geometry::new(512, 126_976, 4096).unwrap());
        assert_eq!(geometry.chunk_size(), 131_072);
        assert_eq!(geometry.offset_bits(), 19);
        assert_eq!(geometry.chunk(511).unwrap().number(), 511);
        assert_eq!(geometry.chunk(512), None);
        assert_eq!(geometry.chunk(u32::MAX), None);
        assert_eq!(geometry.chunks().count(), 512);
    }

    #[test]
    fn absurd_announcements() {
        use GeometryError::*;
        assert_eq!(Geometry::new(0, 126_976, 4096), Err(NoChunks));
        assert!(matches!(Geometry::new(1, 0, 4096), Err(IoSize { .. })));
        assert!(matches!(Geometry::new(1, 4096, 0), Err(HdrSize { .. })));
        assert!(matches!(
            Geometry::new(1, 4096, 1 << 31),
            Err(HdrSize { .. })
        ));
        // A server with pages larger than its chunks: the C server computes a negative size.
        assert!(matches!(
            Geometry::new(1, 8192u32.wrapping_sub(65536), 65536),
            Err(Immediate { .. })
        ));
        assert!(matches!(
            Geometry::new(512, 1 << 20, 4096),
            Err(Immediate { .. })
        ));
        assert!(Geometry::new(1, (1 << 28) - 4096, 4096).is_ok());
        assert!(Geometry::new(1, (1 << 28) - 4095, 4096).is_err());
        assert!(Geometry::new(65535, 4096, 512).is_err());
        assert!(Geometry::new(32768, 4096, 4096).is_ok());
        assert_eq!(NoChunks.errno(), Errno::ECONNRESET);
    }

    #[test]
    fn settings() {
        use GeometryError::*;
        for depth in [0, -1, 65536, i32::MIN] {
            assert!(matches!(
                Geometry::from_settings(131_072, depth, 4096),
                Err(DepthSetting { .. })
            ));
        }
        for chunk in [0, -1, 4096, 8191, 8193, 131_073, i32::MIN, i32::MAX] {
            assert!(matches!(
                Geometry::from_settings(chunk, 512, 4096),
                Err(ChunkSetting { .. })
            ));
        }
        assert!(matches!(
            Geometry::from_settings(8192, 1, 65536),
            Err(ChunkSetting { .. })
        ));
        assert!(matches!(
            Geometry::from_settings(65536, 1, 65536),
            Err(IoSize { .. })
        ));
        assert!(Geometry::from_settings(8192, 512, 4096).is_ok());
        assert!(matches!(
            Geometry::from_settings(131_072, 4096, 4096),
            Err(Immediate { .. })
        ));
        let text = ChunkSetting { max_chunk_size: 1 }.to_string();
        assert!(text.contains("power of two"));
    }
}
