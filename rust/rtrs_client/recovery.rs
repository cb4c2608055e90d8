// SPDX-License-Identifier: GPL-2.0

//! Bringing a path up, taking it down, and doing so again.
//!
//! C counterpart: `rtrs_clt_err_recovery_work`, `rtrs_clt_reconnect_work` and `rtrs_clt_close_work`. Recovery takes
//! the path down and moves its requests; connecting again is another task on another queue, so that no request waits
//! for a reconnection. Closing is a recovery that ends in another state.
//!
//! Block I/O may wait for what happens here, and so may whoever frees memory: nothing here allocates in a way that
//! starts I/O, and the queues have a rescuer.

use crate::{
    connect,
    link::Link,
    path::{
        Path,
        RECONNECT,
        RECOVERY,
        WATCH, //
    }, //
};
use kernel::{
    error::code::{
        EBUSY,
        ECONNABORTED,
        ECONNRESET, //
    },
    prelude::*,
    sync::Arc, //
};
use weft::{
    mm::noio,
    sync::wait::{
        Mode,
        WaitResult,
        MAX_TIMEOUT, //
    },
    time::{
        msecs_to_jiffies,
        random_u32, //
    },
    workqueue::{
        Task,
        TaskItem, //
    }, //
};
use weft_proto::rtrs::{
    reconnect::PAUSE_MS,
    state::{
        ClientEvent,
        ClientState, //
    }, //
};

/// How often a server is asked to open a path that says it cannot now.
const OPEN_ROUNDS: u32 = 20;
/// The time between, in milliseconds; with the above more than a server takes to notice that a client has died.
const OPEN_PAUSE_MS: u32 = 2000;
/// How long the peer may take to hang up on its side, in milliseconds.
const HANGUP_MS: u32 = 5000;

/// When a path is to be connected again.
enum Next {
    /// In so many milliseconds.
    In(u32),
    /// There is no attempt left.
    Never,
    /// It is not waiting for that.
    NotWanted,
}

impl TaskItem<RECOVERY> for Path {
    fn run(this: Arc<Self>) {
        noio::scope(|| this.recover());
    }
}

impl TaskItem<RECONNECT> for Path {
    fn run(this: Arc<Self>) {
        noio::scope(|| this.reconnect());
    }
}

impl Path {
    /// Sets up the first link. Sleeps, up to several times 30 s. On an error the path is to be closed.
    ///
    /// A server that still has a session of this name, of a client that died, hangs up until it has noticed that; so it
    /// is asked again for a while.
    pub(crate) fn open(self: &Arc<Self>) -> Result {
        for round in 0..OPEN_ROUNDS {
            match noio::scope(|| self.establish()) {
                Err(error) if error == EBUSY => {}
                result => return result,
            }
            if round == 0 {
                pr_info!(
                    "{}: trying again for up to {} s\n",
                    self.label(),
                    OPEN_ROUNDS * OPEN_PAUSE_MS / 1000
                );
            }
            self.pause(OPEN_PAUSE_MS)?;
            // Else it was closed meanwhile.
            if !self.step_from_error() {
                return Err(ECONNABORTED);
            }
            self.step(ClientEvent::Attempt).map_err(|_| ECONNABORTED)?;
        }
        Err(ECONNRESET)
    }

    /// Waits, unless the path is closed or the task is killed.
    fn pause(&self, ms: u32) -> Result {
        let timeout = i64::try_from(msecs_to_jiffies(ms))?;
        let closed = || self.state() != ClientState::ConnectingErr;
        match self.changed.wait(Mode::Killable, timeout, closed) {
            WaitResult::Signal(error) => Err(error),
            WaitResult::Ready(_) | WaitResult::TimedOut => Ok(()),
        }
    }

    /// Sets up a link and lets requests onto it.
    fn establish(self: &Arc<Self>) -> Result {
        self.establish_in(&mut self.link.lock())
    }

    /// As above, where no link is in the path's place.
    fn establish_in(self: &Arc<Self>, place: &mut Option<Arc<Link>>) -> Result {
        let (serial, first) = self.next_link();
        let result =
            connect::connect(self, serial, first).and_then(|link| self.come_up(place, link));
        if let Err(error) = result {
            self.fail(serial);
            pr_info!("{}: connecting failed: {:?}\n", self.label(), error);
        }
        result
    }

    fn come_up(self: &Arc<Self>, place: &mut Option<Arc<Link>>, link: Arc<Link>) -> Result {
        *place = Some(link.clone());
        if self
            .step_link(link.serial(), ClientEvent::Established)
            .is_err()
        {
            // Somebody closed the path meanwhile, or it broke: what takes it down finds the link in its place.
            return Err(ECONNABORTED);
        }
        self.status.lock().attempts.reset();
        self.stats.connected();
        self.session.link_up(link)?;
        Task::<Self, WATCH>::schedule(self, self.session.watch_interval());
        Ok(())
    }

