// SPDX-License-Identifier: GPL-2.0

//! A count of who uses something that is going to be taken away.

use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full, //
        },
        Completion, //
    },
};

/// Set in [`Gate::users`] once the gate is closed.
const CLOSED: i64 = 1 << 62;

/// Lets users in until it is closed; closing it waits until those inside have left.
#[pin_data]
pub(crate) struct Gate {
    users: Atomic<i64>,
    closing: Atomic<bool>,
    #[pin]
    idle: Completion,
}

impl Gate {
    /// A gate that is open.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            users: Atomic::new(0),
            closing: Atomic::new(false),
            idle <- Completion::new(),
        })
    }

    /// Counts one more user, who must call [`Self::leave`]; `false` if the gate is closed. Any context.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        // ORDERING: `Full` orders the check of CLOSED before what the user does, against `close`.
        if self.users.fetch_add(1, Full) & CLOSED == 0 {
            return true;
        }
        self.leave();
        false
    }

    /// Undoes one [`Self::enter`]. Any context.
    ///
    /// The last touch of the gate: whoever closes it may free it as soon as this has counted.
    #[inline]
    pub(crate) fn leave(&self) {
        // ORDERING: `Full` orders all that the user did before the count is seen as zero.
        if self.users.fetch_sub(1, Full) == CLOSED + 1 {
            self.idle.complete_all();
        }
    }

    /// [`Self::enter`] for as long as the pass lives.
    #[inline]
    pub(crate) fn pass(&self) -> Option<Pass<'_>> {
        // Not `then_some`: a pass that is made for nothing would be dropped, and leave.
        self.enter().then(|| Pass {
            gate: self,
            _not_send: PhantomData,
        })
    }

    /// Lets nobody in from now on and waits until all have left. Sleeps; may be called more than once.
    pub(crate) fn close(&self) {
        // ORDERING: `Full`: exactly one caller closes; the others wait with it.
        if !self.closing.xchg(true, Full) {
            // The one user more is this call, so that the count cannot be seen as zero before it is judged here.
            // ORDERING: `Full` makes CLOSED visible before the count is judged.
            self.users.fetch_add(CLOSED + 1, Full);
            self.leave();
        }
        self.idle.wait_for_completion();
    }
}

/// Somebody is inside a [`Gate`].
pub(crate) struct Pass<'a> {
    gate: &'a Gate,
    _not_send: PhantomData<*mut ()>,
}

impl Drop for Pass<'_> {
    #[inline]
    fn drop(&mut self) {
        self.gate.leave();
    }
}
