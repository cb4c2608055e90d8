// SPDX-License-Identifier: GPL-2.0

//! The receiving direction of a stream.

use crate::content::{Defect, Place, Recipe, HEADER};
use anyhow::{anyhow, bail, Result};
use std::net::SocketAddr;

/// What was received and what must come next.
pub(crate) struct Rx {
    peer: SocketAddr,
    next: Place,
    /// What the messages must look like; unknown until the other side was heard.
    recipe: Option<Recipe>,
    bytes: u64,
    stale: u64,
}

impl Rx {
    pub(crate) fn new(stream: u16, peer: SocketAddr) -> Self {
        let next = Place {
            stream,
            sequence: 0,
        };
        Self {
            peer,
            next,
            recipe: None,
            bytes: 0,
            stale: 0,
        }
    }

    /// Tells what the messages look like.
    pub(crate) fn expect(&mut self, recipe: Recipe) {
        self.recipe = Some(recipe);
    }

    /// Checks a message; what an earlier run of the other side left behind is counted and ignored.
    pub(crate) fn accept(&mut self, from: SocketAddr, data: &[u8]) -> Result<()> {
        if from != self.peer {
            bail!(
                "{}: a message came from {from} instead of {}",
                self.name(),
                self.peer
            );
        }
        let Some(recipe) = &self.recipe else {
            self.stale += 1;
            return Ok(());
        };
        match recipe.check(self.next, data) {
            Ok(()) => {
                self.next.sequence += 1;
                // CAST: to a wider type on every Linux.
                self.bytes += data.len() as u64;
                Ok(())
            }
            Err(Defect::Stale) => {
                self.stale += 1;
                Ok(())
            }
            Err(defect) => Err(self.complaint(defect, data)),
        }
    }

    /// Whether all of `total` messages are here. More of them are an error.
    pub(crate) fn complete(&self, total: u64) -> Result<bool> {
        let got = self.next.sequence;
        if got > total {
            bail!(
                "{}: {got} messages arrived, but only {total} were sent",
                self.name()
            );
        }
        Ok(got == total)
    }

    pub(crate) fn messages(&self) -> u64 {
        self.next.sequence
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn stale(&self) -> u64 {
        self.stale
    }

    fn name(&self) -> String {
        format!("stream {}", self.next.stream)
    }

    fn complaint(&self, defect: Defect, data: &[u8]) -> anyhow::Error {
        let next = self.next.sequence;
        let meaning = match defect {
            Defect::Sequence(got) if got < next => " (delivered twice or out of order)".to_owned(),
            Defect::Sequence(got) => format!(" ({} lost or out of order)", got - next),
            _ => String::new(),
        };
        let start = &data[..data.len().min(HEADER)];
        anyhow!(
            "{}: message {next} was expected, but what came is wrong: {defect}{meaning}; \
             {} bytes, beginning {start:02x?}",
            self.name(),
            data.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::Sizes;

    const RECIPE: Recipe = Recipe {
        key: 1,
        session: 2,
        sizes: Sizes::Even { min: 50, max: 90 },
    };

    fn peer() -> SocketAddr {
        "10.0.0.2:4001".parse().unwrap()
    }

    fn message(sequence: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        RECIPE.write(
            Place {
                stream: 0,
                sequence,
            },
            &mut bytes,
        );
        bytes
    }

    fn rx() -> Rx {
        let mut rx = Rx::new(0, peer());
        rx.expect(RECIPE);
        rx
    }

    #[test]
    fn in_order_exactly_once() {
        let mut rx = rx();
        for sequence in 0..5 {
            rx.accept(peer(), &message(sequence)).unwrap();
        }
        assert!(rx.complete(5).unwrap() && !rx.complete(6).unwrap());
        assert!(rx.complete(4).is_err());
        let again = rx.accept(peer(), &message(4)).unwrap_err().to_string();
        assert!(
            again.contains("it is message 4 (delivered twice"),
            "{again}"
        );
        let lost = rx.accept(peer(), &message(7)).unwrap_err().to_string();
        assert!(lost.contains("it is message 7 (2 lost"), "{lost}");
    }

    #[test]
    fn only_from_the_peer() {
        let stranger = "10.0.0.3:4001".parse().unwrap();
        assert!(rx().accept(stranger, &message(0)).is_err());
    }

    #[test]
    fn leftovers_are_counted() {
        let mut early = Rx::new(0, peer());
        early.accept(peer(), &message(0)).unwrap();
        assert_eq!((early.stale(), early.messages()), (1, 0));
        let mut old = Vec::new();
        let place = Place {
            stream: 0,
            sequence: 0,
        };
        Recipe {
            session: 3,
            ..RECIPE
        }
        .write(place, &mut old);
        let mut rx = rx();
        rx.accept(peer(), &old).unwrap();
        assert_eq!((rx.stale(), rx.messages()), (1, 0));
    }
}
