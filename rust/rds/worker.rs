// SPDX-License-Identifier: GPL-2.0

//! The task of a path: connecting, taking down, and sending and receiving when others could not.
//!
//! C counterpart: `net/rds/threads.c` and `rds_conn_shutdown`. C has four work items per path and flags that say which
//! is pending; here one task does what the events say, in an order that is always safe, so no step can overtake
//! another.

use crate::{
    path::Path,
    send::Outcome, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc, //
    },
};
use weft::{
    time,
    workqueue::{
        Task,
        TaskItem, //
    },
};
use weft_proto::rds::{
    arbitration::Role,
    counters::Core,
    state::PathState, //
};

/// Something for the task to do.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Event {
    /// Take the path down.
    Shutdown = 1,
    /// Transmit.
    Send = 2,
    /// Receive what could not be received for lack of memory.
    Receive = 4,
    /// Look at the reconnect time.
    Connect = 8,
    /// The transport has a connection of the peer's for the path, if it is down.
    Accept = 16,
    /// Close what carries the path, if nobody uses it.
    Rest = 32,
}

/// Where in [`Events`] it is noted that an event is to be handled at once: this many bits above the event's own.
const AT_ONCE: u32 = 16;

/// What the task is to do.
pub(crate) struct Events(Atomic<u32>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Adds an event that is to be handled at once; `false` if one was added already.
    fn add(&self, event: Event) -> bool {
        self.set(event as u32 | (event as u32) << AT_ONCE)
    }

    /// Adds an event that may wait for a time the caller sees to; `false` if it was there already.
    fn add_delayed(&self, event: Event) -> bool {
        self.set(event as u32)
    }

    /// Sets all `bits`; `false` if they were set already.
    fn set(&self, bits: u32) -> bool {
        let mut old = self.0.load(Acquire);
        while old & bits != bits {
            // ORDERING: `Full`: the task that takes the event sees why it was set.
            match self.0.cmpxchg(old, old | bits, Full) {
                Ok(_) => return true,
                Err(seen) => old = seen,
            }
        }
        false
    }

    fn take(&self) -> u32 {
        self.0.xchg(0, Full)
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Acquire) == 0
    }
}

/// Milliseconds after which a message for an overloaded socket is offered to it again.
const OVERLOAD_PAUSE_MS: u32 = 20;

/// Milliseconds after which it is looked again whether a peer has had the time to say how many paths it has.
const HELD_BACK_PAUSE_MS: u32 = 50;

/// Jiffies after which a sender or receiver without memory tries again.
const MEMORY_PAUSE: usize = 2;

impl Path {
    /// Has the task do something. Any context up to softirq.
    #[inline]
    pub fn kick(self: &Arc<Self>, event: Event) {
        if !self.conn.is_destroying() && self.events.add(event) {
            Task::reschedule(self, 0);
        }
    }

    /// Has the task do something after a pause. Any context up to softirq.
    pub(crate) fn kick_after(self: &Arc<Self>, event: Event, jiffies: usize) {
        if !self.conn.is_destroying() && self.events.add_delayed(event) {
            Task::schedule(self, jiffies);
        }
    }

    /// Closes what carries the path, unless somebody has begun to use the connection. The next message connects it again.
    fn rest(self: &Arc<Self>) {
        let idle = self.conn.may_rest();
        if idle
            && (self.transition(PathState::Up, PathState::Error)
                || self.transition(PathState::Connecting, PathState::Error))
        {
            self.shut_down(true);
        }
    }

    /// Takes the path down and plans to connect again; to `rest` only if somebody waits for that.
    fn shut_down(self: &Arc<Self>, rest: bool) {
        if !self.transition(PathState::Error, PathState::Disconnecting) {
            // What was to be taken down is gone already.
            return;
        }
        self.take_down(false);
        let received = self.arrivals.any();
        self.hand_over_numbers();
        // Only this task leaves the state.
        self.transition(PathState::Disconnecting, PathState::Down);
        self.reconnect.lock().lost(received);
        // A peer that closes in order an unused connection that it opened opens it again when it wants to.
        let rest = rest || (self.take_closed_by_peer() && self.conn.role() == Role::Passive);
        if !rest || !self.conn.may_rest() {
            if self.index == 0 && !self.is_loopback() {
                self.conn.probe(self);
            }
            self.plan_reconnect();
        }
        self.ops.slot_available(self);
    }

