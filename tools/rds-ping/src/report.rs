// SPDX-License-Identifier: GPL-2.0

//! What the user sees.

use crate::args::Plan;
use crate::slot::Reply;
use anyhow::Result;
use serde::Serialize;
use std::io::{self, Write};
use std::net::IpAddr;

/// The lines and the statistics of one run.
pub(crate) struct Report {
    quiet: bool,
    warned: bool,
    summary: Summary,
}

/// What `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    source: IpAddr,
    destination: IpAddr,
    sent: u64,
    received: u64,
    duplicates: u64,
    errors: u64,
    /// Pings that were not answered in time; some may have been answered later.
    timeouts: u64,
    /// Sum of the round-trip times.
    #[serde(skip)]
    total_usec: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_usec: Option<Rtt>,
    /// Round-trip times in the order of arrival.
    replies: Vec<ReplyEntry>,
}

#[derive(Clone, Debug, Serialize)]
struct ReplyEntry {
    sequence: u64,
    usec: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Rtt {
    min: u64,
    avg: u64,
    max: u64,
}

impl Report {
    pub(crate) fn new(plan: &Plan) -> Self {
        let summary = Summary {
            source: plan.source.ip(),
            destination: plan.destination.ip(),
            sent: 0,
            received: 0,
            duplicates: 0,
            errors: 0,
            timeouts: 0,
            total_usec: 0,
            rtt_usec: None,
            replies: Vec::new(),
        };
        Self {
            quiet: plan.quiet,
            warned: false,
            summary,
        }
    }

    pub(crate) fn received(&self) -> u64 {
        self.summary.received
    }

    pub(crate) fn count_sent(&mut self) {
        self.summary.sent += 1;
    }

    pub(crate) fn reply(&mut self, reply: &Reply) -> Result<()> {
        let usec = u64::try_from(reply.time.as_micros()).unwrap_or(u64::MAX);
        if reply.duplicate {
            self.summary.duplicates += 1;
        } else {
            self.summary.received += 1;
            self.summary.add(usec);
            if self.quiet {
                self.summary.replies.push(ReplyEntry {
                    sequence: reply.sequence,
                    usec,
                });
            }
        }
        self.line(&reply_line(reply, usec, self.summary.destination))
    }

    pub(crate) fn timeout(&mut self, sequence: u64) -> Result<()> {
        self.summary.timeouts += 1;
        self.line(&format!(" {sequence:3}: timeout"))
    }

    pub(crate) fn error(&mut self, sequence: u64, error: &io::Error) -> Result<()> {
        self.summary.errors += 1;
        self.line(&format!(
            " {sequence:3}: ERROR: {}",
            rds_cli::error_text(error)
        ))?;
        if error.kind() == io::ErrorKind::InvalidInput && !self.warned {
            self.warned = true;
            self.line("      The kernel does not take this destination for a ping")?;
        }
        Ok(())
    }

    /// The totals, as they are printed with `--json`.
    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The totals for people.
    pub(crate) fn print_summary(&self) -> Result<()> {
        io::stdout()
            .lock()
            .write_all(self.summary.text().as_bytes())?;
        Ok(())
    }

    fn line(&self, text: &str) -> Result<()> {
        if !self.quiet {
            let mut out = io::stdout().lock();
            writeln!(out, "{text}")?;
            out.flush()?;
        }
        Ok(())
    }
}

impl Summary {
    /// Takes a round-trip time into the statistics; `received` counts it already.
    fn add(&mut self, usec: u64) {
        self.total_usec = self.total_usec.saturating_add(usec);
        let (min, max) = self.rtt_usec.map_or((usec, usec), |rtt| (rtt.min, rtt.max));
        let avg = self.total_usec / self.received.max(1);
        self.rtt_usec = Some(Rtt {
            min: min.min(usec),
            avg,
            max: max.max(usec),
        });
    }

    fn text(&self) -> String {
        let lost = self.sent.saturating_sub(self.received);
        let percent = (lost * 100).checked_div(self.sent).unwrap_or_default();
        let mut text = format!(
            "\n--- {} rds-ping statistics ---\n{} sent, {} received, {percent}% loss\n",
            self.destination, self.sent, self.received
        );
        if let Some(Rtt { min, avg, max }) = self.rtt_usec {
            text += &format!("rtt min/avg/max {min}/{avg}/{max} usec\n");
        }
        text
    }
}

fn reply_line(reply: &Reply, usec: u64, destination: IpAddr) -> String {
    let mut line = format!(" {:3}: {usec} usec", reply.sequence);
    if reply.from != destination {
        line += &format!(" ({})", reply.from);
    }
    if reply.duplicate {
        line += " DUP!";
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn report() -> Report {
        let ip: IpAddr = "10.0.0.2".parse().unwrap();
        Report::new(&Plan {
            source: (ip, 0).into(),
            destination: (ip, 0).into(),
            count: None,
            interval: Duration::ZERO,
            timeout: Duration::ZERO,
            sockets: 1,
            tos: 0,
            quiet: true,
        })
    }

    fn reply(usec: u64, duplicate: bool) -> Reply {
        let from = "10.0.0.2".parse().unwrap();
        Reply {
            sequence: 1,
            time: Duration::from_micros(usec),
            from,
            duplicate,
        }
    }

    #[test]
    fn lines_are_those_of_rds_tools() {
        let here = "10.0.0.2".parse().unwrap();
        let other = "10.0.0.3".parse().unwrap();
        assert_eq!(reply_line(&reply(120, false), 120, here), "   1: 120 usec");
        assert_eq!(
            reply_line(&reply(9, true), 9, other),
            "   1: 9 usec (10.0.0.2) DUP!"
        );
    }

    #[test]
    fn summary_counts() {
        let mut report = report();
        for usec in [100, 300, 200] {
            report.count_sent();
            report.reply(&reply(usec, false)).unwrap();
        }
        report.reply(&reply(1, true)).unwrap();
        report.count_sent();
        report.timeout(4).unwrap();
        let text = report.summary.text();
        assert!(text.contains("4 sent, 3 received, 25% loss"), "{text}");
        assert!(text.contains("100/200/300 usec"), "{text}");
        assert_eq!((report.summary.duplicates, report.summary.timeouts), (1, 1));
        assert_eq!(report.summary.replies.len(), 3);
    }

    #[test]
    fn nothing_sent_is_no_loss() {
        assert!(report()
            .summary
            .text()
            .contains("0 sent, 0 received, 0% loss"));
    }
}
