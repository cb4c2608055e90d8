// SPDX-License-Identifier: GPL-2.0

//! What the user of a session tells it and is told.
//!
//! C counterpart: `struct rtrs_clt_ops`.

use crate::{
    addr::PathAddrs,
    io::Io, //
};

/// What happened to a session as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// Requests can flow. After a [`Self::Disconnected`] the server may be another one, or may have forgotten
    /// everything it was told: see [`User::link`].
    Connected,
    /// No path is left. Requests fail or wait, as the session is set.
    Disconnected,
}

/// The user of a session.
pub trait User: Send + Sync + 'static {
    /// The session went up or down; process context, may sleep, never called twice at a time, no lock is held.
    ///
    /// The events alternate, beginning with the `Connected` that comes before `Session::open` returns. During a later
    /// `Connected` no [`Io`] reaches the server: the user introduces itself to the server again with `Session::call`,
    /// and what waits is let through when this returns. An `Io` that was made before the session went down never
    /// reaches the server after it came up (see [`Io::life`]).
    fn link(&self, event: LinkEvent);

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
