// SPDX-License-Identifier: GPL-2.0

//! What keeps the code of this module in memory where no reference of the module does.
//!
//! Some things may run in this module when nobody uses it any more: the end of a write to a file that has left its
//! directory, after it put the last reference of the file's module, and the late release of a class or of a disk's
//! memory. Each holds a [`Stay`], and the unloading of this module waits for them.

use crate::bindings;
use kernel::{
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// How often the end looks whether there is anybody left, in milliseconds.
const POLL_MS: i64 = 20;

static STAYING: Atomic<i64> = Atomic::new(0);
static USED: Atomic<bool> = Atomic::new(false);

/// As long as one lives, this module's code stays. When it drops it, the owner must return without sleeping.
pub(crate) struct Stay(());

impl Stay {
    /// The caller must be in a place where this module cannot be unloaded.
    pub(crate) fn new() -> Self {
        // ORDERING: The module cannot be unloaded now, and what unloads it later is ordered after that.
        STAYING.fetch_add(1, Relaxed);
        USED.store(true, Relaxed);
        Self(())
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        // ORDERING: `Release` pairs with `wait`.
        STAYING.fetch_sub(1, Release);
    }
}

/// Waits until nobody stays, when this module is unloaded. Sleeps; some seconds with `DEBUG_KOBJECT_RELEASE`.
pub(crate) fn wait() {
    // ORDERING: A use of this module was over before it could be unloaded, or has a `Stay`.
    if !USED.load(Relaxed) {
        return;
    }
    // ORDERING: `Acquire` pairs with the drop of `Stay`.
    while STAYING.load(Acquire) != 0 {
        fsleep(Delta::from_millis(POLL_MS));
    }
    // Whoever dropped the last one may have been preempted before it returned from here.
    // SAFETY: May sleep, and holds no lock.
    unsafe { bindings::weft_helper_synchronize_rcu_tasks() };
}
