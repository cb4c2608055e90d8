// SPDX-License-Identifier: GPL-2.0

//! A session: the bond of this host with one server, over any number of paths.
//!
//! C counterpart: `struct rtrs_clt_sess`, `rtrs_clt_open`, `rtrs_clt_close`, `rtrs_clt_query`.

use crate::{
    addr::PathAddrs,
    board::{
        Board,
        EVENTS, //
    },
    call::{
        desks,
        Desks, //
    },
    module::Module,
    parking::{
        Parking,
        PARKED, //
    },
    path::Path,
    routes::Routes,
    settings::Settings,
    sysfs::SessionFiles,
    user::{
        OpenParams,
        User, //
    }, //
};
use kernel::{
    error::code::{
        ECONNABORTED,
        EEXIST, //
    },
    fmt,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        Mutex, //
    }, //
};
use weft::{
    mm::noio,
    new_snapshot,
    new_spinlock_bh,
    new_task,
    sync::{
        bh::SpinLockBh,
        snapshot::Snapshot, //
    },
    workqueue::Task, //
};
use weft_proto::rtrs::{
    conn::{
        Accepted,
        Agreed,
        ConnectError, //
    },
    name::SessionName,
    reconnect::Limit,
    wire::MAX_PATHS, //
};

/// Most segments of a request: with 4 KiB each that is 512 KiB.
pub(crate) const MOST_SEGMENTS: u16 = 128;
/// Bytes of a segment: the page size of all memory regions, whatever a page is here.
pub(crate) const SEGMENT: u32 = 4096;

/// What all paths of a session have in common.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) agreed: Agreed,
    pub(crate) max_segments: u16,
}

/// What a user of a session must know to make requests.
#[derive(Clone, Copy, Debug)]
pub struct Attrs {
    /// Chunks of the server: requests that can be under way.
    pub queue_depth: u16,
    /// Longest data of a request, in bytes.
    pub max_io_size: u32,
    /// Most segments of a request's data. They are 4 KiB each, and all but the ends must be full.
    pub max_segments: u16,
    /// Slots from 0 to here are the session's own.
    pub admin: u16,
}

/// A session.
#[pin_data]
pub struct Session {
    pub(crate) name: SessionName,
    pub(crate) uuid: [u8; 16],
    pub(crate) port: u16,
    /// Seconds between two attempts to connect a path.
    pub(crate) reconnect_delay: u8,
    /// Poll connections of each path.
    pub(crate) poll_queues: u32,
    pub(crate) settings: Settings,
    /// Who opened it. The user has a reference to the session, too; that circle ends with [`Session::close`].
    #[pin]
    user: SpinLockBh<Option<Arc<dyn User>>>,
    /// The module's queues and lists, which outlive every session.
    pub(crate) module: Arc<Module>,
    #[pin]
    limits: SpinLockBh<Option<Limits>>,
    #[pin]
    pub(crate) board: Mutex<Board>,
    #[pin]
    pub(crate) routes: Snapshot<Routes>,
    #[pin]
    pub(crate) parking: Parking,
    #[pin]
    pub(crate) desks: Desks,
    /// Where the round-robin of each CPU is.
    pub(crate) cursors: KVec<Atomic<u32>>,
    #[pin]
    pub(crate) files: Mutex<Option<SessionFiles>>,
    closed: Atomic<bool>,
    /// The user was told of the session: what was agreed on with the server stays.
    pub(crate) started: Atomic<bool>,
    #[pin]
    events: Task<Session, EVENTS>,
    #[pin]
    parked: Task<Session, PARKED>,
}

weft::impl_has_task! { impl HasTask<0> for Session { self.events } }
weft::impl_has_task! { impl HasTask<1> for Session { self.parked } }

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_str())
    }
}

impl Session {
    /// Opens a session: connects all its paths and shows it in sysfs. Sleeps, up to minutes if the server is silent.
    ///
    /// `EINVAL` for a name or a number of paths that cannot be, `EEXIST` if there is a session of that name. If one path
    /// does not come up its error is returned, and nothing is left.
    pub fn open(params: &OpenParams<'_>, user: Arc<dyn User>) -> Result<Arc<Self>> {
        if params.paths.is_empty() || params.paths.len() > MAX_PATHS {
            return Err(EINVAL);
        }
        let module = Module::get().ok_or(ENODEV)?;
        let session = Self::new(params, user, module.clone())?;
        module.add(&session)?;
        let result = session.open_paths(params.paths);
        if let Err(error) = result {
            session.close();
            return Err(error);
        }
        let attrs = session.attrs();
        let reserved = attrs.and_then(|attrs| session.parking.reserve(attrs.queue_depth));
        if let Err(error) = reserved {
            session.close();
            return Err(error);
        }
        session.start();
        Ok(session)
    }

    fn new(params: &OpenParams<'_>, user: Arc<dyn User>, module: Arc<Module>) -> Result<Arc<Self>> {
        let name = SessionName::new(params.name.as_bytes()).map_err(|error| {
            pr_err!("{}\n", weft::fmt::Plain(error));
            EINVAL
        })?;
        let routes = Routes::none()?;
        let board = Board::new()?;
        let cursors = crate::cpus::one_each(|| Atomic::new(0))?;
        let (urgent, patient) = (module.urgent.clone(), module.patient.clone());
        Arc::pin_init(
            try_pin_init!(Self {
                name,
                uuid: crate::uuid::random(),
                port: params.port,
                reconnect_delay: params.reconnect_delay,
                poll_queues: params.poll_queues,
                settings: Settings::new(reconnect_limit(params.max_reconnect_attempts)),
                user <- new_spinlock_bh!(Some(user), "rtrs_user"),
                module,
                limits <- new_spinlock_bh!(None, "rtrs_limits"),
                board <- new_mutex!(board, "rtrs_board"),
                routes <- new_snapshot!(routes, "rtrs_routes"),
                parking <- Parking::new(),
                desks <- Desks::new(),
                cursors,
                files <- new_mutex!(None, "rtrs_session_files"),
                closed: Atomic::new(false),
                started: Atomic::new(false),
                events <- new_task!(patient, "rtrs_events"),
                parked <- new_task!(urgent, "rtrs_parked"),
            }? Error),
            GFP_KERNEL,
        )
    }

