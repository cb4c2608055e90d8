// SPDX-License-Identifier: GPL-2.0

//! Order across a fan-out, at the receiving end.
//!
//! A socket that has sent on path 0 may send on another path once the two ends have agreed on several. Its peer sends
//! nothing there before path 0 has delivered what came before, as far as TCP can tell; but TCP acknowledges what this
//! end may not have read yet. So the first message that another path brings is held back, and path 0 is *asked*: when
//! it has read everything that it has, in a turn that began after it was asked, the order is safe for good.
//!
//! C has no counterpart: it delivers at once.

use crate::{
    conn::Conn,
    path::Path,
    worker::Event, //
};
use kernel::sync::{
    atomic::{
        Acquire,
        Atomic,
        Full,
        Release, //
    },
    Arc, //
};
use weft_proto::rds::state::PathState;

/// Nothing has to wait for path 0.
const OVER: u32 = 0;
/// Path 0 may hold messages that come before those of other paths.
const BEGUN: u32 = 1;
/// The same, and another path waits to know.
const ASKED: u32 = 2;

/// Whether messages of other paths have to wait for path 0.
pub(crate) struct Settling(Atomic<u32>);

impl Settling {
    pub(crate) fn new() -> Self {
        Self(Atomic::new(OVER))
    }

    /// The connection fans out: from now on other paths may bring messages. Up to softirq.
    pub(crate) fn begin(&self) {
        // ORDERING: `Release`: a path that delivers from now on asks path 0 before.
        self.0.store(BEGUN, Release);
    }

    /// Whether nothing has to wait; if something has to, that is noted. Up to softirq.
    #[inline]
    fn is_over_or_ask(&self) -> bool {
        // ORDERING: `Full`: path 0 sees the question only after what has led to it has arrived.
        self.0.load(Acquire) == OVER || self.0.cmpxchg(BEGUN, ASKED, Full) == Err(OVER)
    }

    fn is_asked(&self) -> bool {
        self.0.load(Acquire) == ASKED
    }

    /// Path 0 has read everything since it was asked; `false` if the connection has fanned out anew, or was told before.
    fn end(&self) -> bool {
        // ORDERING: `Full`: what path 0 has delivered comes before what waited for it.
        self.0.cmpxchg(ASKED, OVER, Full).is_ok()
    }
}

/// A turn of path 0 in which it reads everything.
pub struct Turn(bool);

impl Path {
    /// The transport is about to read everything that has arrived on the path.
    #[inline]
    pub fn begin_turn(&self) -> Turn {
        Turn(self.index == 0 && self.conn.settling.is_asked())
    }

    /// It has read and delivered all that there was, and no other connection of the peer's waits for the path. Up to
    /// softirq.
    #[inline]
    pub fn end_turn(&self, turn: Turn) {
        if turn.0 && self.conn.settling.end() {
            // They need not wait for the time when they would have tried again.
            self.conn.for_each_path(|path| {
                if path.is_receiver_stopped() {
                    path.kick(Event::Receive);
                }
            });
        }
    }

    /// The path has nothing that it could read from: what was there was read before it went down.
    pub(crate) fn turn_without_transport(&self) {
        let turn = self.begin_turn();
        let is_quiet = matches!(self.state(), PathState::Down | PathState::Connecting);
        if is_quiet && !self.ops.has_parked() {
            self.end_turn(turn);
        }
    }
}

impl Conn {
    /// Whether messages of other paths have to wait, because path 0 may hold older ones. If so it is asked. Up to softirq.
    #[inline]
    pub(crate) fn waits_for_first_path(self: &Arc<Self>) -> bool {
        if self.settling.is_over_or_ask() {
            return false;
        }
        if let Some(first) = self.path(0) {
            first.kick(Event::Receive);
        }
        true
    }
}
