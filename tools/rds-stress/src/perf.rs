// SPDX-License-Identifier: GPL-2.0

//! `--show-perfdata`: a line of comma-separated values for programs, in which the kernel's counters are.

use crate::options::Options;
use crate::stats::Rates;
use anyhow::{Context, Result};
use rds_sys::info::{self, Counter, Family, Table};
use rds_sys::Socket;
use std::fmt::Write;
use std::fs;
use std::time::Instant;

/// Where the kernel tells how it spent its time.
const STAT: &str = "/proc/stat";
/// Begins each line, so that it can be found among the others.
const MARK: &str = "::";
/// Names of what is not counted by the kernel.
const NAMES: &str = "nr_tasks:count,req_size:bytes,ack_size:bytes,rdma_size:bytes,req_sent:count,\
    thruput:kB/s,thruput_rdma:kB/s,tx_delay:microseconds,rtt:microseconds,cpu:percent";
/// Names of what comes from `/proc/stat`.
const STAT_NAMES: &str = "user:percent,system:percent,idle:percent,irq:percent,intr:count";

/// The counters of the kernel, and what they were before.
pub(crate) struct PerfData {
    socket: Socket,
    last: Reading,
}

struct Reading {
    at: Instant,
    counters: Vec<Counter>,
    stat: Stat,
}

/// What `/proc/stat` says: time in its units, and interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stat {
    /// In programs.
    user: u64,
    system: u64,
    /// Nothing to do, or waiting for a disk.
    idle: u64,
    /// In interrupts and what follows them.
    irq: u64,
    /// All of it, and what other machines had.
    all: u64,
    interrupts: u64,
}

impl PerfData {
    pub(crate) fn new() -> Result<Self> {
        let socket = rds_cli::open_socket()?;
        let last = Reading::take(&socket)?;
        Ok(Self { socket, last })
    }

    /// The line with the names of the values.
    pub(crate) fn names(&self) -> String {
        let mut line = format!("{MARK}{NAMES}");
        for Counter { name, .. } in &self.last.counters {
            let unit = if name.contains("_bytes") {
                "bytes"
            } else {
                "count"
            };
            // Writing to a string can not fail.
            let _ = write!(line, ",{name}:{unit}");
        }
        line + "," + STAT_NAMES
    }

    /// The line for the time since the last one.
    pub(crate) fn line(&mut self, options: &Options, sent: u64, rates: &Rates) -> Result<String> {
        let now = Reading::take(&self.socket)?;
        let line = rates_text(options, sent, rates) + &now.since(&self.last);
        self.last = now;
        Ok(line)
    }
}

fn rates_text(options: &Options, sent: u64, rates: &Rates) -> String {
    format!(
        "{MARK}{},{},{},{},{sent},{:.6},{:.6},{:.6},{:.6},{:.6}",
        options.tasks,
        options.req_size,
        options.ack_size,
        options.rdma.size,
        rates.kib_per_second,
        0.0,
        rates.send_usec,
        rates.rtt_usec,
        rates.cpu_percent.unwrap_or_default(),
    )
}

impl Reading {
    fn take(socket: &Socket) -> Result<Self> {
        let counters = info::read(socket, Table::Counters, Family::V4)
            .context("cannot read the kernel's counters")?;
        let text = fs::read_to_string(STAT).with_context(|| format!("cannot read {STAT}"))?;
        let stat =
            Stat::parse(&text).with_context(|| format!("{STAT} has no line for all cpus"))?;
        Ok(Self {
            at: Instant::now(),
            counters,
            stat,
        })
    }

    /// The values for the time since an earlier reading, each after a comma.
    fn since(&self, earlier: &Self) -> String {
        let seconds = self.at.duration_since(earlier.at).as_secs_f64().max(1e-9);
        let mut text = String::new();
        for (now, before) in self.counters.iter().zip(&earlier.counters) {
            // CAST: the numbers are for people.
            let rate = now.value.saturating_sub(before.value) as f64 / seconds;
            // Writing to a string can not fail.
            let _ = write!(text, ",{rate:.6}");
        }
        text + &self.stat.since(earlier.stat)
    }
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let times: Vec<u64> = numbers(field("cpu ")?).collect();
        let time = |place: usize| times.get(place).copied().unwrap_or_default();
        Some(Self {
            user: time(0) + time(1),
            system: time(2),
            idle: time(3) + time(4),
            irq: time(5) + time(6),
            all: times.iter().take(8).sum(),
            interrupts: field("intr ").and_then(|rest| numbers(rest).next())?,
        })
    }

    fn since(self, earlier: Self) -> String {
        let all = self.all.saturating_sub(earlier.all).max(1);
        // CAST: the numbers are for people.
        let percent =
            |now: u64, before: u64| now.saturating_sub(before) as f64 * 100.0 / all as f64;
        format!(
            ",{:.6},{:.6},{:.6},{:.6},{}",
            percent(self.user, earlier.user),
            percent(self.system, earlier.system),
            percent(self.idle, earlier.idle),
            percent(self.irq, earlier.irq),
            self.interrupts.saturating_sub(earlier.interrupts)
        )
    }
}

fn numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split_whitespace().map_while(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::options;

    const TEXT: &str = "cpu  10 5 20 100 5 3 7 0 9 0\ncpu0 1 1 1 1 1 1 1\nintr 77 1 2 3\nctxt 9\n";

    fn reading(at: Instant, value: u64, stat: Stat) -> Reading {
        let counter = |name: &str| Counter {
            name: name.to_owned(),
            value,
        };
        Reading {
            at,
            counters: vec![counter("conn_reset"), counter("recv_rdma_bytes")],
            stat,
        }
    }

    #[test]
    fn times_of_all_processors() {
        let stat = Stat::parse(TEXT).unwrap();
        assert_eq!(
            (stat.user, stat.system, stat.idle, stat.irq),
            (15, 20, 105, 10)
        );
        assert_eq!((stat.all, stat.interrupts), (150, 77));
        assert_eq!(Stat::parse("cpu0 1 2 3\nintr 5\n"), None);
        assert_eq!(
            Stat::default().since(stat),
            ",0.000000,0.000000,0.000000,0.000000,0"
        );
        assert!(stat
            .since(Stat::default())
            .starts_with(",10.000000,13.333333,70.0"));
    }

    #[test]
    fn as_many_values_as_names() {
        let begin = Instant::now();
        let earlier = reading(begin, 10, Stat::default());
        let stat = Stat::parse(TEXT).unwrap();
        let later = reading(begin + std::time::Duration::from_secs(2), 30, stat);
        let values = later.since(&earlier);
        assert!(values.starts_with(",10.000000,10.000000,10.0"), "{values}");
        let rates = Rates::new(
            &crate::stats::Stats::default(),
            std::time::Duration::ZERO,
            None,
        );
        let line = rates_text(&options(), 5, &rates) + &values;
        assert!(line.starts_with("::1,1024,63,0,5,0.0"), "{line}");
        let names = format!("{NAMES},conn_reset:count,recv_rdma_bytes:bytes,{STAT_NAMES}");
        assert_eq!(line.split(',').count(), names.split(',').count());
    }
}
