// SPDX-License-Identifier: GPL-2.0

//! What the whole module shares: counters, transports, tunables, the namespaces that exist.

use crate::{
    netns::NetState,
    transport::Transports, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};
use weft::{
    global::Global,
    mm,
    net::ns::Net,
    percpu::Counters,
    time,
    workqueue::QueueHandle, //
};
use weft_proto::rds::counters::{
    Core,
    Drops, //
};

/// The module state, for entry points that get no context.
pub static RDS: Global<Rds> = Global::new();

/// The module state.
#[pin_data]
pub struct Rds {
    counters: Counters<{ Core::COUNT }>,
    drops: Counters<{ Drops::COUNT }>,
    /// Where the tasks of connection paths run.
    pub queue: QueueHandle,
    /// Who can carry messages.
    #[pin]
    pub transports: Transports,
    /// Limits that the administrator can change.
    pub tunables: Tunables,
    #[pin]
    namespaces: Mutex<KVec<Arc<NetState>>>,
    /// Bytes that sockets have not read yet, with an allowance for what each message takes besides.
    unread: Atomic<usize>,
}

impl Rds {
    /// Creates the state; `send_batch` is the module parameter `send_batch_count`.
    pub fn new(queue: QueueHandle, send_batch: i32) -> Result<Arc<Self>> {
        let (counters, drops) = (Counters::new()?, Counters::new()?);
        Arc::pin_init(
            pin_init!(Self {
                counters,
                drops,
                queue,
                transports <- Transports::new(),
                tunables: Tunables::new(send_batch),
                namespaces <- new_mutex!(KVec::new()),
                unread: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Counts one event.
    #[inline]
    pub fn count(&self, counter: Core) {
        self.counters.add(counter as usize, 1);
    }

    /// Counts `amount` events or bytes.
    #[inline]
    pub fn count_by(&self, counter: Core, amount: usize) {
        self.counters.add(counter as usize, amount as u64);
    }

    /// The value of a counter.
    pub fn counter(&self, index: usize) -> u64 {
        self.counters.sum(index)
    }

    /// Counts messages that sockets have got and not read. Any context.
    #[inline]
    pub(crate) fn add_unread(&self, messages: usize, bytes: usize) {
        // ORDERING: A sum; nothing hangs on the order.
        self.unread
            .fetch_add(bytes + messages * MESSAGE_OVERHEAD, Relaxed);
    }

    /// Undoes [`Self::add_unread`].
    #[inline]
    pub(crate) fn remove_unread(&self, messages: usize, bytes: usize) {
        self.unread
            .fetch_sub(bytes + messages * MESSAGE_OVERHEAD, Relaxed);
    }

    /// Whether all sockets together have as much unread as they may have.
    #[inline]
    pub(crate) fn has_too_much_unread(&self) -> bool {
        self.unread.load(Relaxed) > self.tunables.max_unread_bytes.load(Relaxed)
    }

    /// Counts a drop that C does not count; `trace.rs` decides.
    pub(crate) fn count_own(&self, counter: Drops) {
        self.drops.add(counter as usize, 1);
    }

    /// The value of a counter that C does not have.
    pub(crate) fn drop_counter(&self, index: usize) -> u64 {
        self.drops.sum(index)
    }

    /// Makes a namespace known. Sleeps.
    pub(crate) fn add_namespace(&self, state: Arc<NetState>) -> Result {
        self.namespaces.lock().push(state, GFP_KERNEL)?;
        Ok(())
    }

    /// Forgets a namespace. Sleeps.
    pub(crate) fn remove_namespace(&self, state: &Arc<NetState>) {
        self.namespaces
            .lock()
            .retain(|known| !Arc::ptr_eq(known, state));
    }

    /// The state of `net`; `None` before the namespace is set up and after it is gone. Sleeps.
    pub fn namespace(&self, net: &Net) -> Option<Arc<NetState>> {
        self.namespaces
            .lock()
            .iter()
            .find(|state| state.is(net))
            .cloned()
    }

    /// Calls `visit` for each namespace. Sleeps.
    pub(crate) fn for_each_namespace(&self, mut visit: impl FnMut(&Arc<NetState>)) {
        for state in self.namespaces.lock().iter() {
            visit(state);
        }
    }
}

/// What an unread message takes in memory besides its payload, roughly.
const MESSAGE_OVERHEAD: usize = 256;

/// How long a connection is kept that nobody uses, in milliseconds.
const IDLE_TIMEOUT_MS: u32 = 15 * 60 * 1000;

/// One connection for each MiB of memory, within reason.
fn most_connections() -> i32 {
    let most = (mm::total_bytes() >> 20).clamp(1024, 65536);
    i32::try_from(most).unwrap_or(1024)
}

/// Limits from `/proc/sys/net/rds`, with their defaults.
pub struct Tunables {
    /// Shortest pause between two attempts to connect, in jiffies.
    pub reconnect_min: Atomic<usize>,
    /// Longest pause between two attempts to connect, in jiffies.
    pub reconnect_max: Atomic<usize>,
    /// Messages sent before one asks for an acknowledgement.
    pub max_unacked_packets: Atomic<i32>,
    /// Bytes sent before a message asks for an acknowledgement.
    pub max_unacked_bytes: Atomic<i32>,
    /// Whether pings are answered.
    pub ping_enable: Atomic<i32>,
    /// Jiffies after which an unused connection is closed, and after which a closed one is forgotten; 0 for never.
    pub idle_timeout: Atomic<usize>,
    /// Bytes that all sockets together may have unread before a peer has to wait for them.
    pub max_unread_bytes: Atomic<usize>,
    /// Connections that a namespace may have, with those that were forgotten but for their numbers.
    pub max_connections: Atomic<i32>,
    /// Messages that one turn of a sender sends at most.
    pub send_batch: usize,
}

impl Tunables {
    fn new(send_batch: i32) -> Self {
        Self {
            reconnect_min: Atomic::new(time::msecs_to_jiffies(1).max(1)),
            reconnect_max: Atomic::new(time::msecs_to_jiffies(1000)),
            max_unacked_packets: Atomic::new(8),
            max_unacked_bytes: Atomic::new(16 << 20),
            ping_enable: Atomic::new(1),
            idle_timeout: Atomic::new(time::msecs_to_jiffies(IDLE_TIMEOUT_MS)),
            max_unread_bytes: Atomic::new(
                usize::try_from(mm::total_bytes() / 4).unwrap_or(usize::MAX),
            ),
            max_connections: Atomic::new(most_connections()),
            send_batch: match usize::try_from(send_batch) {
                Ok(0) | Err(_) => usize::MAX,
                Ok(count) => count,
            },
        }
    }

    /// Whether pings are answered now.
    #[inline]
    pub fn answers_pings(&self) -> bool {
        // ORDERING: A setting on its own.
        self.ping_enable.load(Relaxed) != 0
    }
}
