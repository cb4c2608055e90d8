// SPDX-License-Identifier: GPL-2.0

//! How much memory peers can make this server use.
//!
//! C counterpart: none; there each first connection of an unknown client costs all its chunks at once, without limit.
//! Here a client has chunks only after its connections are complete, and all clients together have a part of the
//! machine's memory at most.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};

/// Bytes that may be used, and are.
pub(crate) struct Budget {
    limit: i64,
    used: Atomic<i64>,
}

impl Budget {
    /// Allows `limit` bytes.
    pub(crate) fn new(limit: u64) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                limit: i64::try_from(limit).unwrap_or(i64::MAX),
                used: Atomic::new(0),
            },
            GFP_KERNEL,
        )?)
    }

    /// Sets `bytes` aside; `ENOMEM` if that is more than what is left. Any context.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Result<Reserved> {
        let bytes = i64::try_from(bytes)?;
        if bytes > self.limit {
            return Err(ENOMEM);
        }
        // ORDERING: A count on its own. It cannot overflow: no addend is larger than the limit, and one that does not
        // fit is taken off again at once.
        let used = self.used.fetch_add(bytes, Relaxed);
        let reserved = Reserved {
            budget: self.clone(),
            bytes,
        };
        if used > self.limit.saturating_sub(bytes) {
            return Err(ENOMEM);
        }
        Ok(reserved)
    }
}

/// Bytes set aside; dropping it gives them back, in any context.
pub(crate) struct Reserved {
    budget: Arc<Budget>,
    bytes: i64,
}

impl Reserved {
    /// Makes a reservation of its own of `bytes`, or what is left of them.
    pub(crate) fn split(&mut self, bytes: u64) -> Self {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(self.bytes);
        self.bytes -= bytes;
        Self {
            budget: self.budget.clone(),
            bytes,
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // ORDERING: As in `take`.
        self.budget.used.fetch_sub(self.bytes, Relaxed);
    }
}
