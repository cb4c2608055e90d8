// SPDX-License-Identifier: GPL-2.0

//! Random numbers that a seed determines.

/// SplitMix64.
pub(crate) struct Rng(u64);

impl Rng {
    /// A sequence of its own for each pair of seed and stream.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut mixer = Self(seed);
        let own = mixer.next();
        Self(own ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        // CAST: The result is below a `usize`, and `usize` has 64 bits here.
        (self.next() % limit as u64) as usize
    }

    /// True in `count` of 1000 cases.
    pub(crate) fn permille(&mut self, count: usize) -> bool {
        self.below(1000) < count
    }

    /// One of some values.
    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Any 32 bits.
    pub(crate) fn u32(&mut self) -> u32 {
        // CAST: The upper half is left out.
        self.next() as u32
    }
}
