// SPDX-License-Identifier: GPL-2.0

//! Numbers of disks: the `N` of `rnbdN`, which also chooses its minor numbers.
//!
//! C counterpart: `index_ida` in `drivers/block/rnbd/rnbd-clt.c`.

use kernel::{
    id_pool::IdPool,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
};

/// Minor numbers of a disk: the disk and 63 partitions.
pub(crate) const MINORS: u32 = 1 << PARTITION_BITS;
const PARTITION_BITS: u32 = 6;
/// Bits of a minor number: `MINORBITS`.
const MINOR_BITS: u32 = 20;
/// Disks there can be.
const DISKS: usize = 1 << (MINOR_BITS - PARTITION_BITS);

/// The numbers that are free.
#[pin_data]
pub(crate) struct Ids {
    #[pin]
    pool: SpinLock<IdPool>,
}

impl Ids {
    /// All are free.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let pool = IdPool::with_capacity(DISKS, GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self { pool <- new_spinlock!(pool, "rnbd_ids") }),
            GFP_KERNEL,
        )
    }

    /// Takes the lowest free number; `ENOSPC` if there is none.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Id> {
        let mut pool = self.pool.lock();
        let number = pool.find_unused_id(0).ok_or(ENOSPC)?.acquire();
        drop(pool);
        Ok(Id {
            ids: self.clone(),
            number,
        })
    }
}

/// A number that nobody else has as long as this lives.
pub(crate) struct Id {
    ids: Arc<Ids>,
    number: usize,
}

impl Id {
    /// The number.
    pub(crate) fn number(&self) -> u32 {
        // Below `DISKS`.
        u32::try_from(self.number).unwrap_or(u32::MAX)
    }

    /// The first minor number of the disk.
    pub(crate) fn first_minor(&self) -> u32 {
        self.number().saturating_mul(MINORS)
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        self.ids.pool.lock().release_id(self.number);
    }
}
