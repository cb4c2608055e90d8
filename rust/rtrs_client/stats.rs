// SPDX-License-Identifier: GPL-2.0

//! Statistics of a path.
//!
//! C counterpart: `rtrs-clt-stats.c`. Counters are kept per CPU. A reset remembers what they were instead of writing
//! to them, so that nothing counted at the same time is lost, and leaves alone what is in flight.

use crate::io::Direction;
use kernel::{
    cpu::{
        nr_cpu_ids,
        CpuId, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};
use weft::percpu::Counters;

// ORDERING: Everything here is statistics, each number on its own: `Relaxed` throughout.

/// What is counted per CPU.
const COUNTERS: usize = 5;

#[derive(Clone, Copy)]
enum Counter {
    Reads = 0,
    ReadBytes = 1,
    Writes = 2,
    WriteBytes = 3,
    Failovers = 4,
}

/// How often completions of one CPU's connection ran elsewhere.
struct Migration {
    from: Atomic<i32>,
    to: Atomic<i32>,
}

/// What `stats/rdma` shows.
pub(crate) struct Traffic {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    pub(crate) writes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) inflight: u32,
    pub(crate) failovers: u64,
}

/// Statistics of a path.
pub(crate) struct Stats {
    counters: Counters<COUNTERS>,
    /// Values of the counters at the last reset.
    base: [Atomic<u64>; COUNTERS],
    /// Requests on the way.
    inflight: Atomic<i32>,
    /// Times the path came up; -1 at first, so that the first time counts nothing.
    connected: Atomic<i32>,
    /// Attempts to connect that failed.
    failed: Atomic<i32>,
    migrations: KVec<Migration>,
}

impl Stats {
    pub(crate) fn new() -> Result<Self> {
        let cpus = usize::try_from(nr_cpu_ids())?;
        let mut migrations = KVec::with_capacity(cpus, GFP_KERNEL)?;
        for _ in 0..cpus {
            let migration = Migration {
                from: Atomic::new(0),
                to: Atomic::new(0),
            };
            migrations.push(migration, GFP_KERNEL)?;
        }
        Ok(Self {
            counters: Counters::new()?,
            base: [const { Atomic::new(0) }; COUNTERS],
            inflight: Atomic::new(0),
            connected: Atomic::new(-1),
            failed: Atomic::new(0),
            migrations,
        })
    }

    /// A request is about to be on its way.
    #[inline]
    pub(crate) fn started(&self) {
        self.inflight.fetch_add(1, Relaxed);
    }

    /// A request with `bytes` of data and message was sent.
    #[inline]
    pub(crate) fn sent(&self, direction: Direction, bytes: u64) {
        let (count, size) = match direction {
            Direction::Read => (Counter::Reads, Counter::ReadBytes),
            Direction::Write => (Counter::Writes, Counter::WriteBytes),
        };
        self.counters.add(count as usize, 1);
        self.counters.add(size as usize, bytes);
    }

    /// A request is no longer on its way over this path.
    #[inline]
    pub(crate) fn ended(&self) {
        self.inflight.fetch_sub(1, Relaxed);
    }

    /// The path took over a request of another one.
    pub(crate) fn took_over(&self) {
        self.counters.add(Counter::Failovers as usize, 1);
    }

    /// Requests on the way.
    #[inline]
    pub(crate) fn inflight(&self) -> u32 {
        self.inflight.load(Relaxed).max(0).unsigned_abs()
    }

    /// A completion of `cpu`'s connection runs on the current CPU.
    #[inline]
    pub(crate) fn completion(&self, cpu: u32) {
        let current = CpuId::current().as_u32();
        if current == cpu {
            return;
        }
        let of = |cpu: u32| {
            usize::try_from(cpu)
                .ok()
                .and_then(|cpu| self.migrations.get(cpu))
        };
        if let Some(migration) = of(current) {
            migration.to.fetch_add(1, Relaxed);
        }
        if let Some(migration) = of(cpu) {
            migration.from.fetch_add(1, Relaxed);
        }
    }

    /// The path came up.
    pub(crate) fn connected(&self) {
        self.connected.fetch_add(1, Relaxed);
    }

    /// An attempt to connect failed.
    pub(crate) fn connecting_failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    /// Times the path came up again, and attempts that failed.
    pub(crate) fn reconnects(&self) -> (i32, i32) {
        (self.connected.load(Relaxed), self.failed.load(Relaxed))
    }

    /// Completions that left each CPU.
    pub(crate) fn migrated_from(&self) -> impl Iterator<Item = i32> + '_ {
        self.migrations.iter().map(|cpu| cpu.from.load(Relaxed))
    }

    /// Completions that came to each CPU.
    pub(crate) fn migrated_to(&self) -> impl Iterator<Item = i32> + '_ {
        self.migrations.iter().map(|cpu| cpu.to.load(Relaxed))
    }

    fn since_reset(&self, counter: Counter) -> u64 {
        let index = counter as usize;
        let base = self.base.get(index).map_or(0, |base| base.load(Relaxed));
        self.counters.sum(index).wrapping_sub(base)
    }

    /// What the path carried.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            reads: self.since_reset(Counter::Reads),
            read_bytes: self.since_reset(Counter::ReadBytes),
            writes: self.since_reset(Counter::Writes),
            write_bytes: self.since_reset(Counter::WriteBytes),
            inflight: self.inflight(),
            failovers: self.since_reset(Counter::Failovers),
        }
    }

    pub(crate) fn reset_traffic(&self) {
        for (index, base) in self.base.iter().enumerate() {
            base.store(self.counters.sum(index), Relaxed);
        }
    }

    pub(crate) fn reset_migrations(&self) {
        for migration in &self.migrations {
            migration.from.store(0, Relaxed);
            migration.to.store(0, Relaxed);
        }
    }

    pub(crate) fn reset_reconnects(&self) {
        self.connected.store(0, Relaxed);
        self.failed.store(0, Relaxed);
    }

    pub(crate) fn reset_all(&self) {
        self.reset_traffic();
        self.reset_migrations();
        self.reset_reconnects();
    }
}
