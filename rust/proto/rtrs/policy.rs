// SPDX-License-Identifier: GPL-2.0

//! Choosing the path of a request.
//!
//! C counterpart: `get_next_path_rr()`, `get_next_path_min_inflight()`, `get_next_path_min_latency()` in `rtrs-clt.c`,
//! `mpath_policy` in `rtrs-clt-sysfs.c`.

use core::fmt;

use super::wire::MAX_PATHS;
use crate::text::{
    trimmed,
    ValueError, //
};

/// How the path of a request is chosen (`mpath_policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum Policy {
    /// One after the other.
    RoundRobin = 0,
    /// The one with the fewest requests under way.
    #[default]
    MinInflight = 1,
    /// The one whose last heartbeat was answered fastest.
    MinLatency = 2,
}

impl Policy {
    /// Policy with the value `raw`, if there is one.
    #[inline]
    pub const fn from_i32(raw: i32) -> Option<Self> {
        Some(match raw {
            0 => Self::RoundRobin,
            1 => Self::MinInflight,
            2 => Self::MinLatency,
            _ => return None,
        })
    }

    /// Value of the policy, to be kept in an atomic.
    #[inline]
    pub const fn as_i32(self) -> i32 {
        self as i32
    }

    /// Reads the file `mpath_policy`: the name, its abbreviation or its number, in upper or lower case.
    pub fn from_text(text: &[u8]) -> Result<Self, ValueError> {
        let text = trimmed(text);
        [Self::RoundRobin, Self::MinInflight, Self::MinLatency]
            .into_iter()
            .find(|policy| {
                let (name, short, number) = policy.names();
                [name, short, number]
                    .iter()
                    .any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
            })
            .ok_or(ValueError::Word {
                expected: "round-robin (rr, 0), min-inflight (mi, 1) or min-latency (ml, 2)",
            })
    }

    /// Name, abbreviation and number.
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::RoundRobin => ("round-robin", "RR", "0"),
            Self::MinInflight => ("min-inflight", "MI", "1"),
            Self::MinLatency => ("min-latency", "ML", "2"),
        }
    }
}

impl fmt::Display for Policy {
    /// What the file `mpath_policy` shows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, short, number) = self.names();
        write!(f, "{name} ({short}: {number})")
    }
}

/// What counts about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Whether it may be used at all.
    pub connected: bool,
    /// Requests under way on it.
    pub inflight: u32,
    /// Time its last heartbeat took, in nanoseconds.
    pub latency_ns: u64,
}

/// The search for the path of one request, which goes on if the path that was found does not work.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// How to choose.
    policy: Policy,
    /// Path whose turn it is.
    turn: usize,
    /// Paths that were found before, as bits.
    tried: u128,
}

const _: () = assert!(MAX_PATHS <= u128::BITS as usize);

impl Search {
    /// Starts a search.
    ///
    /// `turn` is the index of the path whose turn it is, for [`Policy::RoundRobin`]; it may be beyond the last one.
    #[inline]
    pub const fn new(policy: Policy, turn: usize) -> Self {
        Self {
            policy,
            turn,
            tried: 0,
        }
    }

    /// Whether the path of a session that has one only was not found yet; from here on it was.
    ///
    /// Does what [`Self::next`] would, which has nothing to choose from there.
    #[inline]
    pub fn only(&mut self) -> bool {
        let first = self.tried == 0;
        self.tried = 1;
        first
    }

    /// Index of the best path that was not found yet, of those that `candidates` yields in the order of the session.
    ///
    /// Of equals the first. `None` if there is none left; a path beyond the [`MAX_PATHS`] a session can have is none.
    #[inline]
    pub fn next(&mut self, candidates: impl IntoIterator<Item = Candidate>) -> Option<usize> {
        let (policy, turn, tried) = (self.policy, self.turn, self.tried);
        let (index, _) = candidates
            .into_iter()
            .take(MAX_PATHS)
            .enumerate()
            .filter(|(index, path)| path.connected && tried & bit(*index) == 0)
            .min_by_key(|(index, path)| match policy {
                Policy::RoundRobin => u64::from(*index < turn),
                Policy::MinInflight => path.inflight.into(),
                Policy::MinLatency => path.latency_ns,
            })?;
        self.tried |= bit(index);
        Some(index)
    }
}

