// SPDX-License-Identifier: GPL-2.0

//! What an endpoint is asked to do.

use crate::sizes::Sizes;
use anyhow::{bail, Result};
use rds_cli::parse_size;
use rds_sys::{Transport, MAX_MESSAGE};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Largest message of the small sizes.
const SMALL: usize = 1024;

/// Everything an endpoint needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Our control address; the streams use the ports that follow.
    pub(crate) local: SocketAddr,
    /// The other side's control address.
    pub(crate) peer: SocketAddr,
    /// The other side must not send.
    pub(crate) one_way: bool,
    pub(crate) streams: u16,
    /// The transport to insist on.
    pub(crate) transport: Option<Transport>,
    pub(crate) tos: u8,
    pub(crate) sndbuf: Option<usize>,
    pub(crate) rcvbuf: Option<usize>,
    pub(crate) limit: Limit,
    pub(crate) sizes: SizeRule,
    pub(crate) max_size: Option<usize>,
    pub(crate) seed: u64,
    pub(crate) zerocopy: bool,
    pub(crate) timeout: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) congestion: Congestion,
    pub(crate) recv_pause: Duration,
    pub(crate) rtt: bool,
    pub(crate) progress: Option<Duration>,
}

/// When to stop sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// After so many messages, all streams together.
    Messages(u64),
    /// After so long.
    Time(Duration),
}

/// How a sender learns that it may try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Congestion {
    /// By a control message for its destination.
    Monitor,
    /// By becoming readable, which happens at every change of any congestion.
    Poll,
}

/// What sizes the user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeRule {
    Small,
    Mixed,
    Range { min: usize, max: usize },
}

impl SizeRule {
    /// Reads the argument of `--sizes`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (min, max) = match text {
            "small" => return Ok(Self::Small),
            "mixed" => return Ok(Self::Mixed),
            _ => match text.split_once('-') {
                Some((min, max)) => (parse_size(min)?, parse_size(max)?),
                None => (parse_size(text)?, parse_size(text)?),
            },
        };
        if min > max || max > MAX_MESSAGE {
            return Err(format!(
                "'{text}': sizes must rise and be at most {MAX_MESSAGE}"
            ));
        }
        Ok(Self::Range { min, max })
    }

    /// The sizes to use if the send buffer allows them.
    pub(crate) fn wanted(self, max_size: Option<usize>) -> RangeInclusive<usize> {
        match self {
            Self::Small => 1..=SMALL,
            Self::Mixed => 1..=max_size.unwrap_or(MAX_MESSAGE),
            Self::Range { min, max } => min..=max,
        }
    }

    /// The sizes to use with a send buffer of `room` bytes.
    ///
    /// Only a mixture whose upper end the user left open may become smaller.
    pub(crate) fn settle(self, max_size: Option<usize>, room: usize) -> Result<Sizes> {
        let wanted = self.wanted(max_size);
        let (min, max) = (*wanted.start(), *wanted.end());
        let open = self == Self::Mixed && max_size.is_none();
        if max > MAX_MESSAGE || max < min {
            bail!("messages have 1 to {MAX_MESSAGE} bytes");
        }
        if max > room && !open {
            bail!("messages of {max} bytes need a larger send buffer than {room}; see --sndbuf");
        }
        let max = max.min(room);
        Ok(if self == Self::Mixed {
            Sizes::Mixed { max }
        } else {
            Sizes::Even { min, max }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules() {
        assert_eq!(SizeRule::parse("small"), Ok(SizeRule::Small));
        assert_eq!(
            SizeRule::parse("4k"),
            Ok(SizeRule::Range {
                min: 4096,
                max: 4096
            })
        );
        assert_eq!(
            SizeRule::parse("0-9"),
            Ok(SizeRule::Range { min: 0, max: 9 })
        );
        for bad in ["", "9-3", "2m", "x", "1-"] {
            assert!(SizeRule::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_small_buffer_limits_only_open_mixtures() {
        let mixed = SizeRule::Mixed.settle(None, 5000).unwrap();
        assert_eq!(mixed, Sizes::Mixed { max: 5000 });
        assert!(SizeRule::Mixed.settle(Some(9000), 5000).is_err());
        assert!(SizeRule::Range { min: 1, max: 9000 }
            .settle(None, 5000)
            .is_err());
        let small = SizeRule::Small.settle(None, 5000).unwrap();
        assert_eq!(small, Sizes::Even { min: 1, max: 1024 });
        assert!(SizeRule::Mixed.settle(Some(0), 5000).is_err());
    }
}
