// SPDX-License-Identifier: GPL-2.0

//! A path: one pair of addresses, its state, and the tasks that bring it up and take it down.
//!
//! C counterpart: `struct rtrs_clt_path`. What makes up the connections of a path for as long as they last is a
//! [`Link`]; a path has at most one. Every link has a serial number, and trouble is reported with it, so that the last
//! words of an old link do not hurt the new one.

use crate::{
    addr::PathAddrs,
    link::Link,
    session::Session,
    stats::Stats,
    sysfs_path::PathFiles, //
};
use kernel::{
    fmt, new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};
use weft::{
    fmt::Plain,
    new_spinlock_bh,
    new_task,
    new_wait_queue,
    sync::{
        bh::SpinLockBh,
        wait::WaitQueue, //
    },
    workqueue::Task, //
};
use weft_proto::rtrs::{
    reconnect::Attempts,
    state::{
        ClientEvent,
        ClientState, //
    }, //
};
use weft_rdma::device::Device;

/// Task that takes a path down and moves its requests elsewhere.
pub(crate) const RECOVERY: u64 = 0;
/// Task that tries to connect a path again.
pub(crate) const RECONNECT: u64 = 1;
/// Task that watches over a path that is up.
pub(crate) const WATCH: u64 = 2;

/// The state of a path and what decides about its next one.
pub(crate) struct Status {
    pub(crate) state: ClientState,
    /// Number of the present link, or of the one being set up.
    pub(crate) serial: u32,
    /// Attempts to connect since the path was up.
    pub(crate) attempts: Attempts,
    /// Attempts to connect that have ended, ever; wraps.
    pub(crate) rounds: u32,
    /// The next attempt is not to be put off.
    pub(crate) eager: bool,
    /// The link being set up may create the session on the server.
    pub(crate) first: bool,
}

/// What is known about the device of a path since it was connected first.
pub(crate) struct Hca {
    /// The device; `None` before.
    pub(crate) device: Option<Arc<Device>>,
    /// The port of it.
    pub(crate) port: u32,
}

/// A path of a session.
#[pin_data]
pub(crate) struct Path {
    /// Its session; the session lets go of the path when the path is removed.
    pub(crate) session: Arc<Session>,
    pub(crate) uuid: [u8; 16],
    /// Poll connections, beside the one for messages and those of the CPUs.
    pub(crate) poll_connections: u32,
    /// Addresses; the source is the one that the path was really bound to, once it was.
    #[pin]
    pub(crate) addrs: SpinLockBh<PathAddrs>,
    #[pin]
    pub(crate) hca: SpinLockBh<Hca>,
    #[pin]
    pub(crate) status: SpinLockBh<Status>,
    /// Woken when `status` changed or a step of setting up is done.
    #[pin]
    pub(crate) changed: WaitQueue,
    /// The link. The lock is held while one is set up or taken down.
    #[pin]
    pub(crate) link: Mutex<Option<Arc<Link>>>,
    pub(crate) stats: Stats,
    /// Nanoseconds from the last heartbeat to its answer.
    pub(crate) latency: Atomic<u64>,
    /// The directory below `paths`.
    #[pin]
    pub(crate) files: Mutex<Option<PathFiles>>,
    #[pin]
    recovery: Task<Path, RECOVERY>,
    #[pin]
    reconnect: Task<Path, RECONNECT>,
    #[pin]
    watch: Task<Path, WATCH>,
}

weft::impl_has_task! { impl HasTask<0> for Path { self.recovery } }
weft::impl_has_task! { impl HasTask<1> for Path { self.reconnect } }
weft::impl_has_task! { impl HasTask<2> for Path { self.watch } }

impl Path {
    /// Makes a path that is about to be connected.
    pub(crate) fn new(session: &Arc<Session>, addrs: PathAddrs) -> Result<Arc<Self>> {
        let stats = Stats::new()?;
        let urgent = session.module.urgent.clone();
        let patient = session.module.patient.clone();
        Arc::pin_init(
            pin_init!(Self {
                session: session.clone(),
                uuid: crate::uuid::random(),
                poll_connections: session.poll_queues,
                addrs <- new_spinlock_bh!(addrs, "rtrs_path_addrs"),
                hca <- new_spinlock_bh!(Hca { device: None, port: 0 }, "rtrs_path_hca"),
                status <- new_spinlock_bh!(Status {
                    state: ClientState::Connecting,
                    serial: 0,
                    attempts: Attempts::new(),
                    rounds: 0,
                    eager: false,
                    first: false,
                }, "rtrs_path_status"),
                changed <- new_wait_queue!("rtrs_path_changed"),
                link <- new_mutex!(None, "rtrs_path_link"),
                stats,
                latency: Atomic::new(0),
                files <- new_mutex!(None, "rtrs_path_files"),
                recovery <- new_task!(urgent.clone(), "rtrs_recovery"),
                reconnect <- new_task!(patient, "rtrs_reconnect"),
                watch <- new_task!(urgent, "rtrs_watch"),
            }),
            GFP_KERNEL,
        )
    }

