// SPDX-License-Identifier: GPL-2.0

//! What happens on a path as time passes: heartbeats while it is connected, the end of patience before.
//!
//! C counterpart: `rtrs_init_hb` and its work; a path that is never completed is dropped there only when another
//! request collides with it.

use crate::path::{
    task,
    Path, //
};
use kernel::sync::Arc;
use weft::{
    time,
    workqueue::{
        Task,
        TaskItem, //
    },
};
use weft_proto::rtrs::{
    hb::{
        Beat,
        INTERVAL_MS, //
    },
    state::ServerState, //
};

/// Milliseconds that a client may take from one connection to the next, and to ask for information.
const CONNECT_LIMIT_MS: u64 = 30_000;
/// Milliseconds between looks at a path that is being connected.
const CONNECT_LOOK_MS: u32 = 5_000;
/// Milliseconds in which a client that is suspected to be gone must show that it is not.
pub(crate) const PROBE_MS: u32 = 3_000;

impl Path {
    /// Begins to watch a new path.
    pub(crate) fn limit_connecting(self: &Arc<Self>) {
        self.look_after(CONNECT_LOOK_MS);
    }

    /// Begins to send heartbeats.
    pub(crate) fn start_heartbeat(self: &Arc<Self>) {
        self.pulse.heard();
        self.look_after(INTERVAL_MS);
    }

    /// Another client claims the name of this one's session: finds out soon whether this one is alive.
    pub(crate) fn probe(self: &Arc<Self>) {
        if self.is_connected() && self.pulse.suspect() {
            self.send_heartbeat();
            self.look_after(PROBE_MS);
        }
    }

    fn look_after(self: &Arc<Self>, ms: u32) {
        Task::<Self, { task::TIMER }>::reschedule(self, time::msecs_to_jiffies(ms));
    }

    /// Sends a heartbeat on the first connection.
    fn send_heartbeat(self: &Arc<Self>) {
        if let Some(conn) = self.conn(0) {
            conn.heartbeat();
        }
    }

    fn beat(self: &Arc<Self>) {
        match self.pulse.look() {
            Beat::Send => self.send_heartbeat(),
            Beat::Wait => {}
            Beat::Dead => return self.close("the client answers no heartbeat"),
        }
        self.look_after(INTERVAL_MS);
    }
}

impl TaskItem<{ task::TIMER }> for Path {
    fn run(this: Arc<Self>) {
        match this.state() {
            ServerState::Connecting if this.quiet_ms() > CONNECT_LIMIT_MS => {
                this.close("the client did not complete its connections");
            }
            ServerState::Connecting => this.look_after(CONNECT_LOOK_MS),
            ServerState::Connected => this.beat(),
            ServerState::Closing | ServerState::Closed => {}
        }
    }
}
