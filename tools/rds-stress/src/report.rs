// SPDX-License-Identifier: GPL-2.0

//! What the user sees.

use crate::options::Options;
use crate::perf::PerfData;
use crate::stats::{Rates, Stats, BUCKETS};
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

/// Names of the columns, with the widths of `row`.
const COLUMNS: &str =
    "tsks   tx/s   rx/s  tx+rx K/s    mbi K/s    mbo K/s tx us/c   rtt us cpu %\n";

/// Which side of a run this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Active,
    Passive,
}

/// Text for people; silent if there is going to be a document for programs instead.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) quiet: bool,
}

impl Output {
    /// Prints a piece of text at once.
    pub(crate) fn text(self, text: &str) -> Result<()> {
        if !self.quiet {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }
}

/// The lines and the result of one run.
pub(crate) struct Report {
    output: Output,
    /// Whether to print how the round-trip times are distributed.
    histogram: bool,
    perf: Option<PerfData>,
    options: Options,
    document: Document,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document {
    role: Role,
    local: IpAddr,
    peer: IpAddr,
    port: u16,
    tasks: u16,
    depth: u32,
    request_bytes: u32,
    ack_bytes: u32,
    tos: u8,
    one_way: bool,
    verify: bool,
    /// One for each second.
    samples: Vec<Rates>,
    /// From the first sample's beginning to the last one's end.
    measured_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    average: Option<Rates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<Totals>,
}

/// All messages from the first to the last, those before and after the measurement included.
#[derive(Serialize)]
struct Totals {
    requests_sent: u64,
    requests_received: u64,
    acks_sent: u64,
    acks_received: u64,
    /// How often congestion ended without notice.
    missed_congestion_ends: u64,
    /// Answers by their time, from 2^n microseconds on.
    rtt_histogram: [u64; BUCKETS],
}

impl Report {
    pub(crate) fn new(role: Role, options: &Options, output: Output, histogram: bool) -> Self {
        let document = Document {
            role,
            local: options.receive_addr,
            peer: options.send_addr,
            port: options.port,
            tasks: options.tasks,
            depth: options.depth,
            request_bytes: options.req_size,
            ack_bytes: options.ack_size,
            tos: options.tos,
            one_way: options.one_way,
            verify: options.verify,
            samples: Vec::new(),
            measured_seconds: 0.0,
            average: None,
            totals: None,
        };
        Self {
            output,
            histogram,
            perf: None,
            options: options.clone(),
            document,
        }
    }

    /// Begins the table.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.options.show_perfdata {
            let perf = PerfData::new()?;
            self.output.text(&(perf.names() + "\n"))?;
            self.perf = Some(perf);
            Ok(())
        } else {
            self.output.text(COLUMNS)
        }
    }

    /// Prints the line for an interval in which `stats` happened.
    pub(crate) fn sample(&mut self, stats: &Stats, rates: Rates) -> Result<()> {
        self.document.samples.push(rates);
        if self.options.summary_only {
            return Ok(());
        }
        let line = match &mut self.perf {
            Some(perf) => perf.line(&self.options, stats.req_tx.count, &rates)?,
            None => row(self.options.tasks, &rates),
        };
        self.output.text(&(line + "\n"))
    }

    /// Prints the end: the average of the measurement and, for programs, all there was.
    pub(crate) fn finish(mut self, time: Duration, average: Rates, total: &Stats) -> Result<()> {
        if self.output.quiet {
            self.document.measured_seconds = time.as_secs_f64();
            self.document.average = Some(average);
            self.document.totals = Some(Totals::new(total));
            return rds_cli::print_json(&self.document);
        }
        let mut text = String::new();
        if !self.options.summary_only {
            text += "---------------------------------------------\n";
        }
        text += &format!("{}  (average)\n", row(self.options.tasks, &average));
        if self.histogram {
            text += &histogram(&total.rtt_buckets);
        }
        self.output.text(&text)
    }
}

impl Totals {
    fn new(total: &Stats) -> Self {
        Self {
            requests_sent: total.req_tx.count,
            requests_received: total.req_rx.count,
            acks_sent: total.ack_tx.count,
            acks_received: total.ack_rx.count,
            missed_congestion_ends: total.missed,
            rtt_histogram: total.rtt_buckets,
        }
    }
}

