// SPDX-License-Identifier: GPL-2.0

//! A session: one client machine, over any number of paths.
//!
//! C counterpart: `struct rtrs_srv_sess`.

use crate::{
    chunks::{
        Chunks,
        Claim, //
    },
    pool::Pool,
    server::{
        Alive,
        Shared, //
    },
    sysfs::SessionDir,
    user::SessionUser, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        Mutex,
        SetOnce, //
    },
};
use weft::{
    new_task,
    workqueue::{
        Task,
        TaskItem, //
    },
};
use weft_proto::rtrs::{
    conn::SessionUuid,
    name::SessionName, //
};

/// Paths that are up, and the user from the first until there are none any more.
struct Link {
    up: usize,
    user: Option<Arc<dyn SessionUser>>,
}

/// A session of a client.
///
/// It exists while a path of it or an [`Operation`](crate::operation::Operation) does.
#[pin_data]
pub struct Session {
    /// Keeps the server from going away first.
    alive: Alive,
    pub(crate) uuid: SessionUuid,
    pub(crate) chunks: Chunks,
    name: SetOnce<SessionName>,
    #[pin]
    link: Mutex<Link>,
    /// The last path that was up is gone, and the user with it.
    ended: Atomic<bool>,
    /// Memory that all paths share; only without `always_invalidate`.
    #[pin]
    pool: Mutex<Option<Arc<Pool>>>,
    /// The directory in sysfs, while a path has one in it.
    #[pin]
    pub(crate) dir: Mutex<SessionDir>,
    #[pin]
    waiting: Task<Session>,
}

weft::impl_has_task! { impl HasTask<0> for Session { self.waiting } }

impl Session {
    /// A session without paths. May sleep.
    pub(crate) fn new(server: &Arc<Shared>, uuid: SessionUuid) -> Result<Arc<Self>> {
        let chunks = Chunks::new(server.config().geometry.queue_depth())?;
        Arc::pin_init(
            pin_init!(Self {
                alive: Alive::new(server),
                uuid,
                chunks,
                name: SetOnce::new(),
                link <- new_mutex!(Link { up: 0, user: None }, "rtrs_session_link"),
                ended: Atomic::new(false),
                pool <- new_mutex!(None, "rtrs_session_pool"),
                dir <- new_mutex!(SessionDir::default(), "rtrs_session_dir"),
                waiting <- new_task!(server.core.queue.clone(), "rtrs_session"),
            }),
            GFP_KERNEL,
        )
    }

    /// The server it belongs to.
    pub(crate) fn server(&self) -> &Arc<Shared> {
        self.alive.server()
    }

    /// The name that the client gave it; empty before its first path is up.
    pub fn name(&self) -> &str {
        self.name.as_ref().map_or("", SessionName::as_str)
    }

    /// How many requests the client may have under way.
    pub fn queue_depth(&self) -> u16 {
        self.server().config().geometry.queue_depth()
    }

    /// Gives the session its name; `false` if it has another.
    pub(crate) fn set_name(&self, name: &SessionName) -> bool {
        self.name.populate(*name) || self.name() == name.as_str()
    }

    /// Whether all paths are gone. Then no other joins: a client that believed one of them to be up would not introduce
    /// itself anew, and a new user would know nothing of what it has opened.
    pub(crate) fn has_ended(&self) -> bool {
        // ORDERING: `Acquire` pairs with `path_down`.
        self.ended.load(Acquire)
    }

    /// A path came up: the user of the session. `ESHUTDOWN` once the session has ended. Sleeps.
    pub(crate) fn path_up(self: &Arc<Self>) -> Result<Arc<dyn SessionUser>> {
        let mut link = self.link.lock();
        if self.has_ended() {
            return Err(ESHUTDOWN);
        }
        let user = match &link.user {
            Some(user) => user.clone(),
            None => self.server().user().ok_or(ESHUTDOWN)?.connected(self)?,
        };
        link.user = Some(user.clone());
        link.up += 1;
        Ok(user)
    }

    /// A path that was up is gone. Sleeps.
    pub(crate) fn path_down(&self) {
        let mut link = self.link.lock();
        link.up = link.up.saturating_sub(1);
        if link.up == 0 {
            // ORDERING: `Release` pairs with `has_ended`; `path_up` is ordered by the lock.
            self.ended.store(true, Release);
            if let Some(user) = link.user.take() {
                user.disconnected();
            }
        }
    }

    /// Memory for a path. Sleeps.
    ///
    /// With `always_invalidate` each path has memory of its own: a key that the client got on one path must not reach
    /// what an operation of another path works on.
    pub(crate) fn memory(&self) -> Result<Arc<Pool>> {
        let server = self.server();
        if server.config().always_invalidate {
            return Pool::new(server.config(), &server.budget);
        }
        let mut shared = self.pool.lock();
        if let Some(pool) = &*shared {
            return Ok(pool.clone());
        }
        let pool = Pool::new(server.config(), &server.budget)?;
        *shared = Some(pool.clone());
        Ok(pool)
    }

    /// The last path is gone: gives memory back that no operation uses. Sleeps.
    pub(crate) fn retire(&self) {
        let pool = self.pool.lock().take();
        drop(pool);
    }

    /// Has requests executed that waited for a chunk that is free now. Any context.
    pub(crate) fn execute_waiting(self: &Arc<Self>) {
        Task::schedule(self, 0);
    }
}

impl TaskItem<0> for Session {
    /// Executes what waits and can go on. Seldom: only after a path failed under load.
    fn run(this: Arc<Self>) {
        for chunk in this.server().config().geometry.chunks() {
            if let Some(claim) = Claim::next(&this, chunk) {
                crate::request::execute(claim);
            }
        }
    }
}
