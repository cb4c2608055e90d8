// SPDX-License-Identifier: GPL-2.0

//! What the messages contain.
//!
//! A message of at least [`HEADER`] bytes begins with a header that names the stream, the sequence
//! number, the run of the program and the length, followed by a hash of all that and of the rest. A
//! shorter one consists of bytes that only this message of this stream has. All bytes follow from the
//! sender's key, so the receiver knows what to expect.

use crate::sizes::Sizes;
use std::fmt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bytes of the header.
pub(crate) const HEADER: usize = 40;
/// Bytes of the header before the hash.
const NAMED: usize = 32;
/// The first bytes of every header.
const MAGIC: u32 = 0x7764_7331;
/// How far from the expected one a short message is looked for, to tell what it is.
const NEARBY: u64 = 1000;

/// Pseudo-random numbers (SplitMix64), good enough to make all messages differ.
pub(crate) struct Noise {
    state: u64,
}

impl Noise {
    /// The numbers that belong to one message.
    pub(crate) fn new(key: u64, stream: u16, sequence: u64) -> Self {
        let mut noise = Self { state: key };
        noise.state = noise.next() ^ u64::from(stream);
        noise.state = noise.next() ^ sequence;
        noise.state = noise.next();
        noise
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which must not be zero.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // CAST: the high half of the product of two 64-bit numbers is below the limit.
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let number = self.next().to_le_bytes();
            chunk.copy_from_slice(&number[..chunk.len()]);
        }
    }
}

/// All that determines the messages of one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// What sizes and contents are derived from.
    pub(crate) key: u64,
    /// The run of the sending program.
    pub(crate) session: u64,
    pub(crate) sizes: Sizes,
}

/// The place of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) stream: u16,
    pub(crate) sequence: u64,
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// It comes from an earlier run of the sender.
    Stale,
    /// It belongs to another stream.
    Stream(u16),
    /// It is another message of this stream, before or after the expected one.
    Sequence(u64),
    /// It is not as long as it should be.
    Length { expected: usize, got: usize },
    /// It is long enough for a header but has none.
    NoHeader,
    /// Its bytes are not those that were sent.
    Corrupt,
}

impl Recipe {
    /// The size of a message.
    fn size(&self, noise: &mut Noise) -> usize {
        self.sizes.pick(noise)
    }

    /// Writes the message of `place` to `to`, replacing what is there.
    pub(crate) fn write(&self, place: Place, to: &mut Vec<u8>) {
        let mut noise = Noise::new(self.key, place.stream, place.sequence);
        let size = self.size(&mut noise);
        to.resize(size, 0);
        if size < HEADER {
            noise.fill(to);
            return;
        }
        let (header, payload) = to.split_at_mut(HEADER);
        noise.fill(payload);
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&u32::from(place.stream).to_le_bytes());
        header[8..16].copy_from_slice(&place.sequence.to_le_bytes());
        header[16..24].copy_from_slice(&self.session.to_le_bytes());
        // CAST: to a wider type on every Linux.
        header[24..32].copy_from_slice(&(size as u64).to_le_bytes());
        let hash = hash(&header[..NAMED], payload);
        header[NAMED..].copy_from_slice(&hash.to_le_bytes());
    }

    /// Checks that `got` is the message of `place`.
    pub(crate) fn check(&self, place: Place, got: &[u8]) -> Result<(), Defect> {
        let mut noise = Noise::new(self.key, place.stream, place.sequence);
        let expected = self.size(&mut noise);
        match Header::parse(got) {
            Some(header) => self.check_header(place, &header, expected, got),
            None if expected == got.len() && expected >= HEADER => Err(Defect::NoHeader),
            None => self.check_short(place, noise, expected, got),
        }
    }

    fn check_header(
        &self,
        place: Place,
        header: &Header,
        expected: usize,
        got: &[u8],
    ) -> Result<(), Defect> {
        if header.session != self.session {
            return Err(Defect::Stale);
        }
        if header.stream != u32::from(place.stream) {
            return Err(u16::try_from(header.stream).map_or(Defect::Corrupt, Defect::Stream));
        }
        if header.sequence != place.sequence {
            return Err(Defect::Sequence(header.sequence));
        }
        if got.len() != expected {
            return Err(Defect::Length {
                expected,
                got: got.len(),
            });
        }
        // CAST: to a wider type on every Linux.
        let intact =
            header.length == got.len() as u64 && header.hash == hash(&got[..NAMED], &got[HEADER..]);
        intact.then_some(()).ok_or(Defect::Corrupt)
    }

    fn check_short(
        &self,
        place: Place,
        mut noise: Noise,
        expected: usize,
        got: &[u8],
    ) -> Result<(), Defect> {
        let mut bytes = vec![0; expected.min(HEADER)];
        noise.fill(&mut bytes);
        if got == bytes {
            return Ok(());
        }
        if let Some(sequence) = self.find_short(place, got) {
            return Err(Defect::Sequence(sequence));
        }
        if got.len() != expected {
            return Err(Defect::Length {
                expected,
                got: got.len(),
            });
        }
        Err(Defect::Corrupt)
    }

    /// The sequence number of a message near `place` that equals `got`, if `got` is long enough to
    /// tell it from others.
    fn find_short(&self, place: Place, got: &[u8]) -> Option<u64> {
        if got.len() < 4 || got.len() >= HEADER {
            return None;
        }
        let from = place.sequence.saturating_sub(NEARBY);
        (from..place.sequence.saturating_add(NEARBY)).find(|sequence| {
            let mut noise = Noise::new(self.key, place.stream, *sequence);
            let mut bytes = [0; HEADER];
            self.size(&mut noise) == got.len() && {
                noise.fill(&mut bytes[..got.len()]);
                bytes[..got.len()] == *got
            }
        })
    }
}

/// A header as it was received.
struct Header {
    stream: u32,
    sequence: u64,
    session: u64,
    length: u64,
    hash: u64,
}

impl Header {
    /// The header of `bytes`, if they are long enough and begin with the magic number.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let first = number(0)?;
        let header = Self {
            // CAST: the halves of the number.
            stream: (first >> 32) as u32,
            sequence: number(8)?,
            session: number(16)?,
            length: number(24)?,
            hash: number(NAMED)?,
        };
        // CAST: as above.
        (first as u32 == MAGIC).then_some(header)
    }
}

fn hash(named: &[u8], payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, xxh3_64(named))
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => f.write_str("it comes from an earlier run of the sender"),
            Self::Stream(stream) => write!(f, "it belongs to stream {stream}"),
            Self::Sequence(sequence) => write!(f, "it is message {sequence}"),
            Self::Length { expected, got } => {
                write!(f, "it has {got} bytes instead of {expected}")
            }
            Self::NoHeader => f.write_str("it has no header"),
            Self::Corrupt => f.write_str("its bytes are not those that were sent"),
        }
    }
}

#[cfg(test)]
mod tests;
