// SPDX-License-Identifier: GPL-2.0

//! How busy the whole machine was.
//!
//! What its processors did not sleep is the time everything took: programs, kernel, interrupts. In a
//! virtual machine that counts instructions instead of time it is their number. Two files tell:
//!
//! * `/proc/timer_list`, to the nanosecond, but only to root and only up to Linux 7.2;
//! * `/proc/stat`, to a hundredth of a second, so that samples must be long enough.

use serde::Serialize;
use std::fs;
use std::time::Instant;

/// Nanoseconds of a unit of `/proc/stat` on all architectures that matter.
const STAT_UNIT: u64 = 10_000_000;

/// Where the numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    TimerList,
    Stat,
}

/// What was known at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    source: Source,
    now_ns: u64,
    idle_ns: u64,
    cpus: u64,
}

/// What happened between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Guest {
    /// Where the numbers come from.
    pub(crate) source: Source,
    /// Processors.
    pub(crate) cpus: u64,
    /// Time between the two readings.
    pub(crate) window_ns: u64,
    /// Time the processors slept, added up.
    pub(crate) idle_ns: u64,
    /// Time they did not.
    pub(crate) busy_ns: u64,
}

/// Reads the best source there is; `base` is the beginning of time.
pub(crate) fn read(base: Instant) -> Option<Reading> {
    let list = fs::read_to_string("/proc/timer_list").ok();
    list.and_then(|text| parse_timer_list(&text)).or_else(|| {
        let text = fs::read_to_string("/proc/stat").ok()?;
        parse_stat(&text, u64::try_from(base.elapsed().as_nanos()).ok()?)
    })
}

fn parse_timer_list(text: &str) -> Option<Reading> {
    let (mut now_ns, mut idle_ns, mut cpus) = (0, 0, 0);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("now at ") {
            now_ns = number(rest, 0)?;
            continue;
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        match name.trim().trim_start_matches('.') {
            "idle_sleeptime" => {
                idle_ns += number(value, 0)?;
                cpus += 1;
            }
            "iowait_sleeptime" => idle_ns += number(value, 0)?,
            _ => {}
        }
    }
    let source = Source::TimerList;
    (cpus > 0 && now_ns > 0).then_some(Reading {
        source,
        now_ns,
        idle_ns,
        cpus,
    })
}

fn parse_stat(text: &str, now_ns: u64) -> Option<Reading> {
    let (mut idle_ns, mut cpus) = (0, 0);
    for line in text
        .lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
    {
        // The fields after the name: user, nice, system, idle, waiting for input or output.
        idle_ns += (number(line, 4)? + number(line, 5)?) * STAT_UNIT;
        cpus += 1;
    }
    (cpus > 0).then_some(Reading {
        source: Source::Stat,
        now_ns,
        idle_ns,
        cpus,
    })
}

fn number(text: &str, field: usize) -> Option<u64> {
    text.split_whitespace().nth(field)?.parse().ok()
}

impl Reading {
    /// What happened since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Guest {
        let window_ns = self.now_ns.saturating_sub(earlier.now_ns);
        let idle_ns = self.idle_ns.saturating_sub(earlier.idle_ns);
        let busy_ns = (window_ns * self.cpus).saturating_sub(idle_ns);
        Guest {
            source: self.source,
            cpus: self.cpus,
            window_ns,
            idle_ns,
            busy_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Timer List Version: v0.10\nHRTIMER_MAX_CLOCK_BASES: 8\n\
        now at 5000 nsecs\n\ncpu: 0\n  .nohz           : 1\n  .idle_sleeptime : 1200 nsecs\n\
        \x20 .iowait_sleeptime: 34 nsecs\ncpu: 1\n  .idle_sleeptime : 100 nsecs\n\
        \x20 .iowait_sleeptime: 0 nsecs\n";

    fn reading(now_ns: u64, idle_ns: u64) -> Reading {
        Reading {
            source: Source::TimerList,
            now_ns,
            idle_ns,
            cpus: 2,
        }
    }

    #[test]
    fn reads_all_processors() {
        assert_eq!(parse_timer_list(TEXT), Some(reading(5000, 1334)));
    }

    #[test]
    fn newer_kernels_tell_it_elsewhere() {
        assert_eq!(parse_timer_list("now at 5000 nsecs\ncpu: 0\n"), None);
        let text = "cpu  9 9 9 9 9\ncpu0 1 0 5 7 1 0\ncpu1 1 0 5 2 0 0\nintr 5\n";
        let reading = parse_stat(text, 3).unwrap();
        assert_eq!(
            (reading.cpus, reading.now_ns, reading.idle_ns),
            (2, 3, 100_000_000)
        );
        assert_eq!(parse_stat("intr 5\n", 3), None);
    }

    #[test]
    fn what_is_not_idle_is_busy() {
        let guest = reading(2000, 600).since(reading(1000, 100));
        assert_eq!(
            (guest.window_ns, guest.idle_ns, guest.busy_ns),
            (1000, 500, 1500)
        );
    }
}
