// SPDX-License-Identifier: GPL-2.0

//! Connections that nobody uses: they are closed, and when they have been closed for long, forgotten.
//!
//! C keeps every connection for as long as its namespace, connected. Here a task of the namespace looks at all of them
//! from time to time. One on which no message went either way for `net.rds.idle_timeout_ms` comes to *rest*: the end
//! that opened it closes it, in order, and the next message opens it again. The other end cannot do so, since the peer
//! would connect again at once. One that was at rest, or without a peer, for that time again is *forgotten*: its
//! memory is freed but for the numbers that make each message arrive once ([`Memory`]), with which it begins when it
//! is made again. To its peer that looks like a connection that was down.
//!
//! A connection is forgotten only if nobody is at it: [`Path::enter`] is how a sender, an acceptor or the path's own
//! task says that it is.

use crate::{
    conn::{
        Conn,
        ConnKey, //
    },
    netns::NetState,
    path::{
        Numbers,
        Path, //
    },
    transport::Kind,
    worker::Event, //
};
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        atomic::{
            Full,
            Relaxed,
            Release, //
        },
        barrier::smp_mb,
        Arc, //
    },
};
use weft::{
    time,
    workqueue::{
        Task,
        TaskItem, //
    },
};
use weft_proto::rds::{
    arbitration::Role,
    state::PathState,
    wire::MAX_PATHS, //
};

/// Longest and shortest pause between two looks at the connections, in milliseconds.
const LONGEST_PAUSE_MS: u32 = 15_000;
const SHORTEST_PAUSE_MS: u32 = 100;

/// A connection that was opened again after a rest is given twice the time before the next, up to 2 to the power of
/// this: it costs more to open it again and again than to keep it.
const MOST_DOUBLINGS: u32 = 6;

/// What is kept of a connection that was forgotten.
pub(crate) struct Memory {
    peer_generation: u32,
    sport_encodes_path: bool,
    npaths: u8,
    numbers: [Numbers; MAX_PATHS],
}

/// For how long nothing has happened on a connection.
#[derive(Default)]
pub(crate) struct Quiet {
    /// Sum of all numbers of messages when they changed last.
    progress: u64,
    /// Jiffies when that was seen.
    since: usize,
    /// How often it came to rest.
    rests: u32,
}

/// What to do with a connection.
enum Verdict {
    Keep,
    Rest,
    Forget,
}

/// What a look at the paths of a connection shows.
struct Look {
    progress: u64,
    /// Messages of sockets are on their way.
    busy: bool,
    any_up: bool,
    all_down: bool,
}

impl Conn {
    fn look(&self) -> Look {
        let mut look = Look {
            progress: 0,
            busy: false,
            any_up: false,
            all_down: true,
        };
        self.for_each_path(|path| {
            let numbers = path.numbers();
            look.progress = look
                .progress
                .wrapping_add(numbers.next_sequence)
                .wrapping_add(numbers.rx_expected);
            look.busy |= path.holds_user_messages() || path.is_receiver_stopped();
            look.any_up |= path.is_up();
            look.all_down &= path.state() == PathState::Down;
        });
        look
    }

    /// Whether one end waits for the other to tell that a port is free.
    fn waits_for_news(&self) -> bool {
        self.local_map.is_congested() || self.peer_map.is_congested()
    }

    /// Whether the peer may close the connection without being called back.
    pub(crate) fn may_rest(&self) -> bool {
        !self.look().busy && !self.waits_for_news()
    }

    /// What is due after `timeout` jiffies without traffic.
    fn judge(&self, timeout: usize) -> Verdict {
        let look = self.look();
        let now = time::jiffies();
        let mut quiet = self.quiet.lock();
        if look.busy || look.progress != quiet.progress {
            quiet.progress = look.progress;
            quiet.since = now;
            return Verdict::Keep;
        }
        let patience = timeout.saturating_mul(1 << quiet.rests.min(MOST_DOUBLINGS));
        if now.wrapping_sub(quiet.since) < patience || self.waits_for_news() {
            return Verdict::Keep;
        }
        if look.all_down {
            return Verdict::Forget;
        }
        if look.any_up && self.role() == Role::Passive {
            return Verdict::Keep;
        }
        quiet.since = now;
        quiet.rests += u32::from(look.any_up);
        Verdict::Rest
    }

    /// Makes sure that nobody is at the connection, and nobody comes to it any more. The caller holds the lock of the
    /// table of connections, so that whoever is turned away finds the table settled. `None` if somebody is.
    fn retire(&self) -> Option<Memory> {
        // ORDERING: `Full`: either `Path::enter` sees this, or this sees who has entered.
        self.retiring.store(true, Release);
        smp_mb(kernel::sync::barrier::Full);
        let mut alone = true;
        self.for_each_path(|path| alone &= path.is_deserted());
        if !alone {
            self.retiring.store(false, Release);
            return None;
        }
        // ORDERING: `Full`, like the rest of this; `retiring` stays set.
        self.destroying.store(true, Release);
        let mut numbers = [Numbers::default(); MAX_PATHS];
        self.for_each_path(|path| {
            if let Some(slot) = numbers.get_mut(usize::from(path.index)) {
                *slot = path.numbers();
            }
        });
        let (peer_generation, sport_encodes_path) = self.handshake.lock().known();
        Some(Memory {
            peer_generation,
            sport_encodes_path,
            npaths: self.paths_in_use(),
            numbers,
        })
    }

