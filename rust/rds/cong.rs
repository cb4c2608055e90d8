// SPDX-License-Identifier: GPL-2.0

//! Congestion: which ports of an address take no more messages.
//!
//! C counterpart: `net/rds/cong.c`. Each host keeps one map per own address and sends it whole to every peer when it
//! changes; of each peer it keeps the map received last and looks the destination port up before it queues a message.
//! Unlike C the maps belong to a namespace, and a monitor is woken only for ports that did become free.

use crate::{
    conn::Conn,
    netns::NetState,
    transport::Kind, //
};
use kernel::{
    alloc::KVec,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};
use weft::{
    list::HomeList,
    mm::bytes::Bytes,
    new_spinlock_bh,
    sync::{
        bh::SpinLockBh,
        wait::WaitQueue, //
    },
};
use weft_proto::rds::{
    addr::Addr,
    cong::{
        self,
        MAP_WORDS, //
    },
    wire::CONG_MAP_BYTES, //
};

/// The connections that end in the address of a map.
type Connections = HomeList<Conn, 0>;

/// The congested ports of one address.
#[pin_data]
pub struct CongMap {
    /// The address.
    pub address: Addr,
    /// A bit per port. Read without a lock, changed under `conns`.
    words: KVec<Atomic<u64>>,
    /// Connections whose own address this is: they carry the map to their peers.
    #[pin]
    conns: SpinLockBh<Connections>,
    /// Loopback connections send to this address: its changes are news within this machine.
    looped: Atomic<bool>,
    /// Senders that wait for a port to become free.
    #[pin]
    pub waiters: WaitQueue,
}

impl CongMap {
    /// A map with no port congested.
    pub fn new(address: Addr) -> Result<Arc<Self>> {
        let mut words = KVec::with_capacity(MAP_WORDS, GFP_KERNEL_ACCOUNT)?;
        for _ in 0..MAP_WORDS {
            words.push(Atomic::new(0u64), GFP_KERNEL_ACCOUNT)?;
        }
        Arc::pin_init(
            pin_init!(Self {
                address,
                words,
                looped: Atomic::new(false),
                conns <- new_spinlock_bh!(HomeList::new(), "rds_cong_map"),
                waiters <- weft::new_wait_queue!("rds_cong_wait"),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether a port is congested. Any context.
    #[inline]
    pub fn test(&self, port: u16) -> bool {
        let (index, bit) = cong::word_and_bit(port);
        // ORDERING: `Acquire` pairs with the release below, so that a waiter that sees the bit clear sees why.
        self.words
            .get(index)
            .is_some_and(|word| word.load(Acquire) & bit != 0)
    }

    /// Marks a port of an own address congested or free, and has all peers told if that is news. Up to softirq.
    pub fn set(&self, net: &NetState, port: u16, congested: bool) {
        let (index, bit) = cong::word_and_bit(port);
        let Some(word) = self.words.get(index) else {
            return;
        };
        let conns = self.conns.lock();
        // ORDERING: Only changed under `conns`.
        let old = word.load(Relaxed);
        let new = if congested { old | bit } else { old & !bit };
        if old == new {
            return;
        }
        word.store(new, Release);
        for conn in conns.iter() {
            if conn.key.kind != Kind::Loop {
                conn.queue_map();
            }
        }
        drop(conns);
        // ORDERING: Set before the first loopback message to this address is sent.
        if self.looped.load(Relaxed) {
            let freed = if congested {
                0
            } else {
                cong::monitor_bit(port)
            };
            net.map_updated(self, freed);
        }
    }

    /// Whether any port is congested. Any context.
    pub(crate) fn is_congested(&self) -> bool {
        self.words.iter().any(|word| word.load(Acquire) != 0)
    }

    /// Takes over a map that a peer sent; returns the mask of ports (modulo 64) that became free. Up to softirq.
    ///
    /// If the map may be `stale`, ports that are free now stay free.
    pub fn replace(&self, bytes: &[u8], stale: bool) -> u64 {
        let _changing = self.conns.lock();
        let mut freed = 0;
        for (word, bytes) in self.words.iter().zip(bytes.chunks_exact(8)) {
            let Ok(bytes) = <[u8; 8]>::try_from(bytes) else {
                continue;
            };
            // ORDERING: Only changed under `conns`.
            let old = word.load(Relaxed);
            let mut new = cong::word_from_bytes(bytes);
            if stale {
                new &= old;
            }
            freed |= cong::newly_uncongested(old, new);
            word.store(new, Release);
        }
        freed
    }

    /// How many ports are congested.
    pub(crate) fn count(&self) -> u32 {
        let ports = |word: &Atomic<u64>| word.load(Relaxed).count_ones();
        self.words.iter().map(ports).sum()
    }

    /// The map as it goes over the wire.
    pub fn to_bytes(&self) -> Result<Bytes> {
        let mut bytes = Bytes::zeroed(CONG_MAP_BYTES, GFP_KERNEL)?;
        for (bytes, word) in bytes.chunks_exact_mut(8).zip(self.words.iter()) {
            bytes.copy_from_slice(&cong::word_to_bytes(word.load(Relaxed)));
        }
        Ok(bytes)
    }

    /// Says that loopback connections send to this address.
    pub(crate) fn set_looped(&self) {
        self.looped.store(true, Relaxed);
    }

    /// Adds a connection that ends in this address.
    pub(crate) fn add_conn(&self, conn: &Arc<Conn>) {
        // A connection is added once, when it enters the table.
        let _ = self.conns.lock().push_back(conn.clone());
    }

    /// Takes a connection out.
    pub(crate) fn remove_conn(&self, conn: &Conn) {
        let removed = self.conns.lock().remove(conn);
        drop(removed);
    }
}