    fn open_paths(self: &Arc<Self>, paths: &[PathAddrs]) -> Result {
        *self.files.lock() = Some(SessionFiles::new(self)?);
        for addrs in paths {
            self.add_path(*addrs)?;
        }
        Ok(())
    }

    /// Adds a path and connects it. Sleeps.
    ///
    /// `EEXIST` if there is a path with these addresses, `EINVAL` if there are too many, `ECONNABORTED` if the session
    /// is closed; else how connecting it ended.
    pub(crate) fn add_path(self: &Arc<Self>, addrs: PathAddrs) -> Result {
        let path = Path::new(self, addrs)?;
        // I/O may wait for the next who wants this lock.
        noio::scope(|| {
            let mut board = self.board.lock();
            if board.closed {
                return Err(ECONNABORTED);
            }
            if board.paths.len() >= MAX_PATHS {
                return Err(EINVAL);
            }
            if board
                .paths
                .iter()
                .any(|other| other.addrs.lock().same_hosts(&addrs))
            {
                return Err(EEXIST);
            }
            Ok(board.paths.push(path.clone(), GFP_KERNEL)?)
        })?;
        let result = path.open().and_then(|()| self.show_path(&path));
        if result.is_err() {
            self.remove_path(&path);
        }
        result
    }

    /// Makes the directory of a path.
    fn show_path(&self, path: &Arc<Path>) -> Result {
        let files = self.files.lock();
        let parent = files.as_ref().ok_or(ECONNABORTED)?;
        let made = parent.path(path)?;
        *path.files.lock() = Some(made);
        Ok(())
    }

    /// Closes a path and forgets it. Sleeps.
    pub(crate) fn remove_path(self: &Arc<Self>, path: &Arc<Path>) {
        path.retire();
        let files = path.files.lock().take();
        drop(files);
        let mut board = self.board.lock();
        board.paths.retain(|known| !Arc::ptr_eq(known, path));
    }

    /// Closes the session: no request is under way any more when this returns. Sleeps for some seconds if the server
    /// is silent.
    ///
    /// What was under way ends with `ECONNABORTED`. The user is called no more. Must not be called while the
    /// user is being called.
    pub fn close(self: &Arc<Self>) {
        // ORDERING: `Release`: a hint that ends waits early; the lists are closed under their locks.
        self.closed.store(true, Release);
        let paths = {
            let mut board = self.board.lock();
            board.closed = true;
            core::mem::take(&mut board.paths)
        };
        for path in &paths {
            path.start_close();
        }
        // Waits for what is being written to the files, which the closed paths let end.
        let files = self.files.lock().take();
        for path in &paths {
            path.retire();
            let own = path.files.lock().take();
            drop(own);
        }
        drop(files);
        self.kick_parked();
        Task::<Self, EVENTS>::cancel_sync(self);
        Task::<Self, PARKED>::cancel_sync(self);
        self.fail_parked();
        drop(self.user.lock().take());
        self.module.remove(self);
    }

    /// Whether the session is closed, or about to be.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // ORDERING: `Acquire` pairs with `close`.
        self.closed.load(Acquire)
    }

    /// Whether the user was not told of the session yet.
    fn is_starting(&self) -> bool {
        // ORDERING: `Acquire` pairs with `start`.
        !self.started.load(Acquire)
    }

    /// Who uses the session; `None` once it is closed.
    pub(crate) fn user(&self) -> Option<Arc<dyn User>> {
        self.user.lock().clone()
    }

    /// What requests can be like; `ENOTCONN` before the first path was connected. Any context up to softirq.
    pub fn attrs(&self) -> Result<Attrs> {
        let limits = self.limits().ok_or(ENOTCONN)?;
        let most = u32::from(limits.max_segments).saturating_mul(SEGMENT);
        Ok(Attrs {
            queue_depth: limits.agreed.queue_depth,
            max_io_size: limits.agreed.max_io_size.min(most),
            max_segments: limits.max_segments,
            admin: desks(limits.agreed.queue_depth),
        })
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// What all paths have in common; `None` before the first was connected.
    pub(crate) fn limits(&self) -> Option<Limits> {
        *self.limits.lock()
    }

    /// Compares what a server says on a new connection with what the session lives by.
    ///
    /// Fails if requests that the user may have made would not fit: with another queue depth tags and chunks are not the
    /// same any more, with smaller chunks requests are too large.
    pub(crate) fn fit(&self, accepted: &Accepted, max_segments: u16) -> Result<(), ConnectError> {
        let mut limits = self.limits.lock();
        *limits = Some(match *limits {
            None => Limits {
                agreed: Agreed::first(accepted),
                max_segments,
            },
            Some(known) if self.is_starting() => Limits {
                agreed: known.agreed.with(accepted)?,
                max_segments: known.max_segments.min(max_segments),
            },
            Some(known) => {
                accepted.continues(&known.agreed)?;
                known
            }
        });
        Ok(())
    }
}

/// The limit that a number stands for: negative ones stand for none.
fn reconnect_limit(number: i16) -> Limit {
    u16::try_from(number).map_or(Limit::Forever, Limit::Times)
}
