// SPDX-License-Identifier: GPL-2.0

//! One side of the exchange: a control socket, the streams, and the loop that serves them.

use crate::channel::Channel;
use crate::config::{Config, Limit};
use crate::report::{Received, Report, Sent};
use crate::rtt::{Rtt, RttSummary};
use crate::sizes::Sizes;
use crate::stream::{Scratch, Stream};
use crate::tx::Quota;
use crate::watch::{Every, Watch};
use anyhow::{bail, Context, Result};
use rds_sys::cpu::CpuTime;
use rds_sys::{poll, signal, PollFd, Transport};
use std::io;
use std::time::{Duration, Instant};

mod setup;

/// Longest time between two looks at the stop flag.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long to wait for the last words to arrive.
const LINGER: Duration = Duration::from_secs(3);
/// Messages between two pauses.
const PAUSE_AFTER: usize = 64;

/// Everything one side has.
pub(crate) struct Endpoint {
    config: Config,
    sizes: Sizes,
    transport: Option<Transport>,
    channel: Channel,
    streams: Vec<Stream>,
    scratch: Scratch,
    /// When the link came up.
    started: Option<Instant>,
    watch: Watch,
    progress: Option<Every>,
    /// Messages read since the last pause.
    unpaused: usize,
    paused_until: Option<Instant>,
}

impl Endpoint {
    /// Exchanges all messages and reports.
    pub(crate) fn run(mut self) -> Report {
        let now = Instant::now();
        self.watch = Watch::new(self.config.start_timeout, now);
        let outcome = self.exchange();
        let elapsed = self.started.map_or(Duration::ZERO, |start| start.elapsed());
        if let Err(error) = &outcome {
            self.channel.link.set_failed(&format!("{error:#}"));
        }
        if self.channel.link.up() {
            self.channel.linger(LINGER);
        }
        let outcome = outcome.and_then(|()| self.read_the_rest());
        let error = outcome
            .err()
            .map(|error| format!("{error:#}; {}", self.position()));
        self.report(error, elapsed)
    }

    fn exchange(&mut self) -> Result<()> {
        while !self.done() {
            if signal::stop_requested() {
                bail!("stopped by a signal");
            }
            let now = Instant::now();
            self.observe(now)?;
            self.channel.tick(now)?;
            self.wait(now)?;
        }
        Ok(())
    }

    fn done(&self) -> bool {
        self.channel.link.finished() && self.streams.iter().all(|stream| stream.tx.pinned() == 0)
    }

    /// Waits for something to happen and deals with it.
    fn wait(&mut self, now: Instant) -> Result<()> {
        let limit = self.next_deadline(now);
        let read = self.paused_until.is_none_or(|end| now >= end);
        let mut fds = vec![PollFd::new(&self.channel.socket, true, false)];
        for stream in &self.streams {
            fds.push(PollFd::new(&stream.socket, read, stream.tx.wants_room(now)));
        }
        match poll(&mut fds, Some(limit)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result.context("poll failed")?,
        };
        let ready: Vec<(bool, bool)> = fds
            .iter()
            .skip(1)
            .map(|fd| (fd.readable(), fd.writable()))
            .collect();
        if fds[0].readable() {
            self.channel.receive()?;
        }
        self.serve(&ready)
    }

    fn next_deadline(&self, now: Instant) -> Duration {
        let retries = self
            .streams
            .iter()
            .filter_map(|stream| stream.tx.deadline());
        let next = retries
            .chain([self.channel.deadline(), self.watch.deadline()])
            .chain(self.paused_until.filter(|end| *end > now))
            .min();
        next.map_or(PATIENCE, |at| at.saturating_duration_since(now))
            .min(PATIENCE)
    }

    /// Serves the streams that are readable or writable, and all that wait for a time.
    fn serve(&mut self, ready: &[(bool, bool)]) -> Result<()> {
        self.follow_link();
        let now = Instant::now();
        let mut read = 0;
        for (stream, (readable, writable)) in self.streams.iter_mut().zip(ready) {
            if *readable {
                read += stream.receive(&mut self.scratch)?;
            }
            if *writable {
                stream.tx.room();
            }
            stream.send(now)?;
        }
        self.pause(read, now);
        self.settle(now)
    }

    /// Learns what the other side sends as soon as it is known, and begins to send when the link is up.
    ///
    /// The other side may be up and send before this one is: it waits for our word that we know it,
    /// and data and control messages may travel on different paths.
    fn follow_link(&mut self) {
        if let Some(recipe) = self.channel.link.peer_recipe() {
            self.streams
                .iter_mut()
                .for_each(|stream| stream.rx.expect(recipe));
        }
        if self.channel.link.up() && self.started.is_none() {
            self.start(Instant::now());
        }
    }

    fn start(&mut self, now: Instant) {
        self.started = Some(now);
        self.watch = Watch::new(self.config.timeout, now);
        self.channel.rtt = self.config.rtt.then(|| Rtt::new(now));
        for (index, stream) in (0..).zip(&mut self.streams) {
            stream.tx.start(match self.config.limit {
                Limit::Messages(count) => {
                    Quota::Messages(share(count, index, self.config.streams.into()))
                }
                Limit::Time(time) => Quota::Until(now + time),
            });
        }
    }

