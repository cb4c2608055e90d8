// SPDX-License-Identifier: GPL-2.0

//! Connections that the peer opened, until a path takes them.

use super::TcpPath;
use crate::accept;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rds::{
    path::Path,
    trace::Reason,
    worker::Event, //
};
use weft::{
    net::tcp::KernelSocket,
    time, //
};
use weft_proto::rds::{
    path::path_of_source_port,
    state::PathState, //
};

/// Connections of one peer that may wait for its path to be free.
const MOST_PARKED: usize = 8;

/// A connection that the peer opened.
pub(super) struct Parked {
    socket: KernelSocket,
    /// Jiffies when it came.
    since: usize,
}

impl TcpPath {
    /// Takes a connection that the peer opened. Sleeps, but waits for no peer.
    ///
    /// The peer opens one only if it has no other, so a connection that the path has now is stale: it is taken down,
    /// and what the peer knows to have arrived on it is delivered before anything of the new one.
    pub(crate) fn offer(&self, path: &Arc<Path>, socket: KernelSocket) {
        let since = time::jiffies();
        {
            let mut parked = self.0.parked.lock();
            let refusal = if path.conn.is_destroying() {
                Some(Reason::Parked)
            } else if parked.len() >= MOST_PARKED {
                Some(Reason::Crowded)
            } else {
                let room = parked.reserve(1, GFP_KERNEL);
                room.is_err().then_some(Reason::NotAccepted)
            };
            if let Some(reason) = refusal {
                drop(parked);
                path.drop_connection(reason);
                accept::refuse(socket);
                return;
            }
            // There is room, as was just made sure.
            let _ = parked.push_within_capacity(Parked { socket, since });
        }
        path.kick(Event::Accept);
    }

    fn next_parked(&self) -> Option<Parked> {
        let mut parked = self.0.parked.lock();
        if parked.is_empty() {
            return None;
        }
        parked.remove(0).ok()
    }

    /// Puts a connection back that could not be taken, before all others.
    fn park_again(&self, path: &Path, entry: Parked) {
        let mut parked = self.0.parked.lock();
        if parked.insert_within_capacity(0, entry).is_err() {
            // It came from here, so there is room unless others came meanwhile.
            path.drop_connection(Reason::Crowded);
        }
    }

    /// Passes on what is for other paths, now that this is known; path 0 gets what is for a path that there is not, and
    /// what the peer says nothing of. Sleeps.
    fn sort_parked(&self, path: &Arc<Path>) {
        while let Some((entry, target)) = self.next_stray(path) {
            let other = path.conn.path(target);
            match other.as_ref().and_then(Self::of) {
                Some((other, tcp)) => tcp.offer(other, entry.socket),
                None => {
                    path.drop_connection(Reason::Parked);
                    accept::refuse(entry.socket);
                }
            }
        }
        if !path.is_agreed() {
            let first = self.0.parked.lock().first().map(|entry| entry.since);
            if let Some(jiffies) = first.and_then(|since| path.time_to_tell(since)) {
                path.accept_after(jiffies);
            }
        }
    }

    /// A connection that waits here and is for another path, and for which.
    fn next_stray(&self, path: &Path) -> Option<(Parked, usize)> {
        let conn = &path.conn;
        let own = usize::from(path.index);
        let (paths, encoded) = (conn.paths_in_use(), conn.sport_encodes_path());
        let target = |entry: &Parked| match paths {
            0 if path.time_to_tell(entry.since).is_some() => own,
            0 => 0,
            _ if encoded => path_of_source_port(entry.socket.peer().port, paths),
            _ if path.is_agreed() => own,
            _ => 0,
        };
        let mut parked = self.0.parked.lock();
        let index = parked.iter().position(|entry| target(entry) != own)?;
        let entry = parked.remove(index).ok()?;
        drop(parked);
        let target = target(&entry);
        Some((entry, target))
    }

    /// Resets the connections that wait; the path is destroyed. Sleeps.
    pub(super) fn refuse_parked(&self, path: &Path) {
        let parked = core::mem::take(&mut *self.0.parked.lock());
        for entry in parked {
            path.drop_connection(Reason::Parked);
            accept::refuse(entry.socket);
        }
    }

    /// Takes the connections that wait, if the path is down. Sleeps.
    pub(super) fn take_parked(&self, path: &Arc<Path>) {
        self.sort_parked(path);
        if !path.is_agreed() {
            return;
        }
        if path.waits_for_first() {
            path.accept_later();
            return;
        }
        while path.state() == PathState::Down {
            let Some(Parked { socket, since }) = self.next_parked() else {
                return;
            };
            if let Err((error, socket)) = self.0.adopt(path, socket) {
                // Its data may be acknowledged already, so the connection must not be lost.
                self.park_again(path, Parked { socket, since });
                if error != EBUSY {
                    path.accept_later();
                }
                return;
            }
        }
    }
}