    /// Begins where a forgotten connection ended. Nobody knows this one yet.
    pub(crate) fn recall(&self, memory: &Memory) {
        let paths = memory.npaths.min(self.transport.max_paths());
        self.handshake
            .lock()
            .recall(memory.peer_generation, memory.sport_encodes_path);
        // With other paths than before the two ends have to agree anew.
        if paths == memory.npaths {
            self.npaths.store(paths.into(), Release);
        }
        // ORDERING: Nobody else sees this yet.
        self.was_up.store(true, Relaxed);
        self.for_each_path(|path| {
            if let Some(&numbers) = memory.numbers.get(usize::from(path.index)) {
                path.recall(numbers);
            }
        });
    }
}

impl NetState {
    /// Has the task look at connections, if it does not do so already.
    pub(crate) fn watch_idle(self: &Arc<Self>) {
        let timeout = self.rds.tunables.idle_timeout.load(Relaxed);
        let (shortest, longest) = (
            time::msecs_to_jiffies(SHORTEST_PAUSE_MS),
            time::msecs_to_jiffies(LONGEST_PAUSE_MS),
        );
        let pause = match timeout {
            0 => longest,
            timeout => (timeout / 4).clamp(shortest, longest),
        };
        Task::schedule(self, pause);
    }

    /// Closes and forgets what was not used for long. Sleeps.
    fn sweep(self: &Arc<Self>) {
        // ORDERING: A setting on its own.
        let timeout = self.rds.tunables.idle_timeout.load(Relaxed);
        let mut last = None;
        while let Some(conn) = self.connection_after(last) {
            last = Some(conn.key);
            if timeout == 0 || conn.key.kind == Kind::Loop {
                continue;
            }
            match conn.judge(timeout) {
                Verdict::Keep => {}
                Verdict::Rest => conn.for_each_path(|path| path.kick(Event::Rest)),
                Verdict::Forget => self.forget(&conn),
            }
        }
        if last.is_some() {
            self.watch_idle();
        }
    }

    /// The connection with the lowest key above `last`.
    fn connection_after(&self, last: Option<ConnKey>) -> Option<Arc<Conn>> {
        let table = self.conns.lock();
        let Some(last) = last else {
            return table.conns.values().next().cloned();
        };
        let cursor = table.conns.cursor_lower_bound(&last)?;
        match cursor.current() {
            (key, _) if *key == last => cursor.peek_next().map(|(_, conn)| conn.clone()),
            (_, conn) => Some(conn.clone()),
        }
    }

    /// Frees a connection but for its numbers. Sleeps.
    fn forget(&self, conn: &Arc<Conn>) {
        // Without memory it is tried again later.
        let Ok(reservation) = RBTreeNodeReservation::new(GFP_KERNEL) else {
            return;
        };
        let mut table = self.conns.lock();
        let present = table
            .conns
            .get(&conn.key)
            .is_some_and(|found| Arc::ptr_eq(found, conn));
        if !present {
            return;
        }
        let Some(memory) = conn.retire() else {
            return;
        };
        let removed = table.conns.remove_node(&conn.key);
        // The peer knows nothing of a connection that never was.
        if conn.was_up.load(Relaxed) {
            table
                .remembered
                .insert(reservation.into_node(conn.key, memory));
        } else {
            table.count -= 1;
        }
        drop(table);
        drop(removed);
        conn.destroy();
    }
}

impl TaskItem<0> for NetState {
    fn run(this: Arc<Self>) {
        this.sweep();
    }
}

/// The forgotten connections of a namespace.
pub(crate) type Remembered = RBTree<ConnKey, Memory>;

/// Somebody is at a path; its connection is not forgotten meanwhile.
pub struct InUse(Arc<Path>);

impl Path {
    /// Keeps the connection from being forgotten. Any context.
    ///
    /// `None` if it is going away; unless its namespace or transport goes, too, [`Conn::get`] finds or makes another.
    #[inline]
    pub fn enter(self: Arc<Self>) -> Option<InUse> {
        // ORDERING: `Full` against `Conn::retire`.
        self.users.fetch_add(1, Full);
        let entered = InUse(self);
        (!entered.conn.is_retiring() && !entered.conn.is_destroying()).then_some(entered)
    }

    /// Whether nobody is at the path and nothing is to be done on it. Senders are turned away meanwhile.
    fn is_deserted(&self) -> bool {
        // ORDERING: `Full`: whoever has left has left everything in place. The task is one of them, so it neither runs
        // nor begins to, and what it is told to do shows.
        self.users.fetch_add(0, Full) == 0
            && self.events.is_empty()
            && self.state() == PathState::Down
            && !self.holds_user_messages()
    }
}

impl core::ops::Deref for InUse {
    type Target = Arc<Path>;

    #[inline]
    fn deref(&self) -> &Arc<Path> {
        &self.0
    }
}

impl Drop for InUse {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: `Full`: what was done here is seen by who finds that nobody is here.
        self.0.users.fetch_sub(1, Full);
    }
}
