// SPDX-License-Identifier: GPL-2.0

//! Which tasks hold the handler mutex of some id.
//!
//! A task that holds one must not wait for another, nor destroy an id, which waits for that id's. The C code leaves
//! this to its callers; here a task that enters a handler, or locks an id, notes itself in a table.

use kernel::{
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    task::Task,
    types::NotThreadSafe, //
};

/// Tasks that can be noted. Handlers run in work items of a few queues, at most one for each CPU and queue.
const SLOTS: usize = 64;

/// The tasks, by their addresses; zero where there is none.
///
/// ORDERING: A task looks for itself only, so the order of its own accesses is enough everywhere in this file.
static TASKS: [Atomic<usize>; SLOTS] = [const { Atomic::new(0) }; SLOTS];

/// Tasks for which there was no slot.
static UNKNOWN: Atomic<i32> = Atomic::new(0);

fn current() -> usize {
    Task::current_raw().addr()
}

/// Notes the current task as long as it lives.
pub(super) struct Inside {
    slot: Option<&'static Atomic<usize>>,
    _not_send: NotThreadSafe,
}

impl Inside {
    pub(super) fn enter() -> Self {
        let me = current();
        let slot = TASKS
            .iter()
            .find(|slot| slot.load(Relaxed) == 0 && slot.cmpxchg(0, me, Relaxed).is_ok());
        if slot.is_none() {
            UNKNOWN.add(1, Relaxed);
        }
        Self {
            slot,
            _not_send: NotThreadSafe,
        }
    }

    /// Whether the current task is known to hold a handler mutex.
    pub(super) fn known() -> bool {
        let me = current();
        TASKS.iter().any(|slot| slot.load(Relaxed) == me)
    }

    /// Whether the current task may hold one: as [`Self::known`], and true if there were too many to know.
    pub(super) fn possible() -> bool {
        Self::known() || UNKNOWN.load(Relaxed) != 0
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        match self.slot {
            Some(slot) => slot.store(0, Relaxed),
            None => UNKNOWN.add(-1, Relaxed),
        }
    }
}
