// SPDX-License-Identifier: GPL-2.0

//! One run, from the moment both sides are ready to the last line of output.

use crate::control::{Control, Heard};
use crate::crew::Crew;
use crate::options::Options;
use crate::report::{Output, Report, Role};
use crate::soak::Soakers;
use crate::stats::{Rates, Stats};
use crate::task::Task;
use anyhow::{bail, Context, Result};
use rds_sys::{priority, signal};
use std::time::{Duration, Instant};

/// Time for both sides to come up before the tasks begin.
const HEAD_START: Duration = Duration::from_secs(2);
/// Seconds before the measurement; the tasks run in the last two of them.
const WARM_UP: u64 = 4;
/// Time between two lines of output.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time without messages after which the other side, which answers, is taken for stuck.
const STUCK: Duration = Duration::from_secs(10);
/// Time without messages after which nothing is under way from a side that answers nothing any more.
const QUIET: Duration = Duration::from_secs(1);

/// What a run is made of.
pub(crate) struct Session {
    pub(crate) role: Role,
    pub(crate) options: Options,
    pub(crate) control: Control,
    pub(crate) soakers: Option<Soakers>,
    pub(crate) output: Output,
    /// Print how the round-trip times are distributed.
    pub(crate) histogram: bool,
}

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Time,
    /// The other side said it is done, or is gone.
    Peer(Heard),
    /// The user wants to stop.
    User,
}

/// What was measured so far.
struct Measurement {
    begin: Instant,
    last: Instant,
    /// All there was at the beginning and at the last interval's end.
    first: Stats,
    total: Stats,
    /// Sum of the figures of all intervals, and their number.
    busy: (f64, u32),
}

impl Session {
    /// Lets the tasks run, prints what they do, and ends them; early if [`signal::stop_requested`].
    pub(crate) fn run(mut self, tasks: Vec<Task>) -> Result<()> {
        let mut crew = Crew::start(tasks, Instant::now() + HEAD_START)?;
        let (role, options) = (self.role, &self.options);
        let mut report = Report::new(role, options, self.output, self.histogram);
        let mut measurement = Measurement::new();
        let mut ended = self.warm_up(&mut crew)?;
        if ended == Ended::Time {
            (ended, measurement) = self.measure(&mut crew, &mut report)?;
        }
        self.settle(&mut crew, ended)?;
        let total = crew.finish()?;
        let average = measurement.average(self.soakers.is_some());
        report.finish(measurement.time(), average, &total)?;
        if matches!(ended, Ended::Peer(_)) && role == Role::Active {
            bail!("the other side ended early");
        }
        Ok(())
    }

    /// Lets all that is under way arrive.
    fn settle(&mut self, crew: &mut Crew, ended: Ended) -> Result<()> {
        crew.stop_requests();
        let patience = match ended {
            Ended::Peer(Heard::Gone) => QUIET,
            _ => STUCK,
        };
        crew.settle(patience, |total| Ok(total.unanswered() == 0))?;
        if self.role == Role::Active {
            self.control.send_done()?;
            let moment = Duration::from_millis(1);
            crew.settle(STUCK, |_| Ok(self.control.wait(moment)? == Heard::Gone))?;
        }
        Ok(())
    }

    fn warm_up(&mut self, crew: &mut Crew) -> Result<Ended> {
        self.output.text("Starting up")?;
        let begin = Instant::now();
        for second in 1..=WARM_UP {
            let ended = self.wait(begin + Duration::from_secs(second), crew)?;
            if ended != Ended::Time {
                self.output.text("\n")?;
                return Ok(ended);
            }
            self.busy()?;
            self.output.text(".")?;
        }
        self.output.text("\n")?;
        if self.options.realtime {
            priority::realtime().context("cannot take precedence (-R)")?;
        }
        Ok(Ended::Time)
    }

    fn measure(&mut self, crew: &mut Crew, report: &mut Report) -> Result<(Ended, Measurement)> {
        report.begin()?;
        let mut measurement = Measurement::new();
        measurement.first = crew.total();
        measurement.total = measurement.first;
        let time = Duration::from_secs(self.options.run_time.into());
        let limited = self.role == Role::Active && !time.is_zero();
        let mut next = measurement.begin;
        loop {
            next += INTERVAL;
            let ended = self.wait(next, crew)?;
            if ended != Ended::Time {
                // Even a run of less than a second has an average.
                if measurement.busy.1 == 0 {
                    measurement.interval(crew.total(), self.busy()?);
                }
                return Ok((ended, measurement));
            }
            let (stats, rates) = measurement.interval(crew.total(), self.busy()?);
            report.sample(&stats, rates)?;
            if limited && measurement.begin.elapsed() >= time {
                return Ok((Ended::Time, measurement));
            }
        }
    }

    /// Waits until `until`, unless a task fails.
    fn wait(&self, until: Instant, crew: &mut Crew) -> Result<Ended> {
        loop {
            crew.check()?;
            let now = Instant::now();
            if signal::stop_requested() {
                return Ok(Ended::User);
            }
            if now >= until {
                return Ok(Ended::Time);
            }
            match self.control.wait(until - now)? {
                Heard::Nothing => {}
                heard => return Ok(Ended::Peer(heard)),
            }
        }
    }

    fn busy(&mut self) -> Result<Option<f64>> {
        self.soakers.as_mut().map(Soakers::busy).transpose()
    }
}

impl Measurement {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            begin: now,
            last: now,
            first: Stats::default(),
            total: Stats::default(),
            busy: (0.0, 0),
        }
    }

    /// What happened in the interval that ends now.
    fn interval(&mut self, total: Stats, busy: Option<f64>) -> (Stats, Rates) {
        let now = Instant::now();
        let stats = total - self.total;
        let rates = Rates::new(&stats, now - self.last, busy);
        (self.last, self.total) = (now, total);
        self.busy.0 += busy.unwrap_or_default();
        self.busy.1 += 1;
        (stats, rates)
    }

    /// The rates of all intervals together.
    fn average(&self, has_busy: bool) -> Rates {
        let busy = has_busy.then(|| self.busy.0 / f64::from(self.busy.1.max(1)));
        Rates::new(&(self.total - self.first), self.time(), busy)
    }

    /// Time from the beginning to the last interval's end.
    fn time(&self) -> Duration {
        self.last - self.begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(count: u64) -> Stats {
        let mut stats = Stats::default();
        for _ in 0..count {
            stats.req_tx.add(1024);
        }
        stats
    }

    #[test]
    fn the_average_is_that_of_all_intervals() {
        let mut measurement = Measurement::new();
        (measurement.first, measurement.total) = (sent(5), sent(5));
        let (stats, _) = measurement.interval(sent(15), Some(10.0));
        assert_eq!(stats, sent(10));
        let (stats, rates) = measurement.interval(sent(45), Some(30.0));
        assert_eq!(stats, sent(30));
        assert_eq!(rates.cpu_percent, Some(30.0));
        measurement.begin = measurement.last - Duration::from_secs(2);
        let average = measurement.average(true);
        assert_eq!(average.tx_per_second, 20.0);
        assert_eq!(average.cpu_percent, Some(20.0));
        assert_eq!(measurement.average(false).cpu_percent, None);
    }

    #[test]
    fn no_interval_at_all() {
        let average = Measurement::new().average(true);
        assert_eq!(
            (average.tx_per_second, average.cpu_percent),
            (0.0, Some(0.0))
        );
    }
}
