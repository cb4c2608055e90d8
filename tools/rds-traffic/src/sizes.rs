// SPDX-License-Identifier: GPL-2.0

//! How long each message is: a function of key, stream and sequence number.

use crate::content::Noise;
use serde::{Deserialize, Serialize};

/// Sizes around which implementations change their way: empty-ish, header, page, fragment, the
/// congestion map, 64 KiB.
const EDGES: [usize; 18] = [
    1, 2, 8, 47, 48, 49, 1447, 1448, 1449, 4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537,
];

/// A distribution of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sizes {
    /// Any size between two limits with equal probability.
    Even { min: usize, max: usize },
    /// Every order of magnitude up to a limit, small ones more often, with the limit and some special
    /// sizes more often.
    Mixed { max: usize },
}

impl Sizes {
    /// The largest size.
    pub(crate) fn max(self) -> usize {
        match self {
            Self::Even { max, .. } | Self::Mixed { max } => max,
        }
    }

    /// The size of one message.
    pub(crate) fn pick(self, noise: &mut Noise) -> usize {
        match self {
            Self::Even { min, max } => min + noise.below(max - min + 1),
            Self::Mixed { max } => mixed(max, noise),
        }
    }

    /// Whether the limits are in order and no message is larger than `most`.
    pub(crate) fn valid(self, most: usize) -> bool {
        let rising = match self {
            Self::Even { min, max } => min <= max,
            Self::Mixed { max } => max > 0,
        };
        rising && self.max() <= most
    }
}

fn mixed(max: usize, noise: &mut Noise) -> usize {
    match noise.below(512) {
        0 => max,
        1..64 => EDGES[noise.below(EDGES.len())].min(max),
        _ => {
            // CAST: at most 64.
            let magnitudes = max.ilog2() as usize + 1;
            // The smaller of two picks: the mean stays low enough for tens of thousands of messages.
            let magnitude = noise.below(magnitudes).min(noise.below(magnitudes));
            let low = 1 << magnitude;
            (low + noise.below(low)).min(max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(sizes: Sizes) -> Vec<usize> {
        (0..5000)
            .map(|seq| sizes.pick(&mut Noise::new(7, 0, seq)))
            .collect()
    }

    #[test]
    fn mixed_covers_the_range() {
        for max in [1, 2, 3, 100, 1 << 20] {
            let picks = picks(Sizes::Mixed { max });
            assert!(picks.contains(&1) && picks.contains(&max), "{max}");
            assert!(picks.iter().all(|size| (1..=max).contains(size)), "{max}");
        }
        let large = picks(Sizes::Mixed { max: 1 << 20 });
        assert!(large.iter().filter(|size| **size > 500_000).count() > 20);
        assert!(large.iter().filter(|size| **size < 40).count() > 500);
    }

    #[test]
    fn even_keeps_its_limits() {
        assert!(picks(Sizes::Even { min: 5, max: 5 })
            .iter()
            .all(|size| *size == 5));
        let picks = picks(Sizes::Even { min: 0, max: 2 });
        assert!(picks.contains(&0) && picks.contains(&2) && !picks.contains(&3));
    }

    #[test]
    fn what_a_peer_says_is_checked() {
        assert!(Sizes::Mixed { max: 5 }.valid(5));
        assert!(!Sizes::Mixed { max: 6 }.valid(5));
        assert!(!Sizes::Mixed { max: 0 }.valid(5));
        assert!(!Sizes::Even { min: 4, max: 3 }.valid(5));
    }
}
