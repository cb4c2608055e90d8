// SPDX-License-Identifier: GPL-2.0

//! How it went.

use crate::rtt::RttSummary;
use crate::sizes::Sizes;
use crate::tx::Retries;
use anyhow::Result;
use rds_sys::cpu::CpuTime;
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::net::SocketAddr;

/// What one endpoint did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Everything was received as it was sent, and the other side says the same.
    pub(crate) ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) transport: String,
    pub(crate) sockets: u16,
    pub(crate) sizes: Sizes,
    pub(crate) sent: Sent,
    pub(crate) received: Received,
    /// From the first word of the other side to the end.
    pub(crate) elapsed_ns: u64,
    /// Of the whole process.
    pub(crate) cpu: CpuTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rtt_usec: Option<RttSummary>,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Sent {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// The other side has received all of it.
    pub(crate) confirmed: bool,
    pub(crate) retries: Retries,
}

/// The other direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Received {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// It is all the other side has sent.
    pub(crate) complete: bool,
    /// Messages an earlier run of the other side left behind.
    pub(crate) stale: u64,
}

impl Report {
    /// Whether all went well.
    pub(crate) fn ok(&self) -> bool {
        self.ok
    }

    /// Prints it for people; what went wrong goes to standard error.
    pub(crate) fn print(&self) -> Result<()> {
        io::stdout().lock().write_all(self.text()?.as_bytes())?;
        if let Some(error) = &self.error {
            eprintln!("rds-traffic: {error}");
        }
        Ok(())
    }

    fn text(&self) -> Result<String> {
        let mut text = String::new();
        let (local, peer, transport) = (self.local, self.peer, &self.transport);
        let (streams, max) = (self.sockets, self.sizes.max());
        writeln!(text, "{local} with {peer} over {transport}")?;
        writeln!(
            text,
            "  streams   {streams}, messages of at most {max} bytes"
        )?;
        self.sent.write(&mut text)?;
        self.received.write(&mut text)?;
        self.write_notes(&mut text)?;
        if let Some(rtt) = self.rtt_usec {
            rtt.write(&mut text)?;
        }
        let millis = self.elapsed_ns / 1_000_000;
        writeln!(text, "  time      {}.{:03} s", millis / 1000, millis % 1000)?;
        Ok(text)
    }

    /// What is usually zero is mentioned only if it is not.
    fn write_notes(&self, text: &mut String) -> fmt::Result {
        let retries = self.sent.retries;
        let notes = [
            (
                retries.enomem,
                "sends failed for lack of memory and were repeated",
            ),
            (
                retries.lost_wakeups,
                "times congestion ended without notice",
            ),
            (
                self.received.stale,
                "messages of an earlier run were ignored",
            ),
        ];
        for (count, what) in notes.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(text, "  note      {count} {what}")?;
        }
        Ok(())
    }
}

impl Sent {
    fn write(&self, text: &mut String) -> fmt::Result {
        let (messages, bytes) = (self.messages, self.bytes);
        let end = if self.confirmed {
            "all confirmed"
        } else {
            "not confirmed"
        };
        writeln!(
            text,
            "  sent      {messages} messages, {bytes} bytes, {end}"
        )?;
        let (full, congested) = (self.retries.eagain, self.retries.enobufs);
        writeln!(
            text,
            "  waited    {full} times for room, {congested} for the end of congestion"
        )
    }
}

impl Received {
    fn write(&self, text: &mut String) -> fmt::Result {
        let (messages, bytes) = (self.messages, self.bytes);
        let end = if self.complete {
            "all verified"
        } else {
            "incomplete"
        };
        writeln!(
            text,
            "  received  {messages} messages, {bytes} bytes, {end}"
        )
    }
}

impl RttSummary {
    fn write(&self, text: &mut String) -> fmt::Result {
        let Self {
            count,
            min,
            avg,
            max,
        } = self;
        writeln!(
            text,
            "  rtt       min/avg/max {min}/{avg}/{max} usec, {count} measurements"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            ok: true,
            error: None,
            local: "10.0.0.1:4000".parse().unwrap(),
            peer: "10.0.0.2:4000".parse().unwrap(),
            transport: "tcp".into(),
            sockets: 2,
            sizes: Sizes::Mixed { max: 1000 },
            sent: Sent {
                messages: 5,
                bytes: 50,
                confirmed: true,
                retries: Retries::default(),
            },
            received: Received {
                messages: 6,
                bytes: 60,
                complete: true,
                stale: 0,
            },
            elapsed_ns: 1_234_567_890,
            cpu: CpuTime::default(),
            rtt_usec: None,
        }
    }

    #[test]
    fn text_for_people() {
        let text = report().text().unwrap();
        assert!(
            text.contains("10.0.0.1:4000 with 10.0.0.2:4000 over tcp\n"),
            "{text}"
        );
        assert!(
            text.contains("sent      5 messages, 50 bytes, all confirmed\n"),
            "{text}"
        );
        assert!(text.contains("time      1.234 s\n"), "{text}");
        assert!(!text.contains("note"), "{text}");
    }

    #[test]
    fn notes_only_if_there_is_something_to_note() {
        let mut report = report();
        report.received.stale = 3;
        assert!(report
            .text()
            .unwrap()
            .contains("3 messages of an earlier run"));
    }

    #[test]
    fn json_for_programs() {
        let value = serde_json::to_value(report()).unwrap();
        assert_eq!(value["sent"]["retries"]["eagain"], 0);
        assert_eq!(value["sizes"]["mixed"]["max"], 1000);
        assert!(value.get("error").is_none());
    }
}
