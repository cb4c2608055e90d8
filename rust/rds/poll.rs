// SPDX-License-Identifier: GPL-2.0

//! `poll`.
//!
//! C counterpart: `rds_poll` in `net/rds/af_rds.c`. Readable means a message, or news about congestion or about
//! zero-copy messages; writable means room in the send buffer and says nothing about the destination.

use crate::sock::{
    RdsSockExt,
    UserSock, //
};
use kernel::sync::atomic::{
    Relaxed,
    Release, //
};
use weft::net::poll::{
    PollTable,
    POLLERR,
    POLLIN,
    POLLOUT,
    POLLRDNORM,
    POLLWRBAND,
    POLLWRNORM, //
};

/// What the socket is ready for.
pub(crate) fn poll<'a>(sk: &'a UserSock, table: &PollTable<'a>) -> u32 {
    table.register_sock(sk);
    let mut mask = congestion_news(sk);
    if mask != 0 {
        // ORDERING: The next failing send sets it again.
        sk.saw_congestion.store(false, Release);
    }
    if !sk.rx.lock().messages.is_empty() || !sk.zerocopy.lock().is_empty() {
        mask |= POLLIN | POLLRDNORM;
    }
    if sk.tx.lock().has_room(sk.send_limit()) {
        mask |= POLLOUT | POLLWRNORM;
    }
    if sk.has_error() {
        mask |= POLLERR;
    }
    mask
}

/// Whether something about congestion has changed that this socket did not hear of yet.
fn congestion_news(sk: &UserSock) -> u32 {
    // ORDERING: A setting on its own.
    if sk.monitoring.load(Relaxed) {
        return if sk.monitor.lock().freed != 0 {
            POLLIN | POLLRDNORM
        } else {
            0
        };
    }
    let generation = sk.net.congestion_generation();
    // ORDERING: Two pollers of one socket may both report the change, which does no harm.
    if sk.seen_generation.load(Relaxed) == generation {
        return 0;
    }
    sk.seen_generation.store(generation, Relaxed);
    POLLIN | POLLRDNORM | POLLWRBAND
}