/// A line of the table. What RDMA operations move is always nothing.
fn row(tasks: u16, rates: &Rates) -> String {
    format!(
        "{tasks:4} {:6} {:6} {:10.2} {:10.2} {:10.2} {:7.2} {:8.2} {:5.2}",
        rates.tx_per_second.trunc(),
        rates.rx_per_second.trunc(),
        rates.kib_per_second,
        0.0,
        0.0,
        rates.send_usec,
        rates.rtt_usec,
        rates.cpu_percent.unwrap_or(-1.0),
    )
}

fn histogram(buckets: &[u64; BUCKETS]) -> String {
    let mut text = "\nRTT histogram\nRTT (us)        \t\t    Count\n".to_owned();
    for (order, count) in buckets.iter().enumerate() {
        let (from, to) = (1_u32 << order, 1_u32 << (order + 1));
        // Writing to a string can not fail.
        let _ = writeln!(text, "[{from:6} - {to:6}] \t\t {count:8}");
    }
    text
}

/// What `--show-params` prints.
pub(crate) fn params(options: &Options) -> String {
    let rdma = &options.rdma;
    let mut chosen = String::new();
    for (on, name) in [
        (rdma.use_once, " use_once"),
        (rdma.use_get_mr, " use_get_mr"),
        (rdma.use_fence, " use_fence"),
        (rdma.cache_mrs, " cache_mrs"),
    ] {
        chosen += if on { name } else { "" };
    }
    if rdma.alignment != 0 {
        chosen += &format!(" align={}", rdma.alignment);
    }
    if chosen.is_empty() {
        chosen += " (defaults)";
    }
    format!(
        "Options:\n  {:<10} {:<7}\n  {:<10} {:<7}\n  {:<10} {:<7}\n  {:<10} {:<7}\n  {:<10}{chosen}\n\n",
        "Tasks",
        options.tasks,
        "Req size",
        options.req_size,
        "ACK size",
        options.ack_size,
        "RDMA size",
        rdma.size,
        "RDMA opts",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::options;

    const RATES: Rates = Rates {
        tx_per_second: 12400.7,
        rx_per_second: 10500.2,
        kib_per_second: 24310.126,
        send_usec: 11.5,
        rtt_usec: 450.25,
        cpu_percent: None,
    };

    #[test]
    fn lines_are_those_of_rds_tools() {
        let line = row(1, &RATES);
        assert_eq!(
            line,
            "   1  12400  10500   24310.13       0.00       0.00   11.50   450.25 -1.00"
        );
        assert_eq!(line.len(), COLUMNS.trim_end().len());
        let busy = Rates {
            cpu_percent: Some(99.5),
            ..RATES
        };
        assert!(row(16, &busy).starts_with("  16  12400"));
        assert!(row(16, &busy).ends_with(" 99.50"));
    }

    #[test]
    fn histogram_has_a_line_for_each_range() {
        let mut buckets = [0; BUCKETS];
        buckets[8] = 12;
        let text = histogram(&buckets);
        assert_eq!(text.lines().count(), 3 + BUCKETS);
        assert!(text.contains("[   256 -    512] \t\t       12\n"), "{text}");
        assert!(text.ends_with("[ 32768 -  65536] \t\t        0\n"));
    }

    #[test]
    fn params_are_those_of_rds_tools() {
        assert_eq!(
            params(&options()),
            "Options:\n  Tasks      1      \n  Req size   1024   \n  ACK size   63     \n\
             \x20 RDMA size  0      \n  RDMA opts  use_fence\n\n"
        );
    }

    #[test]
    fn document_has_the_totals() {
        let output = Output { quiet: true };
        let mut report = Report::new(Role::Passive, &options(), output, false);
        report.sample(&Stats::default(), RATES).unwrap();
        let mut total = Stats::default();
        total.req_rx.add(1024);
        report.document.totals = Some(Totals::new(&total));
        let json = serde_json::to_value(&report.document).unwrap();
        assert_eq!(json["role"], "passive");
        assert_eq!(json["totals"]["requests_received"], 1);
        assert_eq!(json["samples"][0]["rtt_usec"], 450.25);
    }
}
