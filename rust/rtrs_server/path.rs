// SPDX-License-Identifier: GPL-2.0

//! A path: the connections between one address of a client and one of this machine, in one life.
//!
//! C counterpart: `struct rtrs_srv_path`. A path is made by the first connection request for it (`accept.rs`), set up by
//! the information request on its first connection (`setup.rs`), and ends in its closing task (`close.rs`), whoever
//! wants it closed. A client that comes back makes a new path.

use crate::{
    conn::Conn,
    pulse::Pulse,
    session::Session,
    setup::Setup,
    stats::Stats,
    sysfs::PathDir, //
};
use core::net::SocketAddr;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};
use weft::{
    fmt::Plain,
    new_task,
    new_wait_queue,
    pr_ratelimited,
    sync::wait::WaitQueue,
    time,
    workqueue::Task, //
};
use weft_proto::rtrs::{
    addr::{
        self,
        PathName, //
    },
    conn::{
        ConnectRequest,
        PathUuid, //
    },
    ownership::PathId,
    state::{
        ServerEvent,
        ServerState, //
    }, //
};
use weft_rdma::{
    addr::Addr,
    device::Device,
    pd::Pd, //
};

/// The two ends of a path and the device in between, as its files in sysfs show them.
pub(crate) struct Ends {
    /// The client.
    pub(crate) client: Addr,
    /// This machine.
    pub(crate) server: Addr,
    /// The device here; keeps nothing of it.
    pub(crate) device: Arc<Device>,
    /// Its port.
    pub(crate) port: u32,
}

impl Ends {
    /// Whether both addresses are the same, ports aside.
    pub(crate) fn same_addresses(&self, other: &Self) -> bool {
        text(&self.client) == text(&other.client) && text(&self.server) == text(&other.server)
    }

    /// The name of a path between these ends: `<client>@<server>`.
    pub(crate) fn name(&self) -> Plain<PathName> {
        Plain(PathName {
            src: text(&self.client),
            dst: text(&self.server),
        })
    }

    /// The client's address as text.
    pub(crate) fn client_text(&self) -> Plain<addr::Addr> {
        Plain(text(&self.client))
    }

    /// The server's address as text.
    pub(crate) fn server_text(&self) -> Plain<addr::Addr> {
        Plain(text(&self.server))
    }
}

/// An address as users read it.
fn text(addr: &Addr) -> addr::Addr {
    match addr {
        Addr::Ip(SocketAddr::V4(addr)) => addr::Addr::V4(*addr.ip()),
        Addr::Ip(SocketAddr::V6(addr)) => addr::Addr::V6 {
            addr: *addr.ip(),
            scope_id: addr.scope_id(),
        },
        Addr::Gid(addr) => addr::Addr::Gid(addr.gid),
    }
}

/// Tasks of a path, told apart.
pub(crate) mod task {
    /// Takes the path down.
    pub(crate) const CLOSE: u64 = 0;
    /// Answers the information request.
    pub(crate) const SETUP: u64 = 1;
    /// Heartbeats, and the time limit of connecting.
    pub(crate) const TIMER: u64 = 2;
}

/// The connections of a path.
pub(crate) struct Conns {
    /// Those that exist, by number; empty when the path is being taken down.
    pub(crate) list: KVVec<Option<Arc<Conn>>>,
    /// Where the keys of this client count, and of nobody else.
    pub(crate) pd: Option<Arc<Pd>>,
}

impl Conns {
    /// Whether connection `cid` is one of the path's and does not exist yet.
    pub(crate) fn is_free(&self, cid: u16) -> bool {
        self.list.get(usize::from(cid)).is_some_and(Option::is_none)
    }

    /// Puts a connection in its place.
    pub(crate) fn put(&mut self, conn: Arc<Conn>) {
        if let Some(place) = self.list.get_mut(usize::from(conn.cid)) {
            *place = Some(conn);
        }
    }

    /// The protection domain, made for the first connection. Sleeps.
    pub(crate) fn domain(&mut self, device: &Arc<Device>) -> Result<Arc<Pd>> {
        let pd = match &self.pd {
            Some(pd) => pd.clone(),
            None => Pd::new(device)?,
        };
        self.pd = Some(pd.clone());
        Ok(pd)
    }

    /// Takes all out; none can be added after that.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            list: core::mem::take(&mut self.list),
            pd: self.pd.take(),
        }
    }
}

/// A path.
#[pin_data]
pub(crate) struct Path {
    /// Tells this life of the path from all others.
    pub(crate) id: PathId,
    pub(crate) uuid: PathUuid,
    /// Keeps the session; see `close.rs` for the end of the circle.
    pub(crate) session: Arc<Session>,
    pub(crate) ends: Ends,
    /// Connections of the path when it is complete.
    pub(crate) conn_count: u16,
    state: Atomic<i32>,
    /// Connections that were made, which costs memory; what is announced does not.
    made: Atomic<u32>,
    /// When the client last connected, in nanoseconds of the monotonic clock.
    heard: Atomic<i64>,
    /// Queue pairs are made and unmade under this lock.
    #[pin]
    pub(crate) conns: Mutex<Conns>,
    /// What the setup task is at.
    #[pin]
    pub(crate) setup: Mutex<Setup>,
    /// The number that the next path had when this one came up; 0 before.
    up: Atomic<PathId>,
    /// The user of the session was told of this path.
    pub(crate) counted: Atomic<bool>,
    /// Whether the peer is alive.
    #[pin]
    pub(crate) pulse: Pulse,
    pub(crate) stats: Stats,
    /// Its files in sysfs.
    #[pin]
    pub(crate) dir: Mutex<Option<PathDir>>,
    /// Woken when room appears in a send queue and when the path closes.
    #[pin]
    pub(crate) changed: WaitQueue,
    #[pin]
    close_task: Task<Path, { task::CLOSE }>,
    #[pin]
    setup_task: Task<Path, { task::SETUP }>,
    #[pin]
    timer_task: Task<Path, { task::TIMER }>,
}

