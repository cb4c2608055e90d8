// SPDX-License-Identifier: GPL-2.0

//! Who uses something that is lent: a state and the last chain.

use super::proof::Covers;
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// States that a [`Cell`] can have in every type that has one; such a type has more, from [`FIRST_OWN`] on.
///
/// There is nothing in it.
pub(crate) const EMPTY: u32 = 0;
/// Something is in it, which hardware does not use.
pub(crate) const FREE: u32 = 1;
/// Somebody has it: a chain that is being built, or a method that is running.
pub(crate) const HELD: u32 = 2;
/// The first state of a type's own.
pub(crate) const FIRST_OWN: u32 = 3;

/// Who uses something: a state, and the last chain that does.
///
/// # Invariants
///
/// `qp` and `seq` are written only by whoever turned the state to [`HELD`], and name the last chain that uses it.
pub(crate) struct Cell {
    state: Atomic<u32>,
    qp: Atomic<u64>,
    seq: Atomic<u64>,
}

impl Cell {
    pub(crate) fn new(state: u32) -> Self {
        // INVARIANT: No queue pair has the number 0.
        Self {
            state: Atomic::new(state),
            qp: Atomic::new(0),
            seq: Atomic::new(0),
        }
    }

    /// The state, which may change at once.
    #[inline]
    pub(crate) fn state(&self) -> u32 {
        // ORDERING: A hint; `hold` says for sure.
        self.state.load(Relaxed)
    }

    /// Takes hold of it if it is in state `from`.
    #[inline]
    pub(crate) fn hold(&self, from: u32) -> bool {
        // ORDERING: `Acquire` pairs with `release`.
        self.state.cmpxchg(from, HELD, Acquire).is_ok()
    }

    /// Leaves it in state `to`. Only by whoever holds it.
    #[inline]
    pub(crate) fn release(&self, to: u32) {
        // ORDERING: `Release` pairs with `hold`.
        self.state.store(to, Release);
    }

    /// The queue pair and the number of the last chain that uses it. Exact for whoever holds it.
    #[inline]
    pub(crate) fn user(&self) -> (u64, u64) {
        // ORDERING: Whoever holds it is ordered after the writer by `hold`; to others it is a hint.
        (self.qp.load(Relaxed), self.seq.load(Relaxed))
    }

    /// Notes a new last user. Only by whoever holds it.
    #[inline]
    pub(super) fn set_user(&self, qp: u64, seq: u64) {
        // ORDERING: See `user`.
        self.qp.store(qp, Relaxed);
        self.seq.store(seq, Relaxed);
    }

    /// Whether `proof` shows that nobody uses it any more. Exact for whoever holds it.
    #[inline]
    pub(crate) fn covered(&self, proof: &impl Covers) -> bool {
        let (qp, seq) = self.user();
        qp == 0 || proof.covers(qp, seq)
    }
}

/// A [`Cell`] that a chain holds while it is being built.
///
/// # Invariants
///
/// Until [`Self::commit`] or [`Self::cancel`], the chain has turned the state of `cell` to [`HELD`]; before, it was
/// `from`.
pub(crate) struct Pledge<'o> {
    cell: &'o Cell,
    from: u32,
    to: u32,
    before: (u64, u64),
}

impl<'o> Pledge<'o> {
    /// For a cell that was just turned from state `from`, and goes to state `to` with the chain.
    #[inline]
    pub(crate) fn new(cell: &'o Cell, from: u32, to: u32) -> Self {
        // INVARIANT: As the caller says.
        let before = cell.user();
        Self {
            cell,
            from,
            to,
            before,
        }
    }

    /// The chain is about to be posted. Before it is: what comes of it may be there at once.
    #[inline]
    pub(crate) fn commit(&self, qp: u64, seq: u64) {
        self.cell.set_user(qp, seq);
        self.cell.release(self.to);
    }

    /// After [`Self::commit`]: the chain was not posted after all.
    ///
    /// False if somebody else holds the cell just now: then it stays as it is, in use by a chain with that number, so
    /// there must be none.
    #[cold]
    pub(crate) fn revert(&self) -> bool {
        let held = self.cell.hold(self.to);
        if held {
            self.cell.set_user(self.before.0, self.before.1);
            self.cell.release(self.from);
        }
        held
    }

    /// Instead of [`Self::commit`]: the chain is not posted.
    #[inline]
    pub(crate) fn cancel(&self) {
        self.cell.release(self.from);
    }
}
