// SPDX-License-Identifier: GPL-2.0

//! Heartbeats: what a path does when it has not heard from its peer.
//!
//! Both sides look every [`INTERVAL_MS`] whether anything has arrived. If so, a heartbeat goes out, which the peer
//! answers; if not, the path waits for the answer that is missing, and after a number of such intervals the peer counts
//! as dead: 30 to 35 seconds after its last message. Any message counts, because an answer may be stuck behind others.
//!
//! C counterpart: `hb_work()` in `rtrs.c`.

/// Time between two looks in milliseconds (`RTRS_HB_INTERVAL_MS`).
pub const INTERVAL_MS: u32 = 5000;

/// Intervals without any message that are survived (`RTRS_HB_MISSED_MAX`).
pub const MISSED_MAX: u32 = 5;

/// What to do in this interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Send a heartbeat.
    Send,
    /// Wait for the answer to the last one.
    Wait,
    /// Give the peer up.
    Dead,
}

/// Watches a peer; one per connected path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Monitor {
    /// Looks since something arrived.
    missed: u32,
}

impl Monitor {
    /// Starts with a peer that has just been heard.
    pub const fn new() -> Self {
        Self { missed: 0 }
    }

    /// To be called every [`INTERVAL_MS`]; `heard` is whether anything has arrived since the last call.
    pub fn look(&mut self, heard: bool) -> Beat {
        if heard {
            self.missed = 0;
        }
        match self.missed {
            0 => {
                self.missed = 1;
                Beat::Send
            }
            missed if missed > MISSED_MAX => Beat::Dead,
            missed => {
                self.missed = missed.saturating_add(1);
                Beat::Wait
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_peer_dies() {
        let mut monitor = Monitor::new();
        assert_eq!(monitor.look(true), Beat::Send);
        for _ in 0..5 {
            assert_eq!(monitor.look(false), Beat::Wait);
        }
        // 30 seconds after the heartbeat that was not answered.
        assert_eq!(monitor.look(false), Beat::Dead);
        assert_eq!(monitor.look(false), Beat::Dead);
    }

    #[test]
    fn any_message_saves_it() {
        let mut monitor = Monitor::new();
        for _ in 0..100 {
            assert_eq!(monitor.look(true), Beat::Send);
        }
        for _ in 0..5 {
            assert_eq!(monitor.look(false), Beat::Wait);
        }
        assert_eq!(monitor.look(true), Beat::Send);
        assert_eq!(monitor.look(false), Beat::Wait);
    }

    #[test]
    fn the_first_look_sends() {
        assert_eq!(Monitor::new().look(false), Beat::Send);
    }
}