weft::impl_has_task! { impl HasTask<0> for Path { self.close_task } }
weft::impl_has_task! { impl HasTask<1> for Path { self.setup_task } }
weft::impl_has_task! { impl HasTask<2> for Path { self.timer_task } }

impl Path {
    /// A path without connections. May sleep.
    pub(crate) fn new(
        session: &Arc<Session>,
        request: &ConnectRequest,
        ends: Ends,
    ) -> Result<Arc<Self>> {
        let server = session.server();
        let queue = &server.core.queue;
        let mut list = KVVec::with_capacity(usize::from(request.cid_num), GFP_KERNEL)?;
        for _ in 0..request.cid_num {
            list.push(None, GFP_KERNEL)?;
        }
        let stats = Stats::new()?;
        let path = Arc::pin_init(
            pin_init!(Self {
                id: server.next_path(),
                uuid: request.path,
                session: session.clone(),
                ends,
                conn_count: request.cid_num,
                state: Atomic::new(ServerState::Connecting as i32),
                made: Atomic::new(0),
                heard: Atomic::new(time::ktime_get()),
                conns <- new_mutex!(Conns { list, pd: None }, "rtrs_path_conns"),
                setup <- new_mutex!(Setup::default(), "rtrs_path_setup"),
                up: Atomic::new(0),
                counted: Atomic::new(false),
                pulse <- Pulse::new(),
                stats,
                dir <- new_mutex!(None, "rtrs_path_dir"),
                changed <- new_wait_queue!("rtrs_path"),
                close_task <- new_task!(queue.clone(), "rtrs_path_close"),
                setup_task <- new_task!(queue.clone(), "rtrs_path_setup"),
                timer_task <- new_task!(queue.clone(), "rtrs_path_timer"),
            }),
            GFP_KERNEL,
        )?;
        path.limit_connecting();
        Ok(path)
    }

    /// The state now. Any context.
    #[inline]
    pub(crate) fn state(&self) -> ServerState {
        // ORDERING: `Acquire` pairs with the transitions.
        ServerState::from_i32(self.state.load(Acquire)).unwrap_or(ServerState::Closed)
    }

    /// Whether requests are taken and answered.
    #[inline]
    pub(crate) fn is_connected(&self) -> bool {
        self.state() == ServerState::Connected
    }

    /// Tells of an event; `true` if it moves the path to another state. Any context.
    pub(crate) fn step(&self, event: ServerEvent) -> bool {
        let mut from = self.state();
        while let Ok(to) = from.step(event) {
            // ORDERING: `Full`: the state decides who may send and who takes the path down.
            match self.state.cmpxchg(from.as_i32(), to.as_i32(), Full) {
                Ok(_) => return true,
                Err(_) => from = self.state(),
            }
        }
        false
    }

    /// Has the path taken down. Any context; the first reason is the one that is logged.
    pub(crate) fn close(self: &Arc<Self>, reason: impl kernel::fmt::Display) {
        if self.step(ServerEvent::Close) {
            pr_ratelimited!(pr_info, "{}: {reason}, closing\n", **self);
            self.changed.wake_all();
            Task::<Self, { task::CLOSE }>::schedule(self, 0);
        }
    }

    /// The path is up.
    pub(crate) fn note_up(&self) {
        // ORDERING: A number by itself.
        self.up.store(self.session.server().next_path(), Relaxed);
    }

    /// The number of the first path that was begun when this one was up, if it is.
    pub(crate) fn up_before(&self) -> Option<PathId> {
        let next = self.up.load(Relaxed);
        (next != 0).then_some(next)
    }

    /// The client connected once more: the time limit begins again.
    pub(crate) fn touch(self: &Arc<Self>) {
        // ORDERING: A hint for the timer.
        self.heard.store(time::ktime_get(), Relaxed);
    }

    /// A connection is made.
    pub(crate) fn count_conn(&self) {
        // ORDERING: Counted for a limit that need not be exact.
        self.made.fetch_add(1, Relaxed);
    }

    /// Connections made so far.
    pub(crate) fn made(&self) -> usize {
        // ORDERING: As in `count_conn`.
        usize::try_from(self.made.load(Relaxed)).unwrap_or(usize::MAX)
    }

    /// Milliseconds since the client last connected.
    pub(crate) fn quiet_ms(&self) -> u64 {
        // ORDERING: As in `touch`.
        let quiet = time::ktime_get().wrapping_sub(self.heard.load(Relaxed));
        u64::try_from(quiet / 1_000_000).unwrap_or(0)
    }

    /// The connection with number `cid`, if it exists. Sleeps.
    pub(crate) fn conn(&self, cid: u16) -> Option<Arc<Conn>> {
        self.conns.lock().list.get(usize::from(cid))?.clone()
    }
}

impl kernel::fmt::Display for Path {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        let name = self.session.name();
        f.write_str(name)?;
        f.write_str(if name.is_empty() { "" } else { " " })?;
        self.ends.client_text().fmt(f)
    }
}