    /// Ends the link in the path's place: stops requests, hangs up, waits for the device, moves the requests elsewhere.
    /// Sleeps.
    fn end_link(self: &Arc<Self>, place: &mut Option<Arc<Link>>) {
        let Some(link) = place.take() else { return };
        Task::<Self, WATCH>::cancel_sync(self);
        // No request can start on the link from here on.
        self.session.link_down(&link);
        link.stop();
        link.wait_for_hangup(msecs_to_jiffies(HANGUP_MS));
    }

    /// What [`RECOVERY`] does.
    fn recover(self: &Arc<Self>) {
        let closed = {
            let mut place = self.link.lock();
            if self.is_connected() {
                // A user who wanted the path back was faster, and what is here is not the link that broke. Who takes the
                // path out of this state has this done once more.
                return;
            }
            self.end_link(&mut place);
            self.step(ClientEvent::Closed).is_ok()
        };
        if !closed {
            self.schedule_reconnect();
        }
    }

    /// Puts the next attempt on the calendar, or gives the path up if there is none.
    fn schedule_reconnect(self: &Arc<Self>) {
        match self.next_attempt() {
            Next::In(delay) => Task::<Self, RECONNECT>::reschedule(self, msecs_to_jiffies(delay)),
            Next::Never => {
                pr_warn!(
                    "{}: the path is given up; it can be reconnected by hand\n",
                    self.label()
                );
                self.start_close();
                self.round_over();
            }
            Next::NotWanted => {}
        }
    }

    /// When the next attempt is due, which is counted.
    fn next_attempt(&self) -> Next {
        let limit = self.session.settings.reconnect_limit();
        let delay = u32::from(self.session.reconnect_delay);
        let mut status = self.status.lock();
        if status.state != ClientState::Reconnecting {
            return Next::NotWanted;
        }
        if core::mem::take(&mut status.eager) {
            return Next::In(PAUSE_MS);
        }
        match status.attempts.next(limit, delay, random_u32()) {
            Some(wait) => {
                let wait = u32::try_from(wait).unwrap_or(u32::MAX);
                Next::In(wait.saturating_add(PAUSE_MS))
            }
            None => Next::Never,
        }
    }

    /// What [`RECONNECT`] does: one attempt.
    fn reconnect(self: &Arc<Self>) {
        if self.state() != ClientState::Reconnecting {
            return;
        }
        let result = {
            let mut place = self.link.lock();
            // A user who wants the path back may be faster than the recovery from the link that broke. Before the
            // attempt begins, which the end of that link would be taken for a failure of.
            if self.state() == ClientState::Reconnecting {
                self.end_link(&mut place);
            }
            if self.step(ClientEvent::Attempt).is_err() {
                return;
            }
            self.establish_in(&mut place)
        };
        if result.is_err() {
            self.stats.connecting_failed();
            // A path that came up and fell at once is on its way already.
            if self.step_from_error() {
                Task::<Self, RECOVERY>::schedule(self, 0);
            }
        }
        self.round_over();
    }

    /// Whether the path has failed to connect; it is to be tried again then.
    fn step_from_error(&self) -> bool {
        self.step_from(ClientState::ConnectingErr, ClientEvent::Retry)
    }

    /// Begins to close the path. Up to softirq.
    pub(crate) fn start_close(self: &Arc<Self>) {
        if self.step(ClientEvent::Close).is_ok() {
            Task::<Self, RECOVERY>::schedule(self, 0);
        }
    }

    /// Closes the path and waits for it: some seconds, or what is left of an attempt to connect. Sleeps.
    pub(crate) fn close(self: &Arc<Self>) {
        self.start_close();
        let closed = || matches!(self.state(), ClientState::Closed | ClientState::Dead);
        // Every wait on the way to this state is bounded and ends early when the path is closing.
        let _ = self
            .changed
            .wait(Mode::Uninterruptible, MAX_TIMEOUT, closed);
    }

    /// Connects again at once, and waits for how it ends. Sleeps.
    ///
    /// `EBUSY` if the path is closing or being connected, `ENOTCONN` if it did not work (it is tried again as set).
    pub(crate) fn reconnect_now(self: &Arc<Self>) -> Result {
        let before = {
            let mut status = self.status.lock();
            status.eager = true;
            status.attempts.reset();
            status.rounds
        };
        match self.step(ClientEvent::Retry) {
            Ok(_) => Task::<Self, RECOVERY>::schedule(self, 0),
            Err(ClientState::Reconnecting) => Task::<Self, RECONNECT>::reschedule(self, 0),
            Err(_) => return Err(EBUSY),
        }
        let over = || {
            let status = self.status.lock();
            status.rounds != before
                || matches!(status.state, ClientState::Closed | ClientState::Dead)
        };
        match self.changed.wait(Mode::Killable, MAX_TIMEOUT, over) {
            WaitResult::Signal(error) => Err(error),
            _ if self.is_connected() => Ok(()),
            _ => Err(ENOTCONN),
        }
    }

    /// A device appeared: if the path waits to be connected, it is tried now.
    pub(crate) fn try_soon(self: &Arc<Self>) {
        if self.state() == ClientState::Reconnecting && self.link.try_lock().is_some() {
            Task::<Self, RECONNECT>::reschedule(self, msecs_to_jiffies(PAUSE_MS));
        }
    }
}
