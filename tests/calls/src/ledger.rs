// SPDX-License-Identifier: GPL-2.0

//! What was sent and what was received, and whether the one fits the other.
//!
//! Threads send and receive on the same sockets at the same time, so only this can be said about order: the messages
//! that one thread sent on one socket are taken from one receiver in this order. A message is late if one behind it was
//! in a program's hands before the call began that got this one.

use crate::message::Header;
use crate::name::Name;
use std::collections::{HashMap, HashSet, VecDeque};

/// Senders that are remembered, the closed ones included.
const SENDERS: u32 = 4096;
/// Messages of a stream that are remembered with the time at which they were received.
const RECENT: usize = 16;

/// A set of numbers from 0, a bit each.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number; whether it was new.
    fn add(&mut self, number: u32) -> bool {
        // CAST: To a wider type.
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let old = self.0[word];
        self.0[word] |= bit;
        old & bit == 0
    }

    fn has(&self, number: u32) -> bool {
        // CAST: To a wider type.
        self.0
            .get(number as usize / 64)
            .is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

/// What one receiver has got of a stream.
#[derive(Default)]
struct Seen {
    got: Bits,
    /// Numbers and the times at which they were there.
    recent: VecDeque<(u32, u64)>,
}

/// What one thread sends on one socket.
#[derive(Default)]
struct Stream {
    next: u32,
    /// Messages that the kernel did not take.
    refused: Bits,
    receivers: HashMap<u32, Seen>,
}

#[derive(Default)]
struct Sender {
    name: Option<Name>,
    namespace: u64,
    streams: HashMap<u32, Stream>,
    /// Zero-copy messages whose memory is not free, by their cookies: where their headers are.
    lent: HashMap<u32, usize>,
}

/// Who receives.
#[derive(Clone, Copy)]
pub(crate) struct Receiver {
    pub(crate) id: u32,
    pub(crate) name: Option<Name>,
    pub(crate) namespace: u64,
}

/// All sockets that send, and what they have sent.
#[derive(Default)]
pub(crate) struct Ledger {
    senders: HashMap<u32, Sender>,
    last: u32,
    /// Ticks with each message.
    clock: u64,
}

impl Ledger {
    /// A new socket in a namespace; its number.
    pub(crate) fn open(&mut self, namespace: u64) -> u32 {
        self.last += 1;
        self.senders.insert(
            self.last,
            Sender {
                namespace,
                ..Sender::default()
            },
        );
        self.senders.remove(&self.last.wrapping_sub(SENDERS));
        self.last
    }

    /// A socket has got a name.
    pub(crate) fn bound(&mut self, sender: u32, name: Name) {
        if let Some(sender) = self.senders.get_mut(&sender) {
            sender.name = Some(name);
        }
    }

    /// A socket is closed; the places of headers that it has lent to the kernel.
    pub(crate) fn close(&mut self, sender: u32) -> Vec<usize> {
        let lent = self
            .senders
            .get_mut(&sender)
            .map(|sender| std::mem::take(&mut sender.lent));
        lent.unwrap_or_default().into_values().collect()
    }

    /// A message will be sent; its number.
    pub(crate) fn send(&mut self, sender: u32, thread: u32) -> u32 {
        let Some(sender) = self.senders.get_mut(&sender) else {
            return 0;
        };
        let stream = sender.streams.entry(thread).or_default();
        stream.next += 1;
        stream.next - 1
    }

    /// A message was not sent.
    pub(crate) fn refuse(&mut self, sender: u32, thread: u32, number: u32) -> Result<(), String> {
        let stream = self
            .senders
            .get_mut(&sender)
            .and_then(|sender| sender.streams.get_mut(&thread));
        let Some(stream) = stream else {
            return Ok(());
        };
        stream.refused.add(number);
        match stream.receivers.values().any(|seen| seen.got.has(number)) {
            true => Err(format!(
                "message {number} of socket {sender} was refused after it had been received"
            )),
            false => Ok(()),
        }
    }

    /// A header is lent to the kernel under a cookie.
    pub(crate) fn lend(&mut self, sender: u32, cookie: u32, place: usize) {
        if let Some(sender) = self.senders.get_mut(&sender) {
            sender.lent.insert(cookie, place);
        }
    }

    /// A cookie has come back, or the message was refused; where the header is.
    pub(crate) fn give_back(&mut self, sender: u32, cookie: u32) -> Result<usize, String> {
        let place = self
            .senders
            .get_mut(&sender)
            .and_then(|sender| sender.lent.remove(&cookie));
        place.ok_or_else(|| format!("socket {sender} has not lent memory under cookie {cookie}"))
    }

    /// The time, for `receive`.
    pub(crate) fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// A message was received by a call that began at `begin`.
    pub(crate) fn receive(
        &mut self,
        message: &Header,
        by: Receiver,
        begin: u64,
    ) -> Result<(), String> {
        self.clock += 1;
        let end = self.clock;
        if message.sender > self.last {
            return Err(format!("{message:?} was sent by nobody"));
        }
        let Some(sender) = self.senders.get_mut(&message.sender) else {
            return Ok(());
        };
        let local = message.to.is_some_and(|to| to.is_loopback());
        if local && sender.namespace != by.namespace {
            return Err(format!("{message:?} came from another namespace"));
        }
        let Some(stream) = sender
            .streams
            .get_mut(&message.thread)
            .filter(|stream| message.number < stream.next)
        else {
            return Err(format!("{message:?} was never sent"));
        };
        if stream.refused.has(message.number) {
            return Err(format!("{message:?} had been refused"));
        }
        let seen = stream.receivers.entry(by.id).or_default();
        if !seen.got.add(message.number) {
            return Err(format!("{message:?} came twice to socket {}", by.id));
        }
        if let Some((later, _)) = seen
            .recent
            .iter()
            .find(|(number, when)| *number > message.number && *when < begin)
        {
            return Err(format!(
                "{message:?} came to socket {} after number {later}",
                by.id
            ));
        }
        seen.recent.push_back((message.number, end));
        if seen.recent.len() > RECENT {
            seen.recent.pop_front();
        }
        Ok(())
    }

    /// Checks addresses of a message: it came to where it was sent to, from where its sender is.
    pub(crate) fn addresses(
        &self,
        message: &Header,
        by: Receiver,
        from: Option<Name>,
    ) -> Result<(), String> {
        if let (Some(to), Some(own)) = (message.to, by.name) {
            if !to.is(&own) {
                return Err(format!("{message:?} came to {own:?}"));
            }
        }
        let sender = self
            .senders
            .get(&message.sender)
            .and_then(|sender| sender.name);
        match (from, sender) {
            (Some(from), Some(sender)) if (from.ip, from.port) != (sender.ip, sender.port) => Err(
                format!("{message:?} came from {from:?}, its sender is {sender:?}"),
            ),
            _ => Ok(()),
        }
    }

    /// The namespaces of all senders, each once.
    pub(crate) fn namespaces(&self) -> usize {
        self.senders
            .values()
            .map(|sender| sender.namespace)
            .collect::<HashSet<_>>()
            .len()
    }
}

#[cfg(test)]
mod tests;
