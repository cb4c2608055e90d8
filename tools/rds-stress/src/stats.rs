// SPDX-License-Identifier: GPL-2.0

//! What is counted.

use serde::Serialize;
use std::ops::{AddAssign, Sub};
use std::time::Duration;

/// Ranges of round-trip times that are counted apart; each is twice as long as the one before.
pub(crate) const BUCKETS: usize = 16;

/// How often, and how much together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) count: u64,
    pub(crate) sum: u64,
}

impl Counter {
    pub(crate) fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
    }

    /// The average value; 0 if there is none.
    pub(crate) fn average(self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            // CAST: the numbers are for people.
            self.sum as f64 / self.count as f64
        }
    }
}

impl AddAssign for Counter {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
    }
}

impl Sub for Counter {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            count: self.count.saturating_sub(earlier.count),
            sum: self.sum.saturating_sub(earlier.sum),
        }
    }
}

/// What one task did, or all of them, since it began or in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Bytes of requests sent.
    pub(crate) req_tx: Counter,
    /// Bytes of requests received.
    pub(crate) req_rx: Counter,
    /// Bytes of answers sent.
    pub(crate) ack_tx: Counter,
    /// Bytes of answers received.
    pub(crate) ack_rx: Counter,
    /// Microseconds in calls that sent a request.
    pub(crate) send_usec: Counter,
    /// Microseconds from sending a request to having its answer.
    pub(crate) rtt_usec: Counter,
    /// Round-trip times from 2^n microseconds on; the last one has all that are longer.
    pub(crate) rtt_buckets: [u64; BUCKETS],
    /// How often congestion ended without notice.
    pub(crate) missed: u64,
}

impl Stats {
    /// Takes a round-trip time in.
    pub(crate) fn add_rtt(&mut self, usec: u64) {
        self.rtt_usec.add(usec);
        self.rtt_buckets[bucket(usec)] += 1;
    }

    /// Requests that were sent and are not answered yet.
    pub(crate) fn unanswered(&self) -> u64 {
        self.req_tx.count.saturating_sub(self.ack_rx.count)
    }

    /// Bytes in both directions.
    pub(crate) fn bytes(&self) -> u64 {
        [self.req_tx, self.req_rx, self.ack_tx, self.ack_rx]
            .iter()
            .map(|counter| counter.sum)
            .sum()
    }
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.req_tx += other.req_tx;
        self.req_rx += other.req_rx;
        self.ack_tx += other.ack_tx;
        self.ack_rx += other.ack_rx;
        self.send_usec += other.send_usec;
        self.rtt_usec += other.rtt_usec;
        for (own, other) in self.rtt_buckets.iter_mut().zip(other.rtt_buckets) {
            *own += other;
        }
        self.missed += other.missed;
    }
}

impl Sub for Stats {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        let mut rtt_buckets = self.rtt_buckets;
        for (own, earlier) in rtt_buckets.iter_mut().zip(earlier.rtt_buckets) {
            *own = own.saturating_sub(earlier);
        }
        Self {
            req_tx: self.req_tx - earlier.req_tx,
            req_rx: self.req_rx - earlier.req_rx,
            ack_tx: self.ack_tx - earlier.ack_tx,
            ack_rx: self.ack_rx - earlier.ack_rx,
            send_usec: self.send_usec - earlier.send_usec,
            rtt_usec: self.rtt_usec - earlier.rtt_usec,
            rtt_buckets,
            missed: self.missed.saturating_sub(earlier.missed),
        }
    }
}

fn bucket(usec: u64) -> usize {
    let log = usec.checked_ilog2().unwrap_or_default();
    // CAST: to a wider type on every Linux.
    (log as usize).min(BUCKETS - 1)
}

/// One line of the output: what happened in an interval, per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Rates {
    /// Requests sent.
    pub(crate) tx_per_second: f64,
    /// Requests received.
    pub(crate) rx_per_second: f64,
    /// KiB of all messages in both directions.
    pub(crate) kib_per_second: f64,
    /// Average time of a call that sends a request.
    pub(crate) send_usec: f64,
    /// Average time until a request is answered.
    pub(crate) rtt_usec: f64,
    /// How busy the processors were; `None` if it was not measured.
    pub(crate) cpu_percent: Option<f64>,
}

impl Rates {
    pub(crate) fn new(stats: &Stats, elapsed: Duration, cpu_percent: Option<f64>) -> Self {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        // CAST: the numbers are for people.
        let per_second = |number: u64| number as f64 / seconds;
        Self {
            tx_per_second: per_second(stats.req_tx.count),
            rx_per_second: per_second(stats.req_rx.count),
            kib_per_second: per_second(stats.bytes()) / 1024.0,
            send_usec: stats.send_usec.average(),
            rtt_usec: stats.rtt_usec.average(),
            cpu_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Stats {
        let mut stats = Stats::default();
        for _ in 0..10 {
            stats.req_tx.add(1024);
            stats.ack_rx.add(63);
            stats.send_usec.add(20);
        }
        stats.req_rx.add(1024);
        stats.ack_tx.add(63);
        stats.add_rtt(100);
        stats.add_rtt(300);
        stats.missed = 1;
        stats
    }

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        let earlier = stats();
        let mut later = earlier;
        later += stats();
        assert_eq!(later - earlier, stats());
        assert_eq!(later.bytes(), 2 * (10 * 1024 + 10 * 63 + 1024 + 63));
        assert_eq!((later.missed, later.unanswered()), (2, 0));
        later.req_tx.add(1024);
        assert_eq!(later.unanswered(), 1);
        assert_eq!(stats() - stats(), Stats::default());
    }

    #[test]
    fn rates_are_for_a_second() {
        let rates = Rates::new(&stats(), Duration::from_secs(2), None);
        assert_eq!((rates.tx_per_second, rates.rx_per_second), (5.0, 0.5));
        assert_eq!(rates.kib_per_second, f64::from(11 * (1024 + 63)) / 2048.0);
        assert_eq!((rates.send_usec, rates.rtt_usec), (20.0, 200.0));
    }

    #[test]
    fn nothing_happened() {
        let rates = Rates::new(&Stats::default(), Duration::ZERO, Some(0.0));
        assert_eq!((rates.tx_per_second, rates.rtt_usec), (0.0, 0.0));
    }

    #[test]
    fn round_trip_times_by_their_order_of_magnitude() {
        for (usec, expected) in [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 1),
            (4, 2),
            (1023, 9),
            (1024, 10),
        ] {
            assert_eq!(bucket(usec), expected, "{usec}");
        }
        assert_eq!(bucket(1 << 15), 15);
        assert_eq!(bucket(u64::MAX), 15);
        assert_eq!(stats().rtt_buckets[6], 1);
        assert_eq!(stats().rtt_buckets[8], 1);
    }
}
