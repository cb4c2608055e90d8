// SPDX-License-Identifier: GPL-2.0

//! When a path is connected again, and by whom.
//!
//! C counterpart: `rds_queue_reconnect` in `net/rds/threads.c`. The end with the lower address connects, at once and then
//! after growing pauses. The other one waits, and calls its peer up as long as something waits for the path.

use crate::{
    path::Path,
    worker::Event, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use weft::time;
use weft_proto::rds::{
    arbitration::{
        self,
        Role, //
    },
    backoff::Backoff,
    state::PathState, //
};

/// When to connect again.
pub(crate) struct Reconnect {
    backoff: Backoff,
    /// Jiffies of the next attempt, if one is planned.
    due: Option<usize>,
}

impl Reconnect {
    pub(crate) fn new() -> Self {
        Self {
            backoff: Backoff::new(),
            due: None,
        }
    }

    /// The path is up: no further attempt is needed.
    pub(crate) fn connected(&mut self) {
        self.due = None;
    }

    /// The path is down. If something was received the connection was good for something: its loss is answered at once.
    pub(crate) fn lost(&mut self, received: bool) {
        self.due = None;
        if received {
            self.backoff.reset();
        }
    }
}

impl Path {
    /// Connects at once if the path is down and no attempt is planned. Any context up to softirq.
    pub fn connect_if_down(self: &Arc<Self>) {
        if self.state() != PathState::Down {
            return;
        }
        {
            let mut reconnect = self.reconnect.lock();
            if reconnect.due.is_some() {
                return;
            }
            reconnect.due = Some(time::jiffies());
        }
        self.kick(Event::Connect);
    }

    /// Whether the path is to be connected even if the peer does not do so by itself.
    fn is_wanted(&self) -> bool {
        if self.index > 0 {
            return self.holds_user_messages();
        }
        self.conn.holds_user_messages() || self.conn.is_waited_for()
    }

    /// Whether it is the peer that connects the path.
    fn waits_for_peer(&self) -> bool {
        self.conn.role() != Role::Active && !self.is_loopback()
    }

    /// Plans the next attempt after a loss or failure: at once the first time, then after growing random pauses.
    ///
    /// The passive end waits for the peer, so that the two do not cross. Only if something waits for the path it calls
    /// the peer up from time to time: the peer may have been absent when it did so first, and may have nothing to say
    /// itself.
    pub(crate) fn plan_reconnect(self: &Arc<Self>) {
        let waits_for_peer = self.waits_for_peer();
        if waits_for_peer && !self.is_wanted() {
            return;
        }
        let tunables = &self.conn.rds.tunables;
        // ORDERING: Settings on their own.
        let (min, max) = (
            tunables.reconnect_min.load(Relaxed),
            tunables.reconnect_max.load(Relaxed),
        );
        {
            let mut reconnect = self.reconnect.lock();
            let pause = reconnect
                .backoff
                .next_delay(min as u64, max as u64, time::random_u32());
            let pause = match usize::try_from(pause) {
                Ok(pause) if !waits_for_peer => pause,
                _ => max,
            };
            reconnect.due = Some(time::jiffies().wrapping_add(pause));
        }
        self.kick(Event::Connect);
    }

    pub(crate) fn is_loopback(&self) -> bool {
        self.conn.key.kind == crate::transport::Kind::Loop
    }

    /// Connects if the time has come; else has the task run again when it does.
    pub(crate) fn connect_when_due(self: &Arc<Self>) {
        {
            let mut reconnect = self.reconnect.lock();
            let Some(due) = reconnect.due else {
                return;
            };
            let left = due.wrapping_sub(time::jiffies());
            // Jiffies wrap: more than half the range ahead is in the past.
            if left != 0 && left <= usize::MAX / 2 {
                drop(reconnect);
                self.kick_after(Event::Connect, left);
                return;
            }
            reconnect.due = None;
        }
        let (role, paths) = (self.conn.role(), self.conn.paths_in_use());
        let may_connect = arbitration::may_connect(role, usize::from(self.index), paths);
        // A peer that was restarted takes the first connection for that of path 0. When that is up, it calls the others.
        if !may_connect || (self.index > 0 && !self.conn.path(0).is_some_and(|first| first.is_up()))
        {
            self.have_connected();
            return;
        }
        if !self.transition(PathState::Down, PathState::Connecting) {
            return;
        }
        if let Err(error) = self.ops.connect(self) {
            if self.transition(PathState::Connecting, PathState::Down) {
                self.plan_reconnect();
            } else {
                pr_debug!("connect of a path that was dropped failed: {:?}\n", error);
                self.drop_path();
            }
        }
    }

    /// Has the path connected by way of path 0: the active end does so when that comes up, or when it is asked there.
    ///
    /// The passive end repeats that as long as messages wait for the path, since the active one may not have noticed yet
    /// that it is down.
    fn have_connected(self: &Arc<Self>) {
        if self.index == 0 || self.is_surplus() || self.state() != PathState::Down {
            return;
        }
        if let Some(first) = self.conn.path(0) {
            self.conn.probe(&first);
            first.connect_if_down();
        }
        if self.waits_for_peer() {
            self.plan_reconnect();
        }
    }
}
