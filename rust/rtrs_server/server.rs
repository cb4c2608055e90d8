// SPDX-License-Identifier: GPL-2.0

//! A server: where it listens, and what all its sessions share.
//!
//! C counterpart: `struct rtrs_srv_ctx`, `rtrs_srv_open`, `rtrs_srv_close`. C has one for the machine; here each user
//! opens its own, on a port of its own.

use crate::{
    accept::Listening,
    budget::Budget,
    config::Config,
    registry::Registry,
    user::ServerUser,
    Core,
    CORE, //
};
use core::mem;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};
use weft::{
    mm,
    net::ns::ActiveNet,
    new_task, new_wait_queue,
    sync::wait::{
        Mode,
        WaitQueue,
        WaitResult, //
    },
    time,
    workqueue::{
        Task,
        TaskItem, //
    },
};
use weft_proto::rtrs::ownership::PathId;
use weft_rdma::{
    addr::Addr,
    cm::{
        CmId,
        PortSpace, //
    },
    device::Device,
    watch::{
        Watch,
        Watcher, //
    },
};

/// Connection requests that may wait for their turn.
const BACKLOG: u16 = 64;
/// Milliseconds between attempts to listen.
const LISTEN_RETRY_MS: u32 = 5_000;
/// Milliseconds after which a close that waits for operations says so.
const CLOSE_NOTE_MS: u32 = 30_000;

/// Where a server listens.
#[derive(Default)]
struct Listeners {
    /// Devices that can carry the protocol.
    devices: usize,
    ip: Option<CmId>,
    ib: Option<CmId>,
}

/// What sessions, listeners and the owner of a server share.
#[pin_data]
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    /// Taken out when no session is left, so that whoever drops this last runs nothing of the user.
    #[pin]
    user: Mutex<Option<Arc<dyn ServerUser>>>,
    /// Memory that all clients may cost together.
    pub(crate) budget: Arc<Budget>,
    port: u16,
    #[pin]
    pub(crate) registry: Registry,
    #[pin]
    listeners: Mutex<Listeners>,
    /// Sessions that exist.
    alive: Atomic<i32>,
    /// Woken when the last one is gone.
    #[pin]
    idle: WaitQueue,
    paths: Atomic<u64>,
    #[pin]
    listen_task: Task<Shared>,
}

weft::impl_has_task! { impl HasTask<0> for Shared { self.listen_task } }

impl Shared {
    fn new(core: Arc<Core>, user: Arc<dyn ServerUser>, port: u16) -> Result<Arc<Self>> {
        // Half of the memory: the rest is for what the server exports.
        let budget = Budget::new(mm::total_bytes() / 2)?;
        let queue = core.queue.clone();
        Arc::pin_init(
            pin_init!(Self {
                core,
                user <- new_mutex!(Some(user), "rtrs_server_user"),
                budget,
                port,
                registry <- Registry::new(),
                listeners <- new_mutex!(Listeners::default(), "rtrs_listeners"),
                alive: Atomic::new(0),
                idle <- new_wait_queue!("rtrs_server"),
                paths: Atomic::new(0),
                listen_task <- new_task!(queue, "rtrs_listen"),
            }),
            GFP_KERNEL,
        )
    }

    /// Sizes and habits.
    pub(crate) fn config(&self) -> &Config {
        &self.core.config
    }

    /// The user; `None` when the server is closed.
    pub(crate) fn user(&self) -> Option<Arc<dyn ServerUser>> {
        self.user.lock().clone()
    }

    /// A number that no path had before.
    pub(crate) fn next_path(&self) -> PathId {
        // ORDERING: A counter.
        self.paths.fetch_add(1, Relaxed)
    }

    /// Listens where it does not yet, if there is a device; tries again later if it cannot.
    fn listen(self: &Arc<Self>) {
        let mut listeners = self.listeners.lock();
        if listeners.devices == 0 {
            return;
        }
        if listeners.ip.is_none() {
            match self.listener(PortSpace::Tcp, Addr::any_v6(self.port)) {
                Ok(id) => listeners.ip = Some(id),
                Err(error) => {
                    pr_warn!(
                        "cannot listen on port {}: {error:?}, trying again\n",
                        self.port
                    );
                    Task::schedule(self, time::msecs_to_jiffies(LISTEN_RETRY_MS));
                }
            }
        }
        if listeners.ib.is_none() {
            match self.listener(PortSpace::Ib, Addr::any_gid(self.port)) {
                Ok(id) => listeners.ib = Some(id),
                Err(error) => pr_info!("no InfiniBand addresses: {error:?}\n"),
            }
        }
    }

