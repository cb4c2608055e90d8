// SPDX-License-Identifier: GPL-2.0

//! What the connection manager says about one connection of a path.
//!
//! C counterpart: `rtrs_clt_rdma_cm_handler`. Nothing is done here but to note how far the connection has come and to
//! wake who sets it up ([`connect`](crate::connect)), or to report trouble to the path.

use crate::path::Path;
use kernel::{
    error::code::{
        ECONNABORTED,
        ECONNRESET,
        EHOSTUNREACH,
        ENODEV,
        ETIMEDOUT, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    }, //
};
use weft::{
    fmt::Plain,
    new_spinlock_bh,
    pr_ratelimited,
    sync::{
        bh::SpinLockBh,
        wait::{
            Mode,
            WaitResult, //
        }, //
    },
    time::msecs_to_jiffies, //
};
use weft_proto::{
    errno::Errno,
    rtrs::{
        conn::{
            rejection,
            Accepted,
            ConnectError, //
        },
        reconnect::STEP_TIMEOUT_MS, //
    }, //
};
use weft_rdma::cm::{
    CmHandler,
    Event,
    Rejected,
    Token, //
};

/// How far a connection has come.
#[derive(Clone, Copy)]
pub(crate) enum Progress {
    /// The address is being resolved.
    Begun,
    /// The device is known.
    Address,
    /// The way to the server is known.
    Route,
    /// The server accepted; if this is the first connection, it said this.
    Accepted(Option<Accepted>),
    /// It did not work.
    Failed(Error),
}

/// Listens to the connection manager for one connection.
#[pin_data]
pub(crate) struct Usher {
    path: Arc<Path>,
    serial: u32,
    /// Index of the connection in its path.
    cid: u16,
    #[pin]
    progress: SpinLockBh<Progress>,
    /// The connection is over, on both sides.
    over: Atomic<bool>,
}

impl Usher {
    /// For connection `cid` of link number `serial`.
    pub(crate) fn new(path: &Arc<Path>, serial: u32, cid: u16) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                path: path.clone(),
                serial,
                cid,
                progress <- new_spinlock_bh!(Progress::Begun, "rtrs_usher"),
                over: Atomic::new(false),
            }),
            GFP_KERNEL,
        )
    }

    /// How far the connection has come.
    pub(crate) fn progress(&self) -> Progress {
        *self.progress.lock()
    }

    /// Whether the connection is over. Until it was one, it is not.
    pub(crate) fn is_over(&self) -> bool {
        // ORDERING: `Acquire` pairs with `fail`.
        self.over.load(Acquire)
    }

    /// Waits until `reached` says so of the progress, the connection fails, or the path is no longer being connected.
    /// Sleeps, up to [`STEP_TIMEOUT_MS`] or until the task is killed.
    pub(crate) fn wait<R>(&self, reached: impl Fn(Progress) -> Option<R>) -> Result<R> {
        let mut result = None;
        let settled = || {
            // Asked first: a connection that fails says why before it takes the path along.
            let connecting = self.path.is_connecting(self.serial);
            result = match self.progress() {
                Progress::Failed(error) => Some(Err(error)),
                _ if !connecting => Some(Err(ECONNABORTED)),
                progress => reached(progress).map(Ok),
            };
            result.is_some()
        };
        let timeout = i64::try_from(msecs_to_jiffies(STEP_TIMEOUT_MS))?;
        match self.path.changed.wait(Mode::Killable, timeout, settled) {
            WaitResult::Ready(_) => result.unwrap_or(Err(ECONNABORTED)),
            WaitResult::TimedOut => Err(ETIMEDOUT),
            WaitResult::Signal(error) => Err(error),
        }
    }

    fn advance(&self, to: Progress) {
        {
            let mut progress = self.progress.lock();
            // What failed stays so.
            if !matches!(*progress, Progress::Failed(_)) {
                *progress = to;
            }
        }
        self.path.changed.wake_all();
    }

    fn fail(self: &Arc<Self>, error: Error, why: &str) {
        // ORDERING: `Release`: who sees it need not look at the progress.
        self.over.store(true, Release);
        self.advance(Progress::Failed(error));
        if self.path.fail(self.serial) {
            pr_ratelimited!(
                pr_info,
                "{}: connection {}: {}\n",
                self.path.label(),
                self.cid,
                why
            );
        }
    }

    /// What an answer to this connection says.
    fn parse(&self, data: &[u8]) -> Result<Option<Accepted>, ConnectError> {
        match self.cid {
            0 => Accepted::parse(data).map(Some),
            _ => Accepted::check_other(data).map(|()| None),
        }
    }

    fn accepted(self: &Arc<Self>, data: &[u8]) {
        match self.parse(data) {
            Ok(accepted) => self.advance(Progress::Accepted(accepted)),
            Err(error) => {
                pr_ratelimited!(
                    pr_err,
                    "{}: answer of the server: {}\n",
                    self.path.label(),
                    Plain(error)
                );
                self.fail(ECONNRESET, "wrong answer");
            }
        }
    }

    fn rejected(self: &Arc<Self>, rejected: &Rejected<'_>) {
        let errno = rejection(rejected.private_data);
        pr_ratelimited!(
            pr_err,
            "{}: connection {} rejected: {} ({}), {}\n",
            self.path.label(),
            self.cid,
            rejected.message,
            rejected.reason,
            Plain(errno)
        );
        if errno == Errno::ENXIO {
            self.path.session_unknown(self.serial);
        }
        self.fail(Error::from_errno(errno.code()), "rejected");
    }
}

impl CmHandler for Usher {
    fn event(self: Arc<Self>, _id: &Token<'_>, event: Event<'_>) {
        let name = event.name();
        match event {
            Event::AddrResolved => self.advance(Progress::Address),
            Event::RouteResolved => self.advance(Progress::Route),
            Event::Established(connection) => self.accepted(connection.private_data),
            Event::Rejected(rejected) => self.rejected(&rejected),
            Event::AddrError(error) if error == ENODEV => self.fail(
                EHOSTUNREACH,
                "no InfiniBand or RoCE device leads there (RTRS cannot work on iWARP)",
            ),
            Event::AddrError(_) | Event::RouteError(_) => self.fail(EHOSTUNREACH, name),
            Event::DeviceRemoval => self.fail(ENODEV, name),
            Event::ConnectResponse(_)
            | Event::ConnectError(_)
            | Event::Unreachable(_)
            | Event::Disconnected
            | Event::AddrChange
            | Event::TimewaitExit => self.fail(ECONNRESET, name),
        }
    }
}
