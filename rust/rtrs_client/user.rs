// SPDX-License-Identifier: GPL-2.0

//! What the user of a session tells it and is told.
//!
//! C counterpart: `struct rtrs_clt_ops`.

use crate::{
    addr::PathAddrs,
    io::Io, //
};
use kernel::prelude::*;

/// The user of a session.
pub trait User: Send + Sync + 'static {
    /// Requests can flow; process context, may sleep, no lock is held.
    ///
    /// It is called before `Session::open` returns, and after each [`Self::disconnected`]: the server may be another one
    /// then, or may have forgotten everything it was told. Meanwhile no [`Io`] reaches the server: the user introduces
    /// itself to the server again with `Session::call`, and what waits is let through when this returns. An `Io` that was
    /// made before the session went down never reaches the server after it came up (see [`Io::life`]).
    ///
    /// With an error nothing is let through. All paths are given up and connected again later, as if they had broken.
    fn connected(&self) -> Result;

    /// No path is left: requests fail or wait, as the session is set. Context as above, never both at a time.
    fn disconnected(&self);

    /// A request that came back with `EAGAIN` may be tried again. Any context up to softirq; must not sleep.
    fn room(&self);

    /// A request that the session kept while it was down, or that was on its way when it went down: its message may
    /// name things that the server does not know any more. Any context up to softirq; must not sleep.
    ///
    /// A user can make the message anew and submit the request again, with the same slot. That is better than to put
    /// it back to its queue, which is what happens otherwise and may change its tag: the server may still be at work
    /// on the chunk, and can tell that only from the chunk.
    fn again(&self, io: Io) {
        io.request.requeue();
    }
}

/// How a session is opened.
pub struct OpenParams<'a> {
    /// Name of the session: 1 to 254 printable characters without `/` and `.`.
    pub name: &'a str,
    /// Paths to set up, at least one; all must come up.
    pub paths: &'a [PathAddrs],
    /// The server's port, for paths that are added later.
    pub port: u16,
    /// Seconds between two attempts to connect a path.
    pub reconnect_delay: u8,
    /// Attempts to connect a path again before it is given up; -1 for no limit.
    pub max_reconnect_attempts: i16,
    /// Connections for polled requests, beside those of each CPU.
    pub poll_queues: u32,
}
