// SPDX-License-Identifier: GPL-2.0

//! Watching over a path that is up: heartbeats, and requests that take too long.
//!
//! C counterpart: `hb_work` in `rtrs.c`. Any message of the server counts as a sign of life. A server that answers
//! heartbeats and nothing else hangs all the same: where an administrator has set a limit (`io_timeout`), a request that
//! is older condemns its path, whose recovery sends it elsewhere.

use crate::{
    link::Link,
    parking::reached,
    path::{
        Path,
        WATCH, //
    },
    session::Session, //
};
use kernel::{
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};
use weft::{
    pr_ratelimited,
    time::{
        jiffies,
        ktime_get,
        msecs_to_jiffies, //
    },
    workqueue::{
        Task,
        TaskItem, //
    }, //
};
use weft_proto::rtrs::{
    hb::{
        Beat,
        Monitor,
        INTERVAL_MS, //
    },
    imm::HEARTBEAT, //
};

/// How often requests are looked at if there is a limit for them, in milliseconds.
const LOOK_MS: u32 = 1000;

impl TaskItem<WATCH> for Path {
    fn run(this: Arc<Self>) {
        this.watch();
    }
}

/// What the watch remembers of a link.
pub(crate) struct Watched {
    monitor: Monitor,
    /// When the monitor looks next, in ticks.
    due: usize,
}

impl Watched {
    pub(crate) fn new() -> Self {
        Self {
            monitor: Monitor::new(),
            due: jiffies().wrapping_add(msecs_to_jiffies(INTERVAL_MS)),
        }
    }
}

impl Session {
    /// Ticks between two looks at a path.
    pub(crate) fn watch_interval(&self) -> usize {
        match self.settings.io_timeout() {
            0 => msecs_to_jiffies(INTERVAL_MS),
            _ => msecs_to_jiffies(LOOK_MS),
        }
    }
}

impl Path {
    /// What [`WATCH`] does.
    fn watch(self: &Arc<Self>) {
        // Whoever holds the lock for long takes the path down, which ends this task, or has just brought it up.
        let link = self.link.try_lock().and_then(|link| (*link).clone());
        if let Some(link) = link {
            if self.hangs(&link) || self.is_silent(&link) {
                link.fail();
                return;
            }
        }
        Task::<Self, WATCH>::schedule(self, self.session.watch_interval());
    }

    /// Whether a request takes longer than it may.
    fn hangs(&self, link: &Link) -> bool {
        let seconds = self.session.settings.io_timeout();
        if seconds == 0 {
            return false;
        }
        let limit = msecs_to_jiffies(seconds.saturating_mul(1000));
        let hangs = link.has_older_than(jiffies().wrapping_sub(limit));
        if hangs {
            pr_ratelimited!(
                pr_err,
                "{}: a request was not answered for {} s\n",
                self.label(),
                seconds
            );
        }
        hangs
    }

    /// Looks whether the server lives, every [`INTERVAL_MS`]; true if it does not.
    fn is_silent(&self, link: &Link) -> bool {
        let core = link.core();
        let beat = {
            let mut watched = core.watched.lock();
            let now = jiffies();
            if !reached(now, watched.due) {
                return false;
            }
            watched.due = now.wrapping_add(msecs_to_jiffies(INTERVAL_MS));
            watched.monitor.look(core.take_heard())
        };
        match beat {
            Beat::Wait => false,
            // A full queue is full of what will bring a sign of life.
            Beat::Send => {
                // ORDERING: Read by whoever receives the answer to what is sent after this.
                core.beat_sent.store(ktime_get(), Relaxed);
                if let Some(line) = link.first_line() {
                    line.beat(HEARTBEAT);
                }
                false
            }
            Beat::Dead => {
                pr_ratelimited!(
                    pr_err,
                    "{}: the server has been silent for too long\n",
                    self.label()
                );
                true
            }
        }
    }
}
