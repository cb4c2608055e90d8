// SPDX-License-Identifier: GPL-2.0

//! Numbers of the messages that arrive on a path, by which each is delivered once.
//!
//! A peer that has known this host before opens all its paths at once, when this host may not know that it has several.
//! So path 0 takes the first connection that comes, for which path it may be. It then *stands for* the path that the
//! source port names: it goes on with the numbers of that one, and hands them over when it is known whose the connection
//! is, or when that is lost. Else messages of the other path would be taken for repeated ones of path 0, or would be
//! delivered again.
//!
//! Nor does it send anything on it that has a number, as the peer would count it for the other path: only the
//! congestion map and a probe, until the peer has answered, or has had the time to.
//!
//! C counterpart: `cp_next_rx_seq`.

use crate::{
    path::Path,
    worker::Event, //
};
use kernel::sync::{
    atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed,
        Release, //
    },
    Arc, //
};
use weft::time;
use weft_proto::rds::window;

/// A peer that does not say for so many milliseconds how many paths it has is taken to have one.
const STAND_IN_MS: u32 = 10_000;

/// What a path expects.
///
/// It has one writer at a time: who changes the state of a path that has no transport, and else the transport's receiver.
pub(crate) struct Arrivals {
    /// Number of the next message.
    expected: Atomic<u64>,
    /// What that was before the path got what carries it now.
    at_start: Atomic<u64>,
    /// For path 0: the path that what carries it now is meant for, as far as is known; else 0.
    stands_for: Atomic<u32>,
    /// For path 0: its own number, while it stands for another.
    set_aside: Atomic<u64>,
    /// For path 0, while it stands for another: the peer has to be asked how many paths there are.
    probe_due: Atomic<bool>,
}

impl Arrivals {
    pub(crate) fn new() -> Self {
        Self {
            expected: Atomic::new(0),
            at_start: Atomic::new(0),
            stands_for: Atomic::new(0),
            set_aside: Atomic::new(0),
            probe_due: Atomic::new(false),
        }
    }

    /// Number of the next message. Any context.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        self.expected.load(Relaxed)
    }

    /// Goes on with the number of an earlier life.
    pub(crate) fn set_expected(&self, number: u64) {
        self.expected.store(number, Relaxed);
    }

    /// The path is about to get a transport.
    pub(crate) fn begin(&self) {
        self.at_start.store(self.expected(), Relaxed);
    }

    /// Whether a message has arrived since then.
    pub(crate) fn any(&self) -> bool {
        self.at_start.load(Relaxed) != self.expected()
    }

    /// Takes the number of a message that arrived; `false` if the message was delivered before. Up to softirq.
    #[inline]
    pub(crate) fn accept(&self, sequence: u64, flags: u8) -> bool {
        // ORDERING: One writer at a time, ordered by the transport's own lock.
        match window::accept(self.expected(), sequence, flags) {
            Some(next) => {
                self.expected.store(next, Relaxed);
                true
            }
            None => false,
        }
    }

    /// The peer numbers its messages from 1 again. Up to softirq.
    pub(crate) fn restart(&self) {
        // ORDERING: The transport serialises this with `accept`.
        for number in [&self.expected, &self.at_start, &self.set_aside] {
            number.store(0, Relaxed);
        }
    }

    fn stands_for(&self) -> u32 {
        self.stands_for.load(Acquire)
    }

    /// Goes on with its own number; `None` to keep the one it has now.
    fn stand_for_itself(&self, own: Option<u64>) {
        if let Some(own) = own {
            self.set_expected(own);
        }
        // ORDERING: `Release`: the other path may take a connection now, and finds the number it was handed.
        self.stands_for.store(0, Release);
    }
}

impl Path {
    /// The connection that the path is about to get comes from a port of path `index`; before anything of it is read.
    ///
    /// For path 0, as long as it is not known how many paths the peer has.
    pub fn stand_in_for(&self, index: usize) {
        let (Some(other), Ok(index)) = (self.conn.path(index), u32::try_from(index)) else {
            return;
        };
        if index == 0 || self.index != 0 {
            return;
        }
        let arrivals = &self.arrivals;
        arrivals.set_aside.store(arrivals.expected(), Relaxed);
        arrivals.set_expected(other.arrivals.expected());
        arrivals.begin();
        arrivals.stands_for.store(index, Release);
    }

    /// Whether the path stands for another as far as is known. Any context.
    #[inline]
    pub(crate) fn is_stand_in(&self) -> bool {
        self.index == 0
            && self.arrivals.stands_for() != 0
            && (self.conn.paths_in_use() != 0
                || self.time_up() < time::msecs_to_jiffies(STAND_IN_MS))
    }

    /// Has the probe sent that the path may send while it stands for another. Up to softirq.
    pub fn probe_as_stand_in(self: &Arc<Self>) {
        self.arrivals.probe_due.store(true, Release);
        self.kick(Event::Send);
    }

    /// Whether that is to be sent.
    pub(crate) fn owes_probe(&self) -> bool {
        self.arrivals.probe_due.load(Acquire)
    }

    /// The same, asked once.
    pub(crate) fn take_owed_probe(&self) -> bool {
        self.owes_probe() && self.arrivals.probe_due.xchg(false, Full)
    }

    /// Whether what carries the path was opened for another one.
    pub fn stands_for_another(&self) -> bool {
        self.arrivals.stands_for() != 0
    }

    /// What carries path 0 is a connection of its own, whatever its port says. Up to softirq.
    pub(crate) fn stands_for_itself(self: &Arc<Self>) {
        self.arrivals.stand_for_itself(None);
        // What was held back can go.
        self.kick(Event::Send);
    }

    /// What carries path 0 turned out to be the connection of another path. Up to softirq.
    pub(crate) fn gives_way_to(self: &Arc<Self>, index: usize) {
        let Ok(index) = u32::try_from(index) else {
            return;
        };
        let arrivals = &self.arrivals;
        if arrivals.stands_for() == 0 {
            arrivals
                .set_aside
                .store(arrivals.at_start.load(Relaxed), Relaxed);
        }
        arrivals.stands_for.store(index, Release);
        self.drop_path();
    }

    /// After the transport is gone: what was received for another path counts as received on that one.
    pub fn hand_over_numbers(&self) {
        let arrivals = &self.arrivals;
        let index = arrivals.stands_for();
        if index == 0 {
            return;
        }
        if let Some(other) = usize::try_from(index)
            .ok()
            .and_then(|index| self.conn.path(index))
        {
            // That path takes no connection before this one stands for itself.
            other.arrivals.set_expected(arrivals.expected());
        }
        arrivals.stand_for_itself(Some(arrivals.set_aside.load(Relaxed)));
    }

    /// Whether path 0 has still to hand over what it received for this one.
    pub fn waits_for_first(&self) -> bool {
        self.index > 0
            && self
                .conn
                .path(0)
                .is_some_and(|first| first.arrivals.stands_for() == u32::from(self.index))
    }

    /// The number expected next, for connection lists.
    pub fn rx_expected(&self) -> u64 {
        self.arrivals.expected()
    }
}
