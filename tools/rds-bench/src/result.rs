// SPDX-License-Identifier: GPL-2.0

//! What is printed.

use crate::args::ClientPlan;
use crate::guest::Guest;
use crate::protocol::Kind;
use rds_sys::cpu::CpuTime;
use serde::Serialize;
use std::net::IpAddr;

/// The whole document.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Results {
    bench: Kind,
    local: IpAddr,
    peer: IpAddr,
    transport: String,
    /// Bytes of a message.
    size: usize,
    /// Messages of a sample.
    count: u64,
    /// Messages before the first sample.
    warmup: u64,
    /// Paths that were used, one socket on each.
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<usize>,
    /// The client's messages were not copied.
    zerocopy: bool,
    /// For `rr` the time of a round trip.
    ns_per_message: Spread,
    samples: Vec<Sample>,
}

/// One sample.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    /// Messages the client sent.
    pub(crate) messages: u64,
    /// Payload bytes the client sent.
    pub(crate) bytes: u64,
    /// From the first send to the last answer.
    pub(crate) elapsed_ns: u64,
    /// Processor time of the client.
    pub(crate) client: CpuTime,
    /// Processor time of the server.
    pub(crate) server: CpuTime,
    /// The client's whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) guest: Option<Guest>,
}

/// How samples differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Spread {
    min: u64,
    median: u64,
    max: u64,
}

impl Results {
    /// Puts the samples together; there is at least one.
    pub(crate) fn new(plan: &ClientPlan, transport: String, samples: Vec<Sample>) -> Self {
        let per_message = samples
            .iter()
            .map(|s| s.elapsed_ns / s.messages.max(1))
            .collect();
        Self {
            bench: plan.kind,
            local: plan.local.ip(),
            peer: plan.peer.ip(),
            transport,
            size: plan.size,
            count: plan.count,
            warmup: plan.warmup,
            paths: plan.paths,
            zerocopy: plan.zerocopy,
            ns_per_message: Spread::of(per_message),
            samples,
        }
    }
}

impl Spread {
    fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let at = |index: usize| values.get(index).copied().unwrap_or_default();
        Self {
            min: at(0),
            median: at(values.len() / 2),
            max: at(values.len().saturating_sub(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_samples() {
        assert_eq!(
            Spread::of(vec![5, 1, 9]),
            Spread {
                min: 1,
                median: 5,
                max: 9
            }
        );
        assert_eq!(
            Spread::of(vec![4]),
            Spread {
                min: 4,
                median: 4,
                max: 4
            }
        );
        assert_eq!(
            Spread::of(vec![]),
            Spread {
                min: 0,
                median: 0,
                max: 0
            }
        );
    }
}