    fn listener(self: &Arc<Self>, space: PortSpace, addr: Addr) -> Result<CmId> {
        let handler = Arc::new(Listening(self.clone()), GFP_KERNEL)?;
        let id = CmId::new(ActiveNet::init(), &self.core.queue, space, handler)?;
        id.bind_addr(&addr)?;
        id.listen(BACKLOG)?;
        Ok(id)
    }

    /// Listens no more. Sleeps until connection requests that are looked at are through.
    fn stop_listening(&self) {
        let listeners = mem::take(&mut *self.listeners.lock());
        drop(listeners);
    }

    /// Has all paths closed that `which` names.
    fn close_paths(&self, reason: &str, which: impl Fn(&Device) -> bool) {
        self.registry.for_each_path(|path| {
            if which(&path.ends.device) {
                path.close(reason);
            }
        });
    }
}

impl TaskItem<0> for Shared {
    fn run(this: Arc<Self>) {
        this.listen();
    }
}

/// Tells servers of devices.
struct Devices(Arc<Shared>);

/// Whether a device can carry the protocol; what is missing if not.
fn usable(device: &Device) -> Result<(), &'static str> {
    let limits = device.limits();
    if !limits.write_imm {
        Err("RDMA WRITE with immediate")
    } else if !limits.fast_reg {
        Err("fast registration of memory")
    } else {
        Ok(())
    }
}

impl Watcher for Devices {
    fn arrived(&self, device: &Arc<Device>) {
        if let Err(missing) = usable(device) {
            pr_info!(
                "{}: not served, the device has no {missing}\n",
                device.name()
            );
            return;
        }
        self.0.listeners.lock().devices += 1;
        self.0.listen();
    }

    fn removed(&self, device: &Arc<Device>) {
        if usable(device).is_err() {
            return;
        }
        let last = {
            let mut listeners = self.0.listeners.lock();
            listeners.devices = listeners.devices.saturating_sub(1);
            listeners.devices == 0
        };
        if last {
            self.0.stop_listening();
        }
        self.0.close_paths("its device goes away", |other| {
            core::ptr::eq(other, &**device)
        });
    }
}

/// Counts a session of a server.
pub(crate) struct Alive(Arc<Shared>);

impl Alive {
    pub(crate) fn new(server: &Arc<Shared>) -> Self {
        // ORDERING: The registry's lock orders this before the server is closed.
        server.alive.fetch_add(1, Relaxed);
        Self(server.clone())
    }

    /// The server.
    pub(crate) fn server(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        // ORDERING: `Full` orders all use of the session before its count is gone.
        if self.0.alive.fetch_sub(1, Full) == 1 {
            self.0.idle.wake_all();
        }
    }
}

/// A server of RTRS: it listens on a port of all RDMA devices, for as long as it is there.
///
/// Dropping it closes all sessions, and waits for them and for the operations that are under way.
pub struct Server {
    shared: Arc<Shared>,
    /// `None` only in the drop.
    watch: Option<Watch>,
}

impl Server {
    /// Opens a server for `user`. Sleeps.
    ///
    /// It listens as soon as there is a device that can carry the protocol. A port that is taken is tried again from
    /// time to time.
    pub fn open(user: Arc<dyn ServerUser>, port: u16) -> Result<Self> {
        let core = CORE.get().ok_or(ENODEV)?;
        let shared = Shared::new(core, user, port)?;
        let devices = Arc::new(Devices(shared.clone()), GFP_KERNEL)?;
        let mut server = Self {
            shared,
            watch: None,
        };
        server.watch = Some(Watch::register(devices)?);
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.watch.take());
        let shared = &self.shared;
        Task::cancel_sync(shared);
        shared.stop_listening();
        shared.registry.close();
        shared.close_paths("the server is closed", |_| true);
        let limit = time::msecs_to_jiffies(CLOSE_NOTE_MS);
        loop {
            let waited = shared.idle.wait(
                Mode::Uninterruptible,
                i64::try_from(limit).unwrap_or(i64::MAX),
                // ORDERING: `Full` pairs with the drop of `Alive`.
                || shared.alive.fetch_add(0, Full) == 0,
            );
            match waited {
                WaitResult::Ready(_) => break,
                WaitResult::TimedOut | WaitResult::Signal(_) => {
                    pr_info!("closing waits for operations that are under way\n");
                }
            }
        }
        let user = shared.user.lock().take();
        drop(user);
    }
}