/// Bit of a path.
fn bit(index: usize) -> u128 {
    u32::try_from(index)
        .ok()
        .and_then(|index| 1u128.checked_shl(index))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        string::ToString,
        vec::Vec, //
    };

    fn paths(list: &[(bool, u32, u64)]) -> Vec<Candidate> {
        list.iter()
            .map(|&(connected, inflight, latency_ns)| Candidate {
                connected,
                inflight,
                latency_ns,
            })
            .collect()
    }

    /// All paths in the order in which a search finds them.
    fn order(policy: Policy, turn: usize, list: &[(bool, u32, u64)]) -> Vec<usize> {
        let paths = paths(list);
        let mut search = Search::new(policy, turn);
        core::iter::from_fn(|| search.next(paths.iter().copied())).collect()
    }

    #[test]
    fn orders() {
        let list = [(true, 3, 50), (false, 0, 0), (true, 1, 70), (true, 1, 20)];
        assert_eq!(order(Policy::RoundRobin, 0, &list), [0, 2, 3]);
        assert_eq!(order(Policy::RoundRobin, 1, &list), [2, 3, 0]);
        assert_eq!(order(Policy::RoundRobin, 3, &list), [3, 0, 2]);
        assert_eq!(order(Policy::RoundRobin, 4, &list), [0, 2, 3]);
        assert_eq!(order(Policy::MinInflight, 0, &list), [2, 3, 0]);
        assert_eq!(order(Policy::MinLatency, 0, &list), [3, 0, 2]);
    }

    #[test]
    fn nothing_to_choose_from() {
        for policy in [Policy::RoundRobin, Policy::MinInflight, Policy::MinLatency] {
            assert!(order(policy, 7, &[]).is_empty());
            assert!(order(policy, 0, &[(false, 0, 0)]).is_empty());
            // Slow and busy is still a choice.
            assert_eq!(order(policy, 0, &[(true, u32::MAX, u64::MAX)]), [0]);
        }
    }

    #[test]
    fn the_only_path() {
        let mut search = Search::new(Policy::MinInflight, 3);
        assert!(search.only());
        assert!(!search.only());
        assert_eq!(search.next(paths(&[(true, 0, 0)])), None);
        assert_eq!(search.next(paths(&[(true, 0, 0), (true, 0, 0)])), Some(1));
    }

    #[test]
    fn as_many_paths_as_there_can_be() {
        let many: Vec<_> = (0..200).map(|_| (true, 0, 0)).collect();
        assert_eq!(order(Policy::MinInflight, 0, &many).len(), 128);
    }

    #[test]
    fn text() {
        for (policy, words) in [
            (
                Policy::RoundRobin,
                ["round-robin", "rr\n", "0", "RR", "Round-Robin\n"],
            ),
            (
                Policy::MinInflight,
                ["min-inflight", "mi", "1\n", "MI", "MIN-INFLIGHT"],
            ),
            (
                Policy::MinLatency,
                ["min-latency", "ml", "2", "Ml", " min-latency "],
            ),
        ] {
            for word in words {
                assert_eq!(Policy::from_text(word.as_bytes()), Ok(policy), "{word}");
            }
            assert_eq!(Policy::from_i32(policy.as_i32()), Some(policy));
        }
        for word in [
            "",
            "\n",
            "round-robinXYZ",
            "round",
            "r",
            "rrr",
            "min",
            "3",
            "-1",
            "00",
            "01",
            "mi\0",
        ] {
            assert!(Policy::from_text(word.as_bytes()).is_err(), "{word}");
        }
        assert_eq!(Policy::default().to_string(), "min-inflight (MI: 1)");
        assert_eq!(Policy::RoundRobin.to_string(), "round-robin (RR: 0)");
        assert_eq!(Policy::MinLatency.to_string(), "min-latency (ML: 2)");
    }
}