    /// The peer opens a connection only if it has no other: one that the path has now is stale.
    ///
    /// Unless it is not known yet whether what the path has now is its own.
    fn look_at_parked(self: &Arc<Self>) {
        self.ops.slot_available(self);
        if !matches!(self.state(), PathState::Up | PathState::Connecting) || !self.ops.has_parked()
        {
            return;
        }
        match self.own_time_to_tell() {
            Some(jiffies) => self.accept_after(jiffies),
            None => self.drop_path(),
        }
    }

    /// Has the task take an accepted connection later, when there may be memory for it.
    pub fn accept_later(self: &Arc<Self>) {
        self.kick_after(Event::Accept, MEMORY_PAUSE);
    }

    /// Has the task look at accepted connections after some jiffies.
    pub fn accept_after(self: &Arc<Self>, jiffies: usize) {
        self.kick_after(Event::Accept, jiffies);
    }

    /// Closes what carries the path and puts what was not acknowledged back in the queue. Sleeps.
    fn take_down(self: &Arc<Self>, destroy: bool) {
        let mut xmit = self.xmit.lock();
        if let Some(cut_off) = &xmit.current {
            // The transport may acknowledge its own end, which takes the place of what was not sent of the message.
            cut_off.forget_end();
        }
        self.ops.shutdown(self, destroy);
        self.conn.rds.count(Core::ConnReset);
        self.count_loss();
        self.reset_transmit(&mut xmit);
    }

    /// Has the task go on where a turn of the transmitter ended.
    pub(crate) fn finish_turn(self: &Arc<Self>, outcome: Outcome) {
        match outcome {
            Outcome::NoMemory => {
                self.conn.rds.count(Core::SendDelayedRetry);
                self.kick_after(Event::Send, MEMORY_PAUSE);
            }
            Outcome::More => {
                self.conn.rds.count(Core::SendImmediateRetry);
                self.kick(Event::Send);
            }
            Outcome::Busy | Outcome::Behind => self.kick_after(Event::Send, 1),
            // The answer ends it; this is for a peer that gives none.
            Outcome::HeldBack => {
                self.kick_after(Event::Send, time::msecs_to_jiffies(HELD_BACK_PAUSE_MS));
            }
            Outcome::Done => {}
        }
    }

    fn receive_in_task(self: &Arc<Self>) {
        match self.ops.receive(self) {
            Err(ENOMEM) => {
                self.conn.rds.count(Core::RecvDelayedRetry);
                self.kick_after(Event::Receive, MEMORY_PAUSE);
            }
            Err(EBUSY) => self.receive_later(),
            Err(_) | Ok(()) => {}
        }
    }

    /// Has the task send again soon, in case nobody tells that there is room. Up to softirq.
    pub fn send_later(self: &Arc<Self>) {
        self.kick_after(Event::Send, MEMORY_PAUSE);
    }

    /// Has the task receive after some jiffies. Up to softirq.
    pub fn receive_after(self: &Arc<Self>, jiffies: usize) {
        self.kick_after(Event::Receive, jiffies);
    }

    /// Has the task receive again when a socket that had too much unread may have read some. Up to softirq.
    pub fn receive_later(self: &Arc<Self>) {
        self.kick_after(Event::Receive, time::msecs_to_jiffies(OVERLOAD_PAUSE_MS));
    }

    /// Ends the path: nothing is waited for but a task that runs now. Sleeps.
    pub(crate) fn destroy(self: &Arc<Self>) {
        // The connection is marked, so a task that starts after this does nothing.
        Task::cancel_sync(self);
        self.take_down(true);
        self.purge();
    }
}

impl TaskItem<0> for Path {
    fn run(this: Arc<Self>) {
        let Some(this) = this.clone().enter() else {
            if !this.conn.is_destroying() {
                // Nothing is done while it is seen whether the connection can be forgotten; but nothing is left out.
                Task::schedule(&this, 1);
            }
            return;
        };
        let events = this.events.take();
        let has = |event: Event| events & event as u32 != 0;
        if has(Event::Shutdown) {
            this.shut_down(false);
        }
        if has(Event::Rest) {
            this.rest();
        }
        if has(Event::Accept) {
            this.look_at_parked();
        }
        // The time of an attempt may have been planned by any of the above.
        this.connect_when_due();
        if this.is_surplus() {
            this.drop_surplus();
        }
        if this.is_up() {
            if has(Event::Receive) {
                this.receive_in_task();
            }
            if has(Event::Send) {
                this.finish_turn(this.transmit());
            }
        } else if has(Event::Receive) {
            this.turn_without_transport();
        }
    }
}