    fn pause(&mut self, read: usize, now: Instant) {
        self.unpaused += read;
        if self.unpaused >= PAUSE_AFTER && !self.config.recv_pause.is_zero() {
            self.unpaused = 0;
            self.paused_until = Some(now + self.config.recv_pause);
        }
    }

    /// Finds out what is complete.
    fn settle(&mut self, now: Instant) -> Result<()> {
        let totals: Option<Vec<u64>> = self
            .streams
            .iter()
            .map(|stream| stream.tx.total(now))
            .collect();
        if let Some(totals) = totals {
            self.channel.link.set_totals(totals);
        }
        if self.received_all()? {
            self.channel.link.set_complete();
        }
        Ok(())
    }

    fn received_all(&self) -> Result<bool> {
        let Some(totals) = self.channel.link.peer_totals() else {
            return Ok(false);
        };
        if self.config.one_way && totals.iter().any(|total| *total > 0) {
            bail!("the other side sends too; use 'peer' instead of 'send'");
        }
        let mut all = true;
        for (stream, total) in self.streams.iter().zip(totals) {
            all &= stream.rx.complete(*total)?;
        }
        Ok(all)
    }

    /// After the end nothing more may come.
    fn read_the_rest(&mut self) -> Result<()> {
        for stream in &mut self.streams {
            stream.receive(&mut self.scratch)?;
        }
        self.received_all().map(drop)
    }

    /// Notes the progress, tells about it, and fails if there is none.
    fn observe(&mut self, now: Instant) -> Result<()> {
        let received: u64 = self.streams.iter().map(|stream| stream.rx.messages()).sum();
        let sent: u64 = self.streams.iter().map(|stream| stream.tx.messages()).sum();
        self.channel.link.set_moved(received + sent);
        // Our own sends prove nothing: messages to a process that is gone are dropped in silence.
        self.watch
            .see(received + self.channel.link.peer_moved(), now);
        if self.progress.as_mut().is_some_and(|every| every.due(now)) {
            eprintln!("rds-traffic: {}: {}", self.config.local, self.position());
        }
        if now < self.watch.deadline() {
            return Ok(());
        }
        if self.started.is_none() {
            let (peer, limit) = (self.config.peer, self.config.start_timeout);
            bail!("nothing heard from {peer} for {} s", limit.as_secs_f64());
        }
        bail!(
            "nothing arrived on either side for {} s",
            self.config.timeout.as_secs_f64()
        )
    }

    /// How far it has come, in words.
    fn position(&self) -> String {
        let now = Instant::now();
        let Sent {
            messages: sent,
            confirmed,
            ..
        } = self.sent();
        let received = self.received().messages;
        let expected = self
            .channel
            .link
            .peer_totals()
            .map(|totals| totals.iter().sum::<u64>());
        let expected = expected.map_or("an unknown number".to_owned(), |n| n.to_string());
        let states: Vec<&str> = self.streams.iter().map(|s| s.tx.state(now)).collect();
        let mut text = format!("sent {sent}");
        if let Limit::Messages(count) = self.config.limit {
            text += &format!(" of {count}");
        }
        if confirmed {
            text += " (confirmed)";
        }
        format!(
            "{text}, received {received} of {expected}; streams: {}",
            tally(&states)
        )
    }

    fn sent(&self) -> Sent {
        let mut sent = Sent {
            confirmed: self.channel.link.confirmed(),
            ..Sent::default()
        };
        for stream in &self.streams {
            sent.messages += stream.tx.messages();
            sent.bytes += stream.tx.bytes();
            sent.retries += stream.tx.retries();
        }
        sent
    }

    fn received(&self) -> Received {
        let complete = self.received_all().unwrap_or(false);
        let mut received = Received {
            complete,
            ..Received::default()
        };
        for stream in &self.streams {
            received.messages += stream.rx.messages();
            received.bytes += stream.rx.bytes();
            received.stale += stream.rx.stale();
        }
        received
    }

    fn report(&self, error: Option<String>, elapsed: Duration) -> Report {
        let rtt_usec: Option<RttSummary> = self.channel.rtt.as_ref().and_then(Rtt::summary);
        Report {
            ok: error.is_none(),
            error,
            local: self.config.local,
            peer: self.config.peer,
            transport: self.transport.map_or("none".to_owned(), |t| t.to_string()),
            sockets: self.config.streams,
            sizes: self.sizes,
            sent: self.sent(),
            received: self.received(),
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            cpu: CpuTime::now().unwrap_or_default(),
            rtt_usec,
        }
    }
}

/// The part of `count` that belongs to one of `parts`.
fn share(count: u64, index: u64, parts: u64) -> u64 {
    count / parts + u64::from(index < count % parts)
}

/// Words with the number of times they occur.
fn tally(words: &[&str]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for word in words {
        match counts.iter_mut().find(|(known, _)| known == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (count, parts) in [(0, 3), (1, 3), (10, 3), (12, 4), (5, 1)] {
            let sum: u64 = (0..parts).map(|index| share(count, index, parts)).sum();
            assert_eq!(sum, count);
        }
    }

    #[test]
    fn tally_counts_words() {
        assert_eq!(
            tally(&["sending", "all sent", "sending"]),
            "2 sending, 1 all sent"
        );
        assert_eq!(tally(&[]), "");
    }
}
