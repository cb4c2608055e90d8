// SPDX-License-Identifier: GPL-2.0

//! Which socket of a namespace owns which address and port.
//!
//! C counterpart: `net/rds/bind.c`. Unlike C there is one table per namespace, so two namespaces may use the same
//! address and port, and no message can reach a socket of another namespace.

use crate::sock::RdsSock;
use core::ops::Range;
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::aref::ARef,
};
use weft::{
    new_spinlock_bh,
    sync::bh::SpinLockBh,
    time, //
};
use weft_proto::rds::addr::Addr;

/// What identifies a bound socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Port, host order.
    pub port: u16,
    /// Interface of a link-local address, else 0.
    pub scope_id: u32,
    /// Address.
    pub address: Addr,
}

/// Ports that automatic binding may choose: not the ping port, not the probe port.
const AUTOMATIC: Range<u32> = 2..0x1_0000;

const SHARDS: usize = 32;

type Shard = RBTree<Key, ARef<RdsSock>>;

/// The bound sockets of a namespace.
#[pin_data]
pub struct BindTable {
    #[pin]
    shards: [SpinLockBh<Shard>; SHARDS],
}

impl BindTable {
    /// An empty table.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- pin_init::pin_init_array_from_fn(|_| new_spinlock_bh!(RBTree::new(), "rds_bind")),
        })
    }

    #[inline]
    fn shard(&self, port: u16) -> &SpinLockBh<Shard> {
        // The remainder is below SHARDS, so the index is in bounds.
        &self.shards[usize::from(port) % SHARDS]
    }

    /// The socket that owns an address and port. Any context up to softirq.
    #[inline]
    pub fn lookup(&self, key: &Key) -> Option<ARef<RdsSock>> {
        self.shard(key.port).lock().get(key).cloned()
    }

    /// Binds `sk` to `address`, to `port` or with port 0 to a free one; returns the key it is found under.
    ///
    /// `EADDRINUSE` if the port is taken or none is free, `ENOMEM`.
    pub fn insert(&self, sk: &RdsSock, address: Addr, port: u16, scope_id: u32) -> Result<Key> {
        let mut reservation = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let candidates = if port != 0 {
            u32::from(port)..u32::from(port) + 1
        } else {
            AUTOMATIC
        };
        let count = candidates.end - candidates.start;
        let first = time::random_u32() % count;
        for step in 0..count {
            let candidate = candidates.start + (first + step) % count;
            let key = Key {
                port: u16::try_from(candidate)?,
                scope_id,
                address,
            };
            match self.try_insert(sk, key, reservation) {
                None => return Ok(key),
                Some(unused) => reservation = unused,
            }
        }
        Err(EADDRINUSE)
    }

    /// Inserts under `key` unless it is taken; gives the node back if it is.
    fn try_insert(
        &self,
        sk: &RdsSock,
        key: Key,
        reservation: RBTreeNodeReservation<Key, ARef<RdsSock>>,
    ) -> Option<RBTreeNodeReservation<Key, ARef<RdsSock>>> {
        let mut shard = self.shard(key.port).lock();
        if shard.get(&key).is_some() {
            return Some(reservation);
        }
        shard.insert(reservation.into_node(key, ARef::from(sk)));
        None
    }

    /// Removes a binding.
    pub fn remove(&self, key: &Key) {
        let node = self.shard(key.port).lock().remove_node(key);
        // The socket may go with it, outside the lock.
        drop(node);
    }

    /// Calls `visit` for each bound socket, a shard locked at a time; `visit` must not sleep.
    pub fn for_each(&self, mut visit: impl FnMut(&Key, &RdsSock)) {
        for shard in &self.shards {
            for (key, sk) in shard.lock().iter() {
                visit(key, sk);
            }
        }
    }
}
