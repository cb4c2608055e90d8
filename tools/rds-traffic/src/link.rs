// SPDX-License-Identifier: GPL-2.0

//! The conversation between the two sides.
//!
//! Each side sends its whole [`Status`] whenever it changes and now and then besides. There are no
//! requests and no answers: what a side may do follows from its own status and the last one it got.
//!
//! 1. A side that has bound all its sockets says who it is. A side that hears this repeats the other's
//!    session number. Hearing the own number means that the other is alive, has its sockets bound and
//!    knows our messages: the link is up and data may flow.
//! 2. A side that has sent everything says how many messages that was.
//! 3. A side that has received all of them says so; this confirms them to the sender.
//! 4. A side that has heard this says that too. When each knows that the other knows, both end.
//!
//! A side that fails says why, so that the other does not wait for it.

use crate::content::Recipe;
use crate::sizes::Sizes;
use anyhow::{bail, Context, Result};
use rds_sys::MAX_MESSAGE;
use serde::{Deserialize, Serialize};

/// Version of this conversation.
const VERSION: u32 = 1;

/// All that a side tells the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    version: u32,
    /// A number for this run of the program.
    session: u64,
    /// The other's session number, if known.
    echo: Option<u64>,
    streams: u16,
    /// What sizes and contents are derived from.
    key: u64,
    sizes: Sizes,
    /// Messages sent on each stream, when it is decided.
    totals: Option<Vec<u64>>,
    /// Messages sent and received so far, as a sign of life.
    moved: u64,
    /// Everything the other sent was received.
    complete: bool,
    /// Known that the other is complete.
    confirmed: bool,
    failed: Option<String>,
}

/// What one side knows.
pub(crate) struct Link {
    own: Status,
    peer: Option<Status>,
    changed: bool,
}

impl Link {
    /// The beginning, with nothing known about the other side.
    pub(crate) fn new(streams: u16, recipe: Recipe) -> Self {
        let own = Status {
            version: VERSION,
            session: recipe.session,
            echo: None,
            streams,
            key: recipe.key,
            sizes: recipe.sizes,
            totals: None,
            moved: 0,
            complete: false,
            confirmed: false,
            failed: None,
        };
        Self {
            own,
            peer: None,
            changed: true,
        }
    }

    /// The status to send.
    pub(crate) fn own(&self) -> &Status {
        &self.own
    }

    /// Whether there is news the other does not have.
    pub(crate) fn changed(&self) -> bool {
        self.changed
    }

    /// The news was sent.
    pub(crate) fn sent(&mut self) {
        self.changed = false;
    }

    /// Whether the other side is there and knows us.
    pub(crate) fn up(&self) -> bool {
        self.peer
            .as_ref()
            .is_some_and(|peer| peer.echo == Some(self.own.session))
    }

    /// What the other side's messages look like, as soon as it was heard. Its first messages may come
    /// before the link is up on this side.
    pub(crate) fn peer_recipe(&self) -> Option<Recipe> {
        let peer = self.peer.as_ref()?;
        Some(Recipe {
            key: peer.key,
            session: peer.session,
            sizes: peer.sizes,
        })
    }

    /// How many messages the other side sent on each stream, once it is decided.
    pub(crate) fn peer_totals(&self) -> Option<&[u64]> {
        self.peer.as_ref().filter(|_| self.up())?.totals.as_deref()
    }

    /// How many messages the other side has seen go by.
    pub(crate) fn peer_moved(&self) -> u64 {
        self.peer.as_ref().map_or(0, |peer| peer.moved)
    }

    /// Whether the other side has received everything.
    pub(crate) fn confirmed(&self) -> bool {
        self.own.confirmed
    }

    /// Whether both sides know that both are complete.
    pub(crate) fn finished(&self) -> bool {
        let peer = self.peer.as_ref();
        self.own.complete && self.own.confirmed && peer.is_some_and(|p| p.complete && p.confirmed)
    }

    /// Notes the progress; it alone is no news.
    pub(crate) fn set_moved(&mut self, moved: u64) {
        self.own.moved = moved;
    }

    /// Says how many messages were sent on each stream.
    pub(crate) fn set_totals(&mut self, totals: Vec<u64>) {
        self.changed |= self.own.totals.is_none();
        self.own.totals = Some(totals);
    }

    /// Says that everything was received.
    pub(crate) fn set_complete(&mut self) {
        self.changed |= !self.own.complete;
        self.own.complete = true;
    }

    /// Says that this side gives up.
    pub(crate) fn set_failed(&mut self, reason: &str) {
        self.changed = true;
        self.own.failed = Some(reason.to_owned());
    }

    /// Takes in what the other side says.
    pub(crate) fn receive(&mut self, status: Status) -> Result<()> {
        self.check(&status)?;
        let meant_for_us = status.echo == Some(self.own.session);
        if self.up() && !meant_for_us {
            let old = self.peer.as_ref().map(|peer| peer.session);
            if status.echo.is_none() && old != Some(status.session) {
                bail!("the other side was started again");
            }
            return Ok(());
        }
        if let (true, Some(reason)) = (meant_for_us, &status.failed) {
            bail!("the other side failed: {reason}");
        }
        self.changed |= self.own.echo != Some(status.session);
        self.own.echo = Some(status.session);
        if meant_for_us && status.complete && !self.own.confirmed {
            self.own.confirmed = true;
            self.changed = true;
        }
        self.peer = Some(status);
        Ok(())
    }

    fn check(&self, status: &Status) -> Result<()> {
        if status.version != VERSION {
            bail!(
                "the other side speaks version {}, this one {VERSION}",
                status.version
            );
        }
        if status.session == self.own.session {
            bail!("this process talks to itself");
        }
        if status.streams != self.own.streams {
            let (theirs, ours) = (status.streams, self.own.streams);
            bail!("the other side uses {theirs} streams, this one {ours}; see --sockets");
        }
        let totals = status
            .totals
            .as_ref()
            .map_or(status.streams.into(), Vec::len);
        if !status.sizes.valid(MAX_MESSAGE) || totals != usize::from(status.streams) {
            bail!("the other side's status makes no sense: {status:?}");
        }
        Ok(())
    }
}

/// What travels between the control sockets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Packet {
    Status(Status),
    /// To be returned as `Pong`; the number means something to its sender only.
    Ping(u64),
    Pong(u64),
}

impl Packet {
    /// The packet as it is sent.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Reads a packet.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).context("there is something else on the other control port")
    }
}

#[cfg(test)]
mod tests;
