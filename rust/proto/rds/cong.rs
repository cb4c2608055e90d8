// SPDX-License-Identifier: GPL-2.0

//! Congestion maps: one bit per port of an address, set while the port's receive queue is full.
//!
//! A map is 1024 words; port `p` is bit `p % 64` of word `p / 64`, and on the wire the words are
//! little endian, so that port `p` is bit `p % 8` of byte `p / 8`. Where the words live and which
//! lock guards them is the caller's business: these helpers only know the layout.
//!
//! C counterpart: `net/rds/cong.c`.

/// Words of a map: 65536 ports, 64 bits each.
pub const MAP_WORDS: usize = 1024;

/// Word index and bit mask of `port`.
#[inline]
pub const fn word_and_bit(port: u16) -> (usize, u64) {
    // CAST: widening, `From` is not const.
    ((port / 64) as usize, monitor_bit(port))
}

/// Whether the bit of `port` is set in `words`; a port beyond a short slice is not congested.
#[inline]
pub fn test(words: &[u64], port: u16) -> bool {
    let (word, bit) = word_and_bit(port);
    words.get(word).is_some_and(|value| value & bit != 0)
}

/// Sets the bit of `port`; returns whether that changed the map.
#[inline]
pub fn set(words: &mut [u64], port: u16) -> bool {
    let (word, bit) = word_and_bit(port);
    match words.get_mut(word) {
        Some(value) if *value & bit == 0 => {
            *value |= bit;
            true
        }
        _ => false,
    }
}

/// Clears the bit of `port`; returns whether that changed the map.
#[inline]
pub fn clear(words: &mut [u64], port: u16) -> bool {
    let (word, bit) = word_and_bit(port);
    match words.get_mut(word) {
        Some(value) if *value & bit != 0 => {
            *value &= !bit;
            true
        }
        _ => false,
    }
}

/// One word from its eight bytes on the wire.
#[inline]
pub const fn word_from_bytes(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes)
}

/// One word as its eight bytes on the wire.
#[inline]
pub const fn word_to_bytes(word: u64) -> [u8; 8] {
    word.to_le_bytes()
}

/// The words of a map, or of a part of it, from wire bytes; an incomplete last word is left out.
#[inline]
pub fn words_from_bytes(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .chunks_exact(8)
        .filter_map(|chunk| chunk.first_chunk().copied().map(word_from_bytes))
}

/// The wire bytes of a map, or of a part of it, word by word.
#[inline]
pub fn bytes_from_words(words: &[u64]) -> impl Iterator<Item = [u8; 8]> + '_ {
    words.iter().copied().map(word_to_bytes)
}

/// Bits that were set in `old` and no longer are in `new`.
///
/// The union over all words of a map is the mask of ports, modulo 64, that waiting senders and
/// congestion monitors are told about. C computes it for RDMA and passes all ones for TCP.
#[inline]
pub const fn newly_uncongested(old: u64, new: u64) -> u64 {
    old & !new
}

/// Bit of `port` in the masks of congestion monitoring (`RDS_CONG_MONITOR_MASK`).
#[inline]
pub const fn monitor_bit(port: u16) -> u64 {
    1 << (port % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn bits_stand_where_the_wire_has_them() {
        let mut words = [0; MAP_WORDS];
        assert!(set(&mut words, 10000));
        assert!(set(&mut words, 4001));
        assert!(!set(&mut words, 4001));
        let bytes: Vec<u8> = bytes_from_words(&words).flatten().collect();
        assert_eq!(bytes.len(), super::super::wire::CONG_MAP_BYTES);
        for (at, byte) in bytes.iter().enumerate() {
            let expected = match at {
                1250 => 1,
                500 => 2,
                _ => 0,
            };
            assert_eq!(*byte, expected, "byte {at}");
        }
        assert!(words_from_bytes(&bytes).eq(words));
    }

    #[test]
    fn set_test_clear_at_the_ends() {
        let mut words = [0; MAP_WORDS];
        for port in [0, 1, 63, 64, u16::MAX] {
            assert!(!test(&words, port));
            assert!(set(&mut words, port));
            assert!(test(&words, port));
        }
        assert_eq!(words[1023], 1 << 63);
        assert!(clear(&mut words, 63));
        assert!(!clear(&mut words, 63));
        assert!(!test(&words, 63) && test(&words, 64));
    }

    #[test]
    fn short_slices_are_harmless() {
        let mut words = [u64::MAX; 1];
        assert!(test(&words, 63));
        assert!(!test(&words, 64));
        assert!(!set(&mut words, 64) && !clear(&mut words, 64));
        assert_eq!(words_from_bytes(&[1; 15]).count(), 1);
    }

    #[test]
    fn masks() {
        assert_eq!(newly_uncongested(0b1100, 0b0101), 0b1000);
        assert_eq!(monitor_bit(10000), 1 << 16);
        assert_eq!(monitor_bit(127), 1 << 63);
    }
}