    /// The state now.
    pub(crate) fn state(&self) -> ClientState {
        self.status.lock().state
    }

    /// Whether requests can go this way.
    pub(crate) fn is_connected(&self) -> bool {
        self.state() == ClientState::Connected
    }

    /// Whether link number `serial` is still being set up.
    pub(crate) fn is_connecting(&self, serial: u32) -> bool {
        let status = self.status.lock();
        status.state == ClientState::Connecting && status.serial == serial
    }

    /// Lets something happen to the path: the state before, or what it is if nothing came of it. Up to softirq.
    pub(crate) fn step(&self, event: ClientEvent) -> Result<ClientState, ClientState> {
        let old = {
            let mut status = self.status.lock();
            let old = status.state;
            status.state = old.step(event).map_err(|none| none.state)?;
            old
        };
        self.changed.wake_all();
        Ok(old)
    }

    /// As [`Self::step`], if the path is in a certain state; whether it was. Up to softirq.
    pub(crate) fn step_from(&self, from: ClientState, event: ClientEvent) -> bool {
        let done = {
            let mut status = self.status.lock();
            let new = (status.state == from).then(|| from.step(event));
            match new {
                Some(Ok(new)) => {
                    status.state = new;
                    true
                }
                _ => false,
            }
        };
        if done {
            self.changed.wake_all();
        }
        done
    }

    /// As [`Self::step`], if link number `serial` is the one that it happens to. Up to softirq.
    pub(crate) fn step_link(
        &self,
        serial: u32,
        event: ClientEvent,
    ) -> Result<ClientState, ClientState> {
        let old = {
            let mut status = self.status.lock();
            let old = status.state;
            if status.serial != serial {
                return Err(old);
            }
            status.state = old.step(event).map_err(|none| none.state)?;
            old
        };
        self.changed.wake_all();
        Ok(old)
    }

    /// Link number `serial` is of no use any more. Up to softirq; says nothing, and does nothing the second time.
    ///
    /// Returns whether this was news.
    pub(crate) fn fail(self: &Arc<Self>, serial: u32) -> bool {
        let old = self.step_link(serial, ClientEvent::Failed);
        if old == Ok(ClientState::Connected) {
            Task::<Self, RECOVERY>::schedule(self, 0);
        }
        old.is_ok()
    }

    /// As [`Self::fail`], for whatever link there is.
    pub(crate) fn fail_present(self: &Arc<Self>) -> bool {
        let serial = self.status.lock().serial;
        self.fail(serial)
    }

    /// Begins to set up a link: its serial number, and whether it may create the session on the server.
    ///
    /// It may if no other path is up. A path that joins others must find their session: if the server does not know
    /// that, it was restarted and the others are dead without having noticed yet.
    pub(crate) fn next_link(&self) -> (u32, bool) {
        let first = !self.session.is_up_without(self);
        let mut status = self.status.lock();
        status.serial = status.serial.wrapping_add(1);
        status.first = first;
        (status.serial, first)
    }

    /// The server does not know the session that link number `serial` was to join. Sleeps.
    pub(crate) fn session_unknown(&self, serial: u32) {
        {
            let mut status = self.status.lock();
            if status.serial != serial || status.first {
                return;
            }
            // The next attempt may create it.
            status.eager = true;
        }
        self.session.server_forgot();
    }

    /// Does not connect again by itself: the server does not fit the session any more.
    pub(crate) fn give_up(&self) {
        self.status.lock().attempts.give_up();
    }

    /// Closes the path for good and ends its tasks. Sleeps.
    pub(crate) fn retire(self: &Arc<Self>) {
        while self.step(ClientEvent::Remove).is_err() && self.state() != ClientState::Dead {
            self.close();
        }
        Task::<Self, WATCH>::cancel_sync(self);
        Task::<Self, RECONNECT>::cancel_sync(self);
        Task::<Self, RECOVERY>::cancel_sync(self);
    }

    /// If the path is on `device`, which goes away, it breaks. Up to softirq.
    pub(crate) fn leave_device(self: &Arc<Self>, device: &Arc<Device>) {
        let hca = self.hca.lock();
        let is_there = hca
            .device
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, device));
        drop(hca);
        if is_there {
            self.fail_present();
        }
    }

    /// Counts the end of an attempt to connect.
    pub(crate) fn round_over(&self) {
        {
            let mut status = self.status.lock();
            status.rounds = status.rounds.wrapping_add(1);
        }
        self.changed.wake_all();
    }

    /// The latency last measured, in nanoseconds.
    pub(crate) fn latency(&self) -> u64 {
        // ORDERING: A number on its own.
        self.latency.load(Relaxed)
    }
}

/// What a path is called in the log. To show it takes no lock, since the log is written with interrupts off.
pub(crate) struct Label<'a> {
    session: &'a str,
    addrs: PathAddrs,
}

impl Path {
    /// What it is called in the log.
    pub(crate) fn label(&self) -> Label<'_> {
        Label {
            session: self.session.name(),
            addrs: *self.addrs.lock(),
        }
    }
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!("{} {}", self.session, Plain(self.addrs.shown())))
    }
}
